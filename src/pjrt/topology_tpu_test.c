/* Compiling for TPUs with libtpu, and where their devices lie. Skipped where there is no libtpu. */
#include "pjrt/hlo.h"
#include "pjrt/testing.h"
#include "pjrt/torus.h"

static const char program[] =
    "module @m attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {\n"
    "sdy.mesh @mesh = <[\"d\"=4]>\n"
    "func.func public @main(%x: tensor<1024x1024xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{\"d\"}, {}]>},\n"
    "                       %w: tensor<1024x1024xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>})\n"
    "    -> (tensor<1024x1024xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{\"d\"}, {}]>}) {\n"
    "  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]\n"
    "      : (tensor<1024x1024xbf16>, tensor<1024x1024xbf16>) -> tensor<1024x1024xbf16>\n"
    "  return %0 : tensor<1024x1024xbf16>\n"
    "}\n}\n";

static void test_compile(void **state)
{
    (void)state;
    ct_plugin *plugin = ct_test_libtpu();
    ct_topology *topology;
    ct_status *status = ct_topology_new(plugin, "v5e:banana", NULL, 0, &topology);
    assert_non_null(status);
    ct_status_free(status);
    expect_ok(ct_topology_new(plugin, "v5e:2x2", NULL, 0, &topology));
    assert_string_equal(ct_topology_platform_name(topology), "tpu");
    assert_int_equal(ct_topology_num_devices(topology), 4);
    assert_non_null(strstr(ct_topology_device_kind(topology, 0), "TPU v5"));

    ct_executable *executable;
    ct_compile_opts opts = {.num_partitions = 4, .cache_folder = "/tmp"};
    expect_error(ct_topology_compile(topology, program, strlen(program), &opts, &executable), CT_CODE_INVALID_ARGUMENT,
                 "cannot be cached");
    opts = (ct_compile_opts){.num_partitions = 8};
    expect_error(ct_topology_compile(topology, program, strlen(program), &opts, &executable), CT_CODE_INVALID_ARGUMENT,
                 "for 8 devices, but there are only 4");
    ct_named_value flag = {.name = "xla_tpu_enable_latency_hiding_scheduler", .type = CT_VALUE_BOOL, .boolean = true};
    opts = (ct_compile_opts){.num_partitions = 4, .flags = &flag, .num_flags = 1};
    expect_ok(ct_topology_compile(topology, program, strlen(program), &opts, &executable));
    ct_topology_free(topology);

    assert_int_equal(ct_executable_num_devices(executable), 0);
    ct_executable_memory memory;
    expect_ok(ct_executable_memory_stats(executable, &memory));
    assert_int_equal(memory.argument_bytes, (256 + 1024) * 1024 * 2);
    assert_int_equal(memory.output_bytes, 256 * 1024 * 2);
    ct_executable_cost cost;
    expect_ok(ct_executable_cost_stats(executable, &cost));
    assert_true(cost.flops >= 2.0 * 256 * 1024 * 1024);
    ct_buffer *output;
    expect_error(ct_executable_execute(executable, NULL, 0, NULL, &output), CT_CODE_FAILED_PRECONDITION,
                 "cannot run here");
    ct_arena arena;
    ct_arena_init(&arena);
    ct_hlo_module *module;
    expect_ok(ct_executable_hlo(executable, &arena, &module));
    assert_true(module->entry->num_instructions > 0);
    ct_arena_deinit(&arena);
    char *folder = ct_test_folder_new(), *saved = ct_path_join(folder, "program");
    expect_ok(ct_executable_save(executable, saved));
    assert_true(ct_path_exists(saved));
    free(saved);
    ct_test_folder_free(folder);
    ct_executable_free(executable);
}

/* The id that libtpu gives the device at a place: x fastest, then y, z, with the cores of a chip side by side. */
static int id_at(const int64_t sizes[4], const int64_t at[4])
{
    return (int)(((at[2] * sizes[1] + at[1]) * sizes[0] + at[0]) * sizes[3] + at[3]);
}

static void test_torus(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t innermost;
        const char *axes; /* "y4 x2", with a * after a ring */
        int64_t sizes[4]; /* x y z, cores */
    } rows[] = {
        {"v6e:2x4", 0, "y4 x2", {2, 4, 1, 1}},
        {"v6e:2x4", 2, "y4 x2", {2, 4, 1, 1}},
        {"v6e:2x4", 4, "x2 y4", {2, 4, 1, 1}},
        {"v6e:4x4", 0, "x4 y4", {4, 4, 1, 1}},
        {"v6e:16x16", 0, "x16* y16*", {16, 16, 1, 1}},
        {"v5p:4x4x8", 0, "z8* x4* y4*", {4, 4, 8, 1}},
        {"v5p:4x4x8", 4, "z8* x4* y4*", {4, 4, 8, 1}},
        {"v5p:4x4x8", 8, "x4* y4* z8*", {4, 4, 8, 1}},
        {"v5p:4x4x8", 2, "z8* x4* y4*", {4, 4, 8, 1}},
        {"tpu7x:2x2x2", 0, "x2 y2 z2 c2", {2, 2, 2, 2}},
        {"tpu7x:4x4x4", 8, "x4* y4* z4* c2", {4, 4, 4, 2}},
    };
    ct_plugin *plugin = ct_test_libtpu();
    for (size_t i = 0; i < CT_COUNT(rows); i++) {
        ct_topology *topology;
        expect_ok(ct_topology_new(plugin, rows[i].name, NULL, 0, &topology));
        size_t num_devices = ct_topology_num_devices(topology);
        int *ids = ct_alloc_zeroed(num_devices, sizeof(*ids));
        ct_torus torus;
        expect_ok(ct_topology_torus(topology, rows[i].innermost, &torus, ids));
        ct_str text;
        ct_str_init(&text);
        for (int j = 0; j < torus.num_axes; j++)
            ct_str_printf(&text, "%s%c%d%s", j ? " " : "", torus.names[j], (int)torus.sizes[j],
                          torus.wraps[j] ? "*" : "");
        assert_string_equal(text.data, rows[i].axes);
        ct_str_deinit(&text);
        ct_torus without; /* the same without libtpu */
        bool is_flat = rows[i].name[2] == 'e';
        ct_tpu_slice_torus(is_flat ? 2 : 3, rows[i].sizes, (int)rows[i].sizes[3], rows[i].innermost, &without);
        assert_int_equal(without.num_axes, torus.num_axes);
        assert_memory_equal(without.sizes, torus.sizes, sizeof(torus.sizes));
        assert_memory_equal(without.names, torus.names, sizeof(torus.names));
        assert_memory_equal(without.wraps, torus.wraps, sizeof(torus.wraps));
        for (size_t place = 0; place < num_devices; place++) {
            int64_t at[4] = {0}, rest = (int64_t)place;
            for (int j = torus.num_axes; j--;) {
                at[strchr("xyzc", torus.names[j]) - "xyzc"] = rest % torus.sizes[j];
                rest /= torus.sizes[j];
            }
            assert_int_equal(ids[place], id_at(rows[i].sizes, at));
        }
        free(ids);
        ct_topology_free(topology);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compile),
        cmocka_unit_test(test_torus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
