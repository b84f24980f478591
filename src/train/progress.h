/* Where a run stands, besides its weights and moments: what a checkpoint's info says of it.
 *
 *   {"n_tokens_seen": 8192, "lr_scheduler": {"last_epoch": 4}, "optimizer": {"steps": 4}, "model_only": false,
 *    "seed": 42, "model": "qwen3", "flavor": "debugmodel", "dataloader": the data module's own,
 *    "lora": with adapters, train/lora.h}
 *
 * Step, schedule and optimizer count the same steps, unless checkpoint.exclude_from_loading started one of them anew.
 * All random bits are functions of the seed and the step.
 */
#ifndef CT_TRAIN_PROGRESS_H
#define CT_TRAIN_PROGRESS_H

#include "data/dataset.h"
#include "train/lora.h"
#include "train/recipe.h"
#include "train/state.h"

typedef struct ct_progress {
    int64_t step;            /* the last one done */
    int64_t tokens_seen;     /* in all steps done */
    int64_t schedule_steps;  /* of the learning rate schedule that are done */
    int64_t optimizer_steps; /* that the moments have seen */
    ct_lora_base base;       /* of a model with adapters: the weights that they are trained on */
} ct_progress;

/* The info of a checkpoint; heap. data: its place after progress->step. */
char *ct_progress_info(const ct_progress *progress, const ct_recipe *recipe, const ct_model *model,
                       const ct_data_state *data, bool model_only);

/* Makes the state that a run starts with, and puts dataset where it goes on: from the steps in folder when checkpoints
 * are enabled and there are any, else from checkpoint.initial_load_path, else from the seed. Of the steps in folder it
 * is the newest that is whole and that training can go on from; each newer one is a warning that says why not. Frozen
 * weights come from initial_load_path or the seed each time, and must be those that the step's adapters were trained
 * on. Errors: DATA_LOSS when there are steps, but none is whole; FAILED_PRECONDITION when those that are have weights
 * alone; those of reading, of devices and of data that is not the saved run's. */
CT_MUST_USE ct_status *ct_progress_start(const ct_recipe *recipe, const char *folder, ct_train_state *state,
                                         ct_dataset *dataset, ct_progress *out_progress);

#endif
