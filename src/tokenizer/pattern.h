/* Regular expressions that cut text into pieces. The published patterns of GPT-2, Llama 3 and Qwen are recognised by
 * their exact text and have matchers written by hand; all others run in PCRE2, with classes spelled out from our own
 * Unicode tables, since PCRE2's are of another version. Only for files in this folder.
 *
 * A pattern is immutable and shared by threads; what a match needs beside it is a ct__matcher, one per thread.
 */
#ifndef CT_TOKENIZER_PATTERN_H
#define CT_TOKENIZER_PATTERN_H

#include <stdbool.h>

#include "base/status.h"
#include "base/str.h"

/* What ^ and $ mean. */
typedef enum ct__dialect {
    CT__DIALECT_ONIGURUMA, /* Hugging Face: at every line */
    CT__DIALECT_RUST,      /* tiktoken: at the text's begin and end */
} ct__dialect;

typedef struct ct__pattern ct__pattern;
typedef struct ct__matcher ct__matcher;

/* A matcher written by hand for a pattern that leaves nothing between matches: the end of the match at begin < length
 * in well-formed UTF-8. */
typedef size_t ct__scan_function(const unsigned char *text, size_t begin, size_t length);

extern const char ct__pattern_gpt2[], ct__pattern_llama3[], ct__pattern_qwen2[];
ct__scan_function ct__scan_gpt2, ct__scan_llama3, ct__scan_qwen2;

/* Errors: INVALID_ARGUMENT, UNIMPLEMENTED: what is wrong with the pattern, and where. generic: PCRE2 in any case. */
CT_MUST_USE ct_status *ct__pattern_new(const char *regex, ct__dialect dialect, bool generic, ct__pattern **out_pattern);
void ct__pattern_free(ct__pattern *pattern);
ct__scan_function *ct__pattern_scan(const ct__pattern *pattern); /* NULL: there is none, use _match */

/* The first match that is not empty from `from` on. */
CT_MUST_USE ct_status *ct__pattern_match(const ct__pattern *pattern, ct__matcher *matcher, const char *text,
                                         size_t length, size_t from, bool *out_found, size_t *out_begin,
                                         size_t *out_end);

ct__matcher *ct__matcher_new(void);
void ct__matcher_free(ct__matcher *matcher);

/* The pattern as PCRE2 gets it. */
CT_MUST_USE ct_status *ct__pattern_rewrite(const char *regex, ct_str *out);

#endif
