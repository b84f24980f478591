/* The inside of the fused linear cross-entropy: its forms. Arguments have been checked (ct_linear_cross_entropy).
 *
 *   rows   [batch seq], f32 (f64 for f64)
 *   tile   of the vocabulary: logits [batch seq vocab=tile] at a time
 */
#ifndef CT_KERNELS_LINEAR_CROSS_ENTROPY_LOSS_H
#define CT_KERNELS_LINEAR_CROSS_ENTROPY_LOSS_H

#include "graph/node.h"
#include "kernels/linear_cross_entropy/linear_cross_entropy.h"

/* What backward needs as well; lives as long as the graph. */
typedef struct ct__loss {
    double z_loss, soft_cap;
    int64_t vocab; /* of the whole weight, without padding */
    int64_t tile;  /* wanted; 0: chosen */
    int64_t rows;  /* the same of the sum's blocks of rows */
    /* The manual regions on a mesh; placements NULL: there are none. */
    const char *rows_placement, *weight_placement;
    const char *rows_axes, *vocab_axes; /* the mesh axes that split rows and vocabulary: "dp_shard cp" */
    bool is_padded;                     /* a device's part of the vocabulary may end in padding */
} ct__loss;

ct_dtype ct__loss_wide(const ct_tensor *x); /* of logits and rows */

/* out_logsumexp may be NULL. */
ct_tensor *ct__loss_definition(ct_tensor *hidden, ct_tensor *weight, ct_tensor *labels, const ct__loss *loss,
                               ct_tensor **out_logsumexp);
ct_tensor *ct__loss_portable(const char *loc, ct_tensor *hidden, ct_tensor *weight, ct_tensor *labels, ct__loss *loss,
                             ct_tensor **out_logsumexp);

/* A number. Not with a vocabulary in parts (vocab_axes). */
ct_tensor *ct__loss_sum_by_rows(const char *loc, ct_tensor *hidden, ct_tensor *weight, ct_tensor *labels,
                                ct__loss *loss);

/* Sets the manual regions' part of loss where the graph has a mesh. */
void ct__loss_place(ct__loss *loss, const ct_tensor *weight, const ct_tensor *labels);

/* lse - picked + z_loss lse^2 where the label counts, else 0. */
ct_tensor *ct__loss_of_rows(ct_tensor *logsumexp, ct_tensor *picked, ct_tensor *labels, double z_loss);
/* c tanh(logits / c); logits themselves for c 0. */
ct_tensor *ct__loss_cap(ct_tensor *logits, double soft_cap);
/* d times the cap's slope at capped logits. */
ct_tensor *ct__loss_slope(ct_tensor *d, ct_tensor *logits, double soft_cap);
ct_tensor *ct__loss_counted(ct_tensor *labels); /* bool rows */

#endif
