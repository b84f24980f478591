/* The mosaic form's ring: cp turns, in each of which the kernels attend to the part of k and v that is here.
 *
 *   forward    turn: (result, lse) of this part, merged with those so far; k, v -> next device
 *   backward   turn: gradients by the whole lse; dq += ..; dk, dv += ..; k, v, dk, dv -> next device
 *
 * As in ring.c the last turn stands after the loop. A part that no query sees costs the walk over its blocks.
 */
#include <math.h>

#include "graph/ops.h"
#include "kernels/attention/context.h"
#include "kernels/attention/mosaic_form.h"

typedef struct ring {
    const ct__context *context;
    ct__context_parts own;
    const ct__attention_saved *saved;
} ring;

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
    parts.k = *travellers++;
    parts.v = *travellers++;
    if (parts.opts.kv_positions) parts.opts.kv_positions = *travellers++;
    if (parts.opts.kv_segments) parts.opts.kv_segments = *travellers++;
    return parts;
}

static ct__context_parts begin_turn(const ring *r, ct_tensor *const *travellers, ct_tensor **out_travellers)
{
    ct__context_parts parts = with_travellers(r, travellers);
    int count = list_travellers(&parts, out_travellers);
    for (int i = 0; i < count; i++) out_travellers[i] = ct__context_pass_on(r->context, out_travellers[i]);
    return parts;
}

/* degree - 1 turns of body over num_first carries and what goes round; out_carries: what the last turn finds. */
static void go_round(ring *r, ct_scan_body *body, int num_first, ct_tensor *const *first,
                     ct_tensor *out_carries[MAX_CARRIES])
{
    ct_tensor *carries[MAX_CARRIES];
    for (int i = 0; i < num_first; i++) carries[i] = first[i];
    int count = num_first + list_travellers(&r->own, carries + num_first);
    ct_scan_opts opts = {.axis = "turn", .length = r->context->degree - 1, .num_carries = count, .carries = carries};
    ct_scan(r->own.q->graph, &opts, body, r, out_carries, NULL);
}

/* ---- forward: result f32 [batch seq heads head_dim], lse [batch heads seq] ---- */

/* lse, with -inf (nothing seen) as 0, so that -inf minus it is -inf rather than NaN */
static ct_tensor *or_zero(ct_tensor *lse)
{
    return ct_select(ct_eq(lse, ct_scalar_like(lse, -INFINITY)), ct_scalar_like(lse, 0), lse);
}

static ct_tensor *weigh(ct_tensor *result, ct_tensor *lse, ct_tensor *base)
{
    ct_tensor *weight = ct_transpose(ct_exp(ct_sub(lse, base)), "batch seq heads");
    return ct_mul(result, ct_broadcast_like(weight, result));
}

static void attend(const ring *r, const ct__context_parts *parts, ct_tensor *const *carries, ct_tensor **out_carries)
{
    ct_tensor *here[2];
    ct__splash_attention(r->context->kernels, parts->q, parts->k, parts->v, &parts->opts, true, here);
    ct_tensor *result = carries[0], *lse = carries[1];
    ct_tensor *base = or_zero(ct_maximum(lse, here[1]));
    ct_tensor *total = ct_add(ct_exp(ct_sub(lse, base)), ct_exp(ct_sub(here[1], base)));
    ct_tensor *merged = ct_add(base, ct_log(total));
    base = or_zero(merged);
    out_carries[0] = ct_add(weigh(result, lse, base), weigh(here[0], here[1], base));
    out_carries[1] = merged;
}

static void forward_turn(ct_graph *graph, void *opaque, ct_tensor *const *carries, ct_tensor *const *slices,
                         ct_tensor **out_carries, ct_tensor **out_slices)
{
    (void)graph, (void)slices, (void)out_slices;
    const ring *r = opaque;
    ct__context_parts parts = begin_turn(r, carries + 2, out_carries + 2);
    attend(r, &parts, carries, out_carries);
}

static ct_tensor *zeros(const ct_tensor *like)
{
    return ct_convert(ct_full_like(like, 0), CT_DTYPE_F32);
}

static void forward(const ct__context *context, const ct__context_parts *parts, ct_tensor *out_outputs[2])
{
    ring r = {.context = context, .own = *parts};
    ct_tensor *result = zeros(parts->q);
    ct_tensor *none = ct_full_like(ct_transpose(ct_sum(result, "head_dim"), "batch heads seq"), -INFINITY);
    ct_tensor *carries[MAX_CARRIES];
    go_round(&r, forward_turn, 2, (ct_tensor *[]){result, none}, carries);
    ct__context_parts last = with_travellers(&r, carries + 2);
    attend(&r, &last, carries, out_outputs);
    out_outputs[0] = ct_convert(out_outputs[0], parts->q->dtype);
}

/* ---- backward: dq, dk, dv, f32 ---- */

static void attend_back(const ring *r, const ct__context_parts *parts, ct_tensor *const *carries,
                        ct_tensor **out_carries)
{
    const ct__attention_saved *saved = r->saved;
    ct_tensor *here[3];
    ct__splash_gradients(r->context->kernels, parts->q, parts->k, parts->v, &parts->opts, saved->result, saved->lse,
                         saved->d_result, saved->d_lse, true, here);
    for (int i = 0; i < 3; i++) out_carries[i] = ct_add(carries[i], here[i]);
    for (int i = 1; i < 3; i++) out_carries[i] = ct__context_pass_on(r->context, out_carries[i]);
}

static void backward_turn(ct_graph *graph, void *opaque, ct_tensor *const *carries, ct_tensor *const *slices,
                          ct_tensor **out_carries, ct_tensor **out_slices)
{
    (void)graph, (void)slices, (void)out_slices;
    const ring *r = opaque;
    ct__context_parts parts = begin_turn(r, carries + 3, out_carries + 3);
    attend_back(r, &parts, carries, out_carries);
}

static void backward(const ct__context *context, const ct__context_parts *parts, const ct__attention_saved *saved,
                     ct_tensor *out_gradients[3])
{
    ring r = {.context = context, .own = *parts, .saved = saved};
    ct_tensor *first[3] = {zeros(parts->q), zeros(parts->k), zeros(parts->v)}, *carries[MAX_CARRIES];
    go_round(&r, backward_turn, 3, first, carries);
    ct__context_parts last = with_travellers(&r, carries + 3);
    attend_back(&r, &last, carries, carries);
    for (int i = 0; i < 3; i++) out_gradients[i] = ct_convert(carries[i], parts->q->dtype);
}

const ct__attention_form ct__attention_mosaic_ring = {.forward = forward, .backward = backward};
