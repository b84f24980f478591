#include "tokenizer/text.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

ct_token_range ct__text_range(const ct__text *text, size_t begin, size_t end)
{
    if (!text->ranges) return (ct_token_range){text->base + begin, text->base + end};
    if (begin < end) return (ct_token_range){text->ranges[begin].begin, text->ranges[end - 1].end};
    if (begin < text->length) return (ct_token_range){text->ranges[begin].begin, text->ranges[begin].begin};
    return text->length ? (ct_token_range){text->ranges[begin - 1].end, text->ranges[begin - 1].end}
                        : (ct_token_range){text->base, text->base};
}

void ct__edit_init(ct__edit *edit)
{
    *edit = (ct__edit){0};
    ct_str_init(&edit->data);
}

void ct__edit_deinit(ct__edit *edit)
{
    ct_str_deinit(&edit->data);
    free(edit->ranges);
}

void ct__edit_reset(ct__edit *edit, bool track)
{
    ct_str_reset(&edit->data);
    edit->track = track;
    edit->base = 0;
}

static ct_token_range *grow_ranges(ct__edit *edit, size_t length)
{
    size_t need = edit->data.length + length;
    if (need > edit->range_capacity) {
        edit->range_capacity = CT_MAX(need, edit->range_capacity * 2);
        edit->ranges = ct_realloc(edit->ranges, edit->range_capacity * sizeof(*edit->ranges));
    }
    return edit->ranges + edit->data.length;
}

void ct__edit_keep(ct__edit *edit, const ct__text *from, size_t begin, size_t end)
{
    if (!edit->data.length && begin < end) edit->base = ct__text_range(from, begin, end).begin;
    if (edit->track && begin < end) {
        ct_token_range *ranges = grow_ranges(edit, end - begin);
        for (size_t i = begin; i < end; i++) ranges[i - begin] = ct__text_range(from, i, i + 1);
    }
    ct_str_append_n(&edit->data, from->data + begin, end - begin);
}

void ct__edit_put(ct__edit *edit, const char *bytes, size_t length, ct_token_range origin)
{
    if (!edit->data.length) edit->base = origin.begin;
    if (edit->track && length) {
        ct_token_range *ranges = grow_ranges(edit, length);
        for (size_t i = 0; i < length; i++) ranges[i] = origin;
    }
    ct_str_append_n(&edit->data, bytes, length);
}

ct__text ct__edit_text(const ct__edit *edit)
{
    return (ct__text){.data = edit->data.data,
                      .length = edit->data.length,
                      .readable = edit->data.length + 1,
                      .ranges = edit->track ? edit->ranges : NULL,
                      .base = edit->base};
}
