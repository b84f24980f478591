/* Encoding through the stages. Working memory is a ct__scratch, of which the tokenizer keeps those that are idle, so
 * that a thread finds warm caches and nobody has to hand them around.
 */
#include "tokenizer/pipeline.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "tokenizer/unicode.h"

typedef struct ct__scratch {
    struct ct__scratch *next;
    ct__bpe_scratch *bpe;
    ct__unigram_scratch unigram;
    ct__matcher *matcher;
    ct__normal_scratch normal;
    ct__stage_scratch stages;
    ct__edit valid; /* text that was not UTF-8 */
    ct__ids lengths;
} ct__scratch;

/* One call of encode. */
typedef struct encoding {
    const ct__pipeline *pipeline;
    ct__scratch *scratch;
    bool with_special;
    ct__ids *ids;
    ct__ranges *ranges;
} encoding;

static ct__scratch *take_scratch(ct__pipeline *pipeline)
{
    pthread_mutex_lock(&pipeline->mutex);
    ct__scratch *scratch = pipeline->free;
    if (scratch) pipeline->free = scratch->next;
    pthread_mutex_unlock(&pipeline->mutex);
    if (scratch) return scratch;
    scratch = ct_alloc_zeroed(1, sizeof(*scratch));
    scratch->bpe = ct__bpe_scratch_new();
    scratch->matcher = ct__matcher_new();
    ct__normal_scratch_init(&scratch->normal);
    ct__stage_scratch_init(&scratch->stages);
    ct__edit_init(&scratch->valid);
    return scratch;
}

static void give_scratch(ct__pipeline *pipeline, ct__scratch *scratch)
{
    pthread_mutex_lock(&pipeline->mutex);
    scratch->next = pipeline->free;
    pipeline->free = scratch;
    pthread_mutex_unlock(&pipeline->mutex);
}

static void free_scratch(ct__scratch *scratch)
{
    ct__bpe_scratch_free(scratch->bpe);
    ct__unigram_scratch_deinit(&scratch->unigram);
    ct__matcher_free(scratch->matcher);
    ct__normal_scratch_deinit(&scratch->normal);
    ct__stage_scratch_deinit(&scratch->stages);
    ct__edit_deinit(&scratch->valid);
    free(scratch->lengths.data);
    free(scratch);
}

static ct_status *encode_part(encoding *e, const ct__text *piece)
{
    const ct__pipeline *p = e->pipeline;
    bool wanted = e->ranges->wanted;
    ct__ids *lengths = &e->scratch->lengths;
    lengths->count = 0;
    if (p->model == CT__MODEL_BPE)
        CT_TRY(ct__bpe_encode(&p->bpe, e->scratch->bpe, piece->data, piece->length, piece->readable, e->ids,
                              wanted ? lengths : NULL));
    else
        CT_TRY(ct__unigram_encode(&p->unigram, &e->scratch->unigram, piece->data, piece->length, e->ids,
                                  wanted ? lengths : NULL));
    size_t at = 0;
    for (size_t i = 0; wanted && i < lengths->count; i++) {
        ct__ranges_append(e->ranges, ct__text_range(piece, at, at + (size_t)lengths->data[i]));
        at += (size_t)lengths->data[i];
    }
    return NULL;
}

/* A piece to ids: what the pre-tokenizer gives to. Where no token reaches from a character over to a space symbol,
 * words are encoded one by one, which finds them in the cache. */
static ct_status *encode_piece(void *context, const ct__text *piece)
{
    encoding *e = context;
    if (!e->pipeline->cuts_at_spaces) return encode_part(e, piece);
    size_t begin = 0;
    for (size_t at = 1; at + 3 <= piece->length; at++) {
        const char *found = memmem(piece->data + at, piece->length - at, CT__SPACE_SYMBOL, 3);
        if (!found) break;
        at = (size_t)(found - piece->data);
        if (at >= 3 && !memcmp(found - 3, CT__SPACE_SYMBOL, 3)) continue;
        ct__text part = ct__text_slice(piece, begin, at);
        CT_TRY(encode_part(e, &part));
        begin = at;
    }
    ct__text part = ct__text_slice(piece, begin, piece->length);
    return encode_part(e, &part);
}

typedef ct_status *segment_function(encoding *e, const ct__text *text);

/* Gives the added tokens of text to the output and what lies between them to `rest`. */
static ct_status *cut_added(encoding *e, const ct__added *added, const ct__text *text, segment_function *rest)
{
    size_t done = 0, begin, end;
    const ct__added_token *token;
    while ((token = ct__added_find(added, text->data, text->length, done, e->with_special, &begin, &end))) {
        ct__text before = ct__text_slice(text, done, begin);
        if (before.length) CT_TRY(rest(e, &before));
        ct__ids_append(e->ids, token->id);
        if (e->ranges->wanted) ct__ranges_append(e->ranges, ct__text_range(text, begin, end));
        done = end;
    }
    ct__text after = ct__text_slice(text, done, text->length);
    return after.length ? rest(e, &after) : NULL;
}

static ct_status *encode_normalized(encoding *e, const ct__text *text)
{
    return ct__pretokenize(&e->pipeline->pretokenizer, &e->scratch->stages, e->scratch->matcher, text,
                           e->ranges->wanted, (ct__piece_sink){encode_piece, e});
}

static ct_status *encode_raw(encoding *e, const ct__text *text)
{
    ct__text normalized;
    CT_TRY(ct__normalize(&e->pipeline->normalizer, &e->scratch->normal, e->scratch->matcher, text, e->ranges->wanted,
                         &normalized));
    return cut_added(e, &e->pipeline->normalized_added, &normalized, encode_normalized);
}

/* The end of the well-formed UTF-8 that text begins with. */
static size_t valid_length(const char *text, size_t length)
{
    size_t at = 0;
    while (at < length) {
        while (at + 8 <= length) {
            uint64_t word;
            memcpy(&word, text + at, 8);
            if (word & 0x8080808080808080u) break;
            at += 8;
        }
        if (at == length) break;
        int size = ct_utf8_next(text + at, length - at);
        if (size <= 0) return at;
        at += (size_t)size;
    }
    return at;
}

/* The text with U+FFFD for what is no character. */
static ct__text make_valid(ct__edit *edit, const ct__text *text, bool track)
{
    ct__edit_reset(edit, track);
    for (size_t at = 0; at < text->length;) {
        size_t good = valid_length(text->data + at, text->length - at);
        ct__edit_keep(edit, text, at, at + good);
        at += good;
        if (at == text->length) break;
        size_t bad = ct_utf8_bad(text->data + at, text->length - at);
        ct__edit_put(edit, "\xef\xbf\xbd", 3, (ct_token_range){at, at + bad});
        at += bad;
    }
    return ct__edit_text(edit);
}

static void append_template(encoding *e, const int32_t *ids, size_t num_ids, size_t at)
{
    for (size_t i = 0; i < num_ids; i++) {
        ct__ids_append(e->ids, ids[i]);
        if (e->ranges->wanted) ct__ranges_append(e->ranges, (ct_token_range){at, at});
    }
}

static ct_status *encode(const ct_tokenizer *tokenizer, const char *text, size_t length,
                         const ct_tokenizer_encode_opts *opts, ct__ids *ids, ct__ranges *ranges)
{
    /* Only the list of idle scratches changes, under its mutex. */
    ct__pipeline *pipeline = (ct__pipeline *)(uintptr_t)tokenizer;
    ct__scratch *scratch = take_scratch(pipeline);
    encoding e = {pipeline, scratch, !opts->special_as_text, ids, ranges};
    ct__text whole = {.data = text, .length = length, .readable = length};
    if (valid_length(text, length) < length) whole = make_valid(&scratch->valid, &whole, ranges->wanted);
    if (opts->add_special_tokens) append_template(&e, pipeline->prefix, pipeline->num_prefix, 0);
    ct_status *status = cut_added(&e, &pipeline->raw_added, &whole, encode_raw);
    if (opts->add_special_tokens) append_template(&e, pipeline->suffix, pipeline->num_suffix, length);
    give_scratch(pipeline, scratch);
    return status;
}

/* ---- The rest of the interface ---- */

static bool is_special(const ct_tokenizer *tokenizer, int32_t id)
{
    return ((const ct__pipeline *)tokenizer)->flags[id] & CT__TOKEN_SPECIAL;
}

static bool append(const ct_tokenizer *tokenizer, int32_t id, bool begun, ct_str *str)
{
    const ct__pipeline *pipeline = (const ct__pipeline *)tokenizer;
    if (pipeline->flags[id] & CT__TOKEN_SPECIAL) return false;
    ct__bytes text = pipeline->texts[id]; /* empty for a hole in the vocabulary */
    size_t most = begun || pipeline->decoder.strip == CT__STRIP_NONE ? 0
                  : pipeline->decoder.strip == CT__STRIP_ONE         ? 1
                                                                     : text.length;
    size_t begin = 0;
    while (begin < text.length && begin < most && text.data[begin] == ' ') begin++;
    if (begun && pipeline->decoder.joins_with_spaces) ct_str_append_char(str, ' ');
    ct_str_append_n(str, text.data + begin, text.length - begin);
    return true;
}

static const char *token(const ct_tokenizer *tokenizer, int32_t id, size_t *out_length)
{
    ct__bytes spelling = ct__vocab_at(&((const ct__pipeline *)tokenizer)->spellings, id);
    *out_length = spelling.length;
    return spelling.data;
}

static int32_t find(const ct_tokenizer *tokenizer, const char *text, size_t length)
{
    return ct__vocab_find(&((const ct__pipeline *)tokenizer)->spellings, text, length);
}

static void set_around(ct_tokenizer *tokenizer, bool bos, bool eos)
{
    ct__pipeline *pipeline = (ct__pipeline *)tokenizer;
    if (pipeline->num_prefix || pipeline->num_suffix) return;
    if (bos && tokenizer->bos >= 0) ct__pipeline_add_prefix(pipeline, tokenizer->bos);
    if (eos && tokenizer->eos >= 0) ct__pipeline_add_suffix(pipeline, tokenizer->eos);
}

static void deinit(ct_tokenizer *tokenizer)
{
    ct__pipeline *pipeline = (ct__pipeline *)tokenizer;
    while (pipeline->free) {
        ct__scratch *next = pipeline->free->next;
        free_scratch(pipeline->free);
        pipeline->free = next;
    }
    pthread_mutex_destroy(&pipeline->mutex);
    ct__vocab_deinit(&pipeline->spellings);
    ct__vocab_deinit(&pipeline->pieces);
    free(pipeline->texts);
    free(pipeline->pending);
    ct__added_deinit(&pipeline->raw_added);
    ct__added_deinit(&pipeline->normalized_added);
    ct__added_deinit(&pipeline->kept);
    ct__normalizer_deinit(&pipeline->normalizer);
    ct__pretokenizer_deinit(&pipeline->pretokenizer);
    ct__bpe_deinit(&pipeline->bpe);
    ct__unigram_deinit(&pipeline->unigram);
    free(pipeline->flags);
    free(pipeline->prefix);
    free(pipeline->suffix);
    free(pipeline->decoder.space);
    ct_arena_deinit(&pipeline->arena);
}

ct__pipeline *ct__pipeline_new(const char *name)
{
    ct__pipeline *pipeline = ct_alloc_zeroed(1, sizeof(*pipeline));
    ct_arena_init(&pipeline->arena);
    ct__added_init(&pipeline->raw_added);
    ct__added_init(&pipeline->normalized_added);
    ct__added_init(&pipeline->kept);
    pipeline->bpe.vocab = &pipeline->pieces;
    ct__unigram_init(&pipeline->unigram);
    memset(pipeline->bpe.byte_ids, 0xff, sizeof(pipeline->bpe.byte_ids));
    pipeline->bpe.unknown = -1;
    pthread_mutex_init(&pipeline->mutex, NULL);
    pipeline->interface = (ct_tokenizer){.name = ct_arena_strdup(&pipeline->arena, name),
                                         .bos = -1,
                                         .eos = -1,
                                         .encode = encode,
                                         .append = append,
                                         .is_special = is_special,
                                         .token = token,
                                         .find = find,
                                         .set_around = set_around,
                                         .deinit = deinit};
    return pipeline;
}

void ct__pipeline_free(ct__pipeline *pipeline)
{
    ct_tokenizer_free(pipeline ? &pipeline->interface : NULL);
}
