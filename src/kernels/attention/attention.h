/* Scaled dot-product attention, softmax(q k^T * scale + mask) v, with grouped queries.
 *
 *   q       [batch seq heads head_dim]         bf16, f16, f32 or f64
 *   k, v    [batch kv_seq kv_heads head_dim]   q's dtype; heads % kv_heads == 0
 *   result  [batch seq heads head_dim]         q's dtype; scores and softmax are computed in f32 (f64 for f64)
 *
 * Axis names are fixed, as above. Mask: a query sees a key when all of these hold
 *   causal        kv position <= q position
 *   window > 0    q position - kv position < window (and, when not causal, the other way round as well)
 *   segments      the two segment ids are equal (documents packed into one row)
 * Positions are indices within the sequence unless given; contiguous shards of a longer sequence give theirs. A query
 * that sees nothing yields zeros and a log-sum-exp of -inf.
 *
 * Sharding: where the graph's ct_parallel has a context parallel degree, the sequence is split over it and keys and
 * values are gathered or go round in a ring (context.h); the arrays here stay the whole ones, and where columns stand
 * in another order than in the sequence (spmd/balance.h) positions must be given.
 *
 * Errors (kept in the graph): INVALID_ARGUMENT when an axis is missing, kv_heads does not divide heads, only one of the
 * two segment tensors is given, or the mesh does not divide batch, seq, kv_seq, heads or kv_heads.
 * Source: torch.nn.functional.scaled_dot_product_attention; Ainslie et al. 2023 (grouped queries); soft cap as in
 * Gemma 2: cap * tanh(score / cap).
 */
#ifndef CT_KERNELS_ATTENTION_ATTENTION_H
#define CT_KERNELS_ATTENTION_ATTENTION_H

#include "graph/graph.h"

typedef struct ct_attention_opts {
    bool causal;
    int64_t window;          /* 0: unlimited */
    double scale;            /* 0: 1 / sqrt(head_dim) */
    double soft_cap;         /* 0: none */
    ct_tensor *positions;    /* s32 [seq] or [batch seq]; NULL: 0 .. seq-1 */
    ct_tensor *kv_positions; /* s32 [kv_seq] or [batch kv_seq]; NULL: 0 .. kv_seq-1 */
    ct_tensor *segments;     /* s32 [batch seq]; NULL: all one */
    ct_tensor *kv_segments;  /* s32 [batch kv_seq] */
    /* NULL: none. Of the result and, in forms that save it, of the log-sum-exp: where both are kept, the forward pass
     * is not run again (ct_checkpoint_name). */
    const char *checkpoint_name;
    ct_tensor **out_logsumexp; /* not NULL: set to f32 [batch heads seq], the log-sum-exp of the masked scores */
} ct_attention_opts;

#define ct_attention(q, k, v, opts) ct__attention(CT_LOC, q, k, v, opts)
ct_tensor *ct__attention(const char *loc, ct_tensor *q, ct_tensor *k, ct_tensor *v, const ct_attention_opts *opts);

#endif
