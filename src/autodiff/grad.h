/* Reverse-mode differentiation, graph to graph.
 *
 * The backward pass is appended to the graph's current region as ordinary nodes, so it can be differentiated, scanned,
 * rematerialised and printed like any other. Only nodes between the parameters and the loss are visited. Scans become
 * second scans over what their policy saved; checkpoint blocks are computed again where their policy says so.
 */
#ifndef CT_AUTODIFF_GRAD_H
#define CT_AUTODIFF_GRAD_H

#include "graph/graph.h"

/* out_gradients[i] = d loss / d params[i], with the params' dtypes and axes; zeros where loss does not depend on it.
 * loss: a float without axes, in the current region (ct_grad may stand inside a scan's body); params: floats.
 * Errors: INVALID_ARGUMENT when loss has axes or an op on the way has no derivative; the graph's own first error. */
CT_MUST_USE ct_status *ct_grad(ct_graph *graph, ct_tensor *loss, ct_tensor *const *params, int num_params,
                               ct_tensor **out_gradients);

/* The same from any tensors and their cotangents (NULL is zero): out_gradients[i] = sum_j cotangents[j]^T
 * d tensors[j] / d params[i]. The vector-Jacobian product of what was built so far. */
CT_MUST_USE ct_status *ct_grad_from(ct_graph *graph, int num_tensors, ct_tensor *const *tensors,
                                    ct_tensor *const *cotangents, ct_tensor *const *params, int num_params,
                                    ct_tensor **out_gradients);

#endif
