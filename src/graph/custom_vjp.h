/* Gradients by hand, gradients stopped, and order forced. */
#ifndef CT_GRAPH_CUSTOM_VJP_H
#define CT_GRAPH_CUSTOM_VJP_H

#include "graph/graph.h"

/* x, through which no gradient flows. */
ct_tensor *ct__stop_gradient(const char *loc, ct_tensor *x);
#define ct_stop_gradient(x) ct__stop_gradient(CT_LOC, x)

/* The operands, which XLA may neither merge with nor move across their other uses. Gradients pass. */
void ct__optimization_barrier(const char *loc, int num_tensors, ct_tensor *const *tensors, ct_tensor **out_tensors);
#define ct_optimization_barrier(num_tensors, tensors, out_tensors)                                                     \
    ct__optimization_barrier(CT_LOC, num_tensors, tensors, out_tensors)

/* forward builds outputs from inputs; backward builds, from inputs, outputs and the outputs' cotangents (NULL is zero),
 * the inputs' gradients (NULL, their value on entry, is zero). Outputs that only backward needs are residuals: their
 * cotangents are simply NULL. context must live as long as the graph. jax.custom_vjp. */
typedef void ct_custom_forward(ct_graph *graph, void *context, ct_tensor *const *inputs, ct_tensor **out_outputs);
typedef void ct_custom_backward(ct_graph *graph, void *context, ct_tensor *const *inputs, ct_tensor *const *outputs,
                                ct_tensor *const *cotangents, ct_tensor **out_gradients);
void ct__custom_vjp(const char *loc, ct_graph *graph, int num_inputs, ct_tensor *const *inputs, int num_outputs,
                    ct_tensor **out_outputs, ct_custom_forward *forward, ct_custom_backward *backward, void *context);
#define ct_custom_vjp(graph, num_inputs, inputs, num_outputs, out_outputs, forward, backward, context)                 \
    ct__custom_vjp(CT_LOC, graph, num_inputs, inputs, num_outputs, out_outputs, forward, backward, context)

#endif
