/* Tokenizers: text to ids and back, one interface for all kinds. Immutable once made, so threads may share one.
 *
 * The only kind so far is the byte tokenizer: ids 0..255 are the bytes of the text, 256 begins and 257 ends a document.
 */
#ifndef CT_TOKENIZER_TOKENIZER_H
#define CT_TOKENIZER_TOKENIZER_H

#include <stdbool.h>

#include "base/status.h"
#include "base/str.h"

typedef struct ct_tokenizer ct_tokenizer;

ct_tokenizer *ct_tokenizer_bytes_new(void);
void ct_tokenizer_free(ct_tokenizer *tokenizer); /* NULL is allowed */

const char *ct_tokenizer_name(const ct_tokenizer *tokenizer);            /* "bytes" */
int32_t ct_tokenizer_vocab_size(const ct_tokenizer *tokenizer);          /* ids are below it */
int32_t ct_tokenizer_bos(const ct_tokenizer *tokenizer);                 /* begin of document; -1 when it has none */
int32_t ct_tokenizer_eos(const ct_tokenizer *tokenizer);                 /* end of document; -1 when it has none */
bool ct_tokenizer_is_special(const ct_tokenizer *tokenizer, int32_t id); /* stands for no text */

typedef struct ct_tokenizer_encode_opts {
    bool add_bos, add_eos; /* those that the tokenizer has */
} ct_tokenizer_encode_opts;

/* The ids of length bytes of text; heap, the caller's to free(). */
CT_MUST_USE ct_status *ct_tokenizer_encode(const ct_tokenizer *tokenizer, const char *text, size_t length,
                                           const ct_tokenizer_encode_opts *opts, int32_t **out_ids,
                                           size_t *out_num_ids);

/* Appends the bytes that the ids stand for, which need not be whole characters; special ids give nothing.
 * Errors: OUT_OF_RANGE naming position and value of an id outside the vocabulary; then str is as it was. */
CT_MUST_USE ct_status *ct_tokenizer_decode(const ct_tokenizer *tokenizer, const int32_t *ids, size_t num_ids,
                                           ct_str *str);

/* Decoding id by id for a reader who sees text grow: bytes are held back until they are whole UTF-8 characters, and
 * bytes that can be none become U+FFFD. Belongs to one thread. */
typedef struct ct_token_stream {
    const ct_tokenizer *tokenizer; /* borrowed */
    ct_str held;
} ct_token_stream;

void ct_token_stream_init(ct_token_stream *stream, const ct_tokenizer *tokenizer);
void ct_token_stream_deinit(ct_token_stream *stream);
CT_MUST_USE ct_status *ct_token_stream_push(ct_token_stream *stream, int32_t id, ct_str *str); /* appends to str */
void ct_token_stream_finish(ct_token_stream *stream, ct_str *str); /* what is still held, as U+FFFD */

#endif
