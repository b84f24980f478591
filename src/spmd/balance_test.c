#include "spmd/balance.h"

#include "base/macros.h"
#include "base/testing.h"

static void test_written_out(void **state)
{
    (void)state;
    static const int64_t two[8] = {0, 1, 6, 7, 2, 3, 4, 5}, three[6] = {0, 5, 1, 4, 2, 3}, one[3] = {0, 1, 2};
    int64_t order[8];
    expect_ok(ct_head_tail_order(8, 2, order));
    assert_memory_equal(order, two, sizeof(two));
    expect_ok(ct_head_tail_order(6, 3, order));
    assert_memory_equal(order, three, sizeof(three));
    expect_ok(ct_head_tail_order(3, 1, order));
    assert_memory_equal(order, one, sizeof(one));
}

/* Every column once, and the same number of pairs under a causal mask for every device. */
static void test_balanced(void **state)
{
    (void)state;
    enum { SEQ = 48 };
    for (int64_t cp = 1; cp <= 8; cp *= 2) {
        int64_t order[SEQ], first = 0;
        bool seen[SEQ] = {false};
        expect_ok(ct_head_tail_order(SEQ, cp, order));
        for (int64_t d = 0; d < cp; d++) {
            int64_t pairs = 0;
            for (int64_t i = d * SEQ / cp; i < (d + 1) * SEQ / cp; i++) {
                assert_in_range(order[i], 0, SEQ - 1);
                assert_false(seen[order[i]]);
                seen[order[i]] = true;
                pairs += order[i] + 1;
            }
            if (!d) first = pairs;
            assert_int_equal(pairs, first);
        }
    }
}

static void test_refused(void **state)
{
    (void)state;
    int64_t order[12];
    expect_error(ct_head_tail_order(12, 4, order), CT_CODE_INVALID_ARGUMENT, "2 x 4 divides, found 12");
    expect_error(ct_head_tail_order(0, 1, order), CT_CODE_INVALID_ARGUMENT, "found 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_written_out), cmocka_unit_test(test_balanced),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
