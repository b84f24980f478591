/* Mistral's tekken.json: tiktoken ranks behind a block of special tokens.
 *
 *   {"config": {"pattern", "default_vocab_size", "default_num_special_tokens"}, "vocab": [{"rank", "token_bytes"}],
 *    "special_tokens": [{"rank", "token_str"}]}                                  id of a rank: rank + special tokens
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tokenizer/base64.h"
#include "tokenizer/readers.h"

/* Those of files from before the list was part of them. */
static const char *const old_specials[] = {"<unk>",
                                           "<s>",
                                           "</s>",
                                           "[INST]",
                                           "[/INST]",
                                           "[AVAILABLE_TOOLS]",
                                           "[/AVAILABLE_TOOLS]",
                                           "[TOOL_RESULTS]",
                                           "[/TOOL_RESULTS]",
                                           "[TOOL_CALLS]",
                                           "[IMG]",
                                           "<pad>",
                                           "[IMG_BREAK]",
                                           "[IMG_END]",
                                           "[PREFIX]",
                                           "[MIDDLE]",
                                           "[SUFFIX]",
                                           "[SYSTEM_PROMPT]",
                                           "[/SYSTEM_PROMPT]",
                                           "[TOOL_CONTENT]"};

static ct_status *add_special(ct__pipeline *pipeline, int64_t id, const char *name, size_t length)
{
    return ct__pipeline_add(pipeline, id, name, length, (ct__added_opts){.special = true});
}

static ct_status *read_specials(ct__pipeline *pipeline, ct_json_value list, int64_t count)
{
    ct_json_iter iter = ct_json_iterate(list);
    while (ct_json_next(&iter)) {
        int64_t rank;
        const char *name;
        size_t length;
        CT_TRY(ct_json_need_int(iter.value, "rank", &rank));
        CT_TRY(ct_json_as_text(ct_json_get(iter.value, "token_str"), &name, &length));
        if (rank < count) CT_TRY(add_special(pipeline, rank, name, length));
    }
    for (int64_t id = 0; id < count; id++) {
        if (ct__vocab_at(&pipeline->spellings, (int32_t)id).data) continue;
        char filler[40];
        bool known = ct_json_is_null(list) && id < (int64_t)CT_COUNT(old_specials);
        snprintf(filler, sizeof(filler), "<SPECIAL_%lld>", (long long)id);
        const char *name = known ? old_specials[id] : filler;
        CT_TRY(add_special(pipeline, id, name, strlen(name)));
    }
    return NULL;
}

static ct_status *read_vocab(ct__pipeline *pipeline, ct_json_value vocab, int64_t first, int64_t count)
{
    ct_json_iter iter = ct_json_iterate(vocab);
    while (ct_json_next(&iter) && (int64_t)iter.index < count) {
        int64_t rank;
        const char *text;
        char *bytes;
        size_t length;
        CT_TRY(ct_json_need_int(iter.value, "rank", &rank));
        CT_TRY(ct_json_need_string(iter.value, "token_bytes", &text));
        CT_TRY_NOTE(ct__base64_decode(text, strlen(text), &bytes, &length), "token_bytes of rank %lld",
                    (long long)rank);
        ct_status *status = ct__pipeline_put(pipeline, rank + first, bytes, length);
        if (!status) {
            ct__bytes token = pipeline->spellings.tokens[rank + first];
            status = ct__vocab_put(&pipeline->pieces, rank + first, token.data, token.length);
            if (length == 1) pipeline->bpe.byte_ids[(unsigned char)token.data[0]] = (int32_t)(rank + first);
        }
        free(bytes);
        CT_TRY(status);
    }
    return NULL;
}

static ct_status *read_all(ct__pipeline *pipeline, ct_json_value root)
{
    ct_json_value config, vocab;
    const char *pattern;
    int64_t size, num_special;
    CT_TRY(ct_json_need_object(root, "config", &config));
    CT_TRY(ct_json_need_array(root, "vocab", &vocab));
    CT_TRY(ct_json_need_string(config, "pattern", &pattern));
    CT_TRY(ct_json_need_int(config, "default_vocab_size", &size));
    CT_TRY(ct_json_need_int(config, "default_num_special_tokens", &num_special));
    if (num_special < 0 || size < num_special || size > CT__MAX_VOCAB)
        return ct_error(CT_CODE_OUT_OF_RANGE, "%lld special tokens of a vocabulary of %lld cannot be",
                        (long long)num_special, (long long)size);
    CT_TRY(read_specials(pipeline, ct_json_get(root, "special_tokens"), num_special));
    CT_TRY(read_vocab(pipeline, vocab, num_special, size - num_special));
    CT_TRY(ct__pretokenizer_add_pattern(&pipeline->pretokenizer, pattern, CT__DIALECT_RUST));
    pipeline->pretokenizer.byte_level = pipeline->decoder.byte_level = true;
    pipeline->bpe.starts_with_bytes = pipeline->bpe.whole_first = true;
    ct__bpe_add_all_splits(&pipeline->bpe, NULL);
    pipeline->interface.bos = ct__vocab_find(&pipeline->spellings, "<s>", 3);
    pipeline->interface.eos = ct__vocab_find(&pipeline->spellings, "</s>", 4);
    return NULL;
}

ct_status *ct__read_tekken(const ct_json *json, const char *path, ct_tokenizer **out_tokenizer)
{
    *out_tokenizer = NULL;
    ct__pipeline *pipeline = ct__pipeline_new(path);
    ct_status *status = read_all(pipeline, ct_json_root(json));
    if (!status) status = ct__pipeline_finish(pipeline, out_tokenizer);
    if (status) ct__pipeline_free(pipeline);
    return ct_status_note(status, "reading %s", path);
}
