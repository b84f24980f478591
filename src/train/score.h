/* Scoring: how likely a Hugging Face folder's model finds given tokens, with logits and gradients on demand.
 *
 *   in    tokens  s32 [batch, seq + 1], or [steps, batch, seq + 1] of which the first is taken
 *         labels  s32 [batch, seq] (or [steps, batch, seq]), optional: in place of the shifted tokens; -100 is ignored
 *   out   loss [1], logprobs [batch, seq] (0 where ignored), logits [batch, seq, vocab], grad.<name> as in the folder;
 * f32
 */
#ifndef CT_TRAIN_SCORE_H
#define CT_TRAIN_SCORE_H

#include "kernels/kernel.h"
#include "train/session.h"

typedef struct ct_score_run_opts {
    const char *model_folder;
    const char *tokens_path;
    const char *output_path;
    bool logits, gradients;
    ct_kernels kernels; /* forms; its platform and chip are the session's */
    ct_session_opts session;
} ct_score_run_opts;

/* out_loss is for printing. Errors: those of reading folder and file; OUT_OF_RANGE naming position and value of an id
 * outside the vocabulary; INVALID_ARGUMENT when no label counts. output_path is written whole or not at all. */
CT_MUST_USE ct_status *ct_score(const ct_score_run_opts *opts, double *out_loss);

#endif
