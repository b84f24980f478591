/* The state of a training run on its devices: parameters, moments, the halted flag; made, loaded, saved.
 *
 *   buffers: [device][param 0 .. P-1 | exp_avg 0 .. P-1 | exp_avg_sq 0 .. P-1 | halted]    as the step takes them
 *
 * Every device holds the whole state. In checkpoints stacked parameters are kept layer by layer under Hugging Face's
 * names; moments are "state.{name}.exp_avg" and "state.{name}.exp_avg_sq".
 */
#ifndef CT_TRAIN_STATE_H
#define CT_TRAIN_STATE_H

#include "checkpoint/checkpoint.h"
#include "models/model.h"
#include "train/session.h"

typedef struct ct_train_state {
    ct_session *session;
    const ct_model *model;
    ct_dtype param_dtype, moment_dtype;
    size_t num_buffers; /* per device: 3 P + 1 */
    ct_buffer **buffers;
} ct_train_state;

void ct_train_state_init(ct_train_state *state, ct_session *session, const ct_model *model, ct_dtype param_dtype,
                         ct_dtype moment_dtype);
void ct_train_state_deinit(ct_train_state *state);

/* Initial weights from the seed; moments zero. */
CT_MUST_USE ct_status *ct_train_state_from_seed(ct_train_state *state, uint64_t seed);
/* Weights of a Hugging Face folder; moments zero. */
CT_MUST_USE ct_status *ct_train_state_from_hf(ct_train_state *state, const char *folder);
/* All of it, or only the weights, from a saved step. */
CT_MUST_USE ct_status *ct_train_state_load(ct_train_state *state, const ct_checkpoint *checkpoint, bool weights_only);
/* Saves a step with info. Waits for the work that makes the state. */
CT_MUST_USE ct_status *ct_train_state_save(ct_train_state *state, const char *folder, int64_t step, const char *info);

#endif
