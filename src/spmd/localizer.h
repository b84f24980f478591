/* The inside of localize, shared by its files.
 *
 *   values.c    what is known of each logical tensor: its sharding, its local versions, how to get another one
 *   reshard.c   from one sharding to another: slices and collectives
 *   place.c     one op by its rule: which sharding its operands need, which its results have
 *   regions.c   scans, branches, calls, manual regions
 *   localize.c  the walk over the program, and its inputs and outputs
 */
#ifndef CT_SPMD_LOCALIZER_H
#define CT_SPMD_LOCALIZER_H

#include "graph/factor.h"
#include "spmd/localize.h"

/* A local tensor that holds (the device's part of) a logical one. Seen from its region and those inside. */
typedef struct ct_version {
    struct ct_version *next;
    ct_tensor *local;
    ct_sharding sharding;
} ct_version;

typedef struct ct_value {
    ct_sharding natural; /* of the first version, or what it would be */
    ct_version *versions;
    /* A node that is made where and as it is wanted: free dims may be split in any way at no cost. */
    ct_node *deferred;
    uint32_t free_dims;
    bool is_zero;             /* all zeros: also right as a summand */
    bool is_unknown;          /* a carry whose sharding is being found out: any will do, and any is made up */
    const ct_sharding *store; /* parameters: where their gradient is stored; NULL: by the table */
    ct_tensor *ahead;         /* a weight's slice: the whole weight, gathered in the turn before; NULL: none */
    const ct_sharding *ahead_sharding;
} ct_value;

typedef struct ct_localizer {
    ct_graph *graph;
    const ct_parallel *parallel;
    const ct_mesh *mesh;
    const bool *live; /* by id of tensors that were there at the start */
    int num_live;
    ct_value **values; /* by logical tensor's id */
    int num_values;
    const char **why; /* by id of a local tensor: why the collective that makes it is there */
    int num_why;
    const char *reason; /* of what is being resharded now */
    int trial;          /* depth of bodies made only to find shardings */
} ct_localizer;

/* ---- values.c ---- */
ct_value *ct__value(ct_localizer *l, const ct_tensor *tensor);
/* A fresh value with one version. */
void ct__value_set(ct_localizer *l, const ct_tensor *tensor, ct_tensor *local, const ct_sharding *sharding);
/* One more version. */
void ct__value_add(ct_localizer *l, const ct_tensor *tensor, ct_tensor *local, const ct_sharding *sharding);
/* A fresh value that is made when wanted. */
void ct__value_defer(ct_localizer *l, const ct_tensor *tensor, ct_node *node, const ct_sharding *natural,
                     uint32_t free_dims, bool is_zero);
void ct__value_unknown(ct_localizer *l, const ct_tensor *tensor, bool is_zero);
/* The sharding to plan with: the natural one, or, when that is partial, one of a visible version that is summed. */
const ct_sharding *ct__value_sharding(ct_localizer *l, const ct_tensor *tensor);
/* The tensor in a sharding, from what versions there are. */
ct_tensor *ct__want(ct_localizer *l, ct_tensor *tensor, const ct_sharding *sharding);
ct_sharding ct__summed(const ct_sharding *sharding); /* without partial */
/* The local type of a logical tensor. */
void ct__local_type(const ct_localizer *l, const ct_tensor *tensor, const ct_sharding *sharding, ct_axis *out_axes);

/* ---- reshard.c ---- */
/* x, which holds type in sharding from, in sharding to; collectives go to the current region. */
ct_tensor *ct__reshard(ct_localizer *l, ct_tensor *x, const ct_tensor *type, const ct_sharding *from,
                       const ct_sharding *to);
/* result comes from a collective, made for l->reason. */
void ct__note_collective(ct_localizer *l, const ct_tensor *result);
/* Bytes that a device would send for it, and a little for every op. */
double ct__reshard_cost(const ct_localizer *l, const ct_tensor *type, const ct_sharding *from, const ct_sharding *to);

/* ---- place.c ---- */
void ct__place_node(ct_localizer *l, ct_node *node);
/* Makes a deferred node's only result, its free dims split as target has them: one more version. */
void ct__place_deferred(ct_localizer *l, ct_node *node, const ct_tensor *result, const ct_sharding *target);

/* ---- regions.c ---- */
bool ct__place_region_node(ct_localizer *l, ct_node *node); /* false: not one of its kind */

/* ---- localize.c ---- */
void ct__localize_nodes(ct_localizer *l, ct_node *first);

/* ---- collective_report.c ---- */
void ct__report_collectives(ct_localizer *l, const ct_region *region, ct_localize_report *out_report);

/* ---- points.c ---- */
extern const ct_op ct__op_use, ct__op_use_kept, ct__op_store, ct__op_store_later, ct__op_shard;
bool ct__is_use(const ct_node *node);
bool ct__place_point(ct_localizer *l, ct_node *node); /* false: not one of its kind */
/* The local weight, gathered, from a local part. */
ct_tensor *ct__gather_used(ct_localizer *l, const ct_node *use, ct_tensor *local, const ct_sharding *stored,
                           ct_sharding *out_used);

#endif
