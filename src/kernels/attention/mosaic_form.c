/* The mosaic form: kernels called on a device's arrays. */
#include <math.h>

#include "graph/node.h"
#include "graph/ops.h"
#include "kernels/attention/definition.h"
#include "kernels/attention/mosaic_arrays.h"
#include "kernels/attention/mosaic_form.h"

static int64_t round_up(int64_t value, int64_t to)
{
    return (value + to - 1) / to * to;
}

static ct__splash_arrays arrays_of(const ct_kernels *kernels, ct_tensor *q, ct_tensor *k, ct_tensor *v,
                                   const ct_attention_opts *opts)
{
    int64_t batch = ct_tensor_axis_size(q, "batch"), heads = ct_tensor_axis_size(q, "heads");
    bool is_placed = opts->causal || opts->window > 0;
    ct__splash_arrays a = {.q = q, .k = k, .v = v, .opts = *opts};
    if (!is_placed) a.opts.positions = a.opts.kv_positions = NULL;
    bool has_batch = a.opts.segments || (a.opts.positions && a.opts.positions->rank == 2) ||
                     (a.opts.kv_positions && a.opts.kv_positions->rank == 2);
    a.splash = (ct__splash){.element = q->dtype == CT_DTYPE_F32 ? CT_MOSAIC_F32 : CT_MOSAIC_BF16,
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
                            .vector_bytes = ct_mosaic_chip_bytes(kernels->chip)};
    a.splash.blocks = ct__splash_blocks(kernels, ct_tensor_axis_size(q, "seq"), a.splash.num_keys);
    return a;
}

/* Lengths padded to a kernel's blocks. */
static void set_lengths(ct__splash_arrays *a, int64_t q_block, int64_t kv_block)
{
    a->splash.q_len = round_up(ct_tensor_axis_size(a->q, "seq"), q_block);
    a->splash.kv_len = round_up(a->splash.num_keys, kv_block);
}

/* tables q k v masks */
enum { MAX_OPERANDS = 2 + 3 + CT__SPLASH_MAX_MASKS + 5 };

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

void ct__splash_attention(const ct_kernels *kernels, ct_tensor *q, ct_tensor *k, ct_tensor *v,
                          const ct_attention_opts *opts, ct_tensor *out_outputs[2])
{
    ct__splash_arrays a = arrays_of(kernels, q, k, v, opts);
    const ct_attention_blocks *blocks = &a.splash.blocks;
    set_lengths(&a, blocks->q, blocks->kv);
    ct_tensor *operands[MAX_OPERANDS], *results[2];
    int count = list_operands(&a, blocks->q, blocks->kv, true, operands);
    ct_tensor *like = ct_full(q->graph, CT_DTYPE_F32,
                              ct_arena_printf(&q->graph->arena, "rows=%lld one=1 seq=%lld", (long long)a.splash.rows,
                                              (long long)a.splash.q_len),
                              0);
    ct_mosaic_call(ct__splash_forward(&a.splash), count, operands, 2, ((ct_tensor *[]){operands[2], like}), results);
    out_outputs[0] = ct__splash_unrows(results[0], q);
    out_outputs[1] = ct__splash_unnumbers(results[1], q);
}
