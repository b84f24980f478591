/* Does a program fit into a device? Internal. */
#ifndef CT_PLAN_FIT_H
#define CT_PLAN_FIT_H

#include "plan/plan.h"

/* Sets verdict, used_bytes and usable_bytes of a plan whose entry and state_bytes are there. */
void ct__plan_judge(ct_plan *plan);

/* What a compiler that refused a program says of sizes. libtpu: "... the total memory required for HLO temporaries
 * (24.27G) exceeds available HBM (15.75G)", "Used 20.1G of 15.75G hbm". Zeros for what it does not say; *out_is_temp
 * says that the arguments are not among the wanted. */
void ct__plan_parse_refusal(const char *message, int64_t *out_wanted_bytes, int64_t *out_usable_bytes,
                            bool *out_is_temp);

#endif
