/* Traces of some steps of a run, for Perfetto, XProf and TensorBoard.
 *
 *   profile_freq = 10, profiler_active = 2:      steps 9 and 10, 19 and 20, ... are traced
 *
 *   {folder}/iteration_10/rank0_trace.json                      the host's spans, as Chrome's trace events: what it did
 *                                                               for each step, and each step from launch to readback
 *   {folder}/plugins/profile/iteration_10/{host}.xplane.pb      the plugin's own, where it has a profiler
 *
 * Not thread-safe.
 */
#ifndef CT_TRAIN_PROFILE_H
#define CT_TRAIN_PROFILE_H

#include <stdbool.h>

#include "base/status.h"
#include "pjrt/plugin.h"

typedef struct ct_profile ct_profile;

typedef struct ct_profile_opts {
    const char *folder;
    int64_t freq, active;    /* 0 < active <= freq */
    const ct_plugin *plugin; /* NULL: host spans alone */
} ct_profile_opts;

ct_profile *ct_profile_new(const ct_profile_opts *opts); /* a warning when the plugin has no profiler */
void ct_profile_free(ct_profile *profile);               /* a trace under way is dropped; NULL is allowed */

/* Whether tracing begins before step, or ends behind it: then no step should be under way. NULL: never. */
bool ct_profile_begins(const ct_profile *profile, int64_t step);
bool ct_profile_ends(const ct_profile *profile, int64_t step);
CT_MUST_USE ct_status *ct_profile_begin(ct_profile *profile);
CT_MUST_USE ct_status *ct_profile_end(ct_profile *profile, int64_t step); /* writes the files */

typedef enum ct_profile_track { CT_PROFILE_HOST, CT_PROFILE_STEPS } ct_profile_track;

/* A span from start_s to now, both of ct_clock_seconds; nothing when no trace is under way or profile is NULL.
 * name must be a literal. */
void ct_profile_span(ct_profile *profile, ct_profile_track track, const char *name, int64_t step, double start_s);

#endif
