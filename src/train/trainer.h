/* The trainer: a recipe, carried out.
 *
 *   batch k+1 is put on the device while step k runs; metrics of step k are read while step k+1 runs
 *
 *     host     put 1  run 1  put 2  run 2  read 1  put 3  run 3  read 2 ...
 *     device          [ step 1      ][ step 2      ][ step 3 ...
 *
 * A run leaves in dump_folder: recipe.toml (all values, resolved), metrics.jsonl, and checkpoint/step-N when enabled.
 */
#ifndef CT_TRAIN_TRAINER_H
#define CT_TRAIN_TRAINER_H

#include <signal.h>

#include "train/provenance.h"
#include "train/recipe.h"
#include "train/session.h"

typedef struct ct_train_opts {
    const ct_recipe *recipe;
    ct_session_opts session;
    ct_provenance provenance;          /* for environment.json */
    const volatile sig_atomic_t *stop; /* not 0: end after the step under way, saving it when checkpoints are on */
} ct_train_opts;

/* Trains. Errors: ABORTED naming the step when loss or norm is not finite; CANCELLED when stop was set; those of data,
 * devices, files. After an error the newest checkpoint is whole. */
CT_MUST_USE ct_status *ct_train(const ct_train_opts *opts);

#endif
