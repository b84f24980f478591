/* Softmax and logsumexp as custom derivatives over element-wise ops and reductions. */
#include "graph/softmax.h"

#include <math.h>

#include "graph/compare.h"
#include "graph/constant.h"
#include "graph/custom_vjp.h"
#include "graph/elementwise.h"
#include "graph/node.h"
#include "graph/reduce.h"

/* The largest value, with -inf (a row without any value) replaced by 0 so that x - max stays -inf rather than NaN. */
static ct_tensor *finite_max(ct_tensor *x, const char *axis)
{
    ct_tensor *max = ct_max(x, axis);
    return ct_select(ct_eq(max, ct_scalar_like(max, -INFINITY)), ct_scalar_like(max, 0), max);
}

static void softmax_forward(ct_graph *graph, void *context, ct_tensor *const *inputs, ct_tensor **out_outputs)
{
    (void)graph;
    const char *axis = context;
    ct_tensor *e = ct_exp(ct_sub(inputs[0], finite_max(inputs[0], axis)));
    ct_tensor *sum = ct_sum(e, axis);
    ct_tensor *safe = ct_select(ct_eq(sum, ct_scalar_like(sum, 0)), ct_scalar_like(sum, 1), sum);
    out_outputs[0] = ct_div(e, safe);
}

/* p (c - sum(p c)) */
static void softmax_backward(ct_graph *graph, void *context, ct_tensor *const *inputs, ct_tensor *const *outputs,
                             ct_tensor *const *cotangents, ct_tensor **out_gradients)
{
    (void)graph;
    (void)inputs;
    ct_tensor *p = outputs[0], *c = cotangents[0];
    out_gradients[0] = ct_mul(p, ct_sub(c, ct_sum(ct_mul(p, c), context)));
}

static bool fits(const char *loc, const char *op, ct_tensor *x, const char *axis)
{
    if (ct__any_poison(1, &x)) return false;
    int dims[CT_MAX_RANK], count;
    if (!ct__parse_dims(x, loc, op, axis, dims, &count)) return false;
    if (count == 1 && ct_dtype_is_float(x->dtype)) return true;
    ct__fail(x->graph, loc, op, "needs floats and one axis, found %s and \"%s\"", ct_tensor_describe(x), axis);
    return false;
}

ct_tensor *ct__softmax(const char *loc, ct_tensor *x, const char *axis)
{
    if (!fits(loc, "softmax", x, axis)) return x->graph->poison;
    ct_tensor *result;
    void *context = (void *)(uintptr_t)ct__intern_z(x->graph, axis);
    ct__custom_vjp(loc, x->graph, 1, &x, 1, &result, softmax_forward, softmax_backward, context);
    return result;
}

static void logsumexp_forward(ct_graph *graph, void *context, ct_tensor *const *inputs, ct_tensor **out_outputs)
{
    (void)graph;
    ct_tensor *max = finite_max(inputs[0], context);
    out_outputs[0] = ct_add(ct_log(ct_sum(ct_exp(ct_sub(inputs[0], max)), context)), max);
}

/* softmax(x) c, from the saved result: exp(x - lse) c */
static void logsumexp_backward(ct_graph *graph, void *context, ct_tensor *const *inputs, ct_tensor *const *outputs,
                               ct_tensor *const *cotangents, ct_tensor **out_gradients)
{
    (void)graph;
    (void)context;
    ct_tensor *lse = outputs[0];
    ct_tensor *shift = ct_select(ct_eq(lse, ct_scalar_like(lse, -INFINITY)), ct_scalar_like(lse, 0), lse);
    out_gradients[0] = ct_mul(ct_exp(ct_sub(inputs[0], shift)), cotangents[0]);
}

ct_tensor *ct__logsumexp(const char *loc, ct_tensor *x, const char *axis)
{
    if (!fits(loc, "logsumexp", x, axis)) return x->graph->poison;
    ct_tensor *result;
    void *context = (void *)(uintptr_t)ct__intern_z(x->graph, axis);
    ct__custom_vjp(loc, x->graph, 1, &x, 1, &result, logsumexp_forward, logsumexp_backward, context);
    return result;
}

ct_tensor *ct__log_softmax(const char *loc, ct_tensor *x, const char *axis)
{
    return ct__sub(loc, x, ct__logsumexp(loc, x, axis));
}
