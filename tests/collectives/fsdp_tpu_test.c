/* What FSDP's training step sends, as libtpu compiles it: per weight matrix one all-gather per pass in bf16, per
 * gradient true reduce-scatters, nothing else of size.
 */
#include "recipe.h"

#include "base/testing.h"

static void test_v6e_2x4(void **state)
{
    (void)state;
    check_recipe("v6e:2x4", 1, NULL, 0);
}
static void test_v6e_4x4(void **state)
{
    (void)state;
    check_recipe("v6e:4x4", 1, NULL, 0);
}
static void test_v6e_16x16(void **state)
{
    (void)state;
    check_recipe("v6e:16x16", 1, NULL, 0);
}
static void test_v5p(void **state)
{
    (void)state;
    check_recipe("v5p:4x4x8", 1, NULL, 0);
}
static void test_tpu7x(void **state)
{
    (void)state;
    check_recipe("tpu7x:2x2x2", 1, NULL, 0);
}

static void test_per_axis(void **state)
{
    (void)state;
    static const char *const per_axis[] = {"--parallelism.fsdp_gather_form=per_axis",
                                           "--parallelism.fsdp_reduce_form=per_axis"};
    check_recipe("v6e:4x4", 1, per_axis, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_v6e_2x4), cmocka_unit_test(test_v6e_4x4), cmocka_unit_test(test_v6e_16x16),
        cmocka_unit_test(test_v5p),     cmocka_unit_test(test_tpu7x),   cmocka_unit_test(test_per_axis),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
