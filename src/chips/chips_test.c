/* The table of chips: how they are found, and that its figures agree with each other. */
#include "chips/slice.h"

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
        assert_true((double)chip->usable_bytes > 0.95 * (double)chip->hbm_bytes);
        assert_true(chip->hbm_bytes > 0 && chip->hbm_bytes_per_s > 0 && chip->vmem_bytes > 0);
        assert_non_null(strstr(ct_chip_names(), chip->name));
        assert_non_null(strstr(chip->sources, "docs.cloud.google.com"));
    }
}

static void test_slices(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t num_devices;
        const char *problem;
    } rows[] = {
        {"v6e:4x4", 16, NULL},
        {"v5p:4x4x8", 128, NULL},
        {"tpu7x:4x4x4", 128, NULL},
        {"v4:2x2x1", 8, NULL},
        {"v5e:16x16", 256, NULL},
        {"v7:4x4", 0, "one of the chips v4"},
        {"v6e", 0, "found \"v6e\""},
        {"", 0, "must be a chip"},
        {"v6e:4x4x4", 0, "has 2 sizes"},
        {"v6e:4", 0, "has 2 sizes"},
        {"v5p:4x4", 0, "has 3 sizes"},
        {"v6e:4x-4", 0, "1 to 256"},
        {"v6e:4x99999999999999999999", 0, "1 to 256"},
        {"v6e:4x4 ", 0, "has 2 sizes"},
        {"v6e:32x16", 0, "at most 256"},
        {"v6e:0x4", 0, "1 to 256"},
    };
    for (size_t i = 0; i < CT_COUNT(rows); i++) {
        ct_chip_slice slice;
        if (rows[i].problem) {
            expect_error(ct_chip_slice_parse(rows[i].name, &slice), CT_CODE_INVALID_ARGUMENT, rows[i].problem);
            assert_null(slice.chip);
        } else {
            expect_ok(ct_chip_slice_parse(rows[i].name, &slice));
            assert_int_equal(slice.num_devices, rows[i].num_devices);
            assert_int_equal(slice.num_axes, slice.chip->torus_dims);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_figures),
        cmocka_unit_test(test_slices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
