/* The plugin's own profiler, where it has one: what devices did while it ran, as an XSpace message, which XProf and
 * TensorBoard read from DIR/plugins/profile/RUN/HOST.xplane.pb. Not thread-safe.
 */
#ifndef CT_PJRT_PROFILER_H
#define CT_PJRT_PROFILER_H

#include <stdbool.h>

#include "base/str.h"
#include "pjrt/plugin.h"

typedef struct ct_profiler ct_profiler;

/* Whether the plugin has a profiler. XLA's CPU plugins that are on PyPI have none, libtpu and CUDA's have. */
bool ct_profiler_is_there(const ct_plugin *plugin);

/* Errors: UNIMPLEMENTED when the plugin has none; the profiler's own. */
CT_MUST_USE ct_status *ct_profiler_start(const ct_plugin *plugin, ct_profiler **out_profiler);

/* Stops, appends what was seen to out, and frees the profiler, also on error. */
CT_MUST_USE ct_status *ct_profiler_stop(ct_profiler *profiler, ct_str *out);

#endif
