/* Lookups whose index differs per position of the other axes, and their adjoint. Indices are s32 or s64 with x's axes,
 * of any size along `axis`; out-of-range ones are clamped (take_along) or dropped (scatter_add_along).
 */
#ifndef CT_GRAPH_ALONG_H
#define CT_GRAPH_ALONG_H

#include "graph/graph.h"

/* x[a axis b], indices [a axis=n b] -> [a axis=n b]: result[a, i, b] = x[a, indices[a, i, b], b]. torch.gather. */
ct_tensor *ct__take_along(const char *loc, ct_tensor *x, ct_tensor *indices, const char *axis);
#define ct_take_along(x, indices, axis) ct__take_along(CT_LOC, x, indices, axis)

/* x with updates (indices' axes) added at indices. torch.scatter_add. */
ct_tensor *ct__scatter_add_along(const char *loc, ct_tensor *x, ct_tensor *indices, ct_tensor *updates,
                                 const char *axis);
#define ct_scatter_add_along(x, indices, updates, axis) ct__scatter_add_along(CT_LOC, x, indices, updates, axis)

#endif
