/* From an entry to a plan: what the model is, what memory it takes, what is predicted. */
#include "plan/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "chips/slice.h"
#include "pjrt/hlo_text.h"
#include "plan/arrays.h"
#include "plan/compile.h"
#include "plan/fit.h"
#include "train/setup.h"
#include "train/state.h"

static void note(ct_plan *plan, const char *text)
{
    const char **notes = CT_ARENA_ARRAY(&plan->arena, const char *, plan->num_notes + 1);
    for (size_t i = 0; i < plan->num_notes; i++) notes[i] = plan->notes[i];
    notes[plan->num_notes++] = text;
    plan->notes = notes;
}

/* What the recipe says without a compiler. */
static ct_status *describe(ct_plan *plan, const ct_recipe *recipe)
{
    const ct_plan_entry *entry = plan->compiled;
    ct_model *model;
    ct_parallel parallel;
    CT_TRY(ct_recipe_model(recipe, &model));
    ct_status *status =
        ct_recipe_parallel(recipe, model, entry->torus.num_axes, entry->torus.sizes, entry->kind, &parallel);
    if (!status) {
        ct_step_opts step = ct_recipe_step(recipe, &parallel, entry->kind);
        plan->mesh = parallel.mesh;
        plan->model = ct_arena_printf(&plan->arena, "%s %s", recipe->model.name, recipe->model.flavor);
        plan->num_params = ct_model_num_params(&model->config, model->family);
        plan->flops_per_token = ct_model_flops_per_token(model, step.seq_len);
        plan->tokens = (double)(step.batch * step.num_microbatches * step.seq_len);
        plan->model_flops = plan->tokens * plan->flops_per_token;
        double total;
        plan->state_bytes = ct_train_state_bytes(model, &parallel, step.param_dtype, step.moment_dtype, &total);
        char *kernels = ct_step_kernels_text(&step, model);
        plan->kernels = ct_arena_strdup(&plan->arena, kernels);
        free(kernels);
    }
    ct_model_free(model);
    return status;
}

static ct_status *predict(ct_plan *plan, const ct_hlo_module *module, const ct_predict_opts *opts)
{
    plan->module = module;
    plan->arrays = ct__plan_arrays(&plan->arena, module, &plan->num_arrays);
    if (!opts->chip) {
        ct_hlo_traffic *traffic = CT_ARENA_NEW(&plan->arena, ct_hlo_traffic);
        ct_hlo_traffic_find(&plan->arena, module, opts->num_devices, traffic);
        plan->traffic = traffic;
        return NULL;
    }
    return ct_predict(&plan->arena, module, opts, &plan->prediction);
}

static ct_status *fill(ct_plan *plan, const ct_recipe *recipe, const ct_plan_opts *opts)
{
    ct_plan_entry *entry;
    CT_TRY(ct__plan_compile(recipe, opts, &plan->arena, &entry));
    plan->compiled = entry;
    CT_TRY(describe(plan, recipe));
    ct__plan_judge(plan);
    const ct_chip *chip = ct_chip_find(entry->kind);
    if (entry->refusal) {
        plan->why_no_prediction = "the compiler refused the program";
        return NULL;
    }
    if (!chip)
        plan->why_no_prediction = ct_arena_printf(
            &plan->arena, "programs for \"%s\" carry no estimates of time; those for TPUs do (--topology=v6e:4x4)",
            entry->kind);
    ct_hlo_module *module;
    CT_TRY(ct_hlo_parse(&plan->arena, entry->program, entry->num_program_bytes, entry->key, &module));
    ct_predict_opts predict_opts = {.chip = chip,
                                    .torus = &entry->torus,
                                    .mesh = entry->num_slices > 1 ? NULL : &plan->mesh,
                                    .num_devices = entry->num_devices,
                                    .num_slices = entry->num_slices,
                                    .model_flops = plan->model_flops,
                                    .tokens = plan->tokens};
    return predict(plan, module, &predict_opts);
}

static ct_plan *new_plan(const char *name)
{
    ct_plan *plan = ct_alloc_zeroed(1, sizeof(*plan));
    ct_arena_init(&plan->arena);
    plan->name = ct_arena_strdup(&plan->arena, name);
    return plan;
}

ct_status *ct_plan_make(const ct_recipe *recipe, const ct_plan_opts *opts, ct_plan **out_plan)
{
    *out_plan = NULL;
    ct_plan *plan = new_plan(recipe->path ? recipe->path : "recipe");
    ct_status *status = fill(plan, recipe, opts);
    if (status)
        ct_plan_free(plan);
    else
        *out_plan = plan;
    return ct_status_note(status, "planning %s", recipe->path ? recipe->path : "the recipe");
}

/* As many as its collectives speak of; 0: they speak of none. */
static int64_t devices_named(const ct_hlo_module *module)
{
    int64_t last = -1;
    for (size_t c = 0; c < module->num_computations; c++)
        for (size_t i = 0; i < module->computations[c].num_instructions; i++) {
            const ct_hlo_instruction *at = &module->computations[c].instructions[i];
            for (size_t g = 0; g < at->num_groups * at->group_size; g++) last = CT_MAX(last, at->groups[g]);
        }
    return last + 1;
}

static ct_status *fill_from_program(ct_plan *plan, const char *path, const char *chip_or_slice, int num_slices)
{
    ct_predict_opts opts = {.chip = ct_chip_find(chip_or_slice), .num_slices = num_slices};
    ct_torus torus;
    if (strchr(chip_or_slice, ':')) {
        ct_chip_slice slice;
        CT_TRY(ct_chip_slice_parse(chip_or_slice, &slice));
        opts.chip = slice.chip;
        CT_TRY(ct_predict_torus(slice.chip, chip_or_slice, 0, &torus));
        opts.torus = &torus;
    } else if (!opts.chip) {
        return ct_error(CT_CODE_INVALID_ARGUMENT, "the chip must be one of %s, or a slice as v6e:4x4, found \"%s\"",
                        ct_chip_names(), chip_or_slice);
    }
    ct_hlo_module *module;
    CT_TRY(ct_hlo_read_file(&plan->arena, path, &module));
    if (!module->is_scheduled)
        note(plan, "the program is not scheduled: its order, and so what overlaps and what lives at once, is not the "
                   "compiler's");
    int64_t named = devices_named(module), there = CT_MAX(num_slices, 1);
    for (int t = 0; opts.torus && t < torus.num_axes; t++) there *= torus.sizes[t];
    if (opts.torus && named && named != there)
        return ct_error(CT_CODE_INVALID_ARGUMENT, "the program is for %lld devices, but %s%s has %lld",
                        (long long)named, chip_or_slice, num_slices > 1 ? ", in its slices," : "", (long long)there);
    plan->verdict = CT_PLAN_UNKNOWN;
    plan->usable_bytes = opts.chip->usable_bytes;
    return predict(plan, module, &opts);
}

ct_status *ct_plan_from_program(const char *path, const char *chip_or_slice, int num_slices, ct_plan **out_plan)
{
    *out_plan = NULL;
    ct_plan *plan = new_plan(path);
    ct_status *status = fill_from_program(plan, path, chip_or_slice, num_slices);
    if (status)
        ct_plan_free(plan);
    else
        *out_plan = plan;
    return status;
}

void ct_plan_free(ct_plan *plan)
{
    if (!plan) return;
    ct_arena_deinit(&plan->arena);
    free(plan);
}
