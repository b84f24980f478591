/* A region written at local sizes, for all axes of the mesh: each device runs the body on its own parts of the inputs,
 * and communicates by collectives only. Operands and results are whole arrays. jax.shard_map (check_vma=False).
 *
 *   whole x[batch=8 dim=4], "batch=dp", mesh dp=2 tp=2  ->  local x[batch=4 dim=4]
 *
 * The derivative is a second region: it runs the body again, then its derivative, and sums the gradient of an input
 * over the mesh axes that its placement does not use. An output's placement that does not use a mesh axis promises that
 * all devices along it return the same.
 */
#ifndef CT_GRAPH_MANUAL_H
#define CT_GRAPH_MANUAL_H

#include "graph/graph.h"
#include "graph/node.h"

typedef void ct_manual_body(ct_graph *graph, void *context, ct_tensor *const *args, ct_tensor **out_results);

typedef struct ct_manual_opts {
    int num_inputs, num_outputs;
    ct_tensor *const *inputs;
    const char *const *input_placements;  /* per input, "batch=dp dim=tp" (placement.h); sizes must divide */
    const char *const *output_placements; /* per output; named axes are joined from the devices' parts */
} ct_manual_opts;

/* The body may use its arguments and nothing else from outside. sdy.manual_computation. */
void ct__manual(const char *loc, ct_graph *graph, const ct_manual_opts *opts, ct_manual_body *body, void *context,
                ct_tensor **out_outputs);
#define ct_manual(graph, opts, body, context, out_outputs) ct__manual(CT_LOC, graph, opts, body, context, out_outputs)

/* ---- for autodiff ---- */
struct ct_placement;
typedef struct ct_manual_attrs {
    const struct ct_placement *inputs, *outputs;
} ct_manual_attrs;

extern const ct_op ct__op_manual;
/* A node around a finished region whose arguments are inputs at local sizes. */
ct_node *ct__manual_node(ct_graph *graph, const char *loc, const ct_manual_attrs *attrs, ct_region *region,
                         ct_tensor *const *inputs);
/* A region with the inputs' local types as arguments; entering and leaving it is a manual body. */
ct_region *ct__manual_region(ct_graph *graph, int num_inputs, ct_tensor *const *inputs,
                             const struct ct_placement *placements);
ct_insertion ct__manual_enter(ct_region *region);
void ct__manual_leave(ct_graph *graph, ct_insertion saved);

#endif
