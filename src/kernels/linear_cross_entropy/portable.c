/* The loss of each row without its logits: a scan over tiles of the vocabulary, forward and backward, that saves the
 * log-sum-exp.
 *
 *   forward    turn: logits of the tile; (max, sum of exp(logit - max), the label's logit) merged
 *   backward   turn: logits again; d = (softmax (c (1 + 2 z lse) + dlse) - [label] c) slope of the cap
 *                    dx += d w;  dw of the tile = d^T x
 *
 * Where the tile does not divide the vocabulary the last one begins earlier and overlaps the one before. What it shows
 * again is hidden from sums over the vocabulary; its dw is that of the tile before once more.
 *
 * On a mesh both passes are manual regions: each device has its rows and its part of the vocabulary, and what goes
 * between devices is one maximum and two sums per row. dx over the vocabulary's devices, and dw over those of the rows,
 * are pending sums, which localize makes where they are wanted (scattered, under sequence parallel and FSDP).
 * Source: Wijmans et al. 2024, "Cut Your Losses in Large-Vocabulary Language Models"; Shoeybi et al. 2019 (parallel).
 */
#include <math.h>

#include "graph/ops.h"
#include "kernels/linear_cross_entropy/loss.h"
#include "spmd/points.h"

/* A tile's logits are no larger than this unless the tile would be narrower than MIN_TILE. */
enum { TILE_ELEMENTS = 1 << 23, MIN_TILE = 512, MAX_TILE = 4096, TILE_MULTIPLE = 128 };

static const char ROWS[] = "batch seq";

/* What a pass works on: the whole arrays or a device's parts. */
typedef struct part {
    const ct__loss *loss;
    ct_tensor *hidden, *weight, *labels;
    ct_tensor *offset; /* s32: the first position of weight in the vocabulary; NULL: 0 */
    int64_t vocab;     /* of weight */
    int64_t tile, num_tiles;
    bool overlaps; /* the last tile and the one before */
    /* backward, rows */
    ct_tensor *logsumexp, *of_softmax, *of_label;
} part;

static int64_t choose_tile(const ct__loss *loss, int64_t vocab, int64_t num_rows)
{
    int64_t tile = loss->tile;
    if (!tile) tile = CT_MAX(MIN_TILE, CT_MIN(MAX_TILE, TILE_ELEMENTS / num_rows / TILE_MULTIPLE * TILE_MULTIPLE));
    if (tile >= vocab) return vocab;
    int64_t num_tiles = (vocab + tile - 1) / tile, even = (vocab + num_tiles - 1) / num_tiles;
    int64_t rounded = (even + TILE_MULTIPLE - 1) / TILE_MULTIPLE * TILE_MULTIPLE;
    return loss->tile || rounded > vocab ? tile : rounded; /* as many, and less overlap */
}

static part part_of(const ct__loss *loss, ct_tensor *const *inputs)
{
    part p = {.loss = loss, .hidden = inputs[0], .weight = inputs[1], .labels = inputs[2]};
    p.vocab = ct_tensor_axis_size(p.weight, "vocab");
    p.tile = choose_tile(loss, p.vocab, ct__num_elements(p.labels));
    p.num_tiles = (p.vocab + p.tile - 1) / p.tile;
    p.overlaps = p.vocab % p.tile != 0;
    if (loss->vocab_axes && *loss->vocab_axes)
        p.offset = ct_mul_scalar(ct_mesh_index(p.hidden->graph, loss->vocab_axes), (double)p.vocab);
    return p;
}

/* ---- one tile ---- */

typedef struct tile {
    ct_tensor *start;  /* in the part's weight */
    ct_tensor *ids;    /* s32 [vocab] */
    ct_tensor *fresh;  /* bool [vocab]: not of the tile before; NULL: all */
    ct_tensor *inside; /* bool [vocab]: no padding; NULL: all */
    ct_tensor *weight; /* 0 in padding */
    ct_tensor *logits; /* capped, [batch seq vocab] */
} tile;

static ct_tensor *where(ct_tensor *mask, ct_tensor *x, double other)
{
    return mask ? ct_select(ct_broadcast_like(mask, x), x, ct_scalar_like(x, other)) : x;
}

static tile tile_of(const part *p, ct_tensor *index)
{
    ct_graph *graph = index->graph;
    ct_tensor *first = ct_mul_scalar(index, (double)p->tile);
    tile t = {.start = first};
    if (p->overlaps) t.start = ct_minimum(first, ct_scalar_like(first, (double)(p->vocab - p->tile)));
    const char *axis = ct_arena_printf(&graph->arena, "vocab=%lld", (long long)p->tile);
    ct_tensor *positions = ct_add(ct_iota(graph, CT_DTYPE_S32, axis, "vocab"), t.start);
    if (p->overlaps) t.fresh = ct_ge(positions, first);
    t.ids = p->offset ? ct_add(positions, p->offset) : positions;
    if (p->loss->is_padded) t.inside = ct_lt(t.ids, ct_scalar_like(t.ids, (double)p->loss->vocab));
    t.weight = where(t.inside, ct_dynamic_slice(p->weight, "vocab", t.start, p->tile), 0);
    ct_tensor *logits = ct_dot_as(p->hidden, t.weight, "dim", ct__loss_wide(p->hidden));
    t.logits = ct__loss_cap(logits, p->loss->soft_cap);
    return t;
}

/* x where the tile's column is the row's label, else 0; ids, s32 [vocab], may differ from the tile's. */
static ct_tensor *at_label(const part *p, const tile *t, ct_tensor *ids, ct_tensor *x)
{
    ct_tensor *hit = ct_eq(ct_broadcast_like(p->labels, t->logits), ct_broadcast_like(ids, t->logits));
    return ct_select(hit, ct_broadcast_like(x, t->logits), ct_scalar_like(t->logits, 0));
}

static ct_tensor *tile_indices(const part *p)
{
    ct_graph *graph = p->hidden->graph;
    return ct_iota(graph, CT_DTYPE_S32, ct_arena_printf(&graph->arena, "tile=%lld", (long long)p->num_tiles), "tile");
}

static ct_tensor *filled_rows(const part *p, double value)
{
    ct_tensor *scalar = ct_scalar(p->hidden->graph, ct__loss_wide(p->hidden), value);
    return ct_broadcast_like(scalar, p->labels);
}

/* ---- forward ---- */

enum { MAX, TOTAL, PICKED, NUM_FORWARD };

/* -inf, where a device's part is all padding, as 0, so that -inf minus it is -inf rather than NaN. */
static ct_tensor *or_zero(ct_tensor *max)
{
    return ct_select(ct_eq(max, ct_scalar_like(max, -INFINITY)), ct_scalar_like(max, 0), max);
}

static void forward_turn(ct_graph *graph, void *opaque, ct_tensor *const *carries, ct_tensor *const *slices,
                         ct_tensor **out_carries, ct_tensor **out_slices)
{
    (void)graph, (void)out_slices;
    const part *p = opaque;
    tile t = tile_of(p, slices[0]);
    ct_tensor *shown = t.fresh && t.inside ? ct_and(t.fresh, t.inside) : t.fresh ? t.fresh : t.inside;
    ct_tensor *logits = where(shown, t.logits, -INFINITY);
    ct_tensor *max = ct_maximum(carries[MAX], ct_max(logits, "vocab")), *base = or_zero(max);
    ct_tensor *total = ct_sum(ct_exp(ct_sub(logits, base)), "vocab");
    ct_tensor *picked = ct_sum(at_label(p, &t, where(shown, t.ids, INT32_MIN), t.logits), "vocab");
    out_carries[TOTAL] = ct_add(ct_mul(carries[TOTAL], ct_exp(ct_sub(carries[MAX], base))), total);
    out_carries[PICKED] = ct_add(carries[PICKED], picked);
    out_carries[MAX] = max;
}

/* Both summed over the devices of the vocabulary at once. */
static void sum_together(const char *mesh_axes, ct_tensor **a, ct_tensor **b)
{
    ct_tensor *both = ct_concat((ct_tensor *[]){ct_unsqueeze(*a, "sum", 0), ct_unsqueeze(*b, "sum", 0)}, 2, "sum");
    both = ct_all_reduce(both, CT_REDUCTION_SUM, mesh_axes);
    *a = ct_squeeze(ct_slice(both, "sum", 0, 1), "sum");
    *b = ct_squeeze(ct_slice(both, "sum", 1, 2), "sum");
}

static void forward_body(ct_graph *graph, void *opaque, ct_tensor *const *inputs, ct_tensor **out_results)
{
    const ct__loss *loss = opaque;
    part p = part_of(loss, inputs);
    ct_tensor *indices = tile_indices(&p), *carries[NUM_FORWARD];
    ct_tensor *first[NUM_FORWARD] = {
        [MAX] = filled_rows(&p, -INFINITY), [TOTAL] = filled_rows(&p, 0), [PICKED] = filled_rows(&p, 0)};
    ct_scan_opts opts = {
        .axis = "tile", .num_carries = NUM_FORWARD, .carries = first, .num_inputs = 1, .inputs = &indices};
    ct_scan(graph, &opts, forward_turn, &p, carries, NULL);
    ct_tensor *max = carries[MAX], *total = carries[TOTAL], *picked = carries[PICKED];
    if (p.offset) {
        max = ct_all_reduce(max, CT_REDUCTION_MAX, loss->vocab_axes);
        total = ct_mul(total, ct_exp(ct_sub(carries[MAX], max)));
        sum_together(loss->vocab_axes, &total, &picked);
    }
    out_results[1] = ct_add(ct_log(total), max);
    out_results[0] = ct__loss_of_rows(out_results[1], picked, p.labels, loss->z_loss);
}

/* ---- backward ---- */

enum { DX, DW, NUM_BACKWARD };

static void backward_turn(ct_graph *graph, void *opaque, ct_tensor *const *carries, ct_tensor *const *slices,
                          ct_tensor **out_carries, ct_tensor **out_slices)
{
    (void)graph, (void)out_slices;
    const part *p = opaque;
    ct_dtype dtype = p->hidden->dtype, wide = ct__loss_wide(p->hidden);
    tile t = tile_of(p, slices[0]);
    ct_tensor *softmax = ct_exp(ct_sub(t.logits, p->logsumexp));
    ct_tensor *d = ct_sub(ct_mul(softmax, p->of_softmax), at_label(p, &t, t.ids, p->of_label));
    d = ct_convert(ct__loss_slope(d, t.logits, p->loss->soft_cap), dtype);
    ct_tensor *dx = ct_dot_as(d, where(t.fresh, t.weight, 0), "vocab", wide);
    ct_tensor *dw = ct_convert(ct_dot_as(d, p->hidden, ROWS, wide), dtype);
    out_carries[DX] = ct_add(carries[DX], dx);
    out_carries[DW] = ct_dynamic_update_slice(carries[DW], dw, "vocab", t.start);
}

/* args: the inputs, log-sum-exp, its cotangent (with_rows), the loss' cotangent */
static void fill_backward(const ct__loss *loss, ct_tensor *const *args, ct_tensor *d_logsumexp, ct_graph *graph,
                          ct_tensor **out_results)
{
    part p = part_of(loss, args);
    p.logsumexp = args[3];
    ct_tensor *zero = ct_scalar_like(args[4], 0);
    p.of_label = ct_select(ct__loss_counted(p.labels), args[4], zero);
    p.of_softmax = p.of_label;
    if (loss->z_loss > 0)
        p.of_softmax = ct_mul(p.of_softmax, ct_add_scalar(ct_mul_scalar(p.logsumexp, 2 * loss->z_loss), 1));
    if (d_logsumexp) p.of_softmax = ct_add(p.of_softmax, d_logsumexp);
    ct_tensor *dx = ct_broadcast_like(ct_scalar(graph, ct__loss_wide(p.hidden), 0), p.hidden);
    ct_tensor *indices = tile_indices(&p), *first[NUM_BACKWARD] = {dx, ct_full_like(p.weight, 0)};
    ct_tensor *carries[NUM_BACKWARD];
    ct_scan_opts opts = {
        .axis = "tile", .num_carries = NUM_BACKWARD, .carries = first, .num_inputs = 1, .inputs = &indices};
    ct_scan(graph, &opts, backward_turn, &p, carries, NULL);
    out_results[0] = ct_convert(carries[DX], p.hidden->dtype);
    out_results[1] = carries[DW];
    if (!loss->rows_placement) return;
    out_results[0] = ct_pending_sum(out_results[0], loss->vocab_axes);
    out_results[1] = ct_pending_sum(out_results[1], loss->rows_axes);
}

static void backward_body(ct_graph *graph, void *opaque, ct_tensor *const *args, ct_tensor **out_results)
{
    fill_backward(opaque, args, NULL, graph, out_results);
}

static void backward_body_with_rows(ct_graph *graph, void *opaque, ct_tensor *const *args, ct_tensor **out_results)
{
    fill_backward(opaque, args, args[5], graph, out_results);
}

/* ---- the custom derivative around both passes ---- */

static void portable_forward(ct_graph *graph, void *opaque, ct_tensor *const *inputs, ct_tensor **out_outputs)
{
    const ct__loss *loss = opaque;
    if (!loss->rows_placement) {
        forward_body(graph, opaque, inputs, out_outputs);
        return;
    }
    const char *rows = loss->rows_placement;
    ct_manual_opts region = {.num_inputs = 3,
                             .num_outputs = 2,
                             .inputs = (ct_tensor *[]){inputs[0], ct_padded(inputs[1]), inputs[2]},
                             .input_placements = (const char *[]){rows, loss->weight_placement, rows},
                             .output_placements = (const char *[]){rows, rows}};
    ct_manual(graph, &region, forward_body, opaque, out_outputs);
}

static void portable_backward(ct_graph *graph, void *opaque, ct_tensor *const *inputs, ct_tensor *const *outputs,
                              ct_tensor *const *cotangents, ct_tensor **out_gradients)
{
    const ct__loss *loss = opaque;
    ct_manual_body *body = cotangents[1] ? backward_body_with_rows : backward_body;
    ct_tensor *d_loss = cotangents[0] ? cotangents[0] : ct_full_like(outputs[0], 0);
    ct_tensor *args[6] = {inputs[0], inputs[1], inputs[2], outputs[1], d_loss, cotangents[1]};
    if (!loss->rows_placement) {
        body(graph, opaque, args, out_gradients);
        return;
    }
    const char *rows = loss->rows_placement, *weight = loss->weight_placement;
    args[1] = ct_padded(inputs[1]);
    ct_tensor *results[2];
    ct_manual_opts region = {.num_inputs = cotangents[1] ? 6 : 5,
                             .num_outputs = 2,
                             .inputs = args,
                             .input_placements = (const char *[]){rows, weight, rows, rows, rows, rows},
                             .output_placements = (const char *[]){rows, weight}};
    ct_manual(graph, &region, body, opaque, results);
    out_gradients[0] = results[0];
    out_gradients[1] = ct_unpadded(results[1], inputs[1]);
}

ct_tensor *ct__loss_portable(const char *loc, ct_tensor *hidden, ct_tensor *weight, ct_tensor *labels, ct__loss *loss,
                             ct_tensor **out_logsumexp)
{
    ct_tensor *inputs[3] = {hidden, weight, labels}, *outputs[2];
    ct__custom_vjp(loc, hidden->graph, 3, inputs, 2, outputs, portable_forward, portable_backward, loss);
    if (out_logsumexp) *out_logsumexp = outputs[1];
    return outputs[0];
}
