/* Attention by its definition: the whole matrix of scores, differentiated by autodiff. In f64 it is the oracle for
 * every other implementation.
 */
#include <math.h>

#include "graph/node.h"
#include "graph/ops.h"
#include "kernels/attention/context.h"
#include "kernels/attention/definition.h"
#include "kernels/attention/mosaic_form.h"

static bool has_axes(ct_tensor *x, const char *loc, const char *what, const char *axes)
{
    int dims[CT_MAX_RANK], count;
    if (!ct__parse_dims(x, loc, "attention", axes, dims, &count)) return false;
    if (count == x->rank) return true;
    ct__fail(x->graph, loc, "attention", "%s must have exactly the axes \"%s\", found %s", what, axes,
             ct_tensor_describe(x));
    return false;
}

ct_tensor *ct__attention_positions(ct_tensor *given, const ct_tensor *like, const char *axis)
{
    if (given) return given;
    const char *axes =
        ct_arena_printf(&like->graph->arena, "%s=%lld", axis, (long long)ct_tensor_axis_size(like, axis));
    return ct_iota(like->graph, CT_DTYPE_S32, axes, axis);
}

/* a op b over [batch seq kv_seq] (batch only when one of them has it). */
static ct_tensor *compare_pairs(const char *direction, ct_tensor *of_query, ct_tensor *of_key)
{
    ct_axis axes[CT_MAX_RANK];
    int rank = 0;
    const ct_tensor *with_batch = of_query->rank == 2 ? of_query : of_key->rank == 2 ? of_key : NULL;
    if (with_batch) axes[rank++] = with_batch->axes[0];
    axes[rank++] = of_query->axes[of_query->rank - 1];
    axes[rank++] = of_key->axes[of_key->rank - 1];
    return ct__compare(CT_LOC, direction, ct__broadcast_to(CT_LOC, of_query, rank, axes),
                       ct__broadcast_to(CT_LOC, of_key, rank, axes));
}

static ct_tensor *both(ct_tensor *a, ct_tensor *b)
{
    return a && b ? ct_and(a, b) : a ? a : b;
}

/* Which pairs are seen: bool [seq kv_seq] or [batch seq kv_seq]; NULL: all. */
static ct_tensor *mask_of(const ct_tensor *q, const ct_tensor *k, const ct_attention_opts *opts)
{
    ct_tensor *seen = NULL;
    if (opts->causal || opts->window > 0) {
        ct_tensor *query = ct__attention_positions(opts->positions, q, "seq");
        ct_tensor *key = ct__attention_positions(opts->kv_positions, k, "kv_seq");
        if (opts->causal) seen = compare_pairs("GE", query, key);
        if (opts->window > 0) {
            double window = (double)opts->window;
            seen = both(seen, compare_pairs("LT", query, ct_add_scalar(key, window)));
            if (!opts->causal) seen = both(seen, compare_pairs("LT", key, ct_add_scalar(query, window)));
        }
    }
    if (opts->segments) seen = both(seen, compare_pairs("EQ", opts->segments, opts->kv_segments));
    return seen;
}

ct_tensor *ct__attention_group(ct_tensor *x, int64_t kv_heads)
{
    return ct_split(x, "heads", ct_arena_printf(&x->graph->arena, "kv_heads=%lld group", (long long)kv_heads));
}

ct_tensor *ct__attention_ungroup(ct_tensor *x)
{
    return ct_merge(ct_transpose(x, "batch seq kv_heads group head_dim"), "kv_heads group", "heads");
}

ct_tensor *ct__attention_ungroup_rows(ct_tensor *rows)
{
    return ct_merge(ct_transpose(rows, "batch kv_heads group seq"), "kv_heads group", "heads");
}

ct_dtype ct__attention_wide(const ct_tensor *q)
{
    return q->dtype == CT_DTYPE_F64 ? CT_DTYPE_F64 : CT_DTYPE_F32;
}

double ct__attention_scale(const ct_tensor *q, const ct_attention_opts *opts)
{
    return opts->scale != 0 ? opts->scale : 1 / sqrt((double)ct_tensor_axis_size(q, "head_dim"));
}

ct_tensor *ct__attention_scores(ct_tensor *grouped, ct_tensor *k, const ct_attention_opts *opts)
{
    ct_tensor *scores = ct_dot_as(grouped, k, "head_dim", ct__attention_wide(grouped));
    scores = ct_mul_scalar(scores, ct__attention_scale(grouped, opts));
    if (opts->soft_cap > 0) scores = ct_mul_scalar(ct_tanh(ct_mul_scalar(scores, 1 / opts->soft_cap)), opts->soft_cap);
    return scores;
}

ct_tensor *ct__attention_hide(ct_tensor *scores, const ct_tensor *q, const ct_tensor *k, const ct_attention_opts *opts)
{
    ct_tensor *mask = mask_of(q, k, opts);
    return mask ? ct_select(ct_broadcast_like(mask, scores), scores, ct_scalar_like(scores, -INFINITY)) : scores;
}

ct_tensor *ct__attention_plain(ct_tensor *q, ct_tensor *k, ct_tensor *v, const ct_attention_opts *opts)
{
    ct_tensor *grouped = ct__attention_group(q, ct_tensor_axis_size(k, "kv_heads"));
    ct_tensor *scores = ct__attention_hide(ct__attention_scores(grouped, k, opts), q, k, opts);
    ct_tensor *weights = ct_softmax(scores, "kv_seq");
    ct_tensor *mixed = ct_dot(ct_convert(weights, q->dtype), v, "kv_seq"); /* [batch kv_heads seq group head_dim] */
    ct_tensor *result = ct__attention_ungroup(mixed);
    if (opts->out_logsumexp)
        *opts->out_logsumexp = ct_convert(ct__attention_ungroup_rows(ct_logsumexp(scores, "kv_seq")), CT_DTYPE_F32);
    return result;
}

ct_tensor *ct__attention(const char *loc, ct_tensor *q, ct_tensor *k, ct_tensor *v, const ct_attention_opts *opts)
{
    static const ct_attention_opts defaults = {0};
    if (!opts) opts = &defaults;
    ct_graph *graph = q->graph;
    if (opts->out_logsumexp) *opts->out_logsumexp = graph->poison;
    if (ct__any_poison(3, (ct_tensor *[]){q, k, v})) return graph->poison;
    if (!has_axes(q, loc, "q", "batch seq heads head_dim") ||
        !has_axes(k, loc, "k", "batch kv_seq kv_heads head_dim") ||
        !has_axes(v, loc, "v", "batch kv_seq kv_heads head_dim"))
        return graph->poison;
    int64_t heads = ct_tensor_axis_size(q, "heads"), kv_heads = ct_tensor_axis_size(k, "kv_heads");
    if (heads % kv_heads)
        return ct__fail(graph, loc, "attention", "heads = %lld must be a multiple of kv_heads = %lld", (long long)heads,
                        (long long)kv_heads);
    if (!opts->segments != !opts->kv_segments)
        return ct__fail(graph, loc, "attention", "segments and kv_segments must be given together");

    const char *why;
    ct_kernel_form form = ct_attention_form(ct_kernels_of(graph), ct_tensor_axis_size(k, "kv_seq"), &why);
    if (form == CT_KERNEL_MOSAIC) {
        const char *why_not = ct__splash_why_not(ct_kernels_of(graph), q, k, opts);
        if (why_not && ct__splash_is_asked(ct_kernels_of(graph)))
            return ct__fail(graph, loc, "attention", "%s", why_not);
        if (why_not) {
            form = CT_KERNEL_PORTABLE;
            ct__kernels_fell_back(graph, "attention", why_not);
        }
    }
    const char *saved_loc = ct__loc_enter(graph, loc);
    bool is_plain = form == CT_KERNEL_DEFINITION && !ct__context_wanted(graph);
    ct_tensor *result = is_plain ? ct__attention_plain(q, k, v, opts) : ct__context_attention(loc, q, k, v, opts, form);
    ct__loc_leave(graph, saved_loc);
    return opts->checkpoint_name ? ct_checkpoint_name(result, opts->checkpoint_name) : result;
}
