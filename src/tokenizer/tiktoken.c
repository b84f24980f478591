/* tiktoken's rank files: a line per token, base64 of its bytes, a space, its rank, which is its id. They say nothing of
 * the pattern that cuts text, nor of special tokens; those belong to the model that a file was published with, and are
 * known here for the files of the table below, told apart by their number of ranks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tokenizer/base64.h"
#include "tokenizer/readers.h"

/* Special tokens: from `first` on, in order. A name with %d stands for `count` of them, numbered from `number`. */
typedef struct special_run {
    const char *name;
    int count, number;
} special_run;

typedef struct encoding {
    const char *model;
    int32_t num_ranks;
    const char *pattern;
    bool nfc;
    int32_t first;
    const char *bos, *eos;
    const special_run *specials;
} encoding;

#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
static const char o200k_pattern[] =
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+" CONTRACTIONS
    "|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*" CONTRACTIONS
    "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
static const char cl100k_pattern[] =
    "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}++|\\p{N}{1,3}+| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*+|\\s++$|"
    "\\s*[\\r\\n]|\\s+(?!\\S)|\\s";
static const char qwen35_pattern[] =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|"
    "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

static const special_run llama3_specials[] = {{"<|begin_of_text|>", 1, 0},
                                              {"<|end_of_text|>", 1, 0},
                                              {"<|reserved_special_token_%d|>", 2, 0},
                                              {"<|finetune_right_pad_id|>", 1, 0},
                                              {"<|step_id|>", 1, 0},
                                              {"<|start_header_id|>", 1, 0},
                                              {"<|end_header_id|>", 1, 0},
                                              {"<|eom_id|>", 1, 0},
                                              {"<|eot_id|>", 1, 0},
                                              {"<|python_tag|>", 1, 0},
                                              {"<|image|>", 1, 0},
                                              {"<|reserved_special_token_%d|>", 244, 2},
                                              {NULL, 0, 0}};
static const special_run qwen_specials[] = {
    {"<|endoftext|>", 1, 0}, {"<|im_start|>", 1, 0}, {"<|im_end|>", 1, 0}, {"<|extra_%d|>", 205, 0}, {NULL, 0, 0}};
static const special_run qwen35_specials[] = {{"<|endoftext|>", 1, 0},
                                              {"<|im_start|>", 1, 0},
                                              {"<|im_end|>", 1, 0},
                                              {"<|object_ref_start|>", 1, 0},
                                              {"<|object_ref_end|>", 1, 0},
                                              {"<|box_start|>", 1, 0},
                                              {"<|box_end|>", 1, 0},
                                              {"<|quad_start|>", 1, 0},
                                              {"<|quad_end|>", 1, 0},
                                              {"<|vision_start|>", 1, 0},
                                              {"<|vision_end|>", 1, 0},
                                              {"<|vision_pad|>", 1, 0},
                                              {"<|image_pad|>", 1, 0},
                                              {"<|video_pad|>", 1, 0},
                                              {"<tool_call>", 1, 0},
                                              {"</tool_call>", 1, 0},
                                              {"<|fim_prefix|>", 1, 0},
                                              {"<|fim_middle|>", 1, 0},
                                              {"<|fim_suffix|>", 1, 0},
                                              {"<|fim_pad|>", 1, 0},
                                              {"<|repo_name|>", 1, 0},
                                              {"<|file_sep|>", 1, 0},
                                              {"<tool_response>", 1, 0},
                                              {"</tool_response>", 1, 0},
                                              {"<think>", 1, 0},
                                              {"</think>", 1, 0},
                                              {"<|audio_start|>", 1, 0},
                                              {"<|audio_end|>", 1, 0},
                                              {"<tts_pad>", 1, 0},
                                              {"<tts_text_bos>", 1, 0},
                                              {"<tts_text_eod>", 1, 0},
                                              {"<tts_text_bos_single>", 1, 0},
                                              {"<|audio_pad|>", 1, 0},
                                              {NULL, 0, 0}};
static const special_run llama4_specials[] = {{"<|begin_of_text|>", 1, 0},
                                              {"<|end_of_text|>", 1, 0},
                                              {"<|fim_prefix|>", 1, 0},
                                              {"<|fim_middle|>", 1, 0},
                                              {"<|fim_suffix|>", 1, 0},
                                              {"<|header_start|>", 1, 0},
                                              {"<|header_end|>", 1, 0},
                                              {"<|eom|>", 1, 0},
                                              {"<|eot|>", 1, 0},
                                              {"<|step|>", 1, 0},
                                              {"<|text_post_train_reserved_special_token_%d|>", 6, 0},
                                              {"<|python_start|>", 1, 0},
                                              {"<|python_end|>", 1, 0},
                                              {"<|finetune_right_pad|>", 1, 0},
                                              {"<|text_post_train_reserved_special_token_%d|>", 61, 8},
                                              {"<|image_start|>", 1, 0},
                                              {"<|image_end|>", 1, 0},
                                              {"<|vision_reserved_special_token_%d|>", 2, 0},
                                              {"<|tile_x_separator|>", 1, 0},
                                              {"<|tile_y_separator|>", 1, 0},
                                              {"<|vision_reserved_special_token_%d|>", 4, 2},
                                              {"<|image|>", 1, 0},
                                              {"<|vision_reserved_special_token_%d|>", 1, 6},
                                              {"<|patch|>", 1, 0},
                                              {"<|vision_reserved_special_token_%d|>", 1041, 7},
                                              {"<|reasoning_reserved_special_token_%d|>", 8, 0},
                                              {"<|reasoning_thinking_start|>", 1, 0},
                                              {"<|reasoning_thinking_end|>", 1, 0},
                                              {"<|reserved_special_token_%d|>", 904, 0},
                                              {NULL, 0, 0}};
static const special_run cl100k_specials[] = {{"<|endoftext|>", 1, 0},
                                              {"<|fim_prefix|>", 1, 0},
                                              {"<|fim_middle|>", 1, 0},
                                              {"<|fim_suffix|>", 1, 0},
                                              {NULL, 15, 0}, /* ids without a token */
                                              {"<|endofprompt|>", 1, 0},
                                              {NULL, 0, 0}};

static const encoding encodings[] = {
    {"Llama 3", 128000, ct__pattern_llama3, false, 128000, "<|begin_of_text|>", "<|end_of_text|>", llama3_specials},
    {"Llama 4", 200000, o200k_pattern, false, 200000, "<|begin_of_text|>", "<|end_of_text|>", llama4_specials},
    {"Qwen", 151643, ct__pattern_qwen2, true, 151643, NULL, "<|endoftext|>", qwen_specials},
    {"Qwen 3.5", 248044, qwen35_pattern, true, 248044, NULL, "<|endoftext|>", qwen35_specials},
    {"cl100k_base", 100256, cl100k_pattern, false, 100257, NULL, "<|endoftext|>", cl100k_specials},
};

static ct_status *read_line(ct__pipeline *pipeline, const char *line, size_t length, ct_str *bytes)
{
    const char *space = memchr(line, ' ', length);
    size_t text_length = space ? (size_t)(space - line) : 0, size;
    int64_t rank = 0;
    bool is_number = space && text_length + 1 < length && length - text_length < 12;
    for (size_t i = text_length + 1; i < length && is_number; i++) {
        is_number = line[i] >= '0' && line[i] <= '9';
        rank = rank * 10 + (line[i] - '0');
    }
    if (!is_number || !text_length)
        return ct_error(CT_CODE_INVALID_ARGUMENT, "a line must be base64, a space and a rank, but is \"%.*s\"",
                        (int)CT_MIN(length, (size_t)100), line);
    ct_str_reset(bytes);
    ct_str_append_n(bytes, line, text_length); /* room */
    CT_TRY(ct__base64_decode_into(line, text_length, bytes->data, &size));
    return ct__pipeline_put(pipeline, rank, bytes->data, size);
}

static ct_status *read_lines(ct__pipeline *pipeline, const char *text, size_t length)
{
    ct_str bytes;
    ct_str_init(&bytes);
    ct_status *status = NULL;
    size_t number = 0;
    for (size_t at = 0; at < length && !status; number++) {
        const char *line = text + at, *end = memchr(line, '\n', length - at);
        size_t size = end ? (size_t)(end - line) : length - at;
        at += size + 1;
        if (size && line[size - 1] == '\r') size--;
        if (size) status = ct_status_note(read_line(pipeline, line, size, &bytes), "line %zu", number + 1);
    }
    ct_str_deinit(&bytes);
    return status;
}

static ct_status *add_specials(ct__pipeline *pipeline, const encoding *e)
{
    int32_t id = e->first;
    for (const special_run *run = e->specials; run->count; run++) {
        for (int i = 0; i < run->count; i++, id++) {
            if (!run->name) continue;
            char name[80];
            const char *number = strstr(run->name, "%d");
            if (number)
                snprintf(name, sizeof(name), "%.*s%d%s", (int)(number - run->name), run->name, run->number + i,
                         number + 2);
            else
                snprintf(name, sizeof(name), "%s", run->name);
            CT_TRY(ct__pipeline_add(pipeline, id, name, strlen(name), (ct__added_opts){.special = true}));
        }
    }
    if (e->bos) pipeline->interface.bos = ct__vocab_find(&pipeline->spellings, e->bos, strlen(e->bos));
    if (e->eos) pipeline->interface.eos = ct__vocab_find(&pipeline->spellings, e->eos, strlen(e->eos));
    return NULL;
}

static ct_status *find_encoding(const ct__pipeline *pipeline, const encoding **out_encoding)
{
    *out_encoding = NULL;
    ct_str known;
    ct_str_init(&known);
    for (size_t i = 0; i < CT_COUNT(encodings); i++) {
        if (encodings[i].num_ranks == pipeline->spellings.size) *out_encoding = &encodings[i];
        ct_str_printf(&known, "%s%s (%d)", i ? ", " : "", encodings[i].model, encodings[i].num_ranks);
    }
    ct_status *status = NULL;
    if (!*out_encoding)
        status = ct_error(CT_CODE_UNIMPLEMENTED,
                          "a rank file of %d ranks is of no known model, so its pattern and special tokens are not "
                          "known: %s; use the model's tokenizer.json",
                          pipeline->spellings.size, known.data);
    ct_str_deinit(&known);
    return status;
}

static ct_status *read_ranks(ct__pipeline *pipeline, const char *text, size_t length)
{
    const encoding *e;
    CT_TRY(read_lines(pipeline, text, length));
    CT_TRY(find_encoding(pipeline, &e));
    CT_TRY(ct__pipeline_make_pieces(pipeline, CT__SPELLING_BYTES));
    if (e->nfc) ct__normalizer_add(&pipeline->normalizer, (ct__normal_step){.kind = CT__NORMAL_NFC});
    CT_TRY(ct__pretokenizer_add_pattern(&pipeline->pretokenizer, e->pattern, CT__DIALECT_RUST));
    pipeline->pretokenizer.byte_level = pipeline->decoder.byte_level = true;
    pipeline->bpe.whole_first = true;
    ct__bpe_add_all_splits(&pipeline->bpe, NULL);
    return add_specials(pipeline, e);
}

ct_status *ct__read_tiktoken(const char *text, size_t length, const char *path, ct_tokenizer **out_tokenizer)
{
    *out_tokenizer = NULL;
    ct__pipeline *pipeline = ct__pipeline_new(path);
    ct_status *status = read_ranks(pipeline, text, length);
    if (!status) status = ct__pipeline_finish(pipeline, out_tokenizer);
    if (status) ct__pipeline_free(pipeline);
    return ct_status_note(status, "reading %s", path);
}
