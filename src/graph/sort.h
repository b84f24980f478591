/* Sorting along one axis, stable. Floats are in total order: -NaN, -inf, ..., -0, +0, ..., +inf, NaN.
 * Gradients flow through values and payloads: the cotangent is sorted back to where its elements came from.
 */
#ifndef CT_GRAPH_SORT_H
#define CT_GRAPH_SORT_H

#include <stdbool.h>

#include "graph/graph.h"

/* x in ascending or descending order along axis. torch.sort. */
ct_tensor *ct__sort(const char *loc, ct_tensor *x, const char *axis, bool descending);
#define ct_sort(x, axis, descending) ct__sort(CT_LOC, x, axis, descending)

/* The positions along axis that put x in order, s32; equal elements keep their order. torch.argsort(stable=True). */
ct_tensor *ct__argsort(const char *loc, ct_tensor *x, const char *axis, bool descending);
#define ct_argsort(x, axis, descending) ct__argsort(CT_LOC, x, axis, descending)

/* tensors[0] put in order, the others (same axes, any dtypes) moved along with it. */
void ct__sort_with(const char *loc, int num_tensors, ct_tensor *const *tensors, const char *axis, bool descending,
                   ct_tensor **out_tensors);
#define ct_sort_with(num_tensors, tensors, axis, descending, out_tensors)                                              \
    ct__sort_with(CT_LOC, num_tensors, tensors, axis, descending, out_tensors)

/* The k largest along axis, largest first, and their positions (s32, may be NULL); axis gets size k. torch.topk. */
ct_tensor *ct__top_k(const char *loc, ct_tensor *x, const char *axis, int64_t k, ct_tensor **out_indices);
#define ct_top_k(x, axis, k, out_indices) ct__top_k(CT_LOC, x, axis, k, out_indices)

#endif
