/* ctitan plot: curves of runs, in the terminal or as a picture. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "cli/args.h"
#include "cli/verb.h"
#include "plot/figure.h"

enum { MAX_METRICS = 64 };

typedef struct wishes {
    const char *output, *smooth;
    ct_flag_list metrics;
} wishes;

/* "loss,lr" and --metric again and again come to the same. */
static ct_status *list_metrics(ct_arena *arena, const ct_flag_list *list, const char **metrics, size_t *out_count)
{
    *out_count = 0;
    for (size_t i = 0; i < list->num_items; i++)
        for (const char *at = list->items[i]; *at;) {
            size_t length = strcspn(at, ",");
            if (*out_count == MAX_METRICS)
                return ct_error(CT_CODE_INVALID_ARGUMENT, "--metric takes %d metrics at most", MAX_METRICS);
            if (length) metrics[(*out_count)++] = ct_arena_strndup(arena, at, length);
            at += length + (at[length] == ',');
        }
    return NULL;
}

static ct_status *parse_smooth(const char *text, double *out_smooth)
{
    char *end;
    *out_smooth = text ? strtod(text, &end) : 0;
    if (text && (end == text || *end || !(*out_smooth >= 0 && *out_smooth < 1)))
        return ct_error(CT_CODE_INVALID_ARGUMENT, "--smooth must be a number from 0 to below 1, found \"%s\"", text);
    return NULL;
}

static bool has_suffix(const char *path, const char *suffix)
{
    size_t length = strlen(path), tail = strlen(suffix);
    return length > tail && !strcmp(path + length - tail, suffix);
}

static ct_status *write_picture(const char *path, const ct_plot_panel *panels, size_t num_panels)
{
    double width, height;
    ct_plot_figure_size(panels, num_panels, &width, &height);
    ct_canvas *canvas = has_suffix(path, ".svg") ? ct_canvas_svg(width, height) : ct_canvas_png(width, height, 2);
    ct_plot_figure_draw(panels, num_panels, canvas);
    ct_str picture;
    ct_str_init(&picture);
    canvas->finish(canvas, &picture);
    ct_status *status = ct_file_write(path, picture.data, picture.length);
    ct_str_deinit(&picture);
    if (!status) ct_info("Wrote %s", path);
    return status;
}

static ct_status *print_panels(const ct_plot_panel *panels, size_t num_panels)
{
    ct_plot_terminal_opts opts = {.width = 80, .height = 14, .is_plain = !isatty(STDOUT_FILENO)};
    struct winsize size;
    if (!opts.is_plain && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col) opts.width = size.ws_col;
    ct_str text;
    ct_str_init(&text);
    ct_plot_terminal(panels, num_panels, &opts, &text);
    ct_status *status = ct_file_write_all(STDOUT_FILENO, "the standard output", text.data, text.length);
    ct_str_deinit(&text);
    return status;
}

static ct_status *run(const wishes *w, ct_arena *arena, const ct_args *args)
{
    const char *metrics[MAX_METRICS];
    ct_plot_runs_opts opts = {.paths = args->positional, .num_paths = args->num_positional, .metrics = metrics};
    CT_TRY(list_metrics(arena, &w->metrics, metrics, &opts.num_metrics));
    CT_TRY(parse_smooth(w->smooth, &opts.smooth));
    if (w->output && !has_suffix(w->output, ".svg") && !has_suffix(w->output, ".png"))
        return ct_error(CT_CODE_INVALID_ARGUMENT, "--output must end in .svg or .png, found \"%s\"", w->output);
    ct_plot_panel *panels;
    size_t num_panels;
    CT_TRY(ct_plot_runs_read(arena, &opts, &panels, &num_panels));
    return w->output ? write_picture(w->output, panels, num_panels) : print_panels(panels, num_panels);
}

int ct_verb_plot(int argc, char **argv)
{
    wishes w = {0};
    const ct_flag flags[] = {
        {"output", CT_FLAG_TEXT, &w.output, "FILE  write a picture, .svg or .png, in place of drawing in the terminal"},
        {"metric", CT_FLAG_LIST, &w.metrics,
         "NAME,...  fields of metrics.jsonl; by default loss, lr, tps and grad_norm"},
        {"smooth", CT_FLAG_TEXT, &w.smooth, "WEIGHT  running mean, from 0 (none) to below 1, as in TensorBoard"},
    };
    ct_args args = {.usage = "ctitan plot RUN... [--metric=NAME,...] [--smooth=WEIGHT] [--output=FILE]",
                    .about = "Draws curves of one or several runs: folders that ctitan train wrote, or metrics.jsonl "
                             "files.",
                    .flags = flags,
                    .num_flags = CT_COUNT(flags),
                    .min_positional = 1,
                    .max_positional = 64};
    int code = CT_EXIT_OK;
    ct_arena arena;
    ct_arena_init(&arena);
    ct_status *status = ct_args_parse(&args, argc, argv);
    if (status) {
        ct_verb_fail("plot", status);
        code = CT_EXIT_USAGE;
    } else if (!args.wants_help) {
        code = ct_verb_fail("plot", run(&w, &arena, &args));
    }
    ct_args_deinit(&args);
    ct_arena_deinit(&arena);
    return code;
}
