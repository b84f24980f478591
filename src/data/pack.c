/* Packing. A bin is a sample under way; concat_then_split has one document in hand, in bin 0. */
#include "data/pack.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

typedef struct bin {
    ct__document *documents;
    size_t num_documents, capacity;
    int64_t num_pairs;
} bin;

struct ct__packer {
    const ct_dataset_opts *opts;
    ct_data_packing packing;
    ct__next_document next;
    void *context;
    bin *bins;
    size_t num_bins;
    int64_t from;       /* of the document in hand: its pairs before are in samples already */
    int64_t last_token; /* of the documents before, where they run together; -1: none */
    int64_t num_too_long;
    bool drained; /* there are no more documents */
};

ct__packer *ct__packer_new(const ct_dataset_opts *opts, ct_data_packing packing, ct__next_document next, void *context)
{
    ct__packer *packer = ct_alloc_zeroed(1, sizeof(*packer));
    packer->opts = opts;
    packer->packing = packing;
    packer->next = next;
    packer->context = context;
    packer->num_bins = 1;
    if (packing == CT_PACKING_FIRST_FIT) packer->num_bins = opts->packing_bins ? (size_t)opts->packing_bins : 8;
    packer->bins = ct_alloc_zeroed(packer->num_bins, sizeof(*packer->bins));
    packer->last_token = -1;
    return packer;
}

static void empty(bin *b)
{
    for (size_t i = 0; i < b->num_documents; i++) ct__document_free(&b->documents[i]);
    b->num_documents = 0;
    b->num_pairs = 0;
}

void ct__packer_free(ct__packer *packer)
{
    if (!packer) return;
    for (size_t i = 0; i < packer->num_bins; i++) {
        empty(&packer->bins[i]);
        free(packer->bins[i].documents);
    }
    free(packer->bins);
    free(packer);
}

static void add(bin *b, const ct__document *document)
{
    if (b->num_documents == b->capacity) {
        b->capacity = b->capacity ? b->capacity * 2 : 4;
        b->documents = ct_realloc(b->documents, b->capacity * sizeof(*b->documents));
    }
    b->documents[b->num_documents++] = *document;
    b->num_pairs += document->num_tokens - 1;
}

/* ---- rows ---- */

/* Pairs [from, from + count) of a document, pair i being token i and label i + 1, at `at`; the label's flag decides. */
static int64_t put_pairs(ct__row *row, int64_t at, const ct__document *document, int64_t from, int64_t count)
{
    const int32_t *tokens = document->tokens + from;
    memcpy(row->inputs + at, tokens, (size_t)count * sizeof(*tokens));
    if (!document->in_loss) {
        memcpy(row->labels + at, tokens + 1, (size_t)count * sizeof(*tokens));
        return count;
    }
    int64_t num_valid = 0;
    for (int64_t i = 0; i < count; i++) {
        bool counts = document->in_loss[from + i + 1];
        row->labels[at + i] = counts ? tokens[i + 1] : CT_IGNORED_LABEL;
        num_valid += counts;
    }
    return num_valid;
}

static void put_marks(ct__row *row, int64_t at, int64_t count, int32_t first_position, int32_t segment)
{
    for (int64_t i = 0; i < count; i++) row->positions[at + i] = first_position + (int32_t)i;
    for (int64_t i = 0; i < count; i++) row->segment_ids[at + i] = segment;
}

/* Marks of a document in the row: its own, or those of the row. */
static void put_document_marks(const ct__packer *packer, ct__row *row, int64_t at, int64_t count, int32_t number)
{
    bool own = packer->opts->document_mask;
    put_marks(row, at, count, own ? 0 : (int32_t)at, own ? number : 0);
}

static void pad(const ct__packer *packer, ct__row *row, int64_t at, int32_t number)
{
    int64_t count = packer->opts->seq_len - at;
    int32_t eos = ct_tokenizer_eos(packer->opts->tokenizer);
    for (int64_t i = at; i < packer->opts->seq_len; i++) {
        row->inputs[i] = eos >= 0 ? eos : 0;
        row->labels[i] = CT_IGNORED_LABEL;
    }
    put_document_marks(packer, row, at, count, number);
}

/* ---- concat_then_split ---- */

/* A document's pairs where documents run together: the first goes from the document before to its first token. */
static int64_t put_joined(const ct__packer *packer, ct__row *row, int64_t at, const ct__document *document,
                          int64_t from, int64_t count)
{
    int64_t num_valid = 0;
    bool from_before = packer->last_token >= 0;
    if (from_before && from == 0 && count) {
        bool counts = !document->in_loss || document->in_loss[0];
        row->inputs[at] = (int32_t)packer->last_token;
        row->labels[at] = counts ? document->tokens[0] : CT_IGNORED_LABEL;
        num_valid += counts;
        at++, count--, from++;
    }
    return num_valid + put_pairs(row, at, document, from - from_before, count);
}

/* Makes sure that a document with pairs left is in hand. */
static ct_status *have_document(ct__packer *packer, int64_t *out_left)
{
    bin *b = &packer->bins[0];
    *out_left = 0;
    while (!packer->drained) {
        bool joined = !packer->opts->document_mask && packer->last_token >= 0;
        if (b->num_documents) {
            const ct__document *document = &b->documents[0];
            int64_t left = document->num_tokens - !joined - packer->from;
            if (left > 0) {
                *out_left = left;
                return NULL;
            }
            if (!packer->opts->document_mask) packer->last_token = document->tokens[document->num_tokens - 1];
            empty(b);
            packer->from = 0;
        }
        ct__document document;
        CT_TRY(packer->next(packer->context, &document, &packer->drained));
        if (!packer->drained) add(b, &document);
    }
    return NULL;
}

static ct_status *next_concat(ct__packer *packer, ct__row *row, int64_t *out_num_valid, bool *out_ended)
{
    int64_t seq_len = packer->opts->seq_len, at = 0, left;
    int32_t number = 0;
    while (at < seq_len) {
        CT_TRY(have_document(packer, &left));
        if (!left) break;
        const ct__document *document = &packer->bins[0].documents[0];
        int64_t count = CT_MIN(left, seq_len - at);
        *out_num_valid += packer->opts->document_mask ? put_pairs(row, at, document, packer->from, count)
                                                      : put_joined(packer, row, at, document, packer->from, count);
        put_document_marks(packer, row, at, count, number++);
        packer->from += count;
        at += count;
    }
    *out_ended = at == 0;
    if (at) pad(packer, row, at, number);
    return NULL;
}

/* ---- first_fit and none ---- */

/* Takes documents until a bin is to be given out: one that is full, or the fullest when a document fits in none. With
 * the documents at an end, the first that is not empty. */
static ct_status *full_bin(ct__packer *packer, bin **out_bin, ct__document *out_left_over)
{
    int64_t seq_len = packer->opts->seq_len;
    *out_bin = NULL;
    *out_left_over = (ct__document){0};
    while (!packer->drained) {
        ct__document document;
        CT_TRY(packer->next(packer->context, &document, &packer->drained));
        if (packer->drained) break;
        int64_t num_pairs = document.num_tokens - 1;
        if (num_pairs < 1 || num_pairs > seq_len) {
            packer->num_too_long += num_pairs > seq_len;
            ct__document_free(&document);
            continue;
        }
        bin *place = NULL, *fullest = &packer->bins[0];
        for (size_t i = 0; i < packer->num_bins && !place; i++) {
            bin *b = &packer->bins[i];
            bool is_taken = packer->packing == CT_PACKING_NONE && b->num_documents;
            if (!is_taken && num_pairs <= seq_len - b->num_pairs) place = b;
            if (b->num_pairs > fullest->num_pairs) fullest = b;
        }
        if (!place) {
            *out_bin = fullest;
            *out_left_over = document;
            return NULL;
        }
        add(place, &document);
        if (place->num_pairs == seq_len) {
            *out_bin = place;
            return NULL;
        }
    }
    for (size_t i = 0; i < packer->num_bins && !*out_bin; i++)
        if (packer->bins[i].num_documents) *out_bin = &packer->bins[i];
    return NULL;
}

static ct_status *next_whole(ct__packer *packer, ct__row *row, int64_t *out_num_valid, bool *out_ended)
{
    bin *b;
    ct__document left_over;
    CT_TRY(full_bin(packer, &b, &left_over));
    *out_ended = !b;
    if (!b) return NULL;
    int64_t at = 0;
    int32_t number = 0;
    for (size_t i = 0; i < b->num_documents; i++) {
        int64_t count = b->documents[i].num_tokens - 1;
        *out_num_valid += put_pairs(row, at, &b->documents[i], 0, count);
        put_document_marks(packer, row, at, count, number++);
        at += count;
    }
    pad(packer, row, at, number);
    empty(b);
    if (left_over.tokens) add(b, &left_over);
    return NULL;
}

ct_status *ct__packer_next(ct__packer *packer, ct__row *row, bool *out_ended)
{
    int64_t num_valid = 0;
    *out_ended = false;
    while (!num_valid && !*out_ended)
        CT_TRY(packer->packing == CT_PACKING_CONCAT ? next_concat(packer, row, &num_valid, out_ended)
                                                    : next_whole(packer, row, &num_valid, out_ended));
    return NULL;
}

/* ---- state ---- */

void ct__packer_save(const ct__packer *packer, ct__source_state *state)
{
    state->last_token = packer->last_token;
    state->num_too_long = packer->num_too_long;
    for (size_t i = 0; i < packer->num_bins; i++)
        for (size_t j = 0; j < packer->bins[i].num_documents; j++)
            ct__source_state_hold(state, (ct__held){.slot = (int64_t)i,
                                                    .file = packer->bins[i].documents[j].file,
                                                    .offset = packer->bins[i].documents[j].offset,
                                                    .from = packer->from});
}

void ct__packer_restore(ct__packer *packer, const ct__source_state *state)
{
    for (size_t i = 0; i < packer->num_bins; i++) empty(&packer->bins[i]);
    packer->last_token = state->last_token;
    packer->num_too_long = state->num_too_long;
    packer->from = 0;
    packer->drained = false;
}

ct_status *ct__packer_put(ct__packer *packer, const ct__held *held, ct__document *document)
{
    bool is_concat = packer->packing == CT_PACKING_CONCAT;
    if (held->slot < 0 || (uint64_t)held->slot >= packer->num_bins || held->from < 0 ||
        held->from > document->num_tokens || (is_concat && packer->bins[0].num_documents) ||
        (!is_concat && (document->num_tokens < 2 ||
                        document->num_tokens - 1 > packer->opts->seq_len - packer->bins[held->slot].num_pairs)))
        return ct_error(CT_CODE_OUT_OF_RANGE, "a document of %lld tokens does not go on in sample %lld from token %lld",
                        (long long)document->num_tokens, (long long)held->slot, (long long)held->from);
    if (is_concat) packer->from = held->from;
    add(&packer->bins[held->slot], document);
    return NULL;
}
