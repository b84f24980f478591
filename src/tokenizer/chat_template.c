/* A chat template: its tree, and what a rendering gives to it. */
#include "tokenizer/chat_template.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/utf8.h"
#include "tokenizer/jinja.h"

struct ct_chat_template {
    ct_arena arena;
    const char *name;
    ct__jnodes nodes;
};

enum { MAX_NESTING = 400 };

ct_status *ct__jinja_error(const char *name, int line, ct_code code, const char *file, int file_line,
                           const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = NULL;
    int size = vasprintf(&text, format, arguments);
    va_end(arguments);
    CT_ASSERT(size >= 0);
    ct_status *status = ct__status_new(code, file, file_line, "%s:%d: %s", name, line, text);
    free(text);
    return status;
}

ct_status *ct_chat_template_parse(const char *source, size_t length, const char *name, ct_chat_template **out_template)
{
    ct_chat_template *chat_template = ct_alloc_zeroed(1, sizeof(*chat_template));
    ct_arena_init(&chat_template->arena);
    chat_template->name = ct_arena_strdup(&chat_template->arena, name);
    ct__jtokens tokens;
    *out_template = NULL;
    ct_str valid; /* characters are counted and sliced, so they must be whole */
    ct_str_init(&valid);
    ct_utf8_append(&valid, source, length);
    ct_status *status = ct__jinja_lex(&chat_template->arena, valid.data, valid.length, chat_template->name, &tokens);
    ct_str_deinit(&valid);
    if (!status) status = ct__jinja_parse(&chat_template->arena, &tokens, chat_template->name, &chat_template->nodes);
    if (status) {
        ct_chat_template_free(chat_template);
        return status;
    }
    *out_template = chat_template;
    return NULL;
}

void ct_chat_template_free(ct_chat_template *chat_template)
{
    if (!chat_template) return;
    ct_arena_deinit(&chat_template->arena);
    free(chat_template);
}

/* "chat_template": "...", or [{"name": "default", "template": "..."}, ...] */
static ct_status *parse_config(const char *path, ct_chat_template **out_template)
{
    ct_json *json;
    CT_TRY(ct_json_read(path, &json));
    ct_json_value value = ct_json_get(ct_json_root(json), "chat_template"), chosen = value;
    ct_json_iter iter = ct_json_iterate(value);
    ct_status *status = NULL;
    while (ct_json_type_of(value) == CT_JSON_ARRAY && ct_json_next(&iter) && !status) {
        const char *name = "";
        status = ct_json_get_string(iter.value, "name", &name);
        if (!status && !strcmp(name, "default")) chosen = ct_json_get(iter.value, "template");
    }
    const char *text = NULL;
    size_t length = 0;
    if (!status && !ct_json_is_null(chosen)) status = ct_json_as_text(chosen, &text, &length);
    if (!status && text) status = ct_chat_template_parse(text, length, "chat_template", out_template);
    ct_json_free(json);
    return ct_status_note(status, "reading %s", path);
}

ct_status *ct_chat_template_open(const char *folder, ct_chat_template **out_template)
{
    *out_template = NULL;
    char *file = ct_path_join(folder, "chat_template.jinja"), *config = ct_path_join(folder, "tokenizer_config.json");
    ct_status *status = NULL;
    if (ct_path_exists(file)) {
        char *text;
        size_t length;
        status = ct_file_read(file, &text, &length);
        if (!status) {
            status = ct_chat_template_parse(text, length, file, out_template);
            free(text);
        }
    } else if (ct_path_exists(config)) {
        status = parse_config(config, out_template);
    }
    if (!status && !*out_template)
        status = ct_error(CT_CODE_NOT_FOUND,
                          "%s has no chat template: neither chat_template.jinja nor \"chat_template\" in its "
                          "tokenizer_config.json",
                          folder);
    free(file);
    free(config);
    return status;
}

/* ---- Rendering ---- */

static ct_status *value_of_json(ct__jrender *render, ct_json_value json, int depth, ct__jvalue *out)
{
    *out = CT__JNONE;
    if (depth > MAX_NESTING)
        return ct_error(CT_CODE_RESOURCE_EXHAUSTED, "values given to a chat template may be nested %d deep",
                        MAX_NESTING);
    switch (ct_json_type_of(json)) {
    case CT_JSON_BOOL: {
        bool boolean;
        CT_TRY(ct_json_as_bool(json, &boolean));
        *out = ct__jbool(boolean);
        return NULL;
    }
    case CT_JSON_NUMBER: {
        *out = ct__jint(0);
        if (ct_json_is_integer(json)) return ct_json_as_int(json, &out->integer);
        out->kind = CT__J_FLOAT;
        return ct_json_as_double(json, &out->real);
    }
    case CT_JSON_STRING: {
        const char *text;
        size_t length;
        CT_TRY(ct_json_as_text(json, &text, &length));
        *out = ct__jstring(text, length); /* lives as long as the caller's document */
        return NULL;
    }
    case CT_JSON_ARRAY:
    case CT_JSON_OBJECT: {
        bool is_list = ct_json_type_of(json) == CT_JSON_ARRAY;
        *out = is_list ? ct__jlist_new(render->arena) : ct__jdict_new(render->arena);
        ct_json_iter iter = ct_json_iterate(json);
        while (ct_json_next(&iter)) {
            ct__jvalue item;
            CT_TRY(value_of_json(render, iter.value, depth + 1, &item));
            if (is_list)
                ct__jlist_add(render->arena, out->list, item);
            else
                ct__jdict_set(render->arena, out->dict, ct__jstring(iter.key, iter.key_length), item);
        }
        return NULL;
    }
    default: return NULL;
    }
}

static void set_text(ct__jrender *render, ct__jframe *frame, const char *name, ct__jvalue value)
{
    ct__jdict_set(render->arena, &frame->variables, ct__jtext(name), value);
}

static void set_token(ct__jrender *render, ct__jframe *frame, const char *name, const ct_tokenizer *tokenizer,
                      int32_t id)
{
    size_t length;
    const char *text = id >= 0 ? ct_tokenizer_token(tokenizer, id, &length) : NULL;
    if (text) set_text(render, frame, name, ct__jstring(text, length));
}

static ct_status *render_value(const ct_chat_template *chat_template, ct__jrender *render, ct__jvalue messages,
                               const ct_chat_opts *opts, ct_str *str)
{
    ct__jframe *frame = CT_ARENA_NEW(render->arena, ct__jframe);
    ct__jvalue tools = CT__JNONE, variables = CT__JNONE;
    set_text(render, frame, "messages", messages);
    CT_TRY(value_of_json(render, opts->tools, 0, &tools));
    set_text(render, frame, "tools", tools);
    set_text(render, frame, "documents", CT__JNONE);
    set_text(render, frame, "add_generation_prompt", ct__jbool(opts->add_generation_prompt));
    if (opts->tokenizer) {
        set_token(render, frame, "bos_token", opts->tokenizer, ct_tokenizer_bos(opts->tokenizer));
        set_token(render, frame, "eos_token", opts->tokenizer, ct_tokenizer_eos(opts->tokenizer));
    }
    CT_TRY(value_of_json(render, opts->variables, 0, &variables));
    for (size_t i = 0; variables.kind == CT__J_DICT && i < variables.dict->count; i++)
        ct__jdict_set(render->arena, &frame->variables, variables.dict->pairs[i].key, variables.dict->pairs[i].value);
    render->name = chat_template->name;
    render->now_seconds = opts->now_seconds;
    render->out = str;
    render->out_begin = str->length;
    return ct__jinja_run(render, &chat_template->nodes, frame);
}

/* Renders into str, which stays as it was on an error, and gives out what the assistant wrote. */
static ct_status *finish(const ct_chat_template *chat_template, ct__jrender *render, ct__jvalue messages,
                         const ct_chat_opts *opts, ct_str *str)
{
    static const ct_chat_opts defaults;
    if (!opts) opts = &defaults;
    if (opts->out_generated) {
        *opts->out_generated = NULL;
        *opts->out_num_generated = 0;
    }
    size_t before = str->length;
    ct_status *status = render_value(chat_template, render, messages, opts, str);
    if (status && str->data) {
        str->length = before;
        str->data[before] = 0;
    }
    if (!status && opts->out_generated) {
        *opts->out_generated = render->generated;
        *opts->out_num_generated = render->num_generated;
    } else {
        free(render->generated);
    }
    return status;
}

ct_status *ct_chat_template_render(const ct_chat_template *chat_template, ct_json_value messages,
                                   const ct_chat_opts *opts, ct_str *str)
{
    ct_json_value list;
    CT_TRY(ct_json_as_array(messages, &list));
    ct_arena arena;
    ct_arena_init(&arena);
    ct__jrender render = {.arena = &arena};
    ct__jvalue value;
    ct_status *status = value_of_json(&render, list, 0, &value);
    if (!status) status = finish(chat_template, &render, value, opts, str);
    ct_arena_deinit(&arena);
    return status;
}

ct_status *ct_chat_template_render_messages(const ct_chat_template *chat_template, const ct_chat_message *messages,
                                            size_t num_messages, const ct_chat_opts *opts, ct_str *str)
{
    ct_arena arena;
    ct_arena_init(&arena);
    ct__jrender render = {.arena = &arena};
    ct__jvalue list = ct__jlist_new(&arena);
    for (size_t i = 0; i < num_messages; i++) {
        ct__jvalue message = ct__jdict_new(&arena);
        ct__jdict_set(&arena, message.dict, ct__jtext("role"), ct__jtext(messages[i].role));
        ct__jdict_set(&arena, message.dict, ct__jtext("content"), ct__jtext(messages[i].content));
        ct__jlist_add(&arena, list.list, message);
    }
    ct_status *status = finish(chat_template, &render, list, opts, str);
    ct_arena_deinit(&arena);
    return status;
}
