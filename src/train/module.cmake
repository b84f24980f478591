ct_module(train DEPS data checkpoint tokenizer optim models nn kernels predict spmd autodiff graph pjrt formats chips base)
