/* environment.json of a run's folder: what ran, where and on what, for whoever asks later why two runs differ. The
 * recipe has a file of its own. Of the process's environment only the flags of XLA and libtpu are told, which may
 * change numbers; everything else in it may be secret.
 *
 *   {"version": "0.1.0", "commit": "...", "command": ["ctitan", "train", ...], "working_directory": "...",
 *    "started": "2026-01-31T12:00:00Z",
 *    "host": {"name", "system", "release", "machine", "num_cpus", "memory_bytes"},
 *    "plugin": {"path", "build", "api_version", "platform", "platform_version", "attributes": {...},
 *               "XLA_FLAGS", "LIBTPU_INIT_ARGS"},
 *    "devices": {"kind", "count"}}
 */
#ifndef CT_TRAIN_PROVENANCE_H
#define CT_TRAIN_PROVENANCE_H

#include "train/session.h"

/* What the caller knows of the program. NULL stands for what is not known. */
typedef struct ct_provenance {
    const char *version, *commit;
    const char *const *command; /* arguments, the program's name first */
    size_t num_command;
} ct_provenance;

/* Writes {folder}/environment.json, in place of one that is there. opts: those of session. */
CT_MUST_USE ct_status *ct_provenance_write(const char *folder, const ct_provenance *provenance,
                                           const ct_session_opts *opts, const ct_session *session);

#endif
