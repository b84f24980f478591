/* What the splash kernels share: a pair of blocks, its windows' places, its mask. */
#ifndef CT_KERNELS_ATTENTION_MOSAIC_MASK_H
#define CT_KERNELS_ATTENTION_MOSAIC_MASK_H

#include "kernels/attention/mosaic.h"

/* Where scores are hidden: far below any, and finite, so that differences of two stay numbers. */
#define CT__SPLASH_HIDDEN (-0.7 * 3.4028234663852886e38)
#define CT__LOG2E         1.4426950408889634

/* One side of the pair. */
typedef struct ct__splash_side {
    int64_t block, num_blocks;
    bool along_rows;                     /* in the kernel's scores; else along columns */
    bool has_positions;                  /* given */
    ct_mosaic_value table;               /* SMEM */
    ct_mosaic_value index;               /* i32: the block that the grid stands at, counted from base */
    ct_mosaic_value base;                /* SMEM: one scalar; {0}: the first block */
    bool clamped;                        /* its windows stay within [first, last] of the other side's block */
    ct_mosaic_value positions, segments; /* windows; {0}: none */
} ct__splash_side;

typedef struct ct__splash_pair {
    const ct__splash *splash;
    ct__splash_side q, kv;
    ct_mosaic_value row; /* the grid's: of q or k */
    int64_t batch_rows;  /* of those in a batch */
} ct__splash_pair;

/* A kernel named "ctitan_splash_<what>", with what its mask shows: nothing more if that is causal, "_full" if not,
 * "_window<size>". Predictions read it, since tables and positions are known when it runs (predict/kernel.c). */
ct_mosaic *ct__splash_new(const ct__splash *s, const char *what);

void ct__splash_declare_tables(ct_mosaic *k, ct__splash_pair *pair);
/* The windows of positions and segments. */
void ct__splash_declare_masks(ct_mosaic *k, ct__splash_pair *pair);

/* The block of side that its windows show. */
ct_mosaic_value ct__splash_shown(ct_mosaic *k, const ct__splash_pair *pair, const ct__splash_side *side);

/* body(masked) once: where the pair is seen at all, with the mask where it is not seen whole. */
typedef void ct__splash_body(ct_mosaic *k, void *context, bool masked);
void ct__splash_visit(ct_mosaic *k, const ct__splash_pair *pair, ct__splash_body *body, void *context);

/* The first query of a masked pair's block that may see the key at `offset` of its block, as far as sizes tell: under a
 * plain causal mask, in blocks of one size, only pairs on the diagonal are masked, and queries before a key do not see
 * it. 0 under any other mask. */
int64_t ct__splash_first_query(const ct__splash_pair *pair, int64_t offset);

/* i1 [rows columns] of the part of the pair's scores that begins at query `first` and key `offset` of their blocks and
 * has all queries from there on and num_keys keys. {0} when everything is seen. */
ct_mosaic_value ct__splash_mask(ct_mosaic *k, const ct__splash_pair *pair, int64_t first, int64_t offset,
                                int64_t num_keys);

#endif
