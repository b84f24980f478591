/* What a kind of tokenizer gives to the interface. Only for files in this folder. */
#ifndef CT_TOKENIZER_TOKENIZER_KIND_H
#define CT_TOKENIZER_TOKENIZER_KIND_H

#include "tokenizer/tokenizer.h"

/* Ids on their way out of an encoder. */
typedef struct ct__ids {
    int32_t *data;
    size_t count, capacity;
} ct__ids;

void ct__ids_append(ct__ids *ids, int32_t id);
void ct__ids_reserve(ct__ids *ids, size_t extra);

struct ct_tokenizer {
    const char *name;
    int32_t vocab_size, bos, eos;
    /* Appends the ids of text, without bos and eos. */
    ct_status *(*encode)(const ct_tokenizer *tokenizer, const char *text, size_t length, ct__ids *ids);
    /* Appends the bytes of an id below vocab_size; false when it is special. */
    bool (*append)(const ct_tokenizer *tokenizer, int32_t id, ct_str *str);
    bool (*is_special)(const ct_tokenizer *tokenizer, int32_t id);
    void (*deinit)(ct_tokenizer *tokenizer); /* NULL when there is nothing of its own */
};

#endif
