/* What the kernels of the loss share: windows, and a tile's logits. */
#ifndef CT_KERNELS_LINEAR_CROSS_ENTROPY_MOSAIC_TILE_H
#define CT_KERNELS_LINEAR_CROSS_ENTROPY_MOSAIC_TILE_H

#include "kernels/linear_cross_entropy/mosaic.h"

#define CT__LOSS_LOG2E 1.44269504088896340736
/* In place of a logit that does not count: its exponential is 0, and so is 0 times its square. */
#define CT__LOSS_HIDDEN (-1e18)

/* Steps of the grid's last index: first one for each block of dim, which sum the logits up; in the backward kernels as
 * many again, which multiply. One block of dim does both in its only step. */
typedef struct ct__loss_tile {
    const ct__loss_mosaic *s;
    ct__loss_kernel kernel;
    int64_t num_rows, num_columns, num_steps; /* blocks of rows, vocabulary, dim */
    ct_mosaic_value row, column, step;        /* the grid's, in blocks */
    ct_mosaic_value limit;                    /* prefetched */
    ct_mosaic_value x, w, labels;             /* windows */
    ct_mosaic_value logits;                   /* scratch, f32 [vocab rows] of a block; with a soft cap: tanh */
} ct__loss_tile;

void ct__loss_tile_begin(ct_mosaic *k, ct__loss_tile *tile); /* sets s and kernel beforehand; declares the grid, x .. */
void ct__loss_tile_scratch(ct_mosaic *k, ct__loss_tile *tile);
/* A window of numbers per row. */
ct_mosaic_value ct__loss_tile_numbers(ct_mosaic *k, const ct__loss_tile *tile);
ct_mosaic_value ct__loss_tile_output(ct_mosaic *k, const ct__loss_tile *tile);

/* Adds a block of dim to the logits; in the last of these steps, when it has begun what ct__loss_tile_end ends, they
 * are whole, bent by the cap and hidden where they do not count. */
void ct__loss_tile_sum(ct_mosaic *k, const ct__loss_tile *tile);
void ct__loss_tile_end(ct_mosaic *k, const ct__loss_tile *tile);

/* Of the logits, [size rows] from a column on: so many at a time that they stay in registers. */
int64_t ct__loss_tile_chunk(const ct__loss_mosaic *s);
ct_mosaic_value ct__loss_tile_logits(ct_mosaic *k, const ct__loss_tile *tile, int64_t offset);
/* i1 of the same shape: the row's label. */
ct_mosaic_value ct__loss_tile_hits(ct_mosaic *k, const ct__loss_tile *tile, int64_t offset);
/* exp(logit) = 2^(unit what is in scratch) */
double ct__loss_tile_unit(const ct__loss_mosaic *s);

/* i1: the block of the vocabulary has columns that do not count. {0}: none ever has. */
ct_mosaic_value ct__loss_tile_is_cut(ct_mosaic *k, const ct__loss_tile *tile);
/* i1 [size columns] along rows: those that count, from offset on in the block of the vocabulary. */
ct_mosaic_value ct__loss_tile_counts(ct_mosaic *k, const ct__loss_tile *tile, int64_t offset, int64_t size,
                                     int64_t columns);

ct_mosaic_value ct__loss_at(ct_mosaic *k, ct_mosaic_value index, int64_t at); /* i1 */

#endif
