/* What the verbs that open devices share: session options from flags or a recipe, and the environment. */
#ifndef CT_CLI_RUN_H
#define CT_CLI_RUN_H

#include "base/arena.h"
#include "cli/args.h"
#include "train/recipe.h"
#include "train/session.h"

/* Session options of a recipe, in arena. */
ct_session_opts ct_run_recipe_session(ct_arena *arena, const ct_recipe *recipe);

/* Puts a recipe's compile.libtpu_init_args into the environment, if plugin is for libtpu; else warns if it has some. */
void ct_run_libtpu_args(ct_arena *arena, const ct_recipe *recipe, ct_plugin_opts *plugin);

/* What --topology=NAME (may be NULL) and --slices=N (0: not given) say, as overrides of a recipe, behind others; in
 * arena. "cpu:8" are virtual devices of the CPU. Errors: INVALID_ARGUMENT for a name that is none. */
CT_MUST_USE ct_status *ct_run_target_overrides(ct_arena *arena, const ct_args *args, const char *topology,
                                               int64_t num_slices, ct_recipe_load_opts *out_opts);

/* The user's folder of compiled programs, in arena: XDG_CACHE_HOME/ctitan/programs or ~/.cache/ctitan/programs; NULL
 * when there is no home. */
const char *ct_run_cache_folder(ct_arena *arena);

#endif
