/* JSON lines: records are lines that are not blank; an offset is that of the line's first byte. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "data/record.h"
#include "formats/byte_stream.h"

enum { BLOCK_BYTES = 1 << 18 };

typedef struct json_lines {
    ct__record_reader base;
    ct_byte_stream *stream;
    char *buffer;
    size_t capacity, begin, end; /* what is read and not given out yet lies in [begin, end) */
    int64_t offset;              /* of begin */
    bool ended;
} json_lines;

static ct_status *skip_to(ct__record_reader *reader, int64_t offset)
{
    json_lines *lines = (json_lines *)reader;
    CT_ASSERT(offset >= lines->offset);
    if (offset - lines->offset <= (int64_t)(lines->end - lines->begin)) {
        lines->begin += (size_t)(offset - lines->offset);
        lines->offset = offset;
        return NULL;
    }
    lines->begin = lines->end = 0;
    return ct_byte_stream_skip_to(lines->stream, offset, &lines->offset);
}

/* More bytes behind those that are there. */
static ct_status *fill(json_lines *lines)
{
    if (lines->begin) {
        memmove(lines->buffer, lines->buffer + lines->begin, lines->end - lines->begin);
        lines->end -= lines->begin;
        lines->begin = 0;
    }
    if (lines->end >= CT__MAX_RECORD_BYTES)
        return ct_error(CT_CODE_DATA_LOSS, "%s: the line at byte %lld is longer than %d MiB",
                        ct_byte_stream_path(lines->stream), (long long)lines->offset, CT__MAX_RECORD_BYTES >> 20);
    if (lines->capacity - lines->end < BLOCK_BYTES) {
        lines->capacity *= 2;
        lines->buffer = ct_realloc(lines->buffer, lines->capacity);
    }
    size_t count;
    CT_TRY(ct_byte_stream_read(lines->stream, lines->buffer + lines->end, BLOCK_BYTES, &count));
    lines->ended = count == 0;
    lines->end += count;
    return NULL;
}

static bool is_blank(const char *line, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!strchr(" \t\r", line[i])) return false; /* a zero byte counts as blank too: strchr finds its own end */
    return true;
}

static ct_status *next(ct__record_reader *reader, ct_arena *arena, ct__record *out_record, bool *out_ended)
{
    json_lines *lines = (json_lines *)reader;
    size_t seen = 0; /* bytes that hold no newline */
    for (;;) {
        const char *begin = lines->buffer + lines->begin;
        size_t left = lines->end - lines->begin;
        const char *newline = left > seen ? memchr(begin + seen, '\n', left - seen) : NULL;
        if (!newline && !lines->ended) {
            seen = left;
            CT_TRY(fill(lines));
            continue;
        }
        size_t length = newline ? (size_t)(newline - begin) : left, whole = length + (newline != NULL);
        if (!whole) {
            *out_ended = true;
            return NULL;
        }
        out_record->offset = lines->offset;
        lines->begin += whole;
        lines->offset += (int64_t)whole;
        seen = 0;
        if (is_blank(begin, length)) continue;
        out_record->json = (ct__text){ct_arena_dup(arena, begin, length), length};
        out_record->end = lines->offset;
        return NULL;
    }
}

static void close_lines(ct__record_reader *reader)
{
    json_lines *lines = (json_lines *)reader;
    ct_byte_stream_close(lines->stream);
    free(lines->buffer);
    free(lines);
}

ct__record_reader *ct__json_lines_new(ct_byte_stream *stream)
{
    static const ct__record_class class = {skip_to, next, close_lines};
    json_lines *lines = ct_alloc_zeroed(1, sizeof(*lines));
    lines->base.class = &class;
    lines->stream = stream;
    lines->capacity = (size_t)BLOCK_BYTES * 2;
    lines->buffer = ct_alloc(lines->capacity);
    return &lines->base;
}
