/* Loops and branches. Bodies are C functions called once, which build a region; inside they may use any tensor from
 * outside.
 */
#ifndef CT_GRAPH_CONTROL_H
#define CT_GRAPH_CONTROL_H

#include "graph/graph.h"
#include "graph/remat.h"

/* One turn of a scan. carries and slices are this turn's values (slices have lost the scanned axis); the body sets
 * out_carries (same types as carries) and out_slices. */
typedef void ct_scan_body(ct_graph *graph, void *context, ct_tensor *const *carries, ct_tensor *const *slices,
                          ct_tensor **out_carries, ct_tensor **out_slices);

typedef struct ct_scan_opts {
    const char *axis; /* the scanned axis, first in every input and output */
    int64_t length;   /* turns; may be 0 when there are inputs */
    int num_carries, num_inputs, num_outputs;
    ct_tensor *const *carries;    /* initial values */
    ct_tensor *const *inputs;     /* each [axis ...] */
    bool reverse;                 /* from the last position to the first */
    const ct_remat_policy *remat; /* what the backward pass saves per turn; NULL: everything it needs */
} ct_scan_opts;

/* out_carries: the values after the last turn; out_outputs: the bodies' out_slices stacked, [axis ...].
 * Differentiable; printed as one stablehlo.while whatever the length. jax.lax.scan. */
void ct__scan(const char *loc, ct_graph *graph, const ct_scan_opts *opts, ct_scan_body *body, void *context,
              ct_tensor **out_carries, ct_tensor **out_outputs);
#define ct_scan(graph, opts, body, context, out_carries, out_outputs)                                                  \
    ct__scan(CT_LOC, graph, opts, body, context, out_carries, out_outputs)

/* Repeats body while condition (a bool scalar made from the carries) holds. Not differentiable. */
typedef ct_tensor *ct_while_condition(ct_graph *graph, void *context, ct_tensor *const *carries);
typedef void ct_while_body(ct_graph *graph, void *context, ct_tensor *const *carries, ct_tensor **out_carries);
void ct__while(const char *loc, ct_graph *graph, int num_carries, ct_tensor *const *carries,
               ct_while_condition *condition, ct_while_body *body, void *context, ct_tensor **out_carries);
#define ct_while(graph, num_carries, carries, condition, body, context, out_carries)                                   \
    ct__while(CT_LOC, graph, num_carries, carries, condition, body, context, out_carries)

/* One of two branches by a bool scalar; both set num_results results of equal types. Differentiable: the backward pass
 * runs the chosen branch again. */
typedef void ct_branch(ct_graph *graph, void *context, ct_tensor **out_results);
void ct__cond(const char *loc, ct_graph *graph, ct_tensor *predicate, ct_branch *if_true, ct_branch *if_false,
              void *context, int num_results, ct_tensor **out_results);
#define ct_cond(graph, predicate, if_true, if_false, context, num_results, out_results)                                \
    ct__cond(CT_LOC, graph, predicate, if_true, if_false, context, num_results, out_results)

#endif
