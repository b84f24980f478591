/* From a recipe to the model and the options of its step: what training and checking share. */
#ifndef CT_TRAIN_SETUP_H
#define CT_TRAIN_SETUP_H

#include "data/dataset.h"
#include "models/model.h"
#include "pjrt/torus.h"
#include "train/recipe.h"
#include "train/step.h"

/* The model that a recipe names; seq_len is checked against it.
 * Errors: those of ct_model_config_find and _read; INVALID_ARGUMENT naming the recipe's line. */
CT_MUST_USE ct_status *ct_recipe_model(const ct_recipe *recipe, ct_model **out_model);

/* Are devices of that kind what device.topology names? That they are as many is checked at loading and opening.
 * Errors: FAILED_PRECONDITION. */
CT_MUST_USE ct_status *ct_recipe_check_kind(const ct_recipe *recipe, const char *device_kind);

/* The torus of the slice that device.topology names and PJRT's name of its chips; no axes and NULL where none is named.
 */
void ct_recipe_torus(const ct_recipe *recipe, ct_torus *out_torus, const char **out_kind);

/* How the model lies on the recipe's mesh, along the torus of a slice of num_torus axes (0: no topology is known) of
 * devices of a kind (NULL: not known). Errors: INVALID_ARGUMENT naming the recipe's lines and the sizes that do not
 * divide. */
CT_MUST_USE ct_status *ct_recipe_parallel(const ct_recipe *recipe, const ct_model *model, int num_torus,
                                          const int64_t *torus, const char *device_kind, ct_parallel *out_parallel);

/* The forms of the kernels that a recipe asks for, on devices of a kind (NULL: not known). Borrows from recipe. */
ct_kernels ct_recipe_kernels(const ct_recipe *recipe, const char *device_kind);

/* The step's options; recipe and parallel must outlive them. */
ct_step_opts ct_recipe_step(const ct_recipe *recipe, const ct_parallel *parallel, const char *device_kind);

/* The tokenizer of model.hf_assets_path; when that is unset, of the folder that model.flavor names, if it has one, else
 * bytes. Errors: those of ct_tokenizer_open, with the recipe's line. */
CT_MUST_USE ct_status *ct_recipe_tokenizer(const ct_recipe *recipe, ct_tokenizer **out_tokenizer);

/* The path of that tokenizer, or "bytes", and the key that names it. */
const char *ct_recipe_tokenizer_path(const ct_recipe *recipe, const char **out_key);

/* The data of a recipe's step; recipe, tokenizer and chat (NULL where there are no conversations) must outlive the
 * dataset. */
ct_dataset_opts ct_recipe_data(const ct_recipe *recipe, const ct_step_opts *step, const ct_model *model,
                               const ct_tokenizer *tokenizer, const ct_chat_renderer *chat);

/* Which forms the step's kernels take and why: "attention portable (512 keys or more), loss ..."; heap. */
char *ct_step_kernels_text(const ct_step_opts *step, const ct_model *model);

/* FLOPs per token of a model at a sequence length, forward and backward. */
double ct_model_flops_per_token(const ct_model *model, int64_t seq_len);

#endif
