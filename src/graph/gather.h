/* Lookups by index and their adjoints. Indices are s32 or s64 and out-of-range ones are clamped (take) or dropped
 * (scatter_add), as StableHLO defines.
 */
#ifndef CT_GRAPH_GATHER_H
#define CT_GRAPH_GATHER_H

#include "graph/graph.h"

/* Rows of table by indices: table [axis rest...], indices [any...] -> [any... rest...]. axis must be table's first.
 * The gradient is a scatter-add. torch.nn.functional.embedding. */
ct_tensor *ct__take(const char *loc, ct_tensor *table, ct_tensor *indices, const char *axis);
#define ct_take(table, indices, axis) ct__take(CT_LOC, table, indices, axis)

/* The adjoint of take: x [axis rest...] with updates [any... rest...] added at rows indices [any...]. */
ct_tensor *ct__scatter_add(const char *loc, ct_tensor *x, ct_tensor *indices, ct_tensor *updates, const char *axis);
#define ct_scatter_add(x, indices, updates, axis) ct__scatter_add(CT_LOC, x, indices, updates, axis)

/* 1 where the new last axis, axis of the given size, equals the index, else 0. */
ct_tensor *ct__one_hot(const char *loc, ct_tensor *indices, const char *axis, int64_t size, ct_dtype dtype);
#define ct_one_hot(indices, axis, size, dtype) ct__one_hot(CT_LOC, indices, axis, size, dtype)

#endif
