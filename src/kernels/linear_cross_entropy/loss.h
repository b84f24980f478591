/* The inside of the fused linear cross-entropy: its forms. Arguments have been checked (ct_linear_cross_entropy).
 *
 *   rows   [batch seq], f32 (f64 for f64)
 *   tile   of the vocabulary: logits [batch seq vocab=tile] at a time
 */
#ifndef CT_KERNELS_LINEAR_CROSS_ENTROPY_LOSS_H
#define CT_KERNELS_LINEAR_CROSS_ENTROPY_LOSS_H

#include "graph/node.h"
#include "kernels/linear_cross_entropy/linear_cross_entropy.h"

typedef struct ct__loss ct__loss;

/* What a form works on: the whole arrays or a device's parts. */
typedef struct ct__loss_part {
    const ct__loss *loss;
    ct_tensor *hidden, *weight, *labels;
    ct_tensor *offset; /* s32: the first position of weight in the vocabulary; NULL: 0 */
    int64_t vocab;     /* of weight */
} ct__loss_part;

/* backward's rows: d = (softmax of_softmax - [label] of_label) times the cap's slope. */
typedef struct ct__loss_cotangents {
    ct_tensor *logsumexp, *of_softmax, *of_label;
} ct__loss_cotangents;

/* One that saves the log-sum-exp alone. */
typedef struct ct__loss_form {
    /* Rows: the part's log-sum-exp, -inf where it is all padding; the label's logit, 0 where it is elsewhere. */
    void (*forward)(const ct__loss_part *part, ct_tensor **out_logsumexp, ct_tensor **out_picked);
    /* Gradients of hidden and, unless it is frozen, weight, of these columns and rows alone, in their dtype. */
    void (*backward)(const ct__loss_part *part, const ct__loss_cotangents *cotangents, ct_tensor *out_gradients[2]);
} ct__loss_form;
extern const ct__loss_form ct__loss_portable, ct__loss_mosaic_form;

/* What backward needs as well; lives as long as the graph. */
struct ct__loss {
    const ct__loss_form *form;
    double z_loss, soft_cap;
    bool frozen;   /* the weight */
    int64_t vocab; /* of the whole weight, without padding */
    int64_t tile;  /* wanted; 0: chosen */
    int64_t rows;  /* the same of the sum's blocks of rows */
    /* The manual regions on a mesh; placements NULL: there are none. */
    const char *rows_placement, *weight_placement;
    const char *rows_axes, *vocab_axes; /* the mesh axes that split rows and vocabulary: "dp_shard cp" */
    bool is_padded;                     /* a device's part of the vocabulary may end in padding */
};

ct_dtype ct__loss_wide(const ct_tensor *x); /* of logits and rows */

/* out_logsumexp may be NULL. */
ct_tensor *ct__loss_definition(ct_tensor *hidden, ct_tensor *weight, ct_tensor *labels, const ct__loss *loss,
                               ct_tensor **out_logsumexp);
/* By loss->form. */
ct_tensor *ct__loss_by_parts(const char *loc, ct_tensor *hidden, ct_tensor *weight, ct_tensor *labels, ct__loss *loss,
                             ct_tensor **out_logsumexp);
/* Why the form mosaic cannot be had here, in the graph's memory; NULL: it can. */
const char *ct__loss_mosaic_why_not(const ct_tensor *hidden, const ct_tensor *weight, const ct__loss *loss);

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
