/* The mesh of devices: TorchTitan's degrees as groups of the finest factors, split along the torus of the topology.
 *
 *   degrees dp_shard=8 tp=2 on a torus 4x4   ->   dp_shard_0=4  dp_shard_1=2 | tp=2
 *                                                 torus axis 0    torus axis 1
 *
 * Mesh axes stand in the order dp_replicate, dp_shard, cp, tp, neighbours on the torus innermost, so the row-major
 * number of a device in the mesh is its row-major number on the torus. A collective over one mesh axis uses the links
 * of one torus axis. Axes of size 1 are left out. A group of one axis has its name (dp_shard), of several numbers
 * (dp_shard_0, dp_shard_1).
 *
 * tp is split into gcd(kv_heads, tp) and the rest: kv heads are sharded over the first and replicated over the second.
 */
#ifndef CT_SPMD_MESH_H
#define CT_SPMD_MESH_H

#include <stdbool.h>

#include "base/dtype.h"
#include "base/status.h"

typedef enum ct_mesh_group {
    CT_MESH_DP_REPLICATE,
    CT_MESH_DP_SHARD,
    CT_MESH_CP,
    CT_MESH_TP,
    CT_MESH_NUM_GROUPS,
} ct_mesh_group;

enum { CT_MAX_MESH_AXES = CT_MAX_RANK, CT_MAX_TORUS = 5 };

typedef struct ct_mesh_axis {
    char name[24];
    int64_t size;
    ct_mesh_group group;
    int torus_axis;
} ct_mesh_axis;

typedef struct ct_mesh {
    int64_t degrees[CT_MESH_NUM_GROUPS];
    int num_axes;
    ct_mesh_axis axes[CT_MAX_MESH_AXES];
    int num_tp_kv_axes; /* of tp's axes, the leading ones that shard kv heads */
    int num_torus;
    int64_t torus[CT_MAX_TORUS];
    int64_t num_devices;
} ct_mesh;

typedef struct ct_mesh_opts {
    int64_t degrees[CT_MESH_NUM_GROUPS]; /* DP_SHARD -1: what is left */
    int64_t num_devices;
    int num_torus; /* 0: one axis of num_devices */
    int64_t torus[CT_MAX_TORUS];
    int64_t num_kv_heads; /* 0: tp is not split */
} ct_mesh_opts;

/* Errors: INVALID_ARGUMENT naming the degrees and numbers: a product that is not num_devices, a degree that cannot be
 * laid along the torus, tp that neither divides kv_heads nor is a multiple of it. */
CT_MUST_USE ct_status *ct_mesh_init(const ct_mesh_opts *opts, ct_mesh *out_mesh);

/* "dp_shard_0=4 dp_shard_1=2 tp=2", as ct_graph_set_mesh takes it; "" for one device. Heap. */
char *ct_mesh_text(const ct_mesh *mesh);

/* The mesh axes of a group word, in order: "dp_replicate", "dp_shard", "cp", "tp", "dp" (dp_replicate and dp_shard),
 * "fsdp" (dp_shard and cp), "tp_kv" (the part of tp that shards kv heads); or a mesh axis' own name. Gives how many;
 * -1: no such word. */
int ct_mesh_find(const ct_mesh *mesh, const char *word, size_t length, int out_axes[CT_MAX_MESH_AXES]);

/* How many of the devices a word's axes have together. */
int64_t ct_mesh_size(const ct_mesh *mesh, const char *word);

#endif
