#include "plan/sweep.h"

#include <stdlib.h>
#include <string.h>

#include "plan/vary.h"
#include "train/setup.h"

enum { MAX_POINTS = 4096 };
#define BATCH "training.local_batch_size"

ct_status *ct_sweep_axis_parse(ct_arena *arena, const char *text, ct_sweep_axis *out_axis)
{
    *out_axis = (ct_sweep_axis){0};
    size_t length = strcspn(text, "="), count = 1;
    if (!length || !text[length])
        return ct_error(CT_CODE_INVALID_ARGUMENT, "--sweep must be key=value,value, found \"%s\"", text);
    const char *at = text + length + 1;
    for (const char *c = at; *c; c++) count += *c == ',';
    const char **values = CT_ARENA_ARRAY(arena, const char *, count);
    for (size_t i = 0; i < count; i++) {
        size_t end = strcspn(at, ",");
        char *value = ct_arena_strndup(arena, at, end);
        if (!strncmp(text, "activation_checkpoint.", strlen("activation_checkpoint.")))
            for (char *c = value; *c; c++)
                if (*c == '+') *c = ',';
        for (size_t j = 0; j < i; j++)
            if (!strcmp(values[j], value))
                return ct_error(CT_CODE_INVALID_ARGUMENT, "--sweep %s has the value \"%s\" twice", text, value);
        values[i] = value;
        at += end + (at[end] == ',');
    }
    *out_axis = (ct_sweep_axis){ct_arena_strndup(arena, text, length), values, count};
    return NULL;
}

static ct_status *vary(ct_arena *arena, const ct_recipe *recipe, const ct_sweep *sweep, const ct_sweep_point *point,
                       ct_recipe **out_recipe)
{
    const char **overrides = CT_ARENA_ARRAY(arena, const char *, sweep->num_axes + 1);
    for (size_t a = 0; a < sweep->num_axes; a++)
        overrides[a] = ct_arena_printf(arena, "--%s=%s", sweep->axes[a].key, point->values[a]);
    return ct__recipe_vary(recipe, overrides, sweep->num_axes, out_recipe);
}

/* All that can be found without a compiler. */
static ct_status *check(ct_arena *arena, const ct_recipe *recipe, const ct_sweep *sweep, const ct_sweep_point *point)
{
    ct_recipe *varied;
    ct_model *model = NULL;
    ct_parallel parallel;
    CT_TRY(vary(arena, recipe, sweep, point, &varied));
    ct_status *status = ct_recipe_model(varied, &model);
    if (!status) status = ct_recipe_parallel(varied, model, 0, NULL, NULL, &parallel);
    ct_model_free(model);
    ct_recipe_free(varied);
    return status;
}

static ct_status *make_points(ct_arena *arena, ct_sweep *sweep)
{
    sweep->num_points = 1;
    for (size_t a = 0; a < sweep->num_axes; a++) {
        for (size_t b = 0; b < a; b++)
            if (!strcmp(sweep->axes[a].key, sweep->axes[b].key))
                return ct_error(CT_CODE_INVALID_ARGUMENT, "--sweep has the key %s twice", sweep->axes[a].key);
        sweep->num_points *= sweep->axes[a].num_values;
        if (sweep->num_points > MAX_POINTS)
            return ct_error(CT_CODE_INVALID_ARGUMENT, "a sweep has at most %d points; sweep fewer values", MAX_POINTS);
    }
    sweep->points = CT_ARENA_ARRAY(arena, ct_sweep_point, sweep->num_points);
    for (size_t i = 0; i < sweep->num_points; i++) {
        size_t rest = i;
        sweep->points[i].values = CT_ARENA_ARRAY(arena, const char *, sweep->num_axes + 1);
        for (size_t a = sweep->num_axes; a--; rest /= sweep->axes[a].num_values)
            sweep->points[i].values[a] = sweep->axes[a].values[rest % sweep->axes[a].num_values];
    }
    return NULL;
}

/* A point that did not fit with a smaller batch and all else alike. */
static const ct_sweep_point *smaller_failure(const ct_sweep *sweep, const ct_sweep_point *point)
{
    for (const ct_sweep_point *other = sweep->points; other < point; other++) {
        bool is_alike = other->outcome == CT_SWEEP_TOO_LARGE, is_smaller = false;
        for (size_t a = 0; a < sweep->num_axes && is_alike; a++) {
            if (!strcmp(sweep->axes[a].key, BATCH))
                is_smaller = strtoll(other->values[a], NULL, 10) < strtoll(point->values[a], NULL, 10);
            else
                is_alike = !strcmp(other->values[a], point->values[a]);
        }
        if (is_alike && is_smaller) return other;
    }
    return NULL;
}

static void fill(ct_sweep_point *point, const ct_plan *plan)
{
    const ct_prediction *prediction = plan->prediction;
    point->outcome = plan->verdict == CT_PLAN_TOO_LARGE ? CT_SWEEP_TOO_LARGE : CT_SWEEP_FITS;
    if (plan->verdict == CT_PLAN_KERNEL_TOO_LARGE) { /* no matter of the batch */
        point->outcome = CT_SWEEP_FAILED;
        point->why = "a kernel needs more vector memory than it may take";
    } else {
        point->used_bytes = plan->used_bytes;
        point->usable_bytes = plan->usable_bytes;
    }
    point->compile_seconds = plan->compiled->compile_seconds;
    point->was_there = plan->compiled->was_there;
    if (!prediction) return;
    point->step_seconds = prediction->step.at[CT_CHIP_MID];
    point->tokens_per_s_chip = prediction->tokens_per_s_chip[CT_CHIP_MID];
    point->mfu = prediction->mfu[CT_CHIP_MID];
}

ct_status *ct_plan_sweep(ct_arena *arena, const ct_recipe *recipe, const ct_sweep_axis *axes, size_t num_axes,
                         const ct_plan_opts *opts, ct_sweep_done *done, void *context, ct_sweep *out_sweep)
{
    *out_sweep = (ct_sweep){.axes = axes, .num_axes = num_axes, .best = -1};
    ct_sweep *sweep = out_sweep;
    CT_TRY(make_points(arena, sweep));
    for (size_t i = 0; i < sweep->num_points; i++) CT_TRY(check(arena, recipe, sweep, &sweep->points[i]));
    for (size_t i = 0; i < sweep->num_points; i++) {
        ct_sweep_point *point = &sweep->points[i];
        ct_plan *plan = NULL;
        if (smaller_failure(sweep, point)) {
            point->outcome = CT_SWEEP_SKIPPED;
            point->why = "a smaller batch did not fit";
        } else {
            ct_recipe *varied;
            CT_TRY(vary(arena, recipe, sweep, point, &varied));
            ct_status *status = ct_plan_make(varied, opts, &plan);
            if (status) {
                point->outcome = CT_SWEEP_FAILED;
                point->why = ct_arena_strdup(arena, ct_status_message(status));
                ct_status_free(status);
            } else {
                fill(point, plan);
            }
            ct_recipe_free(varied);
        }
        bool is_best = point->outcome == CT_SWEEP_FITS && point->tokens_per_s_chip > 0 &&
                       (sweep->best < 0 || point->tokens_per_s_chip > sweep->points[sweep->best].tokens_per_s_chip);
        if (is_best) sweep->best = (int)i;
        if (done) done(context, sweep, point, plan);
        ct_plan_free(plan);
    }
    return NULL;
}

static const char *outcome_name(ct_sweep_outcome outcome)
{
    static const char *const names[] = {[CT_SWEEP_FITS] = "fits",
                                        [CT_SWEEP_TOO_LARGE] = "too large",
                                        [CT_SWEEP_SKIPPED] = "skipped",
                                        [CT_SWEEP_FAILED] = "failed"};
    return names[outcome];
}

static void put_values(const ct_sweep *sweep, const ct_sweep_point *point, ct_str *out)
{
    for (size_t a = 0; a < sweep->num_axes; a++)
        ct_str_printf(out, "%s--%s=%s", a ? " " : "", sweep->axes[a].key, point->values[a]);
}

static void put_point(const ct_sweep *sweep, const ct_sweep_point *point, ct_str *out)
{
    ct_str_printf(out, "  %-9s", outcome_name(point->outcome));
    if (point->used_bytes)
        ct_str_printf(out, " %9.2f", (double)point->used_bytes / (1 << 30));
    else
        ct_str_printf(out, " %9s", "-");
    if (point->step_seconds > 0)
        ct_str_printf(out, " %9.1f %11.0f %6.1f%%", 1e3 * point->step_seconds, point->tokens_per_s_chip,
                      100 * point->mfu);
    else
        ct_str_printf(out, " %9s %11s %7s", "-", "-", "-");
    ct_str_printf(out, " %8.1f%s  ", point->compile_seconds, point->was_there ? "*" : " ");
    put_values(sweep, point, out);
    if (point->why) ct_str_printf(out, "  (%.*s)", (int)strcspn(point->why, "\n"), point->why);
    ct_str_append_char(out, '\n');
}

void ct_sweep_print(const ct_sweep *sweep, ct_str *out)
{
    ct_str_printf(out, "  %-9s %9s %9s %11s %7s %9s\n", "", "GiB", "step ms", "tok/s/chip", "MFU", "compile s");
    for (size_t i = 0; i < sweep->num_points; i++) put_point(sweep, &sweep->points[i], out);
    ct_str_append(out, "Predicted, at mid efficiency of attention kernels; * compiled at an earlier time\n");
    if (sweep->best >= 0) {
        ct_str_append(out, "The best that fits: ");
        put_values(sweep, &sweep->points[sweep->best], out);
        ct_str_append_char(out, '\n');
        return;
    }
    bool any = false;
    for (size_t i = 0; i < sweep->num_points; i++) any |= sweep->points[i].outcome == CT_SWEEP_FITS;
    ct_str_append(out, any ? "No best: there is no prediction for these devices\n" : "None of them fits\n");
}

static void point_json(const ct_sweep *sweep, const ct_sweep_point *point, const char *key, ct_json_writer *json)
{
    ct_json_begin_object(json, key);
    ct_json_begin_object(json, "values");
    for (size_t a = 0; a < sweep->num_axes; a++) ct_json_put_string(json, sweep->axes[a].key, point->values[a]);
    ct_json_end(json);
    ct_json_put_string(json, "outcome", outcome_name(point->outcome));
    if (point->why) ct_json_put_string(json, "why", point->why);
    ct_json_put_int(json, "used_bytes", point->used_bytes);
    ct_json_put_int(json, "usable_bytes", point->usable_bytes);
    ct_json_put_double(json, "step_seconds", point->step_seconds);
    ct_json_put_double(json, "tokens_per_s_chip", point->tokens_per_s_chip);
    ct_json_put_double(json, "mfu", point->mfu);
    ct_json_put_double(json, "compile_seconds", point->compile_seconds);
    ct_json_put_bool(json, "was_there", point->was_there);
    ct_json_end(json);
}

void ct_sweep_json(const ct_sweep *sweep, ct_json_writer *json)
{
    ct_json_begin_array(json, "points");
    for (size_t i = 0; i < sweep->num_points; i++) point_json(sweep, &sweep->points[i], NULL, json);
    ct_json_end(json);
    if (sweep->best >= 0)
        point_json(sweep, &sweep->points[sweep->best], "best", json);
    else
        ct_json_put_null(json, "best");
}
