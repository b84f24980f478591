/* The byte tokenizer: an id is a byte. */
#include "base/alloc.h"
#include "tokenizer/tokenizer_kind.h"

enum { BOS = 256, EOS = 257, VOCAB_SIZE = 258 };

static ct_status *encode(const ct_tokenizer *tokenizer, const char *text, size_t length, ct__ids *ids)
{
    (void)tokenizer;
    ct__ids_reserve(ids, length + 1); /* and the end of document */
    for (size_t i = 0; i < length; i++) ids->data[ids->count + i] = (unsigned char)text[i];
    ids->count += length;
    return NULL;
}

static bool append(const ct_tokenizer *tokenizer, int32_t id, ct_str *str)
{
    (void)tokenizer;
    if (id >= BOS) return false;
    ct_str_append_char(str, (char)(unsigned char)id);
    return true;
}

static bool is_special(const ct_tokenizer *tokenizer, int32_t id)
{
    (void)tokenizer;
    return id >= BOS;
}

ct_tokenizer *ct_tokenizer_bytes_new(void)
{
    ct_tokenizer *tokenizer = ct_alloc_zeroed(1, sizeof(*tokenizer));
    *tokenizer = (ct_tokenizer){
        .name = "bytes",
        .vocab_size = VOCAB_SIZE,
        .bos = BOS,
        .eos = EOS,
        .encode = encode,
        .append = append,
        .is_special = is_special,
    };
    return tokenizer;
}
