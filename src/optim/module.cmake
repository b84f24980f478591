ct_module(optim DEPS nn graph base)
