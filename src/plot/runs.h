/* Curves out of the metrics.jsonl of runs. */
#ifndef CT_PLOT_RUNS_H
#define CT_PLOT_RUNS_H

#include "base/arena.h"
#include "base/status.h"

typedef struct ct_plot_curve {
    const char *name;     /* of the run */
    const double *x, *y;  /* by x */
    const double *smooth; /* y smoothed; NULL: not asked for */
    size_t num_points;
} ct_plot_curve;

/* All runs' curves of one metric. */
typedef struct ct_plot_panel {
    const char *metric;
    ct_plot_curve *curves; /* those without points have num_points 0 */
    size_t num_curves;
} ct_plot_panel;

typedef struct ct_plot_runs_opts {
    const char *const *paths; /* of run folders, or of metrics.jsonl files */
    size_t num_paths;
    const char *const *metrics; /* fields of the lines; with none: loss, lr, tps, grad_norm, where there are any */
    size_t num_metrics;
    double smooth; /* weight of what was before, from 0 (none) to below 1, as TensorBoard smooths */
} ct_plot_runs_opts;

/* Reads the runs; all in arena. What is not finite is left out. The last line of a run that was killed may be cut off:
 * a warning counts such lines.
 * Errors: NOT_FOUND for a run without metrics.jsonl and for a metric that no run has, naming those there are; DATA_LOSS
 * for any other line that is not one of metrics, and for a file without a line; those of reading. */
CT_MUST_USE ct_status *ct_plot_runs_read(ct_arena *arena, const ct_plot_runs_opts *opts, ct_plot_panel **out_panels,
                                         size_t *out_num_panels);

#endif
