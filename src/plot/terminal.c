/* Panels of characters. A Braille character is a field of 2 by 4 dots, a plain one has one mark.
 *
 *   loss  2.888 at step 40
 *   8 |.
 *     |.
 *   4 | ...
 *     |    .........
 *     +-------------
 *      0          40
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "plot/axis.h"
#include "plot/figure.h"

static const char marks[] = "*+ox#@%&";
static const int terminal_colors[] = {34, 31, 32, 35, 33, 36, 95, 90};

typedef struct cell {
    unsigned char dots;  /* of Braille; 1 for a mark */
    unsigned char curve; /* that was drawn last */
} cell;

typedef struct grid {
    int columns, rows;  /* characters */
    int dots_x, dots_y; /* in a character */
    cell *cells;
} grid;

static void set_dot(grid *g, int x, int y, size_t curve)
{
    static const unsigned char bits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    if (x < 0 || y < 0 || x >= g->columns * g->dots_x || y >= g->rows * g->dots_y) return;
    cell *c = &g->cells[y / g->dots_y * g->columns + x / g->dots_x];
    c->dots |= g->dots_x == 1 ? 1 : bits[y % 4][x % 2];
    c->curve = (unsigned char)curve;
}

static void draw_segment(grid *g, double x0, double y0, double x1, double y1, size_t curve)
{
    int num_steps = (int)fmax(fmax(fabs(x1 - x0), fabs(y1 - y0)), 1);
    for (int i = 0; i <= num_steps; i++) {
        double share = (double)i / num_steps;
        set_dot(g, (int)lround(x0 + share * (x1 - x0)), (int)lround(y0 + share * (y1 - y0)), curve);
    }
}

static void draw_curve(grid *g, const ct_plot_curve *curve, const ct_plot_axis *x, const ct_plot_axis *y, size_t index)
{
    const double *values = curve->smooth ? curve->smooth : curve->y;
    double last_x = 0, last_y = 0, width = g->columns * g->dots_x - 1, height = g->rows * g->dots_y - 1;
    for (size_t i = 0; i < curve->num_points; i++) {
        double at_x = width * ct_plot_axis_place(x, curve->x[i]),
               at_y = height * (1 - ct_plot_axis_place(y, values[i]));
        draw_segment(g, i ? last_x : at_x, i ? last_y : at_y, at_x, at_y, index);
        last_x = at_x;
        last_y = at_y;
    }
}

static void append_cell(const cell *c, bool is_plain, ct_str *out)
{
    if (!c->dots) {
        ct_str_append_char(out, ' ');
    } else if (is_plain) {
        ct_str_append_char(out, marks[c->curve % (sizeof(marks) - 1)]);
    } else { /* U+2800 and the dots */
        const char braille[4] = {(char)0xe2, (char)(0xa0 + (c->dots >> 6)), (char)(0x80 + (c->dots & 0x3f)), 0};
        ct_str_printf(out, "\x1b[%dm%s\x1b[0m", terminal_colors[c->curve % CT_COUNT(terminal_colors)], braille);
    }
}

/* The tick of a row of characters, in out; none: "". */
static void row_label(const ct_plot_axis *y, int row, int rows, ct_str *out)
{
    ct_str_reset(out);
    for (int i = 0; i < y->num_ticks; i++) {
        double value = ct_plot_axis_tick(y, i);
        if ((int)lround((rows - 1) * (1 - ct_plot_axis_place(y, value))) == row) {
            ct_plot_axis_text(y, value, out);
            return;
        }
    }
}

/* The numbers below, each under its tick, as far as they have room. */
static void append_x_labels(const ct_plot_axis *x, int label_width, int columns, ct_str *out)
{
    int at = 0;
    ct_str text;
    ct_str_init(&text);
    ct_str_printf(out, "%*s", label_width + 2, "");
    for (int i = 0; i < x->num_ticks; i++) {
        double value = ct_plot_axis_tick(x, i);
        ct_str_reset(&text);
        ct_plot_axis_text(x, value, &text);
        int length = (int)text.length;
        int start = (int)lround((columns - 1) * ct_plot_axis_place(x, value)) - length / 2;
        start = CT_MIN(CT_MAX(start, 0), columns - length);
        if (start < at) continue;
        ct_str_printf(out, "%*s%s", start - at, "", text.data);
        at = start + length + 1;
        ct_str_append_char(out, ' ');
    }
    while (out->length && out->data[out->length - 1] == ' ') out->data[--out->length] = 0;
    ct_str_append_char(out, '\n');
    ct_str_deinit(&text);
}

static void append_title(const ct_plot_panel *panel, const ct_plot_terminal_opts *opts, ct_str *out)
{
    ct_str_printf(out, opts->is_plain ? "%s" : "\x1b[1m%s\x1b[0m", panel->metric);
    if (panel->num_curves == 1 && panel->curves[0].num_points) {
        const ct_plot_curve *curve = &panel->curves[0];
        size_t last = curve->num_points - 1;
        ct_str_printf(out, "  %.5g at step %.0f", curve->y[last], curve->x[last]);
    }
    ct_str_append_char(out, '\n');
}

static void append_panel(const ct_plot_panel *panel, const ct_plot_terminal_opts *opts, ct_str *out)
{
    ct_plot_axis x, y;
    append_title(panel, opts, out);
    if (!ct_plot_panel_axes(panel, CT_MAX(opts->width / 12, 2), CT_MAX(opts->height / 2, 2), &x, &y)) return;
    int rows = CT_MAX(opts->height, 6) - 3, label_width = 0;
    ct_str label;
    ct_str_init(&label);
    for (int row = 0; row < rows; row++) {
        row_label(&y, row, rows, &label);
        label_width = CT_MAX(label_width, (int)label.length);
    }
    grid g = {.columns = CT_MAX(opts->width, 30) - label_width - 2,
              .rows = rows,
              .dots_x = opts->is_plain ? 1 : 2,
              .dots_y = opts->is_plain ? 1 : 4};
    g.cells = ct_alloc_zeroed((size_t)g.columns * (size_t)g.rows, sizeof(*g.cells));
    for (size_t i = 0; i < panel->num_curves; i++) draw_curve(&g, &panel->curves[i], &x, &y, i);
    for (int row = 0; row < rows; row++) {
        row_label(&y, row, rows, &label);
        ct_str_printf(out, "%*s %s", label_width, label.data, opts->is_plain ? "|" : "\xe2\x94\x82");
        int last = g.columns; /* no spaces at the end of a line */
        while (last > 0 && !g.cells[row * g.columns + last - 1].dots) last--;
        for (int column = 0; column < last; column++)
            append_cell(&g.cells[row * g.columns + column], opts->is_plain, out);
        ct_str_append_char(out, '\n');
    }
    ct_str_printf(out, "%*s %s", label_width, "", opts->is_plain ? "+" : "\xe2\x94\x94");
    for (int i = 0; i < g.columns; i++) ct_str_append(out, opts->is_plain ? "-" : "\xe2\x94\x80");
    ct_str_append_char(out, '\n');
    append_x_labels(&x, label_width, g.columns, out);
    free(g.cells);
    ct_str_deinit(&label);
}

void ct_plot_terminal(const ct_plot_panel *panels, size_t num_panels, const ct_plot_terminal_opts *opts, ct_str *out)
{
    for (size_t i = 0; i < num_panels; i++) {
        if (i) ct_str_append_char(out, '\n');
        append_panel(&panels[i], opts, out);
    }
    const ct_plot_panel *first = &panels[0];
    for (size_t i = 0; i < first->num_curves && first->num_curves > 1; i++) {
        if (opts->is_plain)
            ct_str_printf(out, "%c %s\n", marks[i % (sizeof(marks) - 1)], first->curves[i].name);
        else
            ct_str_printf(out, "\x1b[%dm\xe2\x94\x81\xe2\x94\x81\x1b[0m %s\n",
                          terminal_colors[i % CT_COUNT(terminal_colors)], first->curves[i].name);
    }
}
