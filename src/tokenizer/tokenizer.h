/* Tokenizers: text to ids and back, one interface for all kinds. Immutable once made, so threads may share one.
 *
 * Kinds: bytes (ids 0..255 are the bytes of the text, 256 begins and 257 ends a document), and what files hold: Hugging
 * Face's tokenizer.json, vocab.json with merges.txt, tiktoken's rank files, Mistral's tekken.json, SentencePiece's
 * tokenizer.model. Ids are those of the library that a file was made for.
 *
 * Text need not be UTF-8: but for the kind bytes, what is no character is read as U+FFFD (one for each longest
 * beginning of a character, as Python's errors="replace" has it).
 */
#ifndef CT_TOKENIZER_TOKENIZER_H
#define CT_TOKENIZER_TOKENIZER_H

#include <stdbool.h>

#include "base/status.h"
#include "base/str.h"

typedef struct ct_tokenizer ct_tokenizer;

ct_tokenizer *ct_tokenizer_bytes_new(void);

/* Opens a file, or a folder that holds one of the kinds above; of several in a folder tokenizer.json is taken first,
 * then vocab.json, tokenizer.model, *.tiktoken, tekken.json. A tokenizer_config.json or special_tokens_map.json beside
 * it says which tokens begin and end a document. "bytes" names the kind of that name. Errors: what is missing,
 * malformed, or not supported, by the name that the file gives it. */
CT_MUST_USE ct_status *ct_tokenizer_open(const char *path, ct_tokenizer **out_tokenizer);
bool ct_tokenizer_is_in(const char *folder);     /* does it hold one of those files? */
void ct_tokenizer_free(ct_tokenizer *tokenizer); /* NULL is allowed */

const char *ct_tokenizer_name(const ct_tokenizer *tokenizer);            /* "bytes", or the path of the file */
int32_t ct_tokenizer_vocab_size(const ct_tokenizer *tokenizer);          /* ids are below it */
int32_t ct_tokenizer_bos(const ct_tokenizer *tokenizer);                 /* begin of document; -1 when it has none */
int32_t ct_tokenizer_eos(const ct_tokenizer *tokenizer);                 /* end of document; -1 when it has none */
bool ct_tokenizer_is_special(const ct_tokenizer *tokenizer, int32_t id); /* stands for no text */

/* The token of an id as its file spells it ("\u0120the" for " the" at byte level), not NUL-terminated; NULL when no
 * token has the id. And the id of such a spelling, added tokens included; -1 when there is none. */
const char *ct_tokenizer_token(const ct_tokenizer *tokenizer, int32_t id, size_t *out_length);
int32_t ct_tokenizer_id(const ct_tokenizer *tokenizer, const char *token, size_t length);

/* Bytes [begin, end) of a text. */
typedef struct ct_token_range {
    size_t begin, end;
} ct_token_range;

typedef struct ct_tokenizer_encode_opts {
    bool add_bos, add_eos;   /* those that the tokenizer has */
    bool add_special_tokens; /* what the file says belongs around a text (its post-processor) */
    bool special_as_text;    /* "<|eot_id|>" in the text is no special token, but text like any other */
    ct_token_range *
        *out_ranges; /* if not NULL: where in text each id comes from; heap, the caller's to free(). Ids that
                        come from nowhere have an empty range; a character cut in two gives each id its bytes */
} ct_tokenizer_encode_opts;

/* The ids of length bytes of text; heap, the caller's to free(). */
CT_MUST_USE ct_status *ct_tokenizer_encode(const ct_tokenizer *tokenizer, const char *text, size_t length,
                                           const ct_tokenizer_encode_opts *opts, int32_t **out_ids,
                                           size_t *out_num_ids);

/* Appends the bytes that the ids stand for, which need not be whole characters; special ids give nothing, or their
 * spelling from _decode_all.
 * Errors: OUT_OF_RANGE naming position and value of an id outside the vocabulary; then str is as it was. */
CT_MUST_USE ct_status *ct_tokenizer_decode(const ct_tokenizer *tokenizer, const int32_t *ids, size_t num_ids,
                                           ct_str *str);
CT_MUST_USE ct_status *ct_tokenizer_decode_all(const ct_tokenizer *tokenizer, const int32_t *ids, size_t num_ids,
                                               ct_str *str);

/* Decoding id by id for a reader who sees text grow: bytes are held back until they are whole UTF-8 characters, and
 * bytes that can be none become U+FFFD. Belongs to one thread. */
typedef struct ct_token_stream {
    const ct_tokenizer *tokenizer; /* borrowed */
    ct_str held;
    bool begun; /* text went before: a tokenizer that drops a text's first space does not; set it to go on from a prompt
                 */
} ct_token_stream;

void ct_token_stream_init(ct_token_stream *stream, const ct_tokenizer *tokenizer);
void ct_token_stream_deinit(ct_token_stream *stream);
CT_MUST_USE ct_status *ct_token_stream_push(ct_token_stream *stream, int32_t id, ct_str *str); /* appends to str */
void ct_token_stream_finish(ct_token_stream *stream, ct_str *str); /* what is still held, as U+FFFD */

#endif
