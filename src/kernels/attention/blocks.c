/* Attention block by block: layouts, which blocks are seen, and the two passes. */
#include "kernels/attention/blocks.h"

#include <math.h>

#include "base/macros.h"
#include "graph/ops.h"
#include "kernels/attention/definition.h"

/* ---- layouts ---- */

/* What stands in place of the position or segment id of a padded key: no query sees it. */
enum { FAR_POSITION = 1 << 30, NO_SEGMENT = -(1 << 30) };

static int64_t equal_rows(int64_t length, int64_t most, int64_t *out_blocks)
{
    int64_t blocks = (length + most - 1) / most, rows = (length + blocks - 1) / blocks;
    if (blocks > 1) rows = (rows + 7) / 8 * 8;
    *out_blocks = (length + rows - 1) / rows;
    return rows;
}

ct__blocks ct__blocks_of(const ct_tensor *q, const ct_tensor *k, const ct_attention_opts *opts, int64_t q_rows,
                         int64_t kv_rows)
{
    ct__blocks blocks = {.opts = *opts,
                         .dtype = q->dtype,
                         .wide = ct__attention_wide(q),
                         .kv_heads = ct_tensor_axis_size(k, "kv_heads"),
                         .seq = ct_tensor_axis_size(q, "seq"),
                         .kv_seq = ct_tensor_axis_size(k, "kv_seq")};
    blocks.q_rows = equal_rows(blocks.seq, q_rows, &blocks.num_q);
    blocks.kv_rows = equal_rows(blocks.kv_seq, kv_rows, &blocks.num_kv);
    blocks.opts.scale = ct__attention_scale(q, opts);
    blocks.opts.positions = blocks.opts.kv_positions = blocks.opts.segments = blocks.opts.kv_segments = NULL;
    blocks.opts.out_logsumexp = NULL;
    blocks.marks_padding =
        blocks.num_kv * blocks.kv_rows > blocks.kv_seq && !opts->causal && opts->window <= 0 && !opts->segments;
    return blocks;
}

/* axis as [block axis], padded, block outermost; names: the other axes in order, axis among them. */
static ct_tensor *stack(ct_tensor *x, const char *axis, const char *block, int64_t rows, int64_t num_blocks,
                        double padding, const char *names)
{
    int64_t size = ct_tensor_axis_size(x, axis);
    ct_arena *arena = &ct_graph_of(x)->arena;
    if (rows * num_blocks > size) x = ct_pad(x, axis, 0, rows * num_blocks - size, padding);
    x = ct_split(x, axis,
                 ct_arena_printf(arena, "%s=%lld %s=%lld", block, (long long)num_blocks, axis, (long long)rows));
    return ct_transpose(x, ct_arena_printf(arena, "%s %s", block, names));
}

ct_tensor *ct__stack(const ct__blocks *blocks, ct_tensor *x)
{
    bool is_rows = ct_tensor_find_axis(x, "head_dim") < 0;
    x = ct__attention_group(x, blocks->kv_heads);
    return stack(x, "seq", "q_block", blocks->q_rows, blocks->num_q, 0,
                 is_rows ? "batch kv_heads seq group" : "batch kv_heads seq group head_dim");
}

/* [block batch kv_heads axis ...] -> [batch axis kv_heads ...] without padding */
static ct_tensor *unstack(ct_tensor *stacked, const char *axis, const char *block, int64_t size, const char *order)
{
    ct_arena *arena = &ct_graph_of(stacked)->arena;
    ct_tensor *x = ct_merge(ct_transpose(stacked, order), ct_arena_printf(arena, "%s %s", block, axis), axis);
    return ct_tensor_axis_size(x, axis) > size ? ct_slice(x, axis, 0, size) : x;
}

ct_tensor *ct__unstack(const ct__blocks *blocks, ct_tensor *stacked)
{
    bool is_rows = ct_tensor_find_axis(stacked, "head_dim") < 0;
    ct_tensor *x = unstack(stacked, "seq", "q_block", blocks->seq,
                           is_rows ? "batch kv_heads group q_block seq" : "batch q_block seq kv_heads group head_dim");
    return ct_merge(x, "kv_heads group", "heads");
}

/* Positions or segments, [axis] or [batch axis]. */
static ct_tensor *stack_marks(ct_tensor *x, const char *axis, const char *block, int64_t rows, int64_t num_blocks,
                              double padding)
{
    const char *names = ct_tensor_rank(x) == 1 ? axis : ct_arena_printf(&ct_graph_of(x)->arena, "batch %s", axis);
    return stack(x, axis, block, rows, num_blocks, padding, names);
}

static ct_tensor *no_segments(const ct_tensor *x, const char *axis)
{
    ct_graph *graph = ct_graph_of(x);
    long long size = ct_tensor_axis_size(x, axis);
    return ct_full(graph, CT_DTYPE_S32, ct_arena_printf(&graph->arena, "%s=%lld", axis, size), 0);
}

static bool needs_positions(const ct_attention_opts *opts)
{
    return opts->causal || opts->window > 0;
}

ct__queries ct__stack_queries(const ct__blocks *blocks, ct_tensor *q, const ct_attention_opts *opts)
{
    ct__queries queries = {.q = ct__stack(blocks, q)};
    ct_tensor *positions = needs_positions(opts) ? ct__attention_positions(opts->positions, q, "seq") : NULL;
    ct_tensor *segments = blocks->marks_padding ? no_segments(q, "seq") : opts->segments;
    int64_t rows = blocks->q_rows, count = blocks->num_q;
    if (positions) queries.positions = stack_marks(positions, "seq", "q_block", rows, count, 0);
    if (segments) queries.segments = stack_marks(segments, "seq", "q_block", rows, count, 0);
    return queries;
}

ct__keys ct__stack_keys(const ct__blocks *blocks, ct_tensor *k, ct_tensor *v, const ct_attention_opts *opts)
{
    static const char names[] = "batch kv_heads kv_seq head_dim";
    int64_t rows = blocks->kv_rows, count = blocks->num_kv;
    ct__keys keys = {.k = stack(k, "kv_seq", "kv_block", rows, count, 0, names),
                     .v = stack(v, "kv_seq", "kv_block", rows, count, 0, names)};
    ct_tensor *positions = needs_positions(opts) ? ct__attention_positions(opts->kv_positions, k, "kv_seq") : NULL;
    ct_tensor *segments = blocks->marks_padding ? no_segments(k, "kv_seq") : opts->kv_segments;
    if (positions) keys.positions = stack_marks(positions, "kv_seq", "kv_block", rows, count, FAR_POSITION);
    if (segments) keys.segments = stack_marks(segments, "kv_seq", "kv_block", rows, count, NO_SEGMENT);
    return keys;
}

static ct_tensor *filled(const ct__blocks *blocks, const ct_tensor *like, int num_axes, double value)
{
    const char *axes = "";
    ct_graph *graph = ct_graph_of(like);
    for (int i = 0; i < num_axes; i++)
        axes = ct_arena_printf(&graph->arena, "%s%s=%lld ", axes, like->axes[i].name, (long long)like->axes[i].size);
    return ct_full(graph, blocks->wide, axes, value);
}

ct_tensor *ct__queries_filled(const ct__blocks *blocks, const ct__queries *queries, double value)
{
    return filled(blocks, queries->q, queries->q->rank, value);
}

ct_tensor *ct__rows_filled(const ct__blocks *blocks, const ct__queries *queries, double value)
{
    return filled(blocks, queries->q, queries->q->rank - 1, value);
}

ct_tensor *ct__keys_filled(const ct__blocks *blocks, const ct__keys *keys, double value)
{
    return filled(blocks, keys->k, keys->k->rank, value);
}

/* rows, with -inf (nothing seen) as 0, so that -inf minus it is -inf rather than NaN */
static ct_tensor *rows_or_zero(ct_tensor *rows)
{
    return ct_select(ct_eq(rows, ct_scalar_like(rows, -INFINITY)), ct_scalar_like(rows, 0), rows);
}

/* ---- which blocks of keys a block of queries may see ---- */

/* The least and the greatest of every block, [kv_block] or [kv_block batch]; NULL as the keys' own. */
typedef struct bounds {
    ct_tensor *least, *greatest;
} bounds;

static bounds bounds_of(ct_tensor *marks, const char *axis)
{
    return marks ? (bounds){ct_min(marks, axis), ct_max(marks, axis)} : (bounds){0};
}

/* of_queries [] or [batch], of_keys [kv_block] or [kv_block batch] */
static ct_tensor *compare_bounds(const char *direction, ct_tensor *of_queries, ct_tensor *of_keys)
{
    CT_ASSERT(of_queries && of_keys);
    ct_axis axes[2] = {of_keys->axes[0]};
    int rank = 1;
    if (of_keys->rank == 2 || of_queries->rank)
        axes[rank++] = of_keys->rank == 2 ? of_keys->axes[1] : of_queries->axes[0];
    ct_tensor *result = ct__compare(CT_LOC, direction, ct__broadcast_to(CT_LOC, of_queries, rank, axes),
                                    ct__broadcast_to(CT_LOC, of_keys, rank, axes));
    return rank == 2 ? ct_any(result, "batch") : result;
}

static ct_tensor *both(ct_tensor *a, ct_tensor *b)
{
    return a ? ct_and(a, b) : b;
}

/* bool [kv_block]; NULL: no block is ruled out */
static ct_tensor *visible_blocks(const ct__blocks *blocks, const ct__queries *queries, const bounds *positions,
                                 const bounds *segments)
{
    const ct_attention_opts *opts = &blocks->opts;
    ct_tensor *visible = NULL;
    if (positions->least) {
        bounds own = bounds_of(queries->positions, "seq");
        double window = (double)opts->window;
        if (opts->causal) visible = compare_bounds("GE", own.greatest, positions->least);
        if (opts->window > 0) {
            visible = both(visible, compare_bounds("LT", own.least, ct_add_scalar(positions->greatest, window)));
            if (!opts->causal)
                visible = both(visible, compare_bounds("GT", ct_add_scalar(own.greatest, window), positions->least));
        }
    }
    if (segments->least && !blocks->marks_padding) {
        bounds own = bounds_of(queries->segments, "seq");
        visible = both(visible, compare_bounds("GE", own.greatest, segments->least));
        visible = both(visible, compare_bounds("LE", own.least, segments->greatest));
    }
    return visible;
}

/* ---- the loop over keys ---- */

typedef struct key_loop {
    const ct__blocks *blocks;
    ct__queries queries; /* of one block */
    ct__cotangents cotangents;
    const ct__keys *keys;
    bounds positions, segments;
    ct_tensor *order, *count; /* the visible blocks first, s32 [kv_block], NULL: as they stand; how many, s32 */
} key_loop;

static ct_tensor *more_blocks(ct_graph *graph, void *context, ct_tensor *const *carries)
{
    (void)graph;
    const key_loop *loop = context;
    return ct_lt(carries[0], loop->count);
}

static ct_tensor *pick(ct_tensor *stacked, ct_tensor *index)
{
    return stacked ? ct_squeeze(ct_dynamic_slice(stacked, "kv_block", index, 1), "kv_block") : NULL;
}

static void run_loop(key_loop *loop, ct_graph *graph, int num_carries, ct_tensor **carries, ct_while_body *body)
{
    ct_tensor *visible = visible_blocks(loop->blocks, &loop->queries, &loop->positions, &loop->segments);
    if (visible && loop->blocks->num_kv > 1)
        loop->order = ct_argsort(ct_convert(visible, CT_DTYPE_S32), "kv_block", true);
    loop->count = visible ? ct_sum(ct_convert(visible, CT_DTYPE_S32), "kv_block")
                          : ct_scalar(graph, CT_DTYPE_S32, (double)loop->blocks->num_kv);
    carries[0] = ct_scalar(graph, CT_DTYPE_S32, 0);
    ct_while(graph, num_carries, carries, more_blocks, body, loop, carries);
}

/* One block of keys, the one at turn's place of the list. */
typedef struct block {
    ct_tensor *index, *k, *v;
    ct_tensor *scores, *hidden; /* before and after hiding */
} block;

static block enter_block(const key_loop *loop, ct_tensor *turn)
{
    block b = {.index = loop->order ? pick(loop->order, turn) : turn};
    b.k = pick(loop->keys->k, b.index);
    b.v = pick(loop->keys->v, b.index);
    ct_attention_opts opts = loop->blocks->opts;
    opts.positions = loop->queries.positions;
    opts.kv_positions = pick(loop->keys->positions, b.index);
    opts.segments = loop->queries.segments;
    opts.kv_segments = pick(loop->keys->segments, b.index);
    b.scores = ct__attention_scores(loop->queries.q, b.k, &opts);
    b.hidden = ct__attention_hide(b.scores, loop->queries.q, b.k, &opts);
    return b;
}

/* ---- the scan over queries ---- */

enum { MAX_SLICES = 9 };

typedef struct query_scan {
    key_loop loop;
    bool begins, finishes; /* forward: nothing before, nothing after. backward: no dq before */
    int num_inputs;
    ct_tensor *inputs[MAX_SLICES];
} query_scan;

static void add_input(query_scan *scan, ct_tensor *stacked)
{
    if (stacked) scan->inputs[scan->num_inputs++] = stacked;
}

static query_scan scan_of(const ct__blocks *blocks, const ct__queries *queries, const ct__keys *keys)
{
    query_scan scan = {.loop = {.blocks = blocks, .queries = *queries, .keys = keys}};
    scan.loop.positions = bounds_of(keys->positions, "kv_seq");
    scan.loop.segments = bounds_of(keys->segments, "kv_seq");
    add_input(&scan, queries->q);
    add_input(&scan, queries->positions);
    add_input(&scan, queries->segments);
    return scan;
}

/* Makes loop's queries those of one turn; returns the slices that follow. */
static ct_tensor *const *take_queries(key_loop *loop, ct_tensor *const *slices)
{
    loop->queries.q = *slices++;
    if (loop->queries.positions) loop->queries.positions = *slices++;
    if (loop->queries.segments) loop->queries.segments = *slices++;
    return slices;
}

/* ---- forward ---- */

static void attend_block(ct_graph *graph, void *context, ct_tensor *const *carries, ct_tensor **out_carries)
{
    (void)graph;
    const key_loop *loop = context;
    ct_tensor *const *before = carries + 1;
    block b = enter_block(loop, carries[0]);
    CT_ASSERT(b.v);
    ct_tensor *max = ct_maximum(before[CT__MAX], ct_max(b.hidden, "kv_seq")), *base = rows_or_zero(max);
    ct_tensor *p = ct_exp(ct_sub(b.hidden, base)), *fade = ct_exp(ct_sub(before[CT__MAX], base));
    ct_tensor *mixed = ct_dot_as(ct_convert(p, b.v->dtype), b.v, "kv_seq", loop->blocks->wide);
    out_carries[0] = ct_add_scalar(carries[0], 1);
    out_carries[1 + CT__SUM] = ct_add(ct_mul(before[CT__SUM], fade), mixed);
    out_carries[1 + CT__MAX] = max;
    out_carries[1 + CT__TOTAL] = ct_add(ct_mul(before[CT__TOTAL], fade), ct_sum(p, "kv_seq"));
}

static void forward_turn(ct_graph *graph, void *context, ct_tensor *const *carries, ct_tensor *const *slices,
                         ct_tensor **out_carries, ct_tensor **out_slices)
{
    (void)carries, (void)out_carries;
    const query_scan *scan = context;
    key_loop loop = scan->loop;
    ct_tensor *const *before = take_queries(&loop, slices), *turn[4];
    const ct_tensor *q = loop.queries.q;
    for (int i = 0; i < 3; i++)
        turn[1 + i] = scan->begins
                          ? filled(loop.blocks, q, i == CT__SUM ? q->rank : q->rank - 1, i == CT__MAX ? -INFINITY : 0)
                          : before[i];
    run_loop(&loop, graph, 4, turn, attend_block);
    if (!scan->finishes) {
        for (int i = 0; i < 3; i++) out_slices[i] = turn[1 + i];
        return;
    }
    ct_tensor *total = turn[1 + CT__TOTAL], *zero = ct_scalar_like(total, 0);
    ct_tensor *some = ct_select(ct_eq(total, zero), ct_scalar_like(total, 1), total);
    out_slices[0] = ct_convert(ct_div(turn[1 + CT__SUM], some), loop.blocks->dtype);
    out_slices[1] = ct_add(rows_or_zero(turn[1 + CT__MAX]), ct_log(total));
}

void ct__blocks_attend(const ct__blocks *blocks, const ct__queries *queries, const ct__keys *keys,
                       ct_tensor *const *before, bool finish, ct_tensor *out[3])
{
    query_scan scan = scan_of(blocks, queries, keys);
    scan.begins = !before;
    scan.finishes = finish;
    for (int i = 0; before && i < 3; i++) add_input(&scan, before[i]);
    ct_scan_opts opts = {.axis = "q_block",
                         .length = blocks->num_q,
                         .num_inputs = scan.num_inputs,
                         .inputs = scan.inputs,
                         .num_outputs = finish ? 2 : 3};
    ct_scan(ct_graph_of(queries->q), &opts, forward_turn, &scan, NULL, out);
}

/* ---- backward ---- */

ct__cotangents ct__stack_cotangents(const ct__blocks *blocks, ct_tensor *result, ct_tensor *lse, ct_tensor *d_result,
                                    ct_tensor *d_lse)
{
    ct_tensor *products = ct_mul(ct_convert(result, blocks->wide), ct_convert(d_result, blocks->wide));
    ct_tensor *delta = ct_sum(products, "head_dim"); /* [batch seq heads] */
    if (d_lse) delta = ct_sub(delta, ct_transpose(d_lse, "batch seq heads"));
    return (ct__cotangents){.d_out = ct__stack(blocks, d_result),
                            .lse = ct__stack(blocks, rows_or_zero(lse)),
                            .delta = ct__stack(blocks, delta)};
}

static ct_tensor *add_at(ct_tensor *stacked, ct_tensor *index, ct_tensor *x)
{
    ct_tensor *sum = ct_add(pick(stacked, index), x);
    return ct_dynamic_update_slice(stacked, ct_unsqueeze(sum, "kv_block", 0), "kv_block", index);
}

/* p = exp(score - lse), dscore = p (d_out v - delta) */
static void attend_block_back(ct_graph *graph, void *context, ct_tensor *const *carries, ct_tensor **out_carries)
{
    (void)graph;
    const key_loop *loop = context;
    const ct_attention_opts *opts = &loop->blocks->opts;
    const ct__cotangents *cotangents = &loop->cotangents;
    ct_dtype dtype = loop->blocks->dtype, wide = loop->blocks->wide;
    ct_tensor *const *before = carries + 1, **after = out_carries + 1, *q = loop->queries.q;
    block b = enter_block(loop, carries[0]);
    ct_tensor *p = ct_exp(ct_sub(b.hidden, cotangents->lse));
    ct_tensor *dv = ct_dot_as(ct_convert(p, dtype), cotangents->d_out, "seq group", wide);
    ct_tensor *d_scores = ct_mul(p, ct_sub(ct_dot_as(cotangents->d_out, b.v, "head_dim", wide), cotangents->delta));
    if (opts->soft_cap > 0) { /* of cap tanh(x / cap); scores before hiding, where it is finite */
        ct_tensor *slope = ct_mul_scalar(ct_mul(b.scores, b.scores), -1 / (opts->soft_cap * opts->soft_cap));
        d_scores = ct_mul(d_scores, ct_add_scalar(slope, 1));
    }
    d_scores = ct_convert(d_scores, dtype);
    out_carries[0] = ct_add_scalar(carries[0], 1);
    after[CT__DQ] = ct_add(before[CT__DQ], ct_dot_as(d_scores, b.k, "kv_seq", wide));
    after[CT__DK] = add_at(before[CT__DK], b.index, ct_dot_as(d_scores, q, "seq group", wide));
    after[CT__DV] = add_at(before[CT__DV], b.index, dv);
}

static void backward_turn(ct_graph *graph, void *context, ct_tensor *const *carries, ct_tensor *const *slices,
                          ct_tensor **out_carries, ct_tensor **out_slices)
{
    const query_scan *scan = context;
    key_loop loop = scan->loop;
    ct_tensor *const *rest = take_queries(&loop, slices), *turn[4];
    loop.cotangents = (ct__cotangents){.d_out = rest[0], .lse = rest[1], .delta = rest[2]};
    turn[1 + CT__DQ] = scan->begins ? filled(loop.blocks, loop.queries.q, loop.queries.q->rank, 0) : rest[3];
    turn[1 + CT__DK] = carries[0];
    turn[1 + CT__DV] = carries[1];
    run_loop(&loop, graph, 4, turn, attend_block_back);
    out_slices[0] = turn[1 + CT__DQ];
    out_carries[0] = turn[1 + CT__DK];
    out_carries[1] = turn[1 + CT__DV];
}

void ct__blocks_attend_back(const ct__blocks *blocks, const ct__queries *queries, const ct__cotangents *cotangents,
                            const ct__keys *keys, ct_tensor *const *before, ct_tensor *out[3])
{
    query_scan scan = scan_of(blocks, queries, keys);
    scan.begins = !before[CT__DQ];
    add_input(&scan, cotangents->d_out);
    add_input(&scan, cotangents->lse);
    add_input(&scan, cotangents->delta);
    add_input(&scan, before[CT__DQ]);
    ct_scan_opts opts = {.axis = "q_block",
                         .length = blocks->num_q,
                         .num_carries = 2,
                         .carries = (ct_tensor *[]){before[CT__DK], before[CT__DV]},
                         .num_inputs = scan.num_inputs,
                         .inputs = scan.inputs,
                         .num_outputs = 1};
    ct_tensor *keys_out[2];
    ct_scan(ct_graph_of(queries->q), &opts, backward_turn, &scan, keys_out, &out[CT__DQ]);
    out[CT__DK] = keys_out[0];
    out[CT__DV] = keys_out[1];
}

void ct__blocks_gradients(const ct__blocks *blocks, ct_tensor *const *sums, ct_tensor *out_gradients[3])
{
    double scale = blocks->opts.scale;
    out_gradients[CT__DQ] = ct__unstack(blocks, ct_convert(ct_mul_scalar(sums[CT__DQ], scale), blocks->dtype));
    for (int i = CT__DK; i <= CT__DV; i++) {
        ct_tensor *x = i == CT__DK ? ct_mul_scalar(sums[i], scale) : sums[i];
        out_gradients[i] = unstack(ct_convert(x, blocks->dtype), "kv_seq", "kv_block", blocks->kv_seq,
                                   "batch kv_block kv_seq kv_heads head_dim");
    }
}
