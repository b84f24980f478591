ct_module(graph DEPS base)
