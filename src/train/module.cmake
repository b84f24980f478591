ct_module(train DEPS base formats optim)
