/* A source's files as chunks of documents, in the order of its epochs. Only for files in this folder.
 *
 *   files, in the epoch's order:  [ chunk | chunk | chunk ][ chunk ][ chunk | chunk ] next epoch ...
 *
 * A chunk is some records of one file. It is made in two halves: reading, one chunk after the other, and making
 * documents of what was read, which many threads may do at once.
 */
#ifndef CT_DATA_READER_H
#define CT_DATA_READER_H

#include "data/document.h"
#include "data/files.h"

/* Where the next record is. */
typedef struct ct__place {
    int64_t epoch, place, offset;
} ct__place;

typedef struct ct__chunk_entry {
    ct__document document; /* without tokens: an empty text, or a broken record */
    int64_t end;           /* the offset behind it */
    ct_status *error;      /* of a broken record, owned */
    bool is_fatal;         /* it is no record's fault */
} ct__chunk_entry;

typedef struct ct__chunk {
    ct_arena arena;
    ct__record *records;
    size_t num_records, capacity;
    ct__chunk_entry *entries;
    size_t num_entries;
    int64_t file; /* index in the files */
    ct__place begin, end;
    ct_status *error; /* what ended the reading of the file, behind all records; owned */
    bool is_fatal;
} ct__chunk;

typedef struct ct__reader {
    const ct_dataset_opts *opts;
    ct_data_kind kind;
    const ct__files *files;
    const char *name; /* of its random streams */
    ct__columns columns;
    ct__place at;
    ct__record_reader *open; /* at `at`, or NULL */
} ct__reader;

void ct__chunk_init(ct__chunk *chunk);
void ct__chunk_deinit(ct__chunk *chunk);

int64_t ct__reader_file(const ct__reader *reader, int64_t epoch, int64_t place); /* which file stands there */

/* The first half: fills the records; it never fails, as what is wrong stands in the chunk. One thread at a time. */
void ct__reader_read(ct__reader *reader, ct__chunk *chunk);
/* The second half: makes entries of records. Any thread. */
void ct__chunk_make(const ct__reader *reader, ct__chunk *chunk);

void ct__reader_seek(ct__reader *reader, ct__place at);
void ct__reader_close(ct__reader *reader);

/* Reads some documents again: out_documents[i] is that of places[i].file and .offset; the rest of places is not looked
 * at. Errors: those of reading, FAILED_PRECONDITION when there is no such document (any more). */
struct ct__held;
CT_MUST_USE ct_status *ct__reader_fetch(const ct__reader *reader, const struct ct__held *places, size_t count,
                                        ct__document *out_documents);

#endif
