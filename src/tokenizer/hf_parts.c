/* The decoder and the post-processor of a tokenizer.json. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "tokenizer/json_help.h"
#include "tokenizer/readers.h"

static void set_space(ct__decoder *decoder, const char *spelling)
{
    free(decoder->space);
    decoder->space = ct_strdup(spelling);
}

static ct_status *read_replace(ct_json_value value, ct__decoder *decoder)
{
    const char *needle = NULL, *content;
    CT_TRY(ct_json_get_string(ct_json_get(value, "pattern"), "String", &needle));
    CT_TRY(ct_json_need_string(value, "content", &content));
    if (!needle || !*needle || strcmp(content, " ") != 0 || decoder->space)
        return ct__json_unsupported(value, "a decoder that replaces anything but one string by a space");
    set_space(decoder, needle);
    return NULL;
}

static ct_status *read_strip(ct_json_value value, ct__decoder *decoder)
{
    const char *content;
    int64_t start, stop;
    CT_TRY(ct_json_need_string(value, "content", &content));
    CT_TRY(ct_json_need_int(value, "start", &start));
    CT_TRY(ct_json_need_int(value, "stop", &stop));
    if (strcmp(content, " ") != 0 || start > 1 || start < 0 || stop)
        return ct__json_unsupported(value, "a decoder that strips anything but one space at the begin");
    if (start) decoder->strip = CT__STRIP_ONE;
    return NULL;
}

static ct_status *read_metaspace(ct_json_value value, ct__decoder *decoder)
{
    const char *replacement = "\xe2\x96\x81", *scheme = "always";
    bool add_prefix_space = true;
    CT_TRY(ct_json_get_string(value, "replacement", &replacement));
    CT_TRY(ct_json_get_bool(value, "add_prefix_space", &add_prefix_space));
    if (!add_prefix_space) scheme = "never";
    CT_TRY(ct_json_get_string(value, "prepend_scheme", &scheme));
    set_space(decoder, replacement);
    if (strcmp(scheme, "never") != 0) decoder->strip = CT__STRIP_ALL;
    return NULL;
}

ct_status *ct__read_decoder(ct_json_value value, ct__pipeline *pipeline)
{
    ct__decoder *decoder = &pipeline->decoder;
    if (ct_json_is_null(value)) {
        decoder->joins_with_spaces = true;
        return NULL;
    }
    const char *type;
    CT_TRY(ct_json_need_string(value, "type", &type));
    if (!strcmp(type, "Sequence")) {
        ct_json_value list;
        CT_TRY(ct_json_need_array(value, "decoders", &list));
        ct_json_iter iter = ct_json_iterate(list);
        while (ct_json_next(&iter)) CT_TRY(ct__read_decoder(iter.value, pipeline));
        return NULL;
    }
    if (!strcmp(type, "Fuse")) return NULL; /* tokens are never joined by anything */
    if (!strcmp(type, "ByteLevel")) {
        decoder->byte_level = true;
        return NULL;
    }
    if (!strcmp(type, "ByteFallback")) {
        decoder->byte_fallback = true;
        return NULL;
    }
    if (!strcmp(type, "Replace")) return read_replace(value, decoder);
    if (!strcmp(type, "Strip")) return read_strip(value, decoder);
    if (!strcmp(type, "Metaspace")) return read_metaspace(value, decoder);
    return ct__json_unsupported(value, "a decoder of this type");
}

/* ---- Added tokens ---- */

ct_status *ct__read_added_token(ct_json_value value, int64_t id, ct__pipeline *pipeline)
{
    const char *content;
    size_t length;
    ct__added_opts opts = {.normalized = true};
    CT_TRY(ct_json_as_text(ct_json_get(value, "content"), &content, &length));
    CT_TRY(ct_json_get_bool(value, "special", &opts.special));
    CT_TRY(ct_json_get_bool(value, "normalized", &opts.normalized));
    CT_TRY(ct_json_get_bool(value, "single_word", &opts.single_word));
    CT_TRY(ct_json_get_bool(value, "lstrip", &opts.lstrip));
    CT_TRY(ct_json_get_bool(value, "rstrip", &opts.rstrip));
    return ct__pipeline_add(pipeline, id, content, length, opts);
}

/* "added_tokens_decoder": {"151643": {"content": ...}} */
ct_status *ct__read_added_decoder(const char *path, ct__pipeline *pipeline)
{
    char *folder = ct_path_parent(path), *config = ct_path_join(folder, "tokenizer_config.json");
    ct_json *json = NULL;
    ct_status *status = ct_path_exists(config) ? ct_json_read(config, &json) : NULL;
    ct_json_iter iter = {0};
    if (json) iter = ct_json_iterate(ct_json_get(ct_json_root(json), "added_tokens_decoder"));
    while (json && !status && ct_json_next(&iter)) {
        char *end;
        long long id = strtoll(iter.key, &end, 10);
        if (*end || end == iter.key)
            status = ct_error(CT_CODE_INVALID_ARGUMENT, "%s: added_tokens_decoder must be by ids, but has \"%s\"",
                              config, iter.key);
        else
            status = ct__read_added_token(iter.value, id, pipeline);
    }
    ct_json_free(json);
    free(folder);
    free(config);
    return status;
}

/* ---- The post-processor: what stands before and behind a text ---- */

static void add_id(ct__pipeline *pipeline, bool behind, int32_t id)
{
    if (behind)
        ct__pipeline_add_suffix(pipeline, id);
    else
        ct__pipeline_add_prefix(pipeline, id);
}

static ct_status *check_id(ct_json_value value, int64_t id)
{
    if (id >= 0 && id < CT__MAX_VOCAB) return NULL;
    char *where = ct_json_where(value);
    ct_status *status =
        ct_error(CT_CODE_OUT_OF_RANGE, "%s must be in [0, %d), but is %lld", where, CT__MAX_VOCAB, (long long)id);
    free(where);
    return status;
}

static ct_status *add_template_token(ct_json_value tokens, ct_json_value piece, bool behind, ct__pipeline *pipeline)
{
    const char *name;
    ct_json_value entry, ids;
    CT_TRY(ct_json_need_string(piece, "id", &name));
    CT_TRY(ct_json_need_object(tokens, name, &entry));
    CT_TRY(ct_json_need_array(entry, "ids", &ids));
    ct_json_iter iter = ct_json_iterate(ids);
    while (ct_json_next(&iter)) {
        int64_t id;
        CT_TRY(ct_json_as_int(iter.value, &id));
        CT_TRY(check_id(iter.value, id));
        add_id(pipeline, behind, (int32_t)id);
    }
    return NULL;
}

static ct_status *read_template(ct_json_value value, ct__pipeline *pipeline)
{
    ct_json_value pieces, tokens;
    CT_TRY(ct_json_need_array(value, "single", &pieces));
    CT_TRY(ct_json_need_object(value, "special_tokens", &tokens));
    bool behind = false;
    ct_json_iter iter = ct_json_iterate(pieces);
    while (ct_json_next(&iter)) {
        ct_json_value special = ct_json_get(iter.value, "SpecialToken");
        if (!ct_json_is_absent(special)) {
            CT_TRY(add_template_token(tokens, special, behind, pipeline));
            continue;
        }
        if (behind || ct_json_is_absent(ct_json_get(iter.value, "Sequence")))
            return ct__json_unsupported(iter.value, "a template piece other than one Sequence and SpecialTokens");
        behind = true;
    }
    return NULL;
}

/* RobertaProcessing and BertProcessing: "cls": ["<s>", 0]. */
static ct_status *read_pair(ct_json_value value, const char *key, bool behind, ct__pipeline *pipeline)
{
    ct_json_value pair;
    int64_t id;
    CT_TRY(ct_json_need_array(value, key, &pair));
    CT_TRY(ct_json_as_int(ct_json_at(pair, 1), &id));
    CT_TRY(check_id(ct_json_at(pair, 1), id));
    add_id(pipeline, behind, (int32_t)id);
    return NULL;
}

ct_status *ct__read_post_processor(ct_json_value value, ct__pipeline *pipeline)
{
    if (ct_json_is_null(value)) return NULL;
    const char *type;
    CT_TRY(ct_json_need_string(value, "type", &type));
    if (!strcmp(type, "Sequence")) {
        ct_json_value list;
        CT_TRY(ct_json_need_array(value, "processors", &list));
        ct_json_iter iter = ct_json_iterate(list);
        while (ct_json_next(&iter)) CT_TRY(ct__read_post_processor(iter.value, pipeline));
        return NULL;
    }
    if (!strcmp(type, "ByteLevel")) return NULL; /* only about offsets */
    if (pipeline->num_prefix || pipeline->num_suffix)
        return ct__json_unsupported(value, "a second post-processor that adds tokens");
    if (!strcmp(type, "TemplateProcessing")) return read_template(value, pipeline);
    if (!strcmp(type, "RobertaProcessing") || !strcmp(type, "BertProcessing")) {
        CT_TRY(read_pair(value, "cls", false, pipeline));
        return read_pair(value, "sep", true, pipeline);
    }
    return ct__json_unsupported(value, "a post-processor of this type");
}
