/* Items done by some threads at once: files hashed, files written. */
#ifndef CT_BASE_WORKERS_H
#define CT_BASE_WORKERS_H

#include "base/status.h"

/* Does item `item`, on worker `worker` of 0 .. num_workers - 1; a worker does one item at a time. */
typedef ct_status *ct_workers_function(void *context, int worker, size_t item);

/* Calls function for items 0 .. num_items - 1, begun in order, on up to num_workers threads, the caller's being worker
 * 0; returns when all that was begun is done. After an error nothing more is begun. Fewer threads than asked for do
 * where the system gives no more. Errors: function's for the lowest item of those that fail, whoever was first: the
 * items before it were begun, too. */
CT_MUST_USE ct_status *ct_workers_run(int num_workers, size_t num_items, ct_workers_function *function, void *context);

/* Processors that this process may use, at most limit. */
int ct_workers_count(int limit);

#endif
