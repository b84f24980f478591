/* Chunks. What is wrong with a record is found by whoever makes documents, and told when its turn comes. */
#include "data/reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "data/source.h"

enum { CHUNK_BYTES = 1 << 17, CHUNK_RECORDS = 4096 };

void ct__chunk_init(ct__chunk *chunk)
{
    *chunk = (ct__chunk){0};
    ct_arena_init(&chunk->arena);
}

static void empty(ct__chunk *chunk)
{
    for (size_t i = 0; i < chunk->num_entries; i++) {
        ct__document_free(&chunk->entries[i].document);
        ct_status_free(chunk->entries[i].error);
    }
    ct_status_free(chunk->error);
    chunk->error = NULL;
    chunk->is_fatal = false;
    chunk->num_entries = chunk->num_records = 0;
    ct_arena_reset(&chunk->arena);
}

void ct__chunk_deinit(ct__chunk *chunk)
{
    empty(chunk);
    ct_arena_deinit(&chunk->arena);
    free(chunk->records);
    free(chunk->entries);
}

int64_t ct__reader_file(const ct__reader *reader, int64_t epoch, int64_t place)
{
    if (!reader->opts->shuffle) return place;
    char name[64];
    uint32_t key[2];
    snprintf(name, sizeof(name), "data.files%s.%lld", reader->name, (long long)epoch);
    ct_rng_key(reader->opts->seed, name, key);
    return (int64_t)ct_rng_permute(key, (uint64_t)reader->files->count, (uint64_t)place);
}

/* Is it the file's contents that are wrong, and not the file system? */
static bool is_damage(const ct_status *status)
{
    return ct_status_code(status) == CT_CODE_DATA_LOSS;
}

static void next_file(ct__reader *reader)
{
    ct__record_reader_close(reader->open);
    reader->open = NULL;
    reader->at.offset = 0;
    if (++reader->at.place < (int64_t)reader->files->count) return;
    reader->at.place = 0;
    reader->at.epoch++;
}

static ct_status *open_file(const ct__reader *reader, int64_t file, int64_t offset, ct__record_reader **out_reader)
{
    CT_TRY(ct__record_reader_open(reader->kind, &reader->columns, reader->files->paths[file], out_reader));
    ct_status *status = offset ? ct__record_reader_skip_to(*out_reader, offset) : NULL;
    if (status) {
        ct__record_reader_close(*out_reader);
        *out_reader = NULL;
    }
    return status;
}

void ct__reader_read(ct__reader *reader, ct__chunk *chunk)
{
    empty(chunk);
    chunk->begin = reader->at;
    chunk->file = ct__reader_file(reader, reader->at.epoch, reader->at.place);
    bool ended = false;
    if (!reader->open) chunk->error = open_file(reader, chunk->file, reader->at.offset, &reader->open);
    while (!chunk->error && !ended && chunk->arena.total_bytes < CHUNK_BYTES && chunk->num_records < CHUNK_RECORDS) {
        if (chunk->num_records == chunk->capacity) {
            chunk->capacity = chunk->capacity ? chunk->capacity * 2 : 64;
            chunk->records = ct_realloc(chunk->records, chunk->capacity * sizeof(*chunk->records));
        }
        ct__record *record = &chunk->records[chunk->num_records];
        chunk->error = ct__record_reader_next(reader->open, &chunk->arena, record, &ended);
        if (chunk->error || ended) break;
        chunk->num_records++;
        reader->at.offset = record->end;
    }
    chunk->is_fatal = chunk->error && !is_damage(chunk->error);
    if (chunk->error || ended) next_file(reader);
    chunk->end = reader->at;
}

static void make_entry(const ct__reader *reader, int64_t file, const ct__record *record, ct__chunk_entry *entry)
{
    char *where = ct_asprintf("%s, %s %lld", reader->files->paths[file],
                              reader->kind == CT_DATA_PARQUET ? "row" : "byte", (long long)record->offset);
    *entry = (ct__chunk_entry){.end = record->end};
    entry->error = ct__document_make(reader->opts, &reader->columns, record, where, &entry->document);
    entry->is_fatal = ct_status_code(entry->error) == CT_CODE_OUT_OF_RANGE;
    if (entry->error && !strstr(ct_status_message(entry->error), where))
        entry->error = ct_status_note(entry->error, "%s", where);
    entry->document.file = file;
    free(where);
}

void ct__chunk_make(const ct__reader *reader, ct__chunk *chunk)
{
    chunk->entries = ct_realloc(chunk->entries, CT_MAX(chunk->num_records, (size_t)1) * sizeof(*chunk->entries));
    for (size_t i = 0; i < chunk->num_records; i++)
        make_entry(reader, chunk->file, &chunk->records[i], &chunk->entries[i]);
    chunk->num_entries = chunk->num_records;
}

void ct__reader_seek(ct__reader *reader, ct__place at)
{
    ct__reader_close(reader);
    reader->at = at;
}

void ct__reader_close(ct__reader *reader)
{
    ct__record_reader_close(reader->open);
    reader->open = NULL;
}

/* ---- documents in hand ---- */

typedef struct wanted {
    ct__held held;
    size_t index;
} wanted;

static int compare(const void *a, const void *b)
{
    const ct__held *x = &((const wanted *)a)->held, *y = &((const wanted *)b)->held;
    if (x->file != y->file) return x->file < y->file ? -1 : 1;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

static ct_status *fetch_one(const ct__reader *reader, ct__record_reader *open, const ct__held *held, ct_arena *arena,
                            ct__document *out)
{
    ct__record record;
    bool ended;
    CT_TRY(ct__record_reader_skip_to(open, held->offset));
    CT_TRY(ct__record_reader_next(open, arena, &record, &ended));
    ct__chunk_entry entry = {0};
    if (!ended && record.offset == held->offset) make_entry(reader, held->file, &record, &entry);
    bool is_there = entry.document.tokens && !entry.error;
    ct_status_free(entry.error);
    *out = entry.document;
    if (is_there) return NULL;
    return ct_error(CT_CODE_FAILED_PRECONDITION,
                    "%s held a document at %lld when the state was saved, but does not now; resume with the data of "
                    "then",
                    reader->files->paths[held->file], (long long)held->offset);
}

ct_status *ct__reader_fetch(const ct__reader *reader, const ct__held *places, size_t count, ct__document *out_documents)
{
    memset(out_documents, 0, count * sizeof(*out_documents));
    wanted *all = ct_alloc(count * sizeof(*all));
    for (size_t i = 0; i < count; i++) all[i] = (wanted){places[i], i};
    if (count) qsort(all, count, sizeof(*all), compare); /* so that each file is gone through once */
    ct_status *status = NULL;
    ct__record_reader *open = NULL;
    ct_arena arena;
    ct_arena_init(&arena);
    int64_t file = -1;
    for (size_t i = 0; i < count; i++) {
        const ct__held *held = &all[i].held;
        if (held->file < 0 || held->file >= (int64_t)reader->files->count || held->offset < 0) {
            status = ct_error(CT_CODE_OUT_OF_RANGE, "the data state names file %lld of %zu", (long long)held->file,
                              reader->files->count);
            goto out;
        }
        bool is_same = held->file == file && i && held->offset == all[i - 1].held.offset;
        if (held->file != file || is_same) { /* one document may be in hand twice, at the turn of an epoch */
            ct__record_reader_close(open);
            open = NULL;
            file = held->file;
            CT_TRY_OUT(open_file(reader, file, 0, &open));
        }
        CT_TRY_OUT(fetch_one(reader, open, held, &arena, &out_documents[all[i].index]));
        ct_arena_reset(&arena);
    }
out:
    ct__record_reader_close(open);
    ct_arena_deinit(&arena);
    free(all);
    return status;
}
