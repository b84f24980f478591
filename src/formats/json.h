/* JSON: documents read with errors that name line, column and path, and a writer. The only door to the JSON library.
 *
 * A ct_json owns everything that came from one text; a ct_json_value is a place in it, passed by value and valid as
 * long as the document. A place that does not exist is absent (ct_json_is_absent), and looking inside it gives absent
 * again, so
 *
 *     ct_json_get(ct_json_get(root, "rope_scaling"), "factor")
 *
 * needs no checks on the way. Documents are immutable, so threads may share them. Of a repeated key the first one
 * counts.
 */
#ifndef CT_FORMATS_JSON_H
#define CT_FORMATS_JSON_H

#include <stdbool.h>

#include "base/status.h"

typedef struct ct_json ct_json;

typedef struct ct_json_value {
    const ct_json *json;
    const void *node; /* NULL: absent */
} ct_json_value;

typedef enum ct_json_type {
    CT_JSON_ABSENT,
    CT_JSON_NULL,
    CT_JSON_BOOL,
    CT_JSON_NUMBER,
    CT_JSON_STRING,
    CT_JSON_ARRAY,
    CT_JSON_OBJECT
} ct_json_type;

/* text is copied; path is for messages. Errors: INVALID_ARGUMENT "path:line:column: what is wrong". */
CT_MUST_USE ct_status *ct_json_parse(const char *text, size_t length, const char *path, ct_json **out_json);
CT_MUST_USE ct_status *ct_json_read(const char *path, ct_json **out_json); /* a file */
void ct_json_free(ct_json *json);                                          /* NULL is allowed */

ct_json_value ct_json_root(const ct_json *json);
ct_json_type ct_json_type_of(ct_json_value value);
const char *ct_json_type_name(ct_json_type type); /* "object" */
bool ct_json_is_absent(ct_json_value value);
bool ct_json_is_null(ct_json_value value);    /* null or absent */
bool ct_json_is_integer(ct_json_value value); /* a number written without fraction and exponent, of 64 bits */

ct_json_value ct_json_get(ct_json_value object, const char *key); /* absent unless an object that has key */
ct_json_value ct_json_at(ct_json_value array, size_t index); /* absent unless an array that long; linear in index */
size_t ct_json_size(ct_json_value value);                    /* elements or pairs; 0 for anything else */

/* Where value is: "path: rope_scaling.factor", "path: layers[3]". Heap; the caller's to free(). */
char *ct_json_where(ct_json_value value);

/* The value itself, absent being an error as any wrong type is: "config.json: vocab_size must be an integer, but is the
 * string "32k"". An integer may be written as a real without fraction (1e6). Strings may not hold a zero character and
 * are borrowed from the document. */
CT_MUST_USE ct_status *ct_json_as_bool(ct_json_value value, bool *out_value);
CT_MUST_USE ct_status *ct_json_as_int(ct_json_value value, int64_t *out_value);
CT_MUST_USE ct_status *ct_json_as_double(ct_json_value value, double *out_value);
CT_MUST_USE ct_status *ct_json_as_string(ct_json_value value, const char **out_value);
/* The same with its length, so that it may hold any character. */
CT_MUST_USE ct_status *ct_json_as_text(ct_json_value value, const char **out_text, size_t *out_length);
CT_MUST_USE ct_status *ct_json_as_object(ct_json_value value, ct_json_value *out_value); /* checks the type */
CT_MUST_USE ct_status *ct_json_as_array(ct_json_value value, ct_json_value *out_value);

/* Members of an object that may be missing or null: then *value stays as it is, so put the default there before. */
CT_MUST_USE ct_status *ct_json_get_bool(ct_json_value object, const char *key, bool *value);
CT_MUST_USE ct_status *ct_json_get_int(ct_json_value object, const char *key, int64_t *value);
CT_MUST_USE ct_status *ct_json_get_double(ct_json_value object, const char *key, double *value);
CT_MUST_USE ct_status *ct_json_get_string(ct_json_value object, const char *key, const char **value);

/* Members that must be there: NOT_FOUND "config.json: vocab_size is required, but missing". */
CT_MUST_USE ct_status *ct_json_need_bool(ct_json_value object, const char *key, bool *out_value);
CT_MUST_USE ct_status *ct_json_need_int(ct_json_value object, const char *key, int64_t *out_value);
CT_MUST_USE ct_status *ct_json_need_double(ct_json_value object, const char *key, double *out_value);
CT_MUST_USE ct_status *ct_json_need_string(ct_json_value object, const char *key, const char **out_value);
CT_MUST_USE ct_status *ct_json_need_object(ct_json_value object, const char *key, ct_json_value *out_value);
CT_MUST_USE ct_status *ct_json_need_array(ct_json_value object, const char *key, ct_json_value *out_value);

/* Walks an array or an object:
 *     ct_json_iter iter = ct_json_iterate(value);
 *     while (ct_json_next(&iter)) use(iter.key, iter.value);
 */
typedef struct ct_json_iter {
    const char *key; /* of an object's pair, else NULL; NUL-terminated */
    size_t key_length;
    size_t index;
    ct_json_value value;
    ct_json_value parent; /* the rest is the iterator's own */
    const void *next;
    size_t num_left;
    bool started;
} ct_json_iter;
ct_json_iter ct_json_iterate(ct_json_value value);
bool ct_json_next(ct_json_iter *iter);

/* ---- Writing. key names the member inside an object and is NULL inside an array and at the top.
 * Non-finite numbers become null, bytes that are not UTF-8 become U+FFFD. Not thread-safe. Misuse aborts. ---- */
typedef struct ct_json_writer ct_json_writer;

ct_json_writer *ct_json_writer_new(void);
void ct_json_writer_free(ct_json_writer *writer); /* NULL is allowed */

void ct_json_begin_object(ct_json_writer *writer, const char *key);
void ct_json_begin_array(ct_json_writer *writer, const char *key);
void ct_json_end(ct_json_writer *writer); /* of the innermost object or array */
void ct_json_put_null(ct_json_writer *writer, const char *key);
void ct_json_put_bool(ct_json_writer *writer, const char *key, bool value);
void ct_json_put_int(ct_json_writer *writer, const char *key, int64_t value);
void ct_json_put_double(ct_json_writer *writer, const char *key,
                        double value); /* shortest text that reads back equal */
void ct_json_put_string(ct_json_writer *writer, const char *key, const char *value);
void ct_json_put_value(ct_json_writer *writer, const char *key, ct_json_value value); /* a copy; absent writes null */

/* The finished text, heap, the caller's to free(); the writer is empty again. pretty: two spaces and a last newline. */
char *ct_json_writer_text(ct_json_writer *writer, bool pretty);

#endif
