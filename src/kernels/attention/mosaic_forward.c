/* The forward kernel: online softmax over the blocks of keys.
 *
 *   grid [R, blocks of queries, blocks of keys]; scratch: max, total [q_block 128] (a row's number in all lanes), sum
 *
 * max is of raw scores; the scale is in the exponent: p = 2^((score - max) scale log2(e)).
 */
#include <math.h>

#include "base/macros.h"
#include "kernels/attention/mosaic_mask.h"

typedef struct forward {
    ct__splash_pair pair;
    ct_mosaic_value q, k, v, result, lse, max, total, sum;
    double unit; /* of scores, as they stand in max: natural ones are that times as much */
} forward;

static void place_queries(ct_mosaic *k, const void *context, ct_mosaic_value *out_blocks)
{
    const forward *f = context;
    out_blocks[0] = f->pair.row;
    out_blocks[1] = f->pair.q.index;
    out_blocks[2] = ct_mosaic_int(k, 0);
}

static void place_keys(ct_mosaic *k, const void *context, ct_mosaic_value *out_blocks)
{
    const forward *f = context;
    int64_t group = f->pair.splash->group;
    out_blocks[0] = group > 1 ? ct_mosaic_div(k, f->pair.row, ct_mosaic_int(k, group)) : f->pair.row;
    out_blocks[1] = ct__splash_shown(k, &f->pair, &f->pair.kv);
    out_blocks[2] = ct_mosaic_int(k, 0);
}

static void place_row(ct_mosaic *k, const void *context, ct_mosaic_value *out_blocks)
{
    const forward *f = context;
    out_blocks[0] = f->pair.row;
    out_blocks[1] = ct_mosaic_int(k, 0);
    out_blocks[2] = f->pair.q.index;
}

static void attend(ct_mosaic *k, void *context, bool masked)
{
    const forward *f = context;
    const ct__splash *s = f->pair.splash;
    int64_t keys = s->blocks.kv_compute, dim = s->head_dim, lanes = CT_MOSAIC_LANES;
    ct_mosaic_value unit = ct_mosaic_float(k, f->unit * CT__LOG2E);
    for (int64_t offset = 0; offset < s->blocks.kv; offset += keys) {
        int64_t first = masked ? ct__splash_first_query(&f->pair, offset) : 0, rows = s->blocks.q - first;
        ct_mosaic_value q = ct_mosaic_load(k, f->q, NULL, first, rows, 0, dim);
        ct_mosaic_value key = ct_mosaic_load(k, f->k, NULL, offset, keys, 0, dim);
        ct_mosaic_value scores = ct_mosaic_matmul(k, q, 1, key, 1);
        if (s->soft_cap > 0)
            scores = ct_mosaic_tanh(k, ct_mosaic_mul(k, scores, ct_mosaic_float(k, s->scale / s->soft_cap)));
        if (masked)
            scores = ct_mosaic_select(k, ct__splash_mask(k, &f->pair, first, offset, keys), scores,
                                      ct_mosaic_float(k, CT__SPLASH_HIDDEN));
        ct_mosaic_value old = ct_mosaic_load(k, f->max, NULL, first, rows, 0, lanes);
        ct_mosaic_value max = ct_mosaic_max(k, old, ct_mosaic_row_max(k, scores));
        ct_mosaic_value above = ct_mosaic_sub(k, scores, ct_mosaic_widen(k, max, keys));
        ct_mosaic_value p = ct_mosaic_exp2(k, ct_mosaic_mul(k, above, unit));
        ct_mosaic_value fade = ct_mosaic_exp2(k, ct_mosaic_mul(k, ct_mosaic_sub(k, old, max), unit));
        ct_mosaic_value total = ct_mosaic_mul(k, fade, ct_mosaic_load(k, f->total, NULL, first, rows, 0, lanes));
        total = ct_mosaic_add(k, total, ct_mosaic_row_sum(k, p));
        ct_mosaic_store(k, max, f->max, NULL, first, 0);
        ct_mosaic_store(k, total, f->total, NULL, first, 0);
        ct_mosaic_value v = ct_mosaic_load(k, f->v, NULL, offset, keys, 0, dim);
        ct_mosaic_value mixed = ct_mosaic_matmul(k, ct_mosaic_convert(k, p, s->element), 1, v, 0);
        ct_mosaic_value sum = ct_mosaic_load(k, f->sum, NULL, first, rows, 0, dim);
        sum = ct_mosaic_mul(k, sum, ct_mosaic_widen(k, fade, dim));
        ct_mosaic_store(k, ct_mosaic_add(k, sum, mixed), f->sum, NULL, first, 0);
    }
}

static void begin(ct_mosaic *k, const forward *f)
{
    const ct__splash *s = f->pair.splash;
    ct_mosaic_if(k, ct_mosaic_compare(k, CT_MOSAIC_EQ, f->pair.kv.index, ct_mosaic_int(k, 0)));
    int64_t rows = s->blocks.q, lanes = CT_MOSAIC_LANES;
    ct_mosaic_store(k, ct_mosaic_full(k, CT_MOSAIC_F32, rows, lanes, CT__SPLASH_HIDDEN), f->max, NULL, 0, 0);
    ct_mosaic_store(k, ct_mosaic_full(k, CT_MOSAIC_F32, rows, lanes, 0), f->total, NULL, 0, 0);
    ct_mosaic_store(k, ct_mosaic_full(k, CT_MOSAIC_F32, rows, s->head_dim, 0), f->sum, NULL, 0, 0);
    ct_mosaic_end(k);
}

/* A query that saw nothing has the hidden score as its greatest: 0, and -inf. */
static void finish(ct_mosaic *k, const forward *f)
{
    const ct__splash *s = f->pair.splash;
    int64_t rows = s->blocks.q, lanes = CT_MOSAIC_LANES;
    ct_mosaic_if(k, ct_mosaic_compare(k, CT_MOSAIC_EQ, f->pair.kv.index, ct_mosaic_int(k, f->pair.kv.num_blocks - 1)));
    ct_mosaic_value max = ct_mosaic_load(k, f->max, NULL, 0, rows, 0, lanes);
    ct_mosaic_value total = ct_mosaic_load(k, f->total, NULL, 0, rows, 0, lanes);
    ct_mosaic_value seen = ct_mosaic_compare(k, CT_MOSAIC_LT, ct_mosaic_float(k, CT__SPLASH_HIDDEN / 2), max);
    total = ct_mosaic_select(k, seen, total, ct_mosaic_float(k, 1));
    ct_mosaic_value factor = ct_mosaic_div(k, ct_mosaic_float(k, 1), total);
    factor = ct_mosaic_select(k, seen, factor, ct_mosaic_float(k, 0));
    ct_mosaic_value sum = ct_mosaic_load(k, f->sum, NULL, 0, rows, 0, s->head_dim);
    sum = ct_mosaic_mul(k, sum, ct_mosaic_widen(k, factor, s->head_dim));
    ct_mosaic_store(k, ct_mosaic_convert(k, sum, ct__splash_results(s)), f->result, NULL, 0, 0);
    ct_mosaic_value lse = ct_mosaic_mul(k, max, ct_mosaic_float(k, f->unit));
    lse = ct_mosaic_add(k, lse, ct_mosaic_log(k, total));
    lse = ct_mosaic_select(k, seen, lse, ct_mosaic_float(k, -INFINITY));
    ct_mosaic_store(k, ct_mosaic_slice(k, ct_mosaic_transpose(k, lse), 1, rows), f->lse, NULL, 0, 0);
    ct_mosaic_end(k);
}

ct_mosaic *ct__splash_forward(const ct__splash *s)
{
    int64_t rows = s->blocks.q, keys = s->blocks.kv, dim = s->head_dim;
    forward f = {.unit = s->soft_cap > 0 ? s->soft_cap : s->scale};
    ct__splash_pair *pair = &f.pair;
    *pair = (ct__splash_pair){.splash = s, .batch_rows = s->heads};
    ct_mosaic *k = ct__splash_new(s, "forward");
    pair->q = (ct__splash_side){.block = rows, .num_blocks = s->q_len / rows, .along_rows = true};
    pair->kv = (ct__splash_side){.block = keys, .num_blocks = s->kv_len / keys, .clamped = true};
    pair->row = ct_mosaic_grid(k, s->rows, true);
    pair->q.index = ct_mosaic_grid(k, pair->q.num_blocks, false);
    pair->kv.index = ct_mosaic_grid(k, pair->kv.num_blocks, false);
    ct__splash_declare_tables(k, pair);
    f.q = ct_mosaic_input(k, s->element, 3, (int64_t[]){1, rows, dim}, place_queries, &f);
    f.k = ct_mosaic_input(k, s->element, 3, (int64_t[]){1, keys, dim}, place_keys, &f);
    f.v = ct_mosaic_input(k, s->element, 3, (int64_t[]){1, keys, dim}, place_keys, &f);
    ct__splash_declare_masks(k, pair);
    f.result = ct_mosaic_output(k, ct__splash_results(s), 3, (int64_t[]){1, rows, dim}, place_queries, &f);
    f.lse = ct_mosaic_output(k, CT_MOSAIC_F32, 3, (int64_t[]){1, 1, rows}, place_row, &f);
    f.max = ct_mosaic_scratch(k, CT_MOSAIC_F32, 2, (int64_t[]){rows, CT_MOSAIC_LANES});
    f.total = ct_mosaic_scratch(k, CT_MOSAIC_F32, 2, (int64_t[]){rows, CT_MOSAIC_LANES});
    f.sum = ct_mosaic_scratch(k, CT_MOSAIC_F32, 2, (int64_t[]){rows, dim});
    begin(k, &f);
    ct__splash_visit(k, pair, attend, &f);
    finish(k, &f);
    double queries = (double)s->rows * (double)s->q_len, pairs = queries * (double)s->kv_len * ct__splash_share(s);
    double keys_fetched = pairs / (double)rows; /* for every block of queries anew */
    double bytes = (s->element == CT_MOSAIC_F32 ? 4.0 : 2.0) * (double)dim;
    ct_mosaic_cost(k, 4 * pairs * (double)dim, pairs, (2 * queries + 2 * keys_fetched) * bytes);
    ct_mosaic_limit(k, ct__splash_limit(k, s, rows, s->blocks.kv_compute, false));
    return k;
}
