/* What the splash kernels take, made from attention's tensors, and back (mosaic.h says what it looks like). */
#ifndef CT_KERNELS_ATTENTION_MOSAIC_ARRAYS_H
#define CT_KERNELS_ATTENTION_MOSAIC_ARRAYS_H

#include "kernels/attention/attention.h"
#include "kernels/attention/mosaic.h"

/* One device's attention. */
typedef struct ct__splash_arrays {
    ct__splash splash; /* of the kernel at hand: lengths are padded to its blocks */
    ct_tensor *q, *k, *v;
    ct_attention_opts opts;
} ct__splash_arrays;

/* x [batch seq heads head_dim] as [batch heads seq head_dim], which also in memory stands so: what computes it is to
 * write it as a kernel reads it, instead of with the sequence along the lanes and a copy in between. */
ct_tensor *ct__splash_by_heads(ct_tensor *x);

/* x [batch len heads head_dim] -> [rows len head_dim], zeros to len; and back to like's sizes */
ct_tensor *ct__splash_rows(ct_tensor *x, int64_t len);
ct_tensor *ct__splash_unrows(ct_tensor *rows, const ct_tensor *like);
/* numbers [batch heads seq] -> [rows one len], and back */
ct_tensor *ct__splash_numbers(ct_tensor *numbers, int64_t len);
ct_tensor *ct__splash_unnumbers(ct_tensor *rows, const ct_tensor *q);

/* q_table and kv_table, for these blocks */
void ct__splash_tables(const ct__splash_arrays *a, int64_t q_block, int64_t kv_block, ct_tensor *out_tables[2]);
/* Positions and segments, as the kernels list them; their count. */
enum { CT__SPLASH_MAX_MASKS = 4 };
int ct__splash_masks(const ct__splash_arrays *a, bool q_along_rows, ct_tensor *out_masks[CT__SPLASH_MAX_MASKS]);

#endif
