/* That a matrix product costs the same as the compiler's own and inside a kernel: libtpu compiles the first, the second
 * is written as Mosaic text, compiled too, and both are priced. And that a program's text, dumped by the compiler, is
 * priced as its binary form. Skipped where there is no libtpu.
 */
#include <math.h>

#include "graph/constant.h"
#include "graph/dot.h"
#include "kernels/mosaic/mosaic.h"
#include "pjrt/hlo_text.h"
#include "pjrt/testing.h"
#include "pjrt/topology.h"
#include "predict/predict.h"

/* A weight's gradient: neither the cheapest nor the dearest of a model's products by the compiler's estimates. */
enum { ROWS = 4096, TERMS = 16384, COLUMNS = 14336, BLOCK = 1024 };

static void place_a(ct_mosaic *k, const void *context, ct_mosaic_value *out_blocks)
{
    const ct_mosaic_value *grid = context;
    (void)k;
    out_blocks[0] = grid[0];
    out_blocks[1] = grid[2];
}

static void place_b(ct_mosaic *k, const void *context, ct_mosaic_value *out_blocks)
{
    const ct_mosaic_value *grid = context;
    (void)k;
    out_blocks[0] = grid[2];
    out_blocks[1] = grid[1];
}

static void place_result(ct_mosaic *k, const void *context, ct_mosaic_value *out_blocks)
{
    const ct_mosaic_value *grid = context;
    (void)k;
    out_blocks[0] = grid[0];
    out_blocks[1] = grid[1];
}

/* [ROWS TERMS] x [TERMS COLUMNS] in blocks, summed in f32. */
static ct_mosaic *product_kernel(void)
{
    ct_mosaic *k = ct_mosaic_new("product");
    const int64_t block[] = {BLOCK, BLOCK};
    ct_mosaic_value grid[] = {ct_mosaic_grid(k, ROWS / BLOCK, true), ct_mosaic_grid(k, COLUMNS / BLOCK, true),
                              ct_mosaic_grid(k, TERMS / BLOCK, false)};
    ct_mosaic_value a = ct_mosaic_input(k, CT_MOSAIC_BF16, 2, block, place_a, grid);
    ct_mosaic_value b = ct_mosaic_input(k, CT_MOSAIC_BF16, 2, block, place_b, grid);
    ct_mosaic_value result = ct_mosaic_output(k, CT_MOSAIC_BF16, 2, block, place_result, grid);
    ct_mosaic_value sum = ct_mosaic_scratch(k, CT_MOSAIC_F32, 2, block);
    ct_mosaic_if(k, ct_mosaic_compare(k, CT_MOSAIC_EQ, grid[2], ct_mosaic_int(k, 0)));
    ct_mosaic_store(k, ct_mosaic_full(k, CT_MOSAIC_F32, BLOCK, BLOCK, 0), sum, NULL, 0, 0);
    ct_mosaic_end(k);
    ct_mosaic_value x = ct_mosaic_load(k, a, NULL, 0, BLOCK, 0, BLOCK),
                    y = ct_mosaic_load(k, b, NULL, 0, BLOCK, 0, BLOCK);
    ct_mosaic_value old = ct_mosaic_load(k, sum, NULL, 0, BLOCK, 0, BLOCK);
    ct_mosaic_store(k, ct_mosaic_add(k, old, ct_mosaic_matmul(k, x, 1, y, 0)), sum, NULL, 0, 0);
    ct_mosaic_if(k, ct_mosaic_compare(k, CT_MOSAIC_EQ, grid[2], ct_mosaic_int(k, TERMS / BLOCK - 1)));
    ct_mosaic_value all = ct_mosaic_load(k, sum, NULL, 0, BLOCK, 0, BLOCK);
    ct_mosaic_store(k, ct_mosaic_convert(k, all, CT_MOSAIC_BF16), result, NULL, 0, 0);
    ct_mosaic_end(k);
    ct_mosaic_limit(k, 48 << 20);
    return k;
}

static ct_graph *product_graph(bool in_kernel)
{
    ct_graph *graph = ct_graph_new("product");
    ct_graph_declare_axis(graph, "m", ROWS);
    ct_graph_declare_axis(graph, "k", TERMS);
    ct_graph_declare_axis(graph, "n", COLUMNS);
    ct_tensor *a = ct_input(graph, "a", CT_DTYPE_BF16, "m k"), *b = ct_input(graph, "b", CT_DTYPE_BF16, "k n"), *result;
    if (in_kernel) {
        ct_tensor *like = ct_full(graph, CT_DTYPE_BF16, "m n", 0);
        ct_mosaic_call(product_kernel(), 2, ((ct_tensor *[]){a, b}), 1, &like, &result);
    } else {
        result = ct_dot(a, b, "k");
    }
    ct_output(graph, "result", result, NULL);
    return graph;
}

static ct_prediction *predict(ct_arena *arena, ct_topology *topology, const char *text, const ct_named_value *flags,
                              size_t num_flags)
{
    int id = ct_topology_device_id(topology, 0);
    ct_executable *executable;
    ct_compile_opts opts = {.num_partitions = 1, .device_ids = &id, .flags = flags, .num_flags = num_flags};
    expect_ok(ct_topology_compile(topology, text, strlen(text), &opts, &executable));
    ct_hlo_module *module;
    ct_prediction *prediction;
    expect_ok(ct_executable_hlo(executable, arena, &module));
    ct_predict_opts predict_opts = {.chip = ct_chip_find(ct_topology_device_kind(topology, 0)), .num_devices = 1};
    expect_ok(ct_predict(arena, module, &predict_opts, &prediction));
    ct_executable_free(executable);
    return prediction;
}

static ct_prediction *predict_graph(ct_arena *arena, ct_topology *topology, bool in_kernel)
{
    ct_graph *graph = product_graph(in_kernel);
    ct_str text;
    ct_str_init(&text);
    expect_ok(ct_graph_print(graph, &text));
    ct_prediction *prediction = predict(arena, topology, text.data, NULL, 0);
    ct_str_deinit(&text);
    ct_graph_free(graph);
    return prediction;
}

static double ratio_on(ct_plugin *plugin, const char *name)
{
    ct_arena arena;
    ct_arena_init(&arena);
    ct_topology *topology;
    expect_ok(ct_topology_new(plugin, name, NULL, 0, &topology));
    ct_prediction *own = predict_graph(&arena, topology, false), *kernel = predict_graph(&arena, topology, true);
    assert_int_equal(kernel->num_kernels, 1);
    assert_true(kernel->kernels[0].flops == 2.0 * ROWS * TERMS * COLUMNS);
    assert_true(own->groups[CT_PREDICT_MATMUL].at[CT_CHIP_MID] > 0.95 * own->step.at[CT_CHIP_MID]);
    double ratio = kernel->step.at[CT_CHIP_MID] / own->step.at[CT_CHIP_MID];
    print_message("%s: the compiler's product %.3f ms, in a kernel %.3f ms\n", name, 1e3 * own->step.at[CT_CHIP_MID],
                  1e3 * kernel->step.at[CT_CHIP_MID]);
    ct_topology_free(topology);
    ct_arena_deinit(&arena);
    return ratio;
}

static void test_same_price(void **state)
{
    (void)state;
    ct_plugin *plugin = ct_test_libtpu();
    static const char *const topologies[] = {"v5e:2x2", "v5p:2x2x1", "v6e:2x2", "tpu7x:2x2x1"};
    for (size_t i = 0; i < CT_COUNT(topologies); i++) {
        double ratio = ratio_on(plugin, topologies[i]);
        if (fabs(ratio - 1) > 0.03)
            fail_msg("%s: a product in a kernel costs %.3f of the compiler's", topologies[i], ratio);
    }
}

/* The largest file of a folder whose name ends so. Heap. */
static char *find_dump(const char *folder, const char *end)
{
    char **names, *found = NULL;
    size_t count;
    expect_ok(ct_dir_list(folder, &names, &count));
    for (size_t i = 0; i < count; i++)
        if (strlen(names[i]) > strlen(end) && !strcmp(names[i] + strlen(names[i]) - strlen(end), end))
            found = ct_path_join(folder, names[i]);
    ct_names_free(names, count);
    return found;
}

static void test_text(void **state)
{
    (void)state;
    ct_plugin *plugin = ct_test_libtpu();
    static const char text[] =
        "module @m {\n func.func public @main(%x: tensor<512x512xf32>) -> tensor<512x512xf32> {\n"
        "  %zero = stablehlo.constant dense<0> : tensor<i32>\n  %n = stablehlo.constant dense<5> : tensor<i32>\n"
        "  %one = stablehlo.constant dense<1> : tensor<i32>\n"
        "  %w:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<512x512xf32>\n"
        "   cond { %c = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
        "          stablehlo.return %c : tensor<i1> }\n"
        "   do { %m = stablehlo.add %i, %one : tensor<i32>\n"
        "        %d = stablehlo.dot_general %y, %y, contracting_dims = [1] x [0] : (tensor<512x512xf32>, "
        "tensor<512x512xf32>) -> tensor<512x512xf32>\n        %t = stablehlo.tanh %d : tensor<512x512xf32>\n"
        "        stablehlo.return %m, %t : tensor<i32>, tensor<512x512xf32> }\n"
        "  %s = \"stablehlo.sort\"(%w#1) <{dimension = 1 : i64, is_stable = false}> ({\n"
        "   ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
        "    %c = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
        "    stablehlo.return %c : tensor<i1>\n  }) : (tensor<512x512xf32>) -> tensor<512x512xf32>\n"
        "  return %s : tensor<512x512xf32>\n }\n}\n";
    char *folder = ct_test_folder_new();
    const ct_named_value flags[] = {{.name = "xla_dump_to", .type = CT_VALUE_TEXT, .text = folder},
                                    {.name = "xla_dump_hlo_as_text", .type = CT_VALUE_BOOL, .boolean = true}};
    ct_arena arena;
    ct_arena_init(&arena);
    ct_topology *topology;
    expect_ok(ct_topology_new(plugin, "v6e:2x2", NULL, 0, &topology));
    ct_prediction *binary = predict(&arena, topology, text, flags, CT_COUNT(flags)), *read;
    char *path = find_dump(folder, ".after_codegen.txt");
    if (!path) fail_msg("no dump in %s", folder);
    ct_hlo_module *module;
    expect_ok(ct_hlo_read_file(&arena, path, &module));
    assert_true(module->is_scheduled);
    ct_predict_opts opts = {.chip = ct_chip_find("v6e"), .num_devices = 1};
    expect_ok(ct_predict(&arena, module, &opts, &read));
    assert_true(binary->step.at[CT_CHIP_MID] > 0);
    assert_true(read->step.at[CT_CHIP_MID] == binary->step.at[CT_CHIP_MID]);
    assert_int_equal(read->num_items, binary->num_items);
    assert_int_equal(read->num_unknowns, binary->num_unknowns);
    for (size_t i = 0; i < read->num_items; i++) {
        assert_string_equal(read->items[i].name, binary->items[i].name);
        assert_string_equal(read->items[i].op_name, binary->items[i].op_name);
        assert_true(read->items[i].times == binary->items[i].times && read->items[i].bytes == binary->items[i].bytes);
    }
    free(path);
    ct_test_folder_free(folder);
    ct_topology_free(topology);
    ct_arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_price),
        cmocka_unit_test(test_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
