/* SentencePiece's precompiled character map: a trie of byte strings (a double array of the darts-clone kind) to
 * replacements. Only for files in this folder.
 *
 *   u32 bytes of trie | trie: u32 units | replacements, each ended by a zero byte      little-endian
 */
#ifndef CT_TOKENIZER_CHARSMAP_H
#define CT_TOKENIZER_CHARSMAP_H

#include "base/status.h"

typedef struct ct__charsmap ct__charsmap;

CT_MUST_USE ct_status *ct__charsmap_new(const char *bytes, size_t length, ct__charsmap **out_charsmap); /* a copy */
void ct__charsmap_free(ct__charsmap *charsmap);

/* The replacement of the shortest or longest beginning of text that has one, NULL when none has; out_used is the
 * number of bytes that it replaces. */
const char *ct__charsmap_shortest(const ct__charsmap *charsmap, const char *text, size_t length, size_t *out_used);
const char *ct__charsmap_longest(const ct__charsmap *charsmap, const char *text, size_t length, size_t *out_used);

#endif
