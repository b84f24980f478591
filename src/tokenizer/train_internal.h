/* What training hands to the writer of its files. Only for files in this folder. */
#ifndef CT_TOKENIZER_TRAIN_INTERNAL_H
#define CT_TOKENIZER_TRAIN_INTERNAL_H

#include "tokenizer/pipeline.h"

enum { CT__NUM_LEARNED_SPECIALS = 2 };

typedef struct ct__learned_merge {
    int32_t left, right;
} ct__learned_merge;

typedef struct ct__learned {
    ct__bytes *tokens; /* from id CT__NUM_LEARNED_SPECIALS on */
    size_t num_tokens;
    ct__learned_merge *merges;
    size_t num_merges;
} ct__learned;

/* tokenizer.json and tokenizer_config.json in folder, which is made. */
CT_MUST_USE ct_status *ct__learned_write(const ct__learned *learned, const char *folder);

#endif
