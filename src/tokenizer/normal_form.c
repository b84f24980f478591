/* The four normal forms of Unicode over utf8proc, as Hugging Face's tables have them: code points that those tables do
 * not know (ct__unicode_unnormalized) are walls, between which text is normalized for itself.
 *
 * NFC only touches a character that is marked CT__NFC_ACTIVE, together with the one before it and those marked behind
 * it; nearly all text has none, and is not copied.
 */
#include <stdlib.h>
#include <string.h>

#include <utf8proc.h>

#include "base/alloc.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/unicode.h"

static bool is_wall(uint32_t point)
{
    size_t low = 0, high = ct__unicode_num_unnormalized;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (ct__unicode_unnormalized[middle] == point) return true;
        if (ct__unicode_unnormalized[middle] < point)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

static int options_of(ct__normal_kind form)
{
    switch (form) {
    case CT__NORMAL_NFC: return UTF8PROC_STABLE | UTF8PROC_COMPOSE;
    case CT__NORMAL_NFD: return UTF8PROC_STABLE | UTF8PROC_DECOMPOSE;
    case CT__NORMAL_NFKC: return UTF8PROC_STABLE | UTF8PROC_COMPAT | UTF8PROC_COMPOSE;
    default: return UTF8PROC_STABLE | UTF8PROC_COMPAT | UTF8PROC_DECOMPOSE;
    }
}

/* The code points of text in the form, left in scratch->points; their number. */
static size_t to_points(ct__normal_kind form, ct__normal_scratch *scratch, const char *text, size_t length)
{
    int options = options_of(form);
    for (;;) {
        utf8proc_ssize_t count =
            utf8proc_decompose((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)length, scratch->points,
                               (utf8proc_ssize_t)scratch->point_capacity, (utf8proc_option_t)options);
        CT_ASSERT(count >= 0); /* the text is well-formed */
        if ((size_t)count <= scratch->point_capacity)
            return (size_t)utf8proc_normalize_utf32(scratch->points, count, (utf8proc_option_t)options);
        scratch->point_capacity = (size_t)count * 2;
        scratch->points = ct_realloc(scratch->points, scratch->point_capacity * sizeof(*scratch->points));
    }
}

/* Appends [begin, end) of text, which has no wall, in the form. Origins are those of clusters (a character with what
 * combines with it) where clusters can be normalized one by one, else of the whole. */
static void put_form(ct__normal_kind form, ct__normal_scratch *scratch, const ct__text *text, size_t begin, size_t end,
                     ct__edit *edit)
{
    if (begin == end) return;
    const unsigned char *data = (const unsigned char *)text->data;
    const ct__unicode *unicode = ct__unicode_get();
    size_t cluster = begin;
    while (edit->track && cluster < end) {
        size_t next = cluster + ct__utf8_size(data[cluster]), size;
        while (next < end && (ct__unicode_class(unicode, ct__utf8_decode(data + next, &size)) & CT__NFC_ACTIVE))
            next += size;
        if (next == end) break;
        size_t num_points = to_points(form, scratch, text->data + cluster, next - cluster);
        char bytes[4];
        for (size_t i = 0; i < num_points; i++)
            ct__edit_put(edit, bytes, ct__utf8_encode((uint32_t)scratch->points[i], bytes),
                         ct__text_range(text, cluster, next));
        cluster = next;
    }
    size_t num_points = to_points(form, scratch, text->data + cluster, end - cluster);
    char bytes[4];
    for (size_t i = 0; i < num_points; i++) {
        size_t size = ct__utf8_encode((uint32_t)scratch->points[i], bytes);
        ct__edit_put(edit, bytes, size, ct__text_range(text, cluster, end));
    }
}

/* The next part to normalize from `at` on: [*begin, *end); false when there is none. */
static bool next_part(ct__normal_kind form, const ct__text *text, size_t at, size_t *begin, size_t *end)
{
    const ct__unicode *unicode = ct__unicode_get();
    const unsigned char *data = (const unsigned char *)text->data;
    size_t first = at, size;
    bool only_active = form == CT__NORMAL_NFC;
    for (;; first += size) {
        while (first + 8 <= text->length) { /* ASCII, eight at a time */
            uint64_t word;
            memcpy(&word, data + first, 8);
            if (word & 0x8080808080808080u) break;
            first += 8;
        }
        if (first >= text->length) return false;
        size = 1;
        if (data[first] < 0x80) continue;
        if (!only_active) break;
        if (ct__unicode_class(unicode, ct__utf8_decode(data + first, &size)) & CT__NFC_ACTIVE) break;
    }
    *begin = first > at ? (size_t)(ct__utf8_back(data + first) - data) : first;
    while (first < text->length && data[first] >= 0x80) {
        uint32_t point = ct__utf8_decode(data + first, &size);
        if (only_active && !(ct__unicode_class(unicode, point) & CT__NFC_ACTIVE)) break;
        first += size;
    }
    *end = first;
    return true;
}

bool ct__normal_form_changes(ct__normal_kind form, const ct__text *text)
{
    size_t begin, end;
    return next_part(form, text, 0, &begin, &end);
}

void ct__normal_form(ct__normal_kind form, ct__normal_scratch *scratch, const ct__text *text, ct__edit *edit)
{
    const unsigned char *data = (const unsigned char *)text->data;
    size_t done = 0, begin, end, size;
    while (next_part(form, text, done, &begin, &end)) {
        ct__edit_keep(edit, text, done, begin);
        for (size_t at = begin; at < end; at += size) {
            if (!is_wall(ct__utf8_decode(data + at, &size))) continue;
            put_form(form, scratch, text, begin, at, edit);
            ct__edit_keep(edit, text, at, at + size);
            begin = at + size;
        }
        put_form(form, scratch, text, begin, end, edit);
        done = end;
    }
    ct__edit_keep(edit, text, done, text->length);
}
