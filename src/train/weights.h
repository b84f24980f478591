/* Weights from a Hugging Face folder to the parameters of a program. */
#ifndef CT_TRAIN_WEIGHTS_H
#define CT_TRAIN_WEIGHTS_H

#include "formats/safetensors.h"
#include "models/model.h"
#include "train/session.h"

/* The safetensors of a Hugging Face folder. Errors: those of ct_safetensors_dir_open; of a saved step, which is no such
 * folder, what makes one of it. */
CT_MUST_USE ct_status *ct_weights_open(const char *folder, ct_safetensors **out_file);

/* One parameter as f32, layers stacked where the parameter is; array is of the model's axes, freed with ct_array_free.
 * Errors: NOT_FOUND for a missing tensor, INVALID_ARGUMENT for a wrong shape or dtype, or a value that is not finite,
 * naming file, tensor and index. */
CT_MUST_USE ct_status *ct_weights_read(const ct_safetensors *file, const ct_model *model, int param,
                                       ct_array *out_array);

/* The box [offsets, offsets + sizes) of one layer of a parameter (without its axis layers), dense. */
CT_MUST_USE ct_status *ct_weights_read_box(const ct_safetensors *file, const ct_model_param *param, int64_t layer,
                                           const int64_t *offsets, const int64_t *sizes, float *out_values);

/* All parameters of a folder's model, rounded to dtype, whole on the session's first device: out_buffers[num_params],
 * which hold NULL where reading did not get to on an error. Warns of tensors that are left out. */
CT_MUST_USE ct_status *ct_weights_put(const char *folder, const ct_model *model, ct_dtype dtype, ct_session *session,
                                      ct_buffer **out_buffers);

/* One warning line when the folder holds tensors that the model does not take. */
void ct_weights_warn_unused(const ct_safetensors *file, const ct_model *model);

/* The sizes of a parameter as the program has them, for ct_array. */
void ct_model_param_sizes(const ct_model *model, int param, int *out_rank, int64_t out_sizes[CT_MAX_RANK]);

#endif
