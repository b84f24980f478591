/* Code points and their classes, for scanning text at speed. Only for files in this folder. */
#ifndef CT_TOKENIZER_UNICODE_H
#define CT_TOKENIZER_UNICODE_H

#include <stdbool.h>

#include "base/macros.h"
#include "tokenizer/unicode_tables.h"

/* Class bits of a code point. */
enum {
    CT__LETTER = 1,      /* \p{L} */
    CT__NUMBER = 2,      /* \p{N} */
    CT__SPACE = 4,       /* \s */
    CT__NEWLINE = 8,     /* \r \n, which are CT__SPACE as well */
    CT__PUNCT = 16,      /* what the pre-tokenizer Punctuation takes, but for ASCII's symbols */
    CT__WORD = 32,       /* \w */
    CT__NFC_ACTIVE = 64, /* may change in a normal form, or change what stands before it */
    CT__BEYOND = 128     /* in ct__unicode.bytes only: no ASCII, so the code point has to be looked up */
};

/* A table of two stages: most blocks of 256 code points are alike.
 *
 *   code point >> 8 -> index[] -> blocks[][code point & 255] -> class bits
 */
typedef struct ct__unicode {
    uint8_t bytes[256]; /* by byte: the class bits of ASCII, CT__BEYOND from 0x80 on */
    uint16_t index[0x1100];
    uint8_t (*blocks)[256];
} ct__unicode;

const ct__unicode *ct__unicode_get(void); /* made at the first call; lasts as long as the process */

ct__category ct__unicode_category(uint32_t point);

static inline uint8_t ct__unicode_class(const ct__unicode *unicode, uint32_t point)
{
    return unicode->blocks[unicode->index[point >> 8]][point & 255];
}

/* The code point at p, which must be well-formed UTF-8; out_size is its number of bytes. */
static inline uint32_t ct__utf8_decode(const unsigned char *p, size_t *out_size)
{
    if (p[0] < 0x80) {
        *out_size = 1;
        return p[0];
    }
    if (p[0] < 0xe0) {
        *out_size = 2;
        return (uint32_t)(p[0] & 0x1f) << 6 | (p[1] & 0x3f);
    }
    if (p[0] < 0xf0) {
        *out_size = 3;
        return (uint32_t)(p[0] & 0xf) << 12 | (uint32_t)(p[1] & 0x3f) << 6 | (p[2] & 0x3f);
    }
    *out_size = 4;
    return (uint32_t)(p[0] & 7) << 18 | (uint32_t)(p[1] & 0x3f) << 12 | (uint32_t)(p[2] & 0x3f) << 6 | (p[3] & 0x3f);
}

/* The beginning of the character that ends before p; there must be one. */
static inline const unsigned char *ct__utf8_back(const unsigned char *p)
{
    do p--;
    while ((*p & 0xc0) == 0x80);
    return p;
}

/* Bytes of the character that begins with this byte, in well-formed UTF-8. */
static inline size_t ct__utf8_size(unsigned char first)
{
    return first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

size_t ct__utf8_encode(uint32_t point, char out_bytes[4]); /* the number of bytes */

#endif
