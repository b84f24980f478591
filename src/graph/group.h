/* Groups: runs of nodes in one region that autodiff treats as a whole. Internal to graph and autodiff.
 *
 *   node node [node node node] node      a checkpoint block, or the forward part of a custom derivative
 */
#ifndef CT_GRAPH_GROUP_H
#define CT_GRAPH_GROUP_H

#include "graph/custom_vjp.h"
#include "graph/node.h"
#include "graph/remat.h"

struct ct_group {
    const ct_remat_policy *policy; /* checkpoint blocks */
    ct_custom_backward *backward;  /* custom derivatives */
    void *context;
    int num_inputs, num_outputs;
    ct_tensor **inputs, **outputs;
};

/* Does policy keep this node's result for the backward pass? */
bool ct__policy_saves(const ct_remat_policy *policy, const ct_tensor *tensor);
/* And if it does (arguments are always kept): in host memory? */
bool ct__policy_offloads(const ct_remat_policy *policy, const ct_tensor *tensor);

extern const ct_op ct__op_barrier; /* optimization_barrier: result i is operand i */

#endif
