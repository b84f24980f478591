/* Viterbi over the positions of a piece: best[i] is the best way to cut the bytes before i. */
#include "tokenizer/unigram.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "tokenizer/unicode.h"

/* What an unknown character costs beyond the worst token. */
static const double UNKNOWN_PENALTY = 10;

/* Where SentencePiece begins its sums again, as far as its ids show. */
static const double REBASE_BELOW = -100000;

typedef struct ct__unigram_node {
    double score;
    size_t begin; /* of the last token of the way; SIZE_MAX: no way leads here */
    int32_t id;
} ct__unigram_node;

void ct__unigram_init(ct__unigram *unigram)
{
    *unigram = (ct__unigram){.unknown = -1};
    memset(unigram->byte_ids, 0xff, sizeof(unigram->byte_ids));
    ct__trie_init(&unigram->trie);
}

void ct__unigram_deinit(ct__unigram *unigram)
{
    free(unigram->scores);
    ct__trie_deinit(&unigram->trie);
}

void ct__unigram_scratch_deinit(ct__unigram_scratch *scratch)
{
    free(scratch->nodes);
}

void ct__unigram_put(ct__unigram *unigram, int32_t id, const char *bytes, size_t length, double score)
{
    if (id >= unigram->num_scores) {
        int32_t size = CT_MAX(id + 1, unigram->num_scores * 2);
        unigram->scores = ct_realloc(unigram->scores, (size_t)size * sizeof(*unigram->scores));
        unigram->num_scores = size;
    }
    unigram->scores[id] = score;
    unigram->unknown_score = CT_MIN(unigram->unknown_score, score - UNKNOWN_PENALTY);
    if (length) ct__trie_put(&unigram->trie, bytes, length, id);
}

static void try_way(ct__unigram_node *node, double score, size_t begin, int32_t id)
{
    if (node->begin == SIZE_MAX || score > node->score) *node = (ct__unigram_node){score, begin, id};
}

static double add_scores(const ct__unigram *unigram, double a, double b)
{
    return unigram->single_precision ? (double)(float)(a + b) : a + b;
}

/* Sums of floats lose precision as they grow, so from time to time they begin again at 0: what counts is only by how
 * much one way is better than another. Only the nodes from `from` to `last` are reached and not yet left. */
static void rebase(ct__unigram_node *nodes, size_t from, size_t last)
{
    float base = (float)nodes[from].score;
    for (size_t i = from; i <= last; i++)
        if (nodes[i].begin != SIZE_MAX) nodes[i].score = (double)((float)nodes[i].score - base);
}

static ct_status *find_way(const ct__unigram *unigram, ct__unigram_node *nodes, const unsigned char *p, size_t length)
{
    for (size_t i = 1; i <= length; i++) nodes[i].begin = SIZE_MAX;
    nodes[0] = (ct__unigram_node){0};
    size_t size, last = 0;
    for (size_t begin = 0; begin < length; begin += size) {
        size = ct__utf8_size(p[begin]);
        if (unigram->single_precision && nodes[begin].score < REBASE_BELOW) rebase(nodes, begin, last);
        double score = nodes[begin].score;
        bool known = false;
        uint32_t node = 0;
        for (size_t end = begin; end < length && (node = ct__trie_step(&unigram->trie, node, p[end])); end++) {
            int32_t id = unigram->trie.values[node];
            if (id < 0) continue;
            try_way(&nodes[end + 1], add_scores(unigram, score, unigram->scores[id]), begin, id);
            last = CT_MAX(last, end + 1);
            known = known || end + 1 - begin == size;
        }
        if (known) continue;
        if (unigram->unknown < 0)
            return ct_error(CT_CODE_INVALID_ARGUMENT,
                            "the character \"%.*s\" has no token, and the vocabulary has no unknown one", (int)size,
                            (const char *)p + begin);
        try_way(&nodes[begin + size], add_scores(unigram, score, unigram->unknown_score), begin, unigram->unknown);
        last = CT_MAX(last, begin + size);
    }
    return NULL;
}

/* An unknown stretch: bytes if all of them have tokens, else the unknown token. */
static void append_unknown(const ct__unigram *unigram, const unsigned char *p, size_t length, ct__ids *ids,
                           ct__ids *lengths)
{
    bool as_bytes = unigram->byte_fallback;
    for (size_t i = 0; i < length && as_bytes; i++) as_bytes = unigram->byte_ids[p[i]] >= 0;
    for (size_t i = 0; i < (as_bytes ? length : 1); i++) {
        ct__ids_append(ids, as_bytes ? unigram->byte_ids[p[i]] : unigram->unknown);
        if (lengths) ct__ids_append(lengths, as_bytes ? 1 : (int32_t)length);
    }
}

ct_status *ct__unigram_encode(const ct__unigram *unigram, ct__unigram_scratch *scratch, const char *piece,
                              size_t length, ct__ids *ids, ct__ids *lengths)
{
    if (length > INT32_MAX)
        return ct_error(CT_CODE_OUT_OF_RANGE, "text that a tokenizer does not cut must be below 2 GiB, found %zu bytes",
                        length);
    if (length + 1 > scratch->capacity) {
        scratch->capacity = CT_MAX(length + 1, scratch->capacity * 2);
        free(scratch->nodes);
        scratch->nodes = ct_alloc(scratch->capacity * sizeof(*scratch->nodes));
    }
    ct__unigram_node *nodes = scratch->nodes;
    const unsigned char *p = (const unsigned char *)piece;
    CT_TRY(find_way(unigram, nodes, p, length));
    /* Turn the way round: each node on it gets the end of the token that begins there. */
    for (size_t end = length, next = length; end > 0; end = next) {
        next = nodes[end].begin;
        nodes[next].score = (double)end;
    }
    for (size_t begin = 0, end; begin < length; begin = end) {
        end = (size_t)nodes[begin].score;
        if (nodes[end].id != unigram->unknown) {
            ct__ids_append(ids, nodes[end].id);
            if (lengths) ct__ids_append(lengths, (int32_t)(end - begin));
            continue;
        }
        size_t beyond = end;
        while (unigram->fuse_unknown && beyond < length) {
            size_t after = (size_t)nodes[beyond].score;
            if (nodes[after].id != unigram->unknown) break;
            beyond = after;
        }
        append_unknown(unigram, p + begin, beyond - begin, ids, lengths);
        end = beyond;
    }
    return NULL;
}
