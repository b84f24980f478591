/* The inside of the reverse sweep, shared by the files of autodiff. */
#ifndef CT_AUTODIFF_SWEEP_H
#define CT_AUTODIFF_SWEEP_H

#include "graph/group.h"
#include "graph/node.h"

typedef struct ct_sweep {
    ct_graph *graph;
    ct_tensor_map cotangents; /* of forward tensors */
    bool *active;             /* by tensor id: depends on a parameter and is a float */
    int num_active;
} ct_sweep;

void ct__sweep_init(ct_sweep *sweep, ct_graph *graph);
void ct__sweep_deinit(ct_sweep *sweep);
bool ct__is_active(const ct_sweep *sweep, const ct_tensor *tensor);
void ct__set_active(ct_sweep *sweep, const ct_tensor *tensor, bool active);
/* Marks what depends on active tensors, over all nodes of region. */
void ct__mark_active(ct_sweep *sweep, const ct_region *region);
void ct__accumulate(ct_sweep *sweep, ct_tensor *tensor, ct_tensor *cotangent);
/* Runs the sweep from node last back to the region's first; new nodes go to the graph's insertion point. */
void ct__sweep_nodes(ct_sweep *sweep, ct_node *last);
ct_tensor *ct__zeros_like(const ct_tensor *tensor);

/* Derivatives of nodes with regions. */
void ct__scan_vjp(ct_sweep *sweep, ct_node *scan, ct_tensor *const *cotangents, ct_tensor **gradients);
void ct__cond_vjp(ct_sweep *sweep, ct_node *cond, ct_tensor *const *cotangents, ct_tensor **gradients);
void ct__call_vjp(ct_sweep *sweep, ct_node *call, ct_tensor *const *cotangents, ct_tensor **gradients);
void ct__manual_vjp(ct_sweep *sweep, ct_node *manual, ct_tensor *const *cotangents, ct_tensor **gradients);

/* Replay: forward tensors made available at a place of the backward pass, saved or computed again. */
typedef struct ct_replay {
    ct_graph *graph;
    ct_tensor_map map; /* forward tensor -> its value here */
    void *context;
    /* The value of a tensor that is not to be computed again (saved, or from outside); NULL: compute it again. */
    ct_tensor *(*leaf)(struct ct_replay *replay, ct_tensor *tensor);
    /* Is it a tensor that backward nodes may not use directly? */
    bool (*covers)(const struct ct_replay *replay, const ct_tensor *tensor);
} ct_replay;
ct_tensor *ct__replay_value(ct_replay *replay, ct_tensor *tensor);
/* Replaces covered tensors in first and all nodes after it, their regions included. Copies of forward nodes are made
 * before first. */
void ct__replay_nodes(ct_replay *replay, ct_region *region, ct_node *first);

/* Checkpoint blocks: begin when the sweep meets the block's last node, end when it leaves the block. */
typedef struct ct_block_replay {
    ct_replay replay;
    ct_group *group;
    ct_node *barrier; /* NULL: nothing flows back into this block */
} ct_block_replay;
void ct__block_begin(ct_block_replay *block, ct_sweep *sweep, ct_node *last);
void ct__block_end(ct_block_replay *block, ct_sweep *sweep);

#endif
