/* A tensor's sharding: per mesh axis, one of
 *
 *   sharded     over a dim: at.mesh_axes[dim] lists the mesh axes, slowest first
 *   partial     the tensor is the sum of what the devices along the axis hold
 *   replicated  neither
 *
 * A dim whose size the mesh axes do not divide is padded at its end to padded[dim]; what padding holds is undefined.
 */
#ifndef CT_SPMD_SHARDING_H
#define CT_SPMD_SHARDING_H

#include "graph/placement.h"
#include "spmd/mesh.h"

typedef struct ct_sharding {
    ct_placement at;
    int64_t padded[CT_MAX_RANK]; /* 0: the dim's own size */
    uint32_t partial;            /* bit per mesh axis */
} ct_sharding;

bool ct_sharding_equal(const ct_sharding *a, const ct_sharding *b);
int64_t ct_sharding_parts(const ct_mesh *mesh, const ct_sharding *sharding, int dim);
/* The size of dim that each device holds. */
int64_t ct_sharding_local_size(const ct_mesh *mesh, const ct_sharding *sharding, int dim, int64_t size);
/* Sets padded for every dim that its mesh axes do not divide. */
void ct_sharding_pad(const ct_mesh *mesh, ct_sharding *sharding, int rank, const int64_t *sizes);

/* A device's part of an array of `sizes`: the box [offsets, offsets + valid) of the array, at the start of a block of
 * `local` sizes whose rest is padding. valid may be 0. Returns false when the device with the same box and a lower
 * number holds it already (a copy). */
bool ct_sharding_box(const ct_mesh *mesh, const ct_sharding *sharding, int rank, const int64_t *sizes, int64_t device,
                     int64_t *out_offsets, int64_t *out_valid, int64_t *out_local);

/* The lowest device that holds the same box. */
int64_t ct_sharding_holder(const ct_mesh *mesh, const ct_sharding *sharding, int64_t device);

/* "batch=dp_shard seq=cp+tp, partial tp"; heap. axes: the tensor's. */
char *ct_sharding_text(const ct_mesh *mesh, const ct_sharding *sharding, int rank, const ct_axis *axes);

#endif
