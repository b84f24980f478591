/* Normalizers: what rewrites text before it is cut. Only for files in this folder. */
#ifndef CT_TOKENIZER_NORMALIZER_H
#define CT_TOKENIZER_NORMALIZER_H

#include "formats/json.h"
#include "tokenizer/charsmap.h"
#include "tokenizer/pattern.h"
#include "tokenizer/text.h"

typedef enum ct__normal_kind {
    CT__NORMAL_NFC,
    CT__NORMAL_NFD,
    CT__NORMAL_NFKC,
    CT__NORMAL_NFKD,
    CT__NORMAL_LOWERCASE,
    CT__NORMAL_PREPEND,
    CT__NORMAL_REPLACE, /* pattern, or needle when there is none */
    CT__NORMAL_STRIP,
    CT__NORMAL_CHARSMAP,      /* by grapheme, as Hugging Face reads a precompiled map */
    CT__NORMAL_SENTENCEPIECE, /* by longest match, as SentencePiece itself does */
} ct__normal_kind;

typedef struct ct__normal_step {
    ct__normal_kind kind;
    char *content; /* what is prepended, or put in place */
    char *needle;
    ct__pattern *pattern;
    bool left, right;       /* strip */
    ct__charsmap *charsmap; /* may be NULL for SENTENCEPIECE */
    /* SENTENCEPIECE only */
    const struct ct__added *kept; /* what is found of these stays as it is */
    bool add_prefix, remove_extra_spaces, escape_spaces, prefix_is_suffix;
} ct__normal_step;

typedef struct ct__normalizer {
    ct__normal_step *steps;
    size_t num_steps;
} ct__normalizer;

/* Working memory of one thread. */
typedef struct ct__normal_scratch {
    ct__edit edits[2];
    int32_t *points; /* code points of a piece that is normalized */
    size_t point_capacity;
} ct__normal_scratch;
void ct__normal_scratch_init(ct__normal_scratch *scratch);
void ct__normal_scratch_deinit(ct__normal_scratch *scratch);

/* The step is the normalizer's from now on. */
void ct__normalizer_add(ct__normalizer *normalizer, ct__normal_step step);
/* Adds what a tokenizer.json's "normalizer" says; null adds nothing. Errors: UNIMPLEMENTED names a type. */
CT_MUST_USE ct_status *ct__normalizer_add_json(ct__normalizer *normalizer, ct_json_value value);
void ct__normalizer_deinit(ct__normalizer *normalizer);

/* The normalized text, in scratch or the text itself; valid until the next call. */
CT_MUST_USE ct_status *ct__normalize(const ct__normalizer *normalizer, ct__normal_scratch *scratch,
                                     ct__matcher *matcher, const ct__text *text, bool track, ct__text *out_text);

/* One of the four normal forms. */
void ct__normal_form(ct__normal_kind form, ct__normal_scratch *scratch, const ct__text *text, ct__edit *edit);
bool ct__normal_form_changes(ct__normal_kind form, const ct__text *text); /* false: surely not */

#endif
