/* Attention by the splash kernels, on a device's arrays: what ct_attention's form MOSAIC does within manual regions. */
#ifndef CT_KERNELS_ATTENTION_MOSAIC_FORM_H
#define CT_KERNELS_ATTENTION_MOSAIC_FORM_H

#include "kernels/attention/attention.h"
#include "kernels/kernel.h"

/* Why these arguments cannot be had, and what to do, in the graph's memory; NULL: they can. */
const char *ct__splash_why_not(const ct_kernels *kernels, ct_tensor *q, ct_tensor *k, const ct_attention_opts *opts);

/* Are the kernels asked for, by name or by sizes of their blocks? Then they are not to be had otherwise. */
bool ct__splash_is_asked(const ct_kernels *kernels);

/* out_outputs: the result, in q's type or (wide) in f32; the log-sum-exp, f32 [batch heads seq]. */
void ct__splash_attention(const ct_kernels *kernels, ct_tensor *q, ct_tensor *k, ct_tensor *v,
                          const ct_attention_opts *opts, bool wide, ct_tensor *out_outputs[2]);
/* out_gradients: of q, k and v in their types or in f32; result, lse: of ct__splash_attention (lse may be of more keys
 * than these); d_lse may be NULL. */
void ct__splash_gradients(const ct_kernels *kernels, ct_tensor *q, ct_tensor *k, ct_tensor *v,
                          const ct_attention_opts *opts, ct_tensor *result, ct_tensor *lse, ct_tensor *d_result,
                          ct_tensor *d_lse, bool wide, ct_tensor *out_gradients[3]);

#endif
