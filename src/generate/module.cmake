ct_module(generate DEPS train tokenizer models nn kernels graph pjrt formats chips base)
