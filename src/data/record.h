/* Records of a file, one after the other: lines of JSON, rows of Parquet, samples of a tar. Only for files in this
 * folder.
 *
 * An offset says where a record begins, in units of the kind (bytes of the decompressed file, or rows), and a reader
 * can be opened anew and moved forward to one.
 */
#ifndef CT_DATA_RECORD_H
#define CT_DATA_RECORD_H

#include "base/arena.h"
#include "data/dataset.h"

typedef enum ct__column {
    CT__COLUMN_TEXT,
    CT__COLUMN_PROMPT,
    CT__COLUMN_COMPLETION,
    CT__COLUMN_MESSAGES,
    CT__NUM_COLUMNS
} ct__column;

typedef struct ct__columns {
    const char *names[CT__NUM_COLUMNS]; /* NULL: not looked at */
} ct__columns;

typedef struct ct__text {
    const char *bytes; /* NULL: absent */
    size_t length;
} ct__text;

enum { CT__MAX_RECORD_BYTES = 1 << 28 };

/* The bytes lie in the arena that was given. */
typedef struct ct__record {
    int64_t offset, end;               /* where the next one begins */
    ct__text columns[CT__NUM_COLUMNS]; /* messages as the text of a JSON array */
    ct__text json;                     /* an object that has the columns that are absent above */
} ct__record;

typedef struct ct__record_reader ct__record_reader;
typedef struct ct__record_class {
    ct_status *(*skip_to)(ct__record_reader *reader, int64_t offset);
    ct_status *(*next)(ct__record_reader *reader, ct_arena *arena, ct__record *out_record, bool *out_ended);
    void (*close)(ct__record_reader *reader);
} ct__record_class;
struct ct__record_reader {
    const ct__record_class *class;
};

/* Errors: those of opening; NOT_FOUND naming a column that a Parquet file lacks, with those that it has; DATA_LOSS when
 * the file is damaged. columns must outlive the reader. */
CT_MUST_USE ct_status *ct__record_reader_open(ct_data_kind kind, const ct__columns *columns, const char *path,
                                              ct__record_reader **out_reader);
/* The same from memory, which must outlive the reader. */
CT_MUST_USE ct_status *ct__record_reader_from_memory(ct_data_kind kind, const ct__columns *columns, const char *name,
                                                     const void *bytes, size_t size_bytes,
                                                     ct__record_reader **out_reader);
void ct__record_reader_close(ct__record_reader *reader); /* NULL is allowed */

/* Forward to a record that begins at offset, or to the end. */
CT_MUST_USE ct_status *ct__record_reader_skip_to(ct__record_reader *reader, int64_t offset);

/* Errors: DATA_LOSS: the rest of the file cannot be read; what a record holds is not looked at. */
CT_MUST_USE ct_status *ct__record_reader_next(ct__record_reader *reader, ct_arena *arena, ct__record *out_record,
                                              bool *out_ended);

/* The kinds. Each takes what it is given, also on error. */
struct ct_byte_stream;
struct ct_parquet;
ct__record_reader *ct__json_lines_new(struct ct_byte_stream *stream);
ct__record_reader *ct__tar_samples_new(const ct__columns *columns, struct ct_byte_stream *stream);
CT_MUST_USE ct_status *ct__parquet_rows_new(const ct__columns *columns, const char *path, struct ct_parquet *file,
                                            ct__record_reader **out_reader);

#endif
