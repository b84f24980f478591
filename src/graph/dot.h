/* Contractions by name. */
#ifndef CT_GRAPH_DOT_H
#define CT_GRAPH_DOT_H

#include "graph/graph.h"

/* Sums a * b over the listed axes, which both must have. Other shared axes are batch axes.
 * Result axes: the shared ones that remain, in a's order, then the rest of a, then the rest of b. Same dtype as a and
 * b; XLA accumulates 16-bit floats in f32. */
ct_tensor *ct__dot(const char *loc, ct_tensor *a, ct_tensor *b, const char *contracted);
#define ct_dot(a, b, contracted) ct__dot(CT_LOC, a, b, contracted)

/* The same with the result in `dtype`, wider than the operands': scores of 16-bit queries and keys in f32. The
 * derivative rounds the cotangent to the operands' dtype first, as a TPU's matrix unit takes it. */
ct_tensor *ct__dot_as(const char *loc, ct_tensor *a, ct_tensor *b, const char *contracted, ct_dtype dtype);
#define ct_dot_as(a, b, contracted, dtype) ct__dot_as(CT_LOC, a, b, contracted, dtype)

/* x w^T by name: contracts every axis that x and w share. x[batch seq dim], w[heads head_dim dim] gives
 * [batch seq heads head_dim]. torch.nn.functional.linear. Error when nothing is shared. */
ct_tensor *ct__linear(const char *loc, ct_tensor *x, ct_tensor *w);
#define ct_linear(x, w) ct__linear(CT_LOC, x, w)

/* Is node a contraction without batch axes, that is, of activations with a weight? */
bool ct__is_weight_dot(const ct_node *node);

#endif
