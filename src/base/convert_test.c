#include "base/testing.h"

#include "base/convert.h"

/* Every pair of floating types against the element-wise conversions of ct_array, over all bit patterns of a half. */
static void test_pairs(void **state)
{
    (void)state;
    static const ct_dtype types[] = {CT_DTYPE_F16, CT_DTYPE_BF16, CT_DTYPE_F32, CT_DTYPE_F64};
    enum { COUNT = 1 << 16 };
    for (size_t a = 0; a < CT_COUNT(types); a++)
        for (size_t b = 0; b < CT_COUNT(types); b++) {
            ct_array from = ct_array_new(types[a], (int64_t[]){COUNT}, 1);
            ct_array to = ct_array_new(types[b], (int64_t[]){COUNT}, 1), wanted = ct_array_new(types[b], to.sizes, 1);
            for (int64_t i = 0; i < COUNT; i++) {
                uint32_t bits = (uint32_t)i << 16 | (uint32_t)(i * 40503 & 0xffff); /* the top half counts, as bf16 */
                if (types[a] == CT_DTYPE_F16 || types[a] == CT_DTYPE_BF16)
                    ((uint16_t *)from.data)[i] = (uint16_t)i;
                else if (types[a] == CT_DTYPE_F32)
                    ((uint32_t *)from.data)[i] = bits;
                else
                    ct_array_set(&from, i, (double)i * 1.7 - 5e4);
                ct_array_set(&wanted, i, ct_array_get(&from, i));
            }
            ct_convert_elements(from.dtype, from.data, to.dtype, to.data, COUNT);
            for (int64_t i = 0; i < COUNT; i++) {
                double x = ct_array_get(&to, i), y = ct_array_get(&wanted, i);
                if (!(x == y || (x != x && y != y)))
                    fail_msg("%s to %s: %g is not %g", ct_dtype_name(types[a]), ct_dtype_name(types[b]), x, y);
            }
            if (a == b) assert_memory_equal(to.data, from.data, ct_array_bytes(&from)); /* NaNs' payloads, too */
            ct_array_free(&from);
            ct_array_free(&to);
            ct_array_free(&wanted);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pairs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
