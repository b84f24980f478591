/* Splash attention: the TPU kernels of attention, as Mosaic text. Arrays as the kernels see them, R = batch heads,
 * K = batch kv_heads, lengths padded to whole blocks:
 *
 *   q, result, d_out, dq   [R q_len head_dim]       heads that share a kv head are neighbours: row r of q has row
 *   k, v, dk, dv           [K kv_len head_dim]      r / group of k
 *   lse, delta             f32 [R 1 q_len]          a number per query, along lanes
 *
 * Masks. A table in SMEM has six numbers for each block of queries and of keys (ct__splash_field); from them a step of
 * the grid knows whether its pair of blocks is seen, and whether all of it is. Blocks before `first` and after `last`
 * of the other side are not even fetched: the windows stay where they are. Within a block positions are the table's
 * least one plus the index, or, where given, arrays; along rows a number stands in all 128 lanes:
 *
 *   positions, segments    of queries and keys, s32: [T len 128] along rows, [T 1 len] along lanes; T is 1 or batch
 *
 * Source: Dao 2023, "FlashAttention-2"; the layout of jax.experimental.pallas.ops.tpu.splash_attention.
 */
#ifndef CT_KERNELS_ATTENTION_MOSAIC_H
#define CT_KERNELS_ATTENTION_MOSAIC_H

#include "kernels/kernel.h"
#include "kernels/mosaic/mosaic.h"

typedef struct ct__splash {
    ct_mosaic_element element; /* of q, k, v: bf16 or f32 */
    bool wide;                 /* results and gradients in f32, to be merged with others */
    int64_t rows, heads, group;
    int64_t q_len, kv_len, num_keys; /* padded; keys that there are */
    int64_t head_dim;
    int64_t mask_batch;                               /* T */
    bool causal, segments, q_positions, kv_positions; /* the last two: given */
    int64_t window;
    double scale, soft_cap; /* scale > 0; soft_cap 0: none */
    ct_attention_blocks blocks;
    int64_t vector_bytes; /* what a kernel may take */
} ct__splash;

/* Of a block: least and greatest position and segment; the first and last block of the other side that it needs. */
typedef enum ct__splash_field {
    CT__LEAST_POSITION,
    CT__GREATEST_POSITION,
    CT__LEAST_SEGMENT,
    CT__GREATEST_SEGMENT,
    CT__FIRST,
    CT__LAST,
    CT__SPLASH_FIELDS
} ct__splash_field;

/* Block sizes for sequences of these lengths: as asked for, else tuned for the chip; multiples of 128. */
ct_attention_blocks ct__splash_blocks(const ct_kernels *kernels, ct_mosaic_element element, int64_t q_len,
                                      int64_t kv_len);
/* What is wrong with a block that was asked for: no multiple of 128, or one that does not divide. NULL: nothing. */
const char *ct__splash_bad_block(ct_graph *graph, const ct_attention_blocks *asked);

/* Blocks of queries whose dq the fused kernel can keep in scratch: at least 1. */
int64_t ct__splash_part_blocks(const ct__splash *s);
/* Vector memory that a kernel takes, by estimate: with its blocks, in bytes. */
typedef enum ct__splash_kernel {
    CT__SPLASH_FORWARD,
    CT__SPLASH_DKV,
    CT__SPLASH_FUSED,
    CT__SPLASH_DQ
} ct__splash_kernel;
int64_t ct__splash_vector_bytes(const ct__splash *s, ct__splash_kernel kernel);
/* The same of a kernel at hand; rows, keys: of the scores that it has before it at a time. */
int64_t ct__splash_estimate(const ct_mosaic *k, const ct__splash *s, int64_t rows, int64_t keys, bool is_backward);
/* What it is given: some more, where the chip has it. */
int64_t ct__splash_limit(const ct_mosaic *k, const ct__splash *s, int64_t rows, int64_t keys, bool is_backward);
/* Makes the blocks of a kernel fit s->vector_bytes; false: they cannot. */
bool ct__splash_shrink(ct__splash *s, ct__splash_kernel kernel);
/* The same of all kernels that s takes and whose blocks nobody asked for; s->q_len: of the sequence. */
void ct__splash_fit(ct__splash *s, const ct_attention_blocks *asked);
/* NULL: the blocks fit; else a message that names sizes which do. s->q_len: of the sequence. */
const char *ct__splash_too_large(ct_graph *graph, const ct__splash *s);

/* What part of the scores the mask shows, about: without a look at segments and given positions. For cost estimates. */
double ct__splash_share(const ct__splash *s);

ct_mosaic_element ct__splash_results(const ct__splash *s); /* of results and gradients */

/* ---- kernels; operands in this order, those in brackets where the mask wants them ----
 *
 *   forward   q_table kv_table q k v [q_positions rows] [kv_positions lanes] [q_segments rows] [kv_segments lanes]
 *             -> result lse
 *   backward  q_table kv_table [part] q k v [q_positions lanes] [kv_positions rows] [q_segments lanes]
 *             [kv_segments rows] d_out lse delta [old_dk old_dv]; lse times log2(e), 0 where it is -inf;
 *             delta = d_out result - d_lse
 *             -> [dq] dk dv, or dq
 *
 * Tables are of the kernel's own blocks, [T blocks fields] in one row.
 */
ct_mosaic *ct__splash_forward(const ct__splash *s);
/* dk and dv, and dq when fused. part_blocks: blocks of queries that one call does; where that is not all of them, part
 * names the first, dq is of the part, old_dk and old_dv are what earlier parts gave, f32 as the new ones, and dk lacks
 * the factor scale. */
ct_mosaic *ct__splash_dkv(const ct__splash *s, bool fused, int64_t part_blocks);
ct_mosaic *ct__splash_dq(const ct__splash *s);

#endif
