/* Attention by the splash kernels, on a device's arrays: what ct_attention's form MOSAIC does within manual regions. */
#ifndef CT_KERNELS_ATTENTION_MOSAIC_FORM_H
#define CT_KERNELS_ATTENTION_MOSAIC_FORM_H

#include "kernels/attention/attention.h"
#include "kernels/kernel.h"

/* Can these arguments be had? false: an error was kept that says why not. loc: of attention. */
bool ct__splash_can(const char *loc, const ct_kernels *kernels, const ct_tensor *q, const ct_tensor *k,
                    const ct_attention_opts *opts);

/* out_outputs: the result, in q's type; the log-sum-exp, f32 [batch heads seq]. */
void ct__splash_attention(const ct_kernels *kernels, ct_tensor *q, ct_tensor *k, ct_tensor *v,
                          const ct_attention_opts *opts, ct_tensor *out_outputs[2]);

#endif
