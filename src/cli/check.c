/* ctitan check: validates a recipe and builds its program, without a device unless it is to be compiled for one. */
#include <stdio.h>

#include "base/macros.h"
#include "cli/args.h"
#include "cli/environment.h"
#include "cli/run.h"
#include "cli/verb.h"
#include "train/report.h"
#include "train/report_memory.h"
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
    printf("%-26s %s\n", "kernels", report->kernels);
    printf("%-26s %18zu bytes, %d operations printed\n", "program", report->program_bytes, report->num_operations);
}

/* What is asked for beside the summary. */
typedef struct {
    bool sharding, memory, traffic;
    const char *output, *topology_name;
} wishes;

static ct_status *print_details(const ct_recipe *recipe, const wishes *w, ct_topology *topology, ct_arena *arena)
{
    ct_str text;
    ct_str_init(&text);
    ct_torus torus = {0};
    const char *kind = topology ? ct_topology_device_kind(topology, 0) : NULL;
    ct_status *status = NULL;
    if (topology) status = ct_topology_torus(topology, recipe->parallelism.tensor_parallel_degree, &torus, NULL);
    if (!status && w->sharding) status = ct_sharding_report(recipe, torus.num_axes, torus.sizes, kind, &text);
    if (!status && (w->memory || w->traffic)) {
        ct_session_opts session = ct_run_recipe_session(arena, recipe);
        ct_memory_report_opts opts = {.topology = topology, .session = &session, .list = w->traffic};
        if (text.length) ct_str_append_char(&text, '\n');
        status = ct_memory_report(recipe, &opts, &text);
    }
    if (text.length) printf("\n%s", text.data);
    ct_str_deinit(&text);
    return status;
}

/* The recipe, with as many devices as the topology has where one is named. */
static ct_status *load(const ct_args *args, const wishes *w, ct_arena *arena, ct_topology **out_topology,
                       ct_recipe **out_recipe)
{
    const char **overrides = CT_ARENA_ARRAY(arena, const char *, args->num_others + 1);
    size_t num_overrides = 0;
    for (; num_overrides < args->num_others; num_overrides++) overrides[num_overrides] = args->others[num_overrides];
    if (w->topology_name) {
        ct_plugin *plugin;
        ct_plugin_opts opts = ct_environment_compiler_opts(arena);
        CT_TRY_NOTE(ct_plugin_load(&opts, &plugin), "--topology compiles with libtpu");
        CT_TRY(ct_topology_new(plugin, w->topology_name, NULL, 0, out_topology));
        overrides[num_overrides++] =
            ct_arena_printf(arena, "--device.count=%zu", ct_topology_num_devices(*out_topology));
    }
    return ct_recipe_load(args->positional[0],
                          &(ct_recipe_load_opts){.overrides = overrides, .num_overrides = num_overrides}, out_recipe);
}

int ct_verb_check(int argc, char **argv)
{
    wishes w = {0};
    const ct_flag flags[] = {
        {"program", CT_FLAG_TEXT, &w.output, "FILE  write the training step as StableHLO text"},
        {"sharding", CT_FLAG_BOOL, &w.sharding,
         "where every parameter and placement point lies on the mesh, and every collective of the step"},
        {"memory", CT_FLAG_BOOL, &w.memory,
         "compile the step: bytes per device, what is sent, the compiler's estimates"},
        {"traffic", CT_FLAG_BOOL, &w.traffic, "the same, and every collective of the compiled program"},
        {"topology", CT_FLAG_TEXT, &w.topology_name,
         "NAME  for TPUs that need not be here (v6e:4x4), whatever the recipe's device says"},
    };
    ct_args args = {.usage = "ctitan check RECIPE [--section.key=value ...] [--program=FILE] [--sharding] [--memory] "
                             "[--topology=NAME]",
                    .about = "Checks a recipe, builds its training step and says what it holds. Only --memory without "
                             "--topology needs the recipe's devices.",
                    .flags = flags,
                    .num_flags = CT_COUNT(flags),
                    .min_positional = 1,
                    .max_positional = 1,
                    .other_length = ct_recipe_override_length};
    ct_recipe *recipe = NULL;
    ct_topology *topology = NULL;
    ct_arena arena;
    ct_arena_init(&arena);
    int code = CT_EXIT_OK;
    ct_status *status = ct_args_parse(&args, argc, argv);
    if (status) {
        ct_verb_fail("check", status);
        code = CT_EXIT_USAGE;
    } else if (!args.wants_help) {
        ct_train_report report;
        status = load(&args, &w, &arena, &topology, &recipe);
        if (!status) status = ct_train_report_make(recipe, w.output, &report);
        if (!status) {
            CT_ASSERT(recipe);
            print_report(recipe, &report);
            status = print_details(recipe, &w, topology, &arena);
        }
        code = ct_verb_fail("check", status);
    }
    ct_topology_free(topology);
    ct_recipe_free(recipe);
    ct_args_deinit(&args);
    ct_arena_deinit(&arena);
    return code;
}
