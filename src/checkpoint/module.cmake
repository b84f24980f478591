ct_module(checkpoint DEPS formats base)
