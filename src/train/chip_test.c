/* Defaults per chip, and the user's flags over them. */
#include "train/chip.h"

#include "base/testing.h"

static void test_chips(void **state)
{
    (void)state;
    ct_collective_form gather, reduce;
    ct_chip_forms("TPU v6 lite", &gather, &reduce);
    assert_int_equal(gather, CT_FORM_JOINT);
    assert_int_equal(reduce, CT_FORM_PAIRS);
    ct_chip_forms("cpu", &gather, &reduce);
    assert_int_equal(gather, CT_FORM_PER_AXIS);
    ct_chip_forms(NULL, &gather, &reduce);
    assert_int_equal(reduce, CT_FORM_PER_AXIS);

    assert_string_equal(ct_chip_name("TPU v6 lite"), "v6e");
    assert_null(ct_chip_name("cpu"));
    assert_null(ct_chip_name(NULL));
    assert_string_equal(ct_chip_platform("TPU v4", "cpu"), "tpu");
    assert_string_equal(ct_chip_platform("A100", "cuda"), "cuda");
    assert_string_equal(ct_chip_platform(NULL, "tpu"), "tpu");

    ct_arena arena;
    ct_arena_init(&arena);
    ct_named_value own[] = {{.name = "xla_tpu_use_tc_device_shape_on_sc", .type = CT_VALUE_BOOL},
                            {.name = "xla_other", .type = CT_VALUE_INT, .integer = 3}};
    size_t count, num_default;
    assert_ptr_equal(ct_chip_flags(&arena, "cpu", own, 2, &count), own);
    assert_int_equal(count, 2);
    ct_chip_flags(&arena, "TPU v6 lite", NULL, 0, &num_default);
    const ct_named_value *flags = ct_chip_flags(&arena, "TPU v6 lite", own, 2, &count);
    assert_int_equal(count, num_default + 1);
    assert_false(ct_named_value_find(flags, count, "xla_tpu_use_tc_device_shape_on_sc")->boolean);
    assert_true(ct_named_value_find(flags, count, "xla_tpu_enable_sparse_core_collective_offload_all_gather")->boolean);
    assert_int_equal(ct_named_value_find(flags, count, "xla_other")->integer, 3);
    ct_arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_chips)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
