ct_module(nn DEPS kernels spmd autodiff graph base)
