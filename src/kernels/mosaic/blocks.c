/* Sizes of blocks that kernels have in common. */
#include "base/macros.h"
#include "kernels/mosaic/mosaic.h"

int64_t ct_mosaic_round_up(int64_t value, int64_t to)
{
    return (value + to - 1) / to * to;
}

int64_t ct_mosaic_fit_block(int64_t asked, int64_t tuned, int64_t len)
{
    if (asked) return CT_MIN(asked, ct_mosaic_round_up(len, CT_MOSAIC_LANES));
    int64_t count = (len + tuned - 1) / tuned;
    return ct_mosaic_round_up((len + count - 1) / count, CT_MOSAIC_LANES);
}

int64_t ct_mosaic_divide_block(int64_t size, int64_t wanted)
{
    if (size % CT_MOSAIC_LANES) return size;
    int64_t lanes = size / CT_MOSAIC_LANES, parts = 1;
    while (parts < lanes && (lanes % parts || size / parts > wanted)) parts++;
    return size / parts;
}
