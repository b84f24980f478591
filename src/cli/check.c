/* ctitan check: validates a recipe and builds its program, without a device. */
#include <stdio.h>

#include "base/macros.h"
#include "cli/args.h"
#include "cli/run.h"
#include "cli/verb.h"
#include "train/report.h"
#include "train/report_sharding.h"
#include "train/setup.h"

static void print_bytes(const char *name, double bytes)
{
    printf("%-26s %18.0f bytes (%.2f GiB)\n", name, bytes, bytes / (1 << 30));
}

static void print_report(const ct_recipe *recipe, const ct_train_report *report)
{
    printf("%-26s %s %s\n", "model", recipe->model.name, recipe->model.flavor);
    printf("%-26s %18lld\n", "parameters", (long long)report->num_params);
    if (recipe->lora.rank)
        printf("%-26s %18lld of adapters of rank %lld\n", "trained", (long long)report->num_trained,
               (long long)recipe->lora.rank);
    printf("%-26s %18.0f\n", "FLOPs per token", report->flops_per_token);
    printf("%-26s %18lld\n", "tokens per step", (long long)report->tokens_per_step);
    print_bytes("state", report->state_bytes);
    print_bytes("state per device", report->state_bytes_per_device);
    printf("%-26s %18lld\n", "devices", (long long)recipe->device.count);
    printf("%-26s %s\n", "kernels", report->kernels);
    printf("%-26s %18zu bytes, %d operations printed\n", "program", report->program_bytes, report->num_operations);
}

static ct_status *print_sharding(const ct_recipe *recipe)
{
    ct_str text;
    ct_str_init(&text);
    ct_torus torus;
    const char *kind;
    ct_recipe_torus(recipe, &torus, &kind);
    ct_status *status = ct_sharding_report(recipe, torus.num_axes, torus.sizes, kind, &text);
    if (!status) printf("\n%s", text.data);
    ct_str_deinit(&text);
    return status;
}

static ct_status *check(const ct_args *args, ct_arena *arena, const char *topology, const char *output, bool sharding)
{
    ct_recipe_load_opts load;
    ct_recipe *recipe;
    ct_train_report report;
    CT_TRY(ct_run_target_overrides(arena, args, topology, 0, &load));
    CT_TRY(ct_recipe_load(args->positional[0], &load, &recipe));
    ct_status *status = ct_train_report_make(recipe, output, &report);
    if (!status) print_report(recipe, &report);
    if (!status && sharding) status = print_sharding(recipe);
    ct_recipe_free(recipe);
    return status;
}

int ct_verb_check(int argc, char **argv)
{
    bool sharding = false;
    const char *output = NULL, *topology = NULL;
    const ct_flag flags[] = {
        {"program", CT_FLAG_TEXT, &output, "FILE  write the training step as StableHLO text"},
        {"sharding", CT_FLAG_BOOL, &sharding,
         "where every parameter and placement point lies on the mesh, and every collective of the step"},
        {"topology", CT_FLAG_TEXT, &topology, "NAME  for a slice of TPUs (v6e:4x4), whatever the recipe's device says"},
    };
    ct_args args = {.usage = "ctitan check RECIPE [--section.key=value ...] [--program=FILE] [--sharding] "
                             "[--topology=NAME]",
                    .about =
                        "Checks a recipe, builds its training step and says what it holds. Nothing is compiled and "
                        "no device needed; ctitan plan compiles it, and says what it takes.",
                    .flags = flags,
                    .num_flags = CT_COUNT(flags),
                    .min_positional = 1,
                    .max_positional = 1,
                    .other_length = ct_recipe_override_length};
    ct_arena arena;
    ct_arena_init(&arena);
    int code = CT_EXIT_OK;
    ct_status *status = ct_args_parse(&args, argc, argv);
    if (status) {
        ct_verb_fail("check", status);
        code = CT_EXIT_USAGE;
    } else if (!args.wants_help) {
        code = ct_verb_fail("check", check(&args, &arena, topology, output, sharding));
    }
    ct_args_deinit(&args);
    ct_arena_deinit(&arena);
    return code;
}
