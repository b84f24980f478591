ct_module(spmd DEPS autodiff graph chips base)
