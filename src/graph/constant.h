/* Constants and index ramps. */
#ifndef CT_GRAPH_CONSTANT_H
#define CT_GRAPH_CONSTANT_H

#include "graph/graph.h"

/* A scalar (no axes). Integers must be exact; floats are rounded to the dtype. */
ct_tensor *ct__scalar(const char *loc, ct_graph *graph, ct_dtype dtype, double value);
#define ct_scalar(graph, dtype, value) ct__scalar(CT_LOC, graph, dtype, value)
/* A scalar of x's dtype. */
ct_tensor *ct__scalar_like(const char *loc, const ct_tensor *x, double value);
#define ct_scalar_like(x, value) ct__scalar_like(CT_LOC, x, value)
/* value everywhere, with x's dtype and axes. */
ct_tensor *ct__full_like(const char *loc, const ct_tensor *x, double value);
#define ct_full_like(x, value) ct__full_like(CT_LOC, x, value)
/* value everywhere; axes need sizes (declared or written). */
ct_tensor *ct__full(const char *loc, ct_graph *graph, ct_dtype dtype, const char *axes, double value);
#define ct_full(graph, dtype, axes, value) ct__full(CT_LOC, graph, dtype, axes, value)
/* Host values as a constant of the program, copied; array's shape must be that of axes. For small tables. */
ct_tensor *ct__constant(const char *loc, ct_graph *graph, const ct_array *array, const char *axes);
#define ct_constant(graph, array, axes) ct__constant(CT_LOC, graph, array, axes)
/* 0, 1, 2, ... along `along`, which is one of axes. Any number dtype. */
ct_tensor *ct__iota(const char *loc, ct_graph *graph, ct_dtype dtype, const char *axes, const char *along);
#define ct_iota(graph, dtype, axes, along) ct__iota(CT_LOC, graph, dtype, axes, along)

/* Zeros of x's type, which lie on a mesh as x does. */
ct_tensor *ct__zeros_beside(const char *loc, ct_tensor *x);

/* Is it a constant all of whose elements are zero? */
bool ct__is_zero_constant(const ct_node *node);

#endif
