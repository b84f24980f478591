/* Reading runs. A metric is any field of the lines that is a number. */
#include "plot/runs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "formats/json.h"

enum { MAX_NAMES = 64 };

static const char *const usual_metrics[] = {"loss", "lr", "tps", "grad_norm"};

typedef struct run {
    const char *name, *path;
    ct_json **lines;
    double *steps;
    size_t num_lines;
} run;

typedef struct names {
    const char *items[MAX_NAMES];
    size_t count;
} names;

/* Slashes at the end, and the file's own name, say nothing. */
static const char *name_of(ct_arena *arena, const char *path)
{
    size_t length = strlen(path);
    static const char file[] = "/metrics.jsonl";
    if (length > strlen(file) && !strcmp(path + length - strlen(file), file)) length -= strlen(file);
    while (length > 1 && path[length - 1] == '/') length--;
    return ct_arena_strndup(arena, path, length);
}

static ct_status *find_file(ct_arena *arena, const char *path, const char **out_path)
{
    *out_path = ct_path_is_dir(path) ? ct_arena_printf(arena, "%s/metrics.jsonl", path) : path;
    if (ct_path_exists(*out_path)) return NULL;
    return ct_error(CT_CODE_NOT_FOUND,
                    "%s must be the dump_folder of a run, with its metrics.jsonl, or such a file; there is no %s", path,
                    *out_path);
}

static ct_status *read_line(run *r, const char *text, size_t length)
{
    char *where = ct_asprintf("%s:%zu", r->path, r->num_lines + 1);
    ct_json *json = NULL;
    int64_t step = 0;
    ct_status *status = ct_json_parse(text, length, where, &json);
    if (!status) status = ct_json_need_int(ct_json_root(json), "step", &step);
    free(where);
    if (status) {
        ct_json_free(json);
        return status;
    }
    r->steps[r->num_lines] = (double)step;
    r->lines[r->num_lines++] = json;
    return NULL;
}

static ct_status *read_run(ct_arena *arena, const char *path, run *r, size_t *num_cut)
{
    char *text;
    size_t size, num_lines = 1;
    r->name = name_of(arena, path);
    CT_TRY(find_file(arena, path, &r->path));
    CT_TRY(ct_file_read(r->path, &text, &size));
    for (size_t i = 0; i < size; i++) num_lines += text[i] == '\n';
    r->lines = CT_ARENA_ARRAY(arena, ct_json *, num_lines);
    r->steps = CT_ARENA_ARRAY(arena, double, num_lines);
    ct_status *status = NULL;
    for (size_t at = 0; at < size && !status;) {
        const char *end = memchr(text + at, '\n', size - at);
        size_t length = end ? (size_t)(end - text) - at : size - at;
        status = read_line(r, text + at, length);
        at += length + 1;
        if (status && at >= size) { /* the last one */
            ct_status_free(status);
            status = NULL;
            ++*num_cut;
        }
    }
    free(text);
    if (status) {
        ct_status *outer = ct_error(CT_CODE_DATA_LOSS,
                                    "%s must hold a line of metrics per logged step: %s; only the "
                                    "last line may be cut off, take the broken one out",
                                    r->path, ct_status_message(status));
        ct_status_free(status);
        return outer;
    }
    if (!r->num_lines)
        return ct_error(CT_CODE_DATA_LOSS, "%s has no whole line yet; the first comes with the run's first step",
                        r->path);
    return NULL;
}

static bool has_name(const names *n, const char *name)
{
    for (size_t i = 0; i < n->count; i++)
        if (!strcmp(n->items[i], name)) return true;
    return false;
}

/* The metrics of all runs. */
static void collect_names(const run *runs, size_t num_runs, names *out)
{
    for (size_t i = 0; i < num_runs; i++)
        for (size_t j = 0; j < runs[i].num_lines; j++) {
            ct_json_iter iter = ct_json_iterate(ct_json_root(runs[i].lines[j]));
            while (ct_json_next(&iter))
                if (ct_json_type_of(iter.value) == CT_JSON_NUMBER && strcmp(iter.key, "step") != 0 &&
                    out->count < MAX_NAMES && !has_name(out, iter.key))
                    out->items[out->count++] = iter.key;
        }
}

static ct_status *unknown_metric(const char *metric, const names *known)
{
    ct_str list;
    ct_str_init(&list);
    for (size_t i = 0; i < known->count; i++) ct_str_printf(&list, "%s%s", i ? ", " : "", known->items[i]);
    ct_status *status = ct_error(CT_CODE_NOT_FOUND, "no run has the metric \"%s\"; there are: %s", metric, list.data);
    ct_str_deinit(&list);
    return status;
}

/* A running mean whose weights fall off exponentially, and sum to one from the first value on. */
static const double *smoothed(ct_arena *arena, const double *y, size_t count, double weight)
{
    double *out = CT_ARENA_ARRAY(arena, double, count), sum = 0, weights = 0;
    for (size_t i = 0; i < count; i++) {
        sum = weight * sum + (1 - weight) * y[i];
        weights = weight * weights + (1 - weight);
        out[i] = sum / weights;
    }
    return out;
}

static ct_plot_curve curve_of(ct_arena *arena, const run *r, const char *metric, double smooth)
{
    double *x = CT_ARENA_ARRAY(arena, double, r->num_lines), *y = CT_ARENA_ARRAY(arena, double, r->num_lines);
    ct_plot_curve curve = {.name = r->name, .x = x, .y = y};
    for (size_t i = 0; i < r->num_lines; i++) {
        double value = NAN;
        ct_json_value field = ct_json_get(ct_json_root(r->lines[i]), metric);
        if (ct_json_type_of(field) != CT_JSON_NUMBER) continue;
        ct_status_free(ct_json_as_double(field, &value));
        if (!isfinite(value)) continue;
        x[curve.num_points] = r->steps[i];
        y[curve.num_points++] = value;
    }
    if (smooth > 0) curve.smooth = smoothed(arena, y, curve.num_points, smooth);
    return curve;
}

static void make_panels(ct_arena *arena, const ct_plot_runs_opts *opts, const run *runs, const names *metrics,
                        ct_plot_panel *panels)
{
    for (size_t m = 0; m < metrics->count; m++) {
        ct_plot_panel *panel = &panels[m];
        panel->metric = ct_arena_strdup(arena, metrics->items[m]);
        panel->curves = CT_ARENA_ARRAY(arena, ct_plot_curve, opts->num_paths);
        panel->num_curves = opts->num_paths;
        for (size_t i = 0; i < opts->num_paths; i++)
            panel->curves[i] = curve_of(arena, &runs[i], panel->metric, opts->smooth);
    }
}

ct_status *ct_plot_runs_read(ct_arena *arena, const ct_plot_runs_opts *opts, ct_plot_panel **out_panels,
                             size_t *out_num_panels)
{
    CT_ASSERT(opts->num_paths && opts->num_metrics <= MAX_NAMES);
    *out_panels = NULL;
    *out_num_panels = 0;
    ct_status *status = NULL;
    size_t num_cut = 0;
    names known = {.count = 0}, chosen = {.count = 0};
    run *runs = CT_ARENA_ARRAY(arena, run, opts->num_paths);
    for (size_t i = 0; i < opts->num_paths; i++) CT_TRY_OUT(read_run(arena, opts->paths[i], &runs[i], &num_cut));
    if (num_cut)
        ct_warning("%zu line%s cut off at the end of a file %s left out: the run was killed, or is writing just now",
                   num_cut, num_cut == 1 ? "" : "s", num_cut == 1 ? "is" : "are");
    collect_names(runs, opts->num_paths, &known);
    for (size_t i = 0; i < opts->num_metrics; i++) {
        if (!has_name(&known, opts->metrics[i])) CT_TRY_OUT(unknown_metric(opts->metrics[i], &known));
        if (!has_name(&chosen, opts->metrics[i])) chosen.items[chosen.count++] = opts->metrics[i];
    }
    for (size_t i = 0; i < CT_COUNT(usual_metrics) && !opts->num_metrics; i++)
        if (has_name(&known, usual_metrics[i])) chosen.items[chosen.count++] = usual_metrics[i];
    if (!chosen.count) CT_TRY_OUT(unknown_metric("loss", &known));
    *out_panels = CT_ARENA_ARRAY(arena, ct_plot_panel, chosen.count);
    *out_num_panels = chosen.count;
    make_panels(arena, opts, runs, &chosen, *out_panels);
out:
    for (size_t i = 0; i < opts->num_paths; i++)
        for (size_t j = 0; j < runs[i].num_lines; j++) ct_json_free(runs[i].lines[j]);
    return status;
}
