/* The table of chips: how they are found, and that its figures agree with each other. */
#include "chips/chips.h"

#include "base/testing.h"

static void test_find(void **state)
{
    (void)state;
    assert_string_equal(ct_chip_find("TPU v6 lite")->name, "v6e");
    assert_ptr_equal(ct_chip_find("v6e"), ct_chip_find("TPU v6 lite"));
    assert_string_equal(ct_chip_find("TPU v5 lite")->name, "v5e");
    assert_string_equal(ct_chip_find("TPU v5")->name, "v5p"); /* as libtpu calls it */
    assert_string_equal(ct_chip_find("TPU v5p")->name, "v5p");
    assert_string_equal(ct_chip_find("TPU7x")->name, "tpu7x");
    assert_null(ct_chip_find("TPU v3"));
    assert_null(ct_chip_find("cpu"));
    assert_null(ct_chip_find(""));
    assert_null(ct_chip_find(NULL));
}

static void test_figures(void **state)
{
    (void)state;
    size_t count;
    const ct_chip *chips = ct_chips(&count);
    assert_true(count >= 5);
    for (size_t i = 0; i < count; i++) {
        const ct_chip *chip = &chips[i];
        double peak = chip->flops_per_cycle * chip->clock_hz, bf16 = chip->peak_flops[CT_CHIP_BF16];
        if (peak < 0.99 * bf16 || peak > 1.01 * bf16)
            fail_msg("%s: %g flops per cycle at %g Hz are not %g", chip->name, chip->flops_per_cycle, chip->clock_hz,
                     bf16);
        for (int d = 0; d < CT_CHIP_NUM_DTYPES; d++) assert_true(chip->peak_flops[d] > 0);
        assert_true(chip->peak_flops[CT_CHIP_F32] < bf16 && chip->peak_flops[CT_CHIP_INT8] >= bf16);
        assert_int_equal(chip->links, 2 * chip->torus_dims);
        assert_int_equal(chip->die_bytes_per_s > 0, chip->devices_per_chip > 1);
        assert_true(chip->matmul_rate > 0.5 && chip->matmul_rate <= 1);
        const double *efficiency = chip->attention_efficiency;
        assert_true(0 < efficiency[CT_CHIP_LOW] && efficiency[CT_CHIP_LOW] < efficiency[CT_CHIP_MID]);
        assert_true(efficiency[CT_CHIP_MID] < efficiency[CT_CHIP_HIGH] && efficiency[CT_CHIP_HIGH] < 1);
        assert_true(chip->hbm_bytes > 0 && chip->hbm_bytes_per_s > 0 && chip->vmem_bytes > 0);
        assert_non_null(strstr(ct_chip_names(), chip->name));
        assert_non_null(strstr(chip->sources, "docs.cloud.google.com"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_figures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
