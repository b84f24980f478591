/* ctitan train: carries out a recipe. */
#include "train/trainer.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <ct_commit.h>

#include "cli/args.h"
#include "cli/run.h"
#include "cli/verb.h"

static volatile sig_atomic_t stop_requested;

/* The first Ctrl-C or SIGTERM ends the run after the step under way, which is saved; a second of either ends the
 * process at once. */
static void request_stop(int signal_number)
{
    stop_requested = signal_number;
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
}

int ct_verb_train(int argc, char **argv)
{
    ct_args args = {.usage = "ctitan train RECIPE [--section.key=value ...]",
                    .about = "Trains a model as a recipe (a TOML file) says. Any key of the recipe can be overridden.\n"
                             "SIGINT or SIGTERM ends the run after the step under way, saved when checkpoints are "
                             "enabled, with exit\ncode 130 or 143; a second one ends it at once.",
                    .min_positional = 1,
                    .max_positional = 1,
                    .other_length = ct_recipe_override_length};
    ct_arena arena;
    ct_arena_init(&arena);
    ct_recipe *recipe = NULL;
    int code = CT_EXIT_OK;
    ct_status *status = ct_args_parse(&args, argc, argv);
    if (status) {
        ct_verb_fail("train", status);
        status = NULL;
        code = CT_EXIT_USAGE;
        goto out;
    }
    if (args.wants_help) {
        ct_str keys;
        ct_str_init(&keys);
        ct_recipe_help(&keys);
        printf("\n%s", keys.data);
        ct_str_deinit(&keys);
        goto out;
    }
    ct_recipe_load_opts load = {.overrides = args.others, .num_overrides = args.num_others, .needs_data = true};
    CT_TRY_OUT(ct_recipe_load(args.positional[0], &load, &recipe));
    signal(SIGINT, request_stop);
    signal(SIGTERM, request_stop);
    signal(SIGXFSZ, SIG_IGN); /* a full quota is an error of write, not a death */
    const char **command = CT_ARENA_ARRAY(&arena, const char *, (size_t)argc + 1);
    command[0] = "ctitan";
    for (int i = 0; i < argc; i++) command[i + 1] = argv[i];
    ct_train_opts opts = {
        .recipe = recipe,
        .session = ct_run_recipe_session(&arena, recipe),
        .provenance = {.version = CT_VERSION, .commit = CT_COMMIT, .command = command, .num_command = (size_t)argc + 1},
        .stop = &stop_requested};
    status = ct_train(&opts);
out:
    if (status) {
        bool stopped = ct_status_code(status) == CT_CODE_CANCELLED && stop_requested;
        code = ct_verb_fail("train", status);
        if (stopped) code = 128 + stop_requested; /* as a shell reports a signal */
    }
    ct_recipe_free(recipe);
    ct_args_deinit(&args);
    ct_arena_deinit(&arena);
    return code;
}
