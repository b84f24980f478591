/* The state of a training run on its devices: parameters, moments, the halted flag; made, loaded, saved.
 *
 *   buffers: [device][param 0 .. P-1 | exp_avg F .. P-1 | exp_avg_sq F .. P-1 | halted]    as the step takes them
 *
 * The first F parameters are frozen: all but the adapters of a model that has some (models/lora.h), else F is 0. They
 * are loaded once, have no moments, and no step changes or saves them.
 *
 * Each device holds its part of every parameter and moment, as ct_parallel says (all of it on one device). In
 * checkpoints stacked parameters are kept layer by layer under Hugging Face's names; moments are
 * "state.{name}.exp_avg" and "state.{name}.exp_avg_sq". A save writes the devices' parts, each once; a load reads the
 * parts that its own devices want, whatever the mesh of the run that saved. At most four parts of parameters
 * are on the host at a time.
 */
#ifndef CT_TRAIN_STATE_H
#define CT_TRAIN_STATE_H

#include <stdatomic.h>

#include "checkpoint/checkpoint.h"
#include "models/model.h"
#include "train/session.h"

typedef struct ct_train_state {
    ct_session *session;
    const ct_model *model;
    const ct_parallel *parallel;
    ct_dtype param_dtype, moment_dtype;
    bool moments_on_host;
    size_t num_buffers; /* per device: P + 2 (P - F) + 1 */
    ct_buffer **buffers;
    void **host; /* [device][param ...] a part's bytes on the host, saved in place of its buffer; NULL: none */
} ct_train_state;

/* parallel: NULL for one device; else its mesh is of the session's devices. */
void ct_train_state_init(ct_train_state *state, ct_session *session, const ct_model *model, const ct_parallel *parallel,
                         ct_dtype param_dtype, ct_dtype moment_dtype);
void ct_train_state_deinit(ct_train_state *state);

/* Initial weights from the seed; moments zero. */
CT_MUST_USE ct_status *ct_train_state_from_seed(ct_train_state *state, uint64_t seed);
/* Weights of a Hugging Face folder; moments zero. What the state held is freed. Of a model with adapters those that are
 * frozen, and one of the three below makes the state whole. */
CT_MUST_USE ct_status *ct_train_state_from_hf(ct_train_state *state, const char *folder);
/* The frozen weights from a saved step, of any floating type. */
CT_MUST_USE ct_status *ct_train_state_load_frozen(ct_train_state *state, const ct_checkpoint *checkpoint);

/* New adapters from the seed; moments zero. */
CT_MUST_USE ct_status *ct_train_state_new_adapters(ct_train_state *state, uint64_t seed);
/* Adapters of an adapter_model.safetensors; moments zero. */
CT_MUST_USE ct_status *ct_train_state_read_adapters(ct_train_state *state, const char *path);
/* All that is not frozen, or only the weights of that (of any floating type) and moments zero, from a saved step. What
 * the state held of it is freed. */
CT_MUST_USE ct_status *ct_train_state_load(ct_train_state *state, const ct_checkpoint *checkpoint, bool weights_only);
/* One parameter whole, on the host; freed with ct_array_free. */
CT_MUST_USE ct_status *ct_train_state_param(const ct_train_state *state, int param, ct_array *out_array);
/* Bytes of parameters and moments on one device (the most that any has), and in all without copies and padding. */
double ct_train_state_bytes(const ct_model *model, const ct_parallel *parallel, ct_dtype param_dtype,
                            ct_dtype moment_dtype, double *out_total);
/* Of those bytes on one device the ones that a step changes. */
double ct_train_state_changing_bytes(const ct_train_state *state);

/* How a state is written. */
typedef struct ct_train_save_opts {
    const char *info; /* text of a JSON object */
    bool model_only;  /* no moments */
    bool is_hf;       /* a Hugging Face folder, adapters merged into the weights; with model_only */
    ct_dtype dtype;   /* of the weights in the files, with model_only; 0: as they are */
    const ct_checkpoint_asset *assets;
    size_t num_assets;
    /* Once it is true, a buffer that is not needed any more is freed and NULLed; NULL: the buffers stay. */
    const atomic_bool *may_free;
    bool *out_device_failed; /* whether the error is of a device, not of files; or NULL */
} ct_train_save_opts;

/* Starts copies of all parts that a step changes to memory that grows as needed, and gives their places and, for each,
 * the event of its end (NULL where there is none), in two arrays as buffers is. The state may go on changing at once:
 * what takes its buffers waits for the copies. */
CT_MUST_USE ct_status *ct_train_state_copy(const ct_train_state *state, void **memory, size_t *memory_bytes,
                                           void **out_host, ct_event **out_events);

/* Saves a step. Waits for the work that makes the state. Any thread may do it, whose state nobody else changes. */
CT_MUST_USE ct_status *ct_train_state_save(ct_train_state *state, const char *folder, int64_t step,
                                           const ct_train_save_opts *opts);

#endif
