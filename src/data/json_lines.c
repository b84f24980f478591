/* JSON lines: records are lines that are not blank; an offset is that of the line's first byte. A file that begins with
 * a bracket is one array, its elements being the records.
 */
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
    bool is_looked_at, is_array;
} json_lines;

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

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* What kind of file it is, before anything is read. */
static ct_status *look(json_lines *lines)
{
    if (lines->is_looked_at) return NULL;
    CT_TRY(fill(lines));
    lines->is_looked_at = true;
    size_t at = 0;
    while (at < lines->end && is_space(lines->buffer[at])) at++;
    lines->is_array = at < lines->end && lines->buffer[at] == '[';
    if (!lines->is_array) return NULL;
    lines->begin = at + 1;
    lines->offset = (int64_t)lines->begin;
    return NULL;
}

static bool is_blank(const char *line, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!strchr(" \t\r", line[i])) return false; /* a zero byte counts as blank too: strchr finds its own end */
    return true;
}

static void take(json_lines *lines, ct_arena *arena, size_t length, size_t whole, ct__record *out_record)
{
    out_record->offset = lines->offset;
    out_record->json = (ct__text){ct_arena_dup(arena, lines->buffer + lines->begin, length), length};
    lines->begin += whole;
    lines->offset += (int64_t)whole;
    out_record->end = lines->offset;
}

static ct_status *next_line(json_lines *lines, ct_arena *arena, ct__record *out_record, bool *out_ended)
{
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
        if (!is_blank(begin, length)) {
            take(lines, arena, length, whole, out_record);
            return NULL;
        }
        lines->begin += whole;
        lines->offset += (int64_t)whole;
        seen = 0;
    }
}

/* The bytes up to the comma or bracket behind an element; at the end of the file what there is. */
static ct_status *element_length(json_lines *lines, size_t *out_length)
{
    size_t at = 0, depth = 0;
    bool in_string = false;
    for (;; at++) {
        if (at == lines->end - lines->begin && !lines->ended) CT_TRY(fill(lines));
        if (at == lines->end - lines->begin) break;
        char c = lines->buffer[lines->begin + at];
        if (in_string) {
            if (c == '\\' && at + 1 == lines->end - lines->begin && !lines->ended) CT_TRY(fill(lines));
            if (c == '\\' && at + 1 < lines->end - lines->begin) at++;
            in_string = c != '"';
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            depth++;
        } else if (depth && (c == '}' || c == ']')) {
            depth--;
        } else if (!depth && (c == ',' || c == ']')) {
            break;
        }
    }
    *out_length = at;
    return NULL;
}

static ct_status *next_element(json_lines *lines, ct_arena *arena, ct__record *out_record, bool *out_ended)
{
    for (;; lines->begin++, lines->offset++) { /* to the element */
        if (lines->begin == lines->end && !lines->ended) CT_TRY(fill(lines));
        if (lines->begin == lines->end) break;
        char c = lines->buffer[lines->begin];
        if (!is_space(c) && c != ',') break;
    }
    *out_ended = lines->begin == lines->end || lines->buffer[lines->begin] == ']';
    if (*out_ended) return NULL;
    size_t length;
    CT_TRY(element_length(lines, &length));
    take(lines, arena, length, length, out_record);
    return NULL;
}

static ct_status *next(ct__record_reader *reader, ct_arena *arena, ct__record *out_record, bool *out_ended)
{
    json_lines *lines = (json_lines *)reader;
    CT_TRY(look(lines));
    return lines->is_array ? next_element(lines, arena, out_record, out_ended)
                           : next_line(lines, arena, out_record, out_ended);
}

static ct_status *skip_to(ct__record_reader *reader, int64_t offset)
{
    json_lines *lines = (json_lines *)reader;
    CT_TRY(look(lines));
    CT_ASSERT(offset >= lines->offset);
    if (offset - lines->offset <= (int64_t)(lines->end - lines->begin)) {
        lines->begin += (size_t)(offset - lines->offset);
        lines->offset = offset;
        return NULL;
    }
    lines->begin = lines->end = 0;
    return ct_byte_stream_skip_to(lines->stream, offset, &lines->offset);
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
