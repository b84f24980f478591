/* Plans of one recipe with keys at several values each: all combinations, compiled once and kept.
 *
 *   --sweep training.local_batch_size=1,2,4 --sweep activation_checkpoint.mode=full,selective     six plans
 *
 * Everything that a recipe can check is checked before anything is compiled. What was compiled is an entry on disk
 * (plan/entry.h), so a sweep that was killed goes on where it was.
 */
#ifndef CT_PLAN_SWEEP_H
#define CT_PLAN_SWEEP_H

#include "plan/plan.h"

typedef struct ct_sweep_axis {
    const char *key;           /* "training.local_batch_size" */
    const char *const *values; /* as on the command line */
    size_t num_values;
} ct_sweep_axis;

/* Reads "key=v1,v2"; '+' joins the items of a value that is a list ("activation_checkpoint.save=query+key,query").
 * Errors: INVALID_ARGUMENT without a key or values, for a value that stands twice. */
CT_MUST_USE ct_status *ct_sweep_axis_parse(ct_arena *arena, const char *text, ct_sweep_axis *out_axis);

typedef enum ct_sweep_outcome { CT_SWEEP_FITS, CT_SWEEP_TOO_LARGE, CT_SWEEP_SKIPPED, CT_SWEEP_FAILED } ct_sweep_outcome;

typedef struct ct_sweep_point {
    const char **values; /* of each axis */
    ct_sweep_outcome outcome;
    const char *why; /* it was skipped or failed */
    int64_t used_bytes, usable_bytes;
    double step_seconds, tokens_per_s_chip, mfu; /* at mid efficiency; 0: not predicted */
    double compile_seconds;
    bool was_there;
} ct_sweep_point;

typedef struct ct_sweep {
    const ct_sweep_axis *axes;
    size_t num_axes;
    ct_sweep_point *points; /* the last axis changes fastest */
    size_t num_points;
    int best; /* of those that fit: most tokens per second and chip; -1: none */
} ct_sweep;

/* Called after each point; plan is NULL where there is none. */
typedef void ct_sweep_done(void *context, const ct_sweep *sweep, const ct_sweep_point *point, const ct_plan *plan);

/* Plans all combinations; in arena. A batch is skipped when a smaller one did not fit with the same other values; a
 * point that the compiler does not take is FAILED with its words, and others go on. Errors: INVALID_ARGUMENT for a
 * combination that is no recipe, before anything is compiled. done may be NULL. */
CT_MUST_USE ct_status *ct_plan_sweep(ct_arena *arena, const ct_recipe *recipe, const ct_sweep_axis *axes,
                                     size_t num_axes, const ct_plan_opts *opts, ct_sweep_done *done, void *context,
                                     ct_sweep *out_sweep);

/* A table, the best last. */
void ct_sweep_print(const ct_sweep *sweep, ct_str *out);
/* Writes the members "points" and "best" of an object that the caller has begun. */
void ct_sweep_json(const ct_sweep *sweep, ct_json_writer *writer);

#endif
