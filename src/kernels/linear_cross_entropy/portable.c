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
 * Source: Wijmans et al. 2024, "Cut Your Losses in Large-Vocabulary Language Models".
 */
#include <math.h>

#include "graph/ops.h"
#include "kernels/linear_cross_entropy/loss.h"

/* A tile's logits are no larger than this unless the tile would be narrower than MIN_TILE. */
enum { TILE_ELEMENTS = 1 << 23, MIN_TILE = 512, MAX_TILE = 4096, TILE_MULTIPLE = 128 };

static const char ROWS[] = "batch seq";

typedef struct part {
    ct__loss_part of;
    int64_t tile, num_tiles;
    bool overlaps;            /* the last tile and the one before */
    ct__loss_cotangents rows; /* backward */
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

static part part_of(const ct__loss_part *of)
{
    part p = {.of = *of};
    p.tile = choose_tile(of->loss, of->vocab, ct__num_elements(of->labels));
    p.num_tiles = (of->vocab + p.tile - 1) / p.tile;
    p.overlaps = of->vocab % p.tile != 0;
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
    if (p->overlaps) t.start = ct_minimum(first, ct_scalar_like(first, (double)(p->of.vocab - p->tile)));
    const char *axis = ct_arena_printf(&graph->arena, "vocab=%lld", (long long)p->tile);
    ct_tensor *positions = ct_add(ct_iota(graph, CT_DTYPE_S32, axis, "vocab"), t.start);
    if (p->overlaps) t.fresh = ct_ge(positions, first);
    t.ids = p->of.offset ? ct_add(positions, p->of.offset) : positions;
    if (p->of.loss->is_padded) t.inside = ct_lt(t.ids, ct_scalar_like(t.ids, (double)p->of.loss->vocab));
    t.weight = where(t.inside, ct_dynamic_slice(p->of.weight, "vocab", t.start, p->tile), 0);
    ct_tensor *logits = ct_dot_as(p->of.hidden, t.weight, "dim", ct__loss_wide(p->of.hidden));
    t.logits = ct__loss_cap(logits, p->of.loss->soft_cap);
    return t;
}

/* x where the tile's column is the row's label, else 0; ids, s32 [vocab], may differ from the tile's. */
static ct_tensor *at_label(const part *p, const tile *t, ct_tensor *ids, ct_tensor *x)
{
    ct_tensor *hit = ct_eq(ct_broadcast_like(p->of.labels, t->logits), ct_broadcast_like(ids, t->logits));
    return ct_select(hit, ct_broadcast_like(x, t->logits), ct_scalar_like(t->logits, 0));
}

static ct_tensor *tile_indices(const part *p)
{
    ct_graph *graph = p->of.hidden->graph;
    return ct_iota(graph, CT_DTYPE_S32, ct_arena_printf(&graph->arena, "tile=%lld", (long long)p->num_tiles), "tile");
}

static ct_tensor *filled_rows(const part *p, double value)
{
    ct_tensor *scalar = ct_scalar(p->of.hidden->graph, ct__loss_wide(p->of.hidden), value);
    return ct_broadcast_like(scalar, p->of.labels);
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

static void forward(const ct__loss_part *of, ct_tensor **out_logsumexp, ct_tensor **out_picked)
{
    part p = part_of(of);
    ct_tensor *indices = tile_indices(&p), *carries[NUM_FORWARD];
    ct_tensor *first[NUM_FORWARD] = {
        [MAX] = filled_rows(&p, -INFINITY), [TOTAL] = filled_rows(&p, 0), [PICKED] = filled_rows(&p, 0)};
    ct_scan_opts opts = {
        .axis = "tile", .num_carries = NUM_FORWARD, .carries = first, .num_inputs = 1, .inputs = &indices};
    ct_scan(of->hidden->graph, &opts, forward_turn, &p, carries, NULL);
    *out_logsumexp = ct_add(ct_log(carries[TOTAL]), carries[MAX]);
    *out_picked = carries[PICKED];
}

/* ---- backward ---- */

enum { DX, DW, NUM_BACKWARD };

/* A frozen weight has no DW, the last. */
static int num_backward(const ct__loss *loss)
{
    return loss->frozen ? DW : NUM_BACKWARD;
}

static void backward_turn(ct_graph *graph, void *opaque, ct_tensor *const *carries, ct_tensor *const *slices,
                          ct_tensor **out_carries, ct_tensor **out_slices)
{
    (void)graph, (void)out_slices;
    const part *p = opaque;
    ct_dtype dtype = p->of.hidden->dtype, wide = ct__loss_wide(p->of.hidden);
    tile t = tile_of(p, slices[0]);
    ct_tensor *softmax = ct_exp(ct_sub(t.logits, p->rows.logsumexp));
    ct_tensor *d = ct_sub(ct_mul(softmax, p->rows.of_softmax), at_label(p, &t, t.ids, p->rows.of_label));
    d = ct_convert(ct__loss_slope(d, t.logits, p->of.loss->soft_cap), dtype);
    ct_tensor *dx = ct_dot_as(d, where(t.fresh, t.weight, 0), "vocab", wide);
    out_carries[DX] = ct_add(carries[DX], dx);
    if (p->of.loss->frozen) return;
    ct_tensor *dw = ct_convert(ct_dot_as(d, p->of.hidden, ROWS, wide), dtype);
    out_carries[DW] = ct_dynamic_update_slice(carries[DW], dw, "vocab", t.start);
}

static void backward(const ct__loss_part *of, const ct__loss_cotangents *cotangents, ct_tensor *out_gradients[2])
{
    part p = part_of(of);
    p.rows = *cotangents;
    ct_graph *graph = of->hidden->graph;
    ct_tensor *dx = ct_broadcast_like(ct_scalar(graph, ct__loss_wide(of->hidden), 0), of->hidden);
    ct_tensor *indices = tile_indices(&p), *first[NUM_BACKWARD] = {dx};
    if (!of->loss->frozen) first[DW] = ct_full_like(of->weight, 0);
    ct_tensor *carries[NUM_BACKWARD];
    ct_scan_opts opts = {
        .axis = "tile", .num_carries = num_backward(of->loss), .carries = first, .num_inputs = 1, .inputs = &indices};
    ct_scan(graph, &opts, backward_turn, &p, carries, NULL);
    out_gradients[0] = ct_convert(carries[DX], of->hidden->dtype);
    if (!of->loss->frozen) out_gradients[1] = carries[DW];
}

const ct__loss_form ct__loss_portable = {.forward = forward, .backward = backward};
