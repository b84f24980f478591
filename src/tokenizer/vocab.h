/* A vocabulary: ids to bytes and back. Only for files in this folder.
 *
 *   tokens: [bytes][bytes][ hole ][bytes]...      slots: [-1 | 3 | -1 | 0 ...]   by hash of the bytes
 *
 * Bytes are borrowed from who puts them in. Of two ids with equal bytes the first one put in is found.
 */
#ifndef CT_TOKENIZER_VOCAB_H
#define CT_TOKENIZER_VOCAB_H

#include "base/status.h"

/* No published vocabulary comes near; more would only be a damaged file asking for memory. */
enum { CT__MAX_VOCAB = 1 << 23 };

typedef struct ct__bytes {
    const char *data; /* NULL: no such token */
    size_t length;
} ct__bytes;

typedef struct ct__vocab {
    ct__bytes *tokens;
    int32_t size; /* ids are below it */
    int32_t capacity;
    int32_t *slots;
    size_t num_slots, num_used;
} ct__vocab;

void ct__vocab_deinit(ct__vocab *vocab);
/* Errors: an id out of range or one that has bytes already. */
CT_MUST_USE ct_status *ct__vocab_put(ct__vocab *vocab, int64_t id, const char *bytes, size_t length);
int32_t ct__vocab_find(const ct__vocab *vocab, const char *bytes, size_t length); /* -1 when absent */
ct__bytes ct__vocab_at(const ct__vocab *vocab, int32_t id);                       /* data NULL when there is none */

uint64_t ct__hash(const char *bytes, size_t length);

#endif
