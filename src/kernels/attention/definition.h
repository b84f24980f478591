/* Attention by its definition on the arrays at hand, whole or a device's parts, and the pieces that other forms are
 * made of. Arguments have been checked (ct_attention). Groups: the heads of q that share a kv head,
 *
 *   x [batch seq heads head_dim]  <->  grouped [batch seq kv_heads group head_dim]
 *   scores [batch kv_heads seq group kv_seq], rows [batch kv_heads seq group]; f32 (f64 for f64)
 */
#ifndef CT_KERNELS_ATTENTION_DEFINITION_H
#define CT_KERNELS_ATTENTION_DEFINITION_H

#include "kernels/attention/attention.h"

ct_tensor *ct__attention_plain(ct_tensor *q, ct_tensor *k, ct_tensor *v, const ct_attention_opts *opts);

ct_tensor *ct__attention_group(ct_tensor *x, int64_t kv_heads);
/* [batch kv_heads seq group head_dim] -> x */
ct_tensor *ct__attention_ungroup(ct_tensor *x);
/* rows -> [batch heads seq] */
ct_tensor *ct__attention_ungroup_rows(ct_tensor *rows);

ct_dtype ct__attention_wide(const ct_tensor *q); /* of scores */
double ct__attention_scale(const ct_tensor *q, const ct_attention_opts *opts);

/* Scaled and capped. */
ct_tensor *ct__attention_scores(ct_tensor *grouped, ct_tensor *k, const ct_attention_opts *opts);
/* -inf where a query of q does not see a key of k. */
ct_tensor *ct__attention_hide(ct_tensor *scores, const ct_tensor *q, const ct_tensor *k, const ct_attention_opts *opts);
/* What was given, else 0, 1, ... along axis as like has it. */
ct_tensor *ct__attention_positions(ct_tensor *given, const ct_tensor *like, const char *axis);

#endif
