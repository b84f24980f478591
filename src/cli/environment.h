/* What the environment says about plugins; only the command reads it. */
#ifndef CT_CLI_ENVIRONMENT_H
#define CT_CLI_ENVIRONMENT_H

#include "base/arena.h"
#include "pjrt/plugin.h"

/* Options to load the plugin of a platform ("cpu", "cuda", "tpu", or a path; NULL or "" is cpu), in arena.
 *
 *   path, if not NULL or empty   names the library, before
 *   CTITAN_PLUGIN_PATH           names the library, before the search in
 *   <folder of ctitan>/../.deps/pjrt, <folder of ctitan>/../lib/ctitan, the Python environment of VIRTUAL_ENV
 *   CTITAN_PLUGIN_LOG=1          leaves the plugin's log on stderr; else its thresholds are set in this process's
 *                                environment, where they are not set already, to what is fatal
 *   XLA_FLAGS                    is read by the plugin, and part of the key of cached programs
 *
 * Warns when the platform is "tpu" and no chip is to be seen: libtpu then waits long for one, without a word.
 */
ct_plugin_opts ct_environment_plugin_opts(ct_arena *arena, const char *platform, const char *path);

/* Does the machine have a TPU? pci_folder is /sys/bus/pci/devices, with a folder per device. */
bool ct_environment_has_tpu(const char *pci_folder);

/* Options to load libtpu for compiling only; puts into this process's environment what that needs. It is searched for
 * as above, under its own name alone: CTITAN_PLUGIN_PATH is about the plugin that programs run on. */
ct_plugin_opts ct_environment_compiler_opts(ct_arena *arena);

/* Joins flags to LIBTPU_INIT_ARGS, which libtpu reads when it is loaded; of a flag that is there already the value
 * stays, with a warning if it is another. Then loads libtpu with opts: it ends the process at a flag that it does not
 * know, and what it prints of that gets a line that says where the flags stand. opts->libtpu_init_args becomes the
 * variable's value, whether there are flags or not. */
void ct_environment_libtpu_args(ct_arena *arena, const ct_named_value *flags, size_t num_flags, const char *where,
                                ct_plugin_opts *opts);

#endif
