/* Runs in, pictures out. */
#include <math.h>

#include "base/log.h"
#include "base/testing.h"
#include "plot/axis.h"
#include "plot/figure.h"

typedef struct fixture {
    char *folder;
    ct_arena arena;
} fixture;

static int set_up(void **state)
{
    fixture *f = ct_alloc_zeroed(1, sizeof(*f));
    f->folder = ct_test_folder_new();
    ct_arena_init(&f->arena);
    ct_log_set_level(CT_LOG_ERROR);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    ct_test_folder_free(f->folder);
    ct_arena_deinit(&f->arena);
    free(f);
    return 0;
}

/* The folder of a run with these lines. */
static const char *make_run(fixture *f, const char *name, const char *lines)
{
    const char *folder = ct_arena_printf(&f->arena, "%s/%s", f->folder, name);
    expect_ok(ct_dir_make(folder));
    expect_ok(ct_file_write(ct_arena_printf(&f->arena, "%s/metrics.jsonl", folder), lines, strlen(lines)));
    return folder;
}

static ct_status *read_runs(fixture *f, const char *const *paths, size_t num_paths, const char *metric, double smooth,
                            ct_plot_panel **panels, size_t *num_panels)
{
    ct_plot_runs_opts opts = {
        .paths = paths, .num_paths = num_paths, .metrics = &metric, .num_metrics = metric != NULL, .smooth = smooth};
    return ct_plot_runs_read(&f->arena, &opts, panels, num_panels);
}

static void test_reading(void **state)
{
    fixture *f = *state;
    const char *runs[2] = {make_run(f, "a",
                                    "{\"step\":1,\"loss\":8.0,\"lr\":0.1}\n{\"step\":5,\"loss\":null,\"lr\":0.2}\n"
                                    "{\"step\":10,\"loss\":4.0,\"lr\":0.3}\n{\"step\":15,\"lo"),
                           make_run(f, "b", "{\"step\":1,\"loss\":7,\"other\":3}\n")};
    ct_plot_panel *panels;
    size_t num_panels;
    expect_ok(read_runs(f, runs, 2, NULL, 0.5, &panels, &num_panels));
    assert_int_equal(num_panels, 2); /* of the usual ones, those that there are */
    assert_string_equal(panels[0].metric, "loss");
    assert_string_equal(panels[1].metric, "lr");
    const ct_plot_curve *loss = &panels[0].curves[0];
    assert_string_equal(loss->name, runs[0]);
    assert_int_equal(loss->num_points, 2); /* without what is null and what is cut off */
    assert_true(loss->x[1] == 10 && loss->y[1] == 4);
    assert_true(loss->smooth[0] == 8); /* weights sum to one from the first value on */
    assert_true(fabs(loss->smooth[1] - (0.25 * 8 + 0.5 * 4) / 0.75) < 1e-12);
    assert_int_equal(panels[0].curves[1].num_points, 1);
    assert_int_equal(panels[1].curves[1].num_points, 0); /* b has no lr */

    /* the file itself, a slash at the end */
    const char *same[2] = {ct_arena_printf(&f->arena, "%s/metrics.jsonl", runs[0]),
                           ct_arena_printf(&f->arena, "%s/", runs[0])};
    expect_ok(read_runs(f, same, 2, "lr", 0, &panels, &num_panels));
    assert_int_equal(num_panels, 1);
    assert_string_equal(panels[0].curves[0].name, runs[0]);
    assert_string_equal(panels[0].curves[1].name, runs[0]);
    assert_null(panels[0].curves[0].smooth);
}

static void test_mistakes(void **state)
{
    fixture *f = *state;
    ct_plot_panel *panels;
    size_t num_panels;
    const char *good = make_run(f, "good", "{\"step\":1,\"loss\":8.0,\"lr\":0.1}\n");
    const char *nowhere = ct_arena_printf(&f->arena, "%s/nowhere", f->folder);
    expect_error(read_runs(f, &nowhere, 1, NULL, 0, &panels, &num_panels), CT_CODE_NOT_FOUND,
                 "must be the dump_folder of a run, with its metrics.jsonl");
    const char *runs[2] = {good, make_run(f, "broken", "{\"step\":1}\nnotes\n{\"step\":2}\n")};
    expect_error(read_runs(f, runs, 2, NULL, 0, &panels, &num_panels), CT_CODE_DATA_LOSS, "metrics.jsonl:2");
    runs[1] = make_run(f, "empty", "");
    expect_error(read_runs(f, runs, 2, NULL, 0, &panels, &num_panels), CT_CODE_DATA_LOSS, "has no whole line yet");
    runs[1] = make_run(f, "cut", "{\"st");
    expect_error(read_runs(f, runs, 2, NULL, 0, &panels, &num_panels), CT_CODE_DATA_LOSS, "has no whole line yet");
    expect_error(read_runs(f, &good, 1, "los", 0, &panels, &num_panels), CT_CODE_NOT_FOUND,
                 "no run has the metric \"los\"; there are: loss, lr");
}

static void expect_ticks(double low, double high, const char *texts)
{
    ct_plot_axis axis = ct_plot_axis_make(low, high, 5, 0);
    ct_str out;
    ct_str_init(&out);
    for (int i = 0; i < axis.num_ticks; i++) {
        double value = ct_plot_axis_tick(&axis, i);
        assert_true(value >= axis.low - 1e-9 * axis.step && value <= axis.high + 1e-9 * axis.step);
        if (i) ct_str_append_char(&out, ' ');
        ct_plot_axis_text(&axis, value, &out);
    }
    assert_string_equal(out.data, texts);
    ct_str_deinit(&out);
}

static void test_ticks(void **state)
{
    (void)state;
    expect_ticks(0, 10, "0 2 4 6 8 10");
    expect_ticks(-1, 1, "-1.0 -0.5 0 0.5 1.0");
    expect_ticks(1, 20000, "5k 10k 15k 20k");
    expect_ticks(1.2e6, 1.4e6, "1.20M 1.25M 1.30M 1.35M 1.40M");
    expect_ticks(2e-5, 3e-4, "1e-04 2e-04 3e-04");
    expect_ticks(2.5, 2.5, "2.3 2.4 2.5 2.6 2.7"); /* one value */
    expect_ticks(0, 0, "-1.0 -0.5 0 0.5 1.0");
}

static void test_terminal(void **state)
{
    fixture *f = *state;
    const double x[] = {0, 50, 100}, falling[] = {8, 4, 2}, flat[] = {5, 5, 5};
    ct_plot_curve curves[] = {{.name = "a", .x = x, .y = falling, .num_points = 3},
                              {.name = "b", .x = x, .y = flat, .num_points = 3}};
    ct_plot_panel panel = {"loss", curves, 1};
    ct_str text;
    ct_str_init(&text);
    ct_plot_terminal(&panel, 1, &(ct_plot_terminal_opts){40, 10, true}, &text);
    assert_string_equal(text.data, "loss  2 at step 100\n"
                                   "8 |**\n"
                                   "  |  *****\n"
                                   "6 |       *****\n"
                                   "  |            ****\n"
                                   "4 |                ********\n"
                                   "  |                        **********\n"
                                   "2 |                                  ***\n"
                                   "  +-------------------------------------\n"
                                   "   0                50               100\n");
    ct_str_reset(&text);
    panel.num_curves = 2;
    ct_plot_terminal(&panel, 1, &(ct_plot_terminal_opts){40, 10, true}, &text);
    assert_non_null(strstr(text.data, "+++++++"));
    assert_non_null(strstr(text.data, "\n* a\n+ b\n"));
    for (const char *at = text.data; *at; at++) assert_true(*at == '\n' || (*at >= ' ' && *at <= '~'));

    /* Braille has colors, and lines are no wider than they may be */
    ct_str_reset(&text);
    ct_plot_terminal(&panel, 1, &(ct_plot_terminal_opts){60, 12, false}, &text);
    assert_non_null(strstr(text.data, "\x1b[34m\xe2\xa0"));
    assert_non_null(strstr(text.data, "\x1b[31m\xe2"));
    int width = 0;
    for (const char *at = text.data; *at; at++) {
        if (*at == '\x1b')
            at += strcspn(at, "m");
        else if (*at == '\n')
            width = 0;
        else if ((*at & 0xc0) != 0x80)
            assert_true(++width <= 60);
    }
    ct_str_deinit(&text);
    (void)f;
}

/* All characters have strokes that stay near their place, and widths that add up. */
static double strokes_low, strokes_high;

static void watch_stroke(void *context, const double *points, size_t num_points)
{
    ++*(size_t *)context;
    for (size_t i = 0; i < num_points; i++) {
        strokes_low = fmin(strokes_low, points[2 * i + 1]);
        strokes_high = fmax(strokes_high, points[2 * i + 1]);
        assert_true(points[2 * i] >= 0 && points[2 * i] <= 10);
    }
}

static void test_font(void **state)
{
    (void)state;
    strokes_low = strokes_high = 0;
    double sum = 0;
    char all[96] = "";
    for (int c = ' '; c <= '~'; c++) {
        size_t num_strokes = 0;
        double width = ct_font_strokes((unsigned char)c, 0, 0, 10, watch_stroke, &num_strokes);
        assert_true(num_strokes > 0 || c == ' ');
        assert_true(width > 1 && width < 10);
        sum += width;
        all[c - ' '] = (char)c;
    }
    assert_true(fabs(strokes_low + 7) < 1e-9 && strokes_high > 0 && strokes_high < 3);
    assert_true(fabs(ct_font_width(all, 10) - sum) < 1e-9);
}

static void test_pictures(void **state)
{
    (void)state;
    enum { NUM_POINTS = 1000 };
    static double x[NUM_POINTS], y[NUM_POINTS];
    for (int i = 0; i < NUM_POINTS; i++) {
        x[i] = i;
        y[i] = 1 + 7 * exp(-i / 200.0);
    }
    ct_plot_curve curve = {.name = "<runs>/a & b", .x = x, .y = y, .smooth = y, .num_points = NUM_POINTS}, none = curve;
    none.num_points = 0;
    ct_plot_panel panels[3] = {{"loss", &curve, 1}, {"lr", &none, 1}, {"tps", &curve, 1}};
    double width, height;
    ct_plot_figure_size(panels, 3, &width, &height);
    ct_str svg, png;
    ct_str_init(&svg);
    ct_str_init(&png);
    ct_canvas *canvas = ct_canvas_svg(width, height);
    ct_plot_figure_draw(panels, 3, canvas);
    canvas->finish(canvas, &svg);
    assert_int_equal(strncmp(svg.data, "<svg xmlns=\"http://www.w3.org/2000/svg\"", 39), 0);
    assert_non_null(strstr(svg.data, ">&lt;runs>/a &amp; b</text>"));
    assert_non_null(strstr(svg.data, ">tps</text>"));
    assert_string_equal(svg.data + svg.length - 7, "</svg>\n");
    assert_null(strstr(svg.data, "nan"));
    assert_null(strstr(svg.data, "inf"));

    canvas = ct_canvas_png(width, height, 1);
    ct_plot_figure_draw(panels, 3, canvas);
    canvas->finish(canvas, &png);
    assert_memory_equal(png.data, "\x89PNG", 4);
    assert_true(png.length > 2000);
    ct_str_deinit(&svg);
    ct_str_deinit(&png);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_reading, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_mistakes, set_up, tear_down),
        cmocka_unit_test(test_ticks),
        cmocka_unit_test_setup_teardown(test_terminal, set_up, tear_down),
        cmocka_unit_test(test_font),
        cmocka_unit_test(test_pictures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
