/* Ring attention: cp turns, in each of which a device attends to the part of k and v that it has and passes the part
 * on to its neighbour. Between turns only what merging needs is kept.
 *
 *   forward    turn: (sum, max, total) of exp(score - max) v merged; k, v -> next device
 *   backward   turn: p again from the saved log-sum-exp; dq += ..; dk, dv += ..; k, v, dk, dv -> next device
 *
 * The last turn stands after the loop: k and v need not go further, dk and dv go home. Each turn sends k and v before
 * it computes, so that the way can be hidden behind the work. A device's part is one block (blocks.h), or many where
 * the form is blockwise; blocks that the mask rules out cost nothing.
 */
#include <math.h>

#include "graph/ops.h"
#include "kernels/attention/blocks.h"
#include "kernels/attention/context.h"

typedef struct ring {
    const ct__context *context;
    ct__blocks blocks;
    ct__queries queries;
    ct__keys own; /* of the device itself */
    ct__cotangents cotangents;
} ring;

/* ---- what goes round: k v positions segments, as stacked ---- */

enum { MAX_TRAVELLERS = 4, MAX_CARRIES = 3 + MAX_TRAVELLERS };

static int list_travellers(const ct__keys *keys, ct_tensor **out_travellers)
{
    int count = 0;
    out_travellers[count++] = keys->k;
    out_travellers[count++] = keys->v;
    if (keys->positions) out_travellers[count++] = keys->positions;
    if (keys->segments) out_travellers[count++] = keys->segments;
    return count;
}

static ct__keys with_travellers(const ring *r, ct_tensor *const *travellers)
{
    ct__keys keys = {.k = travellers[0], .v = travellers[1]};
    travellers += 2;
    if (r->own.positions) keys.positions = *travellers++;
    if (r->own.segments) keys.segments = *travellers++;
    return keys;
}

static void pass_travellers(const ring *r, const ct__keys *keys, ct_tensor **out_carries)
{
    int count = list_travellers(keys, out_carries);
    for (int i = 0; i < count; i++) out_carries[i] = ct__context_pass_on(r->context, out_carries[i]);
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

static ring ring_of(const ct__context *context, const ct__context_parts *parts, bool is_backward)
{
    ring r = {.context = context};
    int64_t q = ct_tensor_axis_size(parts->q, "seq"), kv = ct_tensor_axis_size(parts->k, "kv_seq");
    if (context->is_blockwise) ct__portable_blocks(context, is_backward, &q, &kv);
    r.blocks = ct__blocks_of(parts->q, parts->k, &parts->opts, q, kv);
    r.queries = ct__stack_queries(&r.blocks, parts->q, &parts->opts);
    r.own = ct__stack_keys(&r.blocks, parts->k, parts->v, &parts->opts);
    return r;
}

/* ---- forward ---- */

static void forward_turn(ct_graph *graph, void *opaque, ct_tensor *const *carries, ct_tensor *const *slices,
                         ct_tensor **out_carries, ct_tensor **out_slices)
{
    (void)graph, (void)slices, (void)out_slices;
    const ring *r = opaque;
    ct__keys keys = with_travellers(r, carries + 3);
    pass_travellers(r, &keys, out_carries + 3);
    ct__blocks_attend(&r->blocks, &r->queries, &keys, carries, false, out_carries);
}

static void forward(const ct__context *context, const ct__context_parts *parts, ct_tensor *out_outputs[2])
{
    ring r = ring_of(context, parts, false);
    ct_tensor *first[3] = {[CT__SUM] = ct__queries_filled(&r.blocks, &r.queries, 0),
                           [CT__MAX] = ct__rows_filled(&r.blocks, &r.queries, -INFINITY),
                           [CT__TOTAL] = ct__rows_filled(&r.blocks, &r.queries, 0)};
    ct_tensor *carries[MAX_CARRIES], *outputs[3];
    go_round(&r, parts->q->graph, forward_turn, first, carries);
    ct__keys keys = with_travellers(&r, carries + 3);
    ct__blocks_attend(&r.blocks, &r.queries, &keys, carries, true, outputs);
    for (int i = 0; i < 2; i++) out_outputs[i] = ct__unstack(&r.blocks, outputs[i]);
}

/* ---- backward ---- */

static void attend_back(const ring *r, const ct__keys *keys, ct_tensor *const *carries, ct_tensor **out_carries)
{
    ct__blocks_attend_back(&r->blocks, &r->queries, &r->cotangents, keys, carries, out_carries);
    out_carries[CT__DK] = ct__context_pass_on(r->context, out_carries[CT__DK]);
    out_carries[CT__DV] = ct__context_pass_on(r->context, out_carries[CT__DV]);
}

static void backward_turn(ct_graph *graph, void *opaque, ct_tensor *const *carries, ct_tensor *const *slices,
                          ct_tensor **out_carries, ct_tensor **out_slices)
{
    (void)graph, (void)slices, (void)out_slices;
    const ring *r = opaque;
    ct__keys keys = with_travellers(r, carries + 3);
    pass_travellers(r, &keys, out_carries + 3);
    attend_back(r, &keys, carries, out_carries);
}

static void backward(const ct__context *context, const ct__context_parts *parts, const ct__attention_saved *saved,
                     ct_tensor *out_gradients[3])
{
    ring r = ring_of(context, parts, true);
    r.cotangents = ct__stack_cotangents(&r.blocks, saved->result, saved->lse, saved->d_result, saved->d_lse);
    ct_tensor *zero = ct__keys_filled(&r.blocks, &r.own, 0), *carries[MAX_CARRIES];
    ct_tensor *first[3] = {[CT__DQ] = ct__queries_filled(&r.blocks, &r.queries, 0), [CT__DK] = zero, [CT__DV] = zero};
    go_round(&r, parts->q->graph, backward_turn, first, carries);
    ct__keys keys = with_travellers(&r, carries + 3);
    attend_back(&r, &keys, carries, carries);
    ct__blocks_gradients(&r.blocks, carries, out_gradients);
}

const ct__attention_form ct__attention_ring = {.forward = forward, .backward = backward};
