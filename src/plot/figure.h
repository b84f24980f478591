/* Panels as a picture, and in the terminal. */
#ifndef CT_PLOT_FIGURE_H
#define CT_PLOT_FIGURE_H

#include <stdbool.h>

#include "plot/canvas.h"
#include "plot/runs.h"

/* Size of the picture, in points. */
void ct_plot_figure_size(const ct_plot_panel *panels, size_t num_panels, double *out_width, double *out_height);

/* Draws the panels in one or two columns, below the runs' names. */
void ct_plot_figure_draw(const ct_plot_panel *panels, size_t num_panels, ct_canvas *canvas);

typedef struct ct_plot_terminal_opts {
    int width, height; /* characters; height is that of one panel */
    bool is_plain;     /* ASCII without colors, a mark per run; else dots of Braille characters, in colors */
} ct_plot_terminal_opts;

/* Appends the panels, one below the other, each with its axes' numbers; at least 30 characters wide, 6 high. */
void ct_plot_terminal(const ct_plot_panel *panels, size_t num_panels, const ct_plot_terminal_opts *opts, ct_str *out);

#endif
