/* Arithmetic on shardings: sizes, boxes, texts. */
#include "spmd/sharding.h"

#include <string.h>

#include "base/macros.h"
#include "base/str.h"

bool ct_sharding_equal(const ct_sharding *a, const ct_sharding *b)
{
    if (a->partial != b->partial) return false;
    for (int i = 0; i < CT_MAX_RANK; i++) {
        if (a->at.count[i] != b->at.count[i] || a->padded[i] != b->padded[i]) return false;
        for (int j = 0; j < a->at.count[i]; j++)
            if (a->at.mesh_axes[i][j] != b->at.mesh_axes[i][j]) return false;
    }
    return true;
}

int64_t ct_sharding_parts(const ct_mesh *mesh, const ct_sharding *sharding, int dim)
{
    int64_t parts = 1;
    for (int i = 0; i < sharding->at.count[dim]; i++) parts *= mesh->axes[sharding->at.mesh_axes[dim][i]].size;
    return parts;
}

int64_t ct_sharding_local_size(const ct_mesh *mesh, const ct_sharding *sharding, int dim, int64_t size)
{
    return (sharding->padded[dim] ? sharding->padded[dim] : size) / ct_sharding_parts(mesh, sharding, dim);
}

void ct_sharding_pad(const ct_mesh *mesh, ct_sharding *sharding, int rank, const int64_t *sizes)
{
    for (int i = 0; i < rank; i++) {
        int64_t parts = ct_sharding_parts(mesh, sharding, i), rest = sizes[i] % parts;
        sharding->padded[i] = rest ? sizes[i] + parts - rest : 0;
    }
}

bool ct_sharding_box(const ct_mesh *mesh, const ct_sharding *sharding, int rank, const int64_t *sizes, int64_t device,
                     int64_t *out_offsets, int64_t *out_valid, int64_t *out_local)
{
    int64_t position[CT_MAX_MESH_AXES], rest = device;
    for (int i = mesh->num_axes - 1; i >= 0; i--) {
        position[i] = rest % mesh->axes[i].size;
        rest /= mesh->axes[i].size;
    }
    bool is_first = true;
    for (int i = 0; i < mesh->num_axes; i++)
        if (position[i] && !ct__placement_uses(&sharding->at, i)) is_first = false;
    for (int i = 0; i < rank; i++) {
        int64_t part = 0;
        for (int j = 0; j < sharding->at.count[i]; j++) {
            int axis = sharding->at.mesh_axes[i][j];
            part = part * mesh->axes[axis].size + position[axis];
        }
        out_local[i] = ct_sharding_local_size(mesh, sharding, i, sizes[i]);
        out_offsets[i] = CT_MIN(part * out_local[i], sizes[i]);
        out_valid[i] = CT_MIN(out_local[i], sizes[i] - out_offsets[i]);
    }
    return is_first;
}

int64_t ct_sharding_holder(const ct_mesh *mesh, const ct_sharding *sharding, int64_t device)
{
    int64_t stride = 1, holder = 0;
    for (int i = mesh->num_axes - 1; i >= 0; i--) {
        if (ct__placement_uses(&sharding->at, i)) holder += device / stride % mesh->axes[i].size * stride;
        stride *= mesh->axes[i].size;
    }
    return holder;
}

char *ct_sharding_text(const ct_mesh *mesh, const ct_sharding *sharding, int rank, const ct_axis *axes)
{
    ct_str text;
    ct_str_init(&text);
    for (int i = 0; i < rank; i++) {
        if (!sharding->at.count[i]) continue;
        ct_str_printf(&text, "%s%s=", text.length ? " " : "", axes[i].name);
        for (int j = 0; j < sharding->at.count[i]; j++)
            ct_str_printf(&text, "%s%s", j ? "+" : "", mesh->axes[sharding->at.mesh_axes[i][j]].name);
    }
    if (sharding->partial) ct_str_printf(&text, "%spartial", text.length ? ", " : "");
    for (int i = 0; i < mesh->num_axes; i++)
        if (sharding->partial & (1u << i)) ct_str_printf(&text, " %s", mesh->axes[i].name);
    return text.data;
}
