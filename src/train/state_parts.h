/* The parts of a state: what loading and saving share. Only for state's own files. */
#ifndef CT_TRAIN_STATE_PARTS_H
#define CT_TRAIN_STATE_PARTS_H

#include "train/state.h"

enum { CT__STATE_PARAM, CT__STATE_EXP_AVG, CT__STATE_EXP_AVG_SQ, CT__STATE_NUM_KINDS };

ct_layout ct__state_layout(const ct_train_state *state, int kind, int param);

/* The buffer of device 0; those of the others are num_buffers apart. */
ct_buffer **ct__state_buffers(const ct_train_state *state, int kind, int param);

/* The name in a checkpoint; heap. */
char *ct__state_name(const ct_model_param *param, int64_t layer, int kind);
ct_checkpoint_tensor ct__state_tensor(const ct_train_state *state, int kind, const ct_model_param *param,
                                      const char *name);

#endif
