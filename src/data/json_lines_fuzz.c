/* Fuzz target: any bytes as a file of JSON lines, compressed or not, give records and documents, or errors; a record
 * can be gone back to. */
#include <stdlib.h>
#include <string.h>

#include "data/document.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void make(const ct_dataset_opts *opts, const ct__record *record)
{
    static const char *const ways[][4] = {{"text"}, {0, "prompt", "completion"}, {0, 0, 0, "messages"}};
    for (size_t i = 0; i < CT_COUNT(ways); i++) {
        ct__columns columns;
        memcpy(columns.names, ways[i], sizeof(columns.names));
        ct__document document;
        ct_status *status = ct__document_make(opts, &columns, record, "fuzz", &document);
        if (status && ct_status_code(status) != CT_CODE_INVALID_ARGUMENT) abort();
        if (status && document.tokens) abort();
        ct_status_free(status);
        ct__document_free(&document);
    }
}

static ct_status *render(void *context, ct_json_value messages, ct_str *out)
{
    (void)context;
    ct_json_iter iter = ct_json_iterate(messages);
    while (ct_json_next(&iter)) {
        const char *content = "";
        ct_status_free(ct_json_get_string(iter.value, "content", &content));
        ct_str_printf(out, "<%s>", content);
    }
    return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const ct_chat_renderer chat = {render, NULL};
    static const ct__columns columns = {{0}};
    static ct_tokenizer *tokenizer;
    if (!tokenizer) tokenizer = ct_tokenizer_bytes_new();
    const ct_dataset_opts opts = {.vocab_size = 258, .tokenizer = tokenizer, .chat = &chat};
    ct__record_reader *reader, *again;
    ct_status *status = ct__record_reader_from_memory(CT_DATA_JSON, &columns, "fuzz", bytes, size, &reader);
    if (!status) status = ct__record_reader_from_memory(CT_DATA_JSON, &columns, "fuzz", bytes, size, &again);
    if (status) abort();
    ct_arena arena;
    ct_arena_init(&arena);
    for (int count = 0; count < 1000; count++) {
        ct__record record, same;
        bool ended;
        status = ct__record_reader_next(reader, &arena, &record, &ended);
        if (status || ended) break;
        status = ct__record_reader_skip_to(again, record.offset);
        if (!status) status = ct__record_reader_next(again, &arena, &same, &ended);
        if (status || ended || same.offset != record.offset || same.end != record.end) abort();
        make(&opts, &record);
        ct_arena_reset(&arena);
    }
    ct_status_free(status);
    ct_arena_deinit(&arena);
    ct__record_reader_close(reader);
    ct__record_reader_close(again);
    return 0;
}
