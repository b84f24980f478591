/* A PJRT plugin: a shared library that exports GetPjrtApi.
 *
 * A plugin is loaded once and stays until the process ends (its threads cannot be taken out again), so a ct_plugin is
 * borrowed from the process and never freed. Loading the same file twice gives the same object. Thread-safe.
 * Plugins log to stderr unless TF_CPP_MIN_LOG_LEVEL=3 (libtpu: TPU_STDERR_LOG_LEVEL=3) is in the environment before
 * they are loaded; the command sets them.
 */
#ifndef CT_PJRT_PLUGIN_H
#define CT_PJRT_PLUGIN_H

#include "pjrt/value.h"

typedef struct ct_plugin ct_plugin;

typedef struct ct_plugin_opts {
    const char *platform; /* "cpu", "cuda", "tpu"; NULL means "cpu" */
    const char *path;     /* a library to load as it is, whatever the platform; NULL or "" searches */
    /* Folders to search before the built-in ones, nearest first. A plugin is looked for under the names that its wheel
     * gives it, for example <folder>/libtpu/libtpu.so. */
    const char *const *folders;
    size_t num_folders;
    /* The value of the environment's XLA_FLAGS, or NULL. Plugins read it by themselves; here it is only part of the key
     * of cached executables. */
    const char *xla_flags;
    const char *libtpu_init_args; /* the same of LIBTPU_INIT_ARGS */
} ct_plugin_opts;

/* Finds, loads and initialises a plugin.
 * Errors: NOT_FOUND lists every place searched and says how to name a plugin; INVALID_ARGUMENT for an unknown platform
 * or a library that is no plugin; FAILED_PRECONDITION for an API that is too old or incompatible.
 */
CT_MUST_USE ct_status *ct_plugin_load(const ct_plugin_opts *opts, ct_plugin **out_plugin);

const char *ct_plugin_path(const ct_plugin *plugin);

/* What tells two builds of it apart, the flags it was loaded with included, on whatever machine. */
const char *ct_plugin_build(const ct_plugin *plugin);
void ct_plugin_api_version(const ct_plugin *plugin, int *out_major, int *out_minor);

/* What the plugin says of itself, for example xla_version and stablehlo_current_version. */
const ct_named_value *ct_plugin_attributes(const ct_plugin *plugin, size_t *out_num_attributes);

/* "1.13.3", the newest StableHLO that the plugin reads, or NULL when it does not say. */
const char *ct_plugin_stablehlo_version(const ct_plugin *plugin);

/* Whether the plugin has the C API extension of that number ("FFI" is 5). */
bool ct_plugin_has_extension(const ct_plugin *plugin, int type);

#endif
