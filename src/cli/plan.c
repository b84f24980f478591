/* ctitan plan: what a recipe's step will take, before anything is paid for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "cli/args.h"
#include "cli/environment.h"
#include "cli/run.h"
#include "cli/verb.h"
#include "plan/compare.h"
#include "plan/sweep.h"

typedef struct {
    const char *topology, *chip, *from_hlo, *hlo, *save, *cache;
    int64_t num_slices, num_lines, tries_s;
    bool json, no_cache;
    ct_flag_list sweep;
    ct_args *args;
    ct_arena *arena;
    ct_plan_opts opts;
    char scratch[64]; /* a folder of this process alone; "" */
} wishes;

/* ---- what only the command knows ---- */

/* Flags of libtpu's mean nothing to other compilers, and they refuse them. */
static void leave_out_tpu_flags(ct_arena *arena, ct_session_opts *opts)
{
    static const char *const prefixes[] = {"xla_tpu_", "xla_jf_", "xla_sc_", "tpu_"};
    ct_named_value *kept = CT_ARENA_ARRAY(arena, ct_named_value, opts->num_xla_flags + 1);
    size_t count = 0;
    for (size_t i = 0; i < opts->num_xla_flags; i++) {
        bool is_tpu = false;
        for (size_t j = 0; j < CT_COUNT(prefixes); j++)
            is_tpu |= !strncmp(opts->xla_flags[i].name, prefixes[j], strlen(prefixes[j]));
        if (!is_tpu) kept[count++] = opts->xla_flags[i];
    }
    if (count < opts->num_xla_flags)
        ct_warning("%zu flags of compile.xla_flags are for TPUs alone and left out", opts->num_xla_flags - count);
    opts->xla_flags = kept;
    opts->num_xla_flags = count;
}

static ct_session_opts open_session(void *context, ct_arena *arena, const ct_recipe *recipe, bool is_offline)
{
    (void)context;
    if (!is_offline) {
        ct_session_opts opts = ct_run_recipe_session(arena, recipe);
        if (!strcmp(recipe->device.platform, "cpu")) leave_out_tpu_flags(arena, &opts);
        return opts;
    }
    ct_session_opts opts = {.plugin = ct_environment_compiler_opts(arena),
                            .num_devices = (int)recipe->device.count,
                            .innermost = recipe->parallelism.tensor_parallel_degree,
                            .xla_flags = recipe->compile.xla_flags.items,
                            .num_xla_flags = recipe->compile.xla_flags.num_items};
    ct_run_libtpu_args(arena, recipe, &opts.plugin);
    return opts;
}

static void show_progress(void *context, const char *what, double seconds)
{
    const wishes *w = context;
    int whole = (int)(seconds + 0.5);
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\rcompiling for %s: %d s ", what, whole);
    else if (whole % 15 == 0)
        fprintf(stderr, "compiling for %s: %d s\n", what, whole);
    (void)w;
}

/* The folder of entries: of the recipe's cache, of the user's, or one that goes away. */
static ct_status *choose_folder(wishes *w, const ct_recipe *recipe)
{
    const char *cache = recipe->compile.cache_dir;
    if (w->cache) {
        w->opts.folder = w->cache;
        return NULL;
    }
    if (!cache) cache = ct_run_cache_folder(w->arena);
    if (cache && cache[0]) {
        w->opts.folder = ct_arena_printf(w->arena, "%s/plans", cache);
        return NULL;
    }
    const char *temporary = getenv("TMPDIR");
    snprintf(w->scratch, sizeof(w->scratch), "%.40s/ctitan_plan.XXXXXX",
             temporary && temporary[0] ? temporary : "/tmp");
    if (!mkdtemp(w->scratch)) {
        ct_status *status = ct_errno_error("making the folder %s", w->scratch);
        w->scratch[0] = 0;
        return status;
    }
    w->opts.folder = w->scratch;
    return NULL;
}

/* ---- one plan ---- */

static ct_status *load(wishes *w, const char *path, ct_recipe **out_recipe)
{
    ct_recipe_load_opts load;
    *out_recipe = NULL;
    CT_TRY(ct_run_target_overrides(w->arena, w->args, w->topology, w->num_slices, &load));
    CT_TRY(ct_recipe_load(path, &load, out_recipe));
    return w->opts.folder ? NULL : choose_folder(w, *out_recipe);
}

static ct_status *plan_recipe(wishes *w, const char *path, ct_plan **out_plan)
{
    ct_recipe *recipe;
    *out_plan = NULL;
    ct_status *status = load(w, path, &recipe);
    if (!status) status = ct_plan_make(recipe, &w->opts, out_plan);
    if (!status) status = ct_plan_find_changes(*out_plan, recipe, &w->opts, (double)w->tries_s);
    ct_recipe_free(recipe);
    if (isatty(STDERR_FILENO)) fputs("\r", stderr);
    return status;
}

static ct_status *plan_program(const wishes *w, const char *path, ct_plan **out_plan)
{
    const char *slice = w->topology ? w->topology : w->chip;
    *out_plan = NULL;
    if (!slice)
        return ct_error(CT_CODE_INVALID_ARGUMENT,
                        "%s is a compiled program: --chip=v6e or --topology=v6e:4x4 says what it is for", path);
    return ct_plan_from_program(path, slice, (int)w->num_slices, out_plan);
}

static bool ends_with(const char *text, const char *ending)
{
    size_t length = strlen(text), ending_length = strlen(ending);
    return length >= ending_length && !strcmp(text + length - ending_length, ending);
}

/* The compiled program: as text that people read, or as bytes that every tool of XLA does. */
static ct_status *write_program(const ct_plan *plan, const char *path)
{
    if (!plan->compiled || !plan->compiled->program)
        return ct_error(CT_CODE_FAILED_PRECONDITION, "there is no compiled program to write to %s", path);
    if (!ends_with(path, ".txt"))
        return ct_file_write(path, plan->compiled->program, plan->compiled->num_program_bytes);
    ct_str text;
    ct_str_init(&text);
    ct_hlo_print(plan->module, &text);
    ct_status *status = ct_file_write(path, text.data, text.length);
    ct_str_deinit(&text);
    return status;
}

static void print_json(ct_json_writer *writer)
{
    char *text = ct_json_writer_text(writer, true);
    fputs(text, stdout);
    free(text);
    ct_json_writer_free(writer);
}

static void print_plan(const wishes *w, const ct_plan *plan)
{
    if (w->json) {
        ct_json_writer *writer = ct_json_writer_new();
        ct_plan_json(plan, &w->opts, NULL, writer);
        print_json(writer);
        return;
    }
    ct_str text;
    ct_str_init(&text);
    ct_plan_print(plan, &w->opts, &text);
    fputs(text.data, stdout);
    ct_str_deinit(&text);
}

static ct_status *run_one(wishes *w, int *out_code)
{
    ct_plan *plan = NULL;
    ct_status *status =
        w->from_hlo ? plan_program(w, w->from_hlo, &plan) : plan_recipe(w, w->args->positional[0], &plan);
    if (!status) print_plan(w, plan);
    if (!status && w->hlo) status = write_program(plan, w->hlo);
    if (!status && (plan->verdict == CT_PLAN_TOO_LARGE || plan->verdict == CT_PLAN_KERNEL_TOO_LARGE))
        *out_code = CT_EXIT_FAILED;
    ct_plan_free(plan);
    return status;
}

/* ---- two plans ---- */

typedef struct {
    ct_plan *plan;
    ct_json *json;
} side;

/* A recipe, the JSON of a plan, or a compiled program. */
static ct_status *open_side(wishes *w, const char *path, side *out)
{
    if (ends_with(path, ".json")) return ct_json_read(path, &out->json);
    if (ends_with(path, ".toml"))
        CT_TRY(plan_recipe(w, path, &out->plan));
    else
        CT_TRY(plan_program(w, path, &out->plan));
    ct_json_writer *writer = ct_json_writer_new();
    ct_plan_json(out->plan, &w->opts, NULL, writer);
    char *text = ct_json_writer_text(writer, false);
    ct_json_writer_free(writer);
    ct_status *status = ct_json_parse(text, strlen(text), path, &out->json);
    free(text);
    return status;
}

static ct_status *run_two(wishes *w)
{
    side sides[2] = {0};
    ct_status *status = NULL;
    ct_str text;
    ct_str_init(&text);
    for (int i = 0; i < 2 && !status; i++) status = open_side(w, w->args->positional[i], &sides[i]);
    if (!status) {
        ct_plan_side a = {w->args->positional[0], sides[0].plan, ct_json_root(sides[0].json)};
        ct_plan_side b = {w->args->positional[1], sides[1].plan, ct_json_root(sides[1].json)};
        status = ct_plan_compare(&a, &b, (int)w->num_lines, &text);
        fputs(text.data, stdout);
    }
    ct_str_deinit(&text);
    for (int i = 0; i < 2; i++) {
        ct_plan_free(sides[i].plan);
        ct_json_free(sides[i].json);
    }
    return status;
}

/* ---- many plans ---- */

static void show_point(void *context, const ct_sweep *sweep, const ct_sweep_point *point, const ct_plan *plan)
{
    (void)context;
    (void)plan;
    fprintf(stderr, "%s%zu of %zu:", isatty(STDERR_FILENO) ? "\r" : "", (size_t)(point - sweep->points) + 1,
            sweep->num_points);
    for (size_t a = 0; a < sweep->num_axes; a++) fprintf(stderr, " %s=%s", sweep->axes[a].key, point->values[a]);
    if (point->outcome == CT_SWEEP_FITS && point->step_seconds > 0)
        fprintf(stderr, ": %.1f ms, %.0f tokens/s/chip\n", 1e3 * point->step_seconds, point->tokens_per_s_chip);
    else if (point->outcome == CT_SWEEP_FITS)
        fprintf(stderr, ": compiled\n");
    else
        fprintf(stderr, ": %s\n", point->why ? point->why : "does not fit");
}

static ct_status *run_sweep(wishes *w)
{
    ct_recipe *recipe = NULL;
    ct_status *status = NULL;
    ct_sweep_axis axes[CT_COUNT(w->sweep.items)];
    for (size_t i = 0; i < w->sweep.num_items; i++) CT_TRY(ct_sweep_axis_parse(w->arena, w->sweep.items[i], &axes[i]));
    CT_TRY(load(w, w->args->positional[0], &recipe));
    ct_sweep sweep;
    status = ct_plan_sweep(w->arena, recipe, axes, w->sweep.num_items, &w->opts, show_point, w, &sweep);
    if (!status && w->json) {
        ct_json_writer *writer = ct_json_writer_new();
        ct_json_begin_object(writer, NULL);
        ct_json_put_string(writer, "name", w->args->positional[0]);
        ct_sweep_json(&sweep, writer);
        ct_json_end(writer);
        print_json(writer);
    } else if (!status) {
        ct_str text;
        ct_str_init(&text);
        ct_sweep_print(&sweep, &text);
        fputs(text.data, stdout);
        ct_str_deinit(&text);
    }
    ct_recipe_free(recipe);
    return status;
}

/* ---- the verb ---- */

static ct_status *check_wishes(const wishes *w)
{
    size_t num = w->args->num_positional;
    const char *lonely = w->hlo ? "hlo" : w->save ? "save" : NULL;
    if (w->from_hlo ? num : !num)
        return ct_error(CT_CODE_INVALID_ARGUMENT, w->from_hlo ? "--from-hlo takes no recipe" : "a recipe is needed");
    if (w->sweep.num_items && num != 1)
        return ct_error(CT_CODE_INVALID_ARGUMENT, "--sweep takes one recipe, found %zu", num);
    if (lonely && (num != 1 || w->sweep.num_items))
        return ct_error(CT_CODE_INVALID_ARGUMENT, "--%s is for the plan of one recipe", lonely);
    if (w->num_slices < 0 || w->num_lines < 0 || w->num_lines > 10000 || w->tries_s < 0)
        return ct_error(CT_CODE_INVALID_ARGUMENT, "--slices, --lines and --try-seconds must not be negative");
    return NULL;
}

int ct_verb_plan(int argc, char **argv)
{
    wishes w = {.tries_s = 120};
    const ct_flag flags[] = {
        {"topology", CT_FLAG_TEXT, &w.topology,
         "NAME  slice of TPUs to compile for, v6e:16x16, whatever the recipe's device says; cpu:8: virtual devices"},
        {"slices", CT_FLAG_INT, &w.num_slices, "N  as many such slices, joined by the data center's network"},
        {"json", CT_FLAG_BOOL, &w.json, "print JSON"},
        {"lines", CT_FLAG_INT, &w.num_lines, "N  how many of the largest arrays and longest operations; default 10"},
        {"hlo", CT_FLAG_TEXT, &w.hlo,
         "FILE  write the compiled program, as --from-hlo reads it; FILE.txt: as text to look at"},
        {"save", CT_FLAG_TEXT, &w.save, "FILE  write the executable, for ctitan train --compile.executable=FILE"},
        {"sweep", CT_FLAG_LIST, &w.sweep,
         "KEY=V,V  plan with each of the values, all combinations of repeated flags; '+' joins the items of a list"},
        {"try-seconds", CT_FLAG_INT, &w.tries_s,
         "N  seconds for compiling changes that may make it fit; 0: estimates alone; default 120"},
        {"no-cache", CT_FLAG_BOOL, &w.no_cache, "compile even what was compiled before"},
        {"folder", CT_FLAG_TEXT, &w.cache,
         "DIR  where compiled programs are kept; default: plans in compile.cache_dir"},
        {"from-hlo", CT_FLAG_TEXT, &w.from_hlo, "FILE  price a compiled program, of whatever framework"},
        {"chip", CT_FLAG_TEXT, &w.chip, "NAME  of --from-hlo: v4, v5e, v5p, v6e, tpu7x; or say the --topology"},
    };
    ct_args args = {.usage = "ctitan plan RECIPE [--topology=NAME] [--section.key=value ...] [--sweep KEY=V,V]\n"
                             "       ctitan plan A B       (recipes, saved --json or compiled programs)\n"
                             "       ctitan plan --from-hlo=FILE --chip=NAME",
                    .about = "Compiles a recipe's training step for devices that need not be here and says whether it "
                             "fits, how long it will take and why.\nExits with 1 if it does not fit. Nothing is run: "
                             "times are predictions, to compare programs on one chip by (docs/prediction.md).",
                    .flags = flags,
                    .num_flags = CT_COUNT(flags),
                    .max_positional = 2,
                    .other_length = ct_recipe_override_length};
    ct_arena arena;
    ct_arena_init(&arena);
    int code = CT_EXIT_OK;
    ct_status *status = ct_args_parse(&args, argc, argv);
    w.args = &args;
    w.arena = &arena;
    if (!status && !args.wants_help) status = check_wishes(&w);
    if (status) {
        ct_verb_fail("plan", status);
        code = CT_EXIT_USAGE;
    } else if (!args.wants_help) {
        w.opts = (ct_plan_opts){.host = {open_session, show_progress, &w},
                                .recompile = w.no_cache,
                                .save_path = w.save,
                                .num_lines = (int)w.num_lines};
        status = args.num_positional == 2 ? run_two(&w) : w.sweep.num_items ? run_sweep(&w) : run_one(&w, &code);
        int failed = ct_verb_fail("plan", status);
        if (failed) code = failed;
    }
    if (w.scratch[0]) ct_status_free(ct_dir_remove(w.scratch));
    ct_args_deinit(&args);
    ct_arena_deinit(&arena);
    return code;
}
