/* An axis: the range that values need, round ticks in it, and the ticks' texts. */
#ifndef CT_PLOT_AXIS_H
#define CT_PLOT_AXIS_H

#include <stdbool.h>

#include "base/str.h"
#include "plot/runs.h"

typedef struct ct_plot_axis {
    double low, high;   /* low < high */
    double first, step; /* ticks: first, first + step, ... up to high */
    int num_ticks;
} ct_plot_axis;

/* For values from low to high, which may be equal; about max_ticks ticks, at least 2 where they fit. pad: share of the
 * range left free at both ends. */
ct_plot_axis ct_plot_axis_make(double low, double high, int max_ticks, double pad);

/* The text of a value beside this axis's ticks: as many digits as tell them apart, "12.5k", "3e-04". */
void ct_plot_axis_text(const ct_plot_axis *axis, double value, ct_str *out);

double ct_plot_axis_tick(const ct_plot_axis *axis, int index);

/* 0 at low, 1 at high. */
double ct_plot_axis_place(const ct_plot_axis *axis, double value);

/* The axes of a panel; false when no curve has a point. */
bool ct_plot_panel_axes(const ct_plot_panel *panel, int max_x_ticks, int max_y_ticks, ct_plot_axis *out_x,
                        ct_plot_axis *out_y);

/* Colors of curves, 0xrrggbb, in turn. */
uint32_t ct_plot_color(size_t index);

#endif
