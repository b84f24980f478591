/* Open addressing with linear probing, at most half full. */
#include "tokenizer/vocab.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

void ct__vocab_deinit(ct__vocab *vocab)
{
    free(vocab->tokens);
    free(vocab->slots);
    *vocab = (ct__vocab){0};
}

uint64_t ct__hash(const char *bytes, size_t length)
{
    const uint64_t factor = 0x9e3779b97f4a7c15u;
    uint64_t hash = length * factor, word;
    for (; length >= 8; bytes += 8, length -= 8) {
        memcpy(&word, bytes, 8);
        hash = (hash ^ word) * factor;
        hash ^= hash >> 29;
    }
    word = 0;
    memcpy(&word, bytes, length);
    hash = (hash ^ word) * factor;
    return hash ^ hash >> 32;
}

static void place(ct__vocab *vocab, int32_t id)
{
    ct__bytes token = vocab->tokens[id];
    size_t slot = ct__hash(token.data, token.length) & (vocab->num_slots - 1);
    for (; vocab->slots[slot] >= 0; slot = (slot + 1) & (vocab->num_slots - 1)) {
        ct__bytes other = vocab->tokens[vocab->slots[slot]];
        if (other.length == token.length && !memcmp(other.data, token.data, token.length)) return;
    }
    vocab->slots[slot] = id;
    vocab->num_used++;
}

static void grow_slots(ct__vocab *vocab)
{
    vocab->num_slots = CT_MAX(vocab->num_slots * 2, (size_t)1024);
    vocab->slots = ct_realloc(vocab->slots, vocab->num_slots * sizeof(*vocab->slots));
    memset(vocab->slots, 0xff, vocab->num_slots * sizeof(*vocab->slots));
    vocab->num_used = 0;
    for (int32_t id = 0; id < vocab->size; id++)
        if (vocab->tokens[id].data) place(vocab, id);
}

ct_status *ct__vocab_put(ct__vocab *vocab, int64_t id, const char *bytes, size_t length)
{
    if (id < 0 || id >= CT__MAX_VOCAB)
        return ct_error(CT_CODE_OUT_OF_RANGE, "token ids must be in [0, %d), but \"%.*s\" has %lld", CT__MAX_VOCAB,
                        (int)CT_MIN(length, (size_t)64), bytes, (long long)id);
    if (id >= vocab->capacity) {
        int32_t old = vocab->capacity;
        vocab->capacity = CT_MAX((int32_t)id + 1, old * 2);
        vocab->tokens = ct_realloc(vocab->tokens, (size_t)vocab->capacity * sizeof(*vocab->tokens));
        memset(vocab->tokens + old, 0, (size_t)(vocab->capacity - old) * sizeof(*vocab->tokens));
    }
    if (vocab->tokens[id].data)
        return ct_error(CT_CODE_INVALID_ARGUMENT, "ids must be unique, but %lld is both \"%.*s\" and \"%.*s\"",
                        (long long)id, (int)CT_MIN(vocab->tokens[id].length, (size_t)64), vocab->tokens[id].data,
                        (int)CT_MIN(length, (size_t)64), bytes);
    if ((vocab->num_used + 1) * 2 > vocab->num_slots) grow_slots(vocab);
    vocab->tokens[id] = (ct__bytes){bytes, length};
    if (id >= vocab->size) vocab->size = (int32_t)id + 1;
    place(vocab, (int32_t)id);
    return NULL;
}

int32_t ct__vocab_find(const ct__vocab *vocab, const char *bytes, size_t length)
{
    if (!vocab->num_slots) return -1;
    size_t slot = ct__hash(bytes, length) & (vocab->num_slots - 1);
    for (; vocab->slots[slot] >= 0; slot = (slot + 1) & (vocab->num_slots - 1)) {
        ct__bytes token = vocab->tokens[vocab->slots[slot]];
        if (token.length == length && !memcmp(token.data, bytes, length)) return vocab->slots[slot];
    }
    return -1;
}

ct__bytes ct__vocab_at(const ct__vocab *vocab, int32_t id)
{
    return id >= 0 && id < vocab->size ? vocab->tokens[id] : (ct__bytes){0};
}
