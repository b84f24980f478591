/* How the axes of an op belong together, so that it can run on parts of its operands: each op's placement rule.
 *
 * A factor is one loop of the op. Dims of operands and results that name the same factor are split alike:
 *
 *   dot    x[b s k], w[n k] -> y[b s n]     factors b s n PARALLEL, k SUM (each part of k gives a summand of y)
 *   split  x[heads=8] -> y[kv_heads=4 group=2]     x's dim holds the factors (4, 2), major first; y's dims one each
 *
 * The same idea as the sharding rules of Shardy (openxla.org/shardy, OpShardingRuleAttr). spmd reads rules; it never
 * looks at ops.
 */
#ifndef CT_GRAPH_FACTOR_H
#define CT_GRAPH_FACTOR_H

#include "graph/node.h"

typedef enum ct_factor_kind {
    CT_FACTOR_PARALLEL, /* may be split; without an operand dim that has it, results can be made at any part */
    CT_FACTOR_SUM,      /* reduced away: each part gives a summand of the results */
    CT_FACTOR_MAX,      /* reduced away by maximum */
    CT_FACTOR_MIN,
    CT_FACTOR_WHOLE, /* every device needs all of it */
} ct_factor_kind;

/* In which operands the results are linear, so that a sum over devices may wait until after the op. */
typedef enum ct_linearity {
    CT_LINEAR_NONE,
    CT_LINEAR_JOINTLY, /* f(a + a', b + b') = f(a, b) + f(a', b'): add, select's branches, data movement */
    CT_LINEAR_EACH,    /* in one operand while the others are fixed: multiply, dot, divide's first */
} ct_linearity;

enum { CT_MAX_FACTORS = 2 * CT_MAX_RANK, CT_MAX_SUBFACTORS = 3 };

/* The factors of one dim, major first. Their sizes multiply to the dim's. None: the dim is never split, as one of size
 * 1. */
typedef struct ct_dim_factors {
    signed char count, factors[CT_MAX_SUBFACTORS];
} ct_dim_factors;

typedef struct ct_factors {
    int count;
    ct_factor_kind kinds[CT_MAX_FACTORS];
    int64_t sizes[CT_MAX_FACTORS];           /* of the whole array */
    ct_dim_factors (*operands)[CT_MAX_RANK]; /* [operand][dim] */
    ct_dim_factors (*results)[CT_MAX_RANK];  /* [result][dim] */
    ct_linearity linearity;
    uint32_t linear_operands; /* bit i: operand i takes part in it; operands past 31 as bit 31 */
    bool repeatable;          /* so cheap that each user may have a copy of its own: no contraction, no reduction */
} ct_factors;

/* Fills out_factors, whose operands and results arrays are there and zero, for whole-array sizes. */
typedef void ct_factors_fn(const ct_node *node, ct_factors *out_factors);

/* A device's share of a node. */
typedef struct ct_local {
    const ct_node *node;          /* the whole-array one */
    ct_factors *factors;          /* its rule */
    ct_tensor *const *operands;   /* local ones */
    const char *const *mesh_axes; /* per factor, "dp cp", slowest first; "": not split */
    const int64_t *local_sizes;   /* per factor */
    ct_tensor **results;          /* to be set by a ct_local_fn */
} ct_local;

/* Builds a node's local form in the graph's current region, for ops whose attributes hold sizes or positions. Without
 * one the node is cloned over its local operands, after the padding of what is reduced was masked: a local form sees to
 * that itself. */
typedef void ct_local_fn(const ct_local *local);

/* ---- what rules are made of ---- */

/* A new factor; -1, which is no factor, for size 1. WHOLE ones of equal size are one, and -1 when there is no room. */
int ct__factor_add(ct_factors *factors, ct_factor_kind kind, int64_t size);
/* The next (minor) factor of a dim of an operand or result; -1 changes nothing. */
void ct__factor_operand(ct_factors *factors, int operand, int dim, int factor);
void ct__factor_result(ct_factors *factors, int result, int dim, int factor);
/* Operands and results of equal axes, dim by dim PARALLEL; operands without axes have none. Repeatable. */
void ct__factors_elementwise(const ct_node *node, ct_factors *out_factors);
/* The same, but dim is WHOLE and may differ in size from one to the other. Not repeatable. */
void ct__factors_beside(const ct_node *node, int dim, ct_factors *out_factors);
/* All operands' dims and results' dims WHOLE: what the op's own rule cannot take. */
void ct__factors_whole(const ct_node *node, ct_factors *out_factors);
/* The results are linear in the operands of a mask. Bools are not: their sum is another op. */
void ct__factors_linear(const ct_node *node, ct_linearity linearity, uint32_t operands, ct_factors *factors);
uint32_t ct__all_operands(const ct_node *node);

/* The factor that a dim is, or -1 when it has none or several. */
int ct__factor_of(const ct_dim_factors *dim);
/* The axes of a result at local sizes. */
void ct__local_axes(const ct_local *local, int result, ct_axis *out_axes);
/* -1 is not split. */
bool ct__local_is_split(const ct_local *local, int factor);
int64_t ct__local_parts(const ct_local *local, int factor);
/* The device's first position along a factor that is split, in the whole array: s32 without axes. */
ct_tensor *ct__local_offset(const ct_local *local, int factor);
/* A lookup (take) in operand 0 at operand 1, whose positions of `size` are a SUM factor: zero where another device has
 * the position. And an addition of operand 2 at operand 1: only where this device has the position. */
void ct__local_lookup(const ct_local *local, int factor, int64_t size);
void ct__local_scatter(const ct_local *local, int factor);
/* A copy of the node over local operands with attrs; results at local sizes. */
void ct__local_clone(const ct_local *local, void *attrs);

#endif
