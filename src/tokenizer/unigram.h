/* Unigram: the way to cut a piece into tokens whose scores (log-probabilities) have the greatest sum. Only for files in
 * this folder. Source: Kudo 2018, "Subword Regularization".
 */
#ifndef CT_TOKENIZER_UNIGRAM_H
#define CT_TOKENIZER_UNIGRAM_H

#include <stdbool.h>

#include "tokenizer/tokenizer_kind.h"
#include "tokenizer/trie.h"

typedef struct ct__unigram {
    ct__trie trie;  /* of the tokens that may be part of a way */
    double *scores; /* by id */
    int32_t num_scores;
    double unknown_score;
    int32_t unknown; /* -1: a character without a token is an error */
    int32_t byte_ids[256];
    bool byte_fallback;
    bool fuse_unknown;
    bool single_precision; /* sums are floats, as SentencePiece has them; see unigram.c */
} ct__unigram;

void ct__unigram_deinit(ct__unigram *unigram);
void ct__unigram_init(ct__unigram *unigram);
/* A token that may be part of a way. */
void ct__unigram_put(ct__unigram *unigram, int32_t id, const char *bytes, size_t length, double score);

typedef struct ct__unigram_scratch {
    struct ct__unigram_node *nodes;
    size_t capacity;
} ct__unigram_scratch;

CT_MUST_USE ct_status *ct__unigram_encode(const ct__unigram *unigram, ct__unigram_scratch *scratch, const char *piece,
                                          size_t length, ct__ids *ids, ct__ids *lengths);
void ct__unigram_scratch_deinit(ct__unigram_scratch *scratch);

#endif
