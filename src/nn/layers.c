/* Norm, rotary embedding. */
#include "nn/layers.h"

#include <math.h>
#include <string.h>

#include "graph/node.h"
#include "graph/ops.h"

static ct_dtype at_least_f32(const ct_tensor *x)
{
    return x->dtype == CT_DTYPE_F64 ? CT_DTYPE_F64 : CT_DTYPE_F32;
}

ct_tensor *ct__rms_norm(const char *loc, ct_tensor *x, ct_tensor *weight, double eps)
{
    ct_graph *graph = x->graph;
    if (ct__any_poison(2, (ct_tensor *[]){x, weight})) return graph->poison;
    if (weight->rank != 1)
        return ct__fail(graph, loc, "rms_norm", "the weight must have one axis, found %s", ct_tensor_describe(weight));
    const char *saved = ct__loc_enter(graph, loc);
    ct_tensor *wide = ct_convert(x, at_least_f32(x));
    ct_tensor *mean_square = ct_mean(ct_mul(wide, wide), weight->axes[0].name);
    /* 1 / sqrt: both are correctly rounded, which rsqrt is not, and it is one number per row */
    ct_tensor *root = ct_sqrt(ct_add_scalar(mean_square, eps));
    ct_tensor *normed = ct_mul(wide, ct_div(ct_scalar_like(root, 1), root));
    ct_tensor *result = ct_mul(ct_convert(normed, x->dtype), ct_use(weight, x->dtype));
    ct__loc_leave(graph, saved);
    return result;
}

/* ---- rotary embedding ---- */

/* In f32, rounding where transformers rounds: a last digit here is a visible angle at a late position. */
static void rope_frequencies(int64_t half_dim, const ct_rope_config *config, float *out_frequencies)
{
    const float two_pi = 6.2831855f;
    for (int64_t i = 0; i < half_dim; i++) {
        float exponent = (float)(2 * i) / (float)(2 * half_dim);
        float frequency = 1.0f / (float)pow(config->theta, (double)exponent);
        if (config->factor > 0) {
            float factor = (float)config->factor, low = (float)config->low_freq_factor;
            float high = (float)config->high_freq_factor, original = (float)config->original_max_position;
            float wavelength = two_pi / frequency;
            if (wavelength > original / low) { /* few turns within the original context: stretched */
                frequency /= factor;
            } else if (wavelength >= original / high) { /* between: blended; many turns: kept */
                float keep = (original / wavelength - low) / (high - low);
                frequency = (1 - keep) * frequency / factor + keep * frequency;
            }
        }
        out_frequencies[i] = frequency;
    }
}

/* bf16 [head_dim turned]: 1 from a first half to the second, -1 the other way. */
static ct_tensor *turn_matrix(ct_graph *graph, int64_t head_dim)
{
    const char *axes =
        ct_arena_printf(&graph->arena, "head_dim=%lld turned=%lld", (long long)head_dim, (long long)head_dim);
    ct_tensor *way =
        ct_sub(ct_iota(graph, CT_DTYPE_S32, axes, "turned"), ct_iota(graph, CT_DTYPE_S32, axes, "head_dim"));
    int64_t half_dim = head_dim / 2;
    double half = (double)half_dim;
    ct_tensor *forth = ct_convert(ct_eq(way, ct_scalar_like(way, half)), CT_DTYPE_BF16);
    ct_tensor *back = ct_convert(ct_eq(way, ct_scalar_like(way, -half)), CT_DTYPE_BF16);
    return ct_sub(forth, back);
}

ct_rope ct_rope_angles(ct_tensor *positions, int64_t head_dim, const ct_rope_config *config)
{
    ct_graph *graph = positions->graph;
    if (ct_tensor_is_poison(positions)) return (ct_rope){graph->poison, graph->poison, graph->poison};
    int64_t half_dim = head_dim / 2;
    ct_array frequencies = ct_array_new(CT_DTYPE_F32, &half_dim, 1);
    rope_frequencies(half_dim, config, frequencies.data);
    ct_tensor *table = ct_constant(graph, &frequencies, "head_dim");
    ct_array_free(&frequencies);
    ct_axis axes[CT_MAX_RANK];
    memcpy(axes, positions->axes, sizeof(axes));
    CT_ASSERT(positions->rank < CT_MAX_RANK);
    axes[positions->rank] = (ct_axis){ct__intern_z(graph, "head_dim"), half_dim};
    ct_tensor *wide = ct__broadcast_to(CT_LOC, ct_convert(positions, CT_DTYPE_F32), positions->rank + 1, axes);
    ct_tensor *angles = ct_mul(wide, table);
    ct_tensor *cos = ct_cos(angles), *sin = ct_sin(angles);
    return (ct_rope){.cos = ct_concat(((ct_tensor *[]){cos, cos}), 2, "head_dim"),
                     .sin = ct_concat(((ct_tensor *[]){sin, sin}), 2, "head_dim"),
                     .turn = turn_matrix(graph, head_dim)};
}

/* (-second half, first half) of x, at least f32. */
static ct_tensor *turned(ct_tensor *x, ct_tensor *turn)
{
    if (x->dtype == CT_DTYPE_BF16) return ct_rename(ct_dot_as(x, turn, "head_dim", CT_DTYPE_F32), "turned", "head_dim");
    int64_t head_dim = ct_tensor_axis_size(x, "head_dim");
    ct_tensor *wide = ct_convert(x, at_least_f32(x));
    ct_tensor *halves[2] = {ct_neg(ct_slice(wide, "head_dim", head_dim / 2, head_dim)),
                            ct_slice(wide, "head_dim", 0, head_dim / 2)};
    return ct_concat(halves, 2, "head_dim");
}

/* The rotation by +angle, or by -angle for the derivative. inputs: x, cos, sin, turn. */
static ct_tensor *rotate(ct_tensor *const *inputs, bool inverse)
{
    ct_tensor *x = inputs[0];
    ct_tensor *cos = ct_convert(inputs[1], at_least_f32(x)), *sin = ct_convert(inputs[2], at_least_f32(x));
    ct_tensor *along = ct_mul(ct_convert(x, at_least_f32(x)), cos), *across = ct_mul(turned(x, inputs[3]), sin);
    return ct_convert(inverse ? ct_sub(along, across) : ct_add(along, across), x->dtype);
}

static void rope_forward(ct_graph *graph, void *context, ct_tensor *const *inputs, ct_tensor **out_outputs)
{
    (void)graph;
    (void)context;
    out_outputs[0] = rotate(inputs, false);
}

static void rope_backward(ct_graph *graph, void *context, ct_tensor *const *inputs, ct_tensor *const *outputs,
                          ct_tensor *const *cotangents, ct_tensor **out_gradients)
{
    (void)graph;
    (void)context;
    (void)outputs;
    ct_tensor *rotated[4] = {cotangents[0], inputs[1], inputs[2], inputs[3]};
    out_gradients[0] = rotate(rotated, true);
}

ct_tensor *ct__rope_apply(const char *loc, ct_tensor *x, const ct_rope *rope)
{
    ct_graph *graph = x->graph;
    ct_tensor *inputs[4] = {x, rope->cos, rope->sin, rope->turn}, *result;
    if (ct__any_poison(4, inputs)) return graph->poison;
    if (ct_tensor_axis_size(x, "head_dim") != ct_tensor_axis_size(rope->cos, "head_dim"))
        return ct__fail(graph, loc, "rope", "head_dim of %s must be that of the angles %s", ct_tensor_describe(x),
                        ct_tensor_describe(rope->cos));
    ct__custom_vjp(loc, graph, 4, inputs, 1, &result, rope_forward, rope_backward, NULL);
    return result;
}
