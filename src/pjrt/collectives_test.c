/* Loops, groups and traffic of programs that the CPU plugin compiled; src/pjrt/hlo.c reads them. What libtpu makes of
 * collectives is in tests/collectives.
 */
#include "pjrt/collectives.h"

#include "pjrt/testing.h"

/* A loop of a counter from `first` by `step` while `compare` with `bound`, that sums x over pairs of four devices and
 * hands it on; then a permute by which only half of the devices send. The numbers are filled in. */
static const char loop_text[] =
    "module @m attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {\n"
    "sdy.mesh @mesh = <[\"a\"=2, \"b\"=2]>\n"
    "func.func public @main(%%g: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"a\", \"b\"}, {}]>})\n"
    "    -> (tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"a\", \"b\"}, {}]>}) {\n"
    " %%m = sdy.manual_computation(%%g) in_shardings=[<@mesh, [{\"a\", \"b\"}, {}]>]\n"
    "    out_shardings=[<@mesh, [{\"a\", \"b\"}, {}]>] manual_axes={\"a\", \"b\"} (%%x: tensor<2x6xf32>) {\n"
    "  %%first = stablehlo.constant dense<%d> : tensor<i32>\n"
    "  %%step = stablehlo.constant dense<%d> : tensor<i32>\n"
    "  %%bound = stablehlo.constant dense<%d> : tensor<i32>\n"
    "  %%w:2 = stablehlo.while(%%i = %%first, %%y = %%x) : tensor<i32>, tensor<2x6xf32>\n"
    "   cond { %%c = stablehlo.compare %s, %s, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
    "          stablehlo.return %%c : tensor<i1> }\n"
    "   do { %%n = stablehlo.add %%i, %%step : tensor<i32>\n"
    "        %%r = \"stablehlo.all_reduce\"(%%y) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,\n"
    "           replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({\n"
    "          ^bb0(%%p: tensor<f32>, %%q: tensor<f32>):\n"
    "           %%s = stablehlo.add %%p, %%q : tensor<f32>\n"
    "           stablehlo.return %%s : tensor<f32>\n"
    "        }) : (tensor<2x6xf32>) -> tensor<2x6xf32>\n"
    "        %%t = stablehlo.sine %%r : tensor<2x6xf32>\n"
    "        stablehlo.return %%n, %%t : tensor<i32>, tensor<2x6xf32> }\n"
    "  %%z = \"stablehlo.collective_permute\"(%%w#1) <{channel_handle = #stablehlo.channel_handle<handle = 2, type = "
    "1>,\n"
    "     source_target_pairs = dense<[[0, 1], [1, 0], [2, 2]]> : tensor<3x2xi64>}> : (tensor<2x6xf32>) -> "
    "tensor<2x6xf32>\n"
    "  sdy.return %%z : tensor<2x6xf32>\n"
    " } : (tensor<8x6xf32>) -> tensor<8x6xf32>\n"
    " return %%m : tensor<8x6xf32>\n"
    "}\n}\n";

static void test_loops(void **state)
{
    (void)state;
    static const struct {
        int first, step, bound;
        const char *direction, *operands;
        int64_t turns;
    } rows[] = {
        {0, 1, 3, "LT", "%i, %bound", 3},  {0, 1, 3, "LE", "%i, %bound", 4},  {2, 3, 12, "LT", "%i, %bound", 4},
        {5, -1, 0, "GT", "%i, %bound", 5}, {5, -2, 0, "GE", "%i, %bound", 3}, {0, 1, 7, "NE", "%i, %bound", 7},
        {0, 1, 3, "GT", "%bound, %i", 3},  {9, -4, 0, "LE", "%bound, %i", 3},
    };
    ct_client *client = ct_test_client(4);
    for (size_t i = 0; i < CT_COUNT(rows); i++) {
        char *text =
            ct_asprintf(loop_text, rows[i].first, rows[i].step, rows[i].bound, rows[i].direction, rows[i].operands);
        ct_executable *executable = ct_test_compile(client, text, &(ct_compile_opts){.num_partitions = 4});
        ct_arena arena;
        ct_arena_init(&arena);
        ct_hlo_module *module;
        expect_ok(ct_executable_hlo(executable, &arena, &module));
        ct_hlo_traffic traffic;
        ct_hlo_traffic_find(&arena, module, 4, &traffic);
        assert_int_equal(traffic.num_unknown_loops, 0);
        const ct_hlo_collective *sum = NULL, *permute = NULL;
        for (size_t j = 0; j < traffic.num_items; j++) {
            if (traffic.items[j].kind == CT_HLO_COLLECTIVE_ALL_REDUCE) sum = &traffic.items[j];
            if (traffic.items[j].kind == CT_HLO_COLLECTIVE_PERMUTE) permute = &traffic.items[j];
        }
        assert_int_equal(traffic.num_items, 2);
        assert_non_null(sum);
        assert_non_null(permute);
        assert_int_equal(sum->times, rows[i].turns);
        assert_string_equal(sum->dtype, "f32");
        assert_int_equal(sum->payload_bytes, 48);
        assert_int_equal(sum->wire_bytes, 48);
        assert_int_equal(sum->num_elements, 12);
        assert_null(sum->waste);
        assert_int_equal(permute->times, 1);
        assert_int_equal(permute->wire_bytes, 24); /* two of the four devices send */
        int64_t mesh[] = {2, 2};
        assert_int_equal(ct_hlo_collective_axes(sum, 2, mesh), 1);
        assert_int_equal(ct_hlo_collective_axes(permute, 2, mesh), 2);
        ct_arena_deinit(&arena);
        ct_executable_free(executable);
        free(text);
    }
    ct_client_free(client);
}

static void test_axes(void **state)
{
    (void)state;
    static const int64_t mesh[] = {2, 3, 2}, along_0_2[] = {0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11},
                         half[] = {0, 2, 1, 3}, beyond[] = {0, 12};
    ct_hlo_collective item = {.groups = along_0_2, .num_groups = 3, .group_size = 4};
    assert_int_equal(ct_hlo_collective_axes(&item, 3, mesh), 1 | 4);
    item = (ct_hlo_collective){.groups = half, .num_groups = 2, .group_size = 2}; /* two of an axis of three */
    assert_int_equal(ct_hlo_collective_axes(&item, 3, mesh), -1);
    item = (ct_hlo_collective){.groups = beyond, .num_groups = 1, .group_size = 2};
    assert_int_equal(ct_hlo_collective_axes(&item, 3, mesh), -1);
}

static void test_shape_bytes(void **state)
{
    (void)state;
    static const struct {
        const char *shape, *type;
        int64_t bytes;
    } rows[] = {
        {"bf16[1024,8]{1,0:S(1)}", "bf16", 16384},
        {"f32[]", "f32", 4},
        {"pred[3]{0}", "pred", 3},
        {"(f32[2,2]{1,0}, s32[5]{0})", "f32", 36},
        {"f8e4m3fn[7]{0}", "f8e4m3fn", 7},
        {"token", "", 0},
        {"s4[10]{0}", "s4", 10},
    };
    for (size_t i = 0; i < CT_COUNT(rows); i++) {
        char type[16];
        assert_int_equal(ct_hlo_shape_bytes(rows[i].shape, type), rows[i].bytes);
        assert_string_equal(type, rows[i].type);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loops),
        cmocka_unit_test(test_axes),
        cmocka_unit_test(test_shape_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
