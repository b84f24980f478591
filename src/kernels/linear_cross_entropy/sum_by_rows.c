/* The sum of the losses without their logits: a scan over blocks of rows, which makes the gradients on the way, as a
 * factor that all rows share is all that is not known of them yet. Nothing is computed twice; what it holds instead is
 * the gradient of the whole weight in f32.
 *
 *   turn       logits of the block, all of the vocabulary; loss += ..
 *              d = (softmax (1 + 2 z lse) - [label]) slope of the cap, 0 where ignored
 *              dx of the block = d w;  dw += d^T x
 *   backward   dx, dw times the sum's cotangent
 *
 * Where blocks do not divide the rows the last one begins earlier; rows that it shows again are hidden from the sums.
 * On a mesh whose devices share the rows each has its own; the loss and dw are pending sums over the others.
 * Source: Hsu et al. 2024, "Liger Kernel" (gradients in the forward pass, block by block of rows).
 */
#include "graph/ops.h"
#include "kernels/linear_cross_entropy/loss.h"

/* With fewer, adding to the weight's gradient costs what is saved elsewhere; more do not fit a CPU's caches either
 * (benchmarks/loss). */
enum { BLOCK_ROWS = 256 };

enum { SUM, DX, DW, NUM_CARRIES };

/* A frozen weight has no DW, the last. */
static int num_carries(const ct__loss *loss)
{
    return loss->frozen ? DW : NUM_CARRIES;
}

typedef struct rows {
    const ct__loss *loss;
    ct_tensor *hidden, *weight, *labels; /* [row dim], [vocab dim], [row] */
    int64_t num_rows, block;
    bool overlaps; /* the last block and the one before */
} rows;

static ct_tensor *hide(ct_tensor *mask, ct_tensor *x)
{
    return mask ? ct_select(ct_broadcast_like(mask, x), x, ct_scalar_like(x, 0)) : x;
}

static void turn(ct_graph *graph, void *opaque, ct_tensor *const *carries, ct_tensor *const *slices,
                 ct_tensor **out_carries, ct_tensor **out_slices)
{
    (void)out_slices;
    const rows *r = opaque;
    const ct__loss *loss = r->loss;
    ct_dtype wide = ct__loss_wide(r->hidden);
    ct_tensor *first = ct_mul_scalar(slices[0], (double)r->block), *start = first, *fresh = NULL;
    if (r->overlaps) {
        start = ct_minimum(first, ct_scalar_like(first, (double)(r->num_rows - r->block)));
        const char *axis = ct_arena_printf(&graph->arena, "row=%lld", (long long)r->block);
        fresh = ct_ge(ct_add(ct_iota(graph, CT_DTYPE_S32, axis, "row"), start), first);
    }
    ct_tensor *x = ct_dynamic_slice(r->hidden, "row", start, r->block);
    ct_tensor *labels = ct_dynamic_slice(r->labels, "row", start, r->block);
    ct_tensor *logits = ct__loss_cap(ct_dot_as(x, r->weight, "dim", wide), loss->soft_cap);
    const char *axis = ct_arena_printf(&graph->arena, "vocab=%lld", (long long)loss->vocab);
    ct_tensor *ids = ct_broadcast_like(ct_iota(graph, CT_DTYPE_S32, axis, "vocab"), logits);
    ct_tensor *hit = ct_eq(ct_broadcast_like(labels, logits), ids), *zero = ct_scalar_like(logits, 0);
    ct_tensor *picked = ct_sum(ct_select(hit, logits, zero), "vocab");
    ct_tensor *max = ct_max(logits, "vocab");
    ct_tensor *logsumexp = ct_add(ct_log(ct_sum(ct_exp(ct_sub(logits, max)), "vocab")), max);
    ct_tensor *losses = hide(fresh, ct__loss_of_rows(logsumexp, picked, labels, loss->z_loss));
    out_carries[SUM] = ct_add(carries[SUM], ct_sum(losses, "row"));

    ct_tensor *of_label = ct_convert(ct__loss_counted(labels), wide), *of_softmax = of_label;
    if (loss->z_loss > 0) of_softmax = ct_mul(of_softmax, ct_add_scalar(ct_mul_scalar(logsumexp, 2 * loss->z_loss), 1));
    ct_tensor *d = ct_mul(ct_exp(ct_sub(logits, logsumexp)), of_softmax);
    d = ct_sub(d, ct_select(hit, ct_broadcast_like(of_label, logits), zero));
    d = ct_convert(ct__loss_slope(d, logits, loss->soft_cap), r->hidden->dtype);
    ct_tensor *dx = ct_dot_as(d, r->weight, "vocab", wide);
    out_carries[DX] = ct_dynamic_update_slice(carries[DX], dx, "row", start);
    if (!loss->frozen) out_carries[DW] = ct_add(carries[DW], ct_dot_as(d, hide(fresh, x), "row", wide));
}

static int64_t choose_block(const ct__loss *loss, int64_t num_rows)
{
    int64_t block = loss->rows ? loss->rows : BLOCK_ROWS;
    if (block >= num_rows) return num_rows;
    int64_t num_blocks = (num_rows + block - 1) / block;
    return loss->rows ? block : (num_rows + num_blocks - 1) / num_blocks; /* as many, and less overlap */
}

static void body(ct_graph *graph, void *opaque, ct_tensor *const *inputs, ct_tensor **out_results)
{
    const ct__loss *loss = opaque;
    rows r = {.loss = loss,
              .hidden = ct_merge(inputs[0], "batch seq", "row"),
              .weight = inputs[1],
              .labels = ct_merge(inputs[2], "batch seq", "row")};
    if (graph->error) return;
    r.num_rows = ct_tensor_axis_size(r.labels, "row");
    r.block = choose_block(loss, r.num_rows);
    r.overlaps = r.num_rows % r.block != 0;
    int64_t num_blocks = (r.num_rows + r.block - 1) / r.block;
    const char *axis = ct_arena_printf(&graph->arena, "block=%lld", (long long)num_blocks);
    ct_tensor *indices = ct_iota(graph, CT_DTYPE_S32, axis, "block");
    ct_tensor *zero = ct_scalar(graph, ct__loss_wide(r.hidden), 0), *carries[NUM_CARRIES];
    ct_tensor *first[NUM_CARRIES] = {[SUM] = zero, [DX] = ct_broadcast_like(zero, r.hidden)};
    if (!loss->frozen) first[DW] = ct_broadcast_like(zero, r.weight);
    ct_scan_opts opts = {
        .axis = "block", .num_carries = num_carries(loss), .carries = first, .num_inputs = 1, .inputs = &indices};
    ct_scan(graph, &opts, turn, &r, carries, NULL);
    const char *parts = ct_arena_printf(&graph->arena, "batch=%lld seq=%lld", (long long)inputs[2]->axes[0].size,
                                        (long long)inputs[2]->axes[1].size);
    out_results[DX] = ct_split(carries[DX], "row", parts);
    bool is_part = loss->rows_placement != NULL;
    out_results[SUM] = is_part ? ct_pending_sum(carries[SUM], loss->rows_axes) : carries[SUM];
    if (!loss->frozen) out_results[DW] = is_part ? ct_pending_sum(carries[DW], loss->rows_axes) : carries[DW];
}

static void forward(ct_graph *graph, void *opaque, ct_tensor *const *inputs, ct_tensor **out_outputs)
{
    const ct__loss *loss = opaque;
    const char *rows_at = loss->rows_placement;
    if (!rows_at) {
        body(graph, opaque, inputs, out_outputs);
        return;
    }
    ct_manual_opts region = {.num_inputs = 3,
                             .num_outputs = num_carries(loss),
                             .inputs = inputs,
                             .input_placements = (const char *[]){rows_at, "", rows_at},
                             .output_placements = (const char *[]){[SUM] = "", [DX] = rows_at, [DW] = ""}};
    ct_manual(graph, &region, body, opaque, out_outputs);
}

static void backward(ct_graph *graph, void *opaque, ct_tensor *const *inputs, ct_tensor *const *outputs,
                     ct_tensor *const *cotangents, ct_tensor **out_gradients)
{
    (void)graph;
    if (!cotangents[SUM]) return;
    for (int i = 0; DX + i < num_carries(opaque); i++)
        out_gradients[i] = ct_convert(ct_mul(outputs[DX + i], cotangents[SUM]), inputs[i]->dtype);
}

ct_tensor *ct__loss_sum_by_rows(const char *loc, ct_tensor *hidden, ct_tensor *weight, ct_tensor *labels,
                                ct__loss *loss)
{
    ct_tensor *inputs[3] = {hidden, weight, labels}, *outputs[NUM_CARRIES];
    ct__custom_vjp(loc, hidden->graph, 3, inputs, num_carries(loss), outputs, forward, backward, loss);
    return outputs[SUM];
}
