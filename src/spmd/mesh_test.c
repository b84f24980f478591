#include "spmd/mesh.h"

#include <stdlib.h>
#include <string.h>

#include "base/testing.h"

/* degrees: dp_replicate, dp_shard, cp, tp */
static void expect(const char *wanted, const ct_mesh_opts *opts)
{
    ct_mesh mesh;
    expect_ok(ct_mesh_init(opts, &mesh));
    char *text = ct_mesh_text(&mesh);
    assert_string_equal(text, wanted);
    free(text);
}

static void expect_wrong(const char *wanted, const ct_mesh_opts *opts)
{
    ct_mesh mesh;
    expect_error(ct_mesh_init(opts, &mesh), CT_CODE_INVALID_ARGUMENT, wanted);
}

static void groups_without_a_torus(void **state)
{
    (void)state;
    expect("", &(ct_mesh_opts){.degrees = {1, -1, 1, 1}, .num_devices = 1});
    expect("dp_shard=8", &(ct_mesh_opts){.degrees = {1, -1, 1, 1}, .num_devices = 8});
    expect("dp_replicate=8", &(ct_mesh_opts){.degrees = {8, 1, 1, 1}, .num_devices = 8});
    expect("dp_replicate=2 dp_shard=2 tp=2", &(ct_mesh_opts){.degrees = {2, -1, 1, 2}, .num_devices = 8});
    expect("dp_shard=2 cp=2 tp=2", &(ct_mesh_opts){.degrees = {1, 2, 2, 2}, .num_devices = 8});
    expect("dp_shard=3 tp=2", &(ct_mesh_opts){.degrees = {1, -1, 1, 2}, .num_devices = 6});
}

static void kv_heads_split_tp(void **state)
{
    (void)state;
    ct_mesh_opts opts = {.degrees = {1, 1, 1, 8}, .num_devices = 8, .num_kv_heads = 4};
    expect("tp_0=4 tp_1=2", &opts);
    ct_mesh mesh;
    expect_ok(ct_mesh_init(&opts, &mesh));
    assert_int_equal(mesh.num_tp_kv_axes, 1);
    assert_int_equal(ct_mesh_size(&mesh, "tp"), 8);
    assert_int_equal(ct_mesh_size(&mesh, "tp_kv"), 4);
    opts.num_kv_heads = 8;
    expect("tp=8", &opts);
    opts.num_kv_heads = 1;
    expect("tp=8", &opts);
    expect_ok(ct_mesh_init(&opts, &mesh));
    assert_int_equal(ct_mesh_size(&mesh, "tp_kv"), 1);
    opts.num_kv_heads = 6;
    expect_wrong("tensor_parallel_degree = 8 must divide the model's 6 kv heads or be a multiple of them", &opts);
}

static void groups_along_a_torus(void **state)
{
    (void)state;
    expect("dp_shard_0=4 dp_shard_1=2 tp=2",
           &(ct_mesh_opts){.degrees = {1, 8, 1, 2}, .num_devices = 16, .num_torus = 2, .torus = {4, 4}});
    expect("dp_shard_0=4 dp_shard_1=4 dp_shard_2=8",
           &(ct_mesh_opts){.degrees = {1, -1, 1, 1}, .num_devices = 128, .num_torus = 3, .torus = {4, 4, 8}});
    /* size 1 is passed over */
    expect("dp_replicate=2 dp_shard=2 tp_0=4 tp_1=2",
           &(ct_mesh_opts){
               .degrees = {2, 2, 1, 8}, .num_devices = 32, .num_torus = 4, .torus = {2, 1, 8, 2}, .num_kv_heads = 8});
    ct_mesh mesh;
    ct_mesh_opts opts = {.degrees = {1, 4, 1, 8}, .num_devices = 32, .num_torus = 2, .torus = {8, 4}};
    expect("dp_shard=4 tp_0=2 tp_1=4", &opts);
    expect_ok(ct_mesh_init(&opts, &mesh));
    assert_int_equal(mesh.axes[0].torus_axis, 0);
    assert_int_equal(mesh.axes[1].torus_axis, 0);
    assert_int_equal(mesh.axes[2].torus_axis, 1);
    expect_wrong("tensor_parallel_degree = 6 cannot be laid along the topology: torus axis 1 of 4 devices has 4 left "
                 "for the 6",
                 &(ct_mesh_opts){.degrees = {1, 2, 1, 6}, .num_devices = 12, .num_torus = 2, .torus = {3, 4}});
}

static void wrong_numbers(void **state)
{
    (void)state;
    expect_wrong("data_parallel_replicate_degree 1 x data_parallel_shard_degree 2 x context_parallel_degree 1 x "
                 "tensor_parallel_degree 2 must be 8, the number of devices",
                 &(ct_mesh_opts){.degrees = {1, 2, 1, 2}, .num_devices = 8});
    expect_wrong("tensor_parallel_degree 3 (-1: what is left) does not divide 8",
                 &(ct_mesh_opts){.degrees = {1, -1, 1, 3}, .num_devices = 8});
    expect_wrong("parallelism.context_parallel_degree must be at least 1, found 0",
                 &(ct_mesh_opts){.degrees = {1, -1, 0, 3}, .num_devices = 8});
    expect_wrong("the topology 2x2 has 4 devices, the mesh wants 8",
                 &(ct_mesh_opts){.degrees = {1, -1, 1, 1}, .num_devices = 8, .num_torus = 2, .torus = {2, 2}});
}

static void words(void **state)
{
    (void)state;
    ct_mesh mesh;
    int axes[CT_MAX_MESH_AXES];
    ct_mesh_opts opts = {
        .degrees = {2, 8, 2, 4}, .num_devices = 128, .num_torus = 3, .torus = {4, 4, 8}, .num_kv_heads = 2};
    expect_ok(ct_mesh_init(&opts, &mesh));
    char *text = ct_mesh_text(&mesh);
    assert_string_equal(text, "dp_replicate=2 dp_shard_0=2 dp_shard_1=4 cp=2 tp_0=2 tp_1=2");
    free(text);
    assert_int_equal(ct_mesh_find(&mesh, "dp", 2, axes), 3);
    assert_int_equal(axes[0], 0);
    assert_int_equal(axes[2], 2);
    assert_int_equal(ct_mesh_find(&mesh, "fsdp", 4, axes), 3);
    assert_int_equal(axes[0], 1);
    assert_int_equal(axes[2], 3);
    assert_int_equal(ct_mesh_find(&mesh, "tp_kv", 5, axes), 1);
    assert_int_equal(axes[0], 4);
    assert_int_equal(ct_mesh_find(&mesh, "tp_1", 4, axes), 1);
    assert_int_equal(axes[0], 5);
    assert_int_equal(ct_mesh_find(&mesh, "dp_shard", 8, axes), 2);
    assert_int_equal(ct_mesh_find(&mesh, "dp_shard+cp", 8, axes), 2);
    assert_int_equal(ct_mesh_find(&mesh, "pp", 2, axes), -1);
    assert_int_equal(ct_mesh_size(&mesh, "fsdp"), 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_without_a_torus),
        cmocka_unit_test(kv_heads_split_tp),
        cmocka_unit_test(groups_along_a_torus),
        cmocka_unit_test(wrong_numbers),
        cmocka_unit_test(words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
