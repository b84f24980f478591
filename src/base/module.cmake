ct_module(base)
