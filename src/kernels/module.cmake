ct_module(kernels DEPS autodiff graph base)
