ct_module(chips DEPS base)
