/* Coordinates to an order: sizes are one more than the largest coordinate, and every place must be taken once. */
#include "pjrt/torus.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "pjrt/internal.h"

/* Without them libtpu looks for TPUs and a metadata server, and allows one process at a time to load it. */
const char *const ct_tpu_offline_environment[] = {
    "TPU_SKIP_MDS_QUERY",
    "1",
    "TPU_WORKER_HOSTNAMES",
    "localhost",
    "TPU_ACCELERATOR_TYPE",
    "v5litepod-4",
    "ALLOW_MULTIPLE_LIBTPU_LOAD",
    "1",
    NULL,
};

void ct_tpu_slice_wraps(int num_axes, const int64_t *sizes, bool *out_wraps)
{
    bool cubes = num_axes == 3;
    for (int i = 0; i < num_axes; i++) cubes = cubes && sizes[i] % 4 == 0;
    for (int i = 0; i < num_axes; i++) out_wraps[i] = num_axes == 3 ? cubes : sizes[i] == 16;
}

/* An order of the axes is better if a suffix has `innermost` devices, then if larger sizes come first. */
static bool suffix_fits(const ct_torus *torus, int64_t innermost)
{
    int64_t product = 1;
    for (int i = torus->num_axes; i-- && product < innermost;) product *= torus->sizes[i];
    return innermost <= 1 || product == innermost;
}

static bool is_better(const ct_torus *a, const ct_torus *b, int64_t innermost)
{
    if (suffix_fits(a, innermost) != suffix_fits(b, innermost)) return suffix_fits(a, innermost);
    for (int i = 0; i < a->num_axes; i++)
        if (a->sizes[i] != b->sizes[i]) return a->sizes[i] > b->sizes[i];
    return strncmp(a->names, b->names, CT_TORUS_MAX_AXES) < 0; /* cores, 'c', are last in both */
}

/* Tries every order of the chip's axes from at on; *best is the best so far. */
static void permute(ct_torus *torus, int at, int num_chip_axes, int64_t innermost, ct_torus *best)
{
    if (at >= num_chip_axes) {
        if (!best->num_axes || is_better(torus, best, innermost)) *best = *torus;
        return;
    }
    for (int i = at; i < num_chip_axes; i++) {
        ct_torus next = *torus;
        next.sizes[at] = torus->sizes[i], next.names[at] = torus->names[i], next.wraps[at] = torus->wraps[i];
        next.sizes[i] = torus->sizes[at], next.names[i] = torus->names[at], next.wraps[i] = torus->wraps[at];
        permute(&next, at + 1, num_chip_axes, innermost, best);
    }
}

static const char axis_names[] = "xyzc";

ct_status *ct__torus_order(const ct_device *devices, size_t num_devices, const bool wraps[4], int64_t innermost,
                           struct ct_torus *out_torus, int *out_device_ids)
{
    *out_torus = (ct_torus){0};
    int64_t num_slices = 1;
    for (size_t i = 0; i < num_devices; i++) num_slices = CT_MAX(num_slices, devices[i].slice + 1);
    int64_t sizes[CT_TORUS_MAX_AXES] = {1, 1, 1, 1};
    bool has_coords = num_devices > 0;
    for (size_t i = 0; i < num_devices; i++) {
        has_coords = has_coords && devices[i].has_coords;
        for (int j = 0; j < CT_TORUS_MAX_AXES; j++) sizes[j] = CT_MAX(sizes[j], devices[i].coords[j] + 1);
    }
    ct_torus torus = {.num_slices = num_slices};
    for (int j = 0; j < CT_TORUS_MAX_AXES && has_coords; j++) {
        if (sizes[j] == 1) continue;
        torus.sizes[torus.num_axes] = sizes[j];
        torus.wraps[torus.num_axes] = wraps[j];
        torus.names[torus.num_axes++] = axis_names[j];
    }
    if (!torus.num_axes && (!has_coords || num_devices == 1)) {
        *out_torus = (ct_torus){.num_axes = 1, .sizes = {(int64_t)num_devices}, .names = "-", .num_slices = 1};
        for (size_t i = 0; i < num_devices && out_device_ids; i++) out_device_ids[i] = devices[i].id;
        return NULL;
    }
    permute(&torus, 0, torus.num_axes - (sizes[3] > 1), innermost, out_torus);

    int64_t num_places = sizes[0] * sizes[1] * sizes[2] * sizes[3] * num_slices;
    if (num_places != (int64_t)num_devices)
        return ct_error(CT_CODE_INTERNAL,
                        "%zu devices have coordinates on %lld grids of %lldx%lldx%lld chips with %lld each",
                        num_devices, (long long)num_slices, (long long)sizes[0], (long long)sizes[1],
                        (long long)sizes[2], (long long)sizes[3]);
    bool *taken = ct_alloc_zeroed(num_devices, sizeof(*taken));
    ct_status *status = NULL;
    for (size_t i = 0; i < num_devices && !status; i++) {
        int64_t place = devices[i].slice;
        for (int j = 0; j < out_torus->num_axes; j++)
            place =
                place * out_torus->sizes[j] + devices[i].coords[strchr(axis_names, out_torus->names[j]) - axis_names];
        if (taken[place]) status = ct_error(CT_CODE_INTERNAL, "%s has the coordinates of another", devices[i].text);
        taken[place] = true;
        if (out_device_ids) out_device_ids[place] = devices[i].id;
    }
    free(taken);
    return status;
}

ct_status *ct_client_torus(const ct_client *client, int64_t innermost, ct_torus *out_torus, int *out_device_ids)
{
    /* A client does not say what wraps: the slice's shape does. Chips with two axes have no z. */
    bool wraps[CT_TORUS_MAX_AXES] = {0};
    int64_t sizes[3] = {1, 1, 1};
    for (size_t i = 0; i < client->num_devices; i++)
        for (int j = 0; j < 3; j++) sizes[j] = CT_MAX(sizes[j], client->devices[i].coords[j] + 1);
    bool is_flat = client->num_devices && strstr(client->devices[0].kind, " lite") != NULL;
    ct_tpu_slice_wraps(is_flat ? 2 : 3, sizes, wraps);
    return ct__torus_order(client->devices, client->num_devices, wraps, innermost, out_torus, out_device_ids);
}

void ct_tpu_slice_torus(int num_axes, const int64_t *sizes, int devices_per_chip, int64_t innermost,
                        ct_torus *out_torus)
{
    ct_device device = {.has_coords = true};
    int64_t all[CT_TORUS_MAX_AXES] = {1, 1, 1, devices_per_chip}, num_devices = devices_per_chip;
    bool wraps[CT_TORUS_MAX_AXES] = {0};
    for (int i = 0; i < num_axes; i++) num_devices *= all[i] = sizes[i];
    ct_tpu_slice_wraps(num_axes, sizes, wraps);
    ct_device *devices = ct_alloc_zeroed((size_t)num_devices, sizeof(*devices));
    for (int64_t d = 0; d < num_devices; d++) {
        int64_t rest = d;
        for (int j = 0; j < CT_TORUS_MAX_AXES; rest /= all[j++]) device.coords[j] = rest % all[j];
        devices[d] = device;
    }
    ct_status *status = ct__torus_order(devices, (size_t)num_devices, wraps, innermost, out_torus, NULL);
    if (status) CT_BUG("a grid that is full is none: %s", ct_status_message(status));
    free(devices);
}
