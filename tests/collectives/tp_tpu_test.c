/* What the step sends with tensor and sequence parallel beside FSDP, as libtpu compiles it: beside the weights' shards
 * the Megatron count of gathered and scattered activations, and no logits.
 */
#include "recipe.h"

#include "base/testing.h"

static void test_v6e_2x4(void **state)
{
    (void)state;
    check_recipe("v6e:2x4", 2, NULL, 0);
}
static void test_v6e_4x4_tp2(void **state)
{
    (void)state;
    check_recipe("v6e:4x4", 2, NULL, 0);
}
static void test_v6e_4x4_tp4(void **state)
{
    (void)state;
    check_recipe("v6e:4x4", 4, NULL, 0);
}
static void test_v6e_16x16(void **state)
{
    (void)state;
    check_recipe("v6e:16x16", 4, NULL, 0);
}
static void test_v5p(void **state)
{
    (void)state;
    check_recipe("v5p:4x4x8", 4, NULL, 0);
}
static void test_tpu7x(void **state)
{
    (void)state;
    check_recipe("tpu7x:2x2x2", 2, NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_v6e_2x4),   cmocka_unit_test(test_v6e_4x4_tp2), cmocka_unit_test(test_v6e_4x4_tp4),
        cmocka_unit_test(test_v6e_16x16), cmocka_unit_test(test_v5p),         cmocka_unit_test(test_tpu7x),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
