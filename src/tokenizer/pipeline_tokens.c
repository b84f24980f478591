/* Filling a pipeline with tokens, and what follows from them: the bytes that a model works on, and those that an id
 * decodes to.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "tokenizer/pipeline.h"
#include "tokenizer/unicode.h"

/* clang-format off */
#define SELF8(n) n, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7
const uint16_t ct__byte_letters[256] = {
    SELF8(256), SELF8(264), SELF8(272), SELF8(280), 288, /* 0..32 */
    33, 34, 35, 36, 37, 38, 39, SELF8(40), SELF8(48), SELF8(56), SELF8(64), SELF8(72), SELF8(80), SELF8(88),
    SELF8(96), SELF8(104), SELF8(112), 120, 121, 122, 123, 124, 125, 126,
    289, SELF8(290), SELF8(298), SELF8(306), SELF8(314), 322, /* 127..160 */
    SELF8(161), 169, 170, 171, 172, 323, 174, 175, SELF8(176), SELF8(184), SELF8(192), SELF8(200), SELF8(208),
    SELF8(216), SELF8(224), SELF8(232), SELF8(240), SELF8(248)};
/* clang-format on */

bool ct__letters_to_bytes(const char *spelling, size_t length, char *out_bytes, size_t *out_length)
{
    *out_length = 0;
    size_t size;
    for (size_t at = 0; at < length; at += size) {
        uint32_t letter = ct__utf8_decode((const unsigned char *)spelling + at, &size);
        unsigned byte = letter; /* most are themselves */
        if (letter >= 256 && letter <= 323)
            byte = letter == 323 ? 173 : letter <= 288 ? letter - 256 : letter - 289 + 127;
        if (byte > 255 || ct__byte_letters[byte] != letter) return false;
        out_bytes[(*out_length)++] = (char)(unsigned char)byte;
    }
    return true;
}

int ct__byte_of_spelling(const char *spelling, size_t length)
{
    if (length != 6 || memcmp(spelling, "<0x", 3) != 0 || spelling[5] != '>') return -1;
    int value = 0;
    for (size_t i = 3; i < 5; i++) {
        char c = spelling[i];
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
        if (digit < 0) return -1;
        value = value * 16 + digit;
    }
    return value;
}

ct_status *ct__pipeline_put(ct__pipeline *pipeline, int64_t id, const char *spelling, size_t length)
{
    const char *copy = ct_arena_strndup(&pipeline->arena, spelling, length);
    return ct__vocab_put(&pipeline->spellings, id, copy, length);
}

typedef struct ct__pending_token {
    int32_t id;
    ct__bytes content;
    ct__added_opts opts;
} ct__pending_token;

ct_status *ct__pipeline_add(ct__pipeline *pipeline, int64_t id, const char *content, size_t length, ct__added_opts opts)
{
    if (!length) return ct_error(CT_CODE_INVALID_ARGUMENT, "added token %lld must not be empty", (long long)id);
    ct__bytes known = id >= 0 && id < pipeline->spellings.size ? pipeline->spellings.tokens[id] : (ct__bytes){0};
    if (!known.data || known.length != length || memcmp(known.data, content, length) != 0)
        CT_TRY(ct__pipeline_put(pipeline, id, content, length));
    known = pipeline->spellings.tokens[id];
    pipeline->pending = ct_realloc(pipeline->pending, (pipeline->num_pending + 1) * sizeof(*pipeline->pending));
    pipeline->pending[pipeline->num_pending++] = (ct__pending_token){(int32_t)id, known, opts};
    return NULL;
}

static void append_id(int32_t **ids, size_t *num_ids, int32_t id)
{
    *ids = ct_realloc(*ids, (*num_ids + 1) * sizeof(**ids));
    (*ids)[(*num_ids)++] = id;
}

void ct__pipeline_add_prefix(ct__pipeline *pipeline, int32_t id)
{
    append_id(&pipeline->prefix, &pipeline->num_prefix, id);
}

void ct__pipeline_add_suffix(ct__pipeline *pipeline, int32_t id)
{
    append_id(&pipeline->suffix, &pipeline->num_suffix, id);
}

ct_status *ct__pipeline_make_pieces(ct__pipeline *pipeline, ct__spelling kind)
{
    ct_str bytes;
    ct_str_init(&bytes);
    ct_status *status = NULL;
    for (int32_t id = 0; id < pipeline->spellings.size && !status; id++) {
        ct__bytes spelling = pipeline->spellings.tokens[id];
        if (!spelling.data || !spelling.length) continue;
        int byte = ct__byte_of_spelling(spelling.data, spelling.length);
        if (byte >= 0 && kind == CT__SPELLING_TEXT)
            pipeline->bpe.byte_ids[byte] = pipeline->unigram.byte_ids[byte] = id;
        if (kind == CT__SPELLING_LETTERS) {
            ct_str_reset(&bytes);
            ct_str_append_n(&bytes, spelling.data, spelling.length); /* bytes are no longer than their letters */
            size_t length;
            if (!ct__letters_to_bytes(spelling.data, spelling.length, bytes.data, &length)) continue;
            spelling = (ct__bytes){ct_arena_strndup(&pipeline->arena, bytes.data, length), length};
        }
        if (kind != CT__SPELLING_TEXT && spelling.length == 1)
            pipeline->bpe.byte_ids[(unsigned char)spelling.data[0]] = id;
        status = ct__vocab_put(&pipeline->pieces, id, spelling.data, spelling.length);
    }
    ct_str_deinit(&bytes);
    pipeline->bpe.starts_with_bytes = kind != CT__SPELLING_TEXT;
    return status;
}

/* What an id of the model decodes to. */
static ct__bytes text_of(ct__pipeline *pipeline, int32_t id)
{
    ct__bytes spelling = pipeline->spellings.tokens[id];
    const ct__decoder *decoder = &pipeline->decoder;
    if (!spelling.data) return (ct__bytes){"", 0};
    if (decoder->byte_level && ct__vocab_at(&pipeline->pieces, id).data) return pipeline->pieces.tokens[id];
    int byte = decoder->byte_fallback ? ct__byte_of_spelling(spelling.data, spelling.length) : -1;
    if (byte >= 0) {
        char c = (char)(unsigned char)byte;
        return (ct__bytes){ct_arena_strndup(&pipeline->arena, &c, 1), 1};
    }
    if (!decoder->space || !memmem(spelling.data, spelling.length, decoder->space, strlen(decoder->space)))
        return spelling;
    ct_str text;
    ct_str_init(&text);
    size_t size = strlen(decoder->space);
    for (size_t at = 0; at < spelling.length;) {
        bool is_space = spelling.length - at >= size && !memcmp(spelling.data + at, decoder->space, size);
        ct_str_append_char(&text, is_space ? ' ' : spelling.data[at]);
        at += is_space ? size : 1;
    }
    ct__bytes result = {ct_arena_strndup(&pipeline->arena, text.data, text.length), text.length};
    ct_str_deinit(&text);
    return result;
}

/* Puts the added tokens where they are looked for; those that the normalizer concerns in the form that it gives them.
 */
static ct_status *place_added(ct__pipeline *pipeline)
{
    ct__normal_scratch scratch;
    ct__matcher *matcher = ct__matcher_new();
    ct__normal_scratch_init(&scratch);
    ct_status *status = NULL;
    for (size_t i = 0; i < pipeline->num_pending && !status; i++) {
        const ct__pending_token *token = &pipeline->pending[i];
        ct__added_token added = {token->id, token->opts.special, token->opts.single_word, token->opts.lstrip,
                                 token->opts.rstrip};
        pipeline->flags[token->id] |= CT__TOKEN_ADDED;
        if (token->opts.special) pipeline->flags[token->id] |= CT__TOKEN_SPECIAL;
        pipeline->texts[token->id] = token->content;
        if (!token->opts.normalized) {
            ct__added_put(&pipeline->raw_added, token->content.data, token->content.length, added);
            continue;
        }
        ct__text text = {
            .data = token->content.data, .length = token->content.length, .readable = token->content.length};
        status = ct__normalize(&pipeline->normalizer, &scratch, matcher, &text, false, &text);
        if (!status && text.length) ct__added_put(&pipeline->normalized_added, text.data, text.length, added);
    }
    ct__normal_scratch_deinit(&scratch);
    ct__matcher_free(matcher);
    return status;
}

/* Only BPE: sums of scores would round otherwise. An unknown symbol would fuse over the cut, so there must be none. */
static bool may_cut_at_spaces(const ct__pipeline *pipeline)
{
    if (pipeline->model != CT__MODEL_BPE || pipeline->bpe.starts_with_bytes || pipeline->bpe.whole_first) return false;
    if (ct__vocab_find(&pipeline->pieces, CT__SPACE_SYMBOL, 3) < 0) return false;
    for (int32_t id = 0; id < pipeline->pieces.size; id++) {
        ct__bytes token = pipeline->pieces.tokens[id];
        size_t begin = 0;
        if (!token.data) continue;
        while (token.length - begin >= 3 && !memcmp(token.data + begin, CT__SPACE_SYMBOL, 3)) begin += 3;
        if (memmem(token.data + begin, token.length - begin, CT__SPACE_SYMBOL, 3)) return false;
    }
    return true;
}

ct_status *ct__pipeline_finish(ct__pipeline *pipeline, ct_tokenizer **out_tokenizer)
{
    int32_t size = pipeline->spellings.size;
    pipeline->interface.vocab_size = size;
    pipeline->flags = ct_alloc_zeroed((size_t)size + 1, 1);
    pipeline->texts = ct_alloc_zeroed((size_t)size + 1, sizeof(*pipeline->texts));
    for (int32_t id = 0; id < size; id++) pipeline->texts[id] = text_of(pipeline, id);
    CT_TRY(place_added(pipeline));
    pipeline->cuts_at_spaces = may_cut_at_spaces(pipeline);
    *out_tokenizer = &pipeline->interface;
    return NULL;
}
