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

/* In f32 a product is six of bf16, in a program so long that libtpu compiles larger blocks for a minute each. */
enum { F32_BLOCK = 512, F32_COMPUTE = 256 };

ct_attention_blocks ct__splash_blocks(const ct_kernels *kernels, ct_mosaic_element element, int64_t q_len,
                                      int64_t kv_len)
{
    size_t row = UNKNOWN_CHIP;
    for (size_t i = 0; i < CT_COUNT(TUNED); i++)
        if (kernels->chip && !strcmp(kernels->chip, TUNED[i].chip)) row = i;
    const ct_attention_blocks *asked = &kernels->attention_blocks;
    ct_attention_blocks b = {.separate_backward = asked->separate_backward};
    int64_t forward = TUNED[row].block, backward = TUNED[row].backward_block;
    int64_t compute = TUNED[row].compute, backward_compute = TUNED[row].backward_compute;
    if (element == CT_MOSAIC_F32) {
        forward = backward = F32_BLOCK;
        compute = backward_compute = F32_COMPUTE;
    }
    b.q = ct_mosaic_fit_block(asked->q, forward, q_len);
    b.kv = ct_mosaic_fit_block(asked->kv, forward, kv_len);
    b.kv_compute = ct_mosaic_divide_block(b.kv, asked->kv_compute ? asked->kv_compute : compute);
    b.q_dkv = ct_mosaic_fit_block(asked->q_dkv, backward, q_len);
    b.kv_dkv = ct_mosaic_fit_block(asked->kv_dkv, backward, kv_len);
    b.kv_dkv_compute =
        ct_mosaic_divide_block(b.kv_dkv, asked->kv_dkv_compute ? asked->kv_dkv_compute : backward_compute);
    b.q_dq = ct_mosaic_fit_block(asked->q_dq, backward, q_len);
    b.kv_dq = ct_mosaic_fit_block(asked->kv_dq, backward_compute, kv_len);
    return b;
}

const char *ct__splash_bad_block(ct_graph *graph, const ct_attention_blocks *asked)
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
            return ct_arena_printf(&graph->arena, "splash_attention_kernel.%s = %lld must be a multiple of %d",
                                   rows[i].name, (long long)rows[i].rows, CT_MOSAIC_LANES);
        if (rows[i].rows && rows[i].of % rows[i].rows)
            return ct_arena_printf(&graph->arena,
                                   "splash_attention_kernel.%s = %lld must divide %lld, the block that it is a part of",
                                   rows[i].name, (long long)rows[i].rows, (long long)rows[i].of);
    }
    return NULL;
}

ct_mosaic_element ct__splash_results(const ct__splash *s)
{
    return s->wide ? CT_MOSAIC_F32 : s->element;
}

double ct__splash_share(const ct__splash *s)
{
    double share = s->causal ? 0.5 : 1, sides = s->causal ? 1 : 2;
    return s->window > 0 ? CT_MIN(share, sides * (double)s->window / (double)s->num_keys) : share;
}

/* ---- vector memory ---- */

/* What libtpu 0.0.52 keeps beside windows and scratch, at most, when it compiles for a chip: per score, and in f32
 * backward per element of the block of queries. Found by compiling with less, for head_dim 64 to 256. */
enum {
    FORWARD_BYTES = 8,
    BACKWARD_BYTES = 12,
    F32_FORWARD_BYTES = 20,
    F32_BACKWARD_BYTES = 20,
    F32_QUERY_BYTES = 36,
    OTHER_BYTES = 2 << 20,
    SPARE_BYTES = 2 << 20 /* on tpu7x it grows with the heads: 1.5 MiB more were found at 384 heads and sequences */
};

/* A quarter of it for dq of the fused kernel, of the memory's whole size: what libtpu keeps of it must not cost a
 * block. */
int64_t ct__splash_part_blocks(const ct__splash *s)
{
    int64_t block_bytes = s->group * s->blocks.q_dkv * ct_mosaic_round_up(s->head_dim, CT_MOSAIC_LANES) * 4;
    return CT_MAX(ct_mosaic_round_up(s->vector_bytes, 1 << 20) / 4 / block_bytes, 1);
}

int64_t ct__splash_estimate(const ct_mosaic *k, const ct__splash *s, int64_t rows, int64_t keys, bool is_backward)
{
    bool is_f32 = s->element == CT_MOSAIC_F32;
    int64_t bytes = ct_mosaic_buffer_bytes(k) + OTHER_BYTES;
    if (!is_f32) return bytes + rows * keys * (is_backward ? BACKWARD_BYTES : FORWARD_BYTES);
    bytes += rows * keys * (is_backward ? F32_BACKWARD_BYTES : F32_FORWARD_BYTES);
    return is_backward ? bytes + rows * ct_mosaic_round_up(s->head_dim, CT_MOSAIC_LANES) * F32_QUERY_BYTES : bytes;
}

int64_t ct__splash_limit(const ct_mosaic *k, const ct__splash *s, int64_t rows, int64_t keys, bool is_backward)
{
    int64_t bytes = ct__splash_estimate(k, s, rows, keys, is_backward);
    return CT_MAX(bytes, CT_MIN(bytes + SPARE_BYTES, s->vector_bytes));
}

int64_t ct__splash_vector_bytes(const ct__splash *splash, ct__splash_kernel kernel)
{
    ct__splash s = *splash;
    const ct_attention_blocks *b = &s.blocks;
    int64_t q = kernel == CT__SPLASH_FORWARD ? b->q : kernel == CT__SPLASH_DQ ? b->q_dq : b->q_dkv;
    int64_t kv = kernel == CT__SPLASH_FORWARD ? b->kv : kernel == CT__SPLASH_DQ ? b->kv_dq : b->kv_dkv;
    int64_t keys = kernel == CT__SPLASH_FORWARD ? b->kv_compute : kernel == CT__SPLASH_DQ ? kv : b->kv_dkv_compute;
    s.q_len = ct_mosaic_round_up(s.q_len, q);
    s.kv_len = ct_mosaic_round_up(s.num_keys, kv);
    int64_t most = CT_MIN(ct__splash_part_blocks(&s), s.q_len / q);
    ct_mosaic *k = kernel == CT__SPLASH_FORWARD ? ct__splash_forward(&s)
                   : kernel == CT__SPLASH_DQ    ? ct__splash_dq(&s)
                                                : ct__splash_dkv(&s, kernel == CT__SPLASH_FUSED, most);
    int64_t bytes = ct__splash_estimate(k, &s, q, keys, kernel != CT__SPLASH_FORWARD);
    ct_mosaic_free(k);
    return bytes;
}

/* The sizes of a kernel that may be made smaller, with the recipe's names. */
typedef struct adjustable {
    const char *names;
    int64_t *sizes[3];
} adjustable;

static adjustable adjustable_of(ct_attention_blocks *b, ct__splash_kernel kernel)
{
    switch (kernel) {
    case CT__SPLASH_FORWARD:
        return (adjustable){"sa_block_q, sa_block_kv, sa_block_kv_compute", {&b->kv_compute, &b->kv, &b->q}};
    case CT__SPLASH_DQ: return (adjustable){"sa_block_q_dq, sa_block_kv_dq", {&b->kv_dq, &b->kv_dq, &b->q_dq}};
    default:
        return (adjustable){"sa_block_q_dkv, sa_block_kv_dkv, sa_block_kv_dkv_compute",
                            {&b->kv_dkv_compute, &b->kv_dkv, &b->q_dkv}};
    }
}

/* Halves, in lanes, the greatest of the sizes; false: they are as small as they can be. */
static bool shrink(const adjustable *a)
{
    int64_t *greatest = a->sizes[0];
    for (int i = 1; i < 3; i++)
        if (*a->sizes[i] > *greatest) greatest = a->sizes[i];
    if (*greatest <= CT_MOSAIC_LANES) return false;
    *greatest = ct_mosaic_round_up(*greatest / 2, CT_MOSAIC_LANES);
    *a->sizes[0] = ct_mosaic_divide_block(*a->sizes[1], *a->sizes[0]);
    return true;
}

static bool is_used(const ct__splash *s, ct__splash_kernel kernel)
{
    return kernel == CT__SPLASH_FORWARD || (kernel == CT__SPLASH_FUSED) != s->blocks.separate_backward;
}

static bool is_asked(const ct_attention_blocks *asked, ct__splash_kernel kernel)
{
    ct_attention_blocks copy = *asked;
    adjustable a = adjustable_of(&copy, kernel);
    return *a.sizes[0] || *a.sizes[1] || *a.sizes[2];
}

void ct__splash_fit(ct__splash *s, const ct_attention_blocks *asked)
{
    for (ct__splash_kernel kernel = CT__SPLASH_FORWARD; kernel <= CT__SPLASH_DQ; kernel++)
        if (is_used(s, kernel) && !is_asked(asked, kernel)) ct__splash_shrink(s, kernel);
}

bool ct__splash_shrink(ct__splash *s, ct__splash_kernel kernel)
{
    adjustable a = adjustable_of(&s->blocks, kernel);
    while (ct__splash_vector_bytes(s, kernel) > s->vector_bytes)
        if (!shrink(&a)) return false;
    return true;
}

/* Of 1 MiB in all four chips. */
enum { SCALAR_BYTES = 960 << 10 };

/* The tables of masks must fit scalar memory. */
static const char *too_many(ct_graph *graph, const ct__splash *s, ct__splash_kernel kernel)
{
    ct_attention_blocks blocks = s->blocks;
    adjustable a = adjustable_of(&blocks, kernel);
    int64_t q = (s->q_len + *a.sizes[2] - 1) / *a.sizes[2], kv = (s->num_keys + *a.sizes[1] - 1) / *a.sizes[1];
    int64_t bytes = s->mask_batch * (q + kv) * CT__SPLASH_FIELDS * 4;
    if (bytes <= SCALAR_BYTES) return NULL;
    return ct_arena_printf(&graph->arena,
                           "splash attention's masks, of %lld blocks of queries and %lld of keys for each of %lld "
                           "sequences, take %lld KiB of scalar memory, and a kernel may take %d KiB; set %s to at "
                           "least %lld times as much",
                           (long long)q, (long long)kv, (long long)s->mask_batch, (long long)(bytes >> 10),
                           SCALAR_BYTES >> 10, a.names, (long long)((bytes + SCALAR_BYTES - 1) / SCALAR_BYTES));
}

static const char *too_large(ct_graph *graph, const ct__splash *asked, ct__splash_kernel kernel)
{
    int64_t bytes = ct__splash_vector_bytes(asked, kernel);
    if (bytes <= asked->vector_bytes) return NULL;
    ct__splash fits = *asked, given = *asked;
    bool is_possible = ct__splash_shrink(&fits, kernel);
    adjustable a = adjustable_of(&given.blocks, kernel), f = adjustable_of(&fits.blocks, kernel);
    const char *advice =
        ct_arena_printf(&graph->arena, kernel == CT__SPLASH_DQ ? "set %s to %lld, %lld" : "set %s to %lld, %lld, %lld",
                        a.names, (long long)*f.sizes[2], (long long)*f.sizes[1], (long long)*f.sizes[0]);
    return ct_arena_printf(
        &graph->arena,
        "splash attention in blocks of %lld queries and %lld keys, %lld at a time, takes %lld MiB of vector memory at "
        "head_dim %lld, and a kernel may take %lld MiB; %s",
        (long long)*a.sizes[2], (long long)*a.sizes[1], (long long)*a.sizes[0],
        (long long)((bytes + (1 << 20) - 1) >> 20), (long long)asked->head_dim, (long long)(asked->vector_bytes >> 20),
        is_possible ? advice : "no smaller blocks would do, ask for portable or definition");
}

const char *ct__splash_too_large(ct_graph *graph, const ct__splash *s)
{
    const char *problem = NULL;
    for (ct__splash_kernel kernel = CT__SPLASH_FORWARD; !problem && kernel <= CT__SPLASH_DQ; kernel++)
        if (is_used(s, kernel)) {
            problem = too_many(graph, s, kernel);
            if (!problem) problem = too_large(graph, s, kernel);
        }
    return problem;
}
