/* Programs on the real plugin: one device and eight, donation, errors, and what an executable says of itself. */
#include "pjrt/executable.h"

#include "pjrt/hlo.h"
#include "pjrt/testing.h"

/* (a + b, sum of a), where a may be reused for the first result. */
static const char add_program[] =
    "func.func public @main(%a: tensor<2x3xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<2x3xf32>)\n"
    "    -> (tensor<2x3xf32>, tensor<f32>) {\n"
    "  %0 = stablehlo.add %a, %b : tensor<2x3xf32>\n"
    "  %1 = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "  %2 = stablehlo.reduce(%a init: %1) applies stablehlo.add across dimensions = [0, 1]\n"
    "      : (tensor<2x3xf32>, tensor<f32>) -> tensor<f32>\n"
    "  return %0, %2 : tensor<2x3xf32>, tensor<f32>\n"
    "}\n";
static const float a_values[6] = {1, 2, 3, 4, 5, 6}, b_values[6] = {10, 20, 30, 40, 50, 60};
static const int64_t sizes[2] = {2, 3};

static void check_sum(ct_buffer **outputs)
{
    float sum[6], total;
    ct_test_floats(outputs[0], sum, 6);
    ct_test_floats(outputs[1], &total, 1);
    for (int i = 0; i < 6; i++) assert_true(sum[i] == a_values[i] + b_values[i]);
    assert_true(total == 21.0f);
    ct_buffers_free(outputs, 2);
}

static void test_run(void **state)
{
    (void)state;
    ct_client *client = ct_test_client(2);
    ct_executable *executable = ct_test_compile(client, add_program, NULL);
    assert_false(ct_executable_is_from_cache(executable));
    assert_int_equal(ct_executable_num_devices(executable), 1);
    assert_int_equal(ct_executable_num_outputs(executable), 2);
    ct_array shape;
    expect_ok(ct_executable_output_shape(executable, 0, &shape));
    assert_int_equal(shape.dtype, CT_DTYPE_F32);
    assert_int_equal(shape.rank, 2);
    assert_int_equal(shape.sizes[1], 3);
    expect_ok(ct_executable_output_shape(executable, 1, &shape));
    assert_int_equal(shape.rank, 0);
    ct_device *device;
    expect_ok(ct_executable_device(executable, 0, &device));
    assert_ptr_equal(device, ct_client_device(client, 0));

    ct_buffer *arguments[2] = {ct_test_buffer(client, 0, a_values, 2, sizes),
                               ct_test_buffer(client, 0, b_values, 2, sizes)};
    ct_buffer *outputs[2];
    for (int i = 0; i < 3; i++) { /* nothing is given away, though the program would reuse a */
        expect_ok(ct_executable_execute(executable, arguments, 2, NULL, outputs));
        check_sum(outputs);
    }
    ct_event *done;
    expect_ok(ct_executable_execute(executable, arguments, 2, &(ct_execute_opts){.out_done = &done}, outputs));
    expect_ok(ct_events_await_free(&done, 1));
    check_sum(outputs);
    ct_buffers_free(arguments, 2);
    ct_executable_free(executable);

    /* On the second device. */
    executable = ct_test_compile(client, add_program, &(ct_compile_opts){.device_ids = (int[]){1}});
    expect_ok(ct_executable_device(executable, 0, &device));
    assert_ptr_equal(device, ct_client_device(client, 1));
    arguments[0] = ct_test_buffer(client, 1, a_values, 2, sizes);
    arguments[1] = ct_test_buffer(client, 1, b_values, 2, sizes);
    expect_ok(ct_executable_execute(executable, arguments, 2, NULL, outputs));
    check_sum(outputs);
    ct_buffers_free(arguments, 2);
    ct_executable_free(executable);
    ct_client_free(client);
}

static void test_donation(void **state)
{
    (void)state;
    ct_client *client = ct_test_client(1);
    ct_executable *executable = ct_test_compile(client, add_program, NULL);
    ct_executable_memory memory;
    expect_ok(ct_executable_memory_stats(executable, &memory));
    assert_int_equal(memory.argument_bytes, 48);
    assert_int_equal(memory.alias_bytes, 24);
    assert_true(memory.output_bytes >= 28);

    ct_buffer *arguments[2] = {ct_test_buffer(client, 0, a_values, 2, sizes),
                               ct_test_buffer(client, 0, b_values, 2, sizes)};
    ct_buffer *outputs[2], *kept = arguments[1];
    expect_ok(
        ct_executable_execute(executable, arguments, 2, &(ct_execute_opts){.donated = (bool[]){true, false}}, outputs));
    assert_null(arguments[0]);
    assert_ptr_equal(arguments[1], kept);
    check_sum(outputs);
    expect_error(ct_executable_execute(executable, arguments, 2, NULL, outputs), CT_CODE_INVALID_ARGUMENT,
                 "argument 0 of device 0 is missing");
    assert_null(outputs[0]);

    /* b has no result to live in; it is freed all the same. A failed call frees nothing. */
    arguments[0] = ct_test_buffer(client, 0, a_values, 1, (int64_t[]){6});
    ct_execute_opts both = {.donated = (bool[]){true, true}};
    ct_status *status = ct_executable_execute(executable, arguments, 2, &both, outputs);
    if (!status) { /* some plugins see only that the bytes fit */
        check_sum(outputs);
        assert_null(arguments[0]);
        arguments[0] = ct_test_buffer(client, 0, a_values, 2, sizes);
        arguments[1] = ct_test_buffer(client, 0, b_values, 2, sizes);
    }
    ct_status_free(status);
    assert_non_null(arguments[0]);
    assert_non_null(arguments[1]);
    ct_buffer_free(arguments[0]);
    arguments[0] = ct_test_buffer(client, 0, a_values, 2, sizes);
    expect_ok(ct_executable_execute(executable, arguments, 2, &both, outputs));
    assert_null(arguments[1]);
    check_sum(outputs);
    ct_executable_free(executable);
    ct_client_free(client);
}

/* The compiler's own errors: plugins agree on the text, not on the code. */
static void expect_compile_error(ct_client *client, const char *text, const ct_compile_opts *opts, const char *wanted)
{
    ct_executable *executable;
    ct_status *status = ct_client_compile(client, text, strlen(text), opts, &executable);
    assert_non_null(status);
    assert_null(executable);
    if (!strstr(ct_status_message(status), wanted)) fail_msg("%s", ct_status_message(status));
    ct_status_free(status);
}

static void test_errors(void **state)
{
    (void)state;
    ct_client *client = ct_test_client(2);
    ct_executable *executable;
    static const char nonsense[] = "func.func public @main() -> tensor<f32> { return %0 : tensor<f32> }";
    expect_compile_error(client, nonsense, NULL, "undeclared SSA value");
    static const char mismatched[] =
        "func.func public @main(%a: tensor<2xf32>, %b: tensor<3xf32>) -> tensor<2xf32> {\n"
        "  %0 = \"stablehlo.add\"(%a, %b) : (tensor<2xf32>, tensor<3xf32>) -> tensor<2xf32>\n"
        "  return %0 : tensor<2xf32>\n}\n";
    expect_compile_error(client, mismatched, NULL, "stablehlo.add");
    expect_error(ct_client_compile(client, add_program, strlen(add_program), &(ct_compile_opts){.num_partitions = 3},
                                   &executable),
                 CT_CODE_INVALID_ARGUMENT, "for 3 devices, but there are only 2");
    ct_named_value flag = {.name = "xla_no_such_flag", .type = CT_VALUE_BOOL, .boolean = true};
    ct_compile_opts flagged = {.flags = &flag, .num_flags = 1};
    expect_compile_error(client, add_program, &flagged, "xla_no_such_flag");
    flag = (ct_named_value){.name = "xla_list", .type = CT_VALUE_INT_LIST};
    expect_error(ct_client_compile(client, add_program, strlen(add_program), &flagged, &executable),
                 CT_CODE_INVALID_ARGUMENT, "xla_list must be text, a number or a boolean");

    executable = ct_test_compile(client, add_program, NULL);
    ct_buffer *argument = ct_test_buffer(client, 0, a_values, 2, sizes), *outputs[2];
    ct_status *status = ct_executable_execute(executable, &argument, 1, NULL, outputs);
    assert_non_null(status); /* one argument too few */
    ct_status_free(status);
    assert_null(outputs[0]);
    ct_buffer_free(argument);
    ct_executable_free(executable);
    ct_client_free(client);
}

/* x [8, 4] over mesh axis a (4) and y over b (2): the sum over all devices needs collectives, which Shardy inserts; the
 * manual region has one of ours. */
static const char spmd_program[] =
    "module @spmd attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {\n"
    "sdy.mesh @mesh = <[\"a\"=4, \"b\"=2]>\n"
    "func.func public @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"a\"}, {\"b\"}]>,\n"
    "                                             tf.aliasing_output = 0 : i32})\n"
    "    -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"a\"}, {\"b\"}]>},\n"
    "        tensor<f32> {sdy.sharding = #sdy.sharding<@mesh, []>},\n"
    "        tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"a\"}, {\"b\"}]>}) {\n"
    "  %0 = stablehlo.add %x, %x : tensor<8x4xf32>\n"
    "  %1 = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "  %2 = stablehlo.reduce(%x init: %1) applies stablehlo.add across dimensions = [0, 1]\n"
    "      : (tensor<8x4xf32>, tensor<f32>) -> tensor<f32>\n"
    "  %3 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{\"a\"}, {\"b\"}]>]\n"
    "      out_shardings=[<@mesh, [{\"a\"}, {\"b\"}]>] manual_axes={\"a\", \"b\"} (%arg: tensor<2x2xf32>) {\n"
    "    %4 = \"stablehlo.all_reduce\"(%arg) <{replica_groups = dense<[[0, 1], [2, 3], [4, 5], [6, 7]]> : "
    "tensor<4x2xi64>,\n"
    "        channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({\n"
    "      ^bb0(%l: tensor<f32>, %r: tensor<f32>):\n"
    "        %5 = stablehlo.add %l, %r : tensor<f32>\n"
    "        stablehlo.return %5 : tensor<f32>\n"
    "    }) : (tensor<2x2xf32>) -> tensor<2x2xf32>\n"
    "    sdy.return %4 : tensor<2x2xf32>\n"
    "  } : (tensor<8x4xf32>) -> tensor<8x4xf32>\n"
    "  return %0, %2, %3 : tensor<8x4xf32>, tensor<f32>, tensor<8x4xf32>\n"
    "}\n}\n";

static void test_eight_devices(void **state)
{
    (void)state;
    ct_client *client = ct_test_client(8);
    ct_executable *executable = ct_test_compile(client, spmd_program, &(ct_compile_opts){.num_partitions = 8});
    assert_int_equal(ct_executable_num_devices(executable), 8);
    assert_int_equal(ct_executable_num_outputs(executable), 3);
    ct_executable_memory memory;
    expect_ok(ct_executable_memory_stats(executable, &memory));
    assert_int_equal(memory.argument_bytes, 16); /* per device */
    assert_int_equal(memory.alias_bytes, 16);

    /* Global x[i][j] = 10 i + j; device d = 2 p + q holds rows 2p, 2p+1 and columns 2q, 2q+1. */
    ct_buffer *arguments[8], *outputs[8 * 3];
    ct_event *done[8];
    for (size_t d = 0; d < 8; d++) {
        size_t p = d / 2, q = d % 2;
        float shard[4];
        for (size_t i = 0; i < 4; i++) shard[i] = (float)(10 * (2 * p + i / 2) + 2 * q + i % 2);
        arguments[d] = ct_test_buffer(client, d, shard, 2, (int64_t[]){2, 2});
    }
    expect_ok(ct_executable_execute(executable, arguments, 1,
                                    &(ct_execute_opts){.donated = (bool[]){true}, .out_done = done}, outputs));
    expect_ok(ct_events_await_free(done, 8));
    for (size_t d = 0; d < 8; d++) {
        assert_null(arguments[d]);
        size_t p = d / 2, q = d % 2;
        float doubled[4], total, paired[4];
        ct_test_floats(outputs[d * 3], doubled, 4);
        ct_test_floats(outputs[d * 3 + 1], &total, 1);
        ct_test_floats(outputs[d * 3 + 2], paired, 4);
        assert_true(total == 1168.0f); /* 4 * 280 + 8 * 6 */
        for (size_t i = 0; i < 4; i++) {
            float x = (float)(10 * (2 * p + i / 2) + 2 * q + i % 2);
            float neighbour = (float)(10 * (2 * p + i / 2) + 2 * (1 - q) + i % 2);
            assert_true(doubled[i] == 2 * x);
            assert_true(paired[i] == x + neighbour);
        }
    }
    ct_buffers_free(outputs, 8 * 3);

    ct_arena arena;
    ct_arena_init(&arena);
    ct_hlo_module *module;
    expect_ok(ct_executable_hlo(executable, &arena, &module));
    assert_true(ct_hlo_count(module, "all-reduce") >= 2);
    ct_arena_deinit(&arena);
    ct_executable_free(executable);
    ct_client_free(client);
}

/* relu(x w) with names from our locations. */
static const char dot_program[] =
    "func.func public @main(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>) -> tensor<4x16xf32> {\n"
    "  %0 = \"stablehlo.dot_general\"(%x, %w) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = "
    "[1],\n"
    "      rhs_contracting_dimensions = [0]>}> : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>\n"
    "      loc(\"layers/ffn/w1\")\n"
    "  %1 = stablehlo.constant dense<0.0> : tensor<4x16xf32>\n"
    "  %2 = stablehlo.maximum %0, %1 : tensor<4x16xf32>\n"
    "  return %2 : tensor<4x16xf32>\n"
    "}\n";

static void test_optimized_program(void **state)
{
    (void)state;
    ct_client *client = ct_test_client(1);
    ct_executable *executable = ct_test_compile(client, dot_program, NULL);
    ct_arena arena;
    ct_arena_init(&arena);
    ct_hlo_module *module;
    expect_ok(ct_executable_hlo(executable, &arena, &module));
    assert_non_null(module->entry->root);
    assert_string_equal(module->entry->root->shape, "f32[4,16]{1,0}");
    assert_int_equal(ct_hlo_count(module, "dot"), 1);
    assert_true(ct_hlo_count(module, "parameter") >= 2);
    ct_str text;
    ct_str_init(&text);
    ct_hlo_print(module, &text);
    assert_non_null(strstr(text.data, "ENTRY "));
    assert_non_null(strstr(text.data, "lhs_contracting={1}, rhs_contracting={0}"));
    assert_non_null(strstr(text.data, "layers/ffn/w1"));
    ct_str_deinit(&text);
    expect_error(ct__hlo_read(&arena, "\x0a\x7f", 2, &module), CT_CODE_DATA_LOSS, "cannot be decoded");
    ct_arena_deinit(&arena);

    ct_executable_cost cost;
    ct_status *status = ct_executable_cost_stats(executable, &cost);
    if (ct_status_code(status) == CT_CODE_UNIMPLEMENTED) {
        print_message("SKIPPED: cost analysis: %s\n", ct_status_message(status));
        ct_status_free(status);
    } else {
        expect_ok(status);
        assert_true(cost.flops >= 2.0 * 4 * 8 * 16);
        assert_true(cost.bytes_accessed > 0);
    }
    ct_executable_free(executable);
    ct_client_free(client);
}

/* The same program gives the same bits again, also with flags that only change how it is compiled. */
static void test_flags_and_repeatability(void **state)
{
    (void)state;
    ct_client *client = ct_test_client(1);
    ct_named_value flags[] = {
        {.name = "xla_cpu_enable_fast_math", .type = CT_VALUE_BOOL, .boolean = false},
        {.name = "xla_cpu_parallel_codegen_split_count", .type = CT_VALUE_INT, .integer = 1},
        {.name = "xla_cpu_max_isa", .type = CT_VALUE_TEXT, .text = "AVX2"},
    };
    ct_executable *executable =
        ct_test_compile(client, dot_program, &(ct_compile_opts){.flags = flags, .num_flags = CT_COUNT(flags)});
    float x[32], w[128], first[64], again[64];
    for (int i = 0; i < 32; i++) x[i] = (float)(i * 37 % 11) / 7.0f - 0.6f;
    for (int i = 0; i < 128; i++) w[i] = (float)(i * 53 % 17) / 13.0f - 0.7f;
    ct_buffer *arguments[2] = {ct_test_buffer(client, 0, x, 2, (int64_t[]){4, 8}),
                               ct_test_buffer(client, 0, w, 2, (int64_t[]){8, 16})};
    ct_buffer *output;
    for (int i = 0; i < 20; i++) {
        expect_ok(ct_executable_execute(executable, arguments, 2, NULL, &output));
        ct_test_floats(output, i ? again : first, 64);
        if (i) assert_memory_equal(first, again, sizeof(first));
        ct_buffer_free(output);
    }
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 16; j++) {
            float sum = 0;
            for (int k = 0; k < 8; k++) sum += x[i * 8 + k] * w[k * 16 + j];
            float difference = first[i * 16 + j] - CT_MAX(sum, 0.0f);
            assert_true(difference < 1e-5f && difference > -1e-5f);
        }
    }
    ct_buffers_free(arguments, 2);
    ct_executable_free(executable);
    ct_client_free(client);
}

static void test_save_and_load(void **state)
{
    (void)state;
    ct_client *client = ct_test_client(1);
    char *folder = ct_test_folder_new();
    char *path = ct_path_join(folder, "program");
    ct_executable *executable = ct_test_compile(client, add_program, NULL), *loaded;
    expect_ok(ct_executable_save(executable, path));
    ct_executable_free(executable);
    expect_ok(ct_executable_load(client, path, &loaded));
    ct_buffer *arguments[2] = {ct_test_buffer(client, 0, a_values, 2, sizes),
                               ct_test_buffer(client, 0, b_values, 2, sizes)};
    ct_buffer *outputs[2];
    expect_ok(ct_executable_execute(loaded, arguments, 2, NULL, outputs));
    check_sum(outputs);
    ct_buffers_free(arguments, 2);
    ct_executable_free(loaded);

    char *bytes;
    size_t size;
    expect_ok(ct_file_read(path, &bytes, &size));
    bytes[size - 1] ^= 1;
    expect_ok(ct_file_write(path, bytes, size));
    expect_error(ct_executable_load(client, path, &loaded), CT_CODE_DATA_LOSS, "damaged");
    bytes[size - 1] ^= 1;
    bytes[9] ^= 1; /* in the key */
    expect_ok(ct_file_write(path, bytes, size));
    expect_error(ct_executable_load(client, path, &loaded), CT_CODE_FAILED_PRECONDITION, "another plugin");
    free(bytes);
    free(path);
    ct_test_folder_free(folder);
    ct_client_free(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run),
        cmocka_unit_test(test_donation),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_eight_devices),
        cmocka_unit_test(test_optimized_program),
        cmocka_unit_test(test_flags_and_repeatability),
        cmocka_unit_test(test_save_and_load),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
