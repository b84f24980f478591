#include "base/testing.h"

#include "checkpoint/box.h"

/* Cuts [4, 6, 5] in many ways; every part copied from a box to another must land where plain indexing says. */
static void test_copies_against_indexing(void **state)
{
    (void)state;
    const ct_checkpoint_shard boxes[] = {
        {{0, 0, 0}, {4, 6, 5}}, {{0, 0, 0}, {2, 6, 5}}, {{1, 2, 0}, {3, 3, 5}}, {{0, 0, 1}, {4, 6, 3}},
        {{3, 5, 4}, {1, 1, 1}}, {{2, 1, 2}, {1, 5, 3}}, {{1, 0, 0}, {1, 6, 5}},
    };
    for (size_t a = 0; a < CT_COUNT(boxes); a++)
        for (size_t b = 0; b < CT_COUNT(boxes); b++) {
            const ct_checkpoint_shard *from = &boxes[a], *to = &boxes[b];
            int16_t source[120], target[120], wanted[120];
            int64_t n = 0;
            for (int64_t i = 0; i < from->sizes[0]; i++)
                for (int64_t j = 0; j < from->sizes[1]; j++)
                    for (int64_t k = 0; k < from->sizes[2]; k++)
                        source[n++] = (int16_t)((i + from->offsets[0]) * 100 + (j + from->offsets[1]) * 10 + k +
                                                from->offsets[2]);
            n = 0;
            bool any = false;
            for (int64_t i = 0; i < to->sizes[0]; i++)
                for (int64_t j = 0; j < to->sizes[1]; j++)
                    for (int64_t k = 0; k < to->sizes[2]; k++, n++) {
                        int64_t place[3] = {i + to->offsets[0], j + to->offsets[1], k + to->offsets[2]};
                        bool inside = true;
                        for (int d = 0; d < 3; d++)
                            inside =
                                inside && place[d] >= from->offsets[d] && place[d] < from->offsets[d] + from->sizes[d];
                        target[n] = -1;
                        wanted[n] = inside ? (int16_t)(place[0] * 100 + place[1] * 10 + place[2]) : (int16_t)-1;
                        any = any || inside;
                    }
            ct_checkpoint_shard part;
            assert_int_equal(ct__box_intersect(from, to, 3, &part), any);
            if (any) ct__box_copy(&part, 3, 2, from, source, to, target);
            assert_memory_equal(target, wanted, (size_t)n * 2);
        }
}

static void test_scalar(void **state)
{
    (void)state;
    ct_checkpoint_shard whole = ct__box_whole(NULL, 0), part;
    assert_int_equal(ct__box_volume(&whole, 0), 1);
    assert_true(ct__box_intersect(&whole, &whole, 0, &part));
    double from = 3, to = 0;
    ct__box_copy(&part, 0, 8, &whole, &from, &whole, &to);
    assert_true(to == 3);
}

static ct_status *check(const int64_t *sizes, int rank, const ct_checkpoint_shard *shards, size_t num_shards)
{
    ct_checkpoint_tensor tensor = {
        .name = "w", .dtype = CT_DTYPE_F32, .rank = rank, .shards = shards, .num_shards = num_shards};
    for (int i = 0; i < rank; i++) tensor.sizes[i] = sizes[i];
    return ct__shards_check(&tensor);
}

static void test_cover(void **state)
{
    (void)state;
    const int64_t sizes[2] = {4, 4};
    const ct_checkpoint_shard good[] = {{{0, 0}, {2, 4}}, {{2, 0}, {2, 1}}, {{2, 1}, {2, 3}}};
    const ct_checkpoint_shard overlap[] = {{{0, 0}, {2, 4}}, {{1, 0}, {2, 4}}};
    const ct_checkpoint_shard outside[] = {{{0, 0}, {2, 4}}, {{2, 1}, {2, 4}}};
    const ct_checkpoint_shard negative[] = {{{0, -1}, {2, 4}}};
    const ct_checkpoint_shard huge[] = {{{1, 0}, {INT64_MAX, 4}}};
    expect_ok(check(sizes, 2, good, 3));
    expect_ok(check(sizes, 2, NULL, 0));
    expect_ok(check((int64_t[]){0, 4}, 2, (ct_checkpoint_shard[]){{{0, 0}, {0, 4}}}, 1));
    expect_error(check(sizes, 2, good, 2), CT_CODE_INVALID_ARGUMENT,
                 "tensor w: its shards must cover 16 elements, but cover 10");
    expect_error(check(sizes, 2, overlap, 2), CT_CODE_INVALID_ARGUMENT, "tensor w: shards 0 and 1 overlap");
    expect_error(check(sizes, 2, outside, 2), CT_CODE_INVALID_ARGUMENT, "tensor w: shard 1 lies outside it");
    expect_error(check(sizes, 2, negative, 1), CT_CODE_INVALID_ARGUMENT, "shard 0 lies outside it");
    expect_error(check(sizes, 2, huge, 1), CT_CODE_INVALID_ARGUMENT, "shard 0 lies outside it");
    expect_error(check((int64_t[]){INT64_MAX / 4, 2}, 2, NULL, 0), CT_CODE_INVALID_ARGUMENT, "below 2^63");
    expect_error(check((int64_t[]){-1, 2}, 2, NULL, 0), CT_CODE_INVALID_ARGUMENT, "must be positive");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies_against_indexing),
        cmocka_unit_test(test_scalar),
        cmocka_unit_test(test_cover),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
