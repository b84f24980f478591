/* Compiling for a plan. Internal. */
#ifndef CT_PLAN_COMPILE_H
#define CT_PLAN_COMPILE_H

#include "plan/plan.h"

/* Compiles the recipe's step in a child process, or finds that it was; the entry is in arena. */
CT_MUST_USE ct_status *ct__plan_compile(const ct_recipe *recipe, const ct_plan_opts *opts, ct_arena *arena,
                                        ct_plan_entry **out_entry);

#endif
