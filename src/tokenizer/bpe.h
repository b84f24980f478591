/* Byte pair encoding: a piece of text starts as characters (or bytes), and of all neighbours that merge, those of the
 * lowest rank do, leftmost first, until none does. Only for files in this folder.
 *
 * Short pieces are scanned for the lowest rank; long ones keep a heap, so a piece of n bytes costs O(n log n). Pieces
 * seen lately are remembered in the scratch of the thread.
 */
#ifndef CT_TOKENIZER_BPE_H
#define CT_TOKENIZER_BPE_H

#include <stdbool.h>

#include "tokenizer/tokenizer_kind.h"
#include "tokenizer/vocab.h"

typedef struct ct__merge {
    uint64_t pair; /* left id << 32 | right id; UINT64_MAX: free */
    uint32_t rank;
    int32_t id;
} ct__merge;

typedef struct ct__bpe {
    const ct__vocab *vocab; /* borrowed; the bytes that pieces are made of */
    ct__merge *merges;      /* open addressing */
    size_t num_slots, num_merges;
    int32_t byte_ids[256];  /* of bytes (byte level) or of <0x..> (byte fallback); -1 where there is none */
    bool starts_with_bytes; /* byte level: symbols start as bytes, else as characters */
    bool byte_fallback;     /* a character that is no token becomes its bytes */
    bool whole_first;       /* a piece that is a token is that token, whatever the merges say */
    bool fuse_unknown;
    int32_t unknown; /* for characters without a token; -1: they vanish */
} ct__bpe;

void ct__bpe_deinit(ct__bpe *bpe);
void ct__bpe_add_merge(ct__bpe *bpe, int32_t left, int32_t right, uint32_t rank, int32_t id); /* the first one stays */
/* Every way to cut every token in two tokens, with the rank of the token that they give; ranks by id, NULL: the id
 * itself. What tiktoken and SentencePiece merge. */
void ct__bpe_add_all_splits(ct__bpe *bpe, const uint32_t *ranks);
const ct__merge *ct__bpe_find_merge(const ct__bpe *bpe, int32_t left, int32_t right); /* NULL when they do not merge */

/* What encoding needs beside the model: working memory and remembered pieces. Belongs to one thread at a time, and to
 * one ct__bpe. */
typedef struct ct__bpe_scratch ct__bpe_scratch;
ct__bpe_scratch *ct__bpe_scratch_new(void);
void ct__bpe_scratch_free(ct__bpe_scratch *scratch);

/* Appends the ids of a piece; with lengths, also the bytes of the piece that each id stands for. readable: how many
 * bytes from piece on may be read, at least length. Errors: a piece too long to be one. */
CT_MUST_USE ct_status *ct__bpe_encode(const ct__bpe *bpe, ct__bpe_scratch *scratch, const char *piece, size_t length,
                                      size_t readable, ct__ids *ids, ct__ids *lengths);

#endif
