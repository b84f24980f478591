/* A named, typed value: create options and attributes of PJRT objects, and XLA flags of one executable. */
#ifndef CT_PJRT_VALUE_H
#define CT_PJRT_VALUE_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/status.h"

typedef enum ct_value_type {
    CT_VALUE_TEXT,
    CT_VALUE_INT,
    CT_VALUE_INT_LIST,
    CT_VALUE_FLOAT,
    CT_VALUE_BOOL,
} ct_value_type;

/* Only the member that type names is set. Everything is borrowed. */
typedef struct ct_named_value {
    const char *name;
    ct_value_type type;
    const char *text;
    int64_t integer;
    double number;
    bool boolean;
    const int64_t *list;
    size_t num_list;
} ct_named_value;

/* "name=value" as people write flags, "--" before it allowed: true and false are booleans, then integers, then floats,
 * else text; a bare "name" means true. Strings are copied into arena.
 * Errors: INVALID_ARGUMENT without a name.
 */
CT_MUST_USE ct_status *ct_named_value_parse(ct_arena *arena, const char *text, ct_named_value *out_value);

/* The value with that name, or NULL. */
const ct_named_value *ct_named_value_find(const ct_named_value *values, size_t num_values, const char *name);

/* The value as people write it, in arena. */
const char *ct_named_value_text(ct_arena *arena, const ct_named_value *value);

#endif
