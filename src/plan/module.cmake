ct_module(plan DEPS train models predict spmd pjrt graph formats chips base)
