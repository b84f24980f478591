/* Factors worked out by hand from the formula in schedule.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "optim/schedule.h"

#define NO_RATIO (-1.0)

static void expect(const ct_lr_schedule *schedule, int64_t step, double factor)
{
    double found = ct_lr_factor(schedule, step);
    if (!(fabs(found - factor) <= 1e-15))
        fail_msg("factor of step %lld is %.17g, not %.17g", (long long)step, found, factor);
}

static void test_linear_without_ratio(void **state)
{
    (void)state;
    /* W = 2, D = 8, S = 1 */
    ct_lr_schedule schedule = {.total_steps = 10, .num_warmup_steps = 2, .decay_ratio = NO_RATIO};
    const double factors[] = {0.5, 1, 1, 0.875, 0.75, 0.625, 0.5, 0.375, 0.25, 0.125};
    for (size_t i = 0; i < CT_COUNT(factors); i++) expect(&schedule, (int64_t)i, factors[i]);
    schedule.decay_ratio = 0.8; /* the same eight steps, asked for */
    for (size_t i = 0; i < CT_COUNT(factors); i++) expect(&schedule, (int64_t)i, factors[i]);
}

static void test_stable_stretch(void **state)
{
    (void)state;
    /* W = 4, D = 10, S = 7: decay starts with s = 11 */
    ct_lr_schedule schedule = {.total_steps = 20, .num_warmup_steps = 4, .decay_ratio = 0.5, .min_factor = 0.1};
    expect(&schedule, 0, 0.25);
    expect(&schedule, 3, 1);
    expect(&schedule, 4, 1);
    expect(&schedule, 10, 1);
    expect(&schedule, 11, 0.1 + 0.9 * 0.9);
    expect(&schedule, 19, 0.1 + 0.9 * (1 - 0.9));
}

static void test_sqrt_and_cosine(void **state)
{
    (void)state;
    /* W = 0, D = 4, S = 1: p = 0 (stable), 1/4, 1/2, 3/4 */
    ct_lr_schedule schedule = {.total_steps = 4, .decay_ratio = NO_RATIO, .decay = CT_LR_DECAY_SQRT};
    expect(&schedule, 0, 1);
    expect(&schedule, 1, 0.5);
    expect(&schedule, 2, 1 - 0.70710678118654752);
    expect(&schedule, 3, 1 - 0.86602540378443865);
    schedule.decay = CT_LR_DECAY_COSINE;
    expect(&schedule, 0, 1);
    expect(&schedule, 1, 0.5 * (1 + 0.70710678118654752));
    expect(&schedule, 2, 0.5);
    expect(&schedule, 3, 0.5 * (1 - 0.70710678118654752));
    schedule.min_factor = 0.5;
    expect(&schedule, 2, 0.75);
}

static void test_warmup_only(void **state)
{
    (void)state;
    /* a ratio of 0 never decays */
    ct_lr_schedule constant = {.total_steps = 100, .num_warmup_steps = 10, .decay_ratio = 0};
    expect(&constant, 0, 0.1);
    expect(&constant, 9, 1);
    expect(&constant, 99, 1);
    expect(&constant, 500, 1);
    /* more warmup than steps: it is cut to the steps, so the last one has the full rate */
    ct_lr_schedule cut = {.total_steps = 5, .num_warmup_steps = 200, .decay_ratio = NO_RATIO};
    const double factors[] = {0.2, 0.4, 0.6, 0.8, 1};
    for (size_t i = 0; i < CT_COUNT(factors); i++) expect(&cut, (int64_t)i, factors[i]);
}

static void test_ratio_is_cut_and_rounded(void **state)
{
    (void)state;
    /* 0.9 of 10 is 9, but warmup leaves 6: W = 4, D = 6, S = 1 */
    ct_lr_schedule cut = {.total_steps = 10, .num_warmup_steps = 4, .decay_ratio = 0.9};
    expect(&cut, 4, 1);
    expect(&cut, 5, 1 - 1.0 / 6);
    /* 0.25 of 10 is 2.5, half to even gives D = 2: S = 9, so only s = 9 decays, p = 1/2 */
    ct_lr_schedule even = {.total_steps = 10, .decay_ratio = 0.25};
    expect(&even, 8, 1);
    expect(&even, 9, 0.5);
    expect(&even, 10, 0);
    expect(&even, 1000, 0); /* stays at the end of the decay */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_linear_without_ratio),     cmocka_unit_test(test_stable_stretch),
        cmocka_unit_test(test_sqrt_and_cosine),          cmocka_unit_test(test_warmup_only),
        cmocka_unit_test(test_ratio_is_cut_and_rounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
