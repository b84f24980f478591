/* Ops that move or rename axes and compute nothing. */
#ifndef CT_GRAPH_SHAPE_H
#define CT_GRAPH_SHAPE_H

#include "graph/graph.h"

struct ct_axis;

/* x repeated along the axes it lacks, in the order given; x's own axes must be among them with equal sizes. */
ct_tensor *ct__broadcast_to(const char *loc, ct_tensor *x, int rank, const struct ct_axis *axes);
/* The same with like's axes. */
ct_tensor *ct__broadcast_like(const char *loc, ct_tensor *x, const ct_tensor *like);
#define ct_broadcast_like(x, like) ct__broadcast_like(CT_LOC, x, like)

/* Brings operands to the axes of the one that has them all; false (error kept) when none has, or sizes differ. */
bool ct__broadcast_together(const char *loc, const char *op, int num_operands, ct_tensor **operands);

/* One axis under a new name. Costs nothing. */
ct_tensor *ct__rename(const char *loc, ct_tensor *x, const char *from, const char *to);
#define ct_rename(x, from, to) ct__rename(CT_LOC, x, from, to)

/* One axis as several, the leftmost slowest: ct_split(x, "heads", "kv_heads=4 group"). One size may be left open. */
ct_tensor *ct__split(const char *loc, ct_tensor *x, const char *axis, const char *parts);
#define ct_split(x, axis, parts) ct__split(CT_LOC, x, axis, parts)

/* Neighbouring axes, in order, as one: ct_merge(x, "kv_heads group", "heads"). */
ct_tensor *ct__merge(const char *loc, ct_tensor *x, const char *axes, const char *name);
#define ct_merge(x, axes, name) ct__merge(CT_LOC, x, axes, name)

/* A new axis of size 1, at dim. */
ct_tensor *ct__unsqueeze(const char *loc, ct_tensor *x, const char *name, int dim);
#define ct_unsqueeze(x, name, dim) ct__unsqueeze(CT_LOC, x, name, dim)

/* An axis of size 1 dropped. */
ct_tensor *ct__squeeze(const char *loc, ct_tensor *x, const char *name);
#define ct_squeeze(x, name) ct__squeeze(CT_LOC, x, name)

/* All axes in a new order; x itself when it has that order. */
ct_tensor *ct__transpose(const char *loc, ct_tensor *x, const char *order);
#define ct_transpose(x, order) ct__transpose(CT_LOC, x, order)

/* The same elements under any axes with the same number of elements (row-major). For derivatives and rare cases. */
ct_tensor *ct__reshape(const char *loc, ct_tensor *x, int rank, const struct ct_axis *axes);

#endif
