/* Rematerialisation: what is kept from the forward pass for the backward pass, and what is computed again.
 * Recipes' [activation_checkpoint]; facts: TorchTitan's activation checkpointing, JAX's checkpoint policies.
 */
#ifndef CT_GRAPH_REMAT_H
#define CT_GRAPH_REMAT_H

#include "graph/graph.h"

typedef enum ct_remat_mode {
    CT_REMAT_NONE,      /* nothing is computed again, cheap moves of data excepted */
    CT_REMAT_SELECTIVE, /* results of weight contractions (dots without batch axes, sums of such) are kept */
    CT_REMAT_FULL,      /* only the inputs of the block are kept */
} ct_remat_mode;

typedef struct ct_remat_policy {
    ct_remat_mode mode;
    /* Names (ct_checkpoint_name), whatever the mode: kept, kept in pinned host memory, computed again. */
    int num_save, num_offload, num_recompute;
    const char *const *save, *const *offload, *const *recompute;
} ct_remat_policy;

/* Marks x as something that a policy may name. Returns x. */
ct_tensor *ct_checkpoint_name(ct_tensor *x, const char *name);

/* a + b, both results of weight contractions and not used elsewhere, of which selective keeps the sum alone. */
ct_tensor *ct_checkpoint_sum(ct_tensor *a, ct_tensor *b);

/* Nodes made between begin and end form a block under policy: what the policy does not keep is computed again, behind
 * an optimization_barrier, when the backward pass of the block needs it. For unrolled layers; scans carry their own
 * policy. policy must live as long as the graph. Blocks do not nest. */
void ct_checkpoint_begin(ct_graph *graph, const ct_remat_policy *policy);
void ct_checkpoint_end(ct_graph *graph);

#endif
