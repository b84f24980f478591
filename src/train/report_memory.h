/* What the compiler makes of a recipe's training step: memory, collectives, estimates. */
#ifndef CT_TRAIN_REPORT_MEMORY_H
#define CT_TRAIN_REPORT_MEMORY_H

#include "pjrt/topology.h"
#include "train/recipe.h"
#include "train/session.h"

typedef struct ct_memory_report_opts {
    /* Compiles for these devices, which need not be here; NULL: for session's, which are opened. recipe->device.count
     * must be the topology's number of devices. */
    ct_topology *topology;
    const ct_session_opts *session; /* its flags and innermost hold for a topology, too */
    bool list;                      /* the longest operations; on what is no TPU every collective */
} ct_memory_report_opts;

/* Builds and compiles the training step and appends, for people to read:
 *
 *   bytes per device: arguments, outputs, outputs that live in arguments, temporaries, code, host memory
 *   on a TPU: the predicted step, its parts, every collective (docs/prediction.md)
 *   else: what is sent per device and step, by kind as executed
 *
 * Errors: those of building the step, of the plugin and the compiler; INVALID_ARGUMENT for another number of devices.
 */
CT_MUST_USE ct_status *ct_memory_report(const ct_recipe *recipe, const ct_memory_report_opts *opts, ct_str *out);

#endif
