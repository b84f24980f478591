/* Saves of a training run: in the foreground, or on a thread of their own while training goes on.
 *
 *     step k      [save: waits for the save before, takes the state]  step k+1  step k+2 ...
 *     saver's thread                        [read a part, hash, write | ...       ][rename][remove old steps]
 *
 * What is being saved must not change under the saver's hands, so in the background it saves
 *   SHARED  the buffers themselves: the step after must not give them away (ct_saver_shares), and makes its outputs
 *           elsewhere; where the devices have no room for that, as PINNED
 *   PINNED  copies in the devices' pinned host memory
 *   COPIED  copies in memory that the saver keeps from save to save; best on the CPU, where to touch fresh memory costs
 *           more than the copy
 * The step after waits for copies, as for any user of its arguments.
 *
 * A save that fails for want of room, or by any other error of files, is a warning: training goes on, the steps before
 * stay, and the next save tries again. An error of a device ends the run.
 * Functions belong to one thread.
 */
#ifndef CT_TRAIN_SAVER_H
#define CT_TRAIN_SAVER_H

#include "train/recipe.h"
#include "train/state.h"

typedef struct ct_saver ct_saver;

typedef enum ct_saver_mode {
    CT_SAVER_WAITS, /* saves in the foreground */
    CT_SAVER_SHARED,
    CT_SAVER_PINNED,
    CT_SAVER_COPIED,
} ct_saver_mode;

/* What checkpoint.async_mode means on the session's devices. */
ct_saver_mode ct_saver_mode_of(ct_recipe_async async_mode, const ct_session *session);

typedef struct ct_saver_opts {
    const char *folder; /* of the steps */
    ct_saver_mode mode;
    int64_t keep; /* newest steps that stay, 0: all */
} ct_saver_opts;

ct_saver *ct_saver_new(const ct_saver_opts *opts);
void ct_saver_free(ct_saver *saver); /* waits; NULL is allowed */

typedef struct ct_saver_step {
    int64_t step;
    bool is_last; /* nothing runs after it: waits, and its failure is an error */
    bool model_only, is_hf;
    ct_dtype dtype; /* of the weights, with model_only; 0: as they are */
    const ct_checkpoint_asset *assets;
    size_t num_assets; /* copied, with the bytes */
    const char *info;  /* text of a JSON object; copied */
} ct_saver_step;

/* Saves the state, or starts to; waits for the save before it. The state must be of finished work.
 * Errors: those of devices; with is_last those of files, too. */
CT_MUST_USE ct_status *ct_saver_save(ct_saver *saver, ct_train_state *state, const ct_saver_step *step);

/* Whether state's buffers are being saved, so that the next step must not take them by donation. */
bool ct_saver_shares(const ct_saver *saver);
/* The next step has started and the state has other buffers: those before are the saver's now. */
void ct_saver_state_moved(ct_saver *saver);

/* Reports a save that has ended; never waits. Errors: those of devices. */
CT_MUST_USE ct_status *ct_saver_poll(ct_saver *saver);
/* Waits for the save under way and reports it. */
CT_MUST_USE ct_status *ct_saver_wait(ct_saver *saver);

#endif
