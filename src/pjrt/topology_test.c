/* Compiling for devices that are not here. CTITAN_TEST_LIBTPU names a libtpu.so; without it the TPU part is skipped. */
#include "pjrt/topology.h"

#include "pjrt/hlo.h"
#include "pjrt/testing.h"

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

static void test_cpu_names_no_topology(void **state)
{
    (void)state;
    ct_topology *topology;
    ct_status *status = ct_topology_new(ct_test_plugin(), "no such place", NULL, 0, &topology);
    if (!status) { /* the CPU plugin may take any name for its own devices */
        assert_non_null(topology);
        ct_topology_free(topology);
        return;
    }
    assert_null(topology);
    assert_non_null(strstr(ct_status_message(status), "no such place"));
    ct_status_free(status);
}

static void test_tpu(void **state)
{
    (void)state;
    const char *path = getenv("CTITAN_TEST_LIBTPU");
    if (!path || !path[0]) {
        print_message("SKIPPED: compiling for TPUs: CTITAN_TEST_LIBTPU does not name a libtpu.so\n");
        skip();
    }
    /* Else libtpu looks for a TPU and complains. */
    setenv("TPU_STDERR_LOG_LEVEL", "3", 0);
    setenv("TPU_SKIP_MDS_QUERY", "1", 0);
    setenv("TPU_WORKER_HOSTNAMES", "localhost", 0);
    setenv("TPU_ACCELERATOR_TYPE", "v5litepod-4", 0);
    ct_plugin *plugin;
    expect_ok(ct_plugin_load(&(ct_plugin_opts){.path = path}, &plugin));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cpu_names_no_topology),
        cmocka_unit_test(test_tpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
