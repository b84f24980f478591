/* The parts of a state: what loading and saving share. Only for state's own files. */
#ifndef CT_TRAIN_STATE_PARTS_H
#define CT_TRAIN_STATE_PARTS_H

#include "train/state.h"

enum { CT__STATE_PARAM, CT__STATE_EXP_AVG, CT__STATE_EXP_AVG_SQ, CT__STATE_NUM_KINDS };

/* A state is a row of items, each a parameter or moment: as many, and the kind and parameter of one. */
size_t ct__state_num_items(const ct_train_state *state);
void ct__state_item(const ct_train_state *state, size_t item, int *out_kind, int *out_param);
size_t ct__state_find_item(const ct_train_state *state, int kind, int param);

ct_layout ct__state_layout(const ct_train_state *state, int kind, int param);

/* The buffer of device 0; those of the others are num_buffers apart. */
ct_buffer **ct__state_buffers(const ct_train_state *state, int kind, int param);

/* The name in a checkpoint; heap. */
char *ct__state_name(const ct_model_param *param, int64_t layer, int kind);
ct_checkpoint_tensor ct__state_tensor(const ct_train_state *state, int kind, const ct_model_param *param,
                                      const char *name);

#endif
