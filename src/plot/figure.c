/* Layout of the picture.
 *
 *   +--------------------------------+
 *   | -- run a   -- run b            |   the runs' names
 *   |  loss          |  lr           |
 *   | 8|\            |  /\           |   a panel: title, frame, grid, numbers
 *   | 2|  \___       | /  \          |
 *   |   0  50  100   |               |
 *   +--------------------------------+
 */
#include "plot/figure.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "plot/axis.h"

enum { PANEL_WIDTH = 460, PANEL_HEIGHT = 270, LEGEND_ROW = 20, MARGIN = 14 };
enum { LEFT = 58, RIGHT = 16, TOP = 30, BOTTOM = 34 }; /* of a panel, around its frame */

#define GRID_COLOR 0xdddddd
#define TEXT_COLOR 0x333333

typedef struct place {
    double left, top, width, height; /* of the frame */
    ct_plot_axis x, y;
} place;

static size_t num_columns(size_t num_panels)
{
    return num_panels > 1 ? 2 : 1;
}

static double figure_width(size_t num_panels)
{
    return (double)(2 * MARGIN + PANEL_WIDTH * num_columns(num_panels));
}

/* Where the name of the next run goes; a new row when it has no room. */
static void next_name(double width, const char *name, double *x, double *y)
{
    double needed = 34 + ct_font_width(name, 12);
    if (*x > MARGIN && *x + needed > width - MARGIN) {
        *x = MARGIN;
        *y += LEGEND_ROW;
    }
}

static double legend_height(const ct_plot_panel *panel, double width)
{
    double x = MARGIN, y = MARGIN;
    for (size_t i = 0; i < panel->num_curves; i++) {
        next_name(width, panel->curves[i].name, &x, &y);
        x += 34 + ct_font_width(panel->curves[i].name, 12);
    }
    return y + LEGEND_ROW;
}

void ct_plot_figure_size(const ct_plot_panel *panels, size_t num_panels, double *out_width, double *out_height)
{
    size_t columns = num_columns(num_panels), rows = (num_panels + columns - 1) / columns;
    *out_width = figure_width(num_panels);
    *out_height = legend_height(panels, *out_width) + (double)(rows * PANEL_HEIGHT);
}

static void draw_legend(const ct_plot_panel *panel, ct_canvas *canvas)
{
    double x = MARGIN, y = MARGIN;
    for (size_t i = 0; i < panel->num_curves; i++) {
        const char *name = panel->curves[i].name;
        next_name(canvas->width, name, &x, &y);
        double line[4] = {x, y + 4, x + 16, y + 4};
        canvas->line(canvas, line, 2, ct_plot_color(i), 1, 2.2);
        canvas->text(canvas, x + 22, y + 8, 12, TEXT_COLOR, CT_ALIGN_LEFT, name);
        x += 34 + ct_font_width(name, 12);
    }
}

static double place_x(const place *p, double value)
{
    return p->left + p->width * ct_plot_axis_place(&p->x, value);
}

static double place_y(const place *p, double value)
{
    return p->top + p->height * (1 - ct_plot_axis_place(&p->y, value));
}

static void draw_grid(const place *p, ct_canvas *canvas)
{
    ct_str text;
    ct_str_init(&text);
    for (int i = 0; i < p->x.num_ticks; i++) {
        double value = ct_plot_axis_tick(&p->x, i), x = place_x(p, value);
        double line[4] = {x, p->top, x, p->top + p->height};
        canvas->line(canvas, line, 2, GRID_COLOR, 1, 0.7);
        ct_str_reset(&text);
        ct_plot_axis_text(&p->x, value, &text);
        canvas->text(canvas, x, p->top + p->height + 15, 10.5, TEXT_COLOR, CT_ALIGN_MIDDLE, text.data);
    }
    for (int i = 0; i < p->y.num_ticks; i++) {
        double value = ct_plot_axis_tick(&p->y, i), y = place_y(p, value);
        double line[4] = {p->left, y, p->left + p->width, y};
        canvas->line(canvas, line, 2, GRID_COLOR, 1, 0.7);
        ct_str_reset(&text);
        ct_plot_axis_text(&p->y, value, &text);
        canvas->text(canvas, p->left - 6, y + 3.7, 10.5, TEXT_COLOR, CT_ALIGN_RIGHT, text.data);
    }
    ct_str_deinit(&text);
    double right = p->left + p->width, bottom = p->top + p->height;
    double frame[6] = {p->left, p->top, p->left, bottom, right, bottom};
    canvas->line(canvas, frame, 3, TEXT_COLOR, 1, 1);
}

static void draw_points(const place *p, const double *xs, const double *ys, size_t count, uint32_t color, double alpha,
                        double line_width, ct_canvas *canvas)
{
    double *points = ct_alloc((2 * count + 1) * sizeof(*points));
    for (size_t i = 0; i < count; i++) {
        points[2 * i] = place_x(p, xs[i]);
        points[2 * i + 1] = place_y(p, ys[i]);
    }
    canvas->line(canvas, points, count, color, alpha, count > 1 ? line_width : 4);
    free(points);
}

static void draw_panel(const ct_plot_panel *panel, double left, double top, ct_canvas *canvas)
{
    place p = {.left = left + LEFT,
               .top = top + TOP,
               .width = PANEL_WIDTH - LEFT - RIGHT,
               .height = PANEL_HEIGHT - TOP - BOTTOM};
    canvas->text(canvas, p.left, top + TOP - 9, 13, TEXT_COLOR, CT_ALIGN_LEFT, panel->metric);
    if (!ct_plot_panel_axes(panel, 6, 6, &p.x, &p.y)) return;
    draw_grid(&p, canvas);
    canvas->text(canvas, p.left + p.width, p.top + p.height + 29, 10.5, TEXT_COLOR, CT_ALIGN_RIGHT, "step");
    for (size_t i = 0; i < panel->num_curves; i++) {
        const ct_plot_curve *curve = &panel->curves[i];
        if (!curve->num_points) continue;
        draw_points(&p, curve->x, curve->y, curve->num_points, ct_plot_color(i), curve->smooth ? 0.3 : 1,
                    curve->smooth ? 1 : 1.6, canvas);
        if (curve->smooth)
            draw_points(&p, curve->x, curve->smooth, curve->num_points, ct_plot_color(i), 1, 1.8, canvas);
    }
}

void ct_plot_figure_draw(const ct_plot_panel *panels, size_t num_panels, ct_canvas *canvas)
{
    size_t columns = num_columns(num_panels);
    double top = legend_height(panels, canvas->width);
    draw_legend(panels, canvas);
    for (size_t i = 0; i < num_panels; i++) {
        size_t row = i / columns, column = i % columns;
        draw_panel(&panels[i], MARGIN + (double)(column * PANEL_WIDTH), top + (double)(row * PANEL_HEIGHT), canvas);
    }
}
