/* How one model is laid over one mesh: its table, and what the recipe chose.
 *
 * A table maps tensor axes to mesh axes, one column for what is computed with, one for parameters as stored:
 *
 *   axis      activations  stored
 *   batch     dp           -
 *   seq       cp           -
 *   heads     tp           tp
 *   dim       -            fsdp
 *
 * Parameters are stored as their axes' stored column says; "fsdp" goes to the first axis of table->fsdp_axes that the
 * parameter has and that divides (or, where none does, to the first that may be padded). One smaller than
 * replicate_below elements stays whole along fsdp; axes that the table does not name (layers) are not counted. Where kv
 * heads are fewer than tp, the part of tp along which they are repeated is stored over like fsdp.
 */
#ifndef CT_SPMD_PARALLEL_H
#define CT_SPMD_PARALLEL_H

#include "graph/graph.h"
#include "spmd/sharding.h"

typedef struct ct_sharding_axis {
    const char *axis;
    const char *activation; /* "dp", "cp", "tp", "tp_kv" joined by '+'; NULL: whole */
    const char *stored;     /* the same without fsdp, which fsdp_axes places */
    bool may_pad;           /* need not divide */
} ct_sharding_axis;

/* A placement point, ct_shard(x, name). NULL: the point does nothing under that option. */
typedef struct ct_sharding_point {
    const char *name;
    const char *placement;         /* "batch=dp seq=cp" */
    const char *sequence_parallel; /* with enable_sequence_parallel; NULL: placement */
    const char *no_loss_parallel;  /* with disable_loss_parallel; NULL: placement */
} ct_sharding_point;

typedef struct ct_sharding_table {
    const ct_sharding_axis *axes;
    int num_axes;
    const ct_sharding_point *points;
    int num_points;
    const char *fsdp_axes; /* "dim ffn vocab", in order of preference */
} ct_sharding_table;

typedef enum ct_reshard { CT_RESHARD_DEFAULT, CT_RESHARD_ALWAYS, CT_RESHARD_NEVER } ct_reshard;
typedef enum ct_rotate { CT_ROTATE_ALLGATHER, CT_ROTATE_RING } ct_rotate;
/* How a gather or a reduction over several mesh axes of one dim is made. */
typedef enum ct_collective_form {
    CT_FORM_PER_AXIS, /* one collective per mesh axis, one after the other: the links of one torus axis at a time */
    CT_FORM_JOINT,    /* one over all of them */
    CT_FORM_PARTS,    /* the array in as many parts as there are axes, each taking the axes in another order */
    CT_FORM_PAIRS,    /* joint over two axes at a time, the outermost two first in a reduction, last in a gather */
    CT_FORM_AUTO,     /* in recipes: the best that is known for the chip */
} ct_collective_form;

typedef enum ct_partition { CT_PARTITION_MANUAL, CT_PARTITION_SHARDY } ct_partition;

typedef struct ct_parallel {
    ct_mesh mesh;
    const ct_sharding_table *table;
    bool sequence_parallel, loss_parallel;
    ct_rotate rotate;                 /* context parallel attention */
    ct_reshard reshard_after_forward; /* NEVER: gathered weights are kept for the backward pass */
    int zero_stage;   /* 3: parameters, gradients, moments sharded over fsdp; 2: not parameters; 1: moments */
    bool reduce_once; /* with accumulation: gradients are reduced after the last microbatch */
    int prefetch;     /* layers whose weights are gathered ahead in a scan: 0 or 1 */
    ct_collective_form gather_form, reduce_form;
    ct_dtype reduce_dtype; /* of gradients on the wire */
    ct_partition partition;
    int64_t replicate_below; /* elements of one layer; 0 means 65536 */
} ct_parallel;

/* Gives graph the mesh; ct_use, ct_shard and attention look parallel up there. It must outlive the graph. Call before
 * anything is built. Without it, or with a mesh of one device, those do nothing. */
void ct_parallel_attach(ct_graph *graph, const ct_parallel *parallel);
const ct_parallel *ct_parallel_of(const ct_graph *graph); /* NULL: none, or one device */

/* Shardings of tensors by their axes' names. */
ct_sharding ct_parallel_activation(const ct_parallel *parallel, int rank, const ct_axis *axes);
/* A parameter as it lies between steps, as it is used, its reduced gradient, its moments. */
ct_sharding ct_parallel_stored(const ct_parallel *parallel, int rank, const ct_axis *axes);
ct_sharding ct_parallel_used(const ct_parallel *parallel, int rank, const ct_axis *axes);
ct_sharding ct_parallel_gradient(const ct_parallel *parallel, int rank, const ct_axis *axes);
ct_sharding ct_parallel_moment(const ct_parallel *parallel, int rank, const ct_axis *axes);
/* false: the point does nothing here. */
bool ct_parallel_point(const ct_parallel *parallel, const char *name, int rank, const ct_axis *axes,
                       ct_sharding *out_sharding);

/* Checks sizes against the table: every axis that is sharded and may not be padded must divide.
 * Errors: INVALID_ARGUMENT naming axis, size, degree. axes: those of all parameters and activations, once each. */
CT_MUST_USE ct_status *ct_parallel_check(const ct_parallel *parallel, int num_axes, const char *const *names,
                                         const int64_t *sizes);

/* The sharding that an input or output of the graph has outside, padded sizes included. */
void ct_parallel_set_input(ct_graph *graph, const ct_tensor *input, const ct_sharding *sharding);
void ct_parallel_set_output(ct_graph *graph, int index, const ct_sharding *sharding);

#endif
