/* Parts of tensors, by one named axis at a time. */
#ifndef CT_GRAPH_SLICE_H
#define CT_GRAPH_SLICE_H

#include "graph/graph.h"

/* Positions [start, stop) along axis. */
ct_tensor *ct__slice(const char *loc, ct_tensor *x, const char *axis, int64_t start, int64_t stop);
#define ct_slice(x, axis, start, stop) ct__slice(CT_LOC, x, axis, start, stop)

/* Positions start, start + stride, ... below stop. */
ct_tensor *ct__slice_strided(const char *loc, ct_tensor *x, const char *axis, int64_t start, int64_t stop,
                             int64_t stride);
#define ct_slice_strided(x, axis, start, stop, stride) ct__slice_strided(CT_LOC, x, axis, start, stop, stride)

/* size positions along axis from start, an integer scalar; start is clamped so that the slice fits. */
ct_tensor *ct__dynamic_slice(const char *loc, ct_tensor *x, const char *axis, ct_tensor *start, int64_t size);
#define ct_dynamic_slice(x, axis, start, size) ct__dynamic_slice(CT_LOC, x, axis, start, size)

/* x with update (same axes, smaller or equal along axis, equal elsewhere) written at start, clamped likewise. */
ct_tensor *ct__dynamic_update_slice(const char *loc, ct_tensor *x, ct_tensor *update, const char *axis,
                                    ct_tensor *start);
#define ct_dynamic_update_slice(x, update, axis, start) ct__dynamic_update_slice(CT_LOC, x, update, axis, start)

/* low and high positions of value added before and after; negative counts cut. */
ct_tensor *ct__pad(const char *loc, ct_tensor *x, const char *axis, int64_t low, int64_t high, double value);
#define ct_pad(x, axis, low, high, value) ct__pad(CT_LOC, x, axis, low, high, value)

/* Tensors one after the other along axis; all other axes equal, same order. */
ct_tensor *ct__concat(const char *loc, ct_tensor *const *tensors, int num_tensors, const char *axis);
#define ct_concat(...) ct__concat(CT_LOC, __VA_ARGS__) /* so that tensors may be written in place */

/* The order of positions along axis turned round. torch.flip. */
ct_tensor *ct__reverse(const char *loc, ct_tensor *x, const char *axis);
#define ct_reverse(x, axis) ct__reverse(CT_LOC, x, axis)

#endif
