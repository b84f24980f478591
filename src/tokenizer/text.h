/* Text on its way through a tokenizer: bytes, and where in the caller's text each of them comes from. Only for files in
 * this folder.
 */
#ifndef CT_TOKENIZER_TEXT_H
#define CT_TOKENIZER_TEXT_H

#include <stdbool.h>

#include "base/status.h"
#include "base/str.h"
#include "tokenizer/tokenizer.h"

typedef struct ct__text {
    const char *data; /* well-formed UTF-8 */
    size_t length;
    size_t readable;              /* bytes that may be read from data on, at least length */
    const ct_token_range *ranges; /* by byte; NULL: byte i comes from base + i, or nobody asked */
    size_t base;
} ct__text;

static inline ct__text ct__text_slice(const ct__text *text, size_t begin, size_t end)
{
    return (ct__text){.data = text->data + begin,
                      .length = end - begin,
                      .readable = text->readable - begin,
                      .ranges = text->ranges ? text->ranges + begin : NULL,
                      .base = text->base + begin};
}

/* Where bytes [begin, end) of the text come from; an empty piece comes from the place before its successor. */
ct_token_range ct__text_range(const ct__text *text, size_t begin, size_t end);

/* A text being written, with the origin of every byte when track is on. */
typedef struct ct__edit {
    ct_str data;
    ct_token_range *ranges;
    size_t range_capacity;
    size_t base; /* where its first byte comes from */
    bool track;
} ct__edit;

void ct__edit_init(ct__edit *edit);
void ct__edit_deinit(ct__edit *edit);
void ct__edit_reset(ct__edit *edit, bool track);
void ct__edit_keep(ct__edit *edit, const ct__text *from, size_t begin,
                   size_t end); /* copies bytes with their origins */
void ct__edit_put(ct__edit *edit, const char *bytes, size_t length, ct_token_range origin);
ct__text ct__edit_text(const ct__edit *edit);

#endif
