ct_module(train DEPS data checkpoint tokenizer optim models nn kernels autodiff graph pjrt formats base)
