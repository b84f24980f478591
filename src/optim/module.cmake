ct_module(optim DEPS graph base)
