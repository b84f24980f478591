ct_module(kernels DEPS spmd autodiff graph chips base)
