ct_module(nn DEPS kernels autodiff graph base)
