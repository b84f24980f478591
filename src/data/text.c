/* Texts: a file is a document, all documents behind one another in memory. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "data/document.h"
#include "data/windows.h"
#include "formats/byte_stream.h"

static ct_status *read_whole(const char *path, ct_str *out)
{
    ct_byte_stream *stream;
    CT_TRY(ct_byte_stream_open(path, &stream));
    char *piece = ct_alloc(1 << 16);
    size_t count = 1;
    ct_status *status = NULL;
    while (!status && count) {
        status = ct_byte_stream_read(stream, piece, 1 << 16, &count);
        if (!status) ct_str_append_n(out, piece, count);
    }
    free(piece);
    ct_byte_stream_close(stream);
    return status;
}

/* Appends one document to the stream. */
static ct_status *add_document(const ct_dataset_opts *opts, ct__part *part, const char *path, ct_str *text,
                               int64_t *capacity)
{
    ct_str_reset(text);
    CT_TRY(read_whole(path, text));
    if (!text->length) return NULL;
    size_t num_ids;
    int32_t *ids;
    CT_TRY_NOTE(ct_tokenizer_encode(opts->tokenizer, text->data, text->length,
                                    &(ct_tokenizer_encode_opts){.add_bos = true, .add_eos = true}, &ids, &num_ids),
                "reading %s", path);
    ct_status *status = ct__ids_check(opts, ids, num_ids, path);
    if (!status && num_ids) {
        int64_t total = part->num_tokens + (int64_t)num_ids;
        if (total > *capacity) {
            *capacity = CT_MAX(total, *capacity * 2);
            part->stream = ct_realloc(part->stream, (size_t)*capacity * sizeof(*part->stream));
            part->stream_begins = ct_realloc(part->stream_begins, (size_t)*capacity);
        }
        memcpy(part->stream + part->num_tokens, ids, num_ids * sizeof(*ids));
        memset(part->stream_begins + part->num_tokens, 0, num_ids);
        part->stream_begins[part->num_tokens] = true;
        part->num_tokens = total;
    }
    free(ids);
    return status;
}

ct_status *ct__text_open(const ct__source *source, ct__part *part)
{
    const ct_dataset_opts *opts = source->opts;
    CT_ASSERT(opts->tokenizer);
    ct_status *status = NULL;
    int64_t capacity = 0;
    ct_str text;
    ct_str_init(&text);
    for (size_t i = 0; i < source->files.count; i++)
        CT_TRY_OUT(add_document(opts, part, source->files.paths[i], &text, &capacity));
    if (part->num_tokens < opts->seq_len + 1) {
        status =
            ct_error(CT_CODE_INVALID_ARGUMENT,
                     "the text of %s must have at least training.seq_len + 1 = %lld tokens, but has %lld in %zu file%s",
                     source->path, (long long)opts->seq_len + 1, (long long)part->num_tokens, source->files.count,
                     source->files.count == 1 ? "" : "s");
        goto out;
    }
    part->path = source->path;
    part->ids = part->stream;
    part->begins = part->stream_begins;
    part->stride = opts->seq_len;
    part->num_samples = (part->num_tokens - 1) / opts->seq_len;
    part->wraps = !opts->shuffle && !opts->once;
out:
    ct_str_deinit(&text);
    return status;
}
