/* The host side of random numbers: quantiles against erfc, moments, truncation. Device against host: tests/op_table. */
#include "graph/random.h"

#include <math.h>

#include "base/rng.h"
#include "base/testing.h"
#include "graph/node.h"
#include "graph/quantile.h"

static double normal_cdf(double x)
{
    return 0.5 * erfc(-x / sqrt(2));
}

static void test_quantile_inverts_the_distribution(void **state)
{
    (void)state;
    for (int i = 1; i < 4096; i++) {
        uint32_t bits = (uint32_t)i << 20;
        double p = (bits + 0.5) / 4294967296.0, z = ct_normal_of_bits(bits);
        double density = exp(-z * z / 2) / sqrt(2 * M_PI);
        assert_true(fabs((normal_cdf(z) - p) / density) < 2e-7); /* half a unit of f32 at 4 is 2.4e-7 */
    }
    /* the tail, octave by octave */
    for (int k = 1; k < 32; k++) {
        uint32_t bits = (1u << k) - 1;
        double p = (bits + 0.5) / 4294967296.0, z = ct_normal_of_bits(bits);
        double density = exp(-z * z / 2) / sqrt(2 * M_PI);
        assert_true(fabs((normal_cdf(z) - p) / density) < 4e-7);
        assert_true(ct_normal_of_bits(~bits) == -ct_normal_of_bits(bits));
    }
}

static void test_quantile_is_monotone(void **state)
{
    (void)state;
    float before = ct_normal_of_bits(0);
    assert_true(before > -6.4f && before < -6.3f);
    for (uint64_t bits = 65521; bits < 4294967296u; bits += 65521) {
        float z = ct_normal_of_bits((uint32_t)bits);
        assert_true(z >= before);
        before = z;
    }
}

static int compare_floats(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Kolmogorov and Smirnov: sqrt(n) times the largest gap stays below 1.95 with probability 0.999. */
static void check_distribution(float *values, int count, double low, double high)
{
    qsort(values, (size_t)count, sizeof(*values), compare_floats);
    double first = normal_cdf(low), range = normal_cdf(high) - first, gap = 0;
    for (int i = 0; i < count; i++) gap = fmax(gap, fabs((normal_cdf(values[i]) - first) / range - (i + 0.5) / count));
    assert_true(gap * sqrt(count) < 1.95);
    assert_true(values[0] >= low && values[count - 1] <= high);
}

static void test_distributions(void **state)
{
    (void)state;
    enum { COUNT = 200000 };
    static float values[COUNT];
    static const double bounds[][2] = {{-INFINITY, INFINITY}, {-2, 2}, {-1.5, 0.25}, {2.5, 4}, {-100, 100}};
    for (size_t b = 0; b < CT_COUNT(bounds); b++) {
        uint32_t key[2];
        ct_rng_key(17 + b, "layers.0.weight", key);
        double sum = 0, squares = 0;
        for (uint32_t i = 0; i < COUNT; i++) {
            uint32_t bits[2];
            ct_threefry(key, (const uint32_t[2]){i, 0}, bits);
            values[i] =
                b ? ct_truncated_normal_of_bits(bits[0], bounds[b][0], bounds[b][1]) : ct_normal_of_bits(bits[0]);
            sum += values[i];
            squares += (double)values[i] * values[i];
        }
        if (b == 0) {
            assert_true(fabs(sum / COUNT) < 0.01);
            assert_true(fabs(squares / COUNT - 1) < 0.015);
        }
        check_distribution(values, COUNT, bounds[b][0], bounds[b][1]);
    }
}

static void test_table_is_the_same_everywhere(void **state)
{
    (void)state;
    int32_t table[4][CT__QUANTILE_ROWS];
    ct__quantile_table(table);
    uint64_t hash = 1469598103934665603u;
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < CT__QUANTILE_ROWS; i++) hash = (hash ^ (uint32_t)table[k][i]) * 1099511628211u;
    assert_int_equal(hash, 0x16967ca1bc7243bfu);
}

static void test_errors(void **state)
{
    (void)state;
    static const uint32_t words[2][2] = {{1, 2}, {3, 4}};
    ct_graph *graph = ct_graph_new("test");
    assert_true(ct_tensor_is_poison(ct_random_bits(graph, "layers=3 dim=4", (&(ct_random_keys){2, words}))));
    expect_error(ct_graph_check(graph), CT_CODE_INVALID_ARGUMENT,
                 "random_bits: 2 keys for \"layers=3 dim=4\": give 1 or one per position of its first axis");
    ct_graph_free(graph);
    graph = ct_graph_new("test");
    ct_random_normal(graph, "dim", (&(ct_random_keys){1, words}));
    expect_error(ct_graph_check(graph), CT_CODE_INVALID_ARGUMENT, "axis dim has no size: declare it or write dim=SIZE");
    ct_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quantile_inverts_the_distribution),
        cmocka_unit_test(test_quantile_is_monotone),
        cmocka_unit_test(test_distributions),
        cmocka_unit_test(test_table_is_the_same_everywhere),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
