/* Topologies: their devices are read once; compiling is PJRT_Compile. */
#include "pjrt/topology.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "pjrt/compile_cache.h"
#include "pjrt/internal.h"
#include "pjrt/torus.h"

struct ct_topology {
    ct_plugin *plugin;
    PJRT_TopologyDescription *topology;
    ct_arena arena;
    const char *platform_name;
    const char *platform_version;
    ct_device *devices; /* id, kind and text only */
    size_t num_devices;
    bool wraps[CT_TORUS_MAX_AXES];
};

static ct_status *describe(ct_topology *topology)
{
    ct_plugin *plugin = topology->plugin;
    PJRT_TopologyDescription_PlatformName_Args name = {CT_PJRT_ARGS(PJRT_TopologyDescription_PlatformName),
                                                       .topology = topology->topology};
    PJRT_TopologyDescription_PlatformVersion_Args version = {CT_PJRT_ARGS(PJRT_TopologyDescription_PlatformVersion),
                                                             .topology = topology->topology};
    PJRT_TopologyDescription_GetDeviceDescriptions_Args devices = {
        CT_PJRT_ARGS(PJRT_TopologyDescription_GetDeviceDescriptions), .topology = topology->topology};
    CT_TRY(CT_PJRT(plugin, PJRT_TopologyDescription_PlatformName, &name));
    CT_TRY(CT_PJRT(plugin, PJRT_TopologyDescription_PlatformVersion, &version));
    CT_TRY(CT_PJRT(plugin, PJRT_TopologyDescription_GetDeviceDescriptions, &devices));
    topology->platform_name = ct_arena_strndup(&topology->arena, name.platform_name, name.platform_name_size);
    topology->platform_version =
        ct_arena_strndup(&topology->arena, version.platform_version, version.platform_version_size);
    topology->devices = CT_ARENA_ARRAY(&topology->arena, ct_device, devices.num_descriptions);
    for (size_t i = 0; i < devices.num_descriptions; i++)
        CT_TRY(ct__device_describe(plugin, &topology->arena, devices.descriptions[i], &topology->devices[i]));
    topology->num_devices = devices.num_descriptions;
    return NULL;
}

/* Reads "v5p:4x4x8"; whether an axis of such a slice is a ring. */
static bool find_rings(const char *name, int64_t out_wraps[3])
{
    static const char *const chips[] = {"v4:", "v5:", "v5p:", "v5e:", "v6e:", "tpu7x:"};
    memset(out_wraps, 0, 3 * sizeof(*out_wraps));
    bool is_known = false;
    for (size_t i = 0; i < CT_COUNT(chips); i++) is_known = is_known || !strncmp(name, chips[i], strlen(chips[i]));
    if (!is_known) return false;
    int64_t sizes[3] = {0};
    int num_sizes = 0;
    char *end = strchr(name, ':');
    do {
        if (num_sizes == 3) return false;
        sizes[num_sizes++] = strtoll(end + 1, &end, 10);
    } while (*end == 'x');
    bool wraps[3], any = false;
    ct_tpu_slice_wraps(num_sizes, sizes, wraps);
    for (int i = 0; i < num_sizes; i++) any |= out_wraps[i] = wraps[i];
    return any && !*end;
}

ct_status *ct_topology_new(ct_plugin *plugin, const char *name, const ct_named_value *options, size_t num_options,
                           ct_topology **out_topology)
{
    *out_topology = NULL;
    ct_topology *topology = ct_alloc_zeroed(1, sizeof(*topology));
    topology->plugin = plugin;
    ct_arena_init(&topology->arena);
    PJRT_NamedValue *values = CT_ARENA_ARRAY(&topology->arena, PJRT_NamedValue, num_options + 1);
    for (size_t i = 0; i < num_options; i++) values[i] = ct__value_to_pjrt(&options[i]);
    int64_t wraps[3];
    const ct_named_value *wrap = ct_named_value_find(options, num_options, "wrap"),
                         rings = {.name = "wrap", .type = CT_VALUE_INT_LIST, .list = wraps, .num_list = 3};
    if (!wrap && find_rings(name, wraps)) values[num_options++] = ct__value_to_pjrt(wrap = &rings);
    for (size_t i = 0; wrap && i < wrap->num_list && i < 3; i++) topology->wraps[i] = wrap->list[i] != 0;
    PJRT_TopologyDescription_Create_Args args = {CT_PJRT_ARGS(PJRT_TopologyDescription_Create), .topology_name = name,
                                                 .topology_name_size = strlen(name), .create_options = values,
                                                 .num_options = num_options};
    ct_status *status = CT_PJRT(plugin, PJRT_TopologyDescription_Create, &args);
    if (!status && !args.topology) status = ct_error(CT_CODE_INTERNAL, "the plugin %s made no topology", plugin->path);
    topology->topology = args.topology;
    if (!status) status = describe(topology);
    if (status) {
        ct_topology_free(topology);
        return ct_status_note(status, "making the topology \"%s\" with %s", name, plugin->path);
    }
    *out_topology = topology;
    return NULL;
}

void ct_topology_free(ct_topology *topology)
{
    if (!topology) return;
    if (topology->topology) {
        PJRT_TopologyDescription_Destroy_Args args = {CT_PJRT_ARGS(PJRT_TopologyDescription_Destroy),
                                                      .topology = topology->topology};
        CT_PJRT_IGNORE(topology->plugin, PJRT_TopologyDescription_Destroy, &args);
    }
    ct_arena_deinit(&topology->arena);
    free(topology);
}

const char *ct_topology_platform_name(const ct_topology *topology)
{
    return topology->platform_name;
}

const char *ct_topology_platform_version(const ct_topology *topology)
{
    return topology->platform_version;
}

size_t ct_topology_num_devices(const ct_topology *topology)
{
    return topology->num_devices;
}

int ct_topology_device_id(const ct_topology *topology, size_t index)
{
    CT_ASSERT(index < topology->num_devices);
    return topology->devices[index].id;
}

const char *ct_topology_device_kind(const ct_topology *topology, size_t index)
{
    CT_ASSERT(index < topology->num_devices);
    return topology->devices[index].kind;
}

const char *ct_topology_device_text(const ct_topology *topology, size_t index)
{
    CT_ASSERT(index < topology->num_devices);
    return topology->devices[index].text;
}

ct_status *ct_topology_torus(const ct_topology *topology, int64_t innermost, ct_torus *out_torus, int *out_device_ids)
{
    return ct__torus_order(topology->devices, topology->num_devices, topology->wraps, innermost, out_torus,
                           out_device_ids);
}

ct_status *ct_topology_program_key(ct_topology *topology, const char *text, size_t text_bytes,
                                   const ct_compile_opts *opts, char out_key[33])
{
    out_key[0] = 0;
    int *device_ids;
    char *options = NULL;
    size_t options_bytes;
    CT_TRY(ct__choose_devices(opts, topology->devices, topology->num_devices, &device_ids));
    ct_status *status = ct__compile_options_encode(opts, device_ids, &options, &options_bytes);
    if (!status) {
        ct_cache_key key = ct__cache_topology_key(topology->plugin, topology->platform_name, topology->platform_version,
                                                  topology->devices, topology->num_devices, topology->wraps,
                                                  CT_COUNT(topology->wraps), text, text_bytes, options, options_bytes);
        ct__cache_key_text(&key, out_key);
    }
    free(options);
    free(device_ids);
    return status;
}

ct_status *ct_topology_compile(ct_topology *topology, const char *text, size_t text_bytes, const ct_compile_opts *opts,
                               ct_executable **out_executable)
{
    *out_executable = NULL;
    static const ct_compile_opts defaults = {0};
    if (!opts) opts = &defaults;
    if (opts->cache_folder)
        return ct_error(CT_CODE_INVALID_ARGUMENT, "a program for a topology cannot be cached; save it to a file");
    int *device_ids = NULL;
    char *options = NULL;
    size_t options_bytes;
    ct_status *status = NULL;
    CT_TRY_OUT(ct__choose_devices(opts, topology->devices, topology->num_devices, &device_ids));
    CT_TRY_OUT(ct__compile_options_encode(opts, device_ids, &options, &options_bytes));
    PJRT_Program program = ct__program(text, text_bytes);
    PJRT_Compile_Args args = {CT_PJRT_ARGS(PJRT_Compile), .topology = topology->topology, .program = &program,
                              .compile_options = options, .compile_options_size = options_bytes};
    CT_TRY_OUT(CT_PJRT(topology->plugin, PJRT_Compile, &args));
    CT_TRY_OUT(ct__executable_new(topology->plugin, NULL, NULL, args.executable, out_executable));
out:
    free(options);
    free(device_ids);
    return status;
}
