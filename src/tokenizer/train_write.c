/* A learned BPE as Hugging Face's files, with the pieces and the template of Llama 3. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "formats/json.h"
#include "tokenizer/pattern.h"
#include "tokenizer/train_internal.h"
#include "tokenizer/unicode.h"

static const char *const specials[CT__NUM_LEARNED_SPECIALS] = {"<|begin_of_text|>", "<|end_of_text|>"};

static void append_letters(ct_str *str, ct__bytes token)
{
    for (size_t i = 0; i < token.length; i++) {
        char letter[4];
        ct_str_append_n(str, letter, ct__utf8_encode(ct__byte_letters[(unsigned char)token.data[i]], letter));
    }
}

static void begin_typed(ct_json_writer *writer, const char *key, const char *type)
{
    ct_json_begin_object(writer, key);
    ct_json_put_string(writer, "type", type);
}

static void put_added_tokens(ct_json_writer *writer)
{
    ct_json_begin_array(writer, "added_tokens");
    for (int i = 0; i < CT__NUM_LEARNED_SPECIALS; i++) {
        ct_json_begin_object(writer, NULL);
        ct_json_put_int(writer, "id", i);
        ct_json_put_string(writer, "content", specials[i]);
        ct_json_put_bool(writer, "single_word", false);
        ct_json_put_bool(writer, "lstrip", false);
        ct_json_put_bool(writer, "rstrip", false);
        ct_json_put_bool(writer, "normalized", false);
        ct_json_put_bool(writer, "special", true);
        ct_json_end(writer);
    }
    ct_json_end(writer);
}

static void put_byte_level(ct_json_writer *writer, const char *key)
{
    begin_typed(writer, key, "ByteLevel");
    ct_json_put_bool(writer, "add_prefix_space", false);
    ct_json_put_bool(writer, "trim_offsets", false);
    ct_json_put_bool(writer, "use_regex", false);
    ct_json_end(writer);
}

static void put_pre_tokenizer(ct_json_writer *writer)
{
    begin_typed(writer, "pre_tokenizer", "Sequence");
    ct_json_begin_array(writer, "pretokenizers");
    begin_typed(writer, NULL, "Split");
    ct_json_begin_object(writer, "pattern");
    ct_json_put_string(writer, "Regex", ct__pattern_llama3);
    ct_json_end(writer);
    ct_json_put_string(writer, "behavior", "Isolated");
    ct_json_put_bool(writer, "invert", false);
    ct_json_end(writer);
    put_byte_level(writer, NULL);
    ct_json_end(writer);
    ct_json_end(writer);
}

static void put_piece(ct_json_writer *writer, const char *kind, const char *id, int type_id)
{
    ct_json_begin_object(writer, NULL);
    ct_json_begin_object(writer, kind);
    ct_json_put_string(writer, "id", id);
    ct_json_put_int(writer, "type_id", type_id);
    ct_json_end(writer);
    ct_json_end(writer);
}

static void put_post_processor(ct_json_writer *writer)
{
    begin_typed(writer, "post_processor", "TemplateProcessing");
    ct_json_begin_array(writer, "single");
    put_piece(writer, "SpecialToken", specials[0], 0);
    put_piece(writer, "Sequence", "A", 0);
    ct_json_end(writer);
    ct_json_begin_array(writer, "pair");
    put_piece(writer, "SpecialToken", specials[0], 0);
    put_piece(writer, "Sequence", "A", 0);
    put_piece(writer, "SpecialToken", specials[0], 1);
    put_piece(writer, "Sequence", "B", 1);
    ct_json_end(writer);
    ct_json_begin_object(writer, "special_tokens");
    ct_json_begin_object(writer, specials[0]);
    ct_json_put_string(writer, "id", specials[0]);
    ct_json_begin_array(writer, "ids");
    ct_json_put_int(writer, NULL, 0);
    ct_json_end(writer);
    ct_json_begin_array(writer, "tokens");
    ct_json_put_string(writer, NULL, specials[0]);
    ct_json_end(writer);
    ct_json_end(writer);
    ct_json_end(writer);
    ct_json_end(writer);
}

static void put_model(ct_json_writer *writer, const ct__learned *learned)
{
    ct_str text;
    ct_str_init(&text);
    begin_typed(writer, "model", "BPE");
    ct_json_put_null(writer, "dropout");
    ct_json_put_null(writer, "unk_token");
    ct_json_put_null(writer, "continuing_subword_prefix");
    ct_json_put_null(writer, "end_of_word_suffix");
    ct_json_put_bool(writer, "fuse_unk", false);
    ct_json_put_bool(writer, "byte_fallback", false);
    ct_json_put_bool(writer, "ignore_merges", false);
    ct_json_begin_object(writer, "vocab");
    for (int i = 0; i < CT__NUM_LEARNED_SPECIALS; i++) ct_json_put_int(writer, specials[i], i);
    for (size_t i = 0; i < learned->num_tokens; i++) {
        ct_str_reset(&text);
        append_letters(&text, learned->tokens[i]);
        ct_json_put_int(writer, text.data, (int64_t)i + CT__NUM_LEARNED_SPECIALS);
    }
    ct_json_end(writer);
    ct_json_begin_array(writer, "merges");
    for (size_t i = 0; i < learned->num_merges; i++) {
        const int32_t sides[] = {learned->merges[i].left, learned->merges[i].right};
        ct_json_begin_array(writer, NULL);
        for (int side = 0; side < 2; side++) {
            ct_str_reset(&text);
            append_letters(&text, learned->tokens[sides[side] - CT__NUM_LEARNED_SPECIALS]);
            ct_json_put_string(writer, NULL, text.data);
        }
        ct_json_end(writer);
    }
    ct_json_end(writer);
    ct_json_end(writer);
    ct_str_deinit(&text);
}

static ct_status *write_json(ct_json_writer *writer, const char *folder, const char *name)
{
    char *path = ct_path_join(folder, name), *text = ct_json_writer_text(writer, true);
    ct_status *status = ct_file_write(path, text, strlen(text));
    free(path);
    free(text);
    return status;
}

ct_status *ct__learned_write(const ct__learned *learned, const char *folder)
{
    CT_TRY(ct_dir_make(folder));
    ct_json_writer *writer = ct_json_writer_new();
    ct_json_begin_object(writer, NULL);
    ct_json_put_string(writer, "version", "1.0");
    ct_json_put_null(writer, "truncation");
    ct_json_put_null(writer, "padding");
    put_added_tokens(writer);
    ct_json_put_null(writer, "normalizer");
    put_pre_tokenizer(writer);
    put_post_processor(writer);
    put_byte_level(writer, "decoder");
    put_model(writer, learned);
    ct_json_end(writer);
    ct_status *status = write_json(writer, folder, "tokenizer.json");
    if (!status) {
        ct_json_begin_object(writer, NULL);
        ct_json_put_string(writer, "tokenizer_class", "PreTrainedTokenizerFast");
        ct_json_put_string(writer, "bos_token", specials[0]);
        ct_json_put_string(writer, "eos_token", specials[1]);
        ct_json_put_bool(writer, "clean_up_tokenization_spaces", false);
        ct_json_end(writer);
        status = write_json(writer, folder, "tokenizer_config.json");
    }
    ct_json_writer_free(writer);
    return status;
}
