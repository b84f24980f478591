/* Does a program fit into a device? Internal. */
#ifndef CT_PLAN_FIT_H
#define CT_PLAN_FIT_H

#include "plan/plan.h"

/* Sets verdict, used_bytes and usable_bytes of a plan whose entry and state_bytes are there. */
void ct__plan_judge(ct_plan *plan);

typedef struct ct__plan_refusal {
    int64_t wanted_bytes, usable_bytes; /* 0: not said */
    bool is_temp;                       /* the arguments are not among the wanted */
    bool is_kernel;                     /* of the vector memory that one kernel may take */
} ct__plan_refusal;

/* What a compiler that refused a program says of sizes. libtpu: "... the total memory required for HLO temporaries
 * (24.27G) exceeds available HBM (15.75G)", "Used 20.1G of 15.75G hbm", "memory space vmem ... Scoped allocation with
 * size 18.60M and limit 17.12M". */
ct__plan_refusal ct__plan_parse_refusal(const char *message);

#endif
