/* Work in a child process: what it takes of memory and time is its own, and if it dies this process lives on.
 *
 *   this process --- fork --- work(): reply, status ---.
 *        | tick() every second                         | pipe
 *        +--------------------------------------------<'
 *
 * For work that loads libraries which abort on errors, or whose memory does not come back. Call it before this process
 * has threads: only the calling one exists in the child.
 */
#ifndef CT_BASE_CHILD_H
#define CT_BASE_CHILD_H

#include "base/status.h"
#include "base/str.h"

/* Runs in the child; what it appends to reply comes back. The child ends when it returns. */
typedef ct_status *ct_child_work(void *context, ct_str *reply);

typedef struct ct_child_opts {
    void (*tick)(void *context, double seconds); /* in this process, about once a second; may be NULL */
    void *tick_context;
} ct_child_opts;

typedef struct ct_child_usage {
    double seconds, cpu_seconds;
    int64_t peak_bytes; /* of resident memory */
} ct_child_usage;

/* Runs work to its end. Its status comes back as it was, without notes of this process; what it printed on stderr is
 * printed here afterwards. Errors: work's; INTERNAL for a child that died, with the signal or exit code and the last
 * that it printed; those of fork and pipe. opts and out_usage may be NULL. */
CT_MUST_USE ct_status *ct_child_run(ct_child_work *work, void *context, const ct_child_opts *opts, ct_str *reply,
                                    ct_child_usage *out_usage);

#endif
