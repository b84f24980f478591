/* Gradient clipping and the functional AdamW update, as graph ops.
 *
 * Everything is element-wise on the parameters' own axes, so the optimizer state follows the parameter under any
 * sharding. Source: Loshchilov and Hutter 2019; torch.optim.AdamW; torch.nn.utils.clip_grad_norm_.
 */
#ifndef CT_OPTIM_ADAMW_H
#define CT_OPTIM_ADAMW_H

#include "graph/graph.h"

typedef struct ct_adamw_opts {
    double beta1, beta2, eps, weight_decay;
} ct_adamw_opts;

/* Scalars of one step, f32 without axes, inputs of the program; n is the 1-based number of the update. */
typedef struct ct_adamw_step {
    ct_tensor *lr;
    ct_tensor *bias_correction1; /* 1 - beta1^n */
    ct_tensor *bias_correction2; /* 1 - beta2^n */
    ct_tensor *applies;          /* bool without axes; NULL: true. Where it is false, everything stays as it was */
} ct_adamw_step;

/* The same on the host: out_corrections[0] = 1 - beta1^n, [1] = 1 - beta2^n. */
void ct_adamw_corrections(const ct_adamw_opts *opts, int64_t n, double out_corrections[2]);

/* One parameter's update: p' = p (1 - lr wd) - lr / bc1 * m' / (sqrt(v' / bc2) + eps) with m' = b1 m + (1-b1) g and
 * v' = b2 v + (1-b2) g^2. param, gradient f32; m, v f32 or bf16 (computed in f32, stored in their dtype). */
void ct_adamw_update(const ct_adamw_opts *opts, const ct_adamw_step *step, ct_tensor *param, ct_tensor *gradient,
                     ct_tensor *m, ct_tensor *v, ct_tensor **out_param, ct_tensor **out_m, ct_tensor **out_v);

/* The L2 norm of all gradients together, f32 without axes. */
ct_tensor *ct_gradient_norm(ct_tensor *const *gradients, int num_gradients);

/* min(1, max_norm / (norm + 1e-6)): what each gradient is multiplied by. */
ct_tensor *ct_clip_coefficient(ct_tensor *norm, double max_norm);

#endif
