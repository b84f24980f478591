/* The inside of a scan node, for autodiff.
 *
 *   operands: [initial carries | inputs | captures]     region args: [carries | slices]
 *   results:  [final carries | outputs]                 region results: [next carries | output slices]
 */
#ifndef CT_GRAPH_SCAN_H
#define CT_GRAPH_SCAN_H

#include "graph/control.h"
#include "graph/node.h"

typedef struct ct_scan_attrs {
    ct_axis axis; /* name and length */
    int num_carries, num_inputs;
    bool reverse;
    const ct_remat_policy *remat;
    int num_ahead; /* the last inputs: their slice is that of the next turn (of the last one again, at the end) */
} ct_scan_attrs;

extern const ct_op ct__op_scan, ct__op_cond;

/* A scan node around a finished region; captures are found here. operands: initial carries, then inputs. */
ct_node *ct__scan_node(ct_graph *graph, const char *loc, const ct_scan_attrs *attrs, ct_region *region,
                       ct_tensor *const *operands);
/* One more stacked output of an existing scan: a tensor of its body. */
ct_tensor *ct__scan_add_output(ct_node *scan, ct_tensor *slice);
/* A branch node around two finished regions without arguments. */
ct_node *ct__cond_node(ct_graph *graph, const char *loc, ct_tensor *predicate, ct_region *if_true, ct_region *if_false);

#endif
