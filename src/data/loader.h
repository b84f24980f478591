/* A thread that makes the next batches of a dataset while the current one is in use.
 *
 *   ring:  [held by the caller] [ready] [ready] [being made]      num_prefetch + 1 batches
 *
 * Batches come in order, the same as from ct_dataset_next, each with the state behind it (ct_batch.state): what to
 * save, so that a resumed run goes on after it. The loader's functions belong to one thread.
 */
#ifndef CT_DATA_LOADER_H
#define CT_DATA_LOADER_H

#include "data/dataset.h"

typedef struct ct_loader ct_loader;

/* Starts at the dataset's place, and moves it: the dataset is the loader's until that is freed. num_prefetch 0 means 2.
 */
CT_MUST_USE ct_status *ct_loader_new(ct_dataset *dataset, int num_prefetch, ct_loader **out_loader);
void ct_loader_free(ct_loader *loader); /* waits for the batch being made, then ends the thread; NULL is allowed */

/* The next batch, valid until the next call. An error comes in place of the batch that failed, and again ever after. */
CT_MUST_USE ct_status *ct_loader_next(ct_loader *loader, const ct_batch **out_batch);

#endif
