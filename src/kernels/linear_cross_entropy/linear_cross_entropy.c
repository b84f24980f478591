/* Checks, and which form. */
#include "kernels/linear_cross_entropy/linear_cross_entropy.h"

#include <string.h>

#include "graph/reduce.h"
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

/* Is a form asked for, by name or by sizes of its blocks? Then it is not to be had otherwise. */
static bool is_asked(const ct_kernels *kernels)
{
    const ct_loss_blocks *b = &kernels->loss_blocks;
    return kernels->loss != CT_KERNEL_AUTO || b->rows || b->hidden || b->vocab;
}

/* The form, what it needs in *out_loss; NULL where an error was kept. */
static bool prepare(const char *loc, ct_tensor *hidden, ct_tensor *weight, ct_tensor *labels,
                    const ct_linear_cross_entropy_opts *opts, ct_kernel_form *out_form, ct__loss **out_loss)
{
    ct_graph *graph = hidden->graph;
    if (ct__any_poison(3, (ct_tensor *[]){hidden, weight, labels}) || !fits(loc, hidden, weight, labels)) return false;
    const ct_kernels *kernels = ct_kernels_of(graph);
    int64_t vocab = weight->axes[0].size;
    ct__loss *loss = CT_ARENA_NEW(&graph->arena, ct__loss);
    *loss = (ct__loss){.z_loss = opts->z_loss,
                       .soft_cap = opts->soft_cap,
                       .frozen = opts->frozen,
                       .vocab = vocab,
                       .tile = kernels->loss_blocks.vocab,
                       .rows = kernels->loss_blocks.rows};
    const char *why;
    *out_form = ct_loss_form(kernels, ct__num_elements(labels), vocab, &why);
    *out_loss = loss;
    if (*out_form == CT_KERNEL_DEFINITION) return true;
    ct__loss_place(loss, weight, labels);
    const char *why_not = *out_form == CT_KERNEL_MOSAIC ? ct__loss_mosaic_why_not(hidden, weight, loss) : NULL;
    if (why_not && is_asked(kernels)) {
        ct__fail(graph, loc, "linear_cross_entropy", "%s", why_not);
        return false;
    }
    if (why_not) {
        *out_form = CT_KERNEL_PORTABLE;
        ct__kernels_fell_back(graph, "the loss", why_not);
    }
    loss->form = *out_form == CT_KERNEL_MOSAIC ? &ct__loss_mosaic_form : &ct__loss_portable;
    return true;
}

static ct_tensor *of_rows(const char *loc, ct_tensor *hidden, ct_tensor *weight, ct_tensor *labels, ct_kernel_form form,
                          ct__loss *loss, ct_tensor **out_logsumexp)
{
    return form == CT_KERNEL_DEFINITION ? ct__loss_definition(hidden, weight, labels, loss, out_logsumexp)
                                        : ct__loss_by_parts(loc, hidden, weight, labels, loss, out_logsumexp);
}

static const ct_linear_cross_entropy_opts DEFAULTS = {0};

ct_tensor *ct__linear_cross_entropy(const char *loc, ct_tensor *hidden, ct_tensor *weight, ct_tensor *labels,
                                    const ct_linear_cross_entropy_opts *opts)
{
    if (!opts) opts = &DEFAULTS;
    ct_graph *graph = hidden->graph;
    if (opts->out_logsumexp) *opts->out_logsumexp = graph->poison;
    ct_kernel_form form;
    ct__loss *loss;
    if (!prepare(loc, hidden, weight, labels, opts, &form, &loss)) return graph->poison;
    const char *saved = ct__loc_enter(graph, loc);
    ct_tensor *result = of_rows(loc, hidden, weight, labels, form, loss, opts->out_logsumexp);
    ct__loc_leave(graph, saved);
    return result;
}

/* By rows is faster by a third where the weight's gradient can be added to again and again: in a CPU's memory, and
 * where the vocabulary is whole, as parts would have to exchange sums in every turn. */
static bool goes_by_rows(const ct_graph *graph, const ct__loss *loss)
{
    const char *platform = ct_kernels_of(graph)->platform;
    if (loss->vocab_axes && *loss->vocab_axes) return false;
    return loss->rows || (!loss->tile && (!platform || !strcmp(platform, "cpu")));
}

ct_tensor *ct__linear_cross_entropy_sum(const char *loc, ct_tensor *hidden, ct_tensor *weight, ct_tensor *labels,
                                        const ct_linear_cross_entropy_opts *opts)
{
    if (!opts) opts = &DEFAULTS;
    ct_graph *graph = hidden->graph;
    if (opts->out_logsumexp) *opts->out_logsumexp = graph->poison;
    ct_kernel_form form;
    ct__loss *loss;
    if (!prepare(loc, hidden, weight, labels, opts, &form, &loss)) return graph->poison;
    const char *saved = ct__loc_enter(graph, loc);
    ct_tensor *result;
    if (form == CT_KERNEL_PORTABLE && !opts->out_logsumexp && goes_by_rows(graph, loss))
        result = ct__loss_sum_by_rows(loc, hidden, weight, labels, loss);
    else
        result = ct_sum(of_rows(loc, hidden, weight, labels, form, loss, opts->out_logsumexp), "batch seq");
    ct__loc_leave(graph, saved);
    return result;
}
