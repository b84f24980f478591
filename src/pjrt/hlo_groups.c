/* The devices of a collective. XLA writes them in four ways; all become lists.
 *
 *   lists      {0,1},{2,3}
 *   iota       num_groups x per_group of 0..n-1, reshaped to reshape_dims and transposed by transpose_perm
 *   mesh axes  the groups along some axes (or parts of axes) of a mesh, row-major
 *   pairs      source and target, of permutes
 */
#include <stdlib.h>
#include <string.h>
#include <xla.pb-c.h>

#include "pjrt/internal_hlo.h"

enum { MAX_DIMS = 16 };
static const int64_t max_devices = 1 << 20;

/* A grid of devices in row-major order, walked with its dims in another order. */
typedef struct {
    size_t num_dims;
    int64_t sizes[MAX_DIMS];
} grid;

static ct_status *grid_add(grid *dims, int64_t size)
{
    int64_t product = 1;
    for (size_t i = 0; i < dims->num_dims; i++) product *= dims->sizes[i];
    if (dims->num_dims == MAX_DIMS || size < 1 || size > max_devices / product)
        return ct_error(CT_CODE_DATA_LOSS, "a grid of devices has a size of %lld", (long long)size);
    dims->sizes[dims->num_dims++] = size;
    return NULL;
}

/* Gives to the devices of dims (their numbers, or what ids says), order[0] slowest, in groups of group_size. */
static void walk(ct_arena *arena, const grid *dims, const size_t *order, const int64_t *ids, int64_t group_size,
                 ct_hlo_instruction *to)
{
    int64_t strides[MAX_DIMS], total = 1;
    for (size_t i = dims->num_dims; i--;) strides[i] = total, total *= dims->sizes[i];
    int64_t *groups = CT_ARENA_ARRAY(arena, int64_t, total);
    for (int64_t n = 0; n < total; n++) {
        int64_t rest = n, device = 0;
        for (size_t i = dims->num_dims; i--;) {
            device += rest % dims->sizes[order[i]] * strides[order[i]];
            rest /= dims->sizes[order[i]];
        }
        groups[n] = ids ? ids[device] : device;
    }
    to->groups = groups;
    to->group_size = (size_t)group_size;
    to->num_groups = (size_t)(total / group_size);
}

static ct_status *read_lists(ct_arena *arena, Xla__ReplicaGroup *const *from, size_t count, ct_hlo_instruction *to)
{
    if (!count) return NULL;
    size_t size = from[0]->n_replica_ids;
    int64_t *groups = CT_ARENA_ARRAY(arena, int64_t, count * size);
    for (size_t i = 0; i < count; i++) {
        if (from[i]->n_replica_ids != size)
            return ct_error(CT_CODE_UNIMPLEMENTED, "groups of %zu and of %zu devices", size, from[i]->n_replica_ids);
        if (size) memcpy(groups + i * size, from[i]->replica_ids, size * sizeof(*groups));
    }
    to->groups = groups;
    to->num_groups = size ? count : 0;
    to->group_size = size;
    return NULL;
}

ct_status *ct__hlo_iota_groups(ct_arena *arena, int64_t num_groups, int64_t group_size, const int64_t *reshape_dims,
                               size_t num_dims, const int64_t *transpose_perm, size_t num_order, ct_hlo_instruction *to)
{
    grid dims = {0};
    size_t order[MAX_DIMS];
    int64_t total = 1;
    for (size_t i = 0; i < num_dims; i++) {
        CT_TRY(grid_add(&dims, reshape_dims[i]));
        total *= reshape_dims[i];
    }
    bool used[MAX_DIMS] = {0};
    for (size_t i = 0; i < dims.num_dims; i++) {
        int64_t dim = num_order == dims.num_dims ? transpose_perm[i] : (int64_t)i;
        if (dim < 0 || (size_t)dim >= dims.num_dims || used[dim])
            return ct_error(CT_CODE_DATA_LOSS, "an order of %zu dims names %lld", dims.num_dims, (long long)dim);
        used[order[i] = (size_t)dim] = true;
    }
    if (group_size < 1 || group_size > total || total % group_size || num_groups != total / group_size)
        return ct_error(CT_CODE_DATA_LOSS, "%lld groups of %lld of %lld devices", (long long)num_groups,
                        (long long)group_size, (long long)total);
    walk(arena, &dims, order, NULL, group_size, to);
    return NULL;
}

static ct_status *read_iota(ct_arena *arena, const Xla__IotaReplicaGroupListProto *from, ct_hlo_instruction *to)
{
    int64_t order[MAX_DIMS] = {0};
    if (from->n_iota_transpose_perm > MAX_DIMS)
        return ct_error(CT_CODE_DATA_LOSS, "an order of %zu dims", from->n_iota_transpose_perm);
    for (size_t i = 0; i < from->n_iota_transpose_perm; i++) order[i] = from->iota_transpose_perm[i];
    return ct__hlo_iota_groups(arena, from->num_replica_groups, from->num_devices_per_group, from->iota_reshape_dims,
                               from->n_iota_reshape_dims, order, from->n_iota_transpose_perm, to);
}

/* Every axis becomes three dims: what stands before the part of it that is used, the part, what stands after. */
static ct_status *read_mesh_axes(ct_arena *arena, const Xla__MeshAxesReplicaGroupListProto *from,
                                 ct_hlo_instruction *to)
{
    grid dims = {0};
    size_t order[MAX_DIMS], num_inner = 0, inner[MAX_DIMS], num_order = 0;
    int64_t group_size = 1, total = 1;
    const Xla__MeshProto *mesh = from->mesh;
    if (!mesh) return ct_error(CT_CODE_DATA_LOSS, "axes of no mesh");
    /* Where the used parts begin and end inside each axis: a part may be cut by the boundaries of others. */
    for (size_t i = 0; i < from->n_axes; i++) {
        const Xla__AxisRefProto__SubAxisInfo *part = from->axes[i]->sub_axis_info;
        if (part && (part->pre_size < 1 || part->size < 1 || part->pre_size > max_devices || part->size > max_devices))
            return ct_error(CT_CODE_DATA_LOSS, "a part (%lld)%lld of a mesh axis", (long long)part->pre_size,
                            (long long)part->size);
    }
    for (size_t a = 0; a < mesh->n_axes; a++) {
        int64_t size = mesh->axes[a]->size, at = 1;
        while (at < size) { /* the next boundary after the leading factor at */
            int64_t next = size;
            for (size_t i = 0; i < from->n_axes; i++) {
                const Xla__AxisRefProto__SubAxisInfo *part = from->axes[i]->sub_axis_info;
                if (from->axes[i]->mesh_axis_index != (int64_t)a || !part) continue;
                int64_t begin = part->pre_size, end = part->pre_size * part->size;
                if (begin > at && begin < next) next = begin;
                if (end > at && end < next) next = end;
            }
            if (next % at) return ct_error(CT_CODE_DATA_LOSS, "a mesh axis of %lld in parts", (long long)size);
            CT_TRY(grid_add(&dims, next / at));
            at = next;
        }
        total *= size;
    }
    /* The dims of each used part, in the order of the axes named. */
    bool used[MAX_DIMS] = {0};
    for (size_t i = 0; i < from->n_axes; i++) {
        size_t dim = 0;
        for (size_t a = 0; a < mesh->n_axes; a++)
            for (int64_t at = 1; at < mesh->axes[a]->size; dim++) {
                const Xla__AxisRefProto__SubAxisInfo *part = from->axes[i]->sub_axis_info;
                bool inside = from->axes[i]->mesh_axis_index == (int64_t)a &&
                              (!part || (at >= part->pre_size && at < part->pre_size * part->size));
                at *= dims.sizes[dim];
                if (!inside || used[dim]) continue;
                used[dim] = true;
                group_size *= dims.sizes[dim];
                inner[num_inner++] = dim;
            }
    }
    for (size_t dim = 0; dim < dims.num_dims; dim++)
        if (!used[dim]) order[num_order++] = dim;
    for (size_t i = 0; i < num_inner; i++) order[num_order++] = inner[i];
    if (mesh->n_device_ids && (int64_t)mesh->n_device_ids != total)
        return ct_error(CT_CODE_DATA_LOSS, "%zu ids for a mesh of %lld devices", mesh->n_device_ids, (long long)total);
    walk(arena, &dims, order, mesh->n_device_ids ? mesh->device_ids : NULL, group_size, to);
    return NULL;
}

ct_status *ct__hlo_read_groups(ct_arena *arena, const void *message, ct_hlo_instruction *to)
{
    const Xla__HloInstructionProto *from = message;
    if (from->n_source_target_pairs) {
        int64_t *pairs = CT_ARENA_ARRAY(arena, int64_t, 2 * from->n_source_target_pairs);
        for (size_t i = 0; i < from->n_source_target_pairs; i++) {
            pairs[2 * i] = from->source_target_pairs[i]->source;
            pairs[2 * i + 1] = from->source_target_pairs[i]->target;
        }
        to->groups = pairs;
        to->num_groups = from->n_source_target_pairs;
        to->group_size = 2;
        return NULL;
    }
    const Xla__CollectiveDeviceListProto *list = from->collective_device_list;
    if (from->mesh_axes_replica_group_list) return read_mesh_axes(arena, from->mesh_axes_replica_group_list, to);
    if (from->iota_replica_group_list) return read_iota(arena, from->iota_replica_group_list, to);
    if (list && list->iota_replica_group_list) return read_iota(arena, list->iota_replica_group_list, to);
    if (list && list->n_replica_groups) return read_lists(arena, list->replica_groups, list->n_replica_groups, to);
    return read_lists(arena, from->replica_groups, from->n_replica_groups, to);
}

/* ---- mesh axes as text: mesh['x'=2,'y'=4] {'y':(1)2}, a part of an axis as (what stands before it)its size ---- */

/* A name in quotes; beyond it. NULL: there is none, or it is too long. */
static const char *take_quoted(const char *at, const char *end, char out_name[64])
{
    if (at >= end || *at != '\'') return NULL;
    const char *close = memchr(at + 1, '\'', (size_t)(end - at - 1));
    if (!close || close - at > 63) return NULL;
    memcpy(out_name, at + 1, (size_t)(close - at - 1));
    out_name[close - at - 1] = 0;
    return close + 1;
}

ct_status *ct__hlo_mesh_axes_text(ct_arena *arena, const char *text, size_t length, ct_hlo_instruction *to)
{
    char names[MAX_DIMS][64], name[64];
    Xla__MeshProto mesh = XLA__MESH_PROTO__INIT;
    Xla__MeshProto__MeshAxis axes[MAX_DIMS], *axis_pointers[MAX_DIMS];
    Xla__AxisRefProto refs[MAX_DIMS], *ref_pointers[MAX_DIMS];
    Xla__AxisRefProto__SubAxisInfo parts[MAX_DIMS];
    Xla__MeshAxesReplicaGroupListProto list = XLA__MESH_AXES_REPLICA_GROUP_LIST_PROTO__INIT;
    const char *at = text, *end = text + length, *next;
    char *number_end;
    list.mesh = &mesh;
    mesh.axes = axis_pointers;
    list.axes = ref_pointers;
    if (length < 5 || memcmp(at, "mesh[", 5) != 0) goto wrong;
    for (at += 5; mesh.n_axes < MAX_DIMS && (next = take_quoted(at, end, names[mesh.n_axes])); at = number_end) {
        Xla__MeshProto__MeshAxis *axis = &axes[mesh.n_axes];
        xla__mesh_proto__mesh_axis__init(axis);
        axis_pointers[mesh.n_axes++] = axis;
        if (next >= end || *next != '=') goto wrong;
        axis->size = strtoll(next + 1, &number_end, 10);
        if (axis->size < 1 || axis->size > max_devices || number_end >= end) goto wrong;
        if (*number_end == ',') number_end++;
    }
    if (end - at < 3 || memcmp(at, "] {", 3) != 0) goto wrong;
    for (at += 3; list.n_axes < MAX_DIMS && (next = take_quoted(at, end, name)); at = next + (*next == ',')) {
        Xla__AxisRefProto *ref = &refs[list.n_axes];
        xla__axis_ref_proto__init(ref);
        size_t axis = 0;
        while (axis < mesh.n_axes && strcmp(names[axis], name) != 0) axis++;
        if (axis == mesh.n_axes) goto wrong;
        ref->mesh_axis_index = (int64_t)axis;
        if (end - next > 2 && next[0] == ':' && next[1] == '(') {
            Xla__AxisRefProto__SubAxisInfo *part = &parts[list.n_axes];
            xla__axis_ref_proto__sub_axis_info__init(part);
            part->pre_size = strtoll(next + 2, &number_end, 10);
            if (number_end >= end || *number_end != ')') goto wrong;
            part->size = strtoll(number_end + 1, &number_end, 10);
            ref->sub_axis_info = part;
            next = number_end;
        }
        ref_pointers[list.n_axes++] = ref;
        if (next >= end) goto wrong;
    }
    if (at < end && *at == '}' && list.n_axes) return read_mesh_axes(arena, &list, to);
wrong:
    return ct_error(CT_CODE_UNIMPLEMENTED,
                    "groups of devices must be {{0,1},{2,3}}, [2,4]<=[8] or mesh['x'=2] {'x'}, found %.*s",
                    (int)CT_MIN(length, (size_t)80), text);
}
