/* The link model against times worked out by hand. */
#include "spmd/links.h"

#include "base/testing.h"

static ct_mesh mesh_of(int64_t shard, int64_t tp, int num_torus, const int64_t *torus)
{
    ct_mesh_opts opts = {.degrees = {1, shard, 1, tp}, .num_devices = shard * tp, .num_torus = num_torus};
    for (int i = 0; i < num_torus; i++) opts.torus[i] = torus[i];
    ct_mesh mesh;
    expect_ok(ct_mesh_init(&opts, &mesh));
    return mesh;
}

static void expect_ms(double seconds, double milliseconds)
{
    if (seconds < 0.999e-3 * milliseconds || seconds > 1.001e-3 * milliseconds)
        fail_msg("wanted %g ms, found %g ms", milliseconds, 1e3 * seconds);
}

static const bool open[4] = {false}, rings[4] = {true, true, true, true};

static void test_v6e(void **state)
{
    (void)state;
    int64_t torus[] = {4, 4};
    ct_mesh mesh = mesh_of(16, 1, 2, torus);
    ct_links links;
    int axes[] = {0, 1};
    double bytes = 90e6; /* one link takes 1 ms for them */
    expect_ok(ct_links_init("TPU v6 lite", &mesh, open, "xy", &links));
    expect_ms(ct_links_axis_time(&links, CT_LINKS_GATHER, 0, bytes), 0.75);
    expect_ms(ct_links_axis_time(&links, CT_LINKS_REDUCE, 0, bytes), 1.5);
    expect_ms(ct_links_axis_time(&links, CT_LINKS_EXCHANGE, 0, bytes), 1);
    expect_ms(ct_links_axis_time(&links, CT_LINKS_SHIFT, 0, bytes), 1);
    expect_ms(ct_links_walk_time(&links, CT_LINKS_GATHER, 2, axes, bytes), 15.0 / 16);
    expect_ms(ct_links_all_time(&links, CT_LINKS_GATHER, 2, axes, bytes), 15.0 / 32); /* both axes at once */
    expect_ms(ct_links_all_time(&links, CT_LINKS_REDUCE, 2, axes, bytes), 15.0 / 16);
    expect_ms(ct_links_ring_time(&links, CT_LINKS_GATHER, 2, axes, bytes), 15.0 / 32);

    int64_t large[] = {16, 16};
    mesh = mesh_of(256, 1, 2, large);
    expect_ok(ct_links_init("v6e", &mesh, rings, "xy", &links));
    expect_ms(ct_links_walk_time(&links, CT_LINKS_GATHER, 2, axes, bytes), 255.0 / 512);
    expect_ms(ct_links_all_time(&links, CT_LINKS_REDUCE, 2, axes, bytes), 255.0 / 512);
}

static void test_v5p(void **state)
{
    (void)state;
    int64_t torus[] = {8, 4, 4};
    ct_mesh mesh = mesh_of(128, 1, 3, torus);
    ct_links links;
    int axes[] = {0, 1, 2};
    expect_ok(ct_links_init("TPU v5", &mesh, rings, "zxy", &links));
    expect_ms(ct_links_walk_time(&links, CT_LINKS_GATHER, 3, axes, 90e6), 127.0 / 256);
    /* Parts of 30 MB: in every step one of them is on the axis of 8, or the one on an axis of 4 carries more. */
    expect_ms(ct_links_all_time(&links, CT_LINKS_GATHER, 3, axes, 90e6),
              (7.0 / 8 + 7.0 / 8 / 4 + CT_MAX(7.0 / 8 / 16, 3.0 / 4 / 32)) / 6);
    /* Two parts on the same links take turns. */
    int same[2][CT_MAX_MESH_AXES] = {{0, 1, 2}, {0, 1, 2}};
    expect_ms(ct_links_parts_time(&links, CT_LINKS_GATHER, 3, 2, (const int(*)[CT_MAX_MESH_AXES])same, 90e6),
              127.0 / 256);
}

static void test_shared_links(void **state)
{
    (void)state;
    /* dp_shard over 8 of which 2 lie on tp's axis: tp reaches its neighbour, dp_shard_1 over it, at half the speed. */
    int64_t torus[] = {4, 4};
    ct_mesh mesh = mesh_of(8, 2, 2, torus);
    ct_links links;
    expect_ok(ct_links_init("v6e", &mesh, rings, "xy", &links));
    assert_int_equal(links.num_axes, 3);
    expect_ms(ct_links_axis_time(&links, CT_LINKS_GATHER, 0, 90e6), 0.375);
    assert_true(links.is_ring[1]);
    expect_ms(ct_links_axis_time(&links, CT_LINKS_GATHER, 1, 90e6), 0.5);
    assert_false(links.is_ring[2]);
    expect_ms(ct_links_axis_time(&links, CT_LINKS_GATHER, 2, 90e6), 0.5);

    /* tpu7x: two devices share a chip's links, and are joined by six. */
    int64_t chips[] = {4, 2};
    mesh = mesh_of(8, 1, 2, chips);
    expect_ok(ct_links_init("TPU7x", &mesh, open, "xc", &links));
    expect_ms(ct_links_axis_time(&links, CT_LINKS_GATHER, 0, 90e6), 1.5);
    expect_ms(ct_links_axis_time(&links, CT_LINKS_GATHER, 1, 90e6), 1.0 / 12);
    expect_error(ct_links_init("cpu", &mesh, open, "xc", &links), CT_CODE_NOT_FOUND, "not \"cpu\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_v6e),
        cmocka_unit_test(test_v5p),
        cmocka_unit_test(test_shared_links),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
