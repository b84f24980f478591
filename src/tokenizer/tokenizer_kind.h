/* What a kind of tokenizer gives to the interface. Only for files in this folder. */
#ifndef CT_TOKENIZER_TOKENIZER_KIND_H
#define CT_TOKENIZER_TOKENIZER_KIND_H

#include "tokenizer/tokenizer.h"

/* Ids on their way out of an encoder. */
typedef struct ct__ids {
    int32_t *data;
    size_t count, capacity;
} ct__ids;

void ct__ids_grow(ct__ids *ids, size_t extra);

static inline void ct__ids_reserve(ct__ids *ids, size_t extra)
{
    if (ids->count + extra > ids->capacity) ct__ids_grow(ids, extra);
}

static inline void ct__ids_append(ct__ids *ids, int32_t id)
{
    ct__ids_reserve(ids, 1);
    ids->data[ids->count++] = id;
}

/* Where ids come from, on the way out; empty unless wanted. */
typedef struct ct__ranges {
    bool wanted;
    ct_token_range *data;
    size_t count, capacity;
} ct__ranges;

void ct__ranges_append(ct__ranges *ranges, ct_token_range range);

struct ct_tokenizer {
    const char *name;
    int32_t vocab_size, bos, eos;
    /* Appends the ids of text, without bos and eos, and their ranges if those are wanted. */
    ct_status *(*encode)(const ct_tokenizer *tokenizer, const char *text, size_t length,
                         const ct_tokenizer_encode_opts *opts, ct__ids *ids, ct__ranges *ranges);
    /* Appends the bytes of an id below vocab_size; false when it is special. begun: it is not the first of a text. */
    bool (*append)(const ct_tokenizer *tokenizer, int32_t id, bool begun, ct_str *str);
    bool (*is_special)(const ct_tokenizer *tokenizer, int32_t id);
    const char *(*token)(const ct_tokenizer *tokenizer, int32_t id, size_t *out_length);
    int32_t (*find)(const ct_tokenizer *tokenizer, const char *token, size_t length);
    /* Puts bos and eos around texts if nothing else is put there; NULL: never. */
    void (*set_around)(ct_tokenizer *tokenizer, bool bos, bool eos);
    void (*deinit)(ct_tokenizer *tokenizer); /* NULL when there is nothing of its own */
};

#endif
