/* A loop for each pair that checkpoints want; the others go through double. */
#include "base/convert.h"

#include <string.h>

#include "base/half.h"

void ct_convert_elements(ct_dtype from_dtype, const void *from, ct_dtype to_dtype, void *to, int64_t count)
{
    CT_ASSERT(ct_dtype_is_float(from_dtype) && ct_dtype_is_float(to_dtype));
    const float *floats = from;
    const uint16_t *halves = from;
    if (from_dtype == to_dtype) {
        memcpy(to, from, (size_t)count * ct_dtype_bytes(to_dtype));
    } else if (from_dtype == CT_DTYPE_F32 && to_dtype == CT_DTYPE_BF16) {
        for (int64_t i = 0; i < count; i++) ((uint16_t *)to)[i] = ct_f32_to_bf16(floats[i]);
    } else if (from_dtype == CT_DTYPE_F32 && to_dtype == CT_DTYPE_F16) {
        for (int64_t i = 0; i < count; i++) ((uint16_t *)to)[i] = ct_f32_to_f16(floats[i]);
    } else if (from_dtype == CT_DTYPE_BF16 && to_dtype == CT_DTYPE_F32) {
        for (int64_t i = 0; i < count; i++) ((float *)to)[i] = ct_bf16_to_f32(halves[i]);
    } else if (from_dtype == CT_DTYPE_F16 && to_dtype == CT_DTYPE_F32) {
        for (int64_t i = 0; i < count; i++) ((float *)to)[i] = ct_f16_to_f32(halves[i]);
    } else {
        ct_array source = {.dtype = from_dtype, .rank = 1, .sizes = {count}, .data = (void *)(uintptr_t)from};
        ct_array target = {.dtype = to_dtype, .rank = 1, .sizes = {count}, .data = to};
        for (int64_t i = 0; i < count; i++) ct_array_set(&target, i, ct_array_get(&source, i));
    }
}
