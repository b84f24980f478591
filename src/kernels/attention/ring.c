/* Ring attention: cp turns, in each of which a device attends to the block of k and v that it has and passes the block
 * on to its neighbour. Between turns only what merging needs is kept.
 *
 *   forward    turn: scores of q and block; (sum, max, total) of exp(score - max) v merged; k, v -> next device
 *   backward   turn: p again from the saved log-sum-exp; dq += ..; dk, dv += ..; k, v, dk, dv -> next device
 *
 * The last turn stands after the loop: k and v need not go further, dk and dv go home. Each turn sends k and v before
 * it computes, and dk and dv before dq, so that the way can be hidden behind the work.
 */
#include <math.h>
#include <string.h>

#include "graph/ops.h"
#include "kernels/attention/context.h"
#include "kernels/attention/definition.h"

static const char QUERIES[] = "batch kv_heads seq group head_dim", KEYS[] = "batch kv_heads kv_seq head_dim",
                  ROWS[] = "batch kv_heads seq group";

typedef struct ring {
    const ct__context *context;
    ct__context_parts own; /* its k, v, kv_positions, kv_segments are those of the device itself */
    ct_tensor *grouped;    /* q, [batch seq kv_heads group head_dim] */
    /* backward: like grouped; rows */
    ct_tensor *d_out, *lse, *delta;
} ring;

/* ---- what goes round ---- */

enum { MAX_TRAVELLERS = 4, MAX_CARRIES = 3 + MAX_TRAVELLERS };

static int list_travellers(const ct__context_parts *parts, ct_tensor **out_travellers)
{
    int count = 0;
    out_travellers[count++] = parts->k;
    out_travellers[count++] = parts->v;
    if (parts->opts.kv_positions) out_travellers[count++] = parts->opts.kv_positions;
    if (parts->opts.kv_segments) out_travellers[count++] = parts->opts.kv_segments;
    return count;
}

static ct__context_parts with_travellers(const ring *r, ct_tensor *const *travellers)
{
    ct__context_parts parts = r->own;
    int next = 0;
    parts.k = travellers[next++];
    parts.v = travellers[next++];
    if (parts.opts.kv_positions) parts.opts.kv_positions = travellers[next++];
    if (parts.opts.kv_segments) parts.opts.kv_segments = travellers[next++];
    return parts;
}

/* To the next device of the ring. */
static ct_tensor *pass_on(const ring *r, ct_tensor *x)
{
    int64_t degree = r->context->degree;
    int64_t(*pairs)[2] = ct_arena_alloc(&x->graph->arena, (size_t)degree * sizeof(*pairs));
    for (int64_t i = 0; i < degree; i++) {
        pairs[i][0] = i;
        pairs[i][1] = (i + 1) % degree;
    }
    return ct_collective_permute(x, r->context->cp, (int)degree, (const int64_t(*)[2])pairs);
}

static void pass_travellers(const ring *r, const ct__context_parts *parts, ct_tensor **out_carries)
{
    int count = list_travellers(parts, out_carries);
    for (int i = 0; i < count; i++) out_carries[i] = pass_on(r, out_carries[i]);
}

/* degree - 1 turns of body over the first carries and what goes round; out_carries: what the last turn finds. */
static void go_round(ring *r, ct_graph *graph, ct_scan_body *body, ct_tensor *const *first,
                     ct_tensor *out_carries[MAX_CARRIES])
{
    ct_tensor *carries[MAX_CARRIES];
    for (int i = 0; i < 3; i++) carries[i] = first[i];
    int count = 3 + list_travellers(&r->own, carries + 3);
    ct_scan_opts opts = {.axis = "turn", .length = r->context->degree - 1, .num_carries = count, .carries = carries};
    ct_scan(graph, &opts, body, r, out_carries, NULL);
}

/* value everywhere, with the local sizes of grouped q or k along the named axes */
static ct_tensor *filled(const ring *r, const char *names, double value)
{
    ct_graph *graph = r->grouped->graph;
    const char *axes = "";
    for (const char *word = names; *word; word += strspn(word, " ")) {
        size_t length = strcspn(word, " ");
        const char *name = ct__intern(graph, word, length);
        bool is_of_q = ct_tensor_find_axis(r->grouped, name) >= 0;
        int64_t size = ct_tensor_axis_size(is_of_q ? r->grouped : r->own.k, name);
        axes = ct_arena_printf(&graph->arena, "%s%s=%lld ", axes, name, (long long)size);
        word += length;
    }
    return ct_full(graph, ct__attention_wide(r->grouped), axes, value);
}

/* rows, with -inf (nothing seen) as 0, so that -inf minus it is -inf rather than NaN */
static ct_tensor *rows_or_zero(ct_tensor *rows)
{
    return ct_select(ct_eq(rows, ct_scalar_like(rows, -INFINITY)), ct_scalar_like(rows, 0), rows);
}

/* ---- forward ---- */

enum { SUM, MAX, TOTAL }; /* of p v, QUERIES; of scores, ROWS; of p, ROWS */

static void attend(const ring *r, const ct__context_parts *parts, ct_tensor *const *carries, ct_tensor **out_carries)
{
    ct_tensor *scores = ct__attention_scores(r->grouped, parts->k, &parts->opts);
    scores = ct__attention_hide(scores, parts->q, parts->k, &parts->opts);
    ct_tensor *max = ct_maximum(carries[MAX], ct_max(scores, "kv_seq")), *base = rows_or_zero(max);
    ct_tensor *p = ct_exp(ct_sub(scores, base)), *fade = ct_exp(ct_sub(carries[MAX], base));
    ct_tensor *mixed = ct_dot_as(ct_convert(p, parts->v->dtype), parts->v, "kv_seq", ct_tensor_dtype(p));
    ct_tensor *sum = ct_add(ct_mul(carries[SUM], fade), mixed);
    ct_tensor *total = ct_add(ct_mul(carries[TOTAL], fade), ct_sum(p, "kv_seq"));
    out_carries[SUM] = sum;
    out_carries[MAX] = max;
    out_carries[TOTAL] = total;
}

static void forward_turn(ct_graph *graph, void *opaque, ct_tensor *const *carries, ct_tensor *const *slices,
                         ct_tensor **out_carries, ct_tensor **out_slices)
{
    (void)graph, (void)slices, (void)out_slices;
    const ring *r = opaque;
    ct__context_parts parts = with_travellers(r, carries + 3);
    pass_travellers(r, &parts, out_carries + 3);
    attend(r, &parts, carries, out_carries);
}

static ring ring_of(const ct__context *context, ct_tensor *const *args)
{
    ring r = {.context = context, .own = ct__context_parts_of(context, args)};
    r.grouped = ct__attention_group(r.own.q, ct_tensor_axis_size(r.own.k, "kv_heads"));
    return r;
}

static void forward_body(ct_graph *graph, void *opaque, ct_tensor *const *args, ct_tensor **out_results)
{
    ring r = ring_of(opaque, args);
    ct_tensor *first[3] = {
        [SUM] = filled(&r, QUERIES, 0), [MAX] = filled(&r, ROWS, -INFINITY), [TOTAL] = filled(&r, ROWS, 0)};
    ct_tensor *carries[MAX_CARRIES];
    go_round(&r, graph, forward_turn, first, carries);
    if (graph->error) return;
    ct__context_parts parts = with_travellers(&r, carries + 3);
    attend(&r, &parts, carries, carries);
    ct_tensor *total = carries[TOTAL], *zero = ct_scalar_like(total, 0);
    ct_tensor *mixed = ct_div(carries[SUM], ct_select(ct_eq(total, zero), ct_scalar_like(total, 1), total));
    out_results[0] = ct__attention_ungroup(ct_convert(mixed, r.own.q->dtype));
    out_results[1] = ct__attention_ungroup_rows(ct_add(rows_or_zero(carries[MAX]), ct_log(total)));
}

/* ---- backward ---- */

enum { DQ, DK, DV }; /* QUERIES, KEYS, KEYS */

/* Adds the block's part; dk and dv then go on.
 * p = exp(score - lse), dscore = p (d_out v - delta) with delta = d_out out - dlse; Dao 2023, "FlashAttention-2". */
static void attend_back(const ring *r, const ct__context_parts *parts, ct_tensor *const *carries,
                        ct_tensor **out_carries)
{
    const ct_attention_opts *opts = &parts->opts;
    ct_dtype dtype = parts->q->dtype, wide = ct__attention_wide(parts->q);
    ct_tensor *scores = ct__attention_scores(r->grouped, parts->k, opts);
    ct_tensor *p = ct_exp(ct_sub(ct__attention_hide(scores, parts->q, parts->k, opts), r->lse));
    ct_tensor *dv = ct_dot_as(ct_convert(p, dtype), r->d_out, "seq group", wide);
    out_carries[DV] = pass_on(r, ct_add(carries[DV], dv));
    ct_tensor *d_scores = ct_mul(p, ct_sub(ct_dot_as(r->d_out, parts->v, "head_dim", wide), r->delta));
    if (opts->soft_cap > 0) { /* of cap tanh(x / cap); scores before hiding, where it is finite */
        ct_tensor *slope = ct_mul_scalar(ct_mul(scores, scores), -1 / (opts->soft_cap * opts->soft_cap));
        d_scores = ct_mul(d_scores, ct_add_scalar(slope, 1));
    }
    d_scores = ct_convert(d_scores, dtype);
    out_carries[DK] = pass_on(r, ct_add(carries[DK], ct_dot_as(d_scores, r->grouped, "seq group", wide)));
    out_carries[DQ] = ct_add(carries[DQ], ct_dot_as(d_scores, parts->k, "kv_seq", wide));
}

static void backward_turn(ct_graph *graph, void *opaque, ct_tensor *const *carries, ct_tensor *const *slices,
                          ct_tensor **out_carries, ct_tensor **out_slices)
{
    (void)graph, (void)slices, (void)out_slices;
    const ring *r = opaque;
    ct__context_parts parts = with_travellers(r, carries + 3);
    pass_travellers(r, &parts, out_carries + 3);
    attend_back(r, &parts, carries, out_carries);
}

/* A gradient of k or v: devices that share kv heads add theirs up. */
static ct_tensor *finish_block(const ring *r, ct_tensor *x, double scale)
{
    if (scale < 1 || scale > 1) x = ct_mul_scalar(x, scale);
    x = ct_transpose(ct_convert(x, r->own.k->dtype), "batch kv_seq kv_heads head_dim");
    return *r->context->shared ? ct_all_reduce(x, CT_REDUCTION_SUM, r->context->shared) : x;
}

/* args: the forward's, result, log-sum-exp, cotangent of the result, and that of the log-sum-exp when it has one */
static void fill_backward(const ct__context *context, ct_tensor *const *args, ct_tensor *d_lse, ct_graph *graph,
                          ct_tensor **out_results)
{
    ring r = ring_of(context, args);
    ct_tensor *const *saved = args + context->num_inputs;
    ct_dtype wide = ct__attention_wide(r.own.q);
    int64_t kv_heads = ct_tensor_axis_size(r.own.k, "kv_heads");
    r.d_out = ct__attention_group(saved[2], kv_heads);
    r.lse = rows_or_zero(ct_transpose(ct__attention_group(saved[1], kv_heads), ROWS));
    ct_tensor *products = ct_mul(ct_convert(saved[0], wide), ct_convert(saved[2], wide));
    r.delta = ct_sum(products, "head_dim"); /* [batch seq heads] */
    if (d_lse) r.delta = ct_sub(r.delta, ct_transpose(d_lse, "batch seq heads"));
    r.delta = ct_transpose(ct__attention_group(r.delta, kv_heads), ROWS);
    ct_tensor *first[3] = {[DQ] = filled(&r, QUERIES, 0), [DK] = filled(&r, KEYS, 0), [DV] = filled(&r, KEYS, 0)};
    ct_tensor *carries[MAX_CARRIES];
    go_round(&r, graph, backward_turn, first, carries);
    if (graph->error) return;
    ct__context_parts parts = with_travellers(&r, carries + 3);
    attend_back(&r, &parts, carries, carries);
    double scale = ct__attention_scale(r.own.q, &context->opts);
    out_results[0] = ct__attention_ungroup(ct_convert(ct_mul_scalar(carries[DQ], scale), r.own.q->dtype));
    out_results[1] = finish_block(&r, carries[DK], scale);
    out_results[2] = finish_block(&r, carries[DV], 1);
}

static void backward_body(ct_graph *graph, void *opaque, ct_tensor *const *args, ct_tensor **out_results)
{
    fill_backward(opaque, args, NULL, graph, out_results);
}

static void backward_body_with_rows(ct_graph *graph, void *opaque, ct_tensor *const *args, ct_tensor **out_results)
{
    const ct__context *context = opaque;
    fill_backward(context, args, args[context->num_inputs + 3], graph, out_results);
}

/* ---- the custom derivative around both regions: the backward pass does not run the forward ring again ---- */

static void ring_forward(ct_graph *graph, void *opaque, ct_tensor *const *inputs, ct_tensor **out_outputs)
{
    const ct__context *context = opaque;
    ct_manual_opts region = {.num_inputs = context->num_inputs,
                             .num_outputs = 2,
                             .inputs = inputs,
                             .input_placements = context->placements,
                             .output_placements = (const char *[]){context->placements[0], context->rows_placement}};
    ct_manual(graph, &region, forward_body, opaque, out_outputs);
}

static void ring_backward(ct_graph *graph, void *opaque, ct_tensor *const *inputs, ct_tensor *const *outputs,
                          ct_tensor *const *cotangents, ct_tensor **out_gradients)
{
    const ct__context *context = opaque;
    ct_tensor *args[CT__CONTEXT_MAX_INPUTS + 4];
    const char *placements[CT__CONTEXT_MAX_INPUTS + 4];
    int count = context->num_inputs;
    for (int i = 0; i < count; i++) {
        args[i] = inputs[i];
        placements[i] = context->placements[i];
    }
    args[count] = outputs[0];
    placements[count++] = context->placements[0];
    args[count] = outputs[1];
    placements[count++] = context->rows_placement;
    args[count] = cotangents[0] ? cotangents[0] : ct_full_like(outputs[0], 0);
    placements[count++] = context->placements[0];
    if (cotangents[1]) {
        args[count] = cotangents[1];
        placements[count++] = context->rows_placement;
    }
    ct_manual_opts region = {.num_inputs = count,
                             .num_outputs = 3,
                             .inputs = args,
                             .input_placements = placements,
                             .output_placements = context->placements};
    ct_manual(graph, &region, cotangents[1] ? backward_body_with_rows : backward_body, opaque, out_gradients);
}

void ct__context_ring(const char *loc, ct_graph *graph, ct__context *context, ct_tensor *const *inputs,
                      ct_tensor *out_outputs[2])
{
    ct__custom_vjp(loc, graph, context->num_inputs, inputs, 2, out_outputs, ring_forward, ring_backward, context);
}
