/* From a recipe to the model and the options of its step: what training and checking share. */
#ifndef CT_TRAIN_SETUP_H
#define CT_TRAIN_SETUP_H

#include "models/model.h"
#include "train/recipe.h"
#include "train/step.h"

/* The model that a recipe names; seq_len is checked against it.
 * Errors: those of ct_model_config_find and _read; INVALID_ARGUMENT naming the recipe's line. */
CT_MUST_USE ct_status *ct_recipe_model(const ct_recipe *recipe, ct_model **out_model);

/* The step's options; the recipe must outlive them. */
ct_step_opts ct_recipe_step(const ct_recipe *recipe);

/* FLOPs per token of a model at a sequence length, forward and backward. */
double ct_model_flops_per_token(const ct_model *model, int64_t seq_len);

#endif
