/* A training step compiled ahead of the run (`ctitan plan --save`), and loaded in its place (compile.executable).
 *
 *   FILE         the executable, as ct_executable_save writes it
 *   FILE.json    what it was compiled from: the program's hash, flags, devices, the plugin's build, the whole recipe
 *
 * It is used only if all of that is what this run would compile; else the error names what differs.
 */
#ifndef CT_TRAIN_SAVED_STEP_H
#define CT_TRAIN_SAVED_STEP_H

#include "train/recipe.h"
#include "train/session.h"

/* What a step is compiled from. */
typedef struct ct_saved_step {
    const ct_recipe *recipe;
    const ct_str *text; /* StableHLO */
    const char *build;  /* ct_plugin_build */
    const char *kind;   /* of the devices */
    const ct_torus *torus;
    const ct_compile_opts *compile;
} ct_saved_step;

/* Writes both files. Errors: those of saving. */
CT_MUST_USE ct_status *ct_saved_step_write(const ct_saved_step *step, ct_executable *executable, const char *path);

/* Loads path for the session. Errors: FAILED_PRECONDITION naming the differences: recipe keys, flags, devices, plugin;
 * those of reading. */
CT_MUST_USE ct_status *ct_saved_step_load(const ct_saved_step *step, ct_session *session, const char *path,
                                          ct_executable **out_executable);

/* The recipe's step on the session: loaded if compile.executable names it, else compiled. */
CT_MUST_USE ct_status *ct_train_step_compile(const ct_recipe *recipe, ct_session *session, ct_graph *graph,
                                             ct_executable **out_executable);

#endif
