/* AdamW and clipping over graph ops. */
#include "optim/adamw.h"

#include <math.h>

#include "graph/ops.h"

void ct_adamw_corrections(const ct_adamw_opts *opts, int64_t n, double out_corrections[2])
{
    out_corrections[0] = 1 - pow(opts->beta1, (double)n);
    out_corrections[1] = 1 - pow(opts->beta2, (double)n);
}

static ct_tensor *if_applies(const ct_adamw_step *step, ct_tensor *updated, ct_tensor *before)
{
    return step->applies ? ct_select(step->applies, updated, before) : updated;
}

void ct_adamw_update(const ct_adamw_opts *opts, const ct_adamw_step *step, ct_tensor *param, ct_tensor *gradient,
                     ct_tensor *m, ct_tensor *v, ct_tensor **out_param, ct_tensor **out_m, ct_tensor **out_v)
{
    ct_dtype state = ct_tensor_dtype(m);
    ct_tensor *g = ct_convert(gradient, CT_DTYPE_F32);
    ct_tensor *m32 = ct_convert(m, CT_DTYPE_F32), *v32 = ct_convert(v, CT_DTYPE_F32);
    /* The moments are chosen before the parameter uses them: then XLA updates them in place, where otherwise it keeps a
     * copy of the old ones to compute the new ones from once more. */
    m32 = if_applies(step, ct_add(ct_mul_scalar(m32, opts->beta1), ct_mul_scalar(g, 1 - opts->beta1)), m32);
    v32 = if_applies(step, ct_add(ct_mul_scalar(v32, opts->beta2), ct_mul_scalar(ct_mul(g, g), 1 - opts->beta2)), v32);
    ct_tensor *one = ct_scalar_like(step->lr, 1);
    ct_tensor *decay = ct_sub(one, ct_mul_scalar(step->lr, opts->weight_decay));
    ct_tensor *step_size = ct_div(step->lr, step->bias_correction1);
    ct_tensor *root = ct_div(ct_sqrt(v32), ct_sqrt(step->bias_correction2));
    ct_tensor *move = ct_div(ct_mul(m32, step_size), ct_add_scalar(root, opts->eps));
    ct_tensor *p = ct_convert(param, CT_DTYPE_F32);
    *out_param = ct_convert(if_applies(step, ct_sub(ct_mul(p, decay), move), p), ct_tensor_dtype(param));
    *out_m = ct_convert(m32, state);
    *out_v = ct_convert(v32, state);
}

ct_tensor *ct_gradient_norm(ct_tensor *const *gradients, int num_gradients)
{
    ct_tensor *total = NULL;
    for (int i = 0; i < num_gradients; i++) {
        ct_tensor *g = ct_convert(gradients[i], CT_DTYPE_F32);
        ct_str axes;
        ct_str_init(&axes);
        for (int d = 0; d < ct_tensor_rank(g); d++)
            ct_str_printf(&axes, "%s%s", d ? " " : "", ct_tensor_axis_name(g, d));
        ct_tensor *square = ct_sum(ct_mul(g, g), axes.data);
        ct_str_deinit(&axes);
        total = total ? ct_add(total, square) : square;
    }
    return ct_sqrt(total);
}

ct_tensor *ct_clip_coefficient(ct_tensor *norm, double max_norm)
{
    ct_tensor *ratio = ct_div(ct_scalar_like(norm, max_norm), ct_add_scalar(norm, 1e-6));
    return ct_minimum(ratio, ct_scalar_like(norm, 1));
}
