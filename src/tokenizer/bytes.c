/* The byte tokenizer: an id is a byte. */
#include <string.h>

#include "base/alloc.h"
#include "tokenizer/tokenizer_kind.h"

enum { BOS = 256, EOS = 257, VOCAB_SIZE = 258 };

static ct_status *encode(const ct_tokenizer *tokenizer, const char *text, size_t length,
                         const ct_tokenizer_encode_opts *opts, ct__ids *ids, ct__ranges *ranges)
{
    (void)tokenizer;
    (void)opts;
    ct__ids_reserve(ids, length + 1); /* and the end of document */
    for (size_t i = 0; i < length; i++) ids->data[ids->count + i] = (unsigned char)text[i];
    ids->count += length;
    for (size_t i = 0; i < length && ranges->wanted; i++) ct__ranges_append(ranges, (ct_token_range){i, i + 1});
    return NULL;
}

static bool append(const ct_tokenizer *tokenizer, int32_t id, bool begun, ct_str *str)
{
    (void)tokenizer;
    (void)begun;
    if (id >= BOS) return false;
    ct_str_append_char(str, (char)(unsigned char)id);
    return true;
}

static bool is_special(const ct_tokenizer *tokenizer, int32_t id)
{
    (void)tokenizer;
    return id >= BOS;
}

static const char all_bytes[] = "\000\001\002\003\004\005\006\007\010\011\012\013\014\015\016\017\020\021\022\023\024"
                                "\025\026\027\030\031\032\033\034\035\036\037"
                                "\040\041\042\043\044\045\046\047\050\051\052\053\054\055\056\057\060\061\062\063\064"
                                "\065\066\067\070\071\072\073\074\075\076\077"
                                "\100\101\102\103\104\105\106\107\110\111\112\113\114\115\116\117\120\121\122\123\124"
                                "\125\126\127\130\131\132\133\134\135\136\137"
                                "\140\141\142\143\144\145\146\147\150\151\152\153\154\155\156\157\160\161\162\163\164"
                                "\165\166\167\170\171\172\173\174\175\176\177"
                                "\200\201\202\203\204\205\206\207\210\211\212\213\214\215\216\217\220\221\222\223\224"
                                "\225\226\227\230\231\232\233\234\235\236\237"
                                "\240\241\242\243\244\245\246\247\250\251\252\253\254\255\256\257\260\261\262\263\264"
                                "\265\266\267\270\271\272\273\274\275\276\277"
                                "\300\301\302\303\304\305\306\307\310\311\312\313\314\315\316\317\320\321\322\323\324"
                                "\325\326\327\330\331\332\333\334\335\336\337"
                                "\340\341\342\343\344\345\346\347\350\351\352\353\354\355\356\357\360\361\362\363\364"
                                "\365\366\367\370\371\372\373\374\375\376\377";

/* Each byte as itself, and two names for the others. */
static const char *token(const ct_tokenizer *tokenizer, int32_t id, size_t *out_length)
{
    (void)tokenizer;
    static const char *const names[] = {"<bos>", "<eos>"};
    if (id < 0 || id >= VOCAB_SIZE) return NULL;
    *out_length = id < BOS ? 1 : 5;
    return id < BOS ? &all_bytes[id] : names[id - BOS];
}

static int32_t find(const ct_tokenizer *tokenizer, const char *text, size_t length)
{
    for (int32_t id = BOS; id < VOCAB_SIZE; id++) {
        size_t size;
        const char *name = token(tokenizer, id, &size);
        if (size == length && !memcmp(name, text, length)) return id;
    }
    return length == 1 ? (unsigned char)text[0] : -1;
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
        .token = token,
        .find = find,
    };
    return tokenizer;
}
