/* What a run tells of itself, step by step: TorchTitan's console line, a line of JSON in metrics.jsonl and an event for
 * TensorBoard for the same steps, and a progress line with the time left. That is drawn below the log on a terminal;
 * where stderr is a file or a pipe, each console line ends with it, "  eta: 12m05s", behind TorchTitan's own fields.
 *
 *   record(1) -> line        a line covers the steps since the last one: tps, data and step time are over that interval
 *   record(2) ... record(9)
 *   record(10) -> line       lines at step 1 and at multiples of log_freq
 *
 * Results may be recorded late (they are read back without stalling the device), but in order; time is what the caller
 * says. Not thread-safe.
 */
#ifndef CT_TRAIN_METRICS_H
#define CT_TRAIN_METRICS_H

#include <stdbool.h>

#include "base/status.h"
#include "base/str.h"

/* One line's values; also the fields of metrics.jsonl, where a number that is not finite is null. */
typedef struct ct_metrics_values {
    int64_t step;
    double loss, grad_norm; /* the norm before clipping */
    double lr;
    double tps;                            /* tokens per second and device */
    double tflops, mfu;                    /* per device; mfu in percent */
    double memory_gib, memory_pct;         /* peak of one device; 0 when unknown */
    double data_loading_s, host_s, step_s; /* mean per step of the interval */
    int64_t n_tokens_seen;
} ct_metrics_values;

/* Appends TorchTitan's line, byte for byte:
 * "step:  1  loss:  8.03850  grad_norm:  1.3444  memory:  1.21GiB(1.27%)  tps: 2,904  tflops: 0.21  mfu: 0.02%" */
void ct_metrics_format(ct_str *out, const ct_metrics_values *values, bool has_color);

typedef struct ct_metrics_opts {
    const char *folder;             /* metrics.jsonl goes here; NULL: no file */
    const char *tensorboard_folder; /* train/tensorboard.h; NULL: none */
    int64_t num_steps;              /* of the whole run */
    int64_t log_freq;               /* > 0 */
    int64_t first_step;             /* 1, or the step after the checkpoint that the run resumes from */
    int64_t n_tokens_seen;          /* before first_step */
    int64_t num_devices;
    double flops_per_token;
    double peak_flops; /* of one device */
    double start_s;    /* of ct_clock_seconds, when the first step begins */
    bool disable_color_printing;
} ct_metrics_opts;

typedef struct ct_metrics ct_metrics;

/* Makes folder and opens metrics.jsonl in it. Of an existing file the lines of steps before first_step are kept, and a
 * last line that was cut off is dropped; the file is whole at any time.
 * Errors: those of files; DATA_LOSS for a line that is not of metrics.jsonl when the run resumes. */
CT_MUST_USE ct_status *ct_metrics_open(const ct_metrics_opts *opts, ct_metrics **out_metrics);

typedef struct ct_metrics_step {
    int64_t step; /* one more than the last */
    double loss, grad_norm, lr;
    int64_t num_tokens;    /* of the step, over all devices */
    double data_loading_s; /* how long the step waited for its batch */
    double host_s;         /* the host's own work for the step: putting inputs, starting the program */
    double end_s;          /* of ct_clock_seconds, when the step was done */
    int64_t memory_bytes;  /* peak in use on one device; 0 when unknown */
    int64_t memory_limit_bytes;
} ct_metrics_step;

/* Takes one step in; logs and writes when it is due. What is written is with the operating system on return. On a full
 * disk lines wait, after a warning, until there is room again. Errors: those of writing. */
CT_MUST_USE ct_status *ct_metrics_record(ct_metrics *metrics, const ct_metrics_step *step);

typedef struct ct_metrics_validation {
    int64_t step;
    double loss;
    int64_t num_tokens;    /* over all devices */
    double start_s, end_s; /* of ct_clock_seconds */
    int64_t memory_bytes, memory_limit_bytes;
} ct_metrics_validation;

/* TorchTitan's line of a validation, "validate step:  1  loss:  8.0385  memory: ..  tps: ..", and a line
 * {"step": 1, "validation_metrics/loss": 8.0385, ...} behind the step's. Its time is not counted as training's. */
CT_MUST_USE ct_status *ct_metrics_validated(ct_metrics *metrics, const ct_metrics_validation *validation);

/* Takes the progress line away and closes the file. NULL is allowed. */
void ct_metrics_close(ct_metrics *metrics);

#endif
