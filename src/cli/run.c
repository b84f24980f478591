/* Session options for verbs. */
#include "cli/run.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "chips/slice.h"
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

ct_status *ct_run_target_overrides(ct_arena *arena, const ct_args *args, const char *topology, int64_t num_slices,
                                   ct_recipe_load_opts *out_opts)
{
    const char **all = CT_ARENA_ARRAY(arena, const char *, args->num_others + 4);
    size_t count = 0;
    for (; count < args->num_others; count++) all[count] = args->others[count];
    if (num_slices) all[count++] = ct_arena_printf(arena, "--device.num_slices=%lld", (long long)num_slices);
    if (topology && !strncmp(topology, "cpu:", 4)) {
        char *end;
        long long devices = strtoll(topology + 4, &end, 10);
        if (!topology[4] || *end || devices < 1 || devices > 65536)
            return ct_error(CT_CODE_INVALID_ARGUMENT, "--topology=cpu:N wants a number of devices, found \"%s\"",
                            topology);
        all[count++] = "--device.topology=none";
        all[count++] = "--device.platform=cpu";
        all[count++] = ct_arena_printf(arena, "--device.count=%lld", devices);
    } else if (topology) {
        ct_chip_slice slice;
        CT_TRY_NOTE(ct_chip_slice_parse(topology, &slice), "--topology; cpu:8 are virtual devices of the CPU");
        all[count++] = ct_arena_printf(arena, "--device.topology=%s", topology);
        all[count++] = "--device.count=none"; /* as many as it has */
    }
    *out_opts = (ct_recipe_load_opts){.overrides = all, .num_overrides = count};
    return NULL;
}
