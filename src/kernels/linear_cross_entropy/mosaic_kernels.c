/* The kernels of the loss.
 *
 *   forward   grid [rows, vocabulary, dim]; scratch beside the tile: max, total, picked [1 rows]
 *   dx        grid [rows, vocabulary, steps]; scratch: d [vocab rows] in x's type, and dx of the whole row block,
 *             f32, as blocks of dim
 *   dw        grid [vocabulary, rows, steps]; likewise dw of the whole block of the vocabulary
 *
 * A backward tile takes as many steps again as its logits did: d times each block of dim of the other side.
 * Source: Wijmans et al. 2024, "Cut Your Losses in Large-Vocabulary Language Models".
 */
#include <math.h>

#include "base/macros.h"
#include "kernels/linear_cross_entropy/mosaic_tile.h"

int64_t ct__loss_mosaic_padded(const ct__loss_mosaic *s)
{
    return (s->rows + s->blocks.rows - 1) / s->blocks.rows * s->blocks.rows;
}

/* Products that a kernel makes, and what it reads and writes: windows that stay where they are are not fetched anew. */
static void set_cost(ct_mosaic *k, const ct__loss_tile *tile)
{
    const ct__loss_mosaic *s = tile->s;
    double rows = (double)ct__loss_mosaic_padded(s), vocab = (double)s->vocab, dim = (double)s->dim;
    bool is_forward = tile->kernel == CT__LOSS_FORWARD, of_x = tile->kernel != CT__LOSS_DW;
    bool is_whole = tile->num_steps == 1;
    double turns_x = of_x && is_whole ? 1 : (double)tile->num_columns,
           turns_w = !of_x && is_whole ? 1 : (double)tile->num_rows;
    if (!is_whole && tile->kernel == CT__LOSS_DX) turns_w *= 2;
    if (!is_whole && tile->kernel == CT__LOSS_DW) turns_x *= 2;
    double elements = (turns_x * rows + turns_w * vocab) * dim;
    if (!is_forward) elements += (of_x ? rows : vocab) * dim;
    ct_mosaic_cost(k, (is_forward ? 2 : 4) * rows * vocab * dim, rows * vocab,
                   elements * (s->element == CT_MOSAIC_F32 ? 4 : 2) + 16 * rows);
    ct_mosaic_limit(k, s->vector_bytes);
}

/* ---- forward ---- */

typedef struct forward {
    ct__loss_tile tile;
    ct_mosaic_value out_lse, out_picked, max, total, picked;
} forward;

static ct_mosaic_value row_of(ct_mosaic *k, ct_mosaic_value memory)
{
    return ct_mosaic_load(k, memory, NULL, 0, 1, 0, memory.sizes[1]);
}

static void fill_row(ct_mosaic *k, ct_mosaic_value memory, double value)
{
    ct_mosaic_store(k, ct_mosaic_full(k, CT_MOSAIC_F32, 1, memory.sizes[1], value), memory, NULL, 0, 0);
}

/* Online: exponentials are of what a logit is above the greatest so far. */
static void merge(ct_mosaic *k, const forward *f)
{
    const ct__loss_tile *tile = &f->tile;
    ct_mosaic_value unit = ct_mosaic_float(k, ct__loss_tile_unit(tile->s));
    ct_mosaic_value max = row_of(k, f->max), total = row_of(k, f->total), picked = row_of(k, f->picked);
    for (int64_t offset = 0; offset < tile->s->blocks.vocab; offset += ct__loss_tile_chunk(tile->s)) {
        ct_mosaic_value logits = ct__loss_tile_logits(k, tile, offset);
        ct_mosaic_value old = max;
        max = ct_mosaic_max(k, old, ct_mosaic_column_max(k, logits));
        ct_mosaic_value p = ct_mosaic_exp2(k, ct_mosaic_mul(k, ct_mosaic_sub(k, logits, max), unit));
        ct_mosaic_value fade = ct_mosaic_exp2(k, ct_mosaic_mul(k, ct_mosaic_sub(k, old, max), unit));
        total = ct_mosaic_add(k, ct_mosaic_mul(k, total, fade), ct_mosaic_column_sum(k, p));
        ct_mosaic_value hits = ct__loss_tile_hits(k, tile, offset);
        ct_mosaic_value hit = ct_mosaic_select(k, hits, logits, ct_mosaic_float(k, 0));
        picked = ct_mosaic_add(k, picked, ct_mosaic_column_sum(k, hit));
    }
    ct_mosaic_store(k, max, f->max, NULL, 0, 0);
    ct_mosaic_store(k, total, f->total, NULL, 0, 0);
    ct_mosaic_store(k, picked, f->picked, NULL, 0, 0);
}

static void finish(ct_mosaic *k, const forward *f)
{
    double cap = f->tile.s->soft_cap > 0 ? f->tile.s->soft_cap : 1;
    ct_mosaic_value max = row_of(k, f->max), total = row_of(k, f->total), picked = row_of(k, f->picked);
    ct_mosaic_value seen = ct_mosaic_compare(k, CT_MOSAIC_LT, ct_mosaic_float(k, CT__LOSS_HIDDEN / 2), max);
    ct_mosaic_value lse = ct_mosaic_mul(k, max, ct_mosaic_float(k, cap));
    lse = ct_mosaic_add(k, lse, ct_mosaic_log(k, total));
    ct_mosaic_store(k, ct_mosaic_select(k, seen, lse, ct_mosaic_float(k, -INFINITY)), f->out_lse, NULL, 0, 0);
    ct_mosaic_store(k, ct_mosaic_mul(k, picked, ct_mosaic_float(k, cap)), f->out_picked, NULL, 0, 0);
}

static ct_mosaic *forward_kernel(const ct__loss_mosaic *s)
{
    forward f = {.tile = {.s = s, .kernel = CT__LOSS_FORWARD}};
    ct__loss_tile *tile = &f.tile;
    ct_mosaic *k = ct_mosaic_new("ctitan_loss_forward");
    ct__loss_tile_begin(k, tile);
    f.out_lse = ct__loss_tile_output(k, tile);
    f.out_picked = ct__loss_tile_output(k, tile);
    ct__loss_tile_scratch(k, tile);
    ct_mosaic_value *rows[3] = {&f.max, &f.total, &f.picked};
    for (int i = 0; i < 3; i++) *rows[i] = ct_mosaic_scratch(k, CT_MOSAIC_F32, 2, (int64_t[]){1, s->blocks.rows});
    ct_mosaic_if(k, ct_mosaic_and(k, ct__loss_at(k, tile->column, 0), ct__loss_at(k, tile->step, 0)));
    fill_row(k, f.max, CT__LOSS_HIDDEN);
    fill_row(k, f.total, 0);
    fill_row(k, f.picked, 0);
    ct_mosaic_end(k);
    ct__loss_tile_sum(k, tile);
    merge(k, &f);
    ct__loss_tile_end(k, tile);
    ct_mosaic_if(k, ct_mosaic_and(k, ct__loss_at(k, tile->column, tile->num_columns - 1),
                                  ct__loss_at(k, tile->step, tile->num_steps - 1)));
    finish(k, &f);
    ct_mosaic_end(k);
    set_cost(k, tile);
    return k;
}

/* ---- backward ---- */

typedef struct backward {
    ct__loss_tile tile;
    ct_mosaic_value lse, of_softmax, of_label, out; /* windows */
    ct_mosaic_value d, sum;                         /* scratch */
} backward;

static void fill_d(ct_mosaic *k, const backward *b)
{
    const ct__loss_tile *tile = &b->tile;
    const ct__loss_mosaic *s = tile->s;
    ct_mosaic_value unit = ct_mosaic_float(k, ct__loss_tile_unit(s));
    ct_mosaic_value lse = row_of(k, b->lse), of_softmax = row_of(k, b->of_softmax), of_label = row_of(k, b->of_label);
    for (int64_t offset = 0; offset < s->blocks.vocab; offset += ct__loss_tile_chunk(s)) {
        ct_mosaic_value logits = ct__loss_tile_logits(k, tile, offset);
        ct_mosaic_value p = ct_mosaic_exp2(k, ct_mosaic_sub(k, ct_mosaic_mul(k, logits, unit), lse));
        ct_mosaic_value d = ct_mosaic_mul(k, p, of_softmax), hits = ct__loss_tile_hits(k, tile, offset);
        d = ct_mosaic_select(k, hits, ct_mosaic_sub(k, d, of_label), d);
        if (s->soft_cap > 0) d = ct_mosaic_sub(k, d, ct_mosaic_mul(k, ct_mosaic_mul(k, d, logits), logits));
        ct_mosaic_store(k, ct_mosaic_convert(k, d, s->element), b->d, NULL, offset, 0);
    }
}

static void add_product(ct_mosaic *k, const backward *b, const ct_mosaic_value *block, ct_mosaic_value w)
{
    const ct_loss_blocks *blocks = &b->tile.s->blocks;
    ct_mosaic_value d = ct_mosaic_load(k, b->d, NULL, 0, blocks->vocab, 0, blocks->rows);
    bool of_x = b->tile.kernel == CT__LOSS_DX;
    ct_mosaic_value x = of_x ? w : ct_mosaic_load(k, b->tile.x, NULL, 0, blocks->rows, 0, blocks->hidden);
    ct_mosaic_value product = ct_mosaic_matmul(k, d, of_x ? 0 : 1, x, 0);
    ct_mosaic_value old = ct_mosaic_load(k, b->sum, block, 0, product.sizes[0], 0, blocks->hidden);
    ct_mosaic_store(k, ct_mosaic_add(k, old, product), b->sum, block, 0, 0);
}

/* What lies beyond w's end is anything, and d's zeros would not hide it. */
static void add_products(ct_mosaic *k, const backward *b, const ct_mosaic_value *block)
{
    const ct__loss_tile *tile = &b->tile;
    const ct_loss_blocks *blocks = &tile->s->blocks;
    ct_mosaic_value w = ct_mosaic_load(k, tile->w, NULL, 0, blocks->vocab, 0, blocks->hidden);
    ct_mosaic_value is_cut = tile->kernel == CT__LOSS_DX ? ct__loss_tile_is_cut(k, tile) : (ct_mosaic_value){0};
    if (!is_cut.id) {
        add_product(k, b, block, w);
        return;
    }
    ct_mosaic_if(k, is_cut);
    ct_mosaic_value counts = ct__loss_tile_counts(k, tile, 0, blocks->vocab, blocks->hidden);
    ct_mosaic_value wide = ct_mosaic_convert(k, w, CT_MOSAIC_F32);
    wide = ct_mosaic_select(k, counts, wide, ct_mosaic_float(k, 0));
    add_product(k, b, block, ct_mosaic_convert(k, wide, tile->s->element));
    ct_mosaic_end(k);
    ct_mosaic_if(k,
                 ct_mosaic_compare(k, CT_MOSAIC_EQ, ct_mosaic_convert(k, is_cut, CT_MOSAIC_I32), ct_mosaic_int(k, 0)));
    add_product(k, b, block, w);
    ct_mosaic_end(k);
}

static ct_mosaic *backward_kernel(const ct__loss_mosaic *s, ct__loss_kernel kernel)
{
    backward b = {.tile = {.s = s, .kernel = kernel}};
    ct__loss_tile *tile = &b.tile;
    bool of_x = kernel == CT__LOSS_DX;
    ct_mosaic *k = ct_mosaic_new(of_x ? "ctitan_loss_dx" : "ctitan_loss_dw");
    ct__loss_tile_begin(k, tile);
    b.lse = ct__loss_tile_numbers(k, tile);
    b.of_softmax = ct__loss_tile_numbers(k, tile);
    b.of_label = ct__loss_tile_numbers(k, tile);
    b.out = ct__loss_tile_output(k, tile);
    ct__loss_tile_scratch(k, tile);
    int64_t size = of_x ? s->blocks.rows : s->blocks.vocab, hidden = s->blocks.hidden, count = tile->num_steps;
    b.d = ct_mosaic_scratch(k, s->element, 2, (int64_t[]){s->blocks.vocab, s->blocks.rows});
    b.sum = ct_mosaic_scratch(k, CT_MOSAIC_F32, 3, (int64_t[]){count, size, hidden});
    ct__loss_tile_sum(k, tile);
    fill_d(k, &b);
    ct__loss_tile_end(k, tile);
    ct_mosaic_value block = count > 1 ? ct_mosaic_sub(k, tile->step, ct_mosaic_int(k, count)) : ct_mosaic_int(k, 0);
    if (count > 1) ct_mosaic_if(k, ct_mosaic_compare(k, CT_MOSAIC_LE, ct_mosaic_int(k, count), tile->step));
    ct_mosaic_value turn = of_x ? tile->column : tile->row;
    ct_mosaic_if(k, ct__loss_at(k, turn, 0));
    ct_mosaic_store(k, ct_mosaic_full(k, CT_MOSAIC_F32, size, hidden, 0), b.sum, &block, 0, 0);
    ct_mosaic_end(k);
    add_products(k, &b, &block);
    ct_mosaic_if(k, ct__loss_at(k, turn, (of_x ? tile->num_columns : tile->num_rows) - 1));
    ct_mosaic_value sum = ct_mosaic_load(k, b.sum, &block, 0, size, 0, hidden);
    ct_mosaic_store(k, ct_mosaic_convert(k, sum, s->element), b.out, NULL, 0, 0);
    ct_mosaic_end(k);
    if (count > 1) ct_mosaic_end(k);
    set_cost(k, tile);
    return k;
}

ct_mosaic *ct__loss_mosaic_kernel(const ct__loss_mosaic *s, ct__loss_kernel kernel)
{
    return kernel == CT__LOSS_FORWARD ? forward_kernel(s) : backward_kernel(s, kernel);
}
