/* A growable string; data is always NUL-terminated once init is done. Not thread-safe. */
#ifndef CT_BASE_STR_H
#define CT_BASE_STR_H

#include "base/macros.h"

typedef struct ct_str {
    char *data;
    size_t length;
    size_t capacity;
} ct_str;

void ct_str_init(ct_str *str);
void ct_str_deinit(ct_str *str);
void ct_str_reset(ct_str *str); /* empty again, memory kept */
void ct_str_append(ct_str *str, const char *text);
void ct_str_append_n(ct_str *str, const char *bytes, size_t length);
void ct_str_append_char(ct_str *str, char c);
void ct_str_printf(ct_str *str, const char *format, ...) CT_PRINTF(2, 3); /* appends */
char *ct_str_release(ct_str *str); /* the text, now the caller's to free(); str is empty */

/* Smallest number of insertions, deletions and replacements; for "did you mean". */
size_t ct_edit_distance(const char *a, const char *b);

/* The candidate nearest to text, or NULL when none is near enough to be worth suggesting. */
const char *ct_nearest_name(const char *text, const char *const *candidates, size_t num_candidates);

#endif
