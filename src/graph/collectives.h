/* Communication between the devices of a mesh, at local sizes: inside a manual region (manual.h) or a function that one
 * calls. Mesh axes are named as in "dp tp"; the devices that agree on all other mesh axes form a group, in row-major
 * order of the named axes. The graph needs a mesh (ct_graph_set_mesh).
 */
#ifndef CT_GRAPH_COLLECTIVES_H
#define CT_GRAPH_COLLECTIVES_H

#include "graph/node.h"

typedef enum ct_reduction {
    CT_REDUCTION_SUM,
    CT_REDUCTION_MAX, /* MAX and MIN have no derivative: stop the gradient */
    CT_REDUCTION_MIN,
} ct_reduction;

/* The group's x one after the other along axis. Derivative: reduce_scatter. */
ct_tensor *ct__all_gather(const char *loc, ct_tensor *x, const char *axis, const char *mesh_axes);
#define ct_all_gather(x, axis, mesh_axes) ct__all_gather(CT_LOC, x, axis, mesh_axes)

/* x summed (or ...) over the group, the same on each of its devices. Derivative of the sum: the sum of the cotangents.
 */
ct_tensor *ct__all_reduce(const char *loc, ct_tensor *x, ct_reduction reduction, const char *mesh_axes);
#define ct_all_reduce(x, reduction, mesh_axes) ct__all_reduce(CT_LOC, x, reduction, mesh_axes)

/* The sum as a result of a manual region that is wanted as it comes: where the region is part of a localized program
 * the devices keep their summands, and the sum is made where it is wanted: scattered where it meets what is sharded.
 * Otherwise, and for "", ct_all_reduce. */
ct_tensor *ct__pending_sum(const char *loc, ct_tensor *x, const char *mesh_axes);
#define ct_pending_sum(x, mesh_axes) ct__pending_sum(CT_LOC, x, mesh_axes)
bool ct__is_pending_sum(const ct_node *node);

/* x summed over the group, each device keeping its part along axis. Derivative: all_gather. */
ct_tensor *ct__reduce_scatter(const char *loc, ct_tensor *x, const char *axis, const char *mesh_axes);
#define ct_reduce_scatter(x, axis, mesh_axes) ct__reduce_scatter(CT_LOC, x, axis, mesh_axes)

/* Part i of x along split_axis goes to device i; what comes in is put one after the other along concat_axis.
 * Derivative: the exchange the other way round. */
ct_tensor *ct__all_to_all(const char *loc, ct_tensor *x, const char *split_axis, const char *concat_axis,
                          const char *mesh_axes);
#define ct_all_to_all(x, split_axis, concat_axis, mesh_axes)                                                           \
    ct__all_to_all(CT_LOC, x, split_axis, concat_axis, mesh_axes)

/* x of position source goes to position target of the group, for each pair {source, target}; a position that is no
 * target gets zeros. Derivative: the pairs turned round. */
ct_tensor *ct__collective_permute(const char *loc, ct_tensor *x, const char *mesh_axes, int num_pairs,
                                  const int64_t (*pairs)[2]);
#define ct_collective_permute(x, mesh_axes, num_pairs, pairs)                                                          \
    ct__collective_permute(CT_LOC, x, mesh_axes, num_pairs, pairs)

/* The device's number in the mesh, row-major, u32 without axes. */
ct_tensor *ct__partition_id(const char *loc, ct_graph *graph);
#define ct_partition_id(graph) ct__partition_id(CT_LOC, graph)

/* The device's position in its group along the named mesh axes, s32 without axes. */
ct_tensor *ct__mesh_index(const char *loc, ct_graph *graph, const char *mesh_axes);
#define ct_mesh_index(graph, mesh_axes) ct__mesh_index(CT_LOC, graph, mesh_axes)

/* ---- for reports ---- */
typedef enum ct_collective_kind {
    CT_COLLECTIVE_ALL_GATHER,
    CT_COLLECTIVE_REDUCE_SCATTER,
    CT_COLLECTIVE_ALL_REDUCE,
    CT_COLLECTIVE_ALL_TO_ALL,
    CT_COLLECTIVE_PERMUTE,
} ct_collective_kind;

typedef struct ct_collective_info {
    ct_collective_kind kind;
    const char *mesh_axes;
    int64_t group_size;
} ct_collective_info;
/* false: node is no collective. */
bool ct__collective_info(const ct_node *node, ct_collective_info *out_info);

#endif
