#include "tokenizer/added.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "tokenizer/unicode.h"

void ct__added_init(ct__added *added)
{
    *added = (ct__added){.only_begin = -1};
    ct__trie_init(&added->trie);
}

void ct__added_deinit(ct__added *added)
{
    free(added->tokens);
    ct__trie_deinit(&added->trie);
}

void ct__added_put(ct__added *added, const char *text, size_t length, ct__added_token token)
{
    CT_ASSERT(length);
    ct__trie_put(&added->trie, text, length, (int32_t)added->num_tokens);
    added->only_begin = added->num_tokens && added->only_begin != (unsigned char)text[0] ? -1 : (unsigned char)text[0];
    added->begins[(unsigned char)text[0]] = true;
    added->tokens = ct_realloc(added->tokens, (added->num_tokens + 1) * sizeof(token));
    added->tokens[added->num_tokens++] = token;
}

static bool is_word_before(const char *text, size_t at)
{
    if (!at) return false;
    size_t size;
    const unsigned char *last = ct__utf8_back((const unsigned char *)text + at);
    return ct__unicode_class(ct__unicode_get(), ct__utf8_decode(last, &size)) & CT__WORD;
}

static bool is_word_at(const char *text, size_t length, size_t at)
{
    size_t size;
    return at < length &&
           (ct__unicode_class(ct__unicode_get(), ct__utf8_decode((const unsigned char *)text + at, &size)) & CT__WORD);
}

static size_t spaces_before(const char *text, size_t from, size_t at)
{
    size_t size;
    while (at > from) {
        const unsigned char *last = ct__utf8_back((const unsigned char *)text + at);
        if (!(ct__unicode_class(ct__unicode_get(), ct__utf8_decode(last, &size)) & CT__SPACE)) break;
        at = (size_t)(last - (const unsigned char *)text);
    }
    return at;
}

static size_t spaces_behind(const char *text, size_t length, size_t at)
{
    size_t size;
    while (at < length &&
           (ct__unicode_class(ct__unicode_get(), ct__utf8_decode((const unsigned char *)text + at, &size)) & CT__SPACE))
        at += size;
    return at;
}

const ct__added_token *ct__added_at(const ct__added *added, const char *text, size_t length, size_t at, size_t *out_end)
{
    const ct__added_token *found = NULL;
    uint32_t node = 0;
    while (at < length && (node = ct__trie_step(&added->trie, node, (unsigned char)text[at]))) {
        at++;
        int32_t index = added->trie.values[node];
        if (index < 0) continue;
        found = &added->tokens[index];
        *out_end = at;
    }
    return found;
}

const ct__added_token *ct__added_find(const ct__added *added, const char *text, size_t length, size_t from,
                                      bool with_special, size_t *out_begin, size_t *out_end)
{
    if (!added->num_tokens) return NULL;
    for (size_t at = from; at < length;) {
        if (added->only_begin >= 0) {
            const char *next = memchr(text + at, added->only_begin, length - at);
            if (!next) return NULL;
            at = (size_t)(next - text);
        } else if (!added->begins[(unsigned char)text[at]]) {
            at++;
            continue;
        }
        size_t end;
        const ct__added_token *token = ct__added_at(added, text, length, at, &end);
        if (!token) {
            at++;
            continue;
        }
        /* What may not count is stepped over whole. */
        if ((token->special && !with_special) ||
            (token->single_word && (is_word_before(text, at) || is_word_at(text, length, end)))) {
            at = end;
            continue;
        }
        *out_begin = token->lstrip ? spaces_before(text, from, at) : at;
        *out_end = token->rstrip ? spaces_behind(text, length, end) : end;
        return token;
    }
    return NULL;
}
