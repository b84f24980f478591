/* Plugin, client and compilation for a run. */
#include "train/session.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/box.h"
#include "base/clock.h"
#include "base/log.h"
#include "train/chip.h"

/* All the devices in the order of their torus; a part of them as the plugin counts them, on no torus. */
static ct_status *order_devices(ct_session *session, int64_t innermost)
{
    size_t count = (size_t)session->num_devices, num_all = ct_client_num_devices(session->client);
    session->devices = ct_alloc(count * sizeof(*session->devices));
    session->device_ids = ct_alloc(num_all * sizeof(*session->device_ids));
    session->torus = (ct_torus){.num_axes = 1, .sizes = {(int64_t)count}, .names = "-", .num_slices = 1};
    for (size_t i = 0; i < count; i++) {
        session->devices[i] = ct_client_addressable_device(session->client, i);
        session->device_ids[i] = ct_device_id(session->devices[i]);
    }
    session->compile.device_ids = session->device_ids;
    if (count < num_all) return NULL;
    CT_TRY(ct_client_torus(session->client, innermost, &session->torus, session->device_ids));
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < count; j++) {
            ct_device *device = ct_client_addressable_device(session->client, j);
            if (ct_device_id(device) == session->device_ids[i]) session->devices[i] = device;
        }
    return NULL;
}

ct_status *ct_session_open(const ct_session_opts *opts, ct_session **out_session)
{
    *out_session = NULL;
    ct_session *session = ct_alloc_zeroed(1, sizeof(*session));
    ct_arena_init(&session->arena);
    session->num_devices = opts->num_devices ? opts->num_devices : 1;
    session->compile = (ct_compile_opts){.num_partitions = session->num_devices, .cache_folder = opts->cache_folder};
    ct_status *status = ct_plugin_load(&opts->plugin, &session->plugin);
    if (!status) {
        /* one device is every plugin's default; more of them are virtual on the CPU, and elsewhere there already */
        bool is_cpu = !opts->plugin.platform || !strcmp(opts->plugin.platform, "cpu");
        ct_client_opts client = {.device_count = is_cpu && session->num_devices > 1 ? session->num_devices : 0};
        status = ct_client_new(session->plugin, &client, &session->client);
    }
    if (!status && ct_client_num_addressable_devices(session->client) < (size_t)session->num_devices)
        status = ct_error(CT_CODE_FAILED_PRECONDITION, "device.count = %d, but %s has %zu devices; lower device.count",
                          session->num_devices, ct_plugin_path(session->plugin),
                          ct_client_num_addressable_devices(session->client));
    if (!status) {
        const char *kind = ct_device_kind(ct_client_addressable_device(session->client, 0));
        session->compile.flags =
            ct_chip_flags(&session->arena, kind, opts->xla_flags, opts->num_xla_flags, &session->compile.num_flags);
        status = order_devices(session, opts->innermost);
    }
    if (status)
        ct_session_close(session);
    else
        *out_session = session;
    return status;
}

void ct_session_close(ct_session *session)
{
    if (!session) return;
    ct_client_free(session->client);
    ct_arena_deinit(&session->arena);
    free(session->devices);
    free(session->device_ids);
    free(session);
}

ct_device *ct_session_device(const ct_session *session, int index)
{
    return session->devices[index];
}

ct_status *ct_session_compile(ct_session *session, ct_graph *graph, const char *what, ct_executable **out_executable)
{
    *out_executable = NULL;
    ct_str text;
    ct_str_init(&text);
    ct_status *status = ct_graph_print(graph, &text);
    double start = ct_clock_seconds();
    if (!status) status = ct_client_compile(session->client, text.data, text.length, &session->compile, out_executable);
    if (!status && what)
        ct_info("Compiled the %s in %.2f s (%zu KiB of StableHLO%s)", what, ct_clock_seconds() - start,
                text.length / 1024, ct_executable_is_from_cache(*out_executable) ? ", from the cache" : "");
    ct_str_deinit(&text);
    return ct_status_note(status, "compiling the %s", what ? what : graph ? "program" : "");
}

ct_status *ct_session_replicate(const ct_session *session, const ct_array *array, ct_buffer **out_buffers,
                                size_t stride)
{
    for (int d = 0; d < session->num_devices; d++)
        CT_TRY(ct_buffer_from_host(ct_session_device(session, d), array, NULL, NULL, &out_buffers[(size_t)d * stride]));
    return NULL;
}

typedef struct part {
    int64_t offsets[CT_MAX_RANK], valid[CT_MAX_RANK], local[CT_MAX_RANK];
    bool is_empty; /* padding alone */
} part;

static part part_of(const ct_layout *layout, int64_t device)
{
    part p = {0};
    ct_sharding_box(layout->mesh, &layout->sharding, layout->rank, layout->sizes, device, p.offsets, p.valid, p.local);
    for (int i = 0; i < layout->rank; i++) p.is_empty = p.is_empty || !p.valid[i];
    return p;
}

/* Zero, or with scratch zero if it has padding. */
static ct_array new_block(const ct_layout *layout, const part *p, ct_session_scratch *scratch)
{
    if (!scratch) return ct_array_new(layout->dtype, p->local, layout->rank);
    ct_array block = {.dtype = layout->dtype, .rank = layout->rank};
    bool is_padded = false;
    for (int i = 0; i < layout->rank; i++) {
        block.sizes[i] = p->local[i];
        is_padded = is_padded || p->valid[i] != p->local[i];
    }
    block.data = ct_reserve(&scratch->memory, &scratch->size_bytes, ct_array_bytes(&block));
    if (is_padded) memset(block.data, 0, ct_array_bytes(&block));
    return block;
}

ct_status *ct_session_put(const ct_session *session, const ct_layout *layout, ct_session_fill *fill, void *context,
                          ct_session_scratch *scratch, ct_buffer **out_buffers, size_t stride)
{
    CT_ASSERT(layout->mesh->num_devices == session->num_devices);
    for (int d = 0; d < session->num_devices; d++) {
        if (ct_sharding_holder(layout->mesh, &layout->sharding, d) != d) continue;
        part p = part_of(layout, d);
        ct_array block = new_block(layout, &p, scratch);
        ct_status *status = p.is_empty ? NULL : fill(context, p.offsets, p.valid, &block);
        for (int e = d; e < session->num_devices && !status; e++) {
            if (ct_sharding_holder(layout->mesh, &layout->sharding, e) != d) continue;
            ct_device *device = ct_session_device(session, e);
            ct_buffer_opts opts = {0};
            if (layout->on_host) status = ct_device_memory(device, "pinned_host", &opts.memory);
            if (!status) status = ct_buffer_from_host(device, &block, &opts, NULL, &out_buffers[(size_t)e * stride]);
        }
        if (!scratch) ct_array_free(&block);
        CT_TRY(status);
    }
    return NULL;
}

static ct_status *fill_from_array(void *context, const int64_t *offsets, const int64_t *valid, ct_array *block)
{
    const ct_array *array = context;
    ct_box_copy(array->rank, valid, ct_dtype_bytes(array->dtype), &(ct_box_side){array->data, array->sizes, offsets},
                &(ct_box_side){block->data, block->sizes, NULL});
    return NULL;
}

ct_status *ct_session_share(const ct_session *session, const ct_array *array, const ct_layout *layout,
                            ct_buffer **out_buffers, size_t stride)
{
    CT_ASSERT(array->rank == layout->rank && array->dtype == layout->dtype);
    if (session->num_devices == 1) return ct_session_replicate(session, array, out_buffers, stride);
    return ct_session_put(session, layout, fill_from_array, (void *)(uintptr_t)array, NULL, out_buffers, stride);
}

size_t ct_session_part_bytes(const ct_layout *layout)
{
    part p = part_of(layout, 0); /* all parts have the same sizes */
    return (size_t)ct_num_elements(p.local, layout->rank) * ct_dtype_bytes(layout->dtype);
}

ct_status *ct_session_fetch_part_to(const ct_layout *layout, ct_buffer *buffer, void *out_bytes)
{
    ct_array shape;
    CT_TRY(ct_buffer_shape(buffer, &shape));
    part p = part_of(layout, 0);
    bool is_right = shape.rank == layout->rank && shape.dtype == layout->dtype;
    for (int i = 0; i < layout->rank; i++) is_right = is_right && shape.sizes[i] == p.local[i];
    if (!is_right) CT_BUG("a device's part has another type or other sizes than its layout says");
    return ct_buffer_to_host(buffer, out_bytes, ct_session_part_bytes(layout), NULL);
}

ct_status *ct_session_fetch_part(const ct_layout *layout, ct_buffer *buffer, ct_array *out_part)
{
    part p = part_of(layout, 0);
    *out_part = ct_array_new(layout->dtype, p.local, layout->rank);
    ct_status *status = ct_session_fetch_part_to(layout, buffer, out_part->data);
    if (status) ct_array_free(out_part);
    return status;
}

ct_status *ct_session_fetch(const ct_session *session, const ct_layout *layout, ct_buffer *const *buffers,
                            size_t stride, ct_array *out_array)
{
    *out_array = ct_array_new(layout->dtype, layout->sizes, layout->rank);
    for (int d = 0; d < session->num_devices; d++) {
        if (ct_sharding_holder(layout->mesh, &layout->sharding, d) != d) continue;
        part p = part_of(layout, d);
        if (p.is_empty) continue;
        ct_array block;
        ct_status *status = ct_session_fetch_part(layout, buffers[(size_t)d * stride], &block);
        if (status) {
            ct_array_free(out_array);
            return status;
        }
        ct_box_copy(layout->rank, p.valid, ct_dtype_bytes(layout->dtype), &(ct_box_side){block.data, block.sizes, NULL},
                    &(ct_box_side){out_array->data, out_array->sizes, p.offsets});
        ct_array_free(&block);
    }
    return NULL;
}
