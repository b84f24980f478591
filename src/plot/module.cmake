ct_module(plot DEPS formats base)
