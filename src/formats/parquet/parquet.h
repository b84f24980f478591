/* Parquet files: rows of columns of bytes (strings), plain or nested in lists and structs.
 *
 *   "PAR1" | row group: column chunk: [dictionary page] data pages ... | row group ... | footer | its length 4 | "PAR1"
 *
 * The footer (Thrift, compact protocol) has the schema and where each chunk lies. A leaf column is a sequence of
 * values, each with a repetition level (0: a row begins; else the list that goes on) and a definition level (how much
 * of its path is there; the leaf's greatest: the value is). Read are columns of BYTE_ARRAY in the encodings PLAIN,
 * dictionary, DELTA_LENGTH_BYTE_ARRAY and DELTA_BYTE_ARRAY, pages of version 1 and 2, uncompressed or in snappy, gzip,
 * zstd, lz4. Source: the Parquet format specification, parquet.thrift.
 */
#ifndef CT_FORMATS_PARQUET_PARQUET_H
#define CT_FORMATS_PARQUET_PARQUET_H

#include <stdbool.h>

#include "base/status.h"
#include "base/str.h"

typedef struct ct_parquet ct_parquet; /* an open file: immutable, so threads may share it */

typedef struct ct_parquet_leaf {
    const char *path;   /* "text", "messages.list.element.role" */
    const char *column; /* its first part, "messages" */
    const char *name;   /* its last part, "role" */
    int max_definition, max_repetition;
    bool is_bytes; /* BYTE_ARRAY: can be read */
} ct_parquet_leaf;

/* Errors: DATA_LOSS naming the path and what is wrong with the footer; those of opening. */
CT_MUST_USE ct_status *ct_parquet_open(const char *path, ct_parquet **out_file);
/* From memory, which must outlive the file. */
CT_MUST_USE ct_status *ct_parquet_from_memory(const char *name, const void *bytes, size_t size_bytes,
                                              ct_parquet **out_file);
void ct_parquet_close(ct_parquet *file); /* NULL is allowed */

int64_t ct_parquet_num_rows(const ct_parquet *file);
size_t ct_parquet_num_leaves(const ct_parquet *file);
const ct_parquet_leaf *ct_parquet_leaf_at(const ct_parquet *file, size_t index);

/* One leaf's values of one row. */
typedef struct ct_parquet_value {
    size_t offset, size; /* in bytes; size 0 when null */
    int definition, repetition;
    bool is_null;
} ct_parquet_value;

typedef struct ct_parquet_row {
    ct_str bytes;
    ct_parquet_value *values;
    size_t num_values, capacity;
} ct_parquet_row;

void ct_parquet_row_init(ct_parquet_row *row);
void ct_parquet_row_deinit(ct_parquet_row *row);

/* A place in a leaf column. Belongs to one thread; the file must outlive it. */
typedef struct ct_parquet_cursor ct_parquet_cursor;

/* Errors: UNIMPLEMENTED naming a leaf that is not of bytes. */
CT_MUST_USE ct_status *ct_parquet_cursor_new(const ct_parquet *file, size_t leaf, ct_parquet_cursor **out_cursor);
void ct_parquet_cursor_free(ct_parquet_cursor *cursor); /* NULL is allowed */

/* Moves forward to a row, at most the number of rows. */
CT_MUST_USE ct_status *ct_parquet_cursor_seek(ct_parquet_cursor *cursor, int64_t row);
int64_t ct_parquet_cursor_row(const ct_parquet_cursor *cursor); /* the next one */

/* The values of the next row, which must exist. Errors: DATA_LOSS naming path, column and row of a damaged page;
 * UNIMPLEMENTED for encodings and compressions beside those above. */
CT_MUST_USE ct_status *ct_parquet_next_row(ct_parquet_cursor *cursor, ct_parquet_row *row);

#endif
