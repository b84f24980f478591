/* Sizes of blocks: tuned per chip, as asked for, cut to the sequence, and checked against vector memory. */
#include <string.h>

#include "base/macros.h"
#include "graph/node.h"
#include "kernels/attention/mosaic_arrays.h"

/* Rows of queries and keys that published recipes use per chip (MaxText); forward, then backward. */
static const struct {
    const char *chip;
    int64_t block, compute, backward_block, backward_compute;
} TUNED[] = {
    {"v6e", 2048, 1024, 2048, 512},
    {"tpu7x", 2048, 512, 1024, 512},
    {"v5p", 1024, 512, 1024, 512},
    {"v5e", 1024, 512, 1024, 512},
};
enum { UNKNOWN_CHIP = CT_COUNT(TUNED) - 1 };

static int64_t round_up(int64_t value, int64_t to)
{
    return (value + to - 1) / to * to;
}

/* As many blocks as `wanted` gives, but of equal sizes, so that little is padding. */
static int64_t fit(int64_t asked, int64_t tuned, int64_t len)
{
    if (asked) return CT_MIN(asked, round_up(len, CT_MOSAIC_LANES));
    int64_t count = (len + tuned - 1) / tuned;
    return round_up((len + count - 1) / count, CT_MOSAIC_LANES);
}

/* The greatest divisor of block, in lanes, that is no greater than wanted. */
static int64_t divide(int64_t block, int64_t wanted)
{
    int64_t lanes = block / CT_MOSAIC_LANES, parts = 1;
    while (lanes % parts || block / parts > wanted) parts++;
    return block / parts;
}

ct_attention_blocks ct__splash_blocks(const ct_kernels *kernels, int64_t q_len, int64_t kv_len)
{
    size_t row = UNKNOWN_CHIP;
    for (size_t i = 0; i < CT_COUNT(TUNED); i++)
        if (kernels->chip && !strcmp(kernels->chip, TUNED[i].chip)) row = i;
    const ct_attention_blocks *asked = &kernels->attention_blocks;
    ct_attention_blocks b = {.separate_backward = asked->separate_backward};
    int64_t forward = TUNED[row].block, backward = TUNED[row].backward_block;
    b.q = fit(asked->q, forward, q_len);
    b.kv = fit(asked->kv, forward, kv_len);
    b.kv_compute = divide(b.kv, asked->kv_compute ? asked->kv_compute : TUNED[row].compute);
    b.q_dkv = fit(asked->q_dkv, backward, q_len);
    b.kv_dkv = fit(asked->kv_dkv, backward, kv_len);
    b.kv_dkv_compute = divide(b.kv_dkv, asked->kv_dkv_compute ? asked->kv_dkv_compute : TUNED[row].backward_compute);
    b.q_dq = fit(asked->q_dq, backward, q_len);
    b.kv_dq = fit(asked->kv_dq, TUNED[row].backward_compute, kv_len);
    return b;
}

bool ct__splash_blocks_check(ct_graph *graph, const char *loc, const ct_attention_blocks *asked)
{
    const struct {
        const char *name;
        int64_t rows, of;
    } rows[] = {
        {"sa_block_q", asked->q, 0},
        {"sa_block_kv", asked->kv, 0},
        {"sa_block_kv_compute", asked->kv_compute, asked->kv},
        {"sa_block_q_dkv", asked->q_dkv, 0},
        {"sa_block_kv_dkv", asked->kv_dkv, 0},
        {"sa_block_kv_dkv_compute", asked->kv_dkv_compute, asked->kv_dkv},
        {"sa_block_q_dq", asked->q_dq, 0},
        {"sa_block_kv_dq", asked->kv_dq, 0},
    };
    for (size_t i = 0; i < CT_COUNT(rows); i++) {
        if (rows[i].rows < 0 || rows[i].rows % CT_MOSAIC_LANES)
            return ct__fail(graph, loc, "attention", "splash_attention_kernel.%s = %lld must be a multiple of %d",
                            rows[i].name, (long long)rows[i].rows, CT_MOSAIC_LANES),
                   false;
        if (rows[i].rows && rows[i].of % rows[i].rows)
            return ct__fail(graph, loc, "attention", "splash_attention_kernel.%s = %lld must divide its block's %lld",
                            rows[i].name, (long long)rows[i].rows, (long long)rows[i].of),
                   false;
    }
    return true;
}
