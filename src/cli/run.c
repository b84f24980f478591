/* Session options for verbs. */
#include "cli/run.h"

#include <stdlib.h>

#include "cli/environment.h"

const char *ct_run_cache_folder(ct_arena *arena)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache && cache[0] == '/') return ct_arena_printf(arena, "%s/ctitan/programs", cache);
    if (home && home[0]) return ct_arena_printf(arena, "%s/.cache/ctitan/programs", home);
    return NULL;
}

ct_session_opts ct_run_recipe_session(ct_arena *arena, const ct_recipe *recipe)
{
    const char *cache = recipe->compile.cache_dir;
    return (ct_session_opts){.plugin =
                                 ct_environment_plugin_opts(arena, recipe->device.platform, recipe->device.plugin_path),
                             .num_devices = (int)recipe->device.count,
                             .innermost = recipe->parallelism.tensor_parallel_degree,
                             .cache_folder = !cache     ? ct_run_cache_folder(arena)
                                             : cache[0] ? cache
                                                        : NULL,
                             .xla_flags = recipe->compile.xla_flags.items,
                             .num_xla_flags = recipe->compile.xla_flags.num_items};
}
