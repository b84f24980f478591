/* Counting pieces, and learning merges.
 *
 *   words: distinct pieces, as symbols, with how often each came up
 *   pairs: (left, right) -> how often it comes up, and the words that hold it
 *   heap:  pairs by frequency; an entry whose frequency has changed since is put back with the right one
 *
 * A merge touches only the words of its pair, so the whole is far from quadratic.
 */
#include "tokenizer/train.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/utf8.h"
#include "tokenizer/pattern.h"
#include "tokenizer/train_internal.h"

typedef struct word {
    const char *bytes;
    size_t length;
    int64_t count;
    int32_t *symbols;
    size_t num_symbols;
} word;

typedef struct pair {
    uint64_t key; /* left << 32 | right */
    int64_t count;
    size_t *words; /* indices; one may be there twice */
    size_t num_words, word_capacity;
} pair;

typedef struct candidate {
    int64_t count;
    size_t pair;
} candidate;

struct ct_tokenizer_trainer {
    ct_arena arena; /* bytes of words */
    word *words;
    size_t num_words, word_capacity;
    size_t *word_slots; /* index + 1; 0: free */
    size_t num_word_slots;
    pair *pairs;
    size_t num_pairs, pair_capacity;
    size_t *pair_slots;
    size_t num_pair_slots;
    candidate *heap;
    size_t heap_size, heap_capacity;
    ct__learned learned;
    ct__vocab tokens; /* of learned, to find a token that two merges make */
};

ct_tokenizer_trainer *ct_tokenizer_trainer_new(void)
{
    ct_tokenizer_trainer *trainer = ct_alloc_zeroed(1, sizeof(*trainer));
    ct_arena_init(&trainer->arena);
    return trainer;
}

static void forget_learned(ct_tokenizer_trainer *t)
{
    for (size_t i = 0; i < t->num_words; i++) {
        free(t->words[i].symbols);
        t->words[i].symbols = NULL;
    }
    for (size_t i = 0; i < t->num_pairs; i++) free(t->pairs[i].words);
    free(t->pairs);
    free(t->pair_slots);
    free(t->heap);
    free(t->learned.tokens);
    free(t->learned.merges);
    ct__vocab_deinit(&t->tokens);
    t->pairs = NULL;
    t->pair_slots = NULL;
    t->heap = NULL;
    t->num_pairs = t->pair_capacity = t->num_pair_slots = t->heap_size = t->heap_capacity = 0;
    t->learned = (ct__learned){0};
}

void ct_tokenizer_trainer_free(ct_tokenizer_trainer *trainer)
{
    if (!trainer) return;
    forget_learned(trainer);
    free(trainer->words);
    free(trainer->word_slots);
    ct_arena_deinit(&trainer->arena);
    free(trainer);
}

/* ---- Counting ---- */

static void grow_words(ct_tokenizer_trainer *t)
{
    free(t->word_slots);
    t->num_word_slots = CT_MAX(t->num_word_slots * 2, (size_t)4096);
    t->word_slots = ct_alloc_zeroed(t->num_word_slots, sizeof(*t->word_slots));
    for (size_t i = 0; i < t->num_words; i++) {
        size_t slot = ct__hash(t->words[i].bytes, t->words[i].length) & (t->num_word_slots - 1);
        while (t->word_slots[slot]) slot = (slot + 1) & (t->num_word_slots - 1);
        t->word_slots[slot] = i + 1;
    }
}

static void count_piece(ct_tokenizer_trainer *t, const char *bytes, size_t length)
{
    if ((t->num_words + 1) * 2 > t->num_word_slots) grow_words(t);
    size_t slot = ct__hash(bytes, length) & (t->num_word_slots - 1);
    for (; t->word_slots[slot]; slot = (slot + 1) & (t->num_word_slots - 1)) {
        word *known = &t->words[t->word_slots[slot] - 1];
        if (known->length != length || memcmp(known->bytes, bytes, length) != 0) continue;
        known->count++;
        return;
    }
    if (t->num_words == t->word_capacity) {
        t->word_capacity = CT_MAX(t->word_capacity * 2, (size_t)4096);
        t->words = ct_realloc(t->words, t->word_capacity * sizeof(*t->words));
    }
    t->words[t->num_words++] =
        (word){.bytes = ct_arena_strndup(&t->arena, bytes, length), .length = length, .count = 1};
    t->word_slots[slot] = t->num_words;
}

ct_status *ct_tokenizer_trainer_add(ct_tokenizer_trainer *trainer, const char *text, size_t length)
{
    ct_str valid;
    ct_str_init(&valid);
    ct_utf8_append(&valid, text, length); /* as encoding does */
    const unsigned char *data = (const unsigned char *)valid.data;
    for (size_t begin = 0, end; begin < valid.length; begin = end) {
        end = ct__scan_llama3(data, begin, valid.length);
        count_piece(trainer, valid.data + begin, end - begin);
    }
    ct_str_deinit(&valid);
    return NULL;
}

/* ---- Pairs ---- */

static size_t pair_slot(const ct_tokenizer_trainer *t, uint64_t key)
{
    uint64_t hash = key * 0x9e3779b97f4a7c15u;
    size_t slot = (size_t)(hash ^ hash >> 32) & (t->num_pair_slots - 1);
    while (t->pair_slots[slot] && t->pairs[t->pair_slots[slot] - 1].key != key)
        slot = (slot + 1) & (t->num_pair_slots - 1);
    return slot;
}

static size_t find_pair(ct_tokenizer_trainer *t, int32_t left, int32_t right)
{
    if ((t->num_pairs + 1) * 2 > t->num_pair_slots) {
        free(t->pair_slots);
        t->num_pair_slots = CT_MAX(t->num_pair_slots * 2, (size_t)4096);
        t->pair_slots = ct_alloc_zeroed(t->num_pair_slots, sizeof(*t->pair_slots));
        for (size_t i = 0; i < t->num_pairs; i++) t->pair_slots[pair_slot(t, t->pairs[i].key)] = i + 1;
    }
    uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    size_t slot = pair_slot(t, key);
    if (!t->pair_slots[slot]) {
        if (t->num_pairs == t->pair_capacity) {
            t->pair_capacity = CT_MAX(t->pair_capacity * 2, (size_t)4096);
            t->pairs = ct_realloc(t->pairs, t->pair_capacity * sizeof(*t->pairs));
        }
        t->pairs[t->num_pairs++] = (pair){.key = key};
        t->pair_slots[slot] = t->num_pairs;
    }
    return t->pair_slots[slot] - 1;
}

/* The word's pair comes up count times more (or less). */
static size_t count_pair(ct_tokenizer_trainer *t, int32_t left, int32_t right, int64_t count, size_t word_index)
{
    size_t index = find_pair(t, left, right);
    pair *p = &t->pairs[index];
    p->count += count;
    if (count < 0 || (p->num_words && p->words[p->num_words - 1] == word_index)) return index;
    if (p->num_words == p->word_capacity) {
        p->word_capacity = CT_MAX(p->word_capacity * 2, (size_t)4);
        p->words = ct_realloc(p->words, p->word_capacity * sizeof(*p->words));
    }
    p->words[p->num_words++] = word_index;
    return index;
}

/* ---- The heap ---- */

/* More frequent, or of smaller ids. */
static bool is_before(const ct_tokenizer_trainer *t, candidate a, candidate b)
{
    return a.count != b.count ? a.count > b.count : t->pairs[a.pair].key < t->pairs[b.pair].key;
}

static void push(ct_tokenizer_trainer *t, candidate entry)
{
    if (t->heap_size == t->heap_capacity) {
        t->heap_capacity = CT_MAX(t->heap_capacity * 2, (size_t)4096);
        t->heap = ct_realloc(t->heap, t->heap_capacity * sizeof(*t->heap));
    }
    size_t at = t->heap_size++;
    for (; at && is_before(t, entry, t->heap[(at - 1) / 2]); at = (at - 1) / 2) t->heap[at] = t->heap[(at - 1) / 2];
    t->heap[at] = entry;
}

static candidate pop(ct_tokenizer_trainer *t)
{
    candidate top = t->heap[0], last = t->heap[--t->heap_size];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < t->heap_size; at = child) {
        if (child + 1 < t->heap_size && is_before(t, t->heap[child + 1], t->heap[child])) child++;
        if (!is_before(t, t->heap[child], last)) break;
        t->heap[at] = t->heap[child];
    }
    t->heap[at] = last;
    return top;
}

/* ---- Learning ---- */

static int32_t add_token(ct_tokenizer_trainer *t, const char *bytes, size_t length)
{
    int32_t id = ct__vocab_find(&t->tokens, bytes, length);
    if (id >= 0) return id;
    ct__learned *learned = &t->learned;
    learned->tokens = ct_realloc(learned->tokens, (learned->num_tokens + 1) * sizeof(*learned->tokens));
    id = (int32_t)(learned->num_tokens + CT__NUM_LEARNED_SPECIALS);
    ct__bytes token = {ct_arena_strndup(&t->arena, bytes, length), length};
    learned->tokens[learned->num_tokens++] = token;
    ct_status *status = ct__vocab_put(&t->tokens, id, token.data, token.length);
    CT_ASSERT(!status); /* ids follow each other */
    return id;
}

static int32_t add_merged(ct_tokenizer_trainer *t, int32_t left, int32_t right)
{
    ct__bytes a = ct__vocab_at(&t->tokens, left), b = ct__vocab_at(&t->tokens, right);
    ct_str both;
    ct_str_init(&both);
    ct_str_append_n(&both, a.data, a.length);
    ct_str_append_n(&both, b.data, b.length);
    int32_t id = add_token(t, both.data, both.length);
    ct_str_deinit(&both);
    return id;
}

static void start(ct_tokenizer_trainer *t)
{
    int32_t byte_ids[256];
    for (int letter = 0; letter <= 323; letter++) { /* bytes in the order of their letters */
        for (int byte = 0; byte < 256; byte++) {
            if (ct__byte_letters[byte] != letter) continue;
            char c = (char)(unsigned char)byte;
            byte_ids[byte] = add_token(t, &c, 1);
        }
    }
    for (size_t i = 0; i < t->num_words; i++) {
        word *w = &t->words[i];
        w->num_symbols = w->length;
        w->symbols = ct_alloc(w->length * sizeof(*w->symbols));
        for (size_t j = 0; j < w->length; j++) w->symbols[j] = byte_ids[(unsigned char)w->bytes[j]];
        for (size_t j = 0; j + 1 < w->length; j++) count_pair(t, w->symbols[j], w->symbols[j + 1], w->count, i);
    }
    for (size_t i = 0; i < t->num_pairs; i++) push(t, (candidate){t->pairs[i].count, i});
}

/* Merges left and right to id wherever they stand next to each other in a word. */
static void merge_in_word(ct_tokenizer_trainer *t, size_t index, int32_t left, int32_t right, int32_t id)
{
    word *w = &t->words[index];
    int32_t *symbols = w->symbols;
    size_t kept = 0;
    for (size_t i = 0; i < w->num_symbols; i++) {
        if (symbols[i] != left || i + 1 == w->num_symbols || symbols[i + 1] != right) {
            symbols[kept++] = symbols[i];
            continue;
        }
        if (kept) {
            count_pair(t, symbols[kept - 1], left, -w->count, index);
            count_pair(t, symbols[kept - 1], id, w->count, index);
        }
        if (i + 2 < w->num_symbols) {
            count_pair(t, right, symbols[i + 2], -w->count, index);
            count_pair(t, id, symbols[i + 2], w->count, index);
        }
        symbols[kept++] = id;
        i++;
    }
    w->num_symbols = kept;
}

static void learn(ct_tokenizer_trainer *t, int64_t vocab_size)
{
    start(t);
    ct__learned *learned = &t->learned;
    while ((int64_t)learned->num_tokens + CT__NUM_LEARNED_SPECIALS < vocab_size && t->heap_size) {
        candidate top = pop(t);
        if (top.count != t->pairs[top.pair].count) {
            top.count = t->pairs[top.pair].count;
            if (top.count > 0) push(t, top);
            continue;
        }
        pair best = t->pairs[top.pair];
        t->pairs[top.pair].words = NULL;
        t->pairs[top.pair].num_words = t->pairs[top.pair].word_capacity = 0;
        t->pairs[top.pair].count = 0;
        int32_t left = (int32_t)(best.key >> 32), right = (int32_t)(uint32_t)best.key;
        int32_t id = add_merged(t, left, right);
        learned->merges = ct_realloc(learned->merges, (learned->num_merges + 1) * sizeof(*learned->merges));
        learned->merges[learned->num_merges++] = (ct__learned_merge){left, right};
        size_t first_new = t->num_pairs;
        for (size_t i = 0; i < best.num_words; i++)
            if (!i || best.words[i] != best.words[i - 1]) merge_in_word(t, best.words[i], left, right, id);
        free(best.words);
        /* Pairs with the new token are new, but where the token was known before. */
        for (size_t i = first_new; i < t->num_pairs; i++)
            if (t->pairs[i].count > 0) push(t, (candidate){t->pairs[i].count, i});
    }
}

ct_status *ct_tokenizer_trainer_write(ct_tokenizer_trainer *trainer, int64_t vocab_size, const char *folder,
                                      int64_t *out_vocab_size)
{
    *out_vocab_size = 0;
    int64_t least = 256 + CT__NUM_LEARNED_SPECIALS;
    if (vocab_size < least || vocab_size > CT__MAX_VOCAB)
        return ct_error(CT_CODE_INVALID_ARGUMENT, "the vocabulary's size must be from %lld to %d, but is %lld",
                        (long long)least, CT__MAX_VOCAB, (long long)vocab_size);
    if (!trainer->num_words) return ct_error(CT_CODE_INVALID_ARGUMENT, "there is no text to learn from");
    learn(trainer, vocab_size);
    ct_status *status = ct__learned_write(&trainer->learned, folder);
    *out_vocab_size = (int64_t)trainer->learned.num_tokens + CT__NUM_LEARNED_SPECIALS;
    forget_learned(trainer);
    return status;
}
