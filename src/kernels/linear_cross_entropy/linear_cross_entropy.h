/* Cross-entropy of a linear layer, without its logits in memory.
 *
 *   hidden   [batch seq dim]   bf16, f16, f32 or f64
 *   weight   [vocab dim]       hidden's dtype (ct_use of the head)
 *   labels   s32 [batch seq]   CT_IGNORE_LABEL (-100): the position counts nothing
 *   result   f32 (f64 for f64) [batch seq]: log-sum-exp of the logits minus the label's logit, plus z_loss times the
 *            log-sum-exp squared; 0 where ignored
 *
 *   logits = hidden weight^T, accumulated in f32; with soft_cap c > 0: c tanh(logits / c)
 *
 * The definition builds the logits, in hidden's dtype; the portable form scans over tiles of the vocabulary forward and
 * backward and saves the log-sum-exp alone; so does the form mosaic, in kernels for TPUs (bf16 and f32). Under tensor
 * parallel the vocabulary is sharded and logits are not gathered, unless the definition is told to
 * (disable_loss_parallel). Errors (kept in the graph): INVALID_ARGUMENT for axes and dtypes that do not fit, a form
 * that cannot be had. Source: torch.nn.functional.cross_entropy; PaLM (z-loss); Wijmans et al. 2024, "Cut Your Losses".
 */
#ifndef CT_KERNELS_LINEAR_CROSS_ENTROPY_H
#define CT_KERNELS_LINEAR_CROSS_ENTROPY_H

#include "graph/graph.h"

enum { CT_IGNORE_LABEL = -100 };

typedef struct ct_linear_cross_entropy_opts {
    double z_loss;             /* 0: none */
    double soft_cap;           /* 0: none */
    bool frozen;               /* the weight gets no gradient, and none is computed */
    ct_tensor **out_logsumexp; /* not NULL: set to [batch seq], in the result's dtype, of ignored positions as well */
} ct_linear_cross_entropy_opts;

#define ct_linear_cross_entropy(hidden, weight, labels, opts)                                                          \
    ct__linear_cross_entropy(CT_LOC, hidden, weight, labels, opts)
ct_tensor *ct__linear_cross_entropy(const char *loc, ct_tensor *hidden, ct_tensor *weight, ct_tensor *labels,
                                    const ct_linear_cross_entropy_opts *opts);

/* The sum of the results, a number. Its portable form goes over blocks of rows where that is faster (on CPUs, the
 * vocabulary whole) and makes the gradients in the forward pass: only the sum's cotangent is missing from them then.
 * Kernels' loss_blocks say what is wanted: rows, that way; vocab without rows, the other. */
#define ct_linear_cross_entropy_sum(hidden, weight, labels, opts)                                                      \
    ct__linear_cross_entropy_sum(CT_LOC, hidden, weight, labels, opts)
ct_tensor *ct__linear_cross_entropy_sum(const char *loc, ct_tensor *hidden, ct_tensor *weight, ct_tensor *labels,
                                        const ct_linear_cross_entropy_opts *opts);

/* The same, plain, from logits [batch seq vocab] of any float dtype, which are in memory anyway.
 * torch.nn.functional.cross_entropy(reduction="none"). */
#define ct_cross_entropy(logits, labels) ct__cross_entropy(CT_LOC, logits, labels)
ct_tensor *ct__cross_entropy(const char *loc, ct_tensor *logits, ct_tensor *labels);

#endif
