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

void ct__ids_reserve(ct__ids *ids, size_t extra)
{
    size_t need = ids->count + extra;
    if (need <= ids->capacity) return;
    ids->capacity = CT_MAX(need, ids->capacity * 2);
    ids->data = ct_realloc(ids->data, ids->capacity * sizeof(*ids->data));
}

void ct__ids_append(ct__ids *ids, int32_t id)
{
    ct__ids_reserve(ids, 1);
    ids->data[ids->count++] = id;
}

ct_status *ct_tokenizer_encode(const ct_tokenizer *tokenizer, const char *text, size_t length,
                               const ct_tokenizer_encode_opts *opts, int32_t **out_ids, size_t *out_num_ids)
{
    *out_ids = NULL;
    *out_num_ids = 0;
    ct__ids ids = {0};
    ct__ids_reserve(&ids, 2);
    if (opts && opts->add_bos && tokenizer->bos >= 0) ct__ids_append(&ids, tokenizer->bos);
    ct_status *status = tokenizer->encode(tokenizer, text, length, &ids);
    if (status) {
        free(ids.data);
        return status;
    }
    if (opts && opts->add_eos && tokenizer->eos >= 0) ct__ids_append(&ids, tokenizer->eos);
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

ct_status *ct_tokenizer_decode(const ct_tokenizer *tokenizer, const int32_t *ids, size_t num_ids, ct_str *str)
{
    for (size_t i = 0; i < num_ids; i++) CT_TRY(check_id(tokenizer, ids[i], i));
    for (size_t i = 0; i < num_ids; i++) tokenizer->append(tokenizer, ids[i], str);
    return NULL;
}

void ct_token_stream_init(ct_token_stream *stream, const ct_tokenizer *tokenizer)
{
    stream->tokenizer = tokenizer;
    ct_str_init(&stream->held);
}

void ct_token_stream_deinit(ct_token_stream *stream)
{
    ct_str_deinit(&stream->held);
}

ct_status *ct_token_stream_push(ct_token_stream *stream, int32_t id, ct_str *str)
{
    CT_TRY(check_id(stream->tokenizer, id, 0));
    if (!stream->tokenizer->append(stream->tokenizer, id, &stream->held)) {
        ct_token_stream_finish(stream, str); /* a special id ends the text before it */
        return NULL;
    }
    /* All but a cut-off character at the end. */
    size_t done = 0;
    while (done < stream->held.length) {
        int size = ct_utf8_next(stream->held.data + done, stream->held.length - done);
        if (size < 0) break;
        done += size ? (size_t)size : 1;
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
