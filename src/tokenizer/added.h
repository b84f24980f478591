/* Added tokens: strings that are found in text before anything else and are one id each. Only for files in this folder.
 *
 * A trie over their bytes finds the leftmost longest one. Two sets exist in a tokenizer: tokens looked for in the text
 * as it comes, and tokens looked for in what the normalizer made of it.
 */
#ifndef CT_TOKENIZER_ADDED_H
#define CT_TOKENIZER_ADDED_H

#include <stdbool.h>

#include "tokenizer/trie.h"

typedef struct ct__added_token {
    int32_t id;
    bool special;
    bool single_word;    /* only where no word character stands next to it */
    bool lstrip, rstrip; /* takes the spaces beside it */
} ct__added_token;

typedef struct ct__added {
    ct__added_token *tokens;
    size_t num_tokens;
    ct__trie trie;    /* to places in tokens */
    bool begins[256]; /* bytes that begin a token */
    int only_begin;   /* the byte that begins all of them, -1 when there are several */
} ct__added;

void ct__added_init(ct__added *added);
void ct__added_deinit(ct__added *added);
/* Of two tokens with the same text the last one counts. Text must not be empty. */
void ct__added_put(ct__added *added, const char *text, size_t length, ct__added_token token);

/* The longest token that begins at `at`, special or not; NULL when there is none. */
const ct__added_token *ct__added_at(const ct__added *added, const char *text, size_t length, size_t at,
                                    size_t *out_end);

/* The first token in text from `from` on, as [*out_begin, *out_end), lstrip (not before `from`) and rstrip included;
 * NULL when there is none. with_special: special ones are looked for, else they are text. */
const ct__added_token *ct__added_find(const ct__added *added, const char *text, size_t length, size_t from,
                                      bool with_special, size_t *out_begin, size_t *out_end);

#endif
