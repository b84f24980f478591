/* Unicode as Hugging Face's tokenizers sees it; unicode_tables.c is made by tools/unicode_tables.py. */
#ifndef CT_TOKENIZER_UNICODE_TABLES_H
#define CT_TOKENIZER_UNICODE_TABLES_H

#include <stddef.h>
#include <stdint.h>

/* In the order of tools/unicode_tables.py. */
typedef enum ct__category {
    CT__CN,
    CT__LU,
    CT__LL,
    CT__LT,
    CT__LM,
    CT__LO,
    CT__MN,
    CT__MC,
    CT__ME,
    CT__ND,
    CT__NL,
    CT__NO,
    CT__PC,
    CT__PD,
    CT__PS,
    CT__PE,
    CT__PI,
    CT__PF,
    CT__PO,
    CT__SM,
    CT__SC,
    CT__SK,
    CT__SO,
    CT__ZS,
    CT__ZL,
    CT__ZP,
    CT__CC,
    CT__CF,
    CT__CS,
    CT__CO,
    CT__NUM_CATEGORIES
} ct__category;

typedef struct ct__unicode_lowercase {
    uint32_t point, lower[2]; /* lower[1] is 0 where there is one */
} ct__unicode_lowercase;

extern const uint32_t ct__unicode_runs[]; /* first code point * 32 + category, ascending */
extern const size_t ct__unicode_num_runs;
extern const uint32_t ct__unicode_spaces[]; /* White_Space */
extern const size_t ct__unicode_num_spaces;
extern const uint32_t
    ct__unicode_unnormalized[]; /* no normal form touches them, whatever utf8proc's newer tables say */
extern const size_t ct__unicode_num_unnormalized;
extern const uint32_t ct__unicode_other_punctuation[]; /* Punctuation and \p{P} disagree about them */
extern const size_t ct__unicode_num_other_punctuation;
extern const uint32_t ct__unicode_more_digits[]; /* Digits takes them for numbers, \p{N} does not */
extern const size_t ct__unicode_num_more_digits;
extern const ct__unicode_lowercase ct__unicode_lowercases[]; /* where utf8proc's lower case is another */
extern const size_t ct__unicode_num_lowercases;

#endif
