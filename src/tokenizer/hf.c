/* Hugging Face's tokenizer.json, and GPT-2's vocab.json with merges.txt.
 *
 *   {"added_tokens": [...], "normalizer": {...}, "pre_tokenizer": {...}, "post_processor": {...}, "decoder": {...},
 *    "model": {"type": "BPE" | "Unigram", "vocab": ..., "merges": ["a b"] or [["a", "b"]], ...}}
 *
 * "truncation" and "padding" are not read: batches are the caller's business.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "tokenizer/json_help.h"
#include "tokenizer/readers.h"

static ct_status *read_vocab(ct_json_value vocab, ct__pipeline *pipeline)
{
    ct_json_iter iter = ct_json_iterate(vocab);
    while (ct_json_next(&iter)) {
        int64_t id;
        CT_TRY(ct_json_as_int(iter.value, &id));
        CT_TRY(ct__pipeline_put(pipeline, id, iter.key, iter.key_length));
    }
    return NULL;
}

/* The merge of two spellings; merge says where it stands, for errors. */
static ct_status *add_merge(ct__pipeline *pipeline, const char *left, size_t left_length, const char *right,
                            size_t right_length, uint32_t rank, ct_str *both)
{
    ct_str_reset(both);
    ct_str_append_n(both, left, left_length);
    ct_str_append_n(both, right, right_length);
    int32_t left_id = ct__vocab_find(&pipeline->spellings, left, left_length);
    int32_t right_id = ct__vocab_find(&pipeline->spellings, right, right_length);
    int32_t id = ct__vocab_find(&pipeline->spellings, both->data, both->length);
    if (left_id < 0 || right_id < 0 || id < 0) {
        const char *missing = left_id < 0 ? left : right_id < 0 ? right : both->data;
        size_t length = left_id < 0 ? left_length : right_id < 0 ? right_length : both->length;
        return ct_error(CT_CODE_INVALID_ARGUMENT, "merge %u: \"%.*s\" is not in the vocabulary", rank, (int)length,
                        missing);
    }
    ct__bpe_add_merge(&pipeline->bpe, left_id, right_id, rank, id);
    return NULL;
}

/* "a b" */
static ct_status *add_merge_line(ct__pipeline *pipeline, const char *line, size_t length, uint32_t rank, ct_str *both)
{
    const char *space = memchr(line, ' ', length);
    size_t left = space ? (size_t)(space - line) : length;
    if (!space || memchr(space + 1, ' ', length - left - 1))
        return ct_error(CT_CODE_INVALID_ARGUMENT, "merge %u must be two tokens with a space between, but is \"%.*s\"",
                        rank, (int)CT_MIN(length, (size_t)200), line);
    return add_merge(pipeline, line, left, space + 1, length - left - 1, rank, both);
}

static ct_status *read_merges(ct_json_value merges, ct__pipeline *pipeline, ct_str *both)
{
    ct_json_iter iter = ct_json_iterate(merges);
    while (ct_json_next(&iter)) {
        uint32_t rank = (uint32_t)iter.index;
        const char *left, *right;
        size_t left_length, right_length;
        if (ct_json_type_of(iter.value) == CT_JSON_STRING) {
            CT_TRY(ct_json_as_text(iter.value, &left, &left_length));
            CT_TRY(add_merge_line(pipeline, left, left_length, rank, both));
            continue;
        }
        if (ct_json_size(iter.value) != 2)
            return ct__json_unsupported(iter.value, "a merge that is neither a string nor a pair");
        CT_TRY(ct_json_as_text(ct_json_at(iter.value, 0), &left, &left_length));
        CT_TRY(ct_json_as_text(ct_json_at(iter.value, 1), &right, &right_length));
        CT_TRY(add_merge(pipeline, left, left_length, right, right_length, rank, both));
    }
    return NULL;
}

static ct_status *need_unset(ct_json_value model, const char *key)
{
    ct_json_value value = ct_json_get(model, key);
    const char *text = NULL;
    if (ct_json_is_null(value)) return NULL;
    if (ct_json_type_of(value) == CT_JSON_STRING) CT_TRY(ct_json_as_string(value, &text));
    double number = 1;
    if (ct_json_type_of(value) == CT_JSON_NUMBER) CT_TRY(ct_json_as_double(value, &number));
    return (text && !*text) || number == 0 ? NULL : ct__json_unsupported(value, "this setting of the model");
}

static ct_status *read_bpe(ct_json_value model, ct__pipeline *pipeline)
{
    CT_TRY(need_unset(model, "dropout"));
    CT_TRY(need_unset(model, "continuing_subword_prefix"));
    CT_TRY(need_unset(model, "end_of_word_suffix"));
    ct__bpe *bpe = &pipeline->bpe;
    const char *unknown = NULL;
    ct_json_value vocab, merges;
    CT_TRY(ct_json_get_string(model, "unk_token", &unknown));
    CT_TRY(ct_json_get_bool(model, "fuse_unk", &bpe->fuse_unknown));
    CT_TRY(ct_json_get_bool(model, "byte_fallback", &bpe->byte_fallback));
    CT_TRY(ct_json_get_bool(model, "ignore_merges", &bpe->whole_first));
    CT_TRY(ct_json_need_object(model, "vocab", &vocab));
    CT_TRY(ct_json_need_array(model, "merges", &merges));
    CT_TRY(read_vocab(vocab, pipeline));
    if (unknown) {
        bpe->unknown = ct__vocab_find(&pipeline->spellings, unknown, strlen(unknown));
        if (bpe->unknown < 0)
            return ct_error(CT_CODE_INVALID_ARGUMENT, "the model's unk_token \"%s\" is not in the vocabulary", unknown);
    }
    CT_TRY(ct__pipeline_make_pieces(pipeline,
                                    pipeline->pretokenizer.byte_level ? CT__SPELLING_LETTERS : CT__SPELLING_TEXT));
    ct_str both;
    ct_str_init(&both);
    ct_status *status = read_merges(merges, pipeline, &both);
    ct_str_deinit(&both);
    return status;
}

static ct_status *read_unigram(ct_json_value model, ct__pipeline *pipeline)
{
    ct__unigram *unigram = &pipeline->unigram;
    int64_t unknown = -1;
    ct_json_value vocab;
    pipeline->model = CT__MODEL_UNIGRAM;
    unigram->fuse_unknown = true;
    CT_TRY(ct_json_get_int(model, "unk_id", &unknown));
    CT_TRY(ct_json_get_bool(model, "byte_fallback", &unigram->byte_fallback));
    CT_TRY(ct_json_need_array(model, "vocab", &vocab));
    if (pipeline->pretokenizer.byte_level) return ct__json_unsupported(model, "Unigram behind ByteLevel");
    if (unknown >= (int64_t)ct_json_size(vocab))
        return ct_error(CT_CODE_OUT_OF_RANGE, "model.unk_id must be below the vocabulary's %zu, but is %lld",
                        ct_json_size(vocab), (long long)unknown);
    unigram->unknown = (int32_t)CT_MAX(unknown, -1);
    ct_json_iter iter = ct_json_iterate(vocab);
    while (ct_json_next(&iter)) {
        const char *spelling;
        size_t length;
        double score;
        CT_TRY(ct_json_as_text(ct_json_at(iter.value, 0), &spelling, &length));
        CT_TRY(ct_json_as_double(ct_json_at(iter.value, 1), &score));
        CT_TRY(ct__pipeline_put(pipeline, (int64_t)iter.index, spelling, length));
        ct__unigram_put(unigram, (int32_t)iter.index, spelling, length, score);
    }
    return ct__pipeline_make_pieces(pipeline, CT__SPELLING_TEXT);
}

static ct_status *read_added(ct_json_value list, ct__pipeline *pipeline)
{
    ct_json_iter iter = ct_json_iterate(list);
    while (ct_json_next(&iter)) {
        int64_t id;
        CT_TRY(ct_json_need_int(iter.value, "id", &id));
        CT_TRY(ct__read_added_token(iter.value, id, pipeline));
    }
    return NULL;
}

static ct_status *read_all(ct_json_value root, ct__pipeline *pipeline)
{
    ct_json_value model;
    const char *type = NULL;
    CT_TRY(ct_json_need_object(root, "model", &model));
    CT_TRY(ct_json_get_string(model, "type", &type));
    if (!type) type = ct_json_is_absent(ct_json_get(model, "merges")) ? "without a type" : "BPE"; /* old files */
    CT_TRY(ct__normalizer_add_json(&pipeline->normalizer, ct_json_get(root, "normalizer")));
    CT_TRY(ct__pretokenizer_add_json(&pipeline->pretokenizer, ct_json_get(root, "pre_tokenizer")));
    CT_TRY(ct__read_decoder(ct_json_get(root, "decoder"), pipeline));
    CT_TRY(ct__read_post_processor(ct_json_get(root, "post_processor"), pipeline));
    if (!strcmp(type, "BPE"))
        CT_TRY(read_bpe(model, pipeline));
    else if (!strcmp(type, "Unigram"))
        CT_TRY(read_unigram(model, pipeline));
    else
        return ct__json_unsupported(model, "a model other than BPE and Unigram");
    return read_added(ct_json_get(root, "added_tokens"), pipeline);
}

ct_status *ct__read_tokenizer_json(const char *text, size_t length, const char *path, ct_tokenizer **out_tokenizer)
{
    *out_tokenizer = NULL;
    ct_json *json;
    CT_TRY(ct_json_parse(text, length, path, &json));
    ct__pipeline *pipeline = ct__pipeline_new(path);
    ct_status *status = read_all(ct_json_root(json), pipeline);
    ct_json_free(json);
    if (!status) status = ct__pipeline_finish(pipeline, out_tokenizer);
    if (status) ct__pipeline_free(pipeline);
    return ct_status_note(status, "reading %s", path);
}

/* ---- vocab.json and merges.txt ---- */

static ct_status *read_merges_text(const char *text, size_t length, ct__pipeline *pipeline, ct_str *both)
{
    uint32_t rank = 0;
    for (size_t at = 0; at < length;) {
        const char *line = text + at, *end = memchr(line, '\n', length - at);
        size_t size = end ? (size_t)(end - line) : length - at;
        at += size + 1;
        if (size && line[size - 1] == '\r') size--;
        if (!size || (size >= 8 && !memcmp(line, "#version", 8))) continue;
        CT_TRY(add_merge_line(pipeline, line, size, rank++, both));
    }
    return NULL;
}

/* The pattern belongs to the class of tokenizer that the files were made for, GPT-2's if nothing names one. */
static ct_status *choose_pattern(const char *vocab_path, ct__pipeline *pipeline)
{
    char *folder = ct_path_parent(vocab_path), *path = ct_path_join(folder, "tokenizer_config.json");
    ct_json *json = NULL;
    const char *name = NULL, *pattern = ct__pattern_gpt2;
    ct_status *status = NULL;
    if (ct_path_exists(path)) CT_TRY_OUT(ct_json_read(path, &json));
    if (json) CT_TRY_OUT(ct_json_get_string(ct_json_root(json), "tokenizer_class", &name));
    if (name && !strncmp(name, "Qwen2", 5)) {
        pattern = ct__pattern_qwen2;
        ct__normalizer_add(&pipeline->normalizer, (ct__normal_step){.kind = CT__NORMAL_NFC});
    } else if (name && strncmp(name, "GPT2", 4) != 0 && strncmp(name, "Roberta", 7) != 0 &&
               strncmp(name, "Bart", 4) != 0 && strncmp(name, "PreTrained", 10) != 0) {
        status =
            ct_error(CT_CODE_UNIMPLEMENTED,
                     "%s: vocab.json and merges.txt of tokenizer_class \"%s\" are not supported; use tokenizer.json",
                     path, name);
        goto out;
    }
    status = ct__pretokenizer_add_pattern(&pipeline->pretokenizer, pattern, CT__DIALECT_ONIGURUMA);
out:
    ct_json_free(json);
    free(path);
    free(folder);
    return status;
}

ct_status *ct__read_vocab_merges(const char *vocab_path, const char *merges_path, ct_tokenizer **out_tokenizer)
{
    *out_tokenizer = NULL;
    ct_json *json = NULL;
    char *text = NULL;
    size_t length;
    ct_str both;
    ct_str_init(&both);
    ct__pipeline *pipeline = ct__pipeline_new(vocab_path);
    ct_status *status = NULL;
    CT_TRY_OUT(ct_json_read(vocab_path, &json));
    CT_TRY_OUT(read_vocab(ct_json_root(json), pipeline));
    CT_TRY_OUT(choose_pattern(vocab_path, pipeline));
    pipeline->pretokenizer.byte_level = pipeline->decoder.byte_level = true;
    CT_TRY_OUT(ct__pipeline_make_pieces(pipeline, CT__SPELLING_LETTERS));
    CT_TRY_OUT(ct_file_read(merges_path, &text, &length));
    CT_TRY_OUT(ct_status_note(read_merges_text(text, length, pipeline, &both), "reading %s", merges_path));
    /* The one special token that such a pair of files has, by GPT-2's convention. */
    static const char end_of_text[] = "<|endoftext|>";
    int32_t id = ct__vocab_find(&pipeline->spellings, end_of_text, strlen(end_of_text));
    if (id >= 0)
        CT_TRY_OUT(ct__pipeline_add(pipeline, id, end_of_text, strlen(end_of_text), (ct__added_opts){.special = true}));
    pipeline->interface.bos = pipeline->interface.eos = id;
    CT_TRY_OUT(ct__read_added_decoder(vocab_path, pipeline));
    status = ct__pipeline_finish(pipeline, out_tokenizer);
out:
    if (status) ct__pipeline_free(pipeline);
    ct_json_free(json);
    free(text);
    ct_str_deinit(&both);
    return status;
}
