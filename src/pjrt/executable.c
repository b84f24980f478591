/* Compiled programs: compiling, loading and freeing. execute.c runs them, inspect.c looks into them. */
#include "pjrt/executable.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "pjrt/compile_cache.h"
#include "pjrt/internal.h"

static void destroy_handles(ct_plugin *plugin, PJRT_LoadedExecutable *loaded, PJRT_Executable *executable)
{
    if (executable) {
        PJRT_Executable_Destroy_Args args = {CT_PJRT_ARGS(PJRT_Executable_Destroy), .executable = executable};
        CT_PJRT_IGNORE(plugin, PJRT_Executable_Destroy, &args);
    }
    if (loaded) {
        PJRT_LoadedExecutable_Destroy_Args args = {CT_PJRT_ARGS(PJRT_LoadedExecutable_Destroy), .executable = loaded};
        CT_PJRT_IGNORE(plugin, PJRT_LoadedExecutable_Destroy, &args);
    }
}

static ct_status *read_counts(ct_executable *executable)
{
    ct_plugin *plugin = executable->plugin;
    PJRT_Executable_NumOutputs_Args outputs = {CT_PJRT_ARGS(PJRT_Executable_NumOutputs),
                                               .executable = executable->executable};
    CT_TRY(CT_PJRT(plugin, PJRT_Executable_NumOutputs, &outputs));
    executable->num_outputs = outputs.num_outputs;
    if (!executable->loaded) return NULL;
    PJRT_LoadedExecutable_AddressableDevices_Args devices = {CT_PJRT_ARGS(PJRT_LoadedExecutable_AddressableDevices),
                                                             .executable = executable->loaded};
    CT_TRY(CT_PJRT(plugin, PJRT_LoadedExecutable_AddressableDevices, &devices));
    executable->num_devices = devices.num_addressable_devices;
    return NULL;
}

ct_status *ct__executable_new(ct_plugin *plugin, ct_client *client, PJRT_LoadedExecutable *loaded,
                              PJRT_Executable *executable, ct_executable **out_executable)
{
    *out_executable = NULL;
    if (!loaded && !executable) return ct_error(CT_CODE_INTERNAL, "the plugin %s gave no executable", plugin->path);
    ct_status *status = NULL;
    if (loaded) {
        PJRT_LoadedExecutable_GetExecutable_Args args = {CT_PJRT_ARGS(PJRT_LoadedExecutable_GetExecutable),
                                                         .loaded_executable = loaded};
        status = CT_PJRT(plugin, PJRT_LoadedExecutable_GetExecutable, &args);
        if (!status && !args.executable)
            status = ct_error(CT_CODE_INTERNAL, "the plugin %s shows no program behind what it loaded", plugin->path);
        executable = args.executable;
    }
    ct_executable made = {.plugin = plugin, .client = client, .loaded = loaded, .executable = executable};
    if (!status) status = read_counts(&made);
    if (status) {
        destroy_handles(plugin, loaded, executable);
        return status;
    }
    if (client) atomic_fetch_add(&client->num_children, 1);
    *out_executable = ct_alloc(sizeof(made));
    **out_executable = made;
    return NULL;
}

void ct_executable_free(ct_executable *executable)
{
    if (!executable) return;
    destroy_handles(executable->plugin, executable->loaded, executable->executable);
    if (executable->client) atomic_fetch_sub(&executable->client->num_children, 1);
    free(executable);
}

ct_status *ct__executable_deserialize(ct_client *client, const void *bytes, size_t size_bytes,
                                      ct_executable **out_executable)
{
    *out_executable = NULL;
    PJRT_Executable_DeserializeAndLoad_Args args = {CT_PJRT_ARGS(PJRT_Executable_DeserializeAndLoad),
                                                    .client = client->client, .serialized_executable = bytes,
                                                    .serialized_executable_size = size_bytes};
    ct_status *status = CT_PJRT(client->plugin, PJRT_Executable_DeserializeAndLoad, &args);
    if (status) return status;
    return ct__executable_new(client->plugin, client, args.loaded_executable, NULL, out_executable);
}

ct_status *ct__executable_serialize(ct_executable *executable, char **out_bytes, size_t *out_size_bytes)
{
    *out_bytes = NULL;
    *out_size_bytes = 0;
    PJRT_Executable_Serialize_Args args = {CT_PJRT_ARGS(PJRT_Executable_Serialize),
                                           .executable = executable->executable};
    CT_TRY(CT_PJRT(executable->plugin, PJRT_Executable_Serialize, &args));
    ct_status *status = NULL;
    if (args.serialized_bytes && args.serialized_bytes_size) {
        *out_bytes = ct_alloc(args.serialized_bytes_size);
        memcpy(*out_bytes, args.serialized_bytes, args.serialized_bytes_size);
        *out_size_bytes = args.serialized_bytes_size;
    } else {
        status = ct_error(CT_CODE_INTERNAL, "the plugin %s serialized a program to nothing", executable->plugin->path);
    }
    if (args.serialized_executable_deleter) args.serialized_executable_deleter(args.serialized_executable);
    return status;
}

PJRT_Program ct__program(const char *text, size_t text_bytes)
{
    return (PJRT_Program){
        .struct_size = PJRT_Program_STRUCT_SIZE,
        .code = (char *)(uintptr_t)text, /* the plugin only reads it */
        .code_size = text_bytes,
        .format = "mlir",
        .format_size = strlen("mlir"),
    };
}

static ct_status *compile(ct_client *client, const char *text, size_t text_bytes, const char *options,
                          size_t options_bytes, ct_executable **out_executable)
{
    PJRT_Program program = ct__program(text, text_bytes);
    PJRT_Client_Compile_Args args = {CT_PJRT_ARGS(PJRT_Client_Compile), .client = client->client, .program = &program,
                                     .compile_options = options, .compile_options_size = options_bytes};
    ct_status *status = CT_PJRT(client->plugin, PJRT_Client_Compile, &args);
    if (status) return status;
    return ct__executable_new(client->plugin, client, args.executable, NULL, out_executable);
}

ct_status *ct__choose_devices(const ct_compile_opts *opts, const ct_device *devices, size_t num_devices,
                              int **out_device_ids)
{
    *out_device_ids = NULL;
    if (opts->num_replicas < 0 || opts->num_partitions < 0)
        return ct_error(CT_CODE_INVALID_ARGUMENT,
                        "a program needs at least one device, found %d replicas, %d partitions", opts->num_replicas,
                        opts->num_partitions);
    size_t count = (size_t)CT_MAX(opts->num_replicas, 1) * (size_t)CT_MAX(opts->num_partitions, 1);
    if (count > num_devices)
        return ct_error(CT_CODE_INVALID_ARGUMENT, "the program is for %zu devices, but there are only %zu", count,
                        num_devices);
    int *device_ids = ct_alloc(count * sizeof(*device_ids));
    for (size_t i = 0; i < count; i++) device_ids[i] = opts->device_ids ? opts->device_ids[i] : devices[i].id;
    *out_device_ids = device_ids;
    return NULL;
}

ct_status *ct_client_compile(ct_client *client, const char *text, size_t text_bytes, const ct_compile_opts *opts,
                             ct_executable **out_executable)
{
    *out_executable = NULL;
    static const ct_compile_opts defaults = {0};
    if (!opts) opts = &defaults;
    int *device_ids = NULL;
    char *options = NULL, *entry = NULL;
    size_t options_bytes;
    ct_status *status = NULL;
    CT_TRY_OUT(ct__choose_devices(opts, client->devices, client->num_devices, &device_ids));
    CT_TRY_OUT(ct__compile_options_encode(opts, device_ids, &options, &options_bytes));
    ct_cache_key key;
    if (opts->cache_folder) {
        key = ct__cache_key(client, text, text_bytes, options, options_bytes);
        entry = ct__cache_path(opts->cache_folder, &key);
        *out_executable = ct__cache_load(client, entry, &key);
        if (*out_executable) {
            (*out_executable)->from_cache = true;
            goto out;
        }
    }
    CT_TRY_OUT(compile(client, text, text_bytes, options, options_bytes, out_executable));
    if (entry) ct__cache_store(*out_executable, opts->cache_folder, entry, &key);
out:
    free(entry);
    free(options);
    free(device_ids);
    return status;
}

ct_status *ct_client_program_key(ct_client *client, const char *text, size_t text_bytes, const ct_compile_opts *opts,
                                 char out_key[33])
{
    out_key[0] = 0;
    int *device_ids;
    char *options = NULL;
    size_t options_bytes;
    CT_TRY(ct__choose_devices(opts, client->devices, client->num_devices, &device_ids));
    ct_status *status = ct__compile_options_encode(opts, device_ids, &options, &options_bytes);
    if (!status) {
        ct_cache_key key = ct__cache_key(client, text, text_bytes, options, options_bytes);
        ct__cache_key_text(&key, out_key);
    }
    free(options);
    free(device_ids);
    return status;
}

/* Programs for CPUs are code for the processor at hand; those for accelerators are the same everywhere. */
static bool is_for_machine(const ct_client *client)
{
    return client && !strcmp(client->platform_name, "cpu");
}

ct_status *ct_executable_save(ct_executable *executable, const char *path)
{
    ct_cache_key key = ct__cache_plugin_key(executable->plugin, is_for_machine(executable->client));
    return ct__cache_write(executable, path, &key);
}

ct_status *ct_executable_load(ct_client *client, const char *path, ct_executable **out_executable)
{
    ct_cache_key key = ct__cache_plugin_key(client->plugin, is_for_machine(client));
    return ct__cache_read(client, path, &key, out_executable);
}

bool ct_executable_is_from_cache(const ct_executable *executable)
{
    return executable->from_cache;
}

size_t ct_executable_num_devices(const ct_executable *executable)
{
    return executable->num_devices;
}

size_t ct_executable_num_outputs(const ct_executable *executable)
{
    return executable->num_outputs;
}
