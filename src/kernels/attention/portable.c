/* The portable form: attention block by block in StableHLO, forward and backward (blocks.h). */
#include <string.h>

#include "graph/ops.h"
#include "kernels/attention/blocks.h"
#include "kernels/attention/context.h"

/* On a CPU a block of scores is to stay near its caches (benchmarks/attention); elsewhere fewer, larger products win.
 */
enum { CPU_ROWS = 128, ROWS = 512 };

static int64_t rows_or_default(int64_t rows, const char *platform)
{
    if (rows > 0) return rows;
    return platform && (!strcmp(platform, "tpu") || !strcmp(platform, "cuda")) ? ROWS : CPU_ROWS;
}

void ct__portable_blocks(const ct__context *context, bool is_backward, int64_t *out_q, int64_t *out_kv)
{
    const ct_attention_blocks *blocks = &context->kernels->attention_blocks;
    const char *platform = context->kernels->platform;
    *out_q = rows_or_default(is_backward ? blocks->q_dkv : blocks->q, platform);
    *out_kv = rows_or_default(is_backward ? blocks->kv_dkv : blocks->kv, platform);
}

static ct__blocks blocks_of(const ct__context *context, const ct__context_parts *parts, bool is_backward)
{
    int64_t q, kv;
    ct__portable_blocks(context, is_backward, &q, &kv);
    return ct__blocks_of(parts->q, parts->k, &parts->opts, q, kv);
}

static void forward(const ct__context *context, const ct__context_parts *parts, ct_tensor *out_outputs[2])
{
    ct__blocks blocks = blocks_of(context, parts, false);
    ct__queries queries = ct__stack_queries(&blocks, parts->q, &parts->opts);
    ct__keys keys = ct__stack_keys(&blocks, parts->k, parts->v, &parts->opts);
    ct_tensor *outputs[3];
    ct__blocks_attend(&blocks, &queries, &keys, NULL, true, outputs);
    for (int i = 0; i < 2; i++) out_outputs[i] = ct__unstack(&blocks, outputs[i]);
}

static void backward(const ct__context *context, const ct__context_parts *parts, const ct__attention_saved *saved,
                     ct_tensor *out_gradients[3])
{
    ct__blocks blocks = blocks_of(context, parts, true);
    ct__queries queries = ct__stack_queries(&blocks, parts->q, &parts->opts);
    ct__keys keys = ct__stack_keys(&blocks, parts->k, parts->v, &parts->opts);
    ct__cotangents cotangents = ct__stack_cotangents(&blocks, saved->result, saved->lse, saved->d_result, saved->d_lse);
    ct_tensor *zero = ct__keys_filled(&blocks, &keys, 0), *sums[3] = {[CT__DK] = zero, [CT__DV] = zero};
    ct__blocks_attend_back(&blocks, &queries, &cotangents, &keys, sums, sums);
    ct__blocks_gradients(&blocks, sums, out_gradients);
}

const ct__attention_form ct__attention_portable = {.forward = forward, .backward = backward, .gathers = true};
