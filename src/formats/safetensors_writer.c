/* Writing safetensors as a stream: the shapes are known before the data, so the header goes first and every byte after
 * it is written once, in order, to a temporary that replaces the file only when it is whole and on disk.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/direct.h"
#include "base/file.h"
#include "base/map.h"
#include "formats/json.h"
#include "formats/safetensors.h"

enum { HEADER_ALIGNMENT = 64 };

typedef struct entry {
    char *name;
    ct_dtype dtype;
    int rank;
    int64_t sizes[CT_MAX_RANK];
    int64_t begin, end; /* in the data */
} entry;

struct ct_safetensors_writer {
    char *path, *temporary;
    int descriptor;
    ct_safetensors_writer_opts opts;
    entry *entries;
    size_t num_entries;
    ct_map index_of;     /* name -> index + 1 */
    ct_map metadata;     /* values are the map's own copies */
    int64_t header_size; /* 0 until the header is written */
    int64_t data_bytes;  /* declared */
    int64_t written;     /* of the data */
    size_t current;      /* the entry that written lies in */
    char *piece;         /* what waits to be written; NULL before the first byte */
    size_t piece_bytes;
    bool is_direct;
};

ct_status *ct_safetensors_writer_new(const char *path, const ct_safetensors_writer_opts *opts,
                                     ct_safetensors_writer **out_writer)
{
    *out_writer = NULL;
    char *temporary = ct_asprintf("%s.tmp.%ld.XXXXXX", path, (long)getpid());
    int descriptor = mkostemp(temporary, O_CLOEXEC);
    if (descriptor < 0) {
        ct_status *status = ct_errno_error("cannot create %s", path);
        free(temporary);
        return status;
    }
    ct_safetensors_writer *writer = ct_alloc_zeroed(1, sizeof(*writer));
    writer->path = ct_strdup(path);
    writer->temporary = temporary;
    writer->descriptor = descriptor;
    if (opts) writer->opts = *opts;
    ct_map_init(&writer->index_of);
    ct_map_init(&writer->metadata);
    *out_writer = writer;
    return NULL;
}

void ct_safetensors_writer_free(ct_safetensors_writer *writer)
{
    if (!writer) return;
    if (writer->descriptor >= 0) close(writer->descriptor);
    if (writer->temporary) unlink(writer->temporary);
    for (size_t i = 0; i < writer->num_entries; i++) free(writer->entries[i].name);
    for (size_t i = 0; i < writer->metadata.num_entries; i++) free(writer->metadata.entries[i].value);
    free(writer->entries);
    free(writer->piece);
    ct_map_deinit(&writer->index_of);
    ct_map_deinit(&writer->metadata);
    free(writer->path);
    free(writer->temporary);
    free(writer);
}

ct_status *ct_safetensors_writer_add(ct_safetensors_writer *writer, const char *name, ct_dtype dtype,
                                     const int64_t *sizes, int rank)
{
    if (writer->header_size) CT_BUG("safetensors: tensor %s is declared after the header was written", name);
    CT_ASSERT(rank >= 0 && rank <= CT_MAX_RANK);
    if (!strcmp(name, "__metadata__") || ct_map_has(&writer->index_of, name))
        return ct_error(CT_CODE_INVALID_ARGUMENT, "%s: the tensor name %s is %s", writer->path, name,
                        ct_map_has(&writer->index_of, name) ? "given twice" : "reserved by the format");
    entry next = {.dtype = dtype, .rank = rank, .begin = writer->data_bytes};
    int64_t size_bytes = (int64_t)ct_dtype_bytes(dtype);
    int fits = 1;
    for (int i = 0; i < rank; i++) {
        CT_ASSERT(sizes[i] >= 0);
        next.sizes[i] = sizes[i];
        fits = fits && ct_checked_mul(size_bytes, sizes[i], &size_bytes);
    }
    if (!fits || !ct_checked_add(writer->data_bytes, size_bytes, &writer->data_bytes))
        return ct_error(CT_CODE_INVALID_ARGUMENT, "%s: with tensor %s it has more bytes than 2^63", writer->path, name);
    next.name = ct_strdup(name);
    next.end = writer->data_bytes;
    writer->entries = ct_realloc(writer->entries, (writer->num_entries + 1) * sizeof(entry));
    writer->entries[writer->num_entries++] = next;
    ct_map_set(&writer->index_of, name, (void *)(uintptr_t)writer->num_entries);
    return NULL;
}

void ct_safetensors_writer_metadata(ct_safetensors_writer *writer, const char *key, const char *value)
{
    if (writer->header_size) CT_BUG("safetensors: metadata %s is given after the header was written", key);
    free(ct_map_get(&writer->metadata, key));
    ct_map_set(&writer->metadata, key, ct_strdup(value));
}

static char *header_text(const ct_safetensors_writer *writer)
{
    ct_json_writer *json = ct_json_writer_new();
    ct_json_begin_object(json, NULL);
    if (writer->metadata.num_entries) {
        ct_json_begin_object(json, "__metadata__");
        for (size_t i = 0; i < writer->metadata.num_entries; i++)
            ct_json_put_string(json, writer->metadata.entries[i].key, writer->metadata.entries[i].value);
        ct_json_end(json);
    }
    for (size_t i = 0; i < writer->num_entries; i++) {
        const entry *tensor = &writer->entries[i];
        ct_json_begin_object(json, tensor->name);
        ct_json_put_string(json, "dtype", ct_safetensors_dtype_name(tensor->dtype));
        ct_json_begin_array(json, "shape");
        for (int d = 0; d < tensor->rank; d++) ct_json_put_int(json, NULL, tensor->sizes[d]);
        ct_json_end(json);
        ct_json_begin_array(json, "data_offsets");
        ct_json_put_int(json, NULL, tensor->begin);
        ct_json_put_int(json, NULL, tensor->end);
        ct_json_end(json);
        ct_json_end(json);
    }
    ct_json_end(json);
    char *text = ct_json_writer_text(json, false);
    ct_json_writer_free(json);
    return text;
}

/* Empties the piece to the file; past the page cache where that works, so that the disk is at work from the first piece
 * on and the flush at the end finds little to do. */
static ct_status *write_piece(ct_safetensors_writer *writer, bool is_direct)
{
    if (!is_direct && writer->is_direct) ct_direct_set(writer->descriptor, false);
    for (size_t done = 0; done < writer->piece_bytes;) {
        ssize_t count = write(writer->descriptor, writer->piece + done, writer->piece_bytes - done);
        if (count >= 0)
            done += (size_t)count;
        else if (errno == EINVAL && writer->is_direct && ct_direct_set(writer->descriptor, false))
            writer->is_direct = false; /* after a part of a block, or what cannot be done after all */
        else if (errno != EINTR)
            return ct_errno_error("cannot write %s", writer->path);
    }
    writer->piece_bytes = 0;
    return NULL;
}

static ct_status *write_bytes(ct_safetensors_writer *writer, const void *bytes, size_t size_bytes)
{
    if (!writer->piece) {
        writer->piece = ct_direct_piece_new();
        writer->is_direct = writer->data_bytes >= CT_DIRECT_SMALLEST && ct_direct_set(writer->descriptor, true);
    }
    for (const char *next = bytes; size_bytes;) {
        size_t part = CT_MIN(size_bytes, CT_DIRECT_PIECE - writer->piece_bytes);
        if (writer->opts.observe) writer->opts.observe(writer->opts.context, next, part);
        memcpy(writer->piece + writer->piece_bytes, next, part);
        next += part;
        size_bytes -= part;
        writer->piece_bytes += part;
        if (writer->piece_bytes == CT_DIRECT_PIECE) CT_TRY(write_piece(writer, true));
    }
    return NULL;
}

static ct_status *write_header(ct_safetensors_writer *writer)
{
    char *text = header_text(writer);
    size_t length = strlen(text);
    size_t total = (8 + length + HEADER_ALIGNMENT - 1) / HEADER_ALIGNMENT * HEADER_ALIGNMENT;
    uint64_t padded = total - 8;
    char *header = ct_alloc(total);
    memcpy(header, &padded, 8);
    memcpy(header + 8, text, length);
    memset(header + 8 + length, ' ', total - 8 - length);
    ct_status *status = write_bytes(writer, header, total);
    if (!status) writer->header_size = (int64_t)total;
    free(header);
    free(text);
    return status;
}

int64_t ct_safetensors_writer_offset(const ct_safetensors_writer *writer, const char *name)
{
    size_t index = (size_t)(uintptr_t)ct_map_get(&writer->index_of, name);
    CT_ASSERT(index > 0 && writer->header_size);
    return writer->header_size + writer->entries[index - 1].begin;
}

ct_status *ct_safetensors_writer_write(ct_safetensors_writer *writer, const char *name, const void *bytes,
                                       size_t size_bytes)
{
    if (!writer->header_size) CT_TRY(write_header(writer));
    if (size_bytes == 0) return NULL;
    while (writer->current < writer->num_entries && writer->entries[writer->current].end == writer->written)
        writer->current++;
    const entry *tensor = writer->current < writer->num_entries ? &writer->entries[writer->current] : NULL;
    if (!tensor || strcmp(tensor->name, name) != 0)
        return ct_error(CT_CODE_FAILED_PRECONDITION, "%s: the next bytes must be those of %s, but are those of %s",
                        writer->path, tensor ? tensor->name : "no tensor", name);
    if (size_bytes > (size_t)(tensor->end - writer->written))
        return ct_error(CT_CODE_FAILED_PRECONDITION, "%s: tensor %s has %lld bytes left, but got %zu", writer->path,
                        name, (long long)(tensor->end - writer->written), size_bytes);
    CT_TRY(write_bytes(writer, bytes, size_bytes));
    writer->written += (int64_t)size_bytes;
    return NULL;
}

ct_status *ct_safetensors_writer_finish(ct_safetensors_writer *writer)
{
    ct_status *status = NULL;
    char *parent = ct_path_parent(writer->path);
    if (!writer->header_size) CT_TRY_OUT(write_header(writer));
    if (writer->written != writer->data_bytes) {
        status = ct_error(CT_CODE_FAILED_PRECONDITION, "%s: %lld of %lld bytes of data were given", writer->path,
                          (long long)writer->written, (long long)writer->data_bytes);
        goto out;
    }
    CT_TRY_OUT(write_piece(writer, false)); /* the rest is no whole block */
    if (fchmod(writer->descriptor, 0644)) status = ct_errno_error("cannot set the mode of %s", writer->path);
    if (!status && fsync(writer->descriptor)) status = ct_errno_error("cannot flush %s", writer->path);
    if (close(writer->descriptor) && !status) status = ct_errno_error("cannot close %s", writer->path);
    writer->descriptor = -1;
    if (!status && rename(writer->temporary, writer->path))
        status = ct_errno_error("cannot rename to %s", writer->path);
    if (!status) {
        free(writer->temporary);
        writer->temporary = NULL;
        status = ct_dir_sync(parent);
    }
out:
    free(parent);
    ct_safetensors_writer_free(writer);
    return status;
}

/* Larger elements first, otherwise in the order given. */
static int compare_elements(const void *a, const void *b)
{
    const ct_safetensors_entry *x = *(const ct_safetensors_entry *const *)a,
                               *y = *(const ct_safetensors_entry *const *)b;
    size_t x_bytes = ct_dtype_bytes(x->array.dtype), y_bytes = ct_dtype_bytes(y->array.dtype);
    if (x_bytes != y_bytes) return x_bytes > y_bytes ? -1 : 1;
    return x < y ? -1 : x > y;
}

ct_status *ct_safetensors_save(const char *path, const ct_safetensors_entry *entries, size_t num_entries)
{
    ct_safetensors_writer *writer = NULL;
    CT_TRY(ct_safetensors_writer_new(path, NULL, &writer));
    ct_status *status = NULL;
    const ct_safetensors_entry **order = ct_alloc((num_entries + 1) * sizeof(*order));
    for (size_t i = 0; i < num_entries; i++) order[i] = &entries[i];
    if (num_entries) qsort(order, num_entries, sizeof(*order), compare_elements);
    for (size_t i = 0; i < num_entries; i++) {
        const ct_array *array = &order[i]->array;
        CT_TRY_OUT(ct_safetensors_writer_add(writer, order[i]->name, array->dtype, array->sizes, array->rank));
    }
    for (size_t i = 0; i < num_entries; i++)
        CT_TRY_OUT(ct_safetensors_writer_write(writer, order[i]->name, order[i]->array.data,
                                               ct_array_bytes(&order[i]->array)));
    status = ct_safetensors_writer_finish(writer);
    writer = NULL;
out:
    ct_safetensors_writer_free(writer);
    free(order);
    return status;
}
