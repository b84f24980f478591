/* Texts: a file is a document, all documents behind one another in memory. Files are tokenised by several threads. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/workers.h"
#include "data/document.h"
#include "data/windows.h"
#include "formats/byte_stream.h"

enum { PIECE_BYTES = 1 << 16, MAX_THREADS = 16 };

typedef struct document_ids {
    int32_t *ids;
    size_t count;
} document_ids;

typedef struct texts {
    const ct__source *source;
    document_ids *documents; /* per file */
} texts;

static ct_status *read_whole(const char *path, ct_str *out)
{
    ct_byte_stream *stream;
    CT_TRY(ct_byte_stream_open(path, &stream));
    char *piece = ct_alloc(PIECE_BYTES);
    size_t count = 1;
    ct_status *status = NULL;
    while (!status && count) {
        status = ct_byte_stream_read(stream, piece, PIECE_BYTES, &count);
        if (!status) ct_str_append_n(out, piece, count);
    }
    free(piece);
    ct_byte_stream_close(stream);
    return status;
}

static ct_status *read_document(void *context, int worker, size_t file)
{
    (void)worker;
    const texts *all = context;
    const ct_dataset_opts *opts = all->source->opts;
    const char *path = all->source->files.paths[file];
    document_ids *document = &all->documents[file];
    ct_str text;
    ct_str_init(&text);
    ct_status *status = read_whole(path, &text);
    if (!status && text.length)
        status = ct_status_note(ct_tokenizer_encode(opts->tokenizer, text.data, text.length,
                                                    &(ct_tokenizer_encode_opts){.add_bos = true, .add_eos = true},
                                                    &document->ids, &document->count),
                                "reading %s", path);
    if (!status) status = ct__ids_check(opts, document->ids, document->count, path);
    ct_str_deinit(&text);
    return status;
}

/* The documents behind one another. */
static void join(const texts *all, ct__part *part)
{
    size_t num_files = all->source->files.count;
    for (size_t i = 0; i < num_files; i++) part->num_tokens += (int64_t)all->documents[i].count;
    part->stream = ct_alloc((size_t)part->num_tokens * sizeof(*part->stream));
    part->stream_begins = ct_alloc_zeroed((size_t)part->num_tokens, sizeof(*part->stream_begins));
    size_t at = 0;
    for (size_t i = 0; i < num_files; i++) {
        document_ids *document = &all->documents[i];
        if (!document->count) continue;
        memcpy(part->stream + at, document->ids, document->count * sizeof(*part->stream));
        part->stream_begins[at] = true;
        at += document->count;
        free(document->ids); /* one after the other, so that no text is held twice as a whole */
        document->ids = NULL;
    }
}

ct_status *ct__text_open(const ct__source *source, ct__part *part)
{
    const ct_dataset_opts *opts = source->opts;
    CT_ASSERT(opts->tokenizer);
    size_t num_files = source->files.count;
    texts all = {source, ct_alloc_zeroed(num_files, sizeof(*all.documents))};
    ct_status *status = ct_workers_run(ct_workers_count(MAX_THREADS), num_files, read_document, &all);
    if (!status) join(&all, part);
    for (size_t i = 0; i < num_files; i++) free(all.documents[i].ids);
    free(all.documents);
    CT_TRY(status);
    if (part->num_tokens < opts->seq_len + 1)
        return ct_error(
            CT_CODE_INVALID_ARGUMENT,
            "the text of %s must have at least training.seq_len + 1 = %lld tokens, but has %lld in %zu file%s",
            source->path, (long long)opts->seq_len + 1, (long long)part->num_tokens, num_files,
            num_files == 1 ? "" : "s");
    part->path = source->path;
    part->ids = part->stream;
    part->begins = part->stream_begins;
    part->stride = opts->seq_len;
    part->num_samples = (part->num_tokens - 1) / opts->seq_len;
    part->wraps = !opts->shuffle && !opts->once;
    return NULL;
}
