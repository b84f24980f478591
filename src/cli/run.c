/* Session options for verbs. */
#include "cli/run.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cli/environment.h"

const char *ct_run_cache_folder(ct_arena *arena)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache && cache[0] == '/') return ct_arena_printf(arena, "%s/ctitan/programs", cache);
    if (home && home[0]) return ct_arena_printf(arena, "%s/.cache/ctitan/programs", home);
    return NULL;
}

void ct_run_libtpu_args(ct_arena *arena, const ct_recipe *recipe, ct_plugin_opts *plugin)
{
    const ct_recipe_flags *flags = &recipe->compile.libtpu_init_args;
    const char *where = ct_recipe_where(recipe, "compile.libtpu_init_args"), *platform = plugin->platform;
    bool is_libtpu = !platform || !strcmp(platform, "tpu"); /* a plugin that is named by its path may be one */
    if (is_libtpu)
        ct_environment_libtpu_args(arena, flags->items, flags->num_items, where, plugin);
    else if (flags->num_items)
        ct_warning("compile.libtpu_init_args (%s) is for libtpu alone: on the platform \"%s\" it does nothing", where,
                   platform);
}

ct_session_opts ct_run_recipe_session(ct_arena *arena, const ct_recipe *recipe)
{
    const char *cache = recipe->compile.cache_dir;
    ct_plugin_opts plugin = ct_environment_plugin_opts(arena, recipe->device.platform, recipe->device.plugin_path);
    ct_run_libtpu_args(arena, recipe, &plugin);
    return (ct_session_opts){.plugin = plugin,
                             .num_devices = (int)recipe->device.count,
                             .innermost = recipe->parallelism.tensor_parallel_degree,
                             .cache_folder = !cache     ? ct_run_cache_folder(arena)
                                             : cache[0] ? cache
                                                        : NULL,
                             .xla_flags = recipe->compile.xla_flags.items,
                             .num_xla_flags = recipe->compile.xla_flags.num_items};
}
