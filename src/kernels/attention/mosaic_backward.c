/* The backward kernels. Scores are taken again, with keys along rows, so that what belongs to a query lies along lanes:
 *
 *   p  = 2^(scores log2(e) - lse)          [keys queries]
 *   ds = p (v d_out - delta)               (1 - tanh^2) more with a soft cap
 *   dv += p d_out,  dk += ds q,  dq += ds^T k
 *
 *   dkv     grid [K, blocks of keys, group, blocks of queries]; dk, dv of one block of keys are summed in scratch
 *   dq      grid [R, blocks of queries, blocks of keys]; dq of one block of queries is summed in scratch
 *   fused   dkv's grid; dq of all the queries of a group is summed in scratch beside it, and leaves with the last block
 *           of keys. Queries that scratch cannot hold at once come in parts: then dk and dv go on in f32
 *
 * In parts, q's windows begin at a block that a prefetched scalar names, so nothing is copied.
 */
#include "base/macros.h"
#include "kernels/attention/mosaic_mask.h"

typedef struct backward {
    ct__splash_pair pair;
    int64_t q_block, kv_block, compute;
    bool in_parts;
    ct_mosaic_value group, step; /* grid of dkv: head of the group; block of queries, within the part */
    ct_mosaic_value q, k, v, d_out, lse, delta;
    ct_mosaic_value old_dk, old_dv, out_dq, out_dk, out_dv; /* windows */
    ct_mosaic_value dq, dk, dv;                             /* scratch; {0}: not wanted */
    int64_t num_steps;
} backward;

static bool is_dkv(const backward *b)
{
    return b->group.id != 0;
}

/* ---- where windows stand ---- */

static ct_mosaic_value q_row(ct_mosaic *k, const backward *b)
{
    int64_t group = b->pair.splash->group;
    if (!is_dkv(b)) return b->pair.row;
    return ct_mosaic_add(k, ct_mosaic_mul(k, b->pair.row, ct_mosaic_int(k, group)), b->group);
}

static ct_mosaic_value kv_row(ct_mosaic *k, const backward *b)
{
    int64_t group = b->pair.splash->group;
    return is_dkv(b) || group == 1 ? b->pair.row : ct_mosaic_div(k, b->pair.row, ct_mosaic_int(k, group));
}

static void place_queries(ct_mosaic *k, const void *context, ct_mosaic_value *out_blocks)
{
    const backward *b = context;
    out_blocks[0] = q_row(k, b);
    out_blocks[1] = ct__splash_shown(k, &b->pair, &b->pair.q);
    out_blocks[2] = ct_mosaic_int(k, 0);
}

static void place_numbers(ct_mosaic *k, const void *context, ct_mosaic_value *out_blocks)
{
    const backward *b = context;
    out_blocks[0] = q_row(k, b);
    out_blocks[1] = ct_mosaic_int(k, 0);
    out_blocks[2] = ct__splash_shown(k, &b->pair, &b->pair.q);
}

static void place_keys(ct_mosaic *k, const void *context, ct_mosaic_value *out_blocks)
{
    const backward *b = context;
    out_blocks[0] = kv_row(k, b);
    out_blocks[1] = ct__splash_shown(k, &b->pair, &b->pair.kv);
    out_blocks[2] = ct_mosaic_int(k, 0);
}

static void place_dq(ct_mosaic *k, const void *context, ct_mosaic_value *out_blocks)
{
    const backward *b = context;
    out_blocks[0] = b->pair.row;
    out_blocks[1] = b->pair.q.index;
    out_blocks[2] = ct_mosaic_int(k, 0);
}

/* On the first block until the last block of keys, where it is filled. */
static void place_fused_dq(ct_mosaic *k, const void *context, ct_mosaic_value *out_blocks)
{
    const backward *b = context;
    ct_mosaic_value zero = ct_mosaic_int(k, 0), last = ct_mosaic_int(k, b->pair.kv.num_blocks - 1);
    ct_mosaic_value is_last = ct_mosaic_compare(k, CT_MOSAIC_EQ, b->pair.kv.index, last);
    ct_mosaic_value head = ct_mosaic_select(k, is_last, b->group, zero);
    ct_mosaic_value first = ct_mosaic_mul(k, b->pair.row, ct_mosaic_int(k, b->pair.splash->group));
    out_blocks[0] = ct_mosaic_add(k, first, head);
    out_blocks[1] = ct_mosaic_select(k, is_last, b->step, zero);
    out_blocks[2] = zero;
}

/* ---- a pair of blocks ---- */

/* The block of fused dq that belongs to this step. */
static ct_mosaic_value dq_place(ct_mosaic *k, const backward *b)
{
    if (!is_dkv(b)) return ct_mosaic_int(k, 0);
    return ct_mosaic_add(k, ct_mosaic_mul(k, b->group, ct_mosaic_int(k, b->num_steps)), b->step);
}

static void add_to(ct_mosaic *k, ct_mosaic_value scratch, const ct_mosaic_value *leading, int64_t row,
                   ct_mosaic_value x)
{
    ct_mosaic_value old = ct_mosaic_load(k, scratch, leading, row, x.sizes[0], 0, x.sizes[1]);
    ct_mosaic_store(k, ct_mosaic_add(k, old, x), scratch, leading, row, 0);
}

static void attend_back(ct_mosaic *k, void *context, bool masked)
{
    const backward *b = context;
    const ct__splash *s = b->pair.splash;
    int64_t keys = b->compute, dim = s->head_dim;
    for (int64_t offset = 0; offset < b->kv_block; offset += keys) {
        int64_t first = masked ? ct__splash_first_query(&b->pair, offset) : 0, rows = b->q_block - first;
        ct_mosaic_value q = ct_mosaic_load(k, b->q, NULL, first, rows, 0, dim);
        ct_mosaic_value key = ct_mosaic_load(k, b->k, NULL, offset, keys, 0, dim);
        ct_mosaic_value scores = ct_mosaic_matmul(k, key, 1, q, 1), bent = {0};
        double unit = s->scale;
        if (s->soft_cap > 0) {
            scores = bent = ct_mosaic_tanh(k, ct_mosaic_mul(k, scores, ct_mosaic_float(k, unit / s->soft_cap)));
            unit = s->soft_cap;
        }
        ct_mosaic_value lse = ct_mosaic_load(k, b->lse, NULL, 0, 1, first, rows);
        ct_mosaic_value above = ct_mosaic_mul(k, scores, ct_mosaic_float(k, unit * CT__LOG2E));
        ct_mosaic_value p = ct_mosaic_exp2(k, ct_mosaic_sub(k, above, lse));
        if (masked)
            p = ct_mosaic_select(k, ct__splash_mask(k, &b->pair, first, offset, keys), p, ct_mosaic_float(k, 0));
        ct_mosaic_value d_out = ct_mosaic_load(k, b->d_out, NULL, first, rows, 0, dim);
        if (b->dv.id)
            add_to(k, b->dv, NULL, offset, ct_mosaic_matmul(k, ct_mosaic_convert(k, p, s->element), 1, d_out, 0));
        ct_mosaic_value v = ct_mosaic_load(k, b->v, NULL, offset, keys, 0, dim);
        ct_mosaic_value d_p = ct_mosaic_matmul(k, v, 1, d_out, 1);
        ct_mosaic_value delta = ct_mosaic_load(k, b->delta, NULL, 0, 1, first, rows);
        ct_mosaic_value ds = ct_mosaic_mul(k, p, ct_mosaic_sub(k, d_p, delta));
        if (bent.id) ds = ct_mosaic_sub(k, ds, ct_mosaic_mul(k, ct_mosaic_mul(k, ds, bent), bent));
        ds = ct_mosaic_convert(k, ds, s->element);
        if (b->dk.id) add_to(k, b->dk, NULL, offset, ct_mosaic_matmul(k, ds, 1, q, 0));
        ct_mosaic_value place = b->dq.id ? dq_place(k, b) : b->dq;
        if (b->dq.id) add_to(k, b->dq, &place, first, ct_mosaic_matmul(k, ds, 0, key, 0));
    }
}

/* ---- begin and end of sums ---- */

static ct_mosaic_value is_at(ct_mosaic *k, ct_mosaic_value index, int64_t at)
{
    return ct_mosaic_compare(k, CT_MOSAIC_EQ, index, ct_mosaic_int(k, at));
}

static ct_mosaic_value all_of(ct_mosaic *k, ct_mosaic_value memory)
{
    return ct_mosaic_load(k, memory, NULL, 0, memory.sizes[memory.rank - 2], 0, memory.sizes[memory.rank - 1]);
}

static void clear(ct_mosaic *k, ct_mosaic_value scratch, const ct_mosaic_value *leading)
{
    int64_t rows = scratch.sizes[scratch.rank - 2], columns = scratch.sizes[scratch.rank - 1];
    ct_mosaic_store(k, ct_mosaic_full(k, CT_MOSAIC_F32, rows, columns, 0), scratch, leading, 0, 0);
}

static void begin(ct_mosaic *k, const backward *b)
{
    if (b->dk.id) {
        ct_mosaic_if(k, ct_mosaic_and(k, is_at(k, b->group, 0), is_at(k, b->step, 0)));
        if (b->in_parts) {
            ct_mosaic_store(k, all_of(k, b->old_dk), b->dk, NULL, 0, 0);
            ct_mosaic_store(k, all_of(k, b->old_dv), b->dv, NULL, 0, 0);
        } else {
            clear(k, b->dk, NULL);
            clear(k, b->dv, NULL);
        }
        ct_mosaic_end(k);
    }
    if (b->dq.id) {
        ct_mosaic_if(k, is_at(k, b->pair.kv.index, 0));
        ct_mosaic_value place = dq_place(k, b);
        clear(k, b->dq, &place);
        ct_mosaic_end(k);
    }
}

static void finish(ct_mosaic *k, const backward *b)
{
    const ct__splash *s = b->pair.splash;
    ct_mosaic_element element = b->in_parts ? CT_MOSAIC_F32 : ct__splash_results(s);
    if (b->dk.id) {
        ct_mosaic_if(k, ct_mosaic_and(k, is_at(k, b->group, s->group - 1), is_at(k, b->step, b->num_steps - 1)));
        ct_mosaic_value dk = all_of(k, b->dk);
        if (!b->in_parts) dk = ct_mosaic_mul(k, dk, ct_mosaic_float(k, s->scale));
        ct_mosaic_store(k, ct_mosaic_convert(k, dk, element), b->out_dk, NULL, 0, 0);
        ct_mosaic_store(k, ct_mosaic_convert(k, all_of(k, b->dv), element), b->out_dv, NULL, 0, 0);
        ct_mosaic_end(k);
    }
    if (b->dq.id) {
        ct_mosaic_if(k, is_at(k, b->pair.kv.index, b->pair.kv.num_blocks - 1));
        ct_mosaic_value place = dq_place(k, b);
        ct_mosaic_value dq = ct_mosaic_load(k, b->dq, &place, 0, b->q_block, 0, s->head_dim);
        dq = ct_mosaic_mul(k, dq, ct_mosaic_float(k, s->scale));
        ct_mosaic_store(k, ct_mosaic_convert(k, dq, ct__splash_results(s)), b->out_dq, NULL, 0, 0);
        ct_mosaic_end(k);
    }
}

/* ---- kernels ---- */

static void declare_inputs(ct_mosaic *k, backward *b)
{
    const ct__splash *s = b->pair.splash;
    const int64_t queries[3] = {1, b->q_block, s->head_dim}, keys[3] = {1, b->kv_block, s->head_dim};
    const int64_t numbers[3] = {1, 1, b->q_block};
    b->q = ct_mosaic_input(k, s->element, 3, queries, place_queries, b);
    b->k = ct_mosaic_input(k, s->element, 3, keys, place_keys, b);
    b->v = ct_mosaic_input(k, s->element, 3, keys, place_keys, b);
    ct__splash_declare_masks(k, &b->pair);
    b->d_out = ct_mosaic_input(k, s->element, 3, queries, place_queries, b);
    b->lse = ct_mosaic_input(k, CT_MOSAIC_F32, 3, numbers, place_numbers, b);
    b->delta = ct_mosaic_input(k, CT_MOSAIC_F32, 3, numbers, place_numbers, b);
    if (!b->in_parts) return;
    b->old_dk = ct_mosaic_input(k, CT_MOSAIC_F32, 3, keys, place_keys, b);
    b->old_dv = ct_mosaic_input(k, CT_MOSAIC_F32, 3, keys, place_keys, b);
}

static void emit(ct_mosaic *k, backward *b, int num_products)
{
    const ct__splash *s = b->pair.splash;
    begin(k, b);
    ct__splash_visit(k, &b->pair, attend_back, b);
    finish(k, b);
    double queries = (double)(b->num_steps ? b->num_steps * b->q_block : s->q_len) * (double)s->rows;
    int64_t kv_rows = s->rows / s->group;
    double keys = (double)kv_rows * (double)s->kv_len;
    double pairs = queries * (double)s->kv_len * ct__splash_share(s);
    double bytes = (s->element == CT_MOSAIC_F32 ? 4.0 : 2.0) * (double)s->head_dim;
    /* what the grid's inner indices walk over is fetched anew for every block of the outer: q, d_out or k, v */
    double fetched = is_dkv(b) ? 2 * pairs / (double)b->kv_block + 4 * keys : 2 * pairs / (double)b->q_block;
    double kept = b->dq.id ? (is_dkv(b) ? 1 : 3) * queries : 0;
    ct_mosaic_cost(k, 2 * num_products * pairs * (double)s->head_dim, pairs, (fetched + kept) * bytes);
    ct_mosaic_limit(k, ct__splash_limit(k, s, b->q_block, b->compute, true));
}

ct_mosaic *ct__splash_dkv(const ct__splash *s, bool fused, int64_t part_blocks)
{
    backward b = {.q_block = s->blocks.q_dkv, .kv_block = s->blocks.kv_dkv, .compute = s->blocks.kv_dkv_compute};
    ct__splash_pair *pair = &b.pair;
    *pair = (ct__splash_pair){.splash = s, .batch_rows = s->heads / s->group};
    ct_mosaic *k = ct__splash_new(s, fused ? "backward" : "dkv");
    pair->q = (ct__splash_side){.block = b.q_block, .num_blocks = s->q_len / b.q_block, .clamped = true};
    pair->kv = (ct__splash_side){.block = b.kv_block, .num_blocks = s->kv_len / b.kv_block, .along_rows = true};
    b.num_steps = part_blocks;
    b.in_parts = part_blocks < pair->q.num_blocks;
    pair->row = ct_mosaic_grid(k, s->rows / s->group, true);
    pair->kv.index = ct_mosaic_grid(k, pair->kv.num_blocks, false);
    b.group = ct_mosaic_grid(k, s->group, false);
    b.step = ct_mosaic_grid(k, b.num_steps, false);
    ct__splash_declare_tables(k, pair);
    if (b.in_parts) pair->q.base = ct_mosaic_prefetch(k, 1);
    pair->q.index = b.step;
    declare_inputs(k, &b);
    const int64_t keys[3] = {1, b.kv_block, s->head_dim};
    if (fused)
        b.out_dq =
            ct_mosaic_output(k, ct__splash_results(s), 3, (int64_t[]){1, b.q_block, s->head_dim}, place_fused_dq, &b);
    ct_mosaic_element element = b.in_parts ? CT_MOSAIC_F32 : ct__splash_results(s);
    b.out_dk = ct_mosaic_output(k, element, 3, keys, place_keys, &b);
    b.out_dv = ct_mosaic_output(k, element, 3, keys, place_keys, &b);
    if (fused)
        b.dq = ct_mosaic_scratch(k, CT_MOSAIC_F32, 3, (int64_t[]){s->group * b.num_steps, b.q_block, s->head_dim});
    b.dk = ct_mosaic_scratch(k, CT_MOSAIC_F32, 2, keys + 1);
    b.dv = ct_mosaic_scratch(k, CT_MOSAIC_F32, 2, keys + 1);
    emit(k, &b, fused ? 5 : 4);
    return k;
}

ct_mosaic *ct__splash_dq(const ct__splash *s)
{
    backward b = {.q_block = s->blocks.q_dq, .kv_block = s->blocks.kv_dq, .compute = s->blocks.kv_dq};
    ct__splash_pair *pair = &b.pair;
    *pair = (ct__splash_pair){.splash = s, .batch_rows = s->heads};
    ct_mosaic *k = ct__splash_new(s, "dq");
    pair->q = (ct__splash_side){.block = b.q_block, .num_blocks = s->q_len / b.q_block};
    pair->kv = (ct__splash_side){
        .block = b.kv_block, .num_blocks = s->kv_len / b.kv_block, .along_rows = true, .clamped = true};
    pair->row = ct_mosaic_grid(k, s->rows, true);
    pair->q.index = ct_mosaic_grid(k, pair->q.num_blocks, false);
    pair->kv.index = ct_mosaic_grid(k, pair->kv.num_blocks, false);
    ct__splash_declare_tables(k, pair);
    declare_inputs(k, &b);
    b.out_dq = ct_mosaic_output(k, ct__splash_results(s), 3, (int64_t[]){1, b.q_block, s->head_dim}, place_dq, &b);
    b.dq = ct_mosaic_scratch(k, CT_MOSAIC_F32, 3, (int64_t[]){1, b.q_block, s->head_dim});
    emit(k, &b, 3);
    return k;
}
