/* Layers: functions of tensors, written from graph ops. Axes are named as in the models: batch seq dim heads head_dim
 * vocab. The losses are those of kernels. Locations and errors are the caller's.
 */
#ifndef CT_NN_LAYERS_H
#define CT_NN_LAYERS_H

#include "graph/graph.h"
#include "kernels/linear_cross_entropy/linear_cross_entropy.h"
#include "spmd/points.h"

/* x / sqrt(mean(x^2) + eps) * weight over weight's axis (its only one); computed in f32 at least, result in x's dtype.
 * torch.nn.functional.rms_norm; Zhang and Sennrich 2019. */
#define ct_rms_norm(x, weight, eps) ct__rms_norm(CT_LOC, x, weight, eps)
ct_tensor *ct__rms_norm(const char *loc, ct_tensor *x, ct_tensor *weight, double eps);

/* Rotary position embedding in half-split form: pairs are (i, i + head_dim/2). */
typedef struct ct_rope_config {
    double theta;
    double factor; /* 0: no scaling; else Llama 3's: low frequencies divided by it */
    double low_freq_factor, high_freq_factor;
    double original_max_position;
} ct_rope_config;

typedef struct ct_rope {
    ct_tensor *cos, *sin; /* f32 [batch seq head_dim], the second half the same as the first */
    ct_tensor *turn;      /* bf16 [head_dim turned]: x turn = (-second half, first half), exact */
} ct_rope;

/* Angles for positions (s32 [batch seq]); made once, shared by all layers. head_dim/2 frequencies theta^(-2i/head_dim),
 * scaled as in Llama 3.1 when factor > 0 (transformers' rope_type "llama3"). */
ct_rope ct_rope_angles(ct_tensor *positions, int64_t head_dim, const ct_rope_config *config);

/* x [batch seq heads-like head_dim] rotated; computed in f32 at least, result in x's dtype. Su et al. 2021.
 * Halves of bf16 change places by a product with turn: cut out of the 128 lanes of a TPU they would move the whole
 * block to layouts with the sequence along the lanes, at several times the price. */
#define ct_rope_apply(x, rope) ct__rope_apply(CT_LOC, x, rope)
ct_tensor *ct__rope_apply(const char *loc, ct_tensor *x, const ct_rope *rope);

#endif
