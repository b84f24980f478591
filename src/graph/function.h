/* Functions within a program: a body built once and called any number of times, at the same types.
 *
 * A function stands alone: its body uses its arguments and nothing else from outside. Calls are differentiable: the
 * derivative calls a second function, made once per function, over what the first call saved (autodiff/vjp.h).
 */
#ifndef CT_GRAPH_FUNCTION_H
#define CT_GRAPH_FUNCTION_H

#include "graph/graph.h"

typedef struct ct_function ct_function;

typedef void ct_function_body(ct_graph *graph, void *context, ct_tensor *const *args, ct_tensor **out_results);

/* args_like: tensors whose types the arguments have (their values play no part). name: letters, digits and _ . $ -; a
 * number is appended when it is taken. Never NULL; after an error the function is not to be called but may be passed
 * on. */
ct_function *ct__function_new(const char *loc, ct_graph *graph, const char *name, int num_args,
                              ct_tensor *const *args_like, int num_results, ct_function_body *body, void *context);
#define ct_function_new(graph, name, num_args, args_like, num_results, body, context)                                  \
    ct__function_new(CT_LOC, graph, name, num_args, args_like, num_results, body, context)

int ct_function_num_args(const ct_function *function);
int ct_function_num_results(const ct_function *function);
const char *ct_function_name(const ct_function *function);

/* func.call; args must have the function's types, axis names included. */
void ct__call(const char *loc, ct_function *function, ct_tensor *const *args, ct_tensor **out_results);
#define ct_call(function, args, out_results) ct__call(CT_LOC, function, args, out_results)

/* A composite: an op by name that a plugin may implement in its own way, with the function as its definition elsewhere.
 * attributes is the text inside the braces of its attribute dictionary, "k = 3 : i64", or "". stablehlo.composite. */
void ct__composite(const char *loc, const char *name, const char *attributes, ct_function *decomposition,
                   ct_tensor *const *args, ct_tensor **out_results);
#define ct_composite(name, attributes, decomposition, args, out_results)                                               \
    ct__composite(CT_LOC, name, attributes, decomposition, args, out_results)

#endif
