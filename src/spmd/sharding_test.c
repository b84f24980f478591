#include "spmd/sharding.h"

#include "base/testing.h"

/* dp=2 x=3 tp=2, twelve devices */
static const ct_mesh MESH = {.num_axes = 3,
                             .axes = {{.name = "dp", .size = 2}, {.name = "x", .size = 3}, {.name = "tp", .size = 2}},
                             .num_devices = 12};

/* The holders' boxes cover the array once; a copy has its holder's box. */
static void expect_cover(const ct_sharding *sharding, int64_t rows, int64_t columns, int num_holders)
{
    const int64_t sizes[2] = {rows, columns};
    int *count = ct_alloc_zeroed((size_t)(rows * columns), sizeof(int)), holders = 0;
    for (int64_t d = 0; d < MESH.num_devices; d++) {
        int64_t offsets[2], valid[2], local[2], other_offsets[2], other_valid[2];
        bool is_first = ct_sharding_box(&MESH, sharding, 2, sizes, d, offsets, valid, local);
        int64_t holder = ct_sharding_holder(&MESH, sharding, d);
        assert_int_equal(is_first, holder == d);
        ct_sharding_box(&MESH, sharding, 2, sizes, holder, other_offsets, other_valid, local);
        assert_memory_equal(offsets, other_offsets, sizeof(offsets));
        assert_memory_equal(valid, other_valid, sizeof(valid));
        if (!is_first) continue;
        holders++;
        for (int64_t i = offsets[0]; i < offsets[0] + valid[0]; i++)
            for (int64_t j = offsets[1]; j < offsets[1] + valid[1]; j++) count[i * columns + j]++;
    }
    assert_int_equal(holders, num_holders);
    for (int64_t i = 0; i < rows * columns; i++) assert_int_equal(count[i], 1);
    free(count);
}

static void boxes_cover_the_array_once(void **state)
{
    (void)state;
    ct_sharding whole = {0};
    expect_cover(&whole, 5, 3, 1);
    ct_sharding rows = {.at = {.count = {2}, .mesh_axes = {{2, 0}}}}; /* tp slowest, then dp */
    expect_cover(&rows, 8, 3, 4);
    ct_sharding both = {.at = {.count = {1, 2}, .mesh_axes = {{1}, {0, 2}}}};
    expect_cover(&both, 6, 8, 12);
    const int64_t uneven[2] = {7, 9};
    ct_sharding_pad(&MESH, &both, 2, uneven);
    assert_int_equal(both.padded[0], 9);
    assert_int_equal(both.padded[1], 12);
    expect_cover(&both, 7, 9, 12);
    const int64_t few[2] = {1, 1}; /* most parts are padding alone */
    ct_sharding_pad(&MESH, &both, 2, few);
    expect_cover(&both, 1, 1, 12);
}

static void text(void **state)
{
    (void)state;
    const ct_axis axes[2] = {{"batch", 6}, {"dim", 8}};
    ct_sharding sharding = {.at = {.count = {1, 2}, .mesh_axes = {{1}, {0, 2}}}};
    char *found = ct_sharding_text(&MESH, &sharding, 2, axes);
    assert_string_equal(found, "batch=x dim=dp+tp");
    free(found);
    sharding = (ct_sharding){.at = {.count = {1}, .mesh_axes = {{1}}}, .partial = 1u << 2};
    found = ct_sharding_text(&MESH, &sharding, 2, axes);
    assert_string_equal(found, "batch=x, partial tp");
    free(found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(boxes_cover_the_array_once), cmocka_unit_test(text)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
