/* TOML 1.0 as a tree of typed values that know their place in the source, so that a message can name file and line.
 *
 *   table ---> entries[0] { key, line, column, value } -> string, integer, float, boolean, date
 *              entries[1] { ...               value } -> array ---> items[0], items[1], ...
 *
 * The tree lives in the caller's arena and is never changed after parsing, so any thread may read it. Entries stand in
 * the order of the source. Text must be UTF-8; nesting deeper than 256 is refused.
 * Errors: INVALID_ARGUMENT with "name:line:column: ..." for text that is not TOML; those of ct_file_read for a file.
 */
#ifndef CT_FORMATS_TOML_H
#define CT_FORMATS_TOML_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/status.h"
#include "base/str.h"

typedef enum ct_toml_type {
    CT_TOML_TABLE,
    CT_TOML_ARRAY,
    CT_TOML_STRING,
    CT_TOML_INTEGER,
    CT_TOML_FLOAT,
    CT_TOML_BOOLEAN,
    CT_TOML_DATE, /* a date, a time, or both; kept as text */
} ct_toml_type;

typedef struct ct_toml ct_toml;
typedef struct ct_toml_entry ct_toml_entry;

/* Named one by one, since C++ has no unnamed types inside a union. */
typedef struct ct_toml_table {
    const ct_toml_entry *entries;
    size_t num_entries;
} ct_toml_table;

typedef struct ct_toml_array {
    const ct_toml *items;
    size_t num_items;
} ct_toml_array;

typedef struct ct_toml_string {
    const char *data; /* NUL-terminated; may also hold NUL bytes, since "\u0000" is a valid string */
    size_t length;
} ct_toml_string;

struct ct_toml {
    ct_toml_type type;
    int line, column; /* where the value starts, counted from 1; a table [a.b] starts at its header */
    union {
        ct_toml_table table;
        ct_toml_array array;
        ct_toml_string string; /* of CT_TOML_STRING and CT_TOML_DATE */
        int64_t integer;
        double number; /* of CT_TOML_FLOAT; may be infinite or NaN */
        bool boolean;
    };
};

struct ct_toml_entry {
    const char *key;
    size_t key_length; /* a quoted key may hold NUL bytes */
    int line, column;
    ct_toml value;
};

/* Parses size_bytes of text; name stands for the file in messages. out_root is a table. */
CT_MUST_USE ct_status *ct_toml_parse(ct_arena *arena, const char *name, const char *text, size_t size_bytes,
                                     const ct_toml **out_root);

/* Reads and parses a file. */
CT_MUST_USE ct_status *ct_toml_read(ct_arena *arena, const char *path, const ct_toml **out_root);

/* The value of key in a table, or NULL when absent. */
const ct_toml *ct_toml_get(const ct_toml *table, const char *key);

/* "a table", "a string", "a whole number", ... for messages. */
const char *ct_toml_type_name(ct_toml_type type);

/* Appends a string as a TOML basic string, quoted and escaped. */
void ct_toml_quote(ct_str *out, const char *text);

/* Appends a float so that TOML reads the same bits back (NaN loses its payload). */
void ct_toml_format_float(ct_str *out, double value);

#endif
