ct_module(optim DEPS base)
