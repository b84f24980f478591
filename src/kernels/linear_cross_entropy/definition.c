/* The loss by its definition: all logits in memory, differentiated by autodiff. In f64 it is the oracle for every other
 * form. The label's logit is picked by comparison, which fuses with the reduction and needs no gather.
 */
#include "graph/ops.h"
#include "kernels/linear_cross_entropy/loss.h"
#include "spmd/points.h"

ct_dtype ct__loss_wide(const ct_tensor *x)
{
    return x->dtype == CT_DTYPE_F64 ? CT_DTYPE_F64 : CT_DTYPE_F32;
}

ct_tensor *ct__loss_counted(ct_tensor *labels)
{
    return ct_ne(labels, ct_scalar_like(labels, CT_IGNORE_LABEL));
}

ct_tensor *ct__loss_cap(ct_tensor *logits, double soft_cap)
{
    return soft_cap > 0 ? ct_mul_scalar(ct_tanh(ct_mul_scalar(logits, 1 / soft_cap)), soft_cap) : logits;
}

ct_tensor *ct__loss_slope(ct_tensor *d, ct_tensor *logits, double soft_cap)
{
    if (!(soft_cap > 0)) return d;
    ct_tensor *part = ct_mul_scalar(ct_mul(logits, logits), -1 / (soft_cap * soft_cap));
    return ct_mul(d, ct_add_scalar(part, 1));
}

ct_tensor *ct__loss_of_rows(ct_tensor *logsumexp, ct_tensor *picked, ct_tensor *labels, double z_loss)
{
    ct_tensor *loss = ct_sub(logsumexp, picked);
    if (z_loss > 0) loss = ct_add(loss, ct_mul_scalar(ct_mul(logsumexp, logsumexp), z_loss));
    ct_tensor *counted = ct__loss_counted(labels);
    return ct_select(counted, loss, ct_scalar_like(loss, 0));
}

static ct_tensor *of_logits(ct_tensor *logits, ct_tensor *labels, const ct__loss *loss, ct_tensor **out_logsumexp)
{
    ct_graph *graph = logits->graph;
    logits = ct__loss_cap(ct_convert(logits, ct__loss_wide(logits)), loss->soft_cap);
    const char *axis = ct_arena_printf(&graph->arena, "vocab=%lld", (long long)ct_tensor_axis_size(logits, "vocab"));
    ct_tensor *ids = ct_broadcast_like(ct_iota(graph, labels->dtype, axis, "vocab"), logits);
    ct_tensor *hit = ct_eq(ct_broadcast_like(labels, logits), ids);
    ct_tensor *picked = ct_sum(ct_select(hit, logits, ct_scalar_like(logits, 0)), "vocab");
    ct_tensor *logsumexp = ct_logsumexp(logits, "vocab");
    if (out_logsumexp) *out_logsumexp = logsumexp;
    return ct__loss_of_rows(logsumexp, picked, labels, loss->z_loss);
}

ct_tensor *ct__loss_definition(ct_tensor *hidden, ct_tensor *weight, ct_tensor *labels, const ct__loss *loss,
                               ct_tensor **out_logsumexp)
{
    if (loss->frozen) weight = ct_stop_gradient(weight);
    return of_logits(ct_shard(ct_linear(hidden, weight), "logits"), labels, loss, out_logsumexp);
}

ct_tensor *ct__cross_entropy(const char *loc, ct_tensor *logits, ct_tensor *labels)
{
    ct_graph *graph = logits->graph;
    if (ct__any_poison(2, (ct_tensor *[]){logits, labels})) return graph->poison;
    if (ct_tensor_find_axis(logits, "vocab") < 0)
        return ct__fail(graph, loc, "cross_entropy", "logits need the axis vocab, found %s",
                        ct_tensor_describe(logits));
    const char *saved = ct__loc_enter(graph, loc);
    ct_tensor *result = of_logits(logits, labels, &(ct__loss){0}, NULL);
    ct__loc_leave(graph, saved);
    return result;
}
