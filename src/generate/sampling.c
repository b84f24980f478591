/* Temperature, filters and Gumbel's trick. */
#include "generate/sampling.h"

#include <math.h>

#include "graph/ops.h"

ct_status *ct_sampling_check(const ct_sampling *s)
{
    if (!(s->temperature >= 0) || isinf(s->temperature))
        return ct_error(CT_CODE_INVALID_ARGUMENT, "temperature must be 0 (the likeliest token) or more, found %g",
                        s->temperature);
    if (s->top_k < 0)
        return ct_error(CT_CODE_INVALID_ARGUMENT, "top-k must be 0 (all tokens) or more, found %lld",
                        (long long)s->top_k);
    if (!(s->top_p > 0 && s->top_p <= 1))
        return ct_error(CT_CODE_INVALID_ARGUMENT, "top-p must be above 0 and at most 1 (all tokens), found %g",
                        s->top_p);
    if (!(s->min_p >= 0 && s->min_p <= 1))
        return ct_error(CT_CODE_INVALID_ARGUMENT, "min-p must be from 0 (all tokens) to 1, found %g", s->min_p);
    return NULL;
}

ct_sampling_inputs ct_sampling_declare(ct_graph *graph, const ct_sampling *sampling)
{
    if (!(sampling->temperature > 0)) return (ct_sampling_inputs){0};
    ct_sampling_inputs inputs;
    inputs.key0 = ct_input(graph, "key0", CT_DTYPE_U32, "batch");
    inputs.key1 = ct_input(graph, "key1", CT_DTYPE_U32, "batch");
    inputs.temperature = ct_input(graph, "temperature", CT_DTYPE_F32, "");
    inputs.top_p = ct_input(graph, "top_p", CT_DTYPE_F32, "");
    inputs.min_p = ct_input(graph, "min_p", CT_DTYPE_F32, "");
    return inputs;
}

/* -inf where x is below threshold [batch] */
static ct_tensor *drop_below(ct_tensor *x, ct_tensor *threshold)
{
    return ct_select(ct_lt(x, threshold), ct_scalar_like(x, -INFINITY), x);
}

ct_tensor *ct_sampling_filter(const ct_sampling *sampling, const ct_sampling_inputs *inputs, ct_tensor *logits)
{
    ct_tensor *x = ct_div(ct_convert(logits, CT_DTYPE_F32), inputs->temperature);
    if (sampling->top_k > 0 && sampling->top_k < ct_tensor_axis_size(x, "vocab"))
        x = drop_below(x, ct_min(ct_top_k(x, "vocab", sampling->top_k, NULL), "vocab"));
    if (sampling->top_p < 1) {
        ct_tensor *sorted = ct_sort(x, "vocab", true), *p = ct_softmax(sorted, "vocab");
        ct_tensor *before = ct_sub(ct_cumsum(p, "vocab"), p); /* what the likelier ones have together */
        ct_tensor *kept = ct_select(ct_lt(before, inputs->top_p), sorted, ct_scalar_like(sorted, INFINITY));
        x = drop_below(x, ct_min(kept, "vocab"));
    }
    if (sampling->min_p > 0) x = drop_below(x, ct_add(ct_max(x, "vocab"), ct_log(inputs->min_p)));
    return x;
}

ct_tensor *ct_sampling_choose(const ct_sampling *sampling, const ct_sampling_inputs *inputs, ct_tensor *logits,
                              ct_tensor *positions)
{
    if (!(sampling->temperature > 0)) return ct_argmax(logits, "vocab");
    ct_graph *graph = ct_graph_of(logits);
    ct_tensor *x = ct_sampling_filter(sampling, inputs, logits);
    ct_tensor *counter = ct_convert(positions, CT_DTYPE_U32), *key[2];
    ct_threefry_bits(((ct_tensor *[]){inputs->key0, inputs->key1}),
                     ((ct_tensor *[]){counter, ct_full_like(counter, 0)}), key);
    ct_graph_declare_axis(graph, "vocab", ct_tensor_axis_size(x, "vocab"));
    ct_tensor *bits = ct_random_bits_from(key[0], key[1], "batch vocab");
    /* argmax(x - log e) with e exponential is a draw from softmax(x). Small e decide, so they must be fine: all 32 bits
     * count there, as f32 keeps its relative precision; 1 would make e infinite. */
    ct_tensor *u = ct_mul_scalar(ct_add_scalar(ct_convert(bits, CT_DTYPE_F32), 0.5), 0x1p-32);
    ct_tensor *e = ct_neg(ct_log1p(ct_neg(ct_clamp(u, 0x1p-33, 1 - 0x1p-24))));
    return ct_argmax(ct_sub(x, ct_log(e)), "vocab");
}
