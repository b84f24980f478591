/* Windows, and a tile's logits. */
#include "kernels/linear_cross_entropy/mosaic_tile.h"

#include "base/macros.h"

/* ---- where windows stand ---- */

/* The block of dim that a step of the sums needs, and one of the products; each stays where it is in the others. */
static ct_mosaic_value block_of_sum(ct_mosaic *k, const ct__loss_tile *tile)
{
    return ct_mosaic_min(k, tile->step, ct_mosaic_int(k, tile->num_steps - 1));
}

static ct_mosaic_value block_of_product(ct_mosaic *k, const ct__loss_tile *tile)
{
    ct_mosaic_value count = ct_mosaic_int(k, tile->num_steps);
    return ct_mosaic_max(k, ct_mosaic_sub(k, tile->step, count), ct_mosaic_int(k, 0));
}

static ct_mosaic_value block_of_both(ct_mosaic *k, const ct__loss_tile *tile)
{
    ct_mosaic_value count = ct_mosaic_int(k, tile->num_steps);
    ct_mosaic_value is_sum = ct_mosaic_compare(k, CT_MOSAIC_LT, tile->step, count);
    return ct_mosaic_select(k, is_sum, tile->step, ct_mosaic_sub(k, tile->step, count));
}

static void place_x(ct_mosaic *k, const void *context, ct_mosaic_value *out_blocks)
{
    const ct__loss_tile *tile = context;
    out_blocks[0] = tile->row;
    out_blocks[1] = tile->kernel == CT__LOSS_DW ? block_of_both(k, tile) : block_of_sum(k, tile);
}

static void place_w(ct_mosaic *k, const void *context, ct_mosaic_value *out_blocks)
{
    const ct__loss_tile *tile = context;
    out_blocks[0] = tile->column;
    out_blocks[1] = tile->kernel == CT__LOSS_DX ? block_of_both(k, tile) : block_of_sum(k, tile);
}

static void place_numbers(ct_mosaic *k, const void *context, ct_mosaic_value *out_blocks)
{
    const ct__loss_tile *tile = context;
    out_blocks[0] = ct_mosaic_int(k, 0);
    out_blocks[1] = tile->row;
}

/* A gradient's window stands on its first block until the last turn over the other side, where it is filled. */
static void place_gradient(ct_mosaic *k, const void *context, ct_mosaic_value *out_blocks)
{
    const ct__loss_tile *tile = context;
    bool of_x = tile->kernel == CT__LOSS_DX;
    ct_mosaic_value is_last =
        of_x ? ct__loss_at(k, tile->column, tile->num_columns - 1) : ct__loss_at(k, tile->row, tile->num_rows - 1);
    out_blocks[0] = of_x ? tile->row : tile->column;
    out_blocks[1] = ct_mosaic_select(k, is_last, block_of_product(k, tile), ct_mosaic_int(k, 0));
}

/* ---- declarations ---- */

void ct__loss_tile_begin(ct_mosaic *k, ct__loss_tile *tile)
{
    const ct__loss_mosaic *s = tile->s;
    const ct_loss_blocks *b = &s->blocks;
    tile->num_rows = ct__loss_mosaic_padded(s) / b->rows;
    tile->num_columns = (s->vocab + b->vocab - 1) / b->vocab;
    tile->num_steps = s->dim / b->hidden;
    bool has_products = tile->kernel != CT__LOSS_FORWARD;
    if (tile->kernel == CT__LOSS_DW) {
        tile->column = ct_mosaic_grid(k, tile->num_columns, true);
        tile->row = ct_mosaic_grid(k, tile->num_rows, false);
    } else {
        tile->row = ct_mosaic_grid(k, tile->num_rows, true);
        tile->column = ct_mosaic_grid(k, tile->num_columns, false);
    }
    tile->step = ct_mosaic_grid(k, has_products && tile->num_steps > 1 ? 2 * tile->num_steps : tile->num_steps, false);
    tile->limit = ct_mosaic_prefetch(k, 1);
    tile->x = ct_mosaic_input(k, s->element, 2, (int64_t[]){b->rows, b->hidden}, place_x, tile);
    tile->w = ct_mosaic_input(k, s->element, 2, (int64_t[]){b->vocab, b->hidden}, place_w, tile);
    tile->labels = ct_mosaic_input(k, CT_MOSAIC_I32, 2, (int64_t[]){1, b->rows}, place_numbers, tile);
}

void ct__loss_tile_scratch(ct_mosaic *k, ct__loss_tile *tile)
{
    const ct_loss_blocks *b = &tile->s->blocks;
    tile->logits = ct_mosaic_scratch(k, CT_MOSAIC_F32, 2, (int64_t[]){b->vocab, b->rows});
}

ct_mosaic_value ct__loss_tile_numbers(ct_mosaic *k, const ct__loss_tile *tile)
{
    return ct_mosaic_input(k, CT_MOSAIC_F32, 2, (int64_t[]){1, tile->s->blocks.rows}, place_numbers, tile);
}

ct_mosaic_value ct__loss_tile_output(ct_mosaic *k, const ct__loss_tile *tile)
{
    const ct_loss_blocks *b = &tile->s->blocks;
    if (tile->kernel == CT__LOSS_FORWARD)
        return ct_mosaic_output(k, CT_MOSAIC_F32, 2, (int64_t[]){1, b->rows}, place_numbers, tile);
    int64_t size = tile->kernel == CT__LOSS_DX ? b->rows : b->vocab;
    return ct_mosaic_output(k, tile->s->element, 2, (int64_t[]){size, b->hidden}, place_gradient, tile);
}

/* ---- the logits ---- */

ct_mosaic_value ct__loss_at(ct_mosaic *k, ct_mosaic_value index, int64_t at)
{
    return ct_mosaic_compare(k, CT_MOSAIC_EQ, index, ct_mosaic_int(k, at));
}

/* With fewer, more of the schedule's ends show; more are spilled. */
enum { CHUNK_ELEMENTS = 1 << 17 };

int64_t ct__loss_tile_chunk(const ct__loss_mosaic *s)
{
    int64_t lanes = s->blocks.vocab / CT_MOSAIC_LANES, parts = 1;
    while (parts < lanes && (lanes % parts || s->blocks.vocab / parts * s->blocks.rows > CHUNK_ELEMENTS)) parts++;
    return s->blocks.vocab / parts;
}

double ct__loss_tile_unit(const ct__loss_mosaic *s)
{
    return CT__LOSS_LOG2E * (s->soft_cap > 0 ? s->soft_cap : 1);
}

ct_mosaic_value ct__loss_tile_logits(ct_mosaic *k, const ct__loss_tile *tile, int64_t offset)
{
    return ct_mosaic_load(k, tile->logits, NULL, offset, ct__loss_tile_chunk(tile->s), 0, tile->s->blocks.rows);
}

/* The block's first column, and offset more. */
static ct_mosaic_value first_column(ct_mosaic *k, const ct__loss_tile *tile, int64_t offset)
{
    ct_mosaic_value first = ct_mosaic_mul(k, tile->column, ct_mosaic_int(k, tile->s->blocks.vocab));
    return offset ? ct_mosaic_add(k, first, ct_mosaic_int(k, offset)) : first;
}

ct_mosaic_value ct__loss_tile_hits(ct_mosaic *k, const ct__loss_tile *tile, int64_t offset)
{
    int64_t size = ct__loss_tile_chunk(tile->s), rows = tile->s->blocks.rows;
    ct_mosaic_value labels = ct_mosaic_load(k, tile->labels, NULL, 0, 1, 0, rows);
    labels = ct_mosaic_sub(k, labels, first_column(k, tile, offset));
    return ct_mosaic_compare(k, CT_MOSAIC_EQ, ct_mosaic_iota(k, size, rows, 0), labels);
}

static ct_mosaic_value limit(ct_mosaic *k, const ct__loss_tile *tile)
{
    return ct_mosaic_scalar(k, tile->limit, ct_mosaic_int(k, 0));
}

ct_mosaic_value ct__loss_tile_is_cut(ct_mosaic *k, const ct__loss_tile *tile)
{
    const ct__loss_mosaic *s = tile->s;
    if (!s->is_padded && s->vocab % s->blocks.vocab == 0) return (ct_mosaic_value){0};
    return ct_mosaic_compare(k, CT_MOSAIC_LT, limit(k, tile), first_column(k, tile, s->blocks.vocab));
}

ct_mosaic_value ct__loss_tile_counts(ct_mosaic *k, const ct__loss_tile *tile, int64_t offset, int64_t size,
                                     int64_t columns)
{
    ct_mosaic_value left = ct_mosaic_sub(k, limit(k, tile), first_column(k, tile, offset));
    return ct_mosaic_compare(k, CT_MOSAIC_LT, ct_mosaic_iota(k, size, columns, 0), left);
}

static void bend(ct_mosaic *k, const ct__loss_tile *tile)
{
    ct_mosaic_value factor = ct_mosaic_float(k, 1 / tile->s->soft_cap);
    for (int64_t offset = 0; offset < tile->s->blocks.vocab; offset += ct__loss_tile_chunk(tile->s)) {
        ct_mosaic_value logits = ct__loss_tile_logits(k, tile, offset);
        ct_mosaic_store(k, ct_mosaic_tanh(k, ct_mosaic_mul(k, logits, factor)), tile->logits, NULL, offset, 0);
    }
}

static void hide(ct_mosaic *k, const ct__loss_tile *tile)
{
    ct_mosaic_value is_cut = ct__loss_tile_is_cut(k, tile);
    if (!is_cut.id) return;
    int64_t size = ct__loss_tile_chunk(tile->s);
    ct_mosaic_if(k, is_cut);
    for (int64_t offset = 0; offset < tile->s->blocks.vocab; offset += size) {
        ct_mosaic_value counts = ct__loss_tile_counts(k, tile, offset, size, tile->s->blocks.rows);
        ct_mosaic_value logits = ct__loss_tile_logits(k, tile, offset);
        logits = ct_mosaic_select(k, counts, logits, ct_mosaic_float(k, CT__LOSS_HIDDEN));
        ct_mosaic_store(k, logits, tile->logits, NULL, offset, 0);
    }
    ct_mosaic_end(k);
}

void ct__loss_tile_sum(ct_mosaic *k, const ct__loss_tile *tile)
{
    const ct_loss_blocks *b = &tile->s->blocks;
    bool is_whole = tile->num_steps == 1, has_products = tile->kernel != CT__LOSS_FORWARD;
    if (!is_whole) {
        ct_mosaic_if(k, ct__loss_at(k, tile->step, 0));
        ct_mosaic_store(k, ct_mosaic_full(k, CT_MOSAIC_F32, b->vocab, b->rows, 0), tile->logits, NULL, 0, 0);
        ct_mosaic_end(k);
        if (has_products)
            ct_mosaic_if(k, ct_mosaic_compare(k, CT_MOSAIC_LT, tile->step, ct_mosaic_int(k, tile->num_steps)));
    }
    ct_mosaic_value x = ct_mosaic_load(k, tile->x, NULL, 0, b->rows, 0, b->hidden);
    ct_mosaic_value w = ct_mosaic_load(k, tile->w, NULL, 0, b->vocab, 0, b->hidden);
    ct_mosaic_value sum = ct_mosaic_matmul(k, w, 1, x, 1);
    if (!is_whole) sum = ct_mosaic_add(k, ct_mosaic_load(k, tile->logits, NULL, 0, b->vocab, 0, b->rows), sum);
    ct_mosaic_store(k, sum, tile->logits, NULL, 0, 0);
    if (!is_whole && has_products) ct_mosaic_end(k);
    if (!is_whole) ct_mosaic_if(k, ct__loss_at(k, tile->step, tile->num_steps - 1));
    if (tile->s->soft_cap > 0) bend(k, tile);
    hide(k, tile);
}

void ct__loss_tile_end(ct_mosaic *k, const ct__loss_tile *tile)
{
    if (tile->num_steps > 1) ct_mosaic_end(k);
}
