/* Masks of the splash kernels: from a table's numbers for blocks, from positions and segments within them. */
#include "kernels/attention/mosaic_mask.h"

#include <stdio.h>

#include "base/macros.h"

ct_mosaic *ct__splash_new(const ct__splash *s, const char *what)
{
    char window[32] = "", name[96];
    if (s->window > 0) snprintf(window, sizeof(window), "_window%lld", (long long)s->window);
    snprintf(name, sizeof(name), "ctitan_splash_%s%s%s", what, s->causal ? "" : "_full", window);
    return ct_mosaic_new(name);
}

void ct__splash_declare_tables(ct_mosaic *k, ct__splash_pair *pair)
{
    ct__splash_side *sides[2] = {&pair->q, &pair->kv};
    for (int i = 0; i < 2; i++)
        sides[i]->table = ct_mosaic_prefetch(k, pair->splash->mask_batch * sides[i]->num_blocks * CT__SPLASH_FIELDS);
}

/* The row of tables and masks. */
static ct_mosaic_value batch_of(ct_mosaic *k, const ct__splash_pair *pair)
{
    if (pair->splash->mask_batch == 1) return ct_mosaic_int(k, 0);
    return ct_mosaic_div(k, pair->row, ct_mosaic_int(k, pair->batch_rows));
}

static ct_mosaic_value index_of(ct_mosaic *k, const ct__splash_side *side)
{
    if (!side->base.id) return side->index;
    return ct_mosaic_add(k, side->index, ct_mosaic_scalar(k, side->base, ct_mosaic_int(k, 0)));
}

static ct_mosaic_value field(ct_mosaic *k, const ct__splash_pair *pair, const ct__splash_side *side,
                             ct__splash_field which)
{
    ct_mosaic_value block = index_of(k, side);
    if (pair->splash->mask_batch > 1) {
        ct_mosaic_value before = ct_mosaic_mul(k, batch_of(k, pair), ct_mosaic_int(k, side->num_blocks));
        block = ct_mosaic_add(k, before, block);
    }
    ct_mosaic_value at = ct_mosaic_mul(k, block, ct_mosaic_int(k, CT__SPLASH_FIELDS));
    return ct_mosaic_scalar(k, side->table, ct_mosaic_add(k, at, ct_mosaic_int(k, which)));
}

ct_mosaic_value ct__splash_shown(ct_mosaic *k, const ct__splash_pair *pair, const ct__splash_side *side)
{
    if (!side->clamped) return index_of(k, side);
    const ct__splash_side *other = side == &pair->q ? &pair->kv : &pair->q;
    ct_mosaic_value first = field(k, pair, other, CT__FIRST), last = field(k, pair, other, CT__LAST);
    return ct_mosaic_min(k, ct_mosaic_max(k, index_of(k, side), first), last);
}

/* ---- windows ---- */

static void place(ct_mosaic *k, const ct__splash_pair *pair, const ct__splash_side *side, ct_mosaic_value *out_blocks)
{
    ct_mosaic_value shown = ct__splash_shown(k, pair, side), zero = ct_mosaic_int(k, 0);
    out_blocks[0] = batch_of(k, pair);
    out_blocks[1] = side->along_rows ? shown : zero;
    out_blocks[2] = side->along_rows ? zero : shown;
}

static void place_q(ct_mosaic *k, const void *context, ct_mosaic_value *out_blocks)
{
    const ct__splash_pair *pair = context;
    place(k, pair, &pair->q, out_blocks);
}

static void place_kv(ct_mosaic *k, const void *context, ct_mosaic_value *out_blocks)
{
    const ct__splash_pair *pair = context;
    place(k, pair, &pair->kv, out_blocks);
}

static ct_mosaic_value declare_mask(ct_mosaic *k, ct__splash_pair *pair, bool is_q)
{
    const ct__splash_side *side = is_q ? &pair->q : &pair->kv;
    int64_t sizes[3] = {1, side->along_rows ? side->block : 1, side->along_rows ? CT_MOSAIC_LANES : side->block};
    return ct_mosaic_input(k, CT_MOSAIC_I32, 3, sizes, is_q ? place_q : place_kv, pair);
}

void ct__splash_declare_masks(ct_mosaic *k, ct__splash_pair *pair)
{
    const ct__splash *s = pair->splash;
    if (s->q_positions) pair->q.positions = declare_mask(k, pair, true);
    if (s->kv_positions) pair->kv.positions = declare_mask(k, pair, false);
    if (!s->segments) return;
    pair->q.segments = declare_mask(k, pair, true);
    pair->kv.segments = declare_mask(k, pair, false);
}

/* ---- blocks ---- */

static bool is_local(const ct__splash *s)
{
    return s->window > 0;
}

static bool is_padded(const ct__splash *s)
{
    return s->num_keys < s->kv_len;
}

/* a < b + number */
static ct_mosaic_value before(ct_mosaic *k, ct_mosaic_value a, ct_mosaic_value b, int64_t number)
{
    return ct_mosaic_compare(k, CT_MOSAIC_LT, a, ct_mosaic_add(k, b, ct_mosaic_int(k, number)));
}

/* Some pair of positions within these bounds may be seen (all: all are): nearest and farthest of each side. */
static ct_mosaic_value positions_seen(ct_mosaic *k, const ct__splash_pair *pair, bool all)
{
    const ct__splash *s = pair->splash;
    ct_mosaic_value seen = {0};
    if (!s->causal && !is_local(s)) return seen;
    ct_mosaic_value q_low = field(k, pair, &pair->q, all ? CT__LEAST_POSITION : CT__GREATEST_POSITION);
    ct_mosaic_value q_high = field(k, pair, &pair->q, all ? CT__GREATEST_POSITION : CT__LEAST_POSITION);
    ct_mosaic_value kv_low = field(k, pair, &pair->kv, all ? CT__LEAST_POSITION : CT__GREATEST_POSITION);
    ct_mosaic_value kv_high = field(k, pair, &pair->kv, all ? CT__GREATEST_POSITION : CT__LEAST_POSITION);
    if (s->causal) seen = ct_mosaic_compare(k, CT_MOSAIC_LE, kv_high, q_low);
    if (is_local(s)) seen = ct_mosaic_and(k, seen, before(k, q_high, kv_low, s->window));
    if (is_local(s) && !s->causal) seen = ct_mosaic_and(k, seen, before(k, kv_high, q_low, s->window));
    return seen;
}

static ct_mosaic_value segments_seen(ct_mosaic *k, const ct__splash_pair *pair, bool all)
{
    if (!pair->splash->segments) return (ct_mosaic_value){0};
    ct_mosaic_value q_low = field(k, pair, &pair->q, CT__LEAST_SEGMENT);
    ct_mosaic_value q_high = field(k, pair, &pair->q, CT__GREATEST_SEGMENT);
    ct_mosaic_value kv_low = field(k, pair, &pair->kv, CT__LEAST_SEGMENT);
    ct_mosaic_value kv_high = field(k, pair, &pair->kv, CT__GREATEST_SEGMENT);
    if (!all)
        return ct_mosaic_and(k, ct_mosaic_compare(k, CT_MOSAIC_LE, q_low, kv_high),
                             ct_mosaic_compare(k, CT_MOSAIC_LE, kv_low, q_high));
    ct_mosaic_value same = ct_mosaic_compare(k, CT_MOSAIC_EQ, q_low, q_high);
    same = ct_mosaic_and(k, same, ct_mosaic_compare(k, CT_MOSAIC_EQ, kv_low, kv_high));
    return ct_mosaic_and(k, same, ct_mosaic_compare(k, CT_MOSAIC_EQ, q_low, kv_low));
}

void ct__splash_visit(ct_mosaic *k, const ct__splash_pair *pair, ct__splash_body *body, void *context)
{
    ct_mosaic_value some = ct_mosaic_and(k, positions_seen(k, pair, false), segments_seen(k, pair, false));
    if (some.id) ct_mosaic_if(k, some);
    ct_mosaic_value all = ct_mosaic_and(k, positions_seen(k, pair, true), segments_seen(k, pair, true));
    if (is_padded(pair->splash))
        all = ct_mosaic_and(
            k, all, ct_mosaic_compare(k, CT_MOSAIC_LT, pair->kv.index, ct_mosaic_int(k, pair->kv.num_blocks - 1)));
    if (all.id) {
        ct_mosaic_value number = ct_mosaic_convert(k, all, CT_MOSAIC_I32);
        ct_mosaic_if(k, ct_mosaic_compare(k, CT_MOSAIC_EQ, number, ct_mosaic_int(k, 0)));
        body(k, context, true);
        ct_mosaic_end(k);
        ct_mosaic_if(k, all);
    }
    body(k, context, false);
    if (all.id) ct_mosaic_end(k);
    if (some.id) ct_mosaic_end(k);
}

/* ---- elements ---- */

/* A window's numbers for the part that begins at offset: [rows 128 -> columns] or [1 columns]. */
static ct_mosaic_value part(ct_mosaic *k, const ct__splash_side *side, ct_mosaic_value window, int64_t offset,
                            int64_t rows, int64_t columns)
{
    if (!side->along_rows) return ct_mosaic_load(k, window, NULL, 0, 1, offset, columns);
    return ct_mosaic_widen(k, ct_mosaic_load(k, window, NULL, offset, rows, 0, CT_MOSAIC_LANES), columns);
}

static ct_mosaic_value positions(ct_mosaic *k, const ct__splash_pair *pair, const ct__splash_side *side, int64_t offset,
                                 int64_t rows, int64_t columns)
{
    if (side->positions.id) return part(k, side, side->positions, offset, rows, columns);
    ct_mosaic_value first = field(k, pair, side, CT__LEAST_POSITION);
    if (offset) first = ct_mosaic_add(k, first, ct_mosaic_int(k, offset));
    return ct_mosaic_add(k, ct_mosaic_iota(k, rows, columns, side->along_rows ? 0 : 1), first);
}

int64_t ct__splash_first_query(const ct__splash_pair *pair, int64_t offset)
{
    const ct__splash *s = pair->splash;
    bool is_plain = s->causal && !is_local(s) && !s->segments && !s->q_positions && !s->kv_positions;
    /* with more blocks of queries than of keys, the last keys' padding is masked off the diagonal, too */
    bool is_square = pair->q.block == pair->kv.block && pair->q.num_blocks <= pair->kv.num_blocks;
    return is_plain && is_square ? offset : 0;
}

ct_mosaic_value ct__splash_mask(ct_mosaic *k, const ct__splash_pair *pair, int64_t first, int64_t offset,
                                int64_t num_keys)
{
    const ct__splash *s = pair->splash;
    const ct__splash_side *q = &pair->q, *kv = &pair->kv;
    int64_t num_queries = q->block - first;
    int64_t rows = q->along_rows ? num_queries : num_keys, columns = q->along_rows ? num_keys : num_queries;
    ct_mosaic_value seen = {0};
    if (s->causal || is_local(s)) {
        ct_mosaic_value query = positions(k, pair, q, first, rows, columns);
        ct_mosaic_value key = positions(k, pair, kv, offset, rows, columns);
        if (s->causal) seen = ct_mosaic_compare(k, CT_MOSAIC_LE, key, query);
        if (is_local(s)) seen = ct_mosaic_and(k, seen, before(k, query, key, s->window));
        if (is_local(s) && !s->causal) seen = ct_mosaic_and(k, seen, before(k, key, query, s->window));
    }
    if (s->segments)
        seen = ct_mosaic_and(k, seen,
                             ct_mosaic_compare(k, CT_MOSAIC_EQ, part(k, q, q->segments, first, rows, columns),
                                               part(k, kv, kv->segments, offset, rows, columns)));
    if (is_padded(s)) {
        ct_mosaic_value start = ct_mosaic_mul(k, kv->index, ct_mosaic_int(k, kv->block));
        ct_mosaic_value left = ct_mosaic_sub(k, ct_mosaic_int(k, s->num_keys - offset), start);
        ct_mosaic_value key = ct_mosaic_iota(k, rows, columns, kv->along_rows ? 0 : 1);
        seen = ct_mosaic_and(k, seen, ct_mosaic_compare(k, CT_MOSAIC_LT, key, left));
    }
    return seen;
}
