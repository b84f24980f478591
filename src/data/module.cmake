ct_module(data DEPS tokenizer formats base)
