/* Encoding prompts, ends of rows, streaming. */
#include "generate/text.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "formats/json.h"
#include "generate/stops.h"
#include "models/config.h"
#include "tokenizer/chat_template.h"
#include "tokenizer/tokenizer.h"

typedef struct row {
    ct_token_stream stream;
    ct_str pending; /* text that may yet become part of a stop text */
    int64_t num_tokens;
} row;

typedef struct writer {
    const ct_generate_text_opts *opts;
    ct_tokenizer *tokenizer;
    ct_chat_template *chat_template;
    ct_prompt *prompts;
    row *rows;
    ct_stop_ids stop_ids;
    size_t num_unknown; /* ids that the tokenizer has no token for: rows that pad the embedding */
} writer;

/* ---- prompts ---- */

static const char *tokenizer_path(const ct_generate_text_opts *opts)
{
    return opts->tokenizer ? opts->tokenizer : opts->model_folder;
}

static ct_status *encode(const writer *w, size_t index)
{
    const ct_generate_text_opts *opts = w->opts;
    const char *prompt = opts->prompts[index];
    ct_str text;
    ct_str_init(&text);
    ct_status *status = NULL;
    if (w->chat_template) {
        const ct_chat_message messages[2] = {{"system", opts->system}, {"user", prompt}};
        size_t skipped = opts->system ? 0 : 1;
        ct_chat_opts chat = {.add_generation_prompt = true, .tokenizer = w->tokenizer};
        status = ct_chat_template_render_messages(w->chat_template, messages + skipped, 2 - skipped, &chat, &text);
    } else {
        ct_str_append(&text, prompt);
    }
    /* a template writes the special tokens itself */
    ct_tokenizer_encode_opts encode_opts = {.add_special_tokens = !w->chat_template};
    int32_t *ids = NULL;
    ct_prompt *out = &w->prompts[index];
    if (!status) status = ct_tokenizer_encode(w->tokenizer, text.data, text.length, &encode_opts, &ids, &out->num_ids);
    out->ids = ids;
    ct_str_deinit(&text);
    return ct_status_note(status, "encoding prompt %zu", index + 1);
}

/* ---- text as it comes ---- */

static ct_status *emit(writer *w, size_t index, size_t length, bool is_last)
{
    row *r = &w->rows[index];
    if (length || is_last) CT_TRY(w->opts->on_text(w->opts->context, index, r->pending.data, length, is_last));
    memmove(r->pending.data, r->pending.data + length, r->pending.length - length + 1);
    r->pending.length -= length;
    return NULL;
}

static ct_status *on_token(void *context, size_t index, int32_t id, bool *out_stop)
{
    writer *w = context;
    row *r = &w->rows[index];
    const ct_generate_text_opts *opts = w->opts;
    if (opts->on_id) CT_TRY(opts->on_id(opts->context, index, id));
    bool is_end = ct_stop_ids_has(&w->stop_ids, id), is_known = id < ct_tokenizer_vocab_size(w->tokenizer);
    if (!is_end && is_known) CT_TRY(ct_token_stream_push(&r->stream, id, &r->pending));
    w->num_unknown += !is_known && !opts->on_id;
    is_end = is_end || ++r->num_tokens == opts->max_tokens;
    if (is_end) ct_token_stream_finish(&r->stream, &r->pending);
    size_t length;
    *out_stop = ct_stop_find(&r->pending, opts->stops, opts->num_stops, &length);
    if (*out_stop) return emit(w, index, length, true);
    return emit(w, index, is_end ? r->pending.length : length, is_end);
}

/* ---- all of it ---- */

static ct_status *prepare(writer *w)
{
    const ct_generate_text_opts *opts = w->opts;
    const ct_model_family *family;
    ct_model_config config; /* a folder that is no model's is told as such, not by the tokenizer that it lacks */
    CT_TRY(ct_model_config_read(opts->model_folder, &family, &config));
    CT_TRY(ct_tokenizer_open(tokenizer_path(opts), &w->tokenizer));
    CT_TRY(ct_stop_ids_read(opts->model_folder, w->tokenizer, &w->stop_ids));
    if (opts->chat) CT_TRY(ct_chat_template_open(tokenizer_path(opts), &w->chat_template));
    for (size_t i = 0; i < opts->num_prompts; i++) {
        ct_token_stream_init(&w->rows[i].stream, w->tokenizer);
        w->rows[i].stream.begun = !opts->chat;
        ct_str_init(&w->rows[i].pending);
    }
    for (size_t i = 0; i < opts->num_prompts; i++) CT_TRY(encode(w, i));
    return NULL;
}

static ct_status *generate(writer *w)
{
    const ct_generate_text_opts *opts = w->opts;
    ct_session *session = NULL;
    ct_generator *generator = NULL;
    ct_generation want = {.prompts = w->prompts,
                          .num_prompts = opts->num_prompts,
                          .max_tokens = opts->max_tokens,
                          .sampling = opts->sampling,
                          .stop_ids = w->stop_ids.ids,
                          .num_stop_ids = w->stop_ids.num_ids,
                          .on_token = on_token,
                          .context = w};
    ct_status *status = ct_session_open(&opts->session, &session);
    if (!status) status = ct_generator_open(opts->model_folder, opts->dtype, session, &generator);
    if (!status) status = ct_generate(generator, &want);
    ct_generator_free(generator);
    ct_session_close(session);
    if (w->num_unknown)
        ct_warning("%zu of the ids are not below %d, the size of tokenizer %s, and left out: the model has learned too "
                   "little, or with another tokenizer",
                   w->num_unknown, ct_tokenizer_vocab_size(w->tokenizer), ct_tokenizer_name(w->tokenizer));
    return status;
}

ct_status *ct_generate_text(const ct_generate_text_opts *opts)
{
    CT_TRY(ct_sampling_check(&opts->sampling));
    for (size_t i = 0; i < opts->num_stops; i++)
        if (!opts->stops[i][0])
            return ct_error(CT_CODE_INVALID_ARGUMENT,
                            "a stop text must have at least one character, number %zu is empty", i + 1);
    writer w = {.opts = opts};
    w.prompts = ct_alloc_zeroed(opts->num_prompts + 1, sizeof(*w.prompts));
    w.rows = ct_alloc_zeroed(opts->num_prompts + 1, sizeof(*w.rows));
    ct_status *status = prepare(&w);
    if (!status) status = generate(&w);
    for (size_t i = 0; i < opts->num_prompts; i++) {
        free((int32_t *)(uintptr_t)w.prompts[i].ids);
        if (!w.rows[i].stream.tokenizer) continue;
        ct_token_stream_deinit(&w.rows[i].stream);
        ct_str_deinit(&w.rows[i].pending);
    }
    free(w.prompts);
    free(w.rows);
    free(w.stop_ids.ids);
    ct_chat_template_free(w.chat_template);
    ct_tokenizer_free(w.tokenizer);
    return status;
}
