ct_module(train DEPS data checkpoint tokenizer optim models nn kernels spmd autodiff graph pjrt formats base)
