/* Records as documents: a text, a prompt with its completion, or a conversation.
 *
 *   text                 bos text eos            all in the loss
 *   prompt, completion   bos prompt | completion eos   what is behind the bar in the loss
 *
 * A text is encoded as a whole, as other trainers do; a token counts where it begins in what the loss is on.
 */
#include "data/document.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum { MAX_BEFORE_END = 2 /* tokens between a content and the special token that ends its turn */ };

void ct__document_free(ct__document *document)
{
    free(document->tokens);
    free(document->in_loss);
    *document = (ct__document){0};
}

ct_status *ct__columns_of(const ct_dataset_opts *opts, ct_data_kind kind, ct__columns *out_columns)
{
    *out_columns = (ct__columns){{[CT__COLUMN_TEXT] = opts->text_column,
                                  [CT__COLUMN_PROMPT] = opts->prompt_column,
                                  [CT__COLUMN_COMPLETION] = opts->completion_column,
                                  [CT__COLUMN_MESSAGES] = opts->messages_column}};
    if (!opts->prompt_column != !opts->completion_column)
        return ct_error(CT_CODE_INVALID_ARGUMENT,
                        "dataloader.prompt_column and dataloader.completion_column go together, but only %s is given",
                        opts->prompt_column ? "prompt_column" : "completion_column");
    int num_ways = !!opts->text_column + !!opts->prompt_column + !!opts->messages_column;
    if (num_ways > 1)
        return ct_error(CT_CODE_INVALID_ARGUMENT,
                        "of dataloader.text_column, prompt_column with completion_column, and "
                        "messages_column only one may be given, found %d",
                        num_ways);
    if (!num_ways) out_columns->names[CT__COLUMN_TEXT] = kind == CT_DATA_WEBDATASET ? "txt" : "text";
    return NULL;
}

bool ct__columns_are_masked(const ct__columns *columns)
{
    return !columns->names[CT__COLUMN_TEXT];
}

/* Marks the tokens of a span, and those behind it up to a special one that ends the turn. Tokens are those from *at on;
 * *at moves behind what is marked. */
static void mark_span(const ct_dataset_opts *opts, const ct__document *document, const ct_token_range *ranges,
                      const ct__span *span, int64_t *at)
{
    int64_t i = *at;
    while (i < document->num_tokens && ranges[i].begin < span->begin) i++;
    for (; i < document->num_tokens && ranges[i].begin < span->end; i++) document->in_loss[i] = true;
    for (int64_t behind = i; behind < document->num_tokens && behind <= i + MAX_BEFORE_END; behind++) {
        if (!ct_tokenizer_is_special(opts->tokenizer, document->tokens[behind])) continue;
        for (; i <= behind; i++) document->in_loss[i] = true;
        break;
    }
    *at = i;
}

ct_status *ct__document_encode(const ct_dataset_opts *opts, const char *text, size_t length, const ct__span *spans,
                               size_t num_spans, bool with_borders, ct__document *out_document)
{
    ct_token_range *ranges = NULL;
    ct_tokenizer_encode_opts encode = {
        .add_bos = with_borders, .add_eos = with_borders, .out_ranges = spans ? &ranges : NULL};
    size_t count;
    CT_TRY(ct_tokenizer_encode(opts->tokenizer, text, length, &encode, &out_document->tokens, &count));
    out_document->num_tokens = (int64_t)count;
    if (!spans) return NULL;
    out_document->in_loss = ct_alloc_zeroed(count, sizeof(*out_document->in_loss));
    int64_t at = 0;
    for (size_t i = 0; i < num_spans; i++) mark_span(opts, out_document, ranges, &spans[i], &at);
    free(ranges);
    return NULL;
}

/* "a.b": the member a.b, or b of a. */
static ct_json_value find(ct_json_value object, const char *name)
{
    ct_json_value found = ct_json_get(object, name);
    const char *dot = strchr(name, '.');
    if (!ct_json_is_absent(found) || !dot) return found;
    char *first = ct_asprintf("%.*s", (int)(dot - name), name);
    found = find(ct_json_get(object, first), dot + 1);
    free(first);
    return found;
}

static ct_status *no_column(const char *name)
{
    return ct_error(CT_CODE_INVALID_ARGUMENT, "the record has no \"%s\"", name);
}

typedef struct record_view {
    const ct__columns *columns;
    const ct__record *record;
    ct_json_value root; /* of its JSON; absent when there is none */
} record_view;

static ct_status *text_of(const record_view *view, ct__column column, ct__text *out)
{
    *out = view->record->columns[column];
    if (out->bytes) return NULL;
    const char *name = view->columns->names[column];
    ct_json_value value = find(view->root, name);
    if (ct_json_is_null(value)) return no_column(name);
    return ct_json_as_text(value, &out->bytes, &out->length);
}

static ct_status *encode_messages(const ct_dataset_opts *opts, const record_view *view, const char *where,
                                  ct__document *out)
{
    const char *name = view->columns->names[CT__COLUMN_MESSAGES];
    ct__text own = view->record->columns[CT__COLUMN_MESSAGES];
    ct_json_value value = find(view->root, name);
    if (!own.bytes && ct_json_type_of(value) == CT_JSON_STRING) CT_TRY(ct_json_as_text(value, &own.bytes, &own.length));
    if (!own.bytes && ct_json_is_null(value)) return no_column(name);
    if (!own.bytes) return ct__chat_encode(opts, value, out);
    ct_json *json;
    CT_TRY(ct_json_parse(own.bytes, own.length, where, &json));
    ct_status *status = ct__chat_encode(opts, ct_json_root(json), out);
    ct_json_free(json);
    return status;
}

static ct_status *encode_pair(const ct_dataset_opts *opts, const ct__text *prompt, const ct__text *completion,
                              ct__document *out)
{
    ct_str text;
    ct_str_init(&text);
    ct_str_append_n(&text, prompt->bytes, prompt->length);
    ct_str_append_n(&text, completion->bytes, completion->length);
    ct__span span = {prompt->length, text.length};
    ct_status *status = ct__document_encode(opts, text.data, text.length, &span, 1, true, out);
    ct_str_deinit(&text);
    return status;
}

static ct_status *encode(const ct_dataset_opts *opts, const record_view *view, const char *where, ct__document *out)
{
    ct__text text, completion;
    if (view->columns->names[CT__COLUMN_MESSAGES]) return encode_messages(opts, view, where, out);
    if (view->columns->names[CT__COLUMN_TEXT]) {
        CT_TRY(text_of(view, CT__COLUMN_TEXT, &text));
        return text.length ? ct__document_encode(opts, text.bytes, text.length, NULL, 0, true, out) : NULL;
    }
    CT_TRY(text_of(view, CT__COLUMN_PROMPT, &text));
    CT_TRY(text_of(view, CT__COLUMN_COMPLETION, &completion));
    return encode_pair(opts, &text, &completion, out);
}

ct_status *ct__ids_check(const ct_dataset_opts *opts, const int32_t *ids, size_t count, const char *where)
{
    for (size_t i = 0; i < count; i++)
        if (ids[i] < 0 || ids[i] >= opts->vocab_size)
            return ct_error(
                CT_CODE_OUT_OF_RANGE,
                "%s: token %zu is id %d, but the model's vocabulary has only %lld ids; tokenizer %s needs %d", where, i,
                ids[i], (long long)opts->vocab_size, ct_tokenizer_name(opts->tokenizer),
                ct_tokenizer_vocab_size(opts->tokenizer));
    return NULL;
}

ct_status *ct__document_make(const ct_dataset_opts *opts, const ct__columns *columns, const ct__record *record,
                             const char *where, ct__document *out_document)
{
    *out_document = (ct__document){.offset = record->offset};
    record_view view = {columns, record, {0}};
    ct_json *json = NULL;
    ct_status *status = NULL;
    if (record->json.bytes) {
        CT_TRY_OUT(ct_json_parse(record->json.bytes, record->json.length, where, &json));
        CT_TRY_OUT(ct_json_as_object(ct_json_root(json), &view.root));
    }
    CT_TRY_OUT(encode(opts, &view, where, out_document));
    status = ct__ids_check(opts, out_document->tokens, (size_t)out_document->num_tokens, where);
out:
    ct_json_free(json);
    if (status) ct__document_free(out_document);
    if (status && ct_status_code(status) != CT_CODE_OUT_OF_RANGE) { /* whoever said it, the record is at fault */
        ct_status *broken = ct_error(CT_CODE_INVALID_ARGUMENT, "%s", ct_status_message(status));
        ct_status_free(status);
        status = broken;
    }
    return status;
}
