/* Collectives: over which links, for how long.
 *
 * Groups of devices are found on the torus: along mesh axes, along torus axes, or along parts of torus axes. What
 * crosses slices is done in two steps, within each slice over the links, and between slices over the data center's
 * network.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "chips/slice.h"
#include "predict/internal.h"
#include "spmd/links.h"

/* ---- the torus ---- */

/* Sizes whose product is chips, each a power of two but for what is left, as near to each other as can be. */
static bool find_shape(const ct_chip *chip, int64_t chips, int64_t sizes[CT_TORUS_MAX_AXES])
{
    int dims = chip->torus_dims;
    int64_t best = 0;
    for (int64_t x = 1; x * x <= chips; x++) {
        if (chips % x) continue;
        for (int64_t y = dims == 3 ? x : 1; dims == 3 ? x * y * y <= chips : y == 1; y++) {
            if (chips / x % y) continue;
            int64_t z = chips / x / y, surface = dims == 3 ? x * y + y * z + x * z : x + z;
            if (best && surface >= best) continue;
            best = surface;
            int64_t found[] = {x, dims == 3 ? y : z, dims == 3 ? z : 1};
            memcpy(sizes, found, sizeof(found));
        }
    }
    return best > 0;
}

ct_status *ct_predict_torus(const ct_chip *chip, const char *shape, int64_t num_devices, ct_torus *out_torus)
{
    *out_torus = (ct_torus){0};
    int64_t sizes[CT_TORUS_MAX_AXES] = {1, 1, 1, 1}, per_chip = chip->devices_per_chip;
    if (shape) {
        char name[64];
        snprintf(name, sizeof(name), "%s%s%s", strchr(shape, ':') ? "" : chip->name, strchr(shape, ':') ? "" : ":",
                 shape);
        ct_chip_slice slice;
        CT_TRY(ct_chip_slice_parse(name, &slice));
        if (slice.chip != chip)
            return ct_error(CT_CODE_INVALID_ARGUMENT, "the topology must be of the chip %s, found \"%s\"", chip->name,
                            shape);
        memcpy(sizes, slice.sizes, (size_t)slice.num_axes * sizeof(sizes[0]));
    } else if (num_devices < 1 || num_devices % per_chip || num_devices > chip->max_slice_devices ||
               !find_shape(chip, num_devices / per_chip, sizes)) {
        return ct_error(CT_CODE_INVALID_ARGUMENT,
                        "%lld devices are no slice of %s, which has %d per chip and at most %d", (long long)num_devices,
                        chip->name, chip->devices_per_chip, chip->max_slice_devices);
    }
    bool wraps[CT_TORUS_MAX_AXES];
    ct_tpu_slice_wraps(chip->torus_dims, sizes, wraps);
    int order[CT_TORUS_MAX_AXES] = {0, 1, 2,
                                    3}; /* largest first, x before y before z; an axis that is none has size 1 */
    for (int i = 1; i < CT_TORUS_MAX_AXES; i++)
        for (int j = i; j && sizes[order[j]] > sizes[order[j - 1]]; j--) {
            int held = order[j];
            order[j] = order[j - 1];
            order[j - 1] = held;
        }
    for (int i = 0; i < CT_TORUS_MAX_AXES; i++) {
        if (sizes[order[i]] == 1) continue;
        out_torus->sizes[out_torus->num_axes] = sizes[order[i]];
        out_torus->wraps[out_torus->num_axes] = wraps[order[i]];
        out_torus->names[out_torus->num_axes++] = "xyz"[order[i]];
    }
    if (per_chip > 1) {
        out_torus->sizes[out_torus->num_axes] = per_chip;
        out_torus->names[out_torus->num_axes++] = 'c';
    }
    if (!out_torus->num_axes) {
        out_torus->num_axes = 1;
        out_torus->sizes[0] = 1;
        out_torus->names[0] = 'x';
    }
    return NULL;
}

/* ---- groups on the torus ---- */

/* A mesh of the torus' axes, one of them (split) in two: of size outer, and the rest. */
static ct_mesh mesh_of_torus(const ct_torus *torus, int split, int64_t outer)
{
    ct_mesh mesh = {.num_torus = torus->num_axes, .num_devices = 1};
    for (int t = 0; t < torus->num_axes; t++) {
        mesh.torus[t] = torus->sizes[t];
        mesh.num_devices *= torus->sizes[t];
        int64_t sizes[] = {t == split ? outer : torus->sizes[t], t == split ? torus->sizes[t] / outer : 1};
        for (int i = 0; i < 2; i++) {
            if (i && sizes[i] == 1) continue;
            ct_mesh_axis *axis = &mesh.axes[mesh.num_axes++];
            *axis = (ct_mesh_axis){.size = sizes[i], .torus_axis = t};
            axis->name[0] = torus->names[t];
        }
    }
    return mesh;
}

static int mask_of(const ct_hlo_collective *item, const ct_mesh *mesh)
{
    int64_t sizes[CT_MAX_MESH_AXES];
    for (int a = 0; a < mesh->num_axes; a++) sizes[a] = mesh->axes[a].size;
    return ct_hlo_collective_axes(item, mesh->num_axes, sizes);
}

/* The axes that item runs along: in the caller's mesh, in the torus, or in the torus with one axis split. */
static int find_axes(const ct__sim *sim, const ct_hlo_collective *item, ct_mesh *out_mesh)
{
    if (sim->opts->mesh) {
        *out_mesh = *sim->opts->mesh;
        int mask = mask_of(item, out_mesh);
        if (mask >= 0) return mask;
    }
    *out_mesh = sim->torus_mesh;
    int mask = mask_of(item, out_mesh);
    for (int t = 0; t < sim->torus.num_axes && mask < 0; t++)
        for (int64_t outer = 2; outer < sim->torus.sizes[t] && mask < 0; outer++) {
            if (sim->torus.sizes[t] % outer) continue;
            ct_mesh mesh = mesh_of_torus(&sim->torus, t, outer);
            mask = mask_of(item, &mesh);
            if (mask >= 0) *out_mesh = mesh;
        }
    return mask;
}

static const char *axes_text(ct__sim *sim, const ct_mesh *mesh, int mask)
{
    ct_str text;
    ct_str_init(&text);
    for (int a = 0; a < mesh->num_axes; a++)
        if (mask >> a & 1) ct_str_printf(&text, "%s%s", text.length ? "+" : "", mesh->axes[a].name);
    const char *result = ct_arena_strdup(sim->arena, text.data);
    ct_str_deinit(&text);
    return result;
}

/* ---- permutes: along the axes one after the other, the shorter way round ---- */

static double permute_seconds(const ct__sim *sim, const ct_hlo_collective *item, unsigned *resources)
{
    int64_t num_devices = sim->slice_devices, busiest_load[CT_TORUS_MAX_AXES] = {0};
    size_t num_links = (size_t)num_devices * 2 * CT_TORUS_MAX_AXES;
    int32_t *loads = ct_alloc_zeroed(num_links, sizeof(*loads));
    for (size_t p = 0; p < item->num_groups; p++) {
        int64_t from = item->groups[2 * p] % num_devices, to = item->groups[2 * p + 1] % num_devices, stride = 1;
        for (int t = sim->torus.num_axes; t--;) {
            int64_t size = sim->torus.sizes[t], at = from / stride % size, end = to / stride % size;
            int64_t up = (end - at + size) % size;
            bool ascends = sim->torus.wraps[t] ? 2 * up <= size : end > at;
            while (at != end) {
                int64_t here = from + (at - from / stride % size) * stride;
                size_t link = ((size_t)here * CT_TORUS_MAX_AXES + (size_t)t) * 2 + !ascends;
                loads[link]++;
                busiest_load[t] = CT_MAX(busiest_load[t], (int64_t)loads[link]);
                *resources |= 1u << (CT__LINK + 2 * t + !ascends);
                at = (at + (ascends ? 1 : size - 1)) % size;
            }
            from += (end - from / stride % size) * stride;
            stride *= size;
        }
    }
    free(loads);
    double seconds = 0;
    for (int t = 0; t < sim->torus.num_axes; t++) {
        double rate = sim->torus.names[t] == 'c' ? sim->chip->die_bytes_per_s
                                                 : sim->chip->link_bytes_per_s / sim->chip->devices_per_chip;
        seconds = CT_MAX(seconds, (double)busiest_load[t] * (double)item->payload_bytes / rate);
    }
    return seconds;
}

/* ---- one collective ---- */

static double link_seconds(ct__sim *sim, const ct_hlo_collective *item, const char **out_axes, unsigned *resources)
{
    static const ct_links_kind kinds[] = {CT_LINKS_GATHER, CT_LINKS_GATHER, CT_LINKS_REDUCE, CT_LINKS_EXCHANGE,
                                          CT_LINKS_SHIFT};
    ct_mesh mesh;
    int mask = find_axes(sim, item, &mesh), axes[CT_MAX_MESH_AXES], num_axes = 0;
    *out_axes = mask < 0 ? ct_arena_printf(sim->arena, "%zu groups of %zu", item->num_groups, item->group_size)
                         : axes_text(sim, &mesh, mask);
    if (item->kind == CT_HLO_COLLECTIVE_PERMUTE) return permute_seconds(sim, item, resources);
    if (mask < 0) {
        ct__note(sim, "%s runs over groups that are not along axes of the torus: priced as if along all of them",
                 item->name);
        mask = (1 << mesh.num_axes) - 1;
    }
    for (int a = 0; a < mesh.num_axes; a++) {
        if (!(mask >> a & 1)) continue;
        axes[num_axes++] = a;
        *resources |= 3u << (CT__LINK + 2 * mesh.axes[a].torus_axis);
    }
    ct_links links;
    ct_status *status = ct_links_init(sim->chip->name, &mesh, sim->torus.wraps, sim->torus.names, &links);
    CT_ASSERT(!status);
    ct_links_kind kind = kinds[item->kind];
    double bytes = (double)item->payload_bytes;
    return item->is_nd ? ct_links_all_time(&links, kind, num_axes, axes, bytes)
                       : ct_links_ring_time(&links, kind, num_axes, axes, bytes);
}

/* The part of groups that lies in the first slice, and how many slices a group crosses. */
static int64_t restrict_to_slice(ct__sim *sim, ct_hlo_collective *item)
{
    int64_t num_slices = sim->num_devices / sim->slice_devices, crossed = 1;
    if (num_slices == 1) return 1;
    size_t size = item->group_size, count = 0, inner = 0;
    int64_t *groups = CT_ARENA_ARRAY(sim->arena, int64_t, item->num_groups * size);
    for (size_t g = 0; g < item->num_groups; g++) {
        const int64_t *group = item->groups + g * size;
        int64_t slices = 0, first_slice = group[0] / sim->slice_devices;
        size_t here = 0;
        for (size_t i = 0; i < size; i++) {
            bool is_first = true;
            for (size_t j = 0; j < i; j++)
                is_first = is_first && group[j] / sim->slice_devices != group[i] / sim->slice_devices;
            slices += is_first;
            if (group[i] / sim->slice_devices == first_slice) here++;
        }
        crossed = CT_MAX(crossed, slices);
        if (first_slice || (count && here != inner)) continue;
        inner = here;
        for (size_t i = 0; i < size; i++)
            if (!(group[i] / sim->slice_devices)) groups[count++] = group[i];
    }
    if (item->kind == CT_HLO_COLLECTIVE_PERMUTE) return crossed;
    item->groups = groups;
    item->group_size = inner;
    item->num_groups = inner ? count / inner : 0;
    return crossed;
}

/* Bytes that one device sends to other slices; devices: of the group in each of them. */
static double slices_bytes(const ct_hlo_collective *item, int64_t slices, double devices)
{
    double payload = (double)item->payload_bytes, share = (double)(slices - 1) / (double)slices;
    switch (item->kind) {
    case CT_HLO_COLLECTIVE_ALL_GATHER:
    case CT_HLO_COLLECTIVE_REDUCE_SCATTER: return payload / devices * share;
    case CT_HLO_COLLECTIVE_ALL_REDUCE: return 2 * payload / devices * share;
    case CT_HLO_COLLECTIVE_ALL_TO_ALL: return payload * share;
    default: return payload;
    }
}

static void price_one(ct__sim *sim, const ct_hlo_collective *found, ct__priced *to)
{
    ct_prediction *result = sim->result;
    ct_hlo_collective item = *found;
    int64_t slices = restrict_to_slice(sim, &item);
    const char *axes = "";
    double seconds = 0;
    if (item.group_size > 1) seconds = link_seconds(sim, &item, &axes, &to->resources);
    if (slices > 1) {
        seconds += slices_bytes(&item, slices, (double)CT_MAX(item.group_size, (size_t)1)) / sim->chip->dcn_bytes_per_s;
        to->resources |= 1u << CT__SLICES;
        axes = ct_arena_printf(sim->arena, "%s%sslices", axes, axes[0] ? "+" : "");
    }
    result->collectives = ct__grow(sim->arena, result->collectives, result->num_collectives, &sim->collective_capacity,
                                   sizeof(*result->collectives));
    result->collectives[result->num_collectives++] = (ct_predict_collective){
        .kind = item.kind,
        .name = item.name,
        .op_name = item.op_name,
        .axes = axes,
        .waste = item.waste,
        .dtype = ct_arena_strdup(sim->arena, item.dtype),
        .is_async = item.is_async,
        .payload_bytes = (double)item.payload_bytes,
        .wire_bytes = (double)item.wire_bytes,
        .busy = {{seconds}},
    };
    to->seconds += seconds;
    to->bytes += (double)item.payload_bytes;
}

bool ct__price_collectives(ct__sim *sim, const ct_hlo_computation *computation, const ct_hlo_instruction *at,
                           ct__priced *to)
{
    ct_hlo_traffic traffic = {0};
    ct_hlo_traffic_add(sim->arena, computation, at, sim->num_devices, &traffic);
    if (!traffic.num_items) return false;
    to->group = CT_PREDICT_COLLECTIVE;
    to->first_collective = sim->result->num_collectives;
    for (size_t i = 0; i < traffic.num_items; i++) price_one(sim, &traffic.items[i], to);
    to->num_collectives = traffic.num_items;
    return true;
}
