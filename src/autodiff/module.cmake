ct_module(autodiff DEPS graph base)
