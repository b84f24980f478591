ct_module(models DEPS nn kernels spmd autodiff graph formats base)
