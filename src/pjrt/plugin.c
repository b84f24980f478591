/* Loading a plugin: find, open, check the table of functions, initialise; once per library and process.
 *
 * The library is opened with RTLD_LOCAL: two plugins carry two copies of XLA, whose symbols must not meet.
 */
#include "pjrt/plugin.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "pjrt/internal.h"
#include "pjrt/plugin_search.h"

static pthread_mutex_t plugins_lock = PTHREAD_MUTEX_INITIALIZER;
static ct_plugin *plugins;

/* Old enough to be there in every plugin of use, and what this module cannot do without; the rest is asked for one by
 * one. */
#define REQUIRED_TABLE_BYTES (offsetof(PJRT_Api, PJRT_Compile) + sizeof(void (*)(void)))

static ct_status *check_table(const char *path, const PJRT_Api *api)
{
    if (!api) return ct_error(CT_CODE_INVALID_ARGUMENT, "GetPjrtApi of %s returned nothing", path);
    if (api->struct_size < offsetof(PJRT_Api, PJRT_Error_Destroy))
        return ct_error(CT_CODE_FAILED_PRECONDITION, "the function table of %s is %zu bytes, too short for a version",
                        path, api->struct_size);
    const PJRT_Api_Version *version = &api->pjrt_api_version;
    if (version->major_version != PJRT_API_MAJOR)
        return ct_error(CT_CODE_FAILED_PRECONDITION, "%s has PJRT API %d.%d; this build needs %d.x", path,
                        version->major_version, version->minor_version, PJRT_API_MAJOR);
    if (api->struct_size < REQUIRED_TABLE_BYTES)
        return ct_error(CT_CODE_FAILED_PRECONDITION,
                        "%s has PJRT API %d.%d with a table of %zu bytes; at least %zu bytes are needed: use a newer "
                        "plugin",
                        path, version->major_version, version->minor_version, api->struct_size,
                        (size_t)REQUIRED_TABLE_BYTES);
    if (!api->PJRT_Error_Destroy || !api->PJRT_Error_Message || !api->PJRT_Error_GetCode)
        return ct_error(CT_CODE_FAILED_PRECONDITION, "%s cannot report errors: its table lacks PJRT_Error_*", path);
    return NULL;
}

static ct_status *open_library(const char *path, const PJRT_Api **out_api)
{
    *out_api = NULL;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return ct_error(ct_path_exists(path) ? CT_CODE_INVALID_ARGUMENT : CT_CODE_NOT_FOUND,
                        "cannot load the plugin: %s", dlerror());
    const PJRT_Api *(*get_api)(void);
    void *symbol = dlsym(library, "GetPjrtApi");
    if (!symbol) {
        dlclose(library);
        return ct_error(CT_CODE_INVALID_ARGUMENT, "%s is no PJRT plugin: it exports no GetPjrtApi", path);
    }
    memcpy(&get_api, &symbol, sizeof(get_api));
    const PJRT_Api *api = get_api();
    CT_TRY(check_table(path, api));
    *out_api = api;
    return NULL;
}

static ct_status *read_attributes(ct_plugin *plugin)
{
    PJRT_Plugin_Attributes_Args args = {CT_PJRT_ARGS(PJRT_Plugin_Attributes)};
    ct_status *status = CT_PJRT(plugin, PJRT_Plugin_Attributes, &args);
    if (ct_status_code(status) == CT_CODE_UNIMPLEMENTED) { /* they are only for people to read */
        ct_status_free(status);
        return NULL;
    }
    if (status) return status;
    plugin->attributes = CT_ARENA_ARRAY(&plugin->arena, ct_named_value, args.num_attributes);
    for (size_t i = 0; i < args.num_attributes; i++)
        plugin->attributes[i] = ct__value_from_pjrt(&plugin->arena, &args.attributes[i]);
    plugin->num_attributes = args.num_attributes;
    const ct_named_value *version =
        ct_named_value_find(plugin->attributes, plugin->num_attributes, "stablehlo_current_version");
    if (version) plugin->stablehlo_version = ct_named_value_text(&plugin->arena, version);
    return NULL;
}

/* Version numbers alone do not tell two builds apart; the file's size does, and on this machine its time. */
static void set_identity(ct_plugin *plugin, const ct_plugin_opts *opts)
{
    struct stat info = {0};
    if (stat(plugin->path, &info)) memset(&info, 0, sizeof(info));
    const ct_named_value *xla = ct_named_value_find(plugin->attributes, plugin->num_attributes, "xla_version");
    plugin->build =
        ct_arena_printf(&plugin->arena, "pjrt %d.%d xla %s stablehlo %s size %lld flags %s %s",
                        plugin->api->pjrt_api_version.major_version, plugin->api->pjrt_api_version.minor_version,
                        xla ? ct_named_value_text(&plugin->arena, xla) : "?",
                        plugin->stablehlo_version ? plugin->stablehlo_version : "?", (long long)info.st_size,
                        opts->xla_flags ? opts->xla_flags : "", opts->libtpu_init_args ? opts->libtpu_init_args : "");
    plugin->identity = ct_arena_printf(&plugin->arena, "%s time %lld.%09ld", plugin->build,
                                       (long long)info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
}

static ct_status *load_path(const char *path, const ct_plugin_opts *opts, ct_plugin **out_plugin)
{
    for (ct_plugin *plugin = plugins; plugin; plugin = plugin->next) {
        if (strcmp(plugin->path, path)) continue;
        *out_plugin = plugin;
        return NULL;
    }
    ct_plugin *plugin = ct_alloc_zeroed(1, sizeof(*plugin));
    plugin->path = ct_strdup(path);
    ct_arena_init(&plugin->arena);
    ct_map_init(&plugin->kernels);
    PJRT_Plugin_Initialize_Args args = {CT_PJRT_ARGS(PJRT_Plugin_Initialize)};
    ct_status *status = open_library(path, &plugin->api);
    if (!status) status = CT_PJRT(plugin, PJRT_Plugin_Initialize, &args);
    if (!status) status = read_attributes(plugin);
    if (status) {
        ct_map_deinit(&plugin->kernels);
        ct_arena_deinit(&plugin->arena);
        free(plugin->path);
        free(plugin);
        return ct_status_note(status, "loading the plugin %s", path);
    }
    set_identity(plugin, opts);
    plugin->next = plugins;
    plugins = plugin;
    *out_plugin = plugin;
    return NULL;
}

ct_status *ct_plugin_load(const ct_plugin_opts *opts, ct_plugin **out_plugin)
{
    *out_plugin = NULL;
    static const ct_plugin_opts defaults = {0};
    if (!opts) opts = &defaults;
    char *found = NULL;
    if (opts->path && opts->path[0])
        found = ct_strdup(opts->path);
    else
        CT_TRY(ct__plugin_find(opts, &found));
    char *path = realpath(found, NULL);
    if (!path) path = ct_strdup(found); /* dlopen says what is wrong with it */
    pthread_mutex_lock(&plugins_lock);
    ct_status *status = load_path(path, opts, out_plugin);
    pthread_mutex_unlock(&plugins_lock);
    free(path);
    free(found);
    return status;
}

const char *ct_plugin_build(const ct_plugin *plugin)
{
    return plugin->build;
}

const char *ct_plugin_path(const ct_plugin *plugin)
{
    return plugin->path;
}

void ct_plugin_api_version(const ct_plugin *plugin, int *out_major, int *out_minor)
{
    *out_major = plugin->api->pjrt_api_version.major_version;
    *out_minor = plugin->api->pjrt_api_version.minor_version;
}

const ct_named_value *ct_plugin_attributes(const ct_plugin *plugin, size_t *out_num_attributes)
{
    *out_num_attributes = plugin->num_attributes;
    return plugin->attributes;
}

const char *ct_plugin_stablehlo_version(const ct_plugin *plugin)
{
    return plugin->stablehlo_version;
}

PJRT_Extension_Base *ct__plugin_extension(const ct_plugin *plugin, PJRT_Extension_Type type)
{
    /* A chain longer than this is a loop. */
    PJRT_Extension_Base *extension = plugin->api->extension_start;
    for (int i = 0; extension && i < 64; i++, extension = extension->next)
        if (extension->type == type) return extension;
    return NULL;
}

bool ct_plugin_has_extension(const ct_plugin *plugin, int type)
{
    return ct__plugin_extension(plugin, (PJRT_Extension_Type)type) != NULL;
}
