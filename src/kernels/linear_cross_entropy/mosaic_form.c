/* The mosaic form: kernels called on a device's arrays. */
#include <math.h>
#include <string.h>

#include "graph/ops.h"
#include "kernels/linear_cross_entropy/loss.h"
#include "kernels/linear_cross_entropy/mosaic_tile.h"

static ct__loss_mosaic sizes_of(const ct_tensor *hidden, const ct_tensor *weight, const ct__loss *loss)
{
    const ct_kernels *kernels = ct_kernels_of(hidden->graph);
    return (ct__loss_mosaic){.element = hidden->dtype == CT_DTYPE_F32 ? CT_MOSAIC_F32 : CT_MOSAIC_BF16,
                             .rows = hidden->axes[0].size * hidden->axes[1].size,
                             .vocab = weight->axes[0].size,
                             .dim = weight->axes[1].size,
                             .is_padded = loss->is_padded,
                             .soft_cap = loss->soft_cap,
                             .vector_bytes =
                                 kernels->vector_bytes ? kernels->vector_bytes : ct_mosaic_chip_bytes(kernels->chip)};
}

const char *ct__loss_mosaic_why_not(const ct_tensor *hidden, const ct_tensor *weight, const ct__loss *loss)
{
    ct_graph *graph = hidden->graph;
    const ct_kernels *kernels = ct_kernels_of(graph);
    if (!kernels->platform || strcmp(kernels->platform, "tpu") != 0)
        return ct_arena_printf(&graph->arena,
                               "the mosaic form is for TPUs, and the platform is %s; ask for portable or definition",
                               kernels->platform ? kernels->platform : "not known");
    if (hidden->dtype != CT_DTYPE_BF16 && hidden->dtype != CT_DTYPE_F32)
        return ct_arena_printf(&graph->arena,
                               "the mosaic form takes bf16 and f32, found %s; ask for portable or definition",
                               ct_dtype_name(hidden->dtype));
    ct__loss_mosaic s = sizes_of(hidden, weight, loss);
    return ct__loss_mosaic_bad_blocks(graph, kernels, &s);
}

/* ---- arrays ---- */

typedef struct arrays {
    const ct__loss_part *part;
    ct__loss_mosaic sizes;
    ct_tensor *limit;  /* s32 */
    ct_tensor *labels; /* in this part; -1: elsewhere */
} arrays;

static arrays arrays_of(const ct__loss_part *part)
{
    arrays a = {.part = part, .sizes = sizes_of(part->hidden, part->weight, part->loss)};
    ct_graph *graph = part->hidden->graph;
    a.limit = ct_scalar(graph, CT_DTYPE_S32, (double)part->vocab);
    if (part->loss->is_padded) {
        ct_tensor *left = ct_sub(ct_scalar_like(a.limit, (double)part->loss->vocab), part->offset);
        a.limit = ct_minimum(ct_maximum(left, ct_scalar_like(left, 0)), a.limit);
    }
    a.labels = part->offset ? ct_sub(part->labels, ct_broadcast_like(part->offset, part->labels)) : part->labels;
    ct_tensor *is_here =
        ct_and(ct_ge(a.labels, ct_scalar_like(a.labels, 0)), ct_lt(a.labels, ct_broadcast_like(a.limit, a.labels)));
    a.labels = ct_select(is_here, a.labels, ct_scalar_like(a.labels, -1));
    return a;
}

static ct_tensor *pad_rows(const arrays *a, ct_tensor *x, double value)
{
    int64_t size = ct_tensor_axis_size(x, "row"), len = ct__loss_mosaic_padded(&a->sizes);
    return size < len ? ct_pad(x, "row", 0, len - size, value) : x;
}

static ct_tensor *cut_rows(const arrays *a, ct_tensor *x)
{
    const ct_axis *axes = a->part->labels->axes;
    x = ct_tensor_axis_size(x, "row") > a->sizes.rows ? ct_slice(x, "row", 0, a->sizes.rows) : x;
    return ct_split(
        x, "row",
        ct_arena_printf(&x->graph->arena, "batch=%lld seq=%lld", (long long)axes[0].size, (long long)axes[1].size));
}

/* A number per row, [batch seq], as [1 row]. */
static ct_tensor *numbers(const arrays *a, ct_tensor *x, double padding)
{
    return ct_unsqueeze(pad_rows(a, ct_merge(x, "batch seq", "row"), padding), "one", 0);
}

enum { LIMIT, X, W, LABELS, NUM_FORWARD, LSE = NUM_FORWARD, OF_SOFTMAX, OF_LABEL, NUM_BACKWARD };

/* Sets the blocks for kernel, lists what all kernels take. */
static void prepare(arrays *a, ct__loss_kernel kernel, ct_tensor *out_operands[NUM_BACKWARD])
{
    a->sizes.blocks = ct__loss_mosaic_blocks(ct_kernels_of(a->part->hidden->graph), &a->sizes, kernel);
    out_operands[LIMIT] = ct_unsqueeze(a->limit, "one", 0);
    out_operands[X] = pad_rows(a, ct_merge(a->part->hidden, "batch seq", "row"), 0);
    out_operands[W] = a->part->weight;
    out_operands[LABELS] = numbers(a, a->labels, -1);
}

static void forward(const ct__loss_part *part, ct_tensor **out_logsumexp, ct_tensor **out_picked)
{
    arrays a = arrays_of(part);
    ct_graph *graph = part->hidden->graph;
    ct_tensor *operands[NUM_BACKWARD], *results[2];
    prepare(&a, CT__LOSS_FORWARD, operands);
    const char *axes = ct_arena_printf(&graph->arena, "one=1 row=%lld", (long long)ct__loss_mosaic_padded(&a.sizes));
    ct_tensor *like = ct_full(graph, CT_DTYPE_F32, axes, 0);
    ct_mosaic_call(ct__loss_mosaic_kernel(&a.sizes, CT__LOSS_FORWARD), NUM_FORWARD, operands, 2,
                   ((ct_tensor *[]){like, like}), results);
    *out_logsumexp = cut_rows(&a, ct_squeeze(results[0], "one"));
    *out_picked = cut_rows(&a, ct_squeeze(results[1], "one"));
}

static void backward(const ct__loss_part *part, const ct__loss_cotangents *rows, ct_tensor *out_gradients[2])
{
    arrays a = arrays_of(part);
    ct__loss_kernel last = part->loss->frozen ? CT__LOSS_DX : CT__LOSS_DW;
    for (ct__loss_kernel kernel = CT__LOSS_DX; kernel <= last; kernel++) {
        ct_tensor *operands[NUM_BACKWARD], *result;
        prepare(&a, kernel, operands);
        operands[LSE] = numbers(&a, ct_mul_scalar(rows->logsumexp, CT__LOSS_LOG2E), 0);
        operands[OF_SOFTMAX] = numbers(&a, rows->of_softmax, 0);
        operands[OF_LABEL] = numbers(&a, rows->of_label, 0);
        ct_tensor *like = operands[kernel == CT__LOSS_DX ? X : W];
        ct_mosaic_call(ct__loss_mosaic_kernel(&a.sizes, kernel), NUM_BACKWARD, operands, 1, &like, &result);
        out_gradients[kernel == CT__LOSS_DW] = kernel == CT__LOSS_DX ? cut_rows(&a, result) : result;
    }
}

const ct__loss_form ct__loss_mosaic_form = {.forward = forward, .backward = backward};
