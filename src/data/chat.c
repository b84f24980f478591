/* Conversations as tokens, the loss being on what the assistant says and on the token that ends its turn.
 *
 * Where a message's content lies in the text that the template made is found without knowing the template: the same
 * conversation is rendered with the content replaced by a character that it does not hold, and the two texts are equal
 * before and behind it. So templates may trim, reorder or drop what they like.
 *
 *   <|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello<|im_end|>\n
 *                                                         -----========== in the loss
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "data/document.h"

static bool is_assistant(ct_json_value message)
{
    const char *role = NULL;
    ct_status_free(ct_json_get_string(message, "role", &role));
    return role && !strcmp(role, "assistant");
}

/* Messages with role and content: as they are, or from those with from and value. out_json owns them. */
static ct_status *normalize(ct_json_value messages, ct_json **out_json)
{
    ct_json_writer *writer = ct_json_writer_new();
    ct_json_begin_array(writer, NULL);
    ct_status *status = NULL;
    ct_json_iter iter = ct_json_iterate(messages);
    while (!status && ct_json_next(&iter)) {
        if (ct_json_type_of(iter.value) != CT_JSON_OBJECT || !ct_json_is_absent(ct_json_get(iter.value, "role")) ||
            ct_json_is_absent(ct_json_get(iter.value, "from"))) {
            ct_json_put_value(writer, NULL, iter.value);
            continue;
        }
        const char *from;
        status = ct_json_need_string(iter.value, "from", &from);
        if (status) break;
        ct_json_begin_object(writer, NULL);
        ct_json_put_string(writer, "role", !strcmp(from, "human") ? "user" : !strcmp(from, "gpt") ? "assistant" : from);
        ct_json_put_value(writer, "content", ct_json_get(iter.value, "value"));
        ct_json_end(writer);
    }
    ct_json_end(writer);
    char *text = ct_json_writer_text(writer, false);
    ct_json_writer_free(writer);
    if (!status) status = ct_json_parse(text, strlen(text), "messages", out_json);
    free(text);
    return status;
}

/* The conversation with one content replaced, rendered. */
static ct_status *render_replaced(const ct_chat_renderer *chat, ct_json_value messages, size_t index,
                                  const char *content, ct_str *out)
{
    ct_json_writer *writer = ct_json_writer_new();
    ct_json_begin_array(writer, NULL);
    ct_json_iter iter = ct_json_iterate(messages);
    while (ct_json_next(&iter)) {
        if (iter.index != index) {
            ct_json_put_value(writer, NULL, iter.value);
            continue;
        }
        ct_json_begin_object(writer, NULL);
        ct_json_iter member = ct_json_iterate(iter.value);
        while (ct_json_next(&member))
            if (!strcmp(member.key, "content"))
                ct_json_put_string(writer, "content", content);
            else
                ct_json_put_value(writer, member.key, member.value);
        ct_json_end(writer);
    }
    ct_json_end(writer);
    char *text = ct_json_writer_text(writer, false);
    ct_json_writer_free(writer);
    ct_json *json;
    ct_status *status = ct_json_parse(text, strlen(text), "messages", &json);
    free(text);
    CT_TRY(status);
    status = chat->render(chat->context, ct_json_root(json), out);
    ct_json_free(json);
    return status;
}

static bool is_inside_character(const ct_str *text, size_t at)
{
    return at < text->length && ((unsigned char)text->data[at] & 0xc0) == 0x80;
}

/* Where one content lies in the whole text. */
static ct_status *find_span(const ct_chat_renderer *chat, ct_json_value messages, size_t index, const char *content,
                            const ct_str *whole, ct__span *out)
{
    char mark[2] = {1, 0};
    while (strchr(content, mark[0])) mark[0]++;
    if (mark[0] >= 9) return ct_error(CT_CODE_INVALID_ARGUMENT, "message %zu is full of control characters", index);
    ct_str other;
    ct_str_init(&other);
    ct_status *status = render_replaced(chat, messages, index, mark, &other);
    if (!status) {
        size_t shorter = CT_MIN(whole->length, other.length), begin = 0, same = 0;
        while (begin < shorter && whole->data[begin] == other.data[begin]) begin++;
        while (begin && is_inside_character(whole, begin)) begin--;
        while (same < shorter - begin && whole->data[whole->length - 1 - same] == other.data[other.length - 1 - same])
            same++;
        while (same && is_inside_character(whole, whole->length - same)) same--;
        *out = (ct__span){begin, whole->length - same};
    }
    ct_str_deinit(&other);
    return status;
}

/* The spans of all contents that the assistant gives, heap; none when there is nothing to learn from. */
static ct_status *find_spans(const ct_chat_renderer *chat, ct_json_value messages, const ct_str *whole,
                             ct__span **out_spans, size_t *out_num_spans)
{
    *out_spans = ct_alloc((ct_json_size(messages) + 1) * sizeof(**out_spans));
    *out_num_spans = 0;
    size_t done = 0;
    ct_json_iter iter = ct_json_iterate(messages);
    while (ct_json_next(&iter)) {
        const char *content;
        ct_json_value value = ct_json_get(iter.value, "content");
        if (!is_assistant(iter.value) || ct_json_is_null(value)) continue;
        CT_TRY(ct_json_as_string(value, &content));
        ct__span span = {0};
        CT_TRY(find_span(chat, messages, iter.index, content, whole, &span));
        if (span.end <= span.begin) continue; /* the template leaves it out */
        if (span.begin < done)
            return ct_error(CT_CODE_INVALID_ARGUMENT, "the chat template gives message %zu before an earlier one",
                            iter.index);
        (*out_spans)[(*out_num_spans)++] = span;
        done = span.end;
    }
    if (*out_num_spans) return NULL;
    return ct_error(CT_CODE_INVALID_ARGUMENT, "no message of the role assistant has a content to learn from");
}

static ct_status *encode(const ct_dataset_opts *opts, ct_json_value messages, ct__document *out)
{
    ct_str whole;
    ct_str_init(&whole);
    ct__span *spans = NULL;
    size_t num_spans;
    ct_status *status = opts->chat->render(opts->chat->context, messages, &whole);
    if (!status) status = find_spans(opts->chat, messages, &whole, &spans, &num_spans);
    if (!status) status = ct__document_encode(opts, whole.data, whole.length, spans, num_spans, false, out);
    free(spans);
    ct_str_deinit(&whole);
    return status;
}

ct_status *ct__chat_encode(const ct_dataset_opts *opts, ct_json_value messages, ct__document *out_document)
{
    CT_ASSERT(opts->chat);
    CT_TRY(ct_json_as_array(messages, &messages));
    ct_json *json;
    CT_TRY(normalize(messages, &json));
    ct_status *status = encode(opts, ct_json_root(json), out_document);
    ct_json_free(json);
    return status;
}
