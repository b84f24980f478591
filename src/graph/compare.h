/* Comparisons (result bool, operands broadcast by name), selection and clamping. */
#ifndef CT_GRAPH_COMPARE_H
#define CT_GRAPH_COMPARE_H

#include "graph/graph.h"

ct_tensor *ct__compare(const char *loc, const char *direction, ct_tensor *a, ct_tensor *b); /* "EQ", "NE", "LT", ... */
#define ct_eq(a, b) ct__compare(CT_LOC, "EQ", a, b)
#define ct_ne(a, b) ct__compare(CT_LOC, "NE", a, b)
#define ct_lt(a, b) ct__compare(CT_LOC, "LT", a, b)
#define ct_le(a, b) ct__compare(CT_LOC, "LE", a, b)
#define ct_gt(a, b) ct__compare(CT_LOC, "GT", a, b)
#define ct_ge(a, b) ct__compare(CT_LOC, "GE", a, b)

/* if_true where condition, else if_false; torch.where. All three broadcast together by name. */
ct_tensor *ct__select(const char *loc, ct_tensor *condition, ct_tensor *if_true, ct_tensor *if_false);
#define ct_select(condition, if_true, if_false) ct__select(CT_LOC, condition, if_true, if_false)

/* x limited to [low, high], scalars of x's dtype; the gradient is zero outside, 1/2 on a bound. */
ct_tensor *ct__clamp(const char *loc, ct_tensor *x, double low, double high);
#define ct_clamp(x, low, high) ct__clamp(CT_LOC, x, low, high)

#endif
