/* The tokenizer that all files are read into: added tokens, normalizer, pre-tokenizer, model, template, decoder.
 *
 *   text -> added tokens -> normalizer -> added tokens -> pre-tokenizer -> model -> template -> ids
 *
 * A reader of a format fills a ct__pipeline and ends with ct__pipeline_finish. Only for files in this folder.
 */
#ifndef CT_TOKENIZER_PIPELINE_H
#define CT_TOKENIZER_PIPELINE_H

#include <pthread.h>

#include "base/arena.h"
#include "tokenizer/added.h"
#include "tokenizer/bpe.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/pretokenizer.h"
#include "tokenizer/tokenizer_kind.h"
#include "tokenizer/unigram.h"

#define CT__SPACE_SYMBOL "\xe2\x96\x81" /* U+2581, SentencePiece's letter for a space */

typedef enum ct__model_kind { CT__MODEL_BPE, CT__MODEL_UNIGRAM } ct__model_kind;

/* What of a text's first spaces is not part of it. */
typedef enum ct__strip { CT__STRIP_NONE, CT__STRIP_ONE, CT__STRIP_ALL } ct__strip;

/* How ids become bytes, as far as it differs from writing their spelling. */
typedef struct ct__decoder {
    bool byte_level;        /* ids are the bytes of their pieces */
    bool byte_fallback;     /* <0x41> is a byte */
    char *space;            /* spelling of a space; NULL: a space */
    ct__strip strip;        /* of the first token */
    bool joins_with_spaces; /* a file without a decoder has a space between tokens */
} ct__decoder;

enum { CT__TOKEN_SPECIAL = 1, CT__TOKEN_ADDED = 2 };

typedef struct ct__pipeline {
    ct_tokenizer interface;
    ct_arena arena;                    /* spellings and their bytes */
    ct__vocab spellings;               /* id <-> spelling, added tokens included */
    ct__vocab pieces;                  /* id <-> bytes in text, of tokens that the model may give */
    ct__bytes *texts;                  /* by id: what it decodes to */
    uint8_t *flags;                    /* by id */
    struct ct__pending_token *pending; /* added tokens, until _finish */
    size_t num_pending;
    ct__added raw_added, normalized_added;
    ct__added kept; /* what SentencePiece's normalizer leaves alone */
    ct__normalizer normalizer;
    ct__pretokenizer pretokenizer;
    ct__model_kind model;
    bool cuts_at_spaces; /* no token has a space symbol behind another character, so words are encoded apart */
    ct__bpe bpe;
    ct__unigram unigram;
    int32_t *prefix, *suffix; /* the template */
    size_t num_prefix, num_suffix;
    ct__decoder decoder;
    pthread_mutex_t mutex; /* of free */
    struct ct__scratch *free;
} ct__pipeline;

ct__pipeline *ct__pipeline_new(const char *name);
void ct__pipeline_free(ct__pipeline *pipeline); /* while it is being filled; after _finish ct_tokenizer_free does it */

/* A token of the model. spelling is copied. */
CT_MUST_USE ct_status *ct__pipeline_put(ct__pipeline *pipeline, int64_t id, const char *spelling, size_t length);

typedef struct ct__added_opts {
    bool special, normalized, single_word, lstrip, rstrip;
} ct__added_opts;
/* An added token, which may be one of the model's. */
CT_MUST_USE ct_status *ct__pipeline_add(ct__pipeline *pipeline, int64_t id, const char *content, size_t length,
                                        ct__added_opts opts);

void ct__pipeline_add_prefix(ct__pipeline *pipeline, int32_t id);
void ct__pipeline_add_suffix(ct__pipeline *pipeline, int32_t id);

typedef enum ct__spelling {
    CT__SPELLING_TEXT,    /* as it is; symbols start as characters */
    CT__SPELLING_LETTERS, /* letters for bytes; symbols start as bytes */
    CT__SPELLING_BYTES,   /* as it is; symbols start as bytes */
} ct__spelling;
/* Between the model's tokens and its merges: makes pieces out of spellings. */
CT_MUST_USE ct_status *ct__pipeline_make_pieces(ct__pipeline *pipeline, ct__spelling spelling);
/* The rest; the tokenizer is ready. */
CT_MUST_USE ct_status *ct__pipeline_finish(ct__pipeline *pipeline, ct_tokenizer **out_tokenizer);

/* GPT-2's letters for bytes: 33..126, 161..172, 174..255 are themselves, the others 256 and up, in order. */
extern const uint16_t ct__byte_letters[256];
/* The bytes that a spelling of such letters stands for, into room for length bytes; false when it has other letters. */
bool ct__letters_to_bytes(const char *spelling, size_t length, char *out_bytes, size_t *out_length);
/* The byte of "<0x41>", -1 when the spelling is none. */
int ct__byte_of_spelling(const char *spelling, size_t length);

#endif
