/* Threads that do the units of several jobs, whichever has one. Only for files in this folder. */
#ifndef CT_DATA_WORKERS_H
#define CT_DATA_WORKERS_H

#include <stdbool.h>

#include "base/status.h"

typedef struct ct__workers ct__workers;

typedef struct ct__job {
    /* With the lock held: a unit that may be done now, or NULL. */
    void *(*take)(void *context);
    /* Without the lock: does it. The caller wakes all waiters afterwards. */
    void (*run)(void *context, void *unit);
    void *context;
} ct__job;

ct__workers *ct__workers_new(int num_threads);
void ct__workers_free(ct__workers *workers); /* waits for the units under way; NULL is allowed */

void ct__workers_add(ct__workers *workers, const ct__job *job); /* before _start; the job must outlive the workers */
CT_MUST_USE ct_status *ct__workers_start(ct__workers *workers); /* once they are started nothing happens */

void ct__workers_lock(ct__workers *workers);
void ct__workers_unlock(ct__workers *workers);
void ct__workers_changed(ct__workers *workers); /* with the lock held: wakes all */

/* With the lock held: until *done, does units of the job, or waits for others who do. */
void ct__workers_await(ct__workers *workers, const ct__job *job, const bool *done);
/* With the lock held: until *count is 0. */
void ct__workers_await_none(ct__workers *workers, const int *count);

#endif
