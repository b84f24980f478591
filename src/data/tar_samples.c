/* WebDataset: neighbouring members of a tar whose names are equal up to the first dot of the file's name are one
 * sample; what follows the dot is the column. Columns that are no members are looked for in the member "json".
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "data/record.h"
#include "formats/tar.h"

typedef struct tar_samples {
    ct__record_reader base;
    const ct__columns *columns;
    const char *path;
    ct_tar *tar;
    ct_tar_member member; /* the one that was read last, the first of the next sample */
    bool has_member;
    ct_str key, contents;
} tar_samples;

static ct_status *skip_to(ct__record_reader *reader, int64_t offset)
{
    tar_samples *samples = (tar_samples *)reader;
    if (samples->has_member && samples->member.offset == offset) return NULL; /* its header is read already */
    samples->has_member = false;
    return ct_tar_skip_to(samples->tar, offset);
}

/* The length of a name up to the first dot behind its last slash; the name's when there is none. */
static size_t key_length(const char *name)
{
    const char *slash = strrchr(name, '/'), *file = slash ? slash + 1 : name, *dot = strchr(file, '.');
    return dot ? (size_t)(dot - name) : strlen(name);
}

static ct_status *next_member(tar_samples *samples)
{
    do CT_TRY(ct_tar_next(samples->tar, &samples->member));
    while (samples->member.name &&
           (!samples->member.is_file || !strchr(samples->member.name + key_length(samples->member.name), '.')));
    samples->has_member = true;
    return NULL;
}

static ct_status *read_member(tar_samples *samples, ct_arena *arena, ct__record *record)
{
    const char *column = samples->member.name + key_length(samples->member.name) + 1;
    ct__text *place = strcmp(column, "json") == 0 ? &record->json : NULL;
    for (int i = 0; i < CT__NUM_COLUMNS; i++)
        if (samples->columns->names[i] && !strcmp(column, samples->columns->names[i])) place = &record->columns[i];
    if (!place || place->bytes) return NULL;
    if (samples->member.size > CT__MAX_RECORD_BYTES)
        return ct_error(CT_CODE_DATA_LOSS, "%s: member %s is larger than %d MiB", samples->path, samples->member.name,
                        CT__MAX_RECORD_BYTES >> 20);
    ct_str_reset(&samples->contents);
    CT_TRY(ct_tar_read(samples->tar, &samples->contents));
    *place =
        (ct__text){ct_arena_dup(arena, samples->contents.data, samples->contents.length), samples->contents.length};
    return NULL;
}

static ct_status *next(ct__record_reader *reader, ct_arena *arena, ct__record *out_record, bool *out_ended)
{
    tar_samples *samples = (tar_samples *)reader;
    if (!samples->has_member) CT_TRY(next_member(samples));
    *out_ended = !samples->member.name;
    if (*out_ended) return NULL;
    out_record->offset = samples->member.offset;
    ct_str_reset(&samples->key);
    ct_str_append_n(&samples->key, samples->member.name, key_length(samples->member.name));
    do {
        CT_TRY(read_member(samples, arena, out_record));
        CT_TRY(next_member(samples));
    } while (samples->member.name && key_length(samples->member.name) == samples->key.length &&
             !memcmp(samples->member.name, samples->key.data, samples->key.length));
    out_record->end = samples->member.offset;
    return NULL;
}

static void close_samples(ct__record_reader *reader)
{
    tar_samples *samples = (tar_samples *)reader;
    ct_tar_free(samples->tar);
    ct_str_deinit(&samples->key);
    ct_str_deinit(&samples->contents);
    free(samples);
}

ct__record_reader *ct__tar_samples_new(const ct__columns *columns, ct_byte_stream *stream)
{
    static const ct__record_class class = {skip_to, next, close_samples};
    tar_samples *samples = ct_alloc_zeroed(1, sizeof(*samples));
    samples->base.class = &class;
    samples->columns = columns;
    samples->path = ct_byte_stream_path(stream);
    samples->tar = ct_tar_new(stream);
    ct_str_init(&samples->key);
    ct_str_init(&samples->contents);
    return &samples->base;
}
