ct_module(spmd DEPS autodiff graph base)
