/* Degrees laid along the torus.
 *
 * The groups are laid from the innermost, tp, outwards, each taking what it needs of the torus axis at hand and going
 * on with the next one when that is used up:
 *
 *   tp=2 cp=2 dp_shard=8 on 8x4     torus axis 1: tp=2 cp=2     torus axis 0: dp_shard=8
 */
#include "spmd/mesh.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"

static const struct {
    const char *name, *key;
} GROUPS[CT_MESH_NUM_GROUPS] = {
    [CT_MESH_DP_REPLICATE] = {"dp_replicate", "data_parallel_replicate_degree"},
    [CT_MESH_DP_SHARD] = {"dp_shard", "data_parallel_shard_degree"},
    [CT_MESH_CP] = {"cp", "context_parallel_degree"},
    [CT_MESH_TP] = {"tp", "tensor_parallel_degree"},
};

/* "data_parallel_replicate_degree 1 x data_parallel_shard_degree 4 x ..." */
static char *degrees_text(const int64_t *degrees)
{
    ct_str text;
    ct_str_init(&text);
    for (int i = 0; i < CT_MESH_NUM_GROUPS; i++)
        ct_str_printf(&text, "%s%s %lld", i ? " x " : "", GROUPS[i].key, (long long)degrees[i]);
    return ct_str_release(&text);
}

static ct_status *product_error(const int64_t *degrees, int64_t num_devices, const char *requirement)
{
    char *text = degrees_text(degrees);
    ct_status *status = ct_error(CT_CODE_INVALID_ARGUMENT, "parallelism: %s %s %lld, the number of devices", text,
                                 requirement, (long long)num_devices);
    free(text);
    return status;
}

/* Fills in degrees; a dp_shard of -1 is what the others leave. */
static ct_status *set_degrees(const ct_mesh_opts *opts, ct_mesh *mesh)
{
    int64_t product = 1;
    memcpy(mesh->degrees, opts->degrees, sizeof(mesh->degrees));
    for (int i = 0; i < CT_MESH_NUM_GROUPS; i++) {
        int64_t degree = mesh->degrees[i];
        bool is_rest = i == CT_MESH_DP_SHARD && degree == -1;
        if (degree < 1 && !is_rest)
            return ct_error(CT_CODE_INVALID_ARGUMENT, "parallelism.%s must be at least 1%s, found %lld", GROUPS[i].key,
                            i == CT_MESH_DP_SHARD ? ", or -1 for what is left" : "", (long long)degree);
        if (!is_rest && !ct_checked_mul(product, degree, &product))
            return product_error(mesh->degrees, opts->num_devices, "is more than");
    }
    if (mesh->degrees[CT_MESH_DP_SHARD] == -1) {
        if (opts->num_devices % product)
            return product_error(mesh->degrees, opts->num_devices, "(-1: what is left) does not divide");
        mesh->degrees[CT_MESH_DP_SHARD] = opts->num_devices / product;
    } else if (product != opts->num_devices) {
        return product_error(mesh->degrees, opts->num_devices, "must be");
    }
    return NULL;
}

/* The torus as it is being used up, from its last axis on. */
typedef struct torus_walk {
    int axis;
    int64_t left;
    int num_laid; /* axes of the mesh so far, innermost first */
    ct_mesh_axis laid[CT_MAX_MESH_AXES];
} torus_walk;

static ct_status *lay(const ct_mesh *mesh, torus_walk *walk, ct_mesh_group group, int64_t degree)
{
    int64_t rest = degree;
    while (rest > 1) {
        while (walk->left == 1 && walk->axis > 0) walk->left = mesh->torus[--walk->axis];
        int64_t take = CT_MIN(rest, walk->left);
        if (rest % take || walk->left % take || take == 1)
            return ct_error(CT_CODE_INVALID_ARGUMENT,
                            "parallelism.%s = %lld cannot be laid along the topology: torus axis %d of %lld devices "
                            "has %lld left for the %lld of it still to be laid, and one must divide the other",
                            GROUPS[group].key, (long long)mesh->degrees[group], walk->axis,
                            (long long)mesh->torus[walk->axis], (long long)walk->left, (long long)rest);
        if (walk->num_laid == CT_MAX_MESH_AXES)
            return ct_error(CT_CODE_INVALID_ARGUMENT,
                            "parallelism: the degrees make more than %d mesh axes on this topology; use fewer kinds of "
                            "parallelism at once",
                            CT_MAX_MESH_AXES);
        walk->laid[walk->num_laid++] = (ct_mesh_axis){.size = take, .group = group, .torus_axis = walk->axis};
        walk->left /= take;
        rest /= take;
    }
    return NULL;
}

static int64_t greatest_common_divisor(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static ct_status *lay_tp(const ct_mesh_opts *opts, ct_mesh *mesh, torus_walk *walk)
{
    int64_t tp = mesh->degrees[CT_MESH_TP], sharding = tp;
    if (opts->num_kv_heads) {
        sharding = greatest_common_divisor(opts->num_kv_heads, tp);
        if (sharding != tp && sharding != opts->num_kv_heads)
            return ct_error(CT_CODE_INVALID_ARGUMENT,
                            "parallelism.%s = %lld must divide the model's %lld kv heads or be a multiple of them",
                            GROUPS[CT_MESH_TP].key, (long long)tp, (long long)opts->num_kv_heads);
    }
    CT_TRY(lay(mesh, walk, CT_MESH_TP, tp / sharding));
    int num_replicating = walk->num_laid;
    CT_TRY(lay(mesh, walk, CT_MESH_TP, sharding));
    mesh->num_tp_kv_axes = walk->num_laid - num_replicating;
    return NULL;
}

static ct_status *set_torus(const ct_mesh_opts *opts, ct_mesh *mesh)
{
    mesh->num_torus = opts->num_torus ? opts->num_torus : 1;
    mesh->torus[0] = opts->num_devices;
    CT_ASSERT(mesh->num_torus <= CT_MAX_TORUS);
    if (!opts->num_torus) return NULL;
    int64_t product = 1;
    ct_str text;
    ct_str_init(&text);
    for (int i = 0; i < opts->num_torus; i++) {
        mesh->torus[i] = opts->torus[i];
        product *= opts->torus[i];
        ct_str_printf(&text, "%s%lld", i ? "x" : "", (long long)opts->torus[i]);
    }
    ct_status *status = NULL;
    if (product != opts->num_devices)
        status = ct_error(CT_CODE_INVALID_ARGUMENT, "the topology %s has %lld devices, the mesh wants %lld", text.data,
                          (long long)product, (long long)opts->num_devices);
    ct_str_deinit(&text);
    return status;
}

static void name_axes(ct_mesh *mesh)
{
    int count[CT_MESH_NUM_GROUPS] = {0}, next[CT_MESH_NUM_GROUPS] = {0};
    for (int i = 0; i < mesh->num_axes; i++) count[mesh->axes[i].group]++;
    for (int i = 0; i < mesh->num_axes; i++) {
        ct_mesh_axis *axis = &mesh->axes[i];
        const char *name = GROUPS[axis->group].name;
        if (count[axis->group] == 1)
            snprintf(axis->name, sizeof(axis->name), "%s", name);
        else
            snprintf(axis->name, sizeof(axis->name), "%s_%d", name, next[axis->group]++);
    }
}

ct_status *ct_mesh_init(const ct_mesh_opts *opts, ct_mesh *out_mesh)
{
    *out_mesh = (ct_mesh){.num_devices = opts->num_devices};
    CT_ASSERT(opts->num_devices >= 1);
    CT_TRY(set_degrees(opts, out_mesh));
    CT_TRY(set_torus(opts, out_mesh));
    torus_walk walk = {.axis = out_mesh->num_torus - 1, .left = out_mesh->torus[out_mesh->num_torus - 1]};
    CT_TRY(lay_tp(opts, out_mesh, &walk));
    for (int group = CT_MESH_CP; group >= CT_MESH_DP_REPLICATE; group--)
        CT_TRY(lay(out_mesh, &walk, (ct_mesh_group)group, out_mesh->degrees[group]));
    out_mesh->num_axes = walk.num_laid;
    for (int i = 0; i < walk.num_laid; i++) out_mesh->axes[i] = walk.laid[walk.num_laid - 1 - i];
    name_axes(out_mesh);
    return NULL;
}

char *ct_mesh_text(const ct_mesh *mesh)
{
    ct_str text;
    ct_str_init(&text);
    for (int i = 0; i < mesh->num_axes; i++)
        ct_str_printf(&text, "%s%s=%lld", i ? " " : "", mesh->axes[i].name, (long long)mesh->axes[i].size);
    return ct_str_release(&text);
}

static bool is_word(const char *word, size_t length, const char *name)
{
    return strlen(name) == length && !memcmp(word, name, length);
}

int ct_mesh_find(const ct_mesh *mesh, const char *word, size_t length, int out_axes[CT_MAX_MESH_AXES])
{
    bool wanted[CT_MESH_NUM_GROUPS] = {0};
    bool is_dp = is_word(word, length, "dp"), is_fsdp = is_word(word, length, "fsdp");
    bool is_kv = is_word(word, length, "tp_kv"), is_known = is_dp || is_fsdp || is_kv;
    wanted[CT_MESH_DP_REPLICATE] = is_dp;
    wanted[CT_MESH_DP_SHARD] = is_dp || is_fsdp;
    wanted[CT_MESH_CP] = is_fsdp;
    wanted[CT_MESH_TP] = is_kv;
    for (int i = 0; i < CT_MESH_NUM_GROUPS; i++)
        if (is_word(word, length, GROUPS[i].name)) wanted[i] = is_known = true;
    int count = 0, num_kv = 0;
    for (int i = 0; i < mesh->num_axes; i++) {
        if (!is_known && is_word(word, length, mesh->axes[i].name)) {
            out_axes[0] = i;
            return 1;
        }
        if (!wanted[mesh->axes[i].group] || (is_kv && num_kv++ >= mesh->num_tp_kv_axes)) continue;
        out_axes[count++] = i;
    }
    return is_known ? count : -1;
}

int64_t ct_mesh_size(const ct_mesh *mesh, const char *word)
{
    int axes[CT_MAX_MESH_AXES], count = ct_mesh_find(mesh, word, strlen(word), axes);
    if (count < 0) CT_BUG("no mesh axes are called %s", word);
    int64_t size = 1;
    for (int i = 0; i < count; i++) size *= mesh->axes[axes[i]].size;
    return size;
}
