/* What tests that run programs share: the plugin under test (CTITAN_PLUGIN_PATH, else the default), clients, arrays.
 * For _test.c files only.
 */
#ifndef CT_PJRT_TESTING_H
#define CT_PJRT_TESTING_H

#include "base/testing.h"
#include "pjrt/executable.h"
#include "pjrt/torus.h"

static inline ct_plugin *ct_test_plugin(void)
{
    ct_plugin *plugin;
    setenv("TF_CPP_MIN_LOG_LEVEL", "3", 0);
    expect_ok(ct_plugin_load(&(ct_plugin_opts){.path = getenv("CTITAN_PLUGIN_PATH")}, &plugin));
    return plugin;
}

/* libtpu, to compile with: CTITAN_TEST_LIBTPU names it, else tools/setup --tests has put it in place. Skips the test
 * where there is none or CTITAN_NO_LIBTPU is set. */
static inline ct_plugin *ct_test_libtpu(void)
{
    const char *unwanted = getenv("CTITAN_NO_LIBTPU");
    if (unwanted && unwanted[0] && strcmp(unwanted, "0")) {
        print_message("SKIPPED: compiling for TPUs: CTITAN_NO_LIBTPU is set\n");
        skip();
    }
    setenv("TPU_STDERR_LOG_LEVEL", "3", 0);
    for (const char *const *pair = ct_tpu_offline_environment; *pair; pair += 2) setenv(pair[0], pair[1], 0);
    ct_plugin *plugin;
    ct_plugin_opts opts = {.platform = "tpu", .path = getenv("CTITAN_TEST_LIBTPU")};
    ct_status *status = ct_plugin_load(&opts, &plugin);
    if (ct_status_code(status) == CT_CODE_NOT_FOUND && !opts.path) {
        ct_status_free(status);
        print_message("SKIPPED: compiling for TPUs: no libtpu.so; tools/setup --tests fetches it\n");
        skip();
    }
    expect_ok(status);
    return plugin;
}

static inline ct_client *ct_test_client(int device_count)
{
    ct_client *client;
    expect_ok(ct_client_new(ct_test_plugin(), &(ct_client_opts){.device_count = device_count}, &client));
    return client;
}

static inline ct_executable *ct_test_compile(ct_client *client, const char *text, const ct_compile_opts *opts)
{
    ct_executable *executable;
    expect_ok(ct_client_compile(client, text, strlen(text), opts, &executable));
    return executable;
}

/* A device buffer of f32 values. */
static inline ct_buffer *ct_test_buffer(ct_client *client, size_t device, const float *values, int rank,
                                        const int64_t *sizes)
{
    ct_array array = {.dtype = CT_DTYPE_F32, .rank = rank, .data = (void *)(uintptr_t)values};
    for (int i = 0; i < rank; i++) array.sizes[i] = sizes[i];
    ct_buffer *buffer;
    expect_ok(ct_buffer_from_host(ct_client_addressable_device(client, device), &array, NULL, NULL, &buffer));
    return buffer;
}

/* The buffer's f32 values, which must be count. */
static inline void ct_test_floats(ct_buffer *buffer, float *out_values, size_t count)
{
    expect_ok(ct_buffer_to_host(buffer, out_values, count * sizeof(*out_values), NULL));
}

#endif
