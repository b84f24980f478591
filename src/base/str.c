/* Growable strings and name suggestions. */
#include "base/str.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static void reserve(ct_str *str, size_t extra)
{
    size_t need = str->length + extra + 1;
    if (need <= str->capacity) return;
    size_t capacity = CT_MAX(need, str->capacity * 2);
    str->data = ct_realloc(str->data, capacity);
    str->capacity = capacity;
}

void ct_str_init(ct_str *str)
{
    *str = (ct_str){0};
    reserve(str, 63);
    str->data[0] = 0;
}

void ct_str_deinit(ct_str *str)
{
    free(str->data);
    *str = (ct_str){0};
}

void ct_str_reset(ct_str *str)
{
    str->length = 0;
    if (str->data) str->data[0] = 0;
}

void ct_str_append_n(ct_str *str, const char *bytes, size_t length)
{
    reserve(str, length);
    memcpy(str->data + str->length, bytes, length);
    str->length += length;
    str->data[str->length] = 0;
}

void ct_str_append(ct_str *str, const char *text)
{
    ct_str_append_n(str, text, strlen(text));
}

void ct_str_append_char(ct_str *str, char c)
{
    ct_str_append_n(str, &c, 1);
}

void ct_str_printf(ct_str *str, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    CT_ASSERT(length >= 0);
    reserve(str, (size_t)length);
    vsnprintf(str->data + str->length, (size_t)length + 1, format, arguments);
    va_end(arguments);
    str->length += (size_t)length;
}

char *ct_str_release(ct_str *str)
{
    if (!str->data) ct_str_init(str);
    char *text = str->data;
    *str = (ct_str){0};
    return text;
}

size_t ct_edit_distance(const char *a, const char *b)
{
    size_t num_a = strlen(a), num_b = strlen(b);
    size_t *row = ct_alloc((num_b + 1) * sizeof(*row));
    for (size_t j = 0; j <= num_b; j++) row[j] = j;
    for (size_t i = 1; i <= num_a; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= num_b; j++) {
            size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = CT_MIN(replaced, CT_MIN(row[j], row[j - 1]) + 1);
        }
    }
    size_t distance = row[num_b];
    free(row);
    return distance;
}

const char *ct_nearest_name(const char *text, const char *const *candidates, size_t num_candidates)
{
    const char *best = NULL;
    size_t best_distance = strlen(text) / 2 + 1; /* farther than half the word is no suggestion */
    for (size_t i = 0; i < num_candidates; i++) {
        size_t distance = ct_edit_distance(text, candidates[i]);
        if (distance < best_distance) {
            best = candidates[i];
            best_distance = distance;
        }
    }
    return best;
}
