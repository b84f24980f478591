/* The mosaic form: kernels called on a device's arrays. */
#include <math.h>
#include <string.h>

#include "graph/node.h"
#include "graph/ops.h"
#include "kernels/attention/context.h"
#include "kernels/attention/definition.h"
#include "kernels/attention/mosaic_arrays.h"
#include "kernels/attention/mosaic_form.h"
#include "kernels/attention/mosaic_mask.h"
#include "spmd/parallel.h"

static ct__splash_arrays arrays_of(const ct_kernels *kernels, ct_tensor *q, ct_tensor *k, ct_tensor *v,
                                   const ct_attention_opts *opts, bool wide)
{
    int64_t batch = ct_tensor_axis_size(q, "batch"), heads = ct_tensor_axis_size(q, "heads");
    bool is_placed = opts->causal || opts->window > 0;
    ct__splash_arrays a = {.q = q, .k = k, .v = v, .opts = *opts};
    if (!is_placed) a.opts.positions = a.opts.kv_positions = NULL;
    bool has_batch = a.opts.segments || (a.opts.positions && a.opts.positions->rank == 2) ||
                     (a.opts.kv_positions && a.opts.kv_positions->rank == 2);
    a.splash = (ct__splash){.element = q->dtype == CT_DTYPE_F32 ? CT_MOSAIC_F32 : CT_MOSAIC_BF16,
                            .wide = wide,
                            .rows = batch * heads,
                            .heads = heads,
                            .group = heads / ct_tensor_axis_size(k, "kv_heads"),
                            .num_keys = ct_tensor_axis_size(k, "kv_seq"),
                            .head_dim = ct_tensor_axis_size(q, "head_dim"),
                            .mask_batch = has_batch ? batch : 1,
                            .causal = opts->causal,
                            .window = opts->window,
                            .segments = opts->segments != NULL,
                            .q_positions = a.opts.positions != NULL,
                            .kv_positions = a.opts.kv_positions != NULL,
                            .scale = ct__attention_scale(q, opts),
                            .soft_cap = opts->soft_cap,
                            .vector_bytes =
                                kernels->vector_bytes ? kernels->vector_bytes : ct_mosaic_chip_bytes(kernels->chip)};
    a.splash.q_len = ct_tensor_axis_size(q, "seq");
    a.splash.blocks = ct__splash_blocks(kernels, a.splash.element, a.splash.q_len, a.splash.num_keys);
    ct__splash_fit(&a.splash, &kernels->attention_blocks);
    return a;
}

/* Lengths padded to a kernel's blocks. */
static void set_lengths(ct__splash_arrays *a, int64_t q_block, int64_t kv_block)
{
    a->splash.q_len = ct_mosaic_round_up(ct_tensor_axis_size(a->q, "seq"), q_block);
    a->splash.kv_len = ct_mosaic_round_up(a->splash.num_keys, kv_block);
}

/* tables q k v masks, cotangents, part, sums */
enum { MAX_OPERANDS = 2 + 3 + CT__SPLASH_MAX_MASKS + 6 };

static int list_operands(const ct__splash_arrays *a, int64_t q_block, int64_t kv_block, bool q_along_rows,
                         ct_tensor **out_operands)
{
    const ct__splash *s = &a->splash;
    ct__splash_tables(a, q_block, kv_block, out_operands);
    int count = 2;
    out_operands[count++] = ct__splash_rows(a->q, s->q_len);
    out_operands[count++] = ct__splash_rows(a->k, s->kv_len);
    out_operands[count++] = ct__splash_rows(a->v, s->kv_len);
    return count + ct__splash_masks(a, q_along_rows, out_operands + count);
}

/* Of x's type as results are. */
static ct_tensor *as_result(const ct__splash_arrays *a, ct_tensor *x)
{
    return a->splash.wide ? ct_convert(x, CT_DTYPE_F32) : x;
}

void ct__splash_attention(const ct_kernels *kernels, ct_tensor *q, ct_tensor *k, ct_tensor *v,
                          const ct_attention_opts *opts, bool wide, ct_tensor *out_outputs[2])
{
    ct__splash_arrays a = arrays_of(kernels, q, k, v, opts, wide);
    const ct_attention_blocks *blocks = &a.splash.blocks;
    set_lengths(&a, blocks->q, blocks->kv);
    ct_tensor *operands[MAX_OPERANDS], *results[2];
    int count = list_operands(&a, blocks->q, blocks->kv, true, operands);
    ct_tensor *like = ct_full(q->graph, CT_DTYPE_F32,
                              ct_arena_printf(&q->graph->arena, "rows=%lld one=1 seq=%lld", (long long)a.splash.rows,
                                              (long long)a.splash.q_len),
                              0);
    ct_mosaic_call(ct__splash_forward(&a.splash), count, operands, 2,
                   ((ct_tensor *[]){as_result(&a, operands[2]), like}), results);
    out_outputs[0] = ct__splash_unrows(results[0], q);
    out_outputs[1] = ct__splash_unnumbers(results[1], q);
}

/* ---- backward ---- */

/* What the backward kernels take beside list_operands: d_out, lse, delta; len: of queries. */
typedef struct cotangents {
    ct_tensor *d_out, *lse, *delta;
} cotangents;

static cotangents cotangents_of(ct_tensor *result, ct_tensor *lse, ct_tensor *d_result, ct_tensor *d_lse)
{
    cotangents c = {.d_out = ct__splash_by_heads(d_result)};
    ct_tensor *is_empty = ct_eq(lse, ct_scalar_like(lse, -INFINITY));
    c.lse = ct_mul_scalar(ct_select(is_empty, ct_scalar_like(lse, 0), lse), CT__LOG2E);
    ct_tensor *by_heads = ct__splash_by_heads(result);
    c.delta = ct_sum(ct_mul(ct_convert(by_heads, CT_DTYPE_F32), ct_convert(c.d_out, CT_DTYPE_F32)), "head_dim");
    if (d_lse) c.delta = ct_sub(c.delta, d_lse);
    return c;
}

static int list_cotangents(const cotangents *c, int64_t len, ct_tensor **out_operands)
{
    out_operands[0] = ct__splash_rows(c->d_out, len);
    out_operands[1] = ct__splash_numbers(c->lse, len);
    out_operands[2] = ct__splash_numbers(c->delta, len);
    return 3;
}

static void gradient_of_queries(ct__splash_arrays *a, const cotangents *c, ct_tensor **out_dq)
{
    const ct_attention_blocks *blocks = &a->splash.blocks;
    set_lengths(a, blocks->q_dq, blocks->kv_dq);
    ct_tensor *operands[MAX_OPERANDS], *dq;
    int count = list_operands(a, blocks->q_dq, blocks->kv_dq, false, operands);
    ct_tensor *like = as_result(a, operands[2]);
    count += list_cotangents(c, a->splash.q_len, operands + count);
    ct_mosaic_call(ct__splash_dq(&a->splash), count, operands, 1, &like, &dq);
    *out_dq = ct__splash_unrows(dq, a->q);
}

/* dkv, or all in one */
static void gradients_at_once(ct__splash_arrays *a, const cotangents *c, bool fused, ct_tensor *out_gradients[3])
{
    const ct_attention_blocks *blocks = &a->splash.blocks;
    ct_tensor *operands[MAX_OPERANDS], *results[3];
    int count = list_operands(a, blocks->q_dkv, blocks->kv_dkv, false, operands);
    ct_tensor *likes[3];
    for (int i = 0; i < 3; i++) likes[i] = as_result(a, operands[2 + i]);
    count += list_cotangents(c, a->splash.q_len, operands + count);
    ct_mosaic *kernel = ct__splash_dkv(&a->splash, fused, a->splash.q_len / blocks->q_dkv);
    ct_mosaic_call(kernel, count, operands, fused ? 3 : 2, fused ? likes : likes + 1, fused ? results : results + 1);
    if (fused) out_gradients[0] = ct__splash_unrows(results[0], a->q);
    out_gradients[1] = ct__splash_unrows(results[1], a->k);
    out_gradients[2] = ct__splash_unrows(results[2], a->v);
}

typedef struct parts {
    const ct__splash_arrays *arrays;
    int64_t part_blocks;
    int count;
    ct_tensor *operands[MAX_OPERANDS]; /* without the part and the sums */
} parts;

/* carries: dk, dv so far; slice: the first block of queries; output: their dq */
static void add_part(ct_graph *graph, void *context, ct_tensor *const *carries, ct_tensor *const *slices,
                     ct_tensor **out_carries, ct_tensor **out_slices)
{
    const parts *p = context;
    const ct__splash *s = &p->arrays->splash;
    ct_tensor *operands[MAX_OPERANDS], *results[3];
    int count = 0;
    for (int i = 0; i < p->count; i++) {
        if (i == 2) operands[count++] = ct_unsqueeze(slices[0], "part", 0);
        operands[count++] = p->operands[i];
    }
    operands[count++] = carries[0];
    operands[count++] = carries[1];
    const char *axes = ct_arena_printf(&graph->arena, "rows=%lld seq=%lld head_dim=%lld", (long long)s->rows,
                                       (long long)(p->part_blocks * s->blocks.q_dkv), (long long)s->head_dim);
    ct_tensor *likes[3] = {as_result(p->arrays, ct_full(graph, p->arrays->q->dtype, axes, 0)), carries[0], carries[1]};
    ct_mosaic_call(ct__splash_dkv(s, true, p->part_blocks), count, operands, 3, likes, results);
    out_slices[0] = results[0];
    out_carries[0] = results[1];
    out_carries[1] = results[2];
}

static void gradients_in_parts(ct__splash_arrays *a, const cotangents *c, int64_t num_parts, int64_t part_blocks,
                               ct_tensor *out_gradients[3])
{
    ct_graph *graph = a->q->graph;
    const ct_attention_blocks *blocks = &a->splash.blocks;
    a->splash.q_len = num_parts * part_blocks * blocks->q_dkv;
    parts p = {.arrays = a, .part_blocks = part_blocks};
    p.count = list_operands(a, blocks->q_dkv, blocks->kv_dkv, false, p.operands);
    p.count += list_cotangents(c, a->splash.q_len, p.operands + p.count);
    ct_tensor *zero = ct_convert(ct_full_like(p.operands[3], 0), CT_DTYPE_F32), *carries[2] = {zero, zero}, *dq;
    const char *axes = ct_arena_printf(&graph->arena, "part=%lld", (long long)num_parts);
    ct_tensor *first = ct_mul_scalar(ct_iota(graph, CT_DTYPE_S32, axes, "part"), (double)part_blocks);
    ct_scan_opts opts = {.axis = "part",
                         .length = num_parts,
                         .num_carries = 2,
                         .num_inputs = 1,
                         .num_outputs = 1,
                         .carries = carries,
                         .inputs = &first};
    ct_scan(graph, &opts, add_part, &p, carries, &dq);
    dq = ct_merge(ct_transpose(dq, "rows part seq head_dim"), "part seq", "seq");
    out_gradients[0] = ct__splash_unrows(dq, a->q);
    ct_tensor *dk = ct_mul_scalar(carries[0], a->splash.scale), *dv = carries[1];
    out_gradients[1] = ct__splash_unrows(a->splash.wide ? dk : ct_convert(dk, a->k->dtype), a->k);
    out_gradients[2] = ct__splash_unrows(a->splash.wide ? dv : ct_convert(dv, a->v->dtype), a->v);
}

void ct__splash_gradients(const ct_kernels *kernels, ct_tensor *q, ct_tensor *k, ct_tensor *v,
                          const ct_attention_opts *opts, ct_tensor *result, ct_tensor *lse, ct_tensor *d_result,
                          ct_tensor *d_lse, bool wide, ct_tensor *out_gradients[3])
{
    ct__splash_arrays a = arrays_of(kernels, q, k, v, opts, wide);
    const ct_attention_blocks *blocks = &a.splash.blocks;
    cotangents c = cotangents_of(result, lse, d_result, d_lse);
    set_lengths(&a, blocks->q_dkv, blocks->kv_dkv);
    int64_t num_blocks = a.splash.q_len / blocks->q_dkv, most = ct__splash_part_blocks(&a.splash);
    int64_t num_parts = (num_blocks + most - 1) / most;
    if (blocks->separate_backward || num_parts == 1)
        gradients_at_once(&a, &c, !blocks->separate_backward, out_gradients);
    else
        gradients_in_parts(&a, &c, num_parts, (num_blocks + num_parts - 1) / num_parts, out_gradients);
    if (blocks->separate_backward) gradient_of_queries(&a, &c, &out_gradients[0]);
}

/* ---- the form ---- */

/* What a device will be given, from the whole arrays. Blocks are of the whole lengths, and so no smaller than its. */
static ct__splash splash_of_device(const ct_kernels *kernels, ct_tensor *q, ct_tensor *k, const ct_attention_opts *opts)
{
    const ct_parallel *parallel = q->graph->manual_depth ? NULL : ct_parallel_of(q->graph);
    int64_t degree = parallel ? parallel->mesh.degrees[CT_MESH_CP] : 1;
    bool is_ring = degree > 1 && parallel->rotate == CT_ROTATE_RING;
    ct__splash s = arrays_of(kernels, q, k, k, opts, is_ring).splash;
    if (!parallel) return s;
    int64_t dp = ct_mesh_size(&parallel->mesh, "dp");
    if (s.mask_batch % dp == 0) s.mask_batch /= dp;
    s.q_len = (s.q_len + degree - 1) / degree;
    if (is_ring) s.num_keys = (s.num_keys + degree - 1) / degree;
    if (degree > 1) s.q_positions = s.kv_positions = s.causal || s.window > 0;
    return s;
}

const char *ct__splash_why_not(const ct_kernels *kernels, ct_tensor *q, ct_tensor *k, const ct_attention_opts *opts)
{
    ct_graph *graph = q->graph;
    if (!kernels->platform || strcmp(kernels->platform, "tpu") != 0)
        return ct_arena_printf(&graph->arena,
                               "the mosaic form is for TPUs, and the platform is %s; ask for portable or definition",
                               kernels->platform ? kernels->platform : "not known");
    if (q->dtype != CT_DTYPE_BF16 && q->dtype != CT_DTYPE_F32)
        return ct_arena_printf(&graph->arena,
                               "the mosaic form takes bf16 and f32, found %s; ask for portable or definition",
                               ct_dtype_name(q->dtype));
    if (!(ct__attention_scale(q, opts) > 0))
        return "the mosaic form takes a scale above 0; ask for portable or definition";
    const char *bad = ct__splash_bad_block(graph, &kernels->attention_blocks);
    if (bad) return bad;
    ct__splash s = splash_of_device(kernels, q, k, opts);
    ct__splash_fit(&s, &kernels->attention_blocks);
    return ct__splash_too_large(graph, &s);
}

bool ct__splash_is_asked(const ct_kernels *kernels)
{
    const ct_attention_blocks *b = &kernels->attention_blocks;
    return kernels->attention == CT_KERNEL_MOSAIC || b->q || b->kv || b->kv_compute || b->q_dkv || b->kv_dkv ||
           b->kv_dkv_compute || b->q_dq || b->kv_dq;
}

static void form_forward(const ct__context *context, const ct__context_parts *local, ct_tensor *out_outputs[2])
{
    ct__splash_attention(context->kernels, local->q, local->k, local->v, &local->opts, false, out_outputs);
}

static void form_backward(const ct__context *context, const ct__context_parts *local, const ct__attention_saved *saved,
                          ct_tensor *out_gradients[3])
{
    ct__splash_gradients(context->kernels, local->q, local->k, local->v, &local->opts, saved->result, saved->lse,
                         saved->d_result, saved->d_lse, false, out_gradients);
}

const ct__attention_form ct__attention_mosaic = {.forward = form_forward, .backward = form_backward, .gathers = true};
