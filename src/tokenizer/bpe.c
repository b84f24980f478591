/* Byte pair encoding. Three ways through ct__bpe_encode: the piece is remembered; it is short, and an array of symbols
 * is scanned for its lowest rank; it is long, and a heap of pairs yields the lowest rank.
 *
 *   long pieces:  symbols [a]<->[b]<->[c]...   heap (rank, position)   an entry whose symbols changed since is dropped
 */
#include "tokenizer/bpe.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "tokenizer/unicode.h"

enum {
    SHORT_PIECE = 64, /* symbols */
    CACHE_SLOTS = 1 << 15,
    CACHE_BYTES = 23, /* longest piece remembered */
    CACHE_IDS = 9,    /* most ids remembered */
};

/* One cache line. The piece fills words from the left, zero-padded; the top byte is its length. */
typedef struct cache_entry {
    uint64_t words[3];
    int32_t ids[CACHE_IDS];
    uint32_t num_ids;
} cache_entry;

typedef struct symbol {
    int32_t id; /* -1: merged into its left neighbour */
    uint32_t length;
    uint32_t previous, next; /* UINT32_MAX at the ends */
} symbol;

typedef struct heap_entry {
    uint64_t key; /* rank << 32 | position */
    int32_t left, right, id;
} heap_entry;

struct ct__bpe_scratch {
    cache_entry *cache;
    symbol *symbols;
    size_t symbol_capacity;
    heap_entry *heap;
    size_t heap_size, heap_capacity;
};

ct__bpe_scratch *ct__bpe_scratch_new(void)
{
    ct__bpe_scratch *scratch = ct_alloc_zeroed(1, sizeof(*scratch));
    scratch->cache = aligned_alloc(64, CACHE_SLOTS * sizeof(cache_entry));
    CT_ASSERT(scratch->cache);
    memset(scratch->cache, 0, CACHE_SLOTS * sizeof(cache_entry));
    return scratch;
}

void ct__bpe_scratch_free(ct__bpe_scratch *scratch)
{
    if (!scratch) return;
    free(scratch->cache);
    free(scratch->symbols);
    free(scratch->heap);
    free(scratch);
}

void ct__bpe_deinit(ct__bpe *bpe)
{
    free(bpe->merges);
    bpe->merges = NULL;
}

static uint64_t pair_of(int32_t left, int32_t right)
{
    return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

static size_t slot_of(const ct__bpe *bpe, uint64_t pair)
{
    uint64_t hash = pair * 0x9e3779b97f4a7c15u;
    return (size_t)(hash ^ hash >> 32) & (bpe->num_slots - 1);
}

static void grow_merges(ct__bpe *bpe)
{
    ct__merge *old = bpe->merges;
    size_t num_old = bpe->num_slots;
    bpe->num_slots = CT_MAX(num_old * 2, (size_t)1024);
    bpe->merges = ct_alloc(bpe->num_slots * sizeof(*bpe->merges));
    for (size_t i = 0; i < bpe->num_slots; i++) bpe->merges[i] = (ct__merge){.pair = UINT64_MAX};
    for (size_t i = 0; i < num_old; i++) {
        if (old[i].pair == UINT64_MAX) continue;
        size_t slot = slot_of(bpe, old[i].pair);
        while (bpe->merges[slot].pair != UINT64_MAX) slot = (slot + 1) & (bpe->num_slots - 1);
        bpe->merges[slot] = old[i];
    }
    free(old);
}

void ct__bpe_add_merge(ct__bpe *bpe, int32_t left, int32_t right, uint32_t rank, int32_t id)
{
    if ((bpe->num_merges + 1) * 2 > bpe->num_slots) grow_merges(bpe);
    uint64_t pair = pair_of(left, right);
    size_t slot = slot_of(bpe, pair);
    for (; bpe->merges[slot].pair != UINT64_MAX; slot = (slot + 1) & (bpe->num_slots - 1))
        if (bpe->merges[slot].pair == pair) return;
    bpe->merges[slot] = (ct__merge){pair, rank, id};
    bpe->num_merges++;
}

void ct__bpe_add_all_splits(ct__bpe *bpe, const uint32_t *ranks)
{
    for (int32_t id = 0; id < bpe->vocab->size; id++) {
        ct__bytes token = bpe->vocab->tokens[id];
        for (size_t cut = 1; cut < token.length; cut++) {
            int32_t left = ct__vocab_find(bpe->vocab, token.data, cut);
            if (left < 0) continue;
            int32_t right = ct__vocab_find(bpe->vocab, token.data + cut, token.length - cut);
            if (right >= 0) ct__bpe_add_merge(bpe, left, right, ranks ? ranks[id] : (uint32_t)id, id);
        }
    }
}

const ct__merge *ct__bpe_find_merge(const ct__bpe *bpe, int32_t left, int32_t right)
{
    if (!bpe->num_slots) return NULL;
    uint64_t pair = pair_of(left, right);
    for (size_t slot = slot_of(bpe, pair);; slot = (slot + 1) & (bpe->num_slots - 1)) {
        const ct__merge *merge = &bpe->merges[slot];
        if (merge->pair == pair) return merge;
        if (merge->pair == UINT64_MAX) return NULL;
    }
}

/* ---- Symbols to start from ---- */

static void add_symbol(ct__bpe_scratch *scratch, size_t *num_symbols, int32_t id, size_t length)
{
    scratch->symbols[(*num_symbols)++] = (symbol){.id = id, .length = (uint32_t)length};
}

/* A character without a token: its bytes, or the unknown token, which waits in *unknown_bytes for more of its kind. */
static void add_unknown(const ct__bpe *bpe, ct__bpe_scratch *scratch, const unsigned char *p, size_t size,
                        size_t *num_symbols, size_t *unknown_bytes)
{
    if (bpe->byte_fallback) {
        bool all = true;
        for (size_t i = 0; i < size; i++) all = all && bpe->byte_ids[p[i]] >= 0;
        if (all) {
            for (size_t i = 0; i < size; i++) add_symbol(scratch, num_symbols, bpe->byte_ids[p[i]], 1);
            return;
        }
    }
    if (bpe->unknown < 0) return;
    if (*unknown_bytes && !bpe->fuse_unknown) {
        add_symbol(scratch, num_symbols, bpe->unknown, *unknown_bytes);
        *unknown_bytes = 0;
    }
    *unknown_bytes += size;
}

static size_t make_symbols(const ct__bpe *bpe, ct__bpe_scratch *scratch, const char *piece, size_t length)
{
    const unsigned char *p = (const unsigned char *)piece, *end = p + length;
    if (length > scratch->symbol_capacity) {
        scratch->symbol_capacity = CT_MAX(length, scratch->symbol_capacity * 2);
        scratch->symbols = ct_realloc(scratch->symbols, scratch->symbol_capacity * sizeof(*scratch->symbols));
    }
    size_t num_symbols = 0, unknown_bytes = 0;
    while (p < end) {
        size_t size = bpe->starts_with_bytes ? 1 : ct__utf8_size(*p);
        int32_t id = bpe->starts_with_bytes ? bpe->byte_ids[*p] : ct__vocab_find(bpe->vocab, (const char *)p, size);
        if (id >= 0) {
            if (unknown_bytes) add_symbol(scratch, &num_symbols, bpe->unknown, unknown_bytes);
            unknown_bytes = 0;
            add_symbol(scratch, &num_symbols, id, size);
        } else {
            add_unknown(bpe, scratch, p, size, &num_symbols, &unknown_bytes);
        }
        p += size;
    }
    if (unknown_bytes) add_symbol(scratch, &num_symbols, bpe->unknown, unknown_bytes);
    return num_symbols;
}

/* ---- Short pieces ---- */

static size_t merge_short(const ct__bpe *bpe, symbol *symbols, size_t num_symbols)
{
    uint32_t ranks[SHORT_PIECE]; /* of symbol i with i + 1 */
    int32_t merged[SHORT_PIECE];
    for (size_t i = 0; i + 1 < num_symbols; i++) {
        const ct__merge *merge = ct__bpe_find_merge(bpe, symbols[i].id, symbols[i + 1].id);
        ranks[i] = merge ? merge->rank : UINT32_MAX;
        merged[i] = merge ? merge->id : -1;
    }
    while (num_symbols > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < num_symbols; i++)
            if (ranks[i] < ranks[best]) best = i;
        if (ranks[best] == UINT32_MAX) break;
        symbols[best].id = merged[best];
        symbols[best].length += symbols[best + 1].length;
        size_t num_behind = num_symbols - best - 2;
        memmove(symbols + best + 1, symbols + best + 2, num_behind * sizeof(*symbols));
        if (num_behind) {
            memmove(ranks + best + 1, ranks + best + 2, (num_behind - 1) * sizeof(*ranks));
            memmove(merged + best + 1, merged + best + 2, (num_behind - 1) * sizeof(*merged));
        }
        num_symbols--;
        for (size_t i = best ? best - 1 : 0; i <= best && i + 1 < num_symbols; i++) {
            const ct__merge *merge = ct__bpe_find_merge(bpe, symbols[i].id, symbols[i + 1].id);
            ranks[i] = merge ? merge->rank : UINT32_MAX;
            merged[i] = merge ? merge->id : -1;
        }
    }
    return num_symbols;
}

/* ---- Long pieces ---- */

static void heap_push(ct__bpe_scratch *scratch, heap_entry entry)
{
    if (scratch->heap_size == scratch->heap_capacity) {
        scratch->heap_capacity = CT_MAX(scratch->heap_capacity * 2, (size_t)1024);
        scratch->heap = ct_realloc(scratch->heap, scratch->heap_capacity * sizeof(*scratch->heap));
    }
    heap_entry *heap = scratch->heap;
    size_t at = scratch->heap_size++;
    for (; at && heap[(at - 1) / 2].key > entry.key; at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2];
    heap[at] = entry;
}

static heap_entry heap_pop(ct__bpe_scratch *scratch)
{
    heap_entry *heap = scratch->heap, top = heap[0], last = heap[--scratch->heap_size];
    size_t at = 0, size = scratch->heap_size;
    for (size_t child; (child = 2 * at + 1) < size; at = child) {
        if (child + 1 < size && heap[child + 1].key < heap[child].key) child++;
        if (heap[child].key >= last.key) break;
        heap[at] = heap[child];
    }
    heap[at] = last;
    return top;
}

static void push_pair(const ct__bpe *bpe, ct__bpe_scratch *scratch, uint32_t at)
{
    const symbol *left = &scratch->symbols[at];
    if (left->next == UINT32_MAX) return;
    const symbol *right = &scratch->symbols[left->next];
    const ct__merge *merge = ct__bpe_find_merge(bpe, left->id, right->id);
    if (merge) heap_push(scratch, (heap_entry){(uint64_t)merge->rank << 32 | at, left->id, right->id, merge->id});
}

static size_t merge_long(const ct__bpe *bpe, ct__bpe_scratch *scratch, size_t num_symbols)
{
    symbol *symbols = scratch->symbols;
    for (size_t i = 0; i < num_symbols; i++) {
        symbols[i].previous = i ? (uint32_t)(i - 1) : UINT32_MAX;
        symbols[i].next = i + 1 < num_symbols ? (uint32_t)(i + 1) : UINT32_MAX;
    }
    scratch->heap_size = 0;
    for (size_t i = 0; i < num_symbols; i++) push_pair(bpe, scratch, (uint32_t)i);
    while (scratch->heap_size) {
        heap_entry entry = heap_pop(scratch);
        uint32_t at = (uint32_t)entry.key;
        symbol *left = &symbols[at];
        if (left->id != entry.left || left->next == UINT32_MAX) continue;
        symbol *right = &symbols[left->next];
        if (right->id != entry.right) continue;
        left->id = entry.id;
        left->length += right->length;
        left->next = right->next;
        right->id = -1;
        if (left->next != UINT32_MAX) symbols[left->next].previous = at;
        if (left->previous != UINT32_MAX) push_pair(bpe, scratch, left->previous);
        push_pair(bpe, scratch, at);
    }
    size_t num_left = 0;
    for (uint32_t i = 0; i != UINT32_MAX && num_symbols; i = symbols[i].next) symbols[num_left++] = symbols[i];
    return num_left;
}

/* ---- All together ---- */

static void append_symbols(const symbol *symbols, size_t num_symbols, ct__ids *ids, ct__ids *lengths)
{
    ct__ids_reserve(ids, num_symbols);
    for (size_t i = 0; i < num_symbols; i++) ids->data[ids->count++] = symbols[i].id;
    if (!lengths) return;
    for (size_t i = 0; i < num_symbols; i++) ct__ids_append(lengths, (int32_t)symbols[i].length);
}

static ct_status *encode_afresh(const ct__bpe *bpe, ct__bpe_scratch *scratch, const char *piece, size_t length,
                                ct__ids *ids, ct__ids *lengths)
{
    if (length > INT32_MAX)
        return ct_error(CT_CODE_OUT_OF_RANGE, "text that a tokenizer does not cut must be below 2 GiB, found %zu bytes",
                        length);
    if (bpe->whole_first) {
        int32_t id = ct__vocab_find(bpe->vocab, piece, length);
        if (id >= 0) {
            ct__ids_append(ids, id);
            if (lengths) ct__ids_append(lengths, (int32_t)length);
            return NULL;
        }
    }
    size_t num_symbols = make_symbols(bpe, scratch, piece, length);
    if (num_symbols <= SHORT_PIECE)
        num_symbols = merge_short(bpe, scratch->symbols, num_symbols);
    else
        num_symbols = merge_long(bpe, scratch, num_symbols);
    append_symbols(scratch->symbols, num_symbols, ids, lengths);
    return NULL;
}

/* The piece as the words of a cache entry. */
static inline void load_words(const char *piece, size_t length, size_t readable, uint64_t words[3])
{
    if (readable >= 24) {
        static const uint64_t masks[9] = {
            0, 0xff, 0xffff, 0xffffff, 0xffffffff, 0xffffffffff, 0xffffffffffff, 0xffffffffffffff, UINT64_MAX};
        memcpy(words, piece, 24);
        words[0] &= masks[CT_MIN(length, 8)];
        words[1] &= masks[length < 8 ? 0 : CT_MIN(length - 8, 8)];
        words[2] &= masks[length < 16 ? 0 : length - 16];
    } else {
        words[0] = words[1] = words[2] = 0;
        memcpy(words, piece, length);
    }
    words[2] |= (uint64_t)length << 56;
}

ct_status *ct__bpe_encode(const ct__bpe *bpe, ct__bpe_scratch *scratch, const char *piece, size_t length,
                          size_t readable, ct__ids *ids, ct__ids *lengths)
{
    if (length > CACHE_BYTES || lengths || !length)
        return length ? encode_afresh(bpe, scratch, piece, length, ids, lengths) : NULL;
    uint64_t words[3];
    load_words(piece, length, readable, words);
    uint64_t hash = (words[0] ^ words[1] * 0xff51afd7ed558ccdu ^ words[2] * 0xc4ceb9fe1a85ec53u) * 0x9e3779b97f4a7c15u;
    cache_entry *entry = &scratch->cache[hash >> 49];
    _Static_assert(CACHE_SLOTS == 1 << (64 - 49), "the top bits of the hash are the slot");
    if (entry->words[0] == words[0] && entry->words[1] == words[1] && entry->words[2] == words[2]) {
        ct__ids_reserve(ids, CACHE_IDS);
        memcpy(ids->data + ids->count, entry->ids, sizeof(entry->ids)); /* all: a fixed size copies fastest */
        ids->count += entry->num_ids;
        return NULL;
    }
    size_t before = ids->count;
    CT_TRY(encode_afresh(bpe, scratch, piece, length, ids, NULL));
    size_t num_ids = ids->count - before;
    if (num_ids > CACHE_IDS) return NULL;
    memcpy(entry->words, words, sizeof(words));
    memcpy(entry->ids, ids->data + before, num_ids * sizeof(*ids->data));
    entry->num_ids = (uint32_t)num_ids;
    return NULL;
}
