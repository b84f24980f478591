/* ctitan check: validates a recipe and builds its program, without a device. */
#include <stdio.h>

#include "cli/args.h"
#include "cli/verb.h"
#include "train/report.h"
#include "train/report_sharding.h"

static void print_bytes(const char *name, double bytes)
{
    printf("%-26s %18.0f bytes (%.2f GiB)\n", name, bytes, bytes / (1 << 30));
}

static void print_report(const ct_recipe *recipe, const ct_train_report *report)
{
    printf("%-26s %s %s\n", "model", recipe->model.name, recipe->model.flavor);
    printf("%-26s %18lld\n", "parameters", (long long)report->num_params);
    printf("%-26s %18.0f\n", "FLOPs per token", report->flops_per_token);
    printf("%-26s %18lld\n", "tokens per step", (long long)report->tokens_per_step);
    print_bytes("state", report->state_bytes);
    print_bytes("state per device", report->state_bytes_per_device);
    printf("%-26s %18lld\n", "devices", (long long)recipe->device.count);
    printf("%-26s %18zu bytes, %d operations printed\n", "program", report->program_bytes, report->num_operations);
}

static ct_status *print_sharding(const ct_recipe *recipe)
{
    ct_str text;
    ct_str_init(&text);
    ct_status *status = ct_sharding_report(recipe, 0, NULL, &text);
    if (!status) printf("\n%s", text.data);
    ct_str_deinit(&text);
    return status;
}

int ct_verb_check(int argc, char **argv)
{
    const char *output = NULL;
    bool sharding = false;
    const ct_flag flags[] = {
        {"program", CT_FLAG_TEXT, &output, "FILE  write the training step as StableHLO text"},
        {"sharding", CT_FLAG_BOOL, &sharding,
         "where every parameter and placement point lies on the mesh, and every collective of the step"},
    };
    ct_args args = {.usage = "ctitan check RECIPE [--section.key=value ...] [--program=FILE] [--sharding]",
                    .about = "Checks a recipe, builds its training step and says what it holds; needs no device.",
                    .flags = flags,
                    .num_flags = CT_COUNT(flags),
                    .min_positional = 1,
                    .max_positional = 1,
                    .other_length = ct_recipe_override_length};
    ct_recipe *recipe = NULL;
    int code = CT_EXIT_OK;
    ct_status *status = ct_args_parse(&args, argc, argv);
    if (status) {
        ct_verb_fail("check", status);
        code = CT_EXIT_USAGE;
    } else if (!args.wants_help) {
        ct_recipe_load_opts load = {.overrides = args.others, .num_overrides = args.num_others};
        ct_train_report report;
        status = ct_recipe_load(args.positional[0], &load, &recipe);
        if (!status) status = ct_train_report_make(recipe, output, &report);
        if (!status) print_report(recipe, &report);
        if (!status && sharding) status = print_sharding(recipe);
        code = ct_verb_fail("check", status);
    }
    ct_recipe_free(recipe);
    ct_args_deinit(&args);
    return code;
}
