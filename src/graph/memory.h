/* Which memory a value lives in. The moves are hints that XLA's host offloading carries out; on a machine whose device
 * memory is the host's they cost nothing. Gradients pass.
 */
#ifndef CT_GRAPH_MEMORY_H
#define CT_GRAPH_MEMORY_H

#include "graph/graph.h"

/* x in pinned host memory; what is computed with it wants it back on the device first. */
ct_tensor *ct__to_host(const char *loc, ct_tensor *x);
#define ct_to_host(x) ct__to_host(CT_LOC, x)
ct_tensor *ct__to_device(const char *loc, ct_tensor *x);
#define ct_to_device(x) ct__to_device(CT_LOC, x)

/* An input or output that lives in pinned host memory between runs. */
void ct_graph_set_input_on_host(ct_graph *graph, const ct_tensor *input);
void ct_graph_set_output_on_host(ct_graph *graph, int index);

#endif
