/* Where two plans differ. */
#ifndef CT_PLAN_COMPARE_H
#define CT_PLAN_COMPARE_H

#include "plan/plan.h"

/* One of the two: a plan, or the JSON of one. */
typedef struct ct_plan_side {
    const char *name;
    const ct_plan *plan; /* NULL: json holds all that is known */
    ct_json_value json;
} ct_plan_side;

/* Appends the facts and figures that differ, one a line, with the figures' ratio; then, of two plans with predictions,
 * what ct_prediction_compare finds. Errors: its errors. */
CT_MUST_USE ct_status *ct_plan_compare(const ct_plan_side *a, const ct_plan_side *b, int num_lines, ct_str *out);

#endif
