/* Sizes of blocks: tuned per chip, as asked for, cut to the arrays, and checked against vector memory. */
#include <string.h>

#include "base/macros.h"
#include "graph/node.h"
#include "kernels/linear_cross_entropy/mosaic.h"

/* Published recipes (TorchTitan on TPU, tokamax) take 1024 rows and 2048 columns. A tile's operations per byte that it
 * fetches, rows columns / (rows + columns), 680 then, must exceed the chip's: about 240 on v5e, 170 on v5p, 570 on v6e,
 * 310 on tpu7x. Blocks of dim are long enough for a tile's sums in scratch to hide behind the products. By arithmetic:
 * no chip was at hand. */
static const struct {
    const char *chip;
    ct_loss_blocks blocks;
} TUNED[] = {
    {"v6e", {.rows = 1024, .hidden = 1024, .vocab = 2048}},
    {"tpu7x", {.rows = 1024, .hidden = 1024, .vocab = 2048}},
    {"v5p", {.rows = 1024, .hidden = 1024, .vocab = 1024}},
    {"v5e", {.rows = 1024, .hidden = 1024, .vocab = 2048}},
};
enum { UNKNOWN_CHIP = CT_COUNT(TUNED) - 1 };

/* ---- vector memory ---- */

/* What libtpu 0.0.52 keeps beside windows and scratch, when it compiles for a chip: found by compiling (tests/mosaic).
 * Of each side of a product a copy or parts; the two products of a kernel do not keep theirs at once. In halves of a
 * byte, per element of the first side when it sums logits and when it is d; of the second; of w where it is cut. */
enum { SUM_BF16 = 8, PRODUCT_BF16 = 5, FIRST_F32 = 33, SECOND_F32 = 8, CUT_W = 8, OTHER_BYTES = 3 << 19 };

int64_t ct__loss_mosaic_bytes(const ct__loss_mosaic *s, ct__loss_kernel kernel)
{
    ct_mosaic *k = ct__loss_mosaic_kernel(s, kernel);
    int64_t buffers = ct_mosaic_buffer_bytes(k);
    ct_mosaic_free(k);
    bool is_f32 = s->element == CT_MOSAIC_F32, is_cut = s->is_padded || s->vocab % s->blocks.vocab != 0;
    int64_t hidden = ct_mosaic_round_up(s->blocks.hidden, CT_MOSAIC_LANES), of_w = s->blocks.vocab * hidden;
    int64_t of_x = s->blocks.rows * hidden, of_d = s->blocks.vocab * s->blocks.rows;
    int64_t sum = of_w * (is_f32 ? FIRST_F32 : SUM_BF16), product = of_d * (is_f32 ? FIRST_F32 : PRODUCT_BF16);
    if (is_f32) sum += of_x * SECOND_F32, product += (kernel == CT__LOSS_DX ? of_w : of_x) * SECOND_F32;
    if (kernel == CT__LOSS_DX && is_cut) product += of_w * CUT_W;
    return buffers + (kernel == CT__LOSS_FORWARD ? sum : CT_MAX(sum, product)) / 2 + OTHER_BYTES;
}

/* Halves the size, of those that may be, whose half saves most; false: they are as small as they can be. */
static bool shrink(ct__loss_mosaic *s, ct__loss_kernel kernel, const ct_loss_blocks *fixed)
{
    int64_t least = ct__loss_mosaic_bytes(s, kernel);
    ct_loss_blocks now = s->blocks, best = now;
    ct_loss_blocks tried[3] = {now, now, now};
    if (!fixed->rows) tried[0].rows = ct_mosaic_round_up(now.rows / 2, CT_MOSAIC_LANES);
    if (!fixed->vocab) tried[1].vocab = ct_mosaic_round_up(now.vocab / 2, CT_MOSAIC_LANES);
    if (!fixed->hidden) tried[2].hidden = ct_mosaic_divide_block(s->dim, now.hidden / 2);
    for (int i = 0; i < 3; i++) {
        s->blocks = tried[i];
        int64_t bytes = ct__loss_mosaic_bytes(s, kernel);
        if (bytes < least) {
            least = bytes;
            best = tried[i];
        }
    }
    s->blocks = best;
    return memcmp(&best, &now, sizeof(now)) != 0;
}

/* false: they cannot. */
static bool make_fit(ct__loss_mosaic *s, ct__loss_kernel kernel, const ct_loss_blocks *fixed)
{
    while (ct__loss_mosaic_bytes(s, kernel) > s->vector_bytes)
        if (!shrink(s, kernel, fixed)) return false;
    return true;
}

ct_loss_blocks ct__loss_mosaic_blocks(const ct_kernels *kernels, const ct__loss_mosaic *s, ct__loss_kernel kernel)
{
    size_t row = UNKNOWN_CHIP;
    for (size_t i = 0; i < CT_COUNT(TUNED); i++)
        if (kernels->chip && !strcmp(kernels->chip, TUNED[i].chip)) row = i;
    const ct_loss_blocks *asked = &kernels->loss_blocks, *tuned = &TUNED[row].blocks;
    ct__loss_mosaic sized = *s;
    sized.blocks.rows = ct_mosaic_fit_block(asked->rows, tuned->rows, s->rows);
    sized.blocks.vocab = ct_mosaic_fit_block(asked->vocab, tuned->vocab, s->vocab);
    sized.blocks.hidden = ct_mosaic_divide_block(s->dim, asked->hidden ? asked->hidden : tuned->hidden);
    make_fit(&sized, kernel, asked);
    return sized.blocks;
}

static const char *bad_size(ct_graph *graph, const ct_loss_blocks *asked, int64_t dim)
{
    const struct {
        const char *name;
        int64_t size;
    } rows[] = {
        {"loss_b_block_size", asked->rows}, {"loss_h_block_size", asked->hidden}, {"loss_v_block_size", asked->vocab}};
    for (size_t i = 0; i < CT_COUNT(rows); i++)
        if (rows[i].size < 0 || rows[i].size % CT_MOSAIC_LANES)
            return ct_arena_printf(&graph->arena, "loss_kernel.%s = %lld must be a multiple of %d", rows[i].name,
                                   (long long)rows[i].size, CT_MOSAIC_LANES);
    if (asked->hidden && asked->hidden < dim && dim % asked->hidden)
        return ct_arena_printf(&graph->arena, "loss_kernel.loss_h_block_size = %lld must divide dim, %lld, or be more",
                               (long long)asked->hidden, (long long)dim);
    return NULL;
}

static const char *too_large(ct_graph *graph, const ct__loss_mosaic *s, ct__loss_kernel kernel)
{
    static const char *const what[CT__LOSS_KERNELS] = {"the loss", "the gradient of hidden states",
                                                       "the gradient of the head"};
    static const ct_loss_blocks none = {0};
    ct__loss_mosaic fits = *s;
    bool is_possible = true;
    for (ct__loss_kernel i = 0; i < CT__LOSS_KERNELS; i++) is_possible = is_possible && make_fit(&fits, i, &none);
    const ct_loss_blocks *b = &s->blocks, *f = &fits.blocks;
    const char *advice =
        is_possible ? ct_arena_printf(&graph->arena,
                                      "set loss_b_block_size, loss_h_block_size, loss_v_block_size to %lld, %lld, %lld",
                                      (long long)f->rows, (long long)f->hidden, (long long)f->vocab)
                    : "no smaller blocks would do, ask for portable or definition";
    return ct_arena_printf(&graph->arena,
                           "loss_kernel: %s in blocks of %lld rows, %lld of dim, %lld of the vocabulary takes %lld MiB "
                           "of vector memory at dim %lld, and a kernel may take %lld MiB; %s",
                           what[kernel], (long long)b->rows, (long long)b->hidden, (long long)b->vocab,
                           (long long)((ct__loss_mosaic_bytes(s, kernel) + (1 << 20) - 1) >> 20), (long long)s->dim,
                           (long long)(s->vector_bytes >> 20), advice);
}

const char *ct__loss_mosaic_bad_blocks(ct_graph *graph, const ct_kernels *kernels, const ct__loss_mosaic *s)
{
    const char *bad = bad_size(graph, &kernels->loss_blocks, s->dim);
    for (ct__loss_kernel kernel = 0; !bad && kernel < CT__LOSS_KERNELS; kernel++) {
        ct__loss_mosaic sized = *s;
        sized.blocks = ct__loss_mosaic_blocks(kernels, s, kernel);
        if (ct__loss_mosaic_bytes(&sized, kernel) > s->vector_bytes) bad = too_large(graph, &sized, kernel);
    }
    return bad;
}
