/* Sums over the interval since the last line, and the ways out: console, file, progress. */
#include "train/metrics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/append.h"
#include "base/file.h"
#include "base/log.h"
#include "formats/json.h"
#include "train/tensorboard.h"

struct ct_metrics {
    ct_metrics_opts opts;
    ct_append_file *lines; /* metrics.jsonl; NULL: no file */
    ct_tensorboard *board; /* NULL: none */
    int64_t last_step, n_tokens_seen;
    /* since the last line */
    double interval_start_s, interval_data_loading_s, interval_host_s;
    int64_t interval_tokens, interval_steps;
    /* since the first step of this process, which pays for compiling and says nothing about speed */
    double first_end_s;
    int64_t tokens_since_first, steps_since_first;
};

/* ---- the console line ---- */

/* Appends value with `decimals` digits and a comma between groups of three: 1,234.50. */
static void append_grouped(ct_str *out, double value, int decimals)
{
    char text[400];
    int length = snprintf(text, sizeof(text), "%.*f", decimals, fabs(value));
    int num_whole = (int)strspn(text, "0123456789");
    if (signbit(value) && !isnan(value)) ct_str_append_char(out, '-');
    for (int i = 0; i < length; i++) {
        if (i && i < num_whole && (num_whole - i) % 3 == 0) ct_str_append_char(out, ',');
        ct_str_append_char(out, text[i]);
    }
}

/* printf writes the sign of a NaN, Python does not. */
static double plain_nan(double value)
{
    return isnan(value) ? fabs(value) : value;
}

void ct_metrics_format(ct_str *out, const ct_metrics_values *values, bool has_color)
{
    static const char *const colors[] = {
        "\x1b[31m", "\x1b[32m", "\x1b[38;2;180;60;0m", "\x1b[38;2;54;234;195m", "\x1b[34m", "\x1b[36m",
        "\x1b[35m", "\x1b[39m"};
    static const char *const plain[CT_COUNT(colors)] = {"", "", "", "", "", "", "", ""};
    const char *const *color = has_color ? colors : plain;
    ct_str_printf(out, "%sstep: %2lld  ", color[0], (long long)values->step);
    ct_str_printf(out, "%sloss: %8.5f  ", color[1], plain_nan(values->loss));
    ct_str_printf(out, "%sgrad_norm: %7.4f  ", color[2], plain_nan(values->grad_norm));
    ct_str_printf(out, "%smemory: %5.2fGiB(%.2f%%)  ", color[3], values->memory_gib, values->memory_pct);
    ct_str_printf(out, "%stps: ", color[4]);
    append_grouped(out, nearbyint(values->tps), 0);
    ct_str_printf(out, "  %stflops: ", color[5]);
    append_grouped(out, values->tflops, 2);
    ct_str_printf(out, "  %smfu: %.2f%%%s", color[6], plain_nan(values->mfu), color[7]);
}

/* ---- metrics.jsonl ---- */

static char *json_line(const ct_metrics_values *values)
{
    ct_json_writer *writer = ct_json_writer_new();
    ct_json_begin_object(writer, NULL);
    ct_json_put_int(writer, "step", values->step);
    ct_json_put_double(writer, "loss", values->loss);
    ct_json_put_double(writer, "grad_norm", values->grad_norm);
    ct_json_put_double(writer, "lr", values->lr);
    ct_json_put_double(writer, "tps", values->tps);
    ct_json_put_double(writer, "tflops", values->tflops);
    ct_json_put_double(writer, "mfu", values->mfu);
    ct_json_put_double(writer, "memory_gib", values->memory_gib);
    ct_json_put_double(writer, "memory_pct", values->memory_pct);
    ct_json_put_double(writer, "data_loading_s", values->data_loading_s);
    ct_json_put_double(writer, "host_s", values->host_s);
    ct_json_put_double(writer, "step_s", values->step_s);
    ct_json_put_int(writer, "n_tokens_seen", values->n_tokens_seen);
    ct_json_end(writer);
    char *object = ct_json_writer_text(writer, false), *line = ct_asprintf("%s\n", object);
    free(object);
    ct_json_writer_free(writer);
    return line;
}

static ct_status *step_of_line(const char *path, int64_t number, const char *line, size_t length, int64_t *out_step)
{
    char *where = ct_asprintf("%s:%lld", path, (long long)number);
    ct_json *json;
    ct_status *status = ct_json_parse(line, length, where, &json);
    if (!status) status = ct_json_need_int(ct_json_root(json), "step", out_step);
    ct_json_free(json);
    free(where);
    if (!status) return NULL;
    ct_status *outer = ct_error(CT_CODE_DATA_LOSS,
                                "%s:%lld must be a line of metrics to resume behind: %s; move the file away to go on",
                                path, (long long)number, ct_status_message(status));
    ct_status_free(status);
    return outer;
}

/* Leaves in the file the whole lines of steps before first_step. */
static ct_status *keep_lines_before(const char *path, int64_t first_step)
{
    ct_status *status = NULL;
    char *text = NULL;
    size_t size_bytes = 0;
    ct_str kept;
    ct_str_init(&kept);
    if (first_step > 1 && ct_path_exists(path)) CT_TRY_OUT(ct_file_read(path, &text, &size_bytes));
    int64_t number = 0;
    for (size_t at = 0; at < size_bytes;) {
        const char *end = memchr(text + at, '\n', size_bytes - at);
        if (!end) break; /* cut off */
        size_t length = (size_t)(end - text) - at;
        int64_t step;
        CT_TRY_OUT(step_of_line(path, ++number, text + at, length, &step));
        if (step < first_step) ct_str_append_n(&kept, text + at, length + 1);
        at += length + 1;
    }
    status = ct_file_write(path, kept.data, kept.length);
out:
    ct_str_deinit(&kept);
    free(text);
    return status;
}

ct_status *ct_metrics_open(const ct_metrics_opts *opts, ct_metrics **out_metrics)
{
    *out_metrics = NULL;
    CT_ASSERT(opts->log_freq > 0 && opts->num_devices > 0 && opts->first_step > 0 && opts->peak_flops > 0);
    ct_status *status = NULL;
    char *path = NULL;
    ct_metrics *metrics = ct_alloc_zeroed(1, sizeof(*metrics));
    *metrics = (ct_metrics){.opts = *opts,
                            .last_step = opts->first_step - 1,
                            .n_tokens_seen = opts->n_tokens_seen,
                            .interval_start_s = opts->start_s};
    metrics->opts.folder = metrics->opts.tensorboard_folder = NULL; /* the caller's */
    if (opts->folder) {
        path = ct_path_join(opts->folder, "metrics.jsonl");
        CT_TRY_OUT(ct_dir_make(opts->folder));
        CT_TRY_OUT(keep_lines_before(path, opts->first_step));
        CT_TRY_OUT(ct_append_open(path, &metrics->lines));
    }
    if (opts->tensorboard_folder)
        CT_TRY_OUT(ct_tensorboard_open(opts->tensorboard_folder, opts->first_step, &metrics->board));
    *out_metrics = metrics;
    metrics = NULL;
out:
    free(path);
    ct_metrics_close(metrics);
    return status;
}

/* ---- steps ---- */

/* Seconds until the last step, at the speed since the first step of this process; -1 when that is not known yet. */
static double time_left(const ct_metrics *metrics, const ct_metrics_step *step)
{
    double passed_s = step->end_s - metrics->first_end_s;
    if (metrics->steps_since_first == 0 || passed_s <= 0) return -1;
    return passed_s / (double)metrics->steps_since_first * (double)(metrics->opts.num_steps - step->step);
}

/* 12m05s, 3h07m, 2d05h */
static void append_duration(ct_str *out, double seconds)
{
    long long s = (long long)(seconds + 0.5), m = s / 60, h = m / 60;
    if (h >= 24)
        ct_str_printf(out, "%lldd%02lldh", h / 24, h % 24);
    else if (h)
        ct_str_printf(out, "%lldh%02lldm", h, m % 60);
    else
        ct_str_printf(out, "%lldm%02llds", m, s % 60);
}

static void show_progress(const ct_metrics *metrics, const ct_metrics_step *step)
{
    ct_str text;
    ct_str_init(&text);
    ct_str_printf(&text, "step %lld/%lld  loss %.4f", (long long)step->step, (long long)metrics->opts.num_steps,
                  plain_nan(step->loss));
    double left_s = time_left(metrics, step);
    if (left_s >= 0) {
        double passed_s = step->end_s - metrics->first_end_s;
        ct_str_printf(&text, "  %.0f tokens/s  ", (double)metrics->tokens_since_first / passed_s);
        append_duration(&text, left_s);
        ct_str_append(&text, " left");
    }
    ct_log_status("%s", text.data);
    ct_str_deinit(&text);
}

static ct_metrics_values interval_values(const ct_metrics *metrics, const ct_metrics_step *step)
{
    const ct_metrics_opts *opts = &metrics->opts;
    double passed_s = CT_MAX(step->end_s - metrics->interval_start_s, 1e-9); /* a clock's grain, never 0 */
    double tps = (double)metrics->interval_tokens / (passed_s * (double)opts->num_devices);
    ct_metrics_values values = {
        .step = step->step,
        .loss = step->loss,
        .grad_norm = step->grad_norm,
        .lr = step->lr,
        .tps = tps,
        .tflops = opts->flops_per_token * tps / 1e12,
        .mfu = 100 * opts->flops_per_token * tps / opts->peak_flops,
        .memory_gib = (double)step->memory_bytes / (1024.0 * 1024 * 1024),
        .data_loading_s = metrics->interval_data_loading_s / (double)metrics->interval_steps,
        .host_s = metrics->interval_host_s / (double)metrics->interval_steps,
        .step_s = passed_s / (double)metrics->interval_steps,
        .n_tokens_seen = metrics->n_tokens_seen,
    };
    if (step->memory_limit_bytes > 0)
        values.memory_pct = 100 * (double)step->memory_bytes / (double)step->memory_limit_bytes;
    return values;
}

static ct_status *write_line(ct_metrics *metrics, const ct_metrics_step *step)
{
    ct_metrics_values values = interval_values(metrics, step);
    ct_str line;
    ct_str_init(&line);
    ct_metrics_format(&line, &values, !metrics->opts.disable_color_printing);
    double left_s = time_left(metrics, step);
    if (left_s >= 0 && !ct_log_has_status()) {
        ct_str_append(&line, "  eta: ");
        append_duration(&line, left_s);
    }
    ct_info("%s", line.data);
    ct_str_deinit(&line);
    metrics->interval_start_s = step->end_s;
    metrics->interval_data_loading_s = metrics->interval_host_s = 0;
    metrics->interval_tokens = 0;
    metrics->interval_steps = 0;
    if (metrics->board) CT_TRY(ct_tensorboard_values(metrics->board, &values));
    if (!metrics->lines) return NULL;
    char *text = json_line(&values);
    ct_status *status = ct_append_record(metrics->lines, text, strlen(text));
    free(text);
    return status;
}

ct_status *ct_metrics_record(ct_metrics *metrics, const ct_metrics_step *step)
{
    CT_ASSERT(step->step == metrics->last_step + 1);
    metrics->last_step = step->step;
    metrics->n_tokens_seen += step->num_tokens;
    metrics->interval_tokens += step->num_tokens;
    metrics->interval_steps++;
    metrics->interval_data_loading_s += step->data_loading_s;
    metrics->interval_host_s += step->host_s;
    if (step->step == metrics->opts.first_step) {
        metrics->first_end_s = step->end_s;
    } else {
        metrics->tokens_since_first += step->num_tokens;
        metrics->steps_since_first++;
    }
    if (step->step == 1 || step->step % metrics->opts.log_freq == 0) CT_TRY(write_line(metrics, step));
    show_progress(metrics, step);
    return NULL;
}

static ct_status *write_validation(ct_metrics *metrics, const ct_metrics_validation *validation, double tps)
{
    static const char loss_key[] = "validation_metrics/loss", tps_key[] = "validation_metrics/throughput(tps)";
    const ct_event_scalar scalars[] = {{"validation_metrics/global_avg_loss", validation->loss}, {tps_key, tps}};
    if (metrics->board) CT_TRY(ct_tensorboard_scalars(metrics->board, validation->step, scalars, CT_COUNT(scalars)));
    if (!metrics->lines) return NULL;
    ct_json_writer *writer = ct_json_writer_new();
    ct_json_begin_object(writer, NULL);
    ct_json_put_int(writer, "step", validation->step);
    ct_json_put_double(writer, loss_key, validation->loss);
    ct_json_put_double(writer, tps_key, tps);
    ct_json_end(writer);
    char *object = ct_json_writer_text(writer, false), *line = ct_asprintf("%s\n", object);
    ct_json_writer_free(writer);
    ct_status *status = ct_append_record(metrics->lines, line, strlen(line));
    free(object);
    free(line);
    return status;
}

ct_status *ct_metrics_validated(ct_metrics *metrics, const ct_metrics_validation *validation)
{
    double passed_s = CT_MAX(validation->end_s - validation->start_s, 1e-9);
    double tps = (double)validation->num_tokens / (passed_s * (double)metrics->opts.num_devices);
    double memory = (double)validation->memory_bytes, limit = (double)validation->memory_limit_bytes;
    bool has_color = !metrics->opts.disable_color_printing;
    ct_str line;
    ct_str_init(&line);
    ct_str_printf(&line, "%svalidate step: %2lld  ", has_color ? "\x1b[33m" : "", (long long)validation->step);
    ct_str_printf(&line, "%sloss: %7.4f  ", has_color ? "\x1b[32m" : "", plain_nan(validation->loss));
    ct_str_printf(&line, "%smemory: %5.2fGiB(%.2f%%)  ", has_color ? "\x1b[38;2;54;234;195m" : "",
                  memory / (1024.0 * 1024 * 1024), limit > 0 ? 100 * memory / limit : 0);
    ct_str_printf(&line, "%stps: ", has_color ? "\x1b[34m" : "");
    append_grouped(&line, nearbyint(tps), 0);
    ct_str_append(&line, has_color ? "\x1b[39m" : "");
    ct_info("%s", line.data);
    ct_str_deinit(&line);
    metrics->interval_start_s += passed_s;
    metrics->first_end_s += passed_s;
    return write_validation(metrics, validation, tps);
}

void ct_metrics_close(ct_metrics *metrics)
{
    if (!metrics) return;
    ct_log_status("%s", "");
    ct_append_close(metrics->lines);
    ct_tensorboard_close(metrics->board);
    free(metrics);
}
