#include "base/box.h"

#include "base/testing.h"

/* Every box of a 3x4x2 array, into the middle of a larger one and back, against a loop over elements. */
static void every_box(void **state)
{
    (void)state;
    enum { A = 3, B = 4, C = 2 };
    uint16_t from[A * B * C], to[(A + 1) * (B + 2) * (C + 1)];
    for (int i = 0; i < A * B * C; i++) from[i] = (uint16_t)(100 + i);
    const int64_t from_sizes[3] = {A, B, C}, to_sizes[3] = {A + 1, B + 2, C + 1}, to_offsets[3] = {1, 2, 1};
    for (int a = 0; a < A; a++)
        for (int b = 0; b < B; b++)
            for (int c = 0; c < C; c++)
                for (int shape = 0; shape < (A - a + 1) * (B - b + 1) * (C - c + 1); shape++) {
                    int64_t sizes[3] = {shape % (A - a + 1), shape / (A - a + 1) % (B - b + 1),
                                        shape / (A - a + 1) / (B - b + 1)};
                    int64_t offsets[3] = {a, b, c};
                    memset(to, 0, sizeof(to));
                    ct_box_copy(3, sizes, 2, &(ct_box_side){from, from_sizes, offsets},
                                &(ct_box_side){to, to_sizes, to_offsets});
                    for (int i = 0; i <= A; i++)
                        for (int j = 0; j < B + 2; j++)
                            for (int k = 0; k <= C; k++) {
                                int64_t x = i - 1, y = j - 2, z = k - 1;
                                bool inside =
                                    x >= 0 && x < sizes[0] && y >= 0 && y < sizes[1] && z >= 0 && z < sizes[2];
                                int wanted = inside ? from[((x + a) * B + y + b) * C + z + c] : 0;
                                assert_int_equal(to[(i * (B + 2) + j) * (C + 1) + k], wanted);
                            }
                }
}

static void a_scalar(void **state)
{
    (void)state;
    double from = 3, to = 0;
    ct_box_copy(0, NULL, 8, &(ct_box_side){&from, NULL, NULL}, &(ct_box_side){&to, NULL, NULL});
    assert_true(to == 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_box), cmocka_unit_test(a_scalar)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
