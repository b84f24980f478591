/* Plugin, client and compilation for a run. */
#include "train/session.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"

ct_status *ct_session_open(const ct_session_opts *opts, ct_session **out_session)
{
    *out_session = NULL;
    ct_session *session = ct_alloc_zeroed(1, sizeof(*session));
    session->num_devices = opts->num_devices ? opts->num_devices : 1;
    session->compile = (ct_compile_opts){.num_partitions = session->num_devices,
                                         .flags = opts->xla_flags,
                                         .num_flags = opts->num_xla_flags,
                                         .cache_folder = opts->cache_folder};
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
    free(session);
}

ct_device *ct_session_device(const ct_session *session, int index)
{
    return ct_client_addressable_device(session->client, (size_t)index);
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

ct_status *ct_session_share(const ct_session *session, const ct_array *array, int dim, ct_buffer **out_buffers,
                            size_t stride)
{
    int count = session->num_devices;
    if (count == 1) return ct_session_replicate(session, array, out_buffers, stride);
    CT_ASSERT(array->sizes[dim] % count == 0);
    ct_array part = *array;
    part.sizes[dim] /= count;
    size_t part_bytes = ct_array_bytes(&part);
    size_t outer = (size_t)ct_num_elements(array->sizes, dim), chunk = part_bytes / outer;
    char *bytes = ct_alloc(part_bytes);
    part.data = bytes;
    ct_status *status = NULL;
    for (int d = 0; d < count && !status; d++) {
        for (size_t i = 0; i < outer; i++)
            memcpy(bytes + i * chunk, (const char *)array->data + (i * (size_t)count + (size_t)d) * chunk, chunk);
        status =
            ct_buffer_from_host(ct_session_device(session, d), &part, NULL, NULL, &out_buffers[(size_t)d * stride]);
    }
    free(bytes);
    return status;
}
