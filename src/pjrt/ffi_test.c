/* Kernels in C called from programs: arrays, attributes, errors, threads. */
#include "pjrt/ffi.h"

#include <stdatomic.h>

#include "pjrt/testing.h"

/* result = alpha * x + offset, in parallel by rows. */
typedef struct {
    const float *from;
    float *to;
    size_t row_length;
    float alpha, offset;
    atomic_int num_rows;
} scale_work;

static void scale_row(void *user, size_t row)
{
    scale_work *work = user;
    for (size_t i = row * work->row_length; i < (row + 1) * work->row_length; i++)
        work->to[i] = work->alpha * work->from[i] + work->offset;
    atomic_fetch_add(&work->num_rows, 1);
}

static ct_status *scale(const ct_ffi_call *call)
{
    ct_array from, to;
    double alpha;
    int64_t offset;
    const char *mode;
    size_t mode_length;
    CT_TRY(ct_ffi_argument(call, 0, &from));
    CT_TRY(ct_ffi_result(call, 0, &to));
    CT_TRY(ct_ffi_attribute_float(call, "alpha", &alpha));
    CT_TRY(ct_ffi_attribute_int(call, "offset", &offset));
    CT_TRY(ct_ffi_attribute_text(call, "mode", &mode, &mode_length));
    if (ct_ffi_num_arguments(call) != 1 || ct_ffi_num_results(call) != 1 || from.dtype != CT_DTYPE_F32 ||
        from.rank != 2 || to.sizes[1] != from.sizes[1])
        return ct_error(CT_CODE_INVALID_ARGUMENT, "scale takes one matrix");
    if (mode_length != 6 || memcmp(mode, "affine", 6))
        return ct_error(CT_CODE_INVALID_ARGUMENT, "mode must be affine, found %.*s", (int)mode_length, mode);
    scale_work work = {.from = from.data,
                       .to = to.data,
                       .row_length = (size_t)from.sizes[1],
                       .alpha = (float)alpha,
                       .offset = (float)offset};
    ct_ffi_parallel_for(call, (size_t)from.sizes[0], scale_row, &work);
    if (atomic_load(&work.num_rows) != from.sizes[0]) return ct_error(CT_CODE_INTERNAL, "not all rows were done");
    return NULL;
}
CT_FFI_HANDLER(scale_handler, scale);

static ct_status *demanding(const ct_ffi_call *call)
{
    ct_array array;
    double number;
    int64_t integer;
    ct_status *status = ct_ffi_argument(call, 5, &array);
    if (ct_status_code(status) != CT_CODE_INVALID_ARGUMENT) return ct_error(CT_CODE_INTERNAL, "argument 5 is there");
    ct_status_free(status);
    status = ct_ffi_attribute_float(call, "offset", &number); /* it is an integer */
    if (ct_status_code(status) != CT_CODE_INVALID_ARGUMENT) return ct_error(CT_CODE_INTERNAL, "offset is a float");
    ct_status_free(status);
    status = ct_ffi_attribute_int(call, "mode", &integer); /* it is a string */
    if (ct_status_code(status) != CT_CODE_INVALID_ARGUMENT) return ct_error(CT_CODE_INTERNAL, "mode is a number");
    ct_status_free(status);
    return ct_ffi_attribute_float(call, "temperature", &number);
}
CT_FFI_HANDLER(demanding_handler, demanding);

static char *program(const char *target, const char *mode)
{
    return ct_asprintf("func.func public @main(%%x: tensor<64x33xf32>) -> tensor<64x33xf32> {\n"
                       "  %%0 = stablehlo.add %%x, %%x : tensor<64x33xf32>\n"
                       "  %%1 = stablehlo.custom_call @%s(%%0) {api_version = 4 : i32,\n"
                       "      backend_config = {alpha = 1.5 : f32, offset = -7 : i64, mode = \"%s\"}}\n"
                       "      : (tensor<64x33xf32>) -> tensor<64x33xf32>\n"
                       "  return %%1 : tensor<64x33xf32>\n"
                       "}\n",
                       target, mode);
}

static float values[64 * 33];

/* Runs the program on values; the status is that of compiling, calling or of the work itself. */
static ct_status *run(ct_client *client, const char *target, const char *mode, float *out_values)
{
    char *text = program(target, mode);
    ct_executable *executable;
    ct_status *status = ct_client_compile(client, text, strlen(text), NULL, &executable);
    free(text);
    if (status) return status;
    ct_buffer *argument = ct_test_buffer(client, 0, values, 2, (int64_t[]){64, 33}), *output;
    status = ct_executable_execute(executable, &argument, 1, NULL, &output);
    if (!status) status = ct_buffer_to_host(output, out_values, sizeof(values), NULL);
    ct_buffer_free(argument);
    ct_buffer_free(output);
    ct_executable_free(executable);
    return status;
}

static void test_kernel(void **state)
{
    (void)state;
    ct_client *client = ct_test_client(1);
    ct_plugin *plugin = ct_client_plugin(client);
    expect_ok(ct_ffi_register(plugin, "ct_test_scale", scale_handler));
    for (int i = 0; i < 64 * 33; i++) values[i] = (float)i / 8.0f;
    static float results[64 * 33];
    for (int round = 0; round < 50; round++) {
        memset(results, 0, sizeof(results));
        expect_ok(run(client, "ct_test_scale", "affine", results));
        for (int i = 0; i < 64 * 33; i++) assert_true(results[i] == 1.5f * (2 * values[i]) - 7.0f);
    }
    ct_client_free(client);
}

static void test_errors(void **state)
{
    (void)state;
    ct_client *client = ct_test_client(1);
    ct_plugin *plugin = ct_client_plugin(client);
    expect_ok(ct_ffi_register(plugin, "ct_test_scale", scale_handler)); /* the same again is fine */
    expect_error(ct_ffi_register(plugin, "ct_test_scale", demanding_handler), CT_CODE_ALREADY_EXISTS, "ct_test_scale");
    expect_ok(ct_ffi_register(plugin, "ct_test_demanding", demanding_handler));
    static float results[64 * 33];
    expect_error(run(client, "ct_test_scale", "linear", results), CT_CODE_INVALID_ARGUMENT,
                 "mode must be affine, found linear");
    expect_error(run(client, "ct_test_demanding", "affine", results), CT_CODE_NOT_FOUND,
                 "wants the attribute temperature");
    ct_status *status = run(client, "ct_test_unregistered", "affine", results);
    assert_non_null(status);
    assert_non_null(strstr(ct_status_message(status), "ct_test_unregistered"));
    ct_status_free(status);
    ct_client_free(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernel),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
