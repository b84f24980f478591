/* Element-wise ops. Binary ops broadcast by name (graph.h) and need equal dtypes; the result has the axes of the
 * operand that has them all. Names and meaning are PyTorch's. Derivatives exist for floats. Errors kept in the graph:
 * dtype not supported by the op, dtypes that differ, neither operand having all axes.
 */
#ifndef CT_GRAPH_ELEMENTWISE_H
#define CT_GRAPH_ELEMENTWISE_H

#include "graph/graph.h"

/* binary, numbers */
ct_tensor *ct__add(const char *loc, ct_tensor *a, ct_tensor *b);
ct_tensor *ct__sub(const char *loc, ct_tensor *a, ct_tensor *b);
ct_tensor *ct__mul(const char *loc, ct_tensor *a, ct_tensor *b);
ct_tensor *ct__div(const char *loc, ct_tensor *a, ct_tensor *b);     /* integers truncate toward zero */
ct_tensor *ct__maximum(const char *loc, ct_tensor *a, ct_tensor *b); /* a tie gives half the gradient to each */
ct_tensor *ct__minimum(const char *loc, ct_tensor *a, ct_tensor *b);
ct_tensor *ct__pow(const char *loc, ct_tensor *a, ct_tensor *b);
ct_tensor *ct__remainder(const char *loc, ct_tensor *a, ct_tensor *b); /* sign of a, as C's fmod and % */
/* binary, bits of integers and bools */
ct_tensor *ct__and(const char *loc, ct_tensor *a, ct_tensor *b);
ct_tensor *ct__or(const char *loc, ct_tensor *a, ct_tensor *b);
ct_tensor *ct__xor(const char *loc, ct_tensor *a, ct_tensor *b);
ct_tensor *ct__shift_left(const char *loc, ct_tensor *a, ct_tensor *b);
ct_tensor *ct__shift_right(const char *loc, ct_tensor *a, ct_tensor *b);            /* zeros come in (logical) */
ct_tensor *ct__shift_right_arithmetic(const char *loc, ct_tensor *a, ct_tensor *b); /* the sign comes in */
#define ct_add(a, b)                    ct__add(CT_LOC, a, b)
#define ct_sub(a, b)                    ct__sub(CT_LOC, a, b)
#define ct_mul(a, b)                    ct__mul(CT_LOC, a, b)
#define ct_div(a, b)                    ct__div(CT_LOC, a, b)
#define ct_maximum(a, b)                ct__maximum(CT_LOC, a, b)
#define ct_minimum(a, b)                ct__minimum(CT_LOC, a, b)
#define ct_pow(a, b)                    ct__pow(CT_LOC, a, b)
#define ct_remainder(a, b)              ct__remainder(CT_LOC, a, b)
#define ct_and(a, b)                    ct__and(CT_LOC, a, b)
#define ct_or(a, b)                     ct__or(CT_LOC, a, b)
#define ct_xor(a, b)                    ct__xor(CT_LOC, a, b)
#define ct_shift_left(a, b)             ct__shift_left(CT_LOC, a, b)
#define ct_shift_right(a, b)            ct__shift_right(CT_LOC, a, b)
#define ct_shift_right_arithmetic(a, b) ct__shift_right_arithmetic(CT_LOC, a, b)

/* With a number instead of a tensor; the number takes x's dtype. */
ct_tensor *ct__add_scalar(const char *loc, ct_tensor *x, double value);
ct_tensor *ct__mul_scalar(const char *loc, ct_tensor *x, double value);
#define ct_add_scalar(x, value) ct__add_scalar(CT_LOC, x, value)
#define ct_mul_scalar(x, value) ct__mul_scalar(CT_LOC, x, value)

/* unary */
ct_tensor *ct__neg(const char *loc, ct_tensor *x);
ct_tensor *ct__abs(const char *loc, ct_tensor *x);
ct_tensor *ct__sign(const char *loc, ct_tensor *x);
ct_tensor *ct__exp(const char *loc, ct_tensor *x);
ct_tensor *ct__expm1(const char *loc, ct_tensor *x);
ct_tensor *ct__log(const char *loc, ct_tensor *x);
ct_tensor *ct__log1p(const char *loc, ct_tensor *x);
ct_tensor *ct__sqrt(const char *loc, ct_tensor *x);
ct_tensor *ct__rsqrt(const char *loc, ct_tensor *x);
ct_tensor *ct__tanh(const char *loc, ct_tensor *x);
ct_tensor *ct__sigmoid(const char *loc, ct_tensor *x);
ct_tensor *ct__sin(const char *loc, ct_tensor *x);
ct_tensor *ct__cos(const char *loc, ct_tensor *x);
ct_tensor *ct__floor(const char *loc, ct_tensor *x);
ct_tensor *ct__ceil(const char *loc, ct_tensor *x);
ct_tensor *ct__round(const char *loc, ct_tensor *x);               /* ties to even */
ct_tensor *ct__not(const char *loc, ct_tensor *x);                 /* bool: logical; integer: bitwise */
ct_tensor *ct__is_finite(const char *loc, ct_tensor *x);           /* float -> bool */
ct_tensor *ct__count_leading_zeros(const char *loc, ct_tensor *x); /* of integers */
ct_tensor *ct__silu(const char *loc, ct_tensor *x);                /* x sigmoid(x) */
#define ct_neg(x)                 ct__neg(CT_LOC, x)
#define ct_abs(x)                 ct__abs(CT_LOC, x)
#define ct_sign(x)                ct__sign(CT_LOC, x)
#define ct_exp(x)                 ct__exp(CT_LOC, x)
#define ct_expm1(x)               ct__expm1(CT_LOC, x)
#define ct_log(x)                 ct__log(CT_LOC, x)
#define ct_log1p(x)               ct__log1p(CT_LOC, x)
#define ct_sqrt(x)                ct__sqrt(CT_LOC, x)
#define ct_rsqrt(x)               ct__rsqrt(CT_LOC, x)
#define ct_tanh(x)                ct__tanh(CT_LOC, x)
#define ct_sigmoid(x)             ct__sigmoid(CT_LOC, x)
#define ct_sin(x)                 ct__sin(CT_LOC, x)
#define ct_cos(x)                 ct__cos(CT_LOC, x)
#define ct_floor(x)               ct__floor(CT_LOC, x)
#define ct_ceil(x)                ct__ceil(CT_LOC, x)
#define ct_round(x)               ct__round(CT_LOC, x)
#define ct_not(x)                 ct__not(CT_LOC, x)
#define ct_is_finite(x)           ct__is_finite(CT_LOC, x)
#define ct_count_leading_zeros(x) ct__count_leading_zeros(CT_LOC, x)
#define ct_silu(x)                ct__silu(CT_LOC, x)

#endif
