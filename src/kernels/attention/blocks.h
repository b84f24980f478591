/* Attention block by block, on the arrays at hand (whole, or a device's parts): the scores of one block of queries and
 * one block of keys exist at a time.
 *
 *               kv_block 0  1  2  3
 *   q_block 0            #  .  .  .      a scan over blocks of queries; for each, a loop over a list of the blocks of
 *           1            #  #  .  .      keys that some query of it may see (#), found from the least and the greatest
 *           2            #  #  #  .      position and segment id of every block
 *
 *   queries   [q_block batch kv_heads seq group head_dim], rows [q_block batch kv_heads seq group]
 *   keys      [kv_block batch kv_heads kv_seq head_dim]
 *
 * The last block is padded; padded keys are hidden. The program's size does not depend on the number of blocks.
 * Source: Dao 2023, "FlashAttention-2".
 */
#ifndef CT_KERNELS_ATTENTION_BLOCKS_H
#define CT_KERNELS_ATTENTION_BLOCKS_H

#include "graph/node.h"
#include "kernels/attention/attention.h"

typedef struct ct__blocks {
    ct_attention_opts opts; /* its tensors are not used */
    ct_dtype dtype, wide;   /* of q, k, v; of scores and sums */
    int64_t kv_heads, seq, kv_seq;
    int64_t q_rows, num_q, kv_rows, num_kv; /* rows of a block, blocks */
    bool marks_padding;                     /* nothing else hides it: segments are made up */
} ct__blocks;

/* Stacked. positions and segments are NULL where the mask does not need them. */
typedef struct ct__queries {
    ct_tensor *q, *positions, *segments;
} ct__queries;

typedef struct ct__keys {
    ct_tensor *k, *v, *positions, *segments;
} ct__keys;

/* Blocks of at most so many rows, as equal as can be. */
ct__blocks ct__blocks_of(const ct_tensor *q, const ct_tensor *k, const ct_attention_opts *opts, int64_t q_rows,
                         int64_t kv_rows);
ct__queries ct__stack_queries(const ct__blocks *blocks, ct_tensor *q, const ct_attention_opts *opts);
ct__keys ct__stack_keys(const ct__blocks *blocks, ct_tensor *k, ct_tensor *v, const ct_attention_opts *opts);
/* Anything with the axes batch, seq and heads, as queries or rows, and back: [batch seq heads head_dim] from queries,
 * [batch heads seq] from rows. */
ct_tensor *ct__stack(const ct__blocks *blocks, ct_tensor *x);
ct_tensor *ct__unstack(const ct__blocks *blocks, ct_tensor *stacked);
/* value everywhere, wide, like queries, rows or keys. */
ct_tensor *ct__queries_filled(const ct__blocks *blocks, const ct__queries *queries, double value);
ct_tensor *ct__rows_filled(const ct__blocks *blocks, const ct__queries *queries, double value);
ct_tensor *ct__keys_filled(const ct__blocks *blocks, const ct__keys *keys, double value);

/* ---- forward ---- */

enum { CT__SUM, CT__MAX, CT__TOTAL }; /* of p v, queries; of scores, rows; of p, rows */

/* before: what other keys gave, or NULL. finish: out[0] is the result in blocks' dtype, out[1] the log-sum-exp. */
void ct__blocks_attend(const ct__blocks *blocks, const ct__queries *queries, const ct__keys *keys,
                       ct_tensor *const *before, bool finish, ct_tensor *out[3]);

/* ---- backward ---- */

/* Stacked like queries and rows; delta = d_out out - dlse, lse without -inf. */
typedef struct ct__cotangents {
    ct_tensor *d_out, *lse, *delta;
} ct__cotangents;

/* args: all without axes; result [batch seq heads head_dim], the log-sum-exp and its cotangent (may be NULL) [batch
 * heads seq]. */
ct__cotangents ct__stack_cotangents(const ct__blocks *blocks, ct_tensor *result, ct_tensor *lse, ct_tensor *d_result,
                                    ct_tensor *d_lse);

enum { CT__DQ, CT__DK, CT__DV }; /* queries, keys, keys: wide, and those of q and k not yet times the scale */

/* Adds to before, whose DQ may be NULL. */
void ct__blocks_attend_back(const ct__blocks *blocks, const ct__queries *queries, const ct__cotangents *cotangents,
                            const ct__keys *keys, ct_tensor *const *before, ct_tensor *out[3]);
/* The sums as gradients of q, k and v. */
void ct__blocks_gradients(const ct__blocks *blocks, ct_tensor *const *sums, ct_tensor *out_gradients[3]);

#endif
