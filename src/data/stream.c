/* Sources of documents: chunks made ahead, the shuffle buffer, packing.
 *
 *   ring of chunks:  [taken from] [made] [being made] [being read] [free]
 *
 * Whoever has nothing else to do reads the next chunk, alone, and then makes documents of it while others read on. The
 * caller takes documents in the order of the files, so what comes does not depend on who did what.
 *
 * The shuffle buffer fills up to its size; each draw takes one at random and the next document takes its place. At the
 * end of an epoch it empties before documents of the next come in, so each document comes once per epoch.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/rng.h"
#include "data/pack.h"
#include "data/reader.h"
#include "data/source.h"

enum { NUM_CHUNKS = 8, MAX_TOLD = 5 /* broken records that are told one by one */ };

typedef struct slot {
    ct__chunk chunk;
    bool is_made;
} slot;

typedef struct stream {
    ct__source base;
    ct__workers *workers;
    ct__job job;
    ct__packer *packer;

    /* with the workers' lock */
    ct__reader reader;
    slot slots[NUM_CHUNKS];
    int64_t num_read, num_used; /* chunks: begun to be read; done with */
    bool is_reading, is_paused;
    int num_under_way;

    /* the caller's */
    bool has_chunk;    /* number num_used is made */
    size_t next_entry; /* of it */
    ct__place next;    /* behind what was taken */
    ct__document *buffer;
    size_t num_buffered, buffer_capacity;
    int64_t num_draws, num_documents, num_broken;
    bool draining;
    char *first_broken; /* what was wrong, for the error that nothing is left */
} stream;

static size_t buffer_size(const stream *s)
{
    if (!s->base.opts->shuffle) return 1;
    return s->base.opts->shuffle_buffer ? (size_t)s->base.opts->shuffle_buffer : 1000;
}

/* ---- chunks ---- */

static void *take(void *context)
{
    stream *s = context;
    if (s->is_reading || s->is_paused || s->num_read - s->num_used >= NUM_CHUNKS) return NULL;
    slot *unit = &s->slots[s->num_read++ % NUM_CHUNKS];
    unit->is_made = false;
    s->is_reading = true;
    s->num_under_way++;
    return unit;
}

static void run(void *context, void *unit)
{
    stream *s = context;
    slot *place = unit;
    ct__reader_read(&s->reader, &place->chunk);
    ct__workers_lock(s->workers);
    s->is_reading = false;
    ct__workers_changed(s->workers);
    ct__workers_unlock(s->workers);
    ct__chunk_make(&s->reader, &place->chunk);
    ct__workers_lock(s->workers);
    place->is_made = true;
    s->num_under_way--;
    ct__workers_unlock(s->workers);
}

/* The chunk to take documents from. */
static ct__chunk *current(stream *s)
{
    slot *place = &s->slots[s->num_used % NUM_CHUNKS];
    if (!s->has_chunk) {
        ct__workers_lock(s->workers);
        ct__workers_await(s->workers, &s->job, &place->is_made);
        ct__workers_unlock(s->workers);
        s->has_chunk = true;
    }
    return &place->chunk;
}

static void leave_chunk(stream *s)
{
    s->next = current(s)->end;
    s->next_entry = 0;
    s->has_chunk = false;
    ct__workers_lock(s->workers);
    s->slots[s->num_used % NUM_CHUNKS].is_made = false;
    s->num_used++;
    ct__workers_changed(s->workers);
    ct__workers_unlock(s->workers);
}

/* ---- documents ---- */

/* A broken record, or the broken rest of a file: an error, or counted and left out. */
static ct_status *leave_out(stream *s, const ct_status *error, bool is_fatal)
{
    const char *message = ct_status_message(error);
    if (is_fatal) return ct_error(ct_status_code(error), "%s", message);
    if (s->base.opts->fail_on_broken)
        return ct_error(CT_CODE_DATA_LOSS, "%s; dataloader.broken_records = \"skip\" leaves such records out", message);
    if (++s->num_broken <= MAX_TOLD) ct_warning("Left out: %s", message);
    if (s->num_broken == MAX_TOLD) ct_warning("Further records that are left out are only counted");
    if (!s->first_broken) s->first_broken = ct_strdup(message);
    return NULL;
}

/* The next document in the order of the files; out_ended at the end of each epoch. */
static ct_status *next_in_order(stream *s, ct__document *out, bool *out_ended)
{
    *out_ended = false;
    for (;;) {
        ct__chunk *chunk = current(s);
        while (s->next_entry < chunk->num_entries) {
            ct__chunk_entry *entry = &chunk->entries[s->next_entry];
            if (entry->error) CT_TRY(leave_out(s, entry->error, entry->is_fatal));
            s->next_entry++;
            s->next = chunk->begin;
            s->next.offset = entry->end;
            if (!entry->document.tokens) continue;
            *out = entry->document;
            entry->document = (ct__document){0};
            return NULL;
        }
        if (chunk->error) CT_TRY(leave_out(s, chunk->error, chunk->is_fatal));
        *out_ended = chunk->end.epoch > chunk->begin.epoch;
        leave_chunk(s);
        if (*out_ended) return NULL;
    }
}

static size_t draw(stream *s)
{
    uint32_t key[2], bits[2];
    char name[64];
    snprintf(name, sizeof(name), "data.shuffle%s", s->base.name);
    ct_rng_key(s->base.opts->seed, name, key);
    const uint32_t counter[2] = {(uint32_t)s->num_draws, (uint32_t)((uint64_t)s->num_draws >> 32)};
    ct_threefry(key, counter, bits);
    s->num_draws++;
    return (size_t)(((uint64_t)bits[0] << 32 | bits[1]) % s->num_buffered);
}

/* The next document, shuffled. */
static ct_status *next_document(void *context, ct__document *out, bool *out_ended)
{
    stream *s = context;
    *out_ended = false;
    for (;;) {
        while (!s->draining && s->num_buffered < s->buffer_capacity) {
            if (s->base.opts->once && s->next.epoch) break;
            bool epoch_ended;
            CT_TRY(next_in_order(s, &s->buffer[s->num_buffered], &epoch_ended));
            if (epoch_ended)
                s->draining = true;
            else
                s->num_buffered++;
        }
        if (s->num_buffered) break;
        if (!s->draining) { /* once */
            *out_ended = true;
            return NULL;
        }
        if (!s->num_documents)
            return ct_error(CT_CODE_INVALID_ARGUMENT, "%s has no record that can be used%s%s", s->base.path,
                            s->first_broken ? "; the first that is broken: " : "",
                            s->first_broken ? s->first_broken : "");
        s->draining = false;
        s->num_documents = 0;
    }
    size_t index = s->base.opts->shuffle ? draw(s) : 0;
    *out = s->buffer[index];
    s->buffer[index] = s->buffer[--s->num_buffered];
    s->num_documents++;
    return NULL;
}

static ct_status *next(ct__source *source, ct__row *row, bool *out_ended)
{
    stream *s = (stream *)source;
    CT_TRY(ct__workers_start(s->workers));
    return ct__packer_next(s->packer, row, out_ended);
}

/* ---- state ---- */

static void save(const ct__source *source, ct__source_state *state)
{
    const stream *s = (const stream *)source;
    state->epoch = s->next.epoch;
    state->place = s->next.place;
    state->offset = s->next.offset;
    state->num_draws = s->num_draws;
    state->num_documents = s->num_documents;
    state->num_broken = s->num_broken;
    state->draining = s->draining;
    for (size_t i = 0; i < s->num_buffered; i++)
        ct__source_state_hold(
            state, (ct__held){.slot = CT__IN_SHUFFLE_BUFFER, .file = s->buffer[i].file, .offset = s->buffer[i].offset});
    ct__packer_save(s->packer, state);
}

static void empty_buffer(stream *s)
{
    for (size_t i = 0; i < s->num_buffered; i++) ct__document_free(&s->buffer[i]);
    s->num_buffered = 0;
}

/* Stops what is under way and goes to a place in the files. */
static void seek(stream *s, ct__place place)
{
    ct__workers_lock(s->workers);
    s->is_paused = true;
    ct__workers_await_none(s->workers, &s->num_under_way);
    s->num_read = s->num_used = 0;
    for (int i = 0; i < NUM_CHUNKS; i++) s->slots[i].is_made = false;
    ct__reader_seek(&s->reader, place);
    s->is_paused = false;
    ct__workers_changed(s->workers);
    ct__workers_unlock(s->workers);
    s->next_entry = 0;
    s->has_chunk = false;
    s->next = place;
}

static ct_status *restore(ct__source *source, const ct__source_state *state)
{
    stream *s = (stream *)source;
    if (state->epoch < 0 || state->place < 0 || state->place >= (int64_t)s->base.files.count || state->offset < 0)
        return ct_error(CT_CODE_OUT_OF_RANGE, "the data state stands in file %lld of %zu at %lld",
                        (long long)state->place, s->base.files.count, (long long)state->offset);
    seek(s, (ct__place){state->epoch, state->place, state->offset});
    s->num_draws = state->num_draws;
    s->num_documents = state->num_documents;
    s->num_broken = state->num_broken;
    s->draining = state->draining;
    empty_buffer(s);
    ct__packer_restore(s->packer, state);
    ct__document *documents = ct_alloc_zeroed(state->num_held, sizeof(*documents));
    ct_status *status = ct__reader_fetch(&s->reader, state->held, state->num_held, documents);
    for (size_t i = 0; i < state->num_held; i++) {
        bool is_buffered = state->held[i].slot == CT__IN_SHUFFLE_BUFFER;
        if (!status && is_buffered && s->num_buffered == s->buffer_capacity)
            status = ct_error(CT_CODE_FAILED_PRECONDITION,
                              "the data state has more documents in its shuffle buffer than the %zu of now",
                              s->buffer_capacity);
        if (!status && !is_buffered) status = ct__packer_put(s->packer, &state->held[i], &documents[i]);
        if (status)
            ct__document_free(&documents[i]);
        else if (is_buffered)
            s->buffer[s->num_buffered++] = documents[i];
    }
    free(documents);
    return status;
}

/* ---- life ---- */

static void describe(const ct__source *source, ct_str *out)
{
    const stream *s = (const stream *)source;
    ct_str_printf(out, "%zu %s file%s", s->base.files.count, ct__kind_name(s->base.kind),
                  s->base.files.count == 1 ? "" : "s");
}

static void free_stream(ct__source *source) /* the workers have ended */
{
    stream *s = (stream *)source;
    for (int i = 0; i < NUM_CHUNKS; i++) ct__chunk_deinit(&s->slots[i].chunk);
    empty_buffer(s);
    free(s->buffer);
    ct__packer_free(s->packer);
    ct__reader_close(&s->reader);
    free(s->first_broken);
    free(s);
}

/* Opens a file as a run would, so that a column that is not there is told before anything is compiled. */
static ct_status *try_first(const stream *s)
{
    ct__record_reader *reader;
    ct_status *status = ct__record_reader_open(s->base.kind, &s->reader.columns, s->base.files.paths[0], &reader);
    ct__record_reader_close(reader);
    if (ct_status_code(status) != CT_CODE_DATA_LOSS) return status;
    ct_status_free(status); /* told when its turn comes */
    return NULL;
}

ct_status *ct__stream_new(const ct__source *base, ct__workers *workers, ct__source **out_source)
{
    static const ct__source_class class = {next, save, restore, describe, free_stream};
    *out_source = NULL;
    ct__columns columns;
    CT_TRY(ct__columns_of(base->opts, base->kind, &columns));
    if (columns.names[CT__COLUMN_MESSAGES] && !base->opts->chat)
        return ct_error(CT_CODE_INVALID_ARGUMENT,
                        "dataloader.messages_column needs a tokenizer with a chat template, "
                        "which tokenizer %s has not",
                        ct_tokenizer_name(base->opts->tokenizer));
    if (ct_tokenizer_vocab_size(base->opts->tokenizer) > base->opts->vocab_size)
        return ct_error(CT_CODE_OUT_OF_RANGE,
                        "tokenizer %s has %d ids, but the model's vocabulary only %lld; take a model of its vocabulary",
                        ct_tokenizer_name(base->opts->tokenizer), ct_tokenizer_vocab_size(base->opts->tokenizer),
                        (long long)base->opts->vocab_size);
    ct__identity identity[3] = {{.name = "files"}, {.name = "num_bytes"}, {"num_files", (int64_t)base->files.count}};
    CT_TRY(ct__files_fingerprint(&base->files, &identity[0].value, &identity[1].value));

    stream *s = ct_alloc_zeroed(1, sizeof(*s));
    s->base = *base;
    s->base.class = &class;
    s->base.num_samples = s->base.num_tokens = -1;
    memcpy(s->base.identity, identity, sizeof(identity));
    s->base.num_identity = CT_COUNT(identity);
    s->workers = workers;
    s->job = (ct__job){take, run, s};
    s->buffer_capacity = buffer_size(s);
    s->buffer = ct_alloc_zeroed(s->buffer_capacity, sizeof(*s->buffer));
    for (int i = 0; i < NUM_CHUNKS; i++) ct__chunk_init(&s->slots[i].chunk);
    ct_data_packing packing = base->opts->packing;
    if (packing == CT_PACKING_AUTO)
        packing = ct__columns_are_masked(&columns) ? CT_PACKING_FIRST_FIT : CT_PACKING_CONCAT;
    s->packer = ct__packer_new(base->opts, packing, next_document, s);
    s->reader = (ct__reader){
        .opts = base->opts, .kind = base->kind, .files = &s->base.files, .name = s->base.name, .columns = columns};
    ct_status *status = try_first(s);
    if (status) {
        free_stream(&s->base);
        return status;
    }
    ct__workers_add(workers, &s->job);
    *out_source = &s->base;
    return NULL;
}
