ct_module(predict DEPS spmd chips pjrt formats base)
