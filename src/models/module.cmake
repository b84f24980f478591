ct_module(models DEPS nn kernels autodiff graph formats base)
