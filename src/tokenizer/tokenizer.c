/* The interface of tokenizers: bos and eos, checks of ids, and decoding that shows whole characters only. What a kind
 * adds is in tokenizer_kind.h.
 */
#include "tokenizer/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "tokenizer/tokenizer_kind.h"

void ct_tokenizer_free(ct_tokenizer *tokenizer)
{
    if (!tokenizer) return;
    if (tokenizer->deinit) tokenizer->deinit(tokenizer);
    free(tokenizer);
}

const char *ct_tokenizer_name(const ct_tokenizer *tokenizer)
{
    return tokenizer->name;
}

int32_t ct_tokenizer_vocab_size(const ct_tokenizer *tokenizer)
{
    return tokenizer->vocab_size;
}

int32_t ct_tokenizer_bos(const ct_tokenizer *tokenizer)
{
    return tokenizer->bos;
}

int32_t ct_tokenizer_eos(const ct_tokenizer *tokenizer)
{
    return tokenizer->eos;
}

bool ct_tokenizer_is_special(const ct_tokenizer *tokenizer, int32_t id)
{
    return id >= 0 && id < tokenizer->vocab_size && tokenizer->is_special(tokenizer, id);
}

const char *ct_tokenizer_token(const ct_tokenizer *tokenizer, int32_t id, size_t *out_length)
{
    *out_length = 0;
    return tokenizer->token(tokenizer, id, out_length);
}

int32_t ct_tokenizer_id(const ct_tokenizer *tokenizer, const char *token, size_t length)
{
    return tokenizer->find(tokenizer, token, length);
}

void ct__ids_grow(ct__ids *ids, size_t extra)
{
    ids->capacity = CT_MAX(ids->count + extra, ids->capacity * 2);
    ids->data = ct_realloc(ids->data, ids->capacity * sizeof(*ids->data));
}

void ct__ranges_append(ct__ranges *ranges, ct_token_range range)
{
    if (ranges->count == ranges->capacity) {
        ranges->capacity = CT_MAX(ranges->capacity * 2, (size_t)64);
        ranges->data = ct_realloc(ranges->data, ranges->capacity * sizeof(*ranges->data));
    }
    ranges->data[ranges->count++] = range;
}

ct_status *ct_tokenizer_encode(const ct_tokenizer *tokenizer, const char *text, size_t length,
                               const ct_tokenizer_encode_opts *opts, int32_t **out_ids, size_t *out_num_ids)
{
    static const ct_tokenizer_encode_opts defaults;
    if (!opts) opts = &defaults;
    *out_ids = NULL;
    *out_num_ids = 0;
    if (opts->out_ranges) *opts->out_ranges = NULL;
    ct__ids ids = {0};
    ct__ranges ranges = {.wanted = opts->out_ranges != NULL};
    ct__ids_reserve(&ids, length / 4 + 16);
    bool bos = opts->add_bos && tokenizer->bos >= 0, eos = opts->add_eos && tokenizer->eos >= 0;
    if (bos) ct__ids_append(&ids, tokenizer->bos);
    if (bos && ranges.wanted) ct__ranges_append(&ranges, (ct_token_range){0, 0});
    ct_status *status = tokenizer->encode(tokenizer, text, length, opts, &ids, &ranges);
    if (status) {
        free(ids.data);
        free(ranges.data);
        return status;
    }
    if (eos) ct__ids_append(&ids, tokenizer->eos);
    if (eos && ranges.wanted) ct__ranges_append(&ranges, (ct_token_range){length, length});
    CT_ASSERT(!ranges.wanted || ranges.count == ids.count);
    if (ranges.wanted && !ranges.data) ranges.data = ct_alloc(sizeof(*ranges.data));
    if (ranges.wanted) *opts->out_ranges = ranges.data;
    *out_ids = ids.data;
    *out_num_ids = ids.count;
    return NULL;
}

static ct_status *check_id(const ct_tokenizer *tokenizer, int32_t id, size_t position)
{
    if (id >= 0 && id < tokenizer->vocab_size) return NULL;
    return ct_error(CT_CODE_OUT_OF_RANGE, "token ids must be in [0, %d) for tokenizer %s, but the one at %zu is %d",
                    tokenizer->vocab_size, tokenizer->name, position, id);
}

static ct_status *decode(const ct_tokenizer *tokenizer, const int32_t *ids, size_t num_ids, bool all, ct_str *str)
{
    for (size_t i = 0; i < num_ids; i++) CT_TRY(check_id(tokenizer, ids[i], i));
    bool begun = false;
    for (size_t i = 0; i < num_ids; i++) {
        bool is_text = tokenizer->append(tokenizer, ids[i], begun, str);
        begun = begun || is_text || all;
        if (is_text || !all) continue;
        size_t length;
        const char *token = ct_tokenizer_token(tokenizer, ids[i], &length);
        if (token) ct_str_append_n(str, token, length);
    }
    return NULL;
}

ct_status *ct_tokenizer_decode(const ct_tokenizer *tokenizer, const int32_t *ids, size_t num_ids, ct_str *str)
{
    return decode(tokenizer, ids, num_ids, false, str);
}

ct_status *ct_tokenizer_decode_all(const ct_tokenizer *tokenizer, const int32_t *ids, size_t num_ids, ct_str *str)
{
    return decode(tokenizer, ids, num_ids, true, str);
}

void ct_token_stream_init(ct_token_stream *stream, const ct_tokenizer *tokenizer)
{
    stream->tokenizer = tokenizer;
    stream->begun = false;
    ct_str_init(&stream->held);
}

void ct_token_stream_deinit(ct_token_stream *stream)
{
    ct_str_deinit(&stream->held);
}

ct_status *ct_token_stream_push(ct_token_stream *stream, int32_t id, ct_str *str)
{
    CT_TRY(check_id(stream->tokenizer, id, 0));
    if (!stream->tokenizer->append(stream->tokenizer, id, stream->begun, &stream->held)) {
        ct_token_stream_finish(stream, str); /* a special id ends the text before it */
        return NULL;
    }
    stream->begun = true;
    /* All but a cut-off character at the end. */
    size_t done = 0;
    while (done < stream->held.length) {
        int size = ct_utf8_next(stream->held.data + done, stream->held.length - done);
        if (size < 0) break;
        done += size ? (size_t)size : ct_utf8_bad(stream->held.data + done, stream->held.length - done);
    }
    ct_utf8_append(str, stream->held.data, done);
    size_t left = stream->held.length - done;
    memmove(stream->held.data, stream->held.data + done, left + 1);
    stream->held.length = left;
    return NULL;
}

void ct_token_stream_finish(ct_token_stream *stream, ct_str *str)
{
    ct_utf8_append(str, stream->held.data, stream->held.length);
    ct_str_reset(&stream->held);
}
