/* The programs of a trainer: one training step, and scoring.
 *
 * One training step is one program, forward, loss, backward, clipping and AdamW:
 *
 *   inputs   frozen params                            of a model with adapters: all but those, else none
 *            params, m, v, halted                     donated
 *            tokens, labels, positions, segments      s32 [batch seq], or [accum batch seq] with microbatches
 *            scalars f32 [scalar=4]                   lr, 1 - beta1^n, 1 - beta2^n, valid labels in the global batch
 *   outputs  params, m, v, halted                     params that are not frozen
 *            metrics f32 [metric=3]                   loss, gradient norm before clipping, 1 when all was finite
 *
 * When loss or norm is not finite the state stays as it was, and `halted` keeps it so in every later step: the trainer
 * may read metrics late without harm.
 */
#ifndef CT_TRAIN_STEP_H
#define CT_TRAIN_STEP_H

#include "kernels/kernel.h"
#include "models/model.h"
#include "optim/adamw.h"
#include "spmd/localize.h"

typedef struct ct_step_opts {
    int64_t batch, seq_len;      /* of one microbatch, over all devices */
    int64_t num_microbatches;    /* gradient accumulation inside the program */
    bool document_mask;          /* attention stays within segments; else the input segments is not looked at */
    const ct_parallel *parallel; /* how the model lies on its mesh; NULL: one device. Must outlive the graph */
    ct_kernels kernels;          /* which forms attention and loss take */
    ct_localize_report *report;  /* NULL, or an empty one that gets the collectives of a localized program */
    ct_dtype param_dtype;        /* of the master weights that are trained */
    ct_dtype moment_dtype;       /* f32 or bf16 */
    ct_dtype compute_dtype;      /* f32 or bf16 */
    bool moments_on_host;        /* between steps, in pinned memory */
    ct_remat_policy remat;
    double max_norm; /* infinite: no clipping */
    ct_adamw_opts adamw;
} ct_step_opts;

enum { CT_STEP_LR, CT_STEP_BIAS1, CT_STEP_BIAS2, CT_STEP_NUM_VALID, CT_STEP_NUM_SCALARS };
enum { CT_STEP_LOSS, CT_STEP_GRAD_NORM, CT_STEP_FINITE, CT_STEP_NUM_METRICS };

/* Builds the step; the graph is the caller's. opts must live as long as the graph. */
CT_MUST_USE ct_status *ct_train_step_build(const ct_model *model, const ct_step_opts *opts, ct_graph **out_graph);

/* The forward pass of a microbatch as the step does it: inputs params, tokens, labels, positions, segments; output
 * loss_sum f32, over all labels that are not -100. opts must live as long as the graph. */
CT_MUST_USE ct_status *ct_validation_build(const ct_model *model, const ct_step_opts *opts, ct_graph **out_graph);

typedef struct ct_score_opts {
    int64_t batch, seq_len;
    bool logits, gradients;
    const ct_parallel *parallel; /* NULL: one device */
    ct_kernels kernels;
} ct_score_opts;

/* Forward, and on demand backward, in f32: inputs params, tokens, labels (s32 [batch seq]); outputs loss f32 (mean over
 * labels that are not -100), logprobs f32 [batch seq] (0 where ignored), logits f32 [batch seq vocab], then one
 * gradient per parameter. opts must live as long as the graph. */
CT_MUST_USE ct_status *ct_score_build(const ct_model *model, const ct_score_opts *opts, ct_graph **out_graph);

#endif
