/* Reductions over named axes ("" reduces nothing), and cumulative sums. Reduced axes disappear. */
#ifndef CT_GRAPH_REDUCE_H
#define CT_GRAPH_REDUCE_H

#include "graph/graph.h"

ct_tensor *ct__sum(const char *loc, ct_tensor *x, const char *axes);  /* in x's dtype */
ct_tensor *ct__mean(const char *loc, ct_tensor *x, const char *axes); /* floats */
ct_tensor *ct__max(const char *loc, ct_tensor *x, const char *axes);  /* gradient shared evenly among ties */
ct_tensor *ct__min(const char *loc, ct_tensor *x, const char *axes);
ct_tensor *ct__prod(const char *loc, ct_tensor *x,
                    const char *axes); /* no derivative at zeros: error-free but inf/nan */
ct_tensor *ct__any(const char *loc, ct_tensor *x, const char *axes); /* bool */
ct_tensor *ct__all(const char *loc, ct_tensor *x, const char *axes); /* bool */
#define ct_sum(x, axes)  ct__sum(CT_LOC, x, axes)
#define ct_mean(x, axes) ct__mean(CT_LOC, x, axes)
#define ct_max(x, axes)  ct__max(CT_LOC, x, axes)
#define ct_min(x, axes)  ct__min(CT_LOC, x, axes)
#define ct_prod(x, axes) ct__prod(CT_LOC, x, axes)
#define ct_any(x, axes)  ct__any(CT_LOC, x, axes)
#define ct_all(x, axes)  ct__all(CT_LOC, x, axes)

/* Position of the largest value along one axis, the first of equals, as s32. torch.argmax. */
ct_tensor *ct__argmax(const char *loc, ct_tensor *x, const char *axis);
#define ct_argmax(x, axis) ct__argmax(CT_LOC, x, axis)

/* Running sum along one axis, inclusive; same axes as x. torch.cumsum. log2(size) additions of the whole tensor. */
ct_tensor *ct__cumsum(const char *loc, ct_tensor *x, const char *axis);
#define ct_cumsum(x, axis) ct__cumsum(CT_LOC, x, axis)

/* What a maximum and a minimum begin with: the least and the greatest value of dtype. */
double ct__least_of(ct_dtype dtype);
double ct__greatest_of(ct_dtype dtype);

#endif
