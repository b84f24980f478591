/* The link model: what the busiest link carries, over what it can carry. */
#include "spmd/links.h"

#include "chips/chips.h"

ct_status *ct_links_init(const char *chip, const ct_mesh *mesh, const bool *wraps, const char *names,
                         ct_links *out_links)
{
    *out_links = (ct_links){.num_axes = mesh->num_axes};
    const ct_chip *known = ct_chip_find(chip);
    if (!known) return ct_error(CT_CODE_NOT_FOUND, "the link model knows %s, not \"%s\"", ct_chip_names(), chip);
    double devices_per_chip = 1;
    for (int t = 0; t < mesh->num_torus; t++)
        if (names[t] == 'c') devices_per_chip = (double)mesh->torus[t];
    for (int a = 0; a < mesh->num_axes; a++) {
        int torus_axis = mesh->axes[a].torus_axis;
        int64_t stride = 1;
        for (int b = a + 1; b < mesh->num_axes; b++)
            if (mesh->axes[b].torus_axis == torus_axis) stride *= mesh->axes[b].size;
        double per_device =
            names[torus_axis] == 'c' ? known->die_bytes_per_s : known->link_bytes_per_s / devices_per_chip;
        out_links->sizes[a] = mesh->axes[a].size;
        out_links->torus_axis[a] = torus_axis;
        out_links->bytes_per_s[a] = per_device / (double)stride; /* groups that reach over each other share the links */
        out_links->is_ring[a] = wraps[torus_axis] && stride * mesh->axes[a].size == mesh->torus[torus_axis];
    }
    return NULL;
}

double ct_links_axis_time(const ct_links *links, ct_links_kind kind, int axis, double bytes)
{
    double n = (double)links->sizes[axis], directions = links->is_ring[axis] ? 2 : 1;
    double gather = bytes * (n - 1) / n / directions;
    switch (kind) {
    case CT_LINKS_GATHER: return gather / links->bytes_per_s[axis];
    case CT_LINKS_REDUCE: return 2 * gather / links->bytes_per_s[axis];
    /* Half of the devices send a half of what they hold to the other half, over one link of a line, two of a ring. */
    case CT_LINKS_EXCHANGE: return bytes * n / 4 / directions / links->bytes_per_s[axis];
    case CT_LINKS_SHIFT: return bytes / links->bytes_per_s[axis];
    }
    return 0;
}

/* What an array of bytes has become for the next axis. */
static double shrink(const ct_links *links, ct_links_kind kind, int axis, double bytes)
{
    return kind == CT_LINKS_GATHER || kind == CT_LINKS_REDUCE ? bytes / (double)links->sizes[axis] : bytes;
}

double ct_links_walk_time(const ct_links *links, ct_links_kind kind, int num_axes, const int *axes, double bytes)
{
    double seconds = 0;
    for (int i = 0; i < num_axes; i++) {
        seconds += ct_links_axis_time(links, kind, axes[i], bytes);
        bytes = shrink(links, kind, axes[i], bytes);
    }
    return seconds;
}

double ct_links_parts_time(const ct_links *links, ct_links_kind kind, int num_axes, int num_parts,
                           const int (*walks)[CT_MAX_MESH_AXES], double bytes)
{
    double seconds = 0, parts[CT_MAX_MESH_AXES];
    CT_ASSERT(num_parts > 0 && num_parts <= CT_MAX_MESH_AXES);
    for (int p = 0; p < num_parts; p++) parts[p] = bytes / num_parts;
    for (int step = 0; step < num_axes; step++) {
        double busy[CT_MAX_TORUS] = {0}, busiest = 0; /* parts on the same links take turns */
        for (int p = 0; p < num_parts; p++) {
            int axis = walks[p][step];
            double *links_busy = &busy[links->torus_axis[axis]];
            *links_busy += ct_links_axis_time(links, kind, axis, parts[p]);
            busiest = CT_MAX(busiest, *links_busy);
            parts[p] = shrink(links, kind, axis, parts[p]);
        }
        seconds += busiest;
    }
    return seconds;
}

double ct_links_all_time(const ct_links *links, ct_links_kind kind, int num_axes, const int *axes, double bytes)
{
    int walks[CT_MAX_MESH_AXES][CT_MAX_MESH_AXES] = {{0}};
    for (int p = 0; p < num_axes; p++)
        for (int step = 0; step < num_axes; step++) walks[p][step] = axes[(p + step) % num_axes];
    return num_axes ? ct_links_parts_time(links, kind, num_axes, num_axes, (const int(*)[CT_MAX_MESH_AXES])walks, bytes)
                    : 0;
}

double ct_links_ring_time(const ct_links *links, ct_links_kind kind, int num_axes, const int *axes, double bytes)
{
    if (num_axes == 1) return ct_links_axis_time(links, kind, axes[0], bytes);
    double n = 1, slowest = 0;
    for (int i = 0; i < num_axes; i++) {
        n *= (double)links->sizes[axes[i]];
        if (!i || links->bytes_per_s[axes[i]] < slowest) slowest = links->bytes_per_s[axes[i]];
    }
    if (n < 2) return 0;
    double gather = bytes * (n - 1) / n / 2 / slowest;
    switch (kind) {
    case CT_LINKS_GATHER: return gather;
    case CT_LINKS_REDUCE: return 2 * gather;
    case CT_LINKS_EXCHANGE: return bytes * n / 8 / slowest;
    case CT_LINKS_SHIFT: return bytes / slowest;
    }
    return 0;
}
