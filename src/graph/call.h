/* The inside of calls, for the printer and autodiff. */
#ifndef CT_GRAPH_CALL_H
#define CT_GRAPH_CALL_H

#include "graph/function.h"
#include "graph/node.h"

typedef struct ct_composite_attrs {
    ct_function *function;
    const char *name, *attributes;
} ct_composite_attrs;

extern const ct_op ct__op_call;      /* attrs: the ct_function */
extern const ct_op ct__op_composite; /* attrs: ct_composite_attrs */

/* The function that node refers to, or NULL. */
ct_function *ct__node_function(const ct_node *node);
/* A function around a finished region without a parent. */
ct_function *ct__function_of_region(ct_graph *graph, const char *name, ct_region *region);
/* Errors when nodes of region (or regions inside) use what was made outside it. */
bool ct__region_is_isolated(const ct_region *region, const char *loc, const char *op);
ct_node *ct__call_node(const char *loc, ct_function *function, ct_tensor *const *args);

#endif
