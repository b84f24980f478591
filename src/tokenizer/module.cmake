ct_module(tokenizer DEPS formats base)
