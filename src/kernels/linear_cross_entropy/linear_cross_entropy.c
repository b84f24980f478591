/* Checks, and which form. */
#include "kernels/linear_cross_entropy/linear_cross_entropy.h"

#include "kernels/kernel.h"
#include "kernels/linear_cross_entropy/loss.h"

static bool has_axes(const char *loc, const char *what, const ct_tensor *x, const char *first, const char *second,
                     const char *third)
{
    const char *names[3] = {first, second, third};
    int rank = third ? 3 : 2;
    bool fits = x->rank == rank;
    for (int i = 0; i < rank && fits; i++) fits = ct_tensor_find_axis(x, names[i]) == i;
    if (fits) return true;
    ct__fail(x->graph, loc, "linear_cross_entropy", "%s must be [%s %s%s%s], found %s", what, first, second,
             third ? " " : "", third ? third : "", ct_tensor_describe(x));
    return false;
}

static bool fits(const char *loc, const ct_tensor *hidden, const ct_tensor *weight, const ct_tensor *labels)
{
    if (!has_axes(loc, "hidden", hidden, "batch", "seq", "dim") ||
        !has_axes(loc, "the weight", weight, "vocab", "dim", NULL) ||
        !has_axes(loc, "labels", labels, "batch", "seq", NULL))
        return false;
    bool sizes = hidden->axes[0].size == labels->axes[0].size && hidden->axes[1].size == labels->axes[1].size &&
                 hidden->axes[2].size == weight->axes[1].size && weight->axes[0].size > 0;
    bool dtypes = ct_dtype_is_float(hidden->dtype) && weight->dtype == hidden->dtype && labels->dtype == CT_DTYPE_S32;
    if (sizes && dtypes) return true;
    ct__fail(hidden->graph, loc, "linear_cross_entropy",
             "hidden and the weight must be of one float dtype and one dim, labels s32 with hidden's batch and seq; "
             "found %s, %s, %s",
             ct_tensor_describe(hidden), ct_tensor_describe(weight), ct_tensor_describe(labels));
    return false;
}

ct_tensor *ct__linear_cross_entropy(const char *loc, ct_tensor *hidden, ct_tensor *weight, ct_tensor *labels,
                                    const ct_linear_cross_entropy_opts *opts)
{
    static const ct_linear_cross_entropy_opts defaults = {0};
    if (!opts) opts = &defaults;
    ct_graph *graph = hidden->graph;
    if (opts->out_logsumexp) *opts->out_logsumexp = graph->poison;
    if (ct__any_poison(3, (ct_tensor *[]){hidden, weight, labels}) || !fits(loc, hidden, weight, labels))
        return graph->poison;
    const ct_kernels *kernels = ct_kernels_of(graph);
    int64_t vocab = weight->axes[0].size, num_rows = ct__num_elements(labels);
    ct__loss *loss = CT_ARENA_NEW(&graph->arena, ct__loss);
    *loss = (ct__loss){
        .z_loss = opts->z_loss, .soft_cap = opts->soft_cap, .vocab = vocab, .tile = kernels->loss_blocks.vocab};
    const char *why;
    ct_kernel_form form = ct_loss_form(kernels, num_rows, vocab, &why);
    const char *saved = ct__loc_enter(graph, loc);
    ct_tensor *result;
    if (form == CT_KERNEL_DEFINITION)
        result = ct__loss_definition(hidden, weight, labels, loss, opts->out_logsumexp);
    else if (form == CT_KERNEL_PORTABLE)
        result = ct__loss_portable(loc, hidden, weight, labels, loss, opts->out_logsumexp);
    else
        result = ct__fail(graph, loc, "linear_cross_entropy",
                          "loss = \"%s\" cannot be had here (%s); choose auto, portable or definition",
                          ct_kernel_form_name(form), why ? why : "not built");
    ct__loc_leave(graph, saved);
    return result;
}
