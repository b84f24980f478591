/* Batches from the host to the devices, each device getting the box that the mesh gives it. */
#ifndef CT_TRAIN_INPUTS_H
#define CT_TRAIN_INPUTS_H

#include "data/dataset.h"
#include "train/session.h"
#include "train/step.h"

enum { CT_NUM_BATCH_ARRAYS = 4 }; /* tokens, labels, positions, segments */

typedef struct ct_inputs {
    ct_session *session;
    const ct_parallel *parallel;
    int64_t num_microbatches, batch, seq_len;
    int64_t *column_order; /* of the sequence's columns on the devices (spmd/balance.h); NULL: as they are */
    ct_array columns;      /* a batch input in that order */
} ct_inputs;

/* session may be given later. Errors: those of ct_head_tail_order. */
CT_MUST_USE ct_status *ct_inputs_init(ct_inputs *inputs, const ct_parallel *parallel, const ct_step_opts *step);
void ct_inputs_deinit(ct_inputs *inputs); /* all zero is allowed */

/* Starts copies of the batch's four arrays, [global batch, seq], as [batch, seq], or [accum, batch, seq] with
 * microbatches: out_buffers[device * stride + array]. The batch may change on return. */
CT_MUST_USE ct_status *ct_inputs_put(ct_inputs *inputs, const ct_batch *batch, ct_buffer **out_buffers, size_t stride);

#endif
