/* The loss on data that is not trained on ([validation] of a recipe): forward passes of one compiled program, as spread
 * over the devices as the step is, over the same data from its start each time.
 *
 *   loss = sum over all labels of all batches / their number      -100 is not counted; a last batch may be short
 *
 * The program takes the state's weights and gives none back, and the data has a place of its own, so a run ends with
 * the bits that it has without validation.
 */
#ifndef CT_TRAIN_VALIDATE_H
#define CT_TRAIN_VALIDATE_H

#include "train/recipe.h"
#include "train/state.h"
#include "train/step.h"

typedef struct ct_validator ct_validator;

typedef struct ct_validator_opts {
    const ct_recipe *recipe;
    ct_session *session;
    const ct_model *model;
    const ct_parallel *parallel;
    const ct_step_opts *step; /* of training; size of batch and sequence are validation's own */
    const ct_tokenizer *tokenizer;
    const ct_chat_renderer *chat; /* NULL: no conversations */
} ct_validator_opts;

/* Opens the data and compiles the program; what opts points to must outlive the validator.
 * Errors: those of ct_dataset_open and of compiling, naming the recipe's lines. */
CT_MUST_USE ct_status *ct_validator_open(const ct_validator_opts *opts, ct_validator **out_validator);
void ct_validator_free(ct_validator *validator); /* NULL is allowed */

/* After step 1 and each multiple of validation.freq. */
bool ct_validation_is_due(const ct_recipe *recipe, int64_t step);

/* Waits for the result. num_tokens: positions computed, over all devices.
 * Errors: INVALID_ARGUMENT when the data has no label to average over; those of reading and of devices. */
CT_MUST_USE ct_status *ct_validator_run(ct_validator *validator, const ct_train_state *state, double *out_loss,
                                        int64_t *out_num_tokens);

#endif
