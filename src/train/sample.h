/* A sample of text from a model on its devices, for a look at what a run has learned. One program, the whole forward
 * pass for each new token; no cache of keys and values.
 */
#ifndef CT_TRAIN_SAMPLE_H
#define CT_TRAIN_SAMPLE_H

#include "kernels/kernel.h"
#include "models/model.h"
#include "tokenizer/tokenizer.h"
#include "train/state.h"

typedef struct ct_sample_opts {
    const char *prompt;
    int64_t max_tokens;
    double temperature; /* 0: the likeliest token each time */
    uint64_t seed;
    ct_kernels kernels;
} ct_sample_opts;

/* Appends prompt and continuation to out_text, up to the end-of-document token. One device runs it; where parameters
 * are spread over several they are gathered there. */
CT_MUST_USE ct_status *ct_sample(const ct_train_state *state, const ct_tokenizer *tokenizer, const ct_sample_opts *opts,
                                 ct_str *out_text);

#endif
