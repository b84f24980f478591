/* Calls into the profiler of a plugin. It has errors of its own, which are freed as soon as their text is read. */
#include "pjrt/profiler.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "pjrt/internal.h"
#include "pjrt/profiler_abi.h"
#include "xla.pb-c.h"

struct ct_profiler {
    const profiler_api *api;
    profiler_object *object;
};

static const profiler_api *api_of(const ct_plugin *plugin)
{
    const profiler_extension *extension =
        (const profiler_extension *)ct__plugin_extension(plugin, (PJRT_Extension_Type)PROFILER_EXTENSION_TYPE);
    if (!extension || extension->struct_size < sizeof(profiler_extension) || !extension->api) return NULL;
    return extension->api->struct_size >= sizeof(profiler_api) ? extension->api : NULL;
}

bool ct_profiler_is_there(const ct_plugin *plugin)
{
    return api_of(plugin) != NULL;
}

static ct_status *take_error(const profiler_api *api, profiler_error *error, const char *what)
{
    if (!error) return NULL;
    profiler_message_args text = {.struct_size = sizeof(text), .error = error};
    api->error_message(&text);
    ct_status *status = ct_error(CT_CODE_INTERNAL, "the plugin's profiler cannot %s: %.*s", what,
                                 (int)text.message_size, text.message ? text.message : "");
    profiler_error_args args = {.struct_size = sizeof(args), .error = error};
    api->error_destroy(&args);
    return status;
}

static ct_status *free_profiler(ct_profiler *profiler)
{
    profiler_args args = {.struct_size = sizeof(args), .profiler = profiler->object};
    ct_status *status = profiler->object ? take_error(profiler->api, profiler->api->destroy(&args), "end") : NULL;
    free(profiler);
    return status;
}

/* What JAX asks for: devices, the host down to the runtime's calls, and the programs, which XProf names ops after. */
static size_t pack_options(uint8_t bytes[32])
{
    Xla__ProfileOptions options = XLA__PROFILE_OPTIONS__INIT;
    options.version = 1;
    options.device_tracer_level = 1;
    options.host_tracer_level = 2;
    options.enable_hlo_proto = true;
    CT_ASSERT(xla__profile_options__get_packed_size(&options) <= 32);
    return xla__profile_options__pack(&options, bytes);
}

ct_status *ct_profiler_start(const ct_plugin *plugin, ct_profiler **out_profiler)
{
    *out_profiler = NULL;
    const profiler_api *api = api_of(plugin);
    if (!api) return ct_error(CT_CODE_UNIMPLEMENTED, "%s has no profiler", ct_plugin_path(plugin));
    uint8_t options[32];
    profiler_create_args create = {
        .struct_size = sizeof(create), .options = (const char *)options, .options_size = pack_options(options)};
    CT_TRY(take_error(api, api->create(&create), "begin"));
    ct_profiler *profiler = ct_alloc_zeroed(1, sizeof(*profiler));
    *profiler = (ct_profiler){.api = api, .object = create.profiler};
    profiler_args start = {.struct_size = sizeof(start), .profiler = profiler->object};
    ct_status *status = profiler->object ? take_error(api, api->start(&start), "start")
                                         : ct_error(CT_CODE_INTERNAL, "the plugin made no profiler");
    if (status) return ct_status_first(status, free_profiler(profiler));
    *out_profiler = profiler;
    return NULL;
}

/* How many bytes of a protobuf message are whole fields, none of them numbered 0: XLA's profilers put a zero byte
 * behind theirs, over which strict readers stumble. XSpace has strings and messages alone. */
static size_t whole_fields(const uint8_t *bytes, size_t size)
{
    size_t whole = 0, at = 0;
    while (at < size && bytes[at] >> 3 && (bytes[at] & 0x87) == 2) {
        uint64_t length = 0;
        int shift = 0;
        bool more = true;
        for (at++; more && at < size && shift < 63; at++, shift += 7) {
            length |= (uint64_t)(bytes[at] & 0x7f) << shift;
            more = bytes[at] & 0x80;
        }
        if (more || length > size - at) break;
        whole = at += length;
    }
    return whole;
}

static ct_status *collect(const ct_profiler *profiler, ct_str *out)
{
    profiler_collect_args args = {.struct_size = sizeof(args), .profiler = profiler->object};
    CT_TRY(take_error(profiler->api, profiler->api->collect_data(&args), "tell what it saw"));
    size_t size = args.buffer_size_in_bytes;
    uint8_t *copy = NULL;
    ct_status *status = NULL;
    if (size && !args.buffer) {
        args.buffer = copy = ct_alloc_zeroed(size, 1);
        status = take_error(profiler->api, profiler->api->collect_data(&args), "tell what it saw");
    }
    size_t whole = status ? 0 : whole_fields(args.buffer, size);
    if (!status && whole + 1 < size)
        status = ct_error(CT_CODE_INTERNAL,
                          "the plugin's profiler must hand out an XSpace message of %zu bytes, but only %zu are whole",
                          size, whole);
    if (!status) ct_str_append_n(out, (const char *)args.buffer, whole);
    free(copy);
    return status;
}

ct_status *ct_profiler_stop(ct_profiler *profiler, ct_str *out)
{
    profiler_args args = {.struct_size = sizeof(args), .profiler = profiler->object};
    ct_status *status = take_error(profiler->api, profiler->api->stop(&args), "stop");
    if (!status) status = collect(profiler, out);
    return ct_status_first(status, free_profiler(profiler));
}
