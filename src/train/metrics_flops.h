/* Arithmetic of a model and of a chip, for tflops and mfu. */
#ifndef CT_TRAIN_METRICS_FLOPS_H
#define CT_TRAIN_METRICS_FLOPS_H

#include <stdbool.h>

#include "base/macros.h"

/* What a decoder's floating-point operations per token hang on. */
typedef struct ct_flops_model {
    int64_t num_params;           /* all of them, shared ones once */
    int64_t num_embedding_params; /* of the token embedding */
    int64_t num_adapter_params;   /* trained in place of all those; 0: there are none */
    bool is_tied;                 /* the embedding is also the output projection */
    int64_t num_layers, num_heads, head_dim;
    int64_t seq_len;
} ct_flops_model;

/* Forward and backward operations per token by TorchTitan's rule: 6 per parameter that multiplies (an untied embedding
 * is only looked up, and one that is frozen has no gradient: 4), and 12 layers * heads * head_dim * seq_len for
 * attention, the causal half not taken off. What is computed twice for activation checkpointing does not count. */
double ct_flops_per_token(const ct_flops_model *model);

/* Peak dense bf16 operations per second of one device, by the name that its plugin gives it ("TPU v5 lite",
 * "NVIDIA H200"). out_is_known (may be NULL) is false when the name is in no row of the table, as for CPUs: then the
 * value is an A100's, as in TorchTitan, so that mfu stays comparable between runs and no more than that. */
double ct_peak_flops(const char *device_kind, bool *out_is_known);

#endif
