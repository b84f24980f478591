/* What a compilation left on disk, as two files of one name in a folder:
 *
 *   <key>.json   what was compiled for, bytes per device, seconds; or the compiler's words when it was too large
 *   <key>.hlo    the compiled program as the plugin gives it (HloModuleProtoWithConfig)
 *
 * key is ct_topology_program_key or ct_client_program_key. The .json is written last, and both aside and renamed: an
 * entry is whole or not there, and processes may share a folder.
 */
#ifndef CT_PLAN_ENTRY_H
#define CT_PLAN_ENTRY_H

#include "base/arena.h"
#include "pjrt/executable.h"
#include "pjrt/torus.h"

typedef struct ct_plan_entry {
    char key[33];
    const char *topology; /* as it was named; NULL: devices that were there */
    const char *kind;     /* of the devices */
    const char *compiler; /* the plugin's own description of its version */
    int64_t num_devices;
    int num_slices;
    ct_torus torus;     /* of a slice */
    const char **flags; /* "name=value" */
    size_t num_flags;
    const char *init_args; /* LIBTPU_INIT_ARGS; "" */

    const char *refusal; /* NULL, or the compiler's message: too large */
    ct_executable_memory memory;
    int64_t program_bytes; /* of StableHLO text */
    double compile_seconds, cpu_seconds;
    int64_t host_peak_bytes; /* resident memory of the process that compiled */

    bool was_there;      /* found, not compiled now */
    const void *program; /* the .hlo file's bytes; NULL for a refusal */
    size_t num_program_bytes;
} ct_plan_entry;

/* Writes an entry; key names it. */
CT_MUST_USE ct_status *ct__plan_entry_write(const char *folder, const ct_plan_entry *entry);

/* An entry, in arena; NULL when there is none, or (with a warning) one that is no good. */
ct_plan_entry *ct__plan_entry_read(ct_arena *arena, const char *folder, const char *key);

#endif
