/* Everything that a plugin can do wrong must become a status: the Nth call fails for every N, events come late or
 * broken, answers are lies, the table is old or short. After each, the fake has all its objects back.
 */
#include <dlfcn.h>
#include <fake_plugin.h>
#include <fake_profiler.h>

#include "base/log.h"
#include "pjrt/hlo.h"
#include "pjrt/profiler.h"
#include "pjrt/testing.h"
#include "pjrt/torus.h"

static fake_control *fake;
static ct_plugin *plugin;
static const char text[] = "any text will do";

static void load_fake(void)
{
    if (plugin) return;
    expect_ok(ct_plugin_load(&(ct_plugin_opts){.path = CT_FAKE_PLUGIN}, &plugin));
    void *library = dlopen(CT_FAKE_PLUGIN, RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(library);
    fake_plugin_control_function *get_control;
    void *symbol = dlsym(library, "fake_plugin_control");
    memcpy(&get_control, &symbol, sizeof(get_control));
    fake = get_control();
}

static void reset(void)
{
    void (*release)(void) = fake->release;
    release();
    *fake = (fake_control){.release = release};
}

static void count_call(void *user, ct_status *error)
{
    ++*(int *)user;
    ct_status_free(error);
}

static ct_status *use_buffers(ct_client *client, ct_buffer **buffer, ct_buffer **copies)
{
    float values[6] = {1, 2, 3, 4, 5, 6}, back[6];
    ct_device *device = ct_client_addressable_device(client, 0), *found;
    ct_array array = {.dtype = CT_DTYPE_F32, .rank = 2, .sizes = {2, 3}, .data = values}, read;
    ct_event *event = NULL;
    static int num_calls; /* outlives late callbacks */
    CT_TRY(ct_buffer_from_host(device, &array, NULL, &event, buffer));
    CT_TRY(ct_events_await_free(&event, 1));
    CT_TRY(ct_buffer_ready_event(*buffer, &event));
    bool is_ready;
    ct_status *status = ct_event_is_ready(event, &is_ready);
    if (!status) status = ct_event_on_ready(event, count_call, &num_calls);
    ct_event_free(event);
    if (status) return status;
    CT_TRY(ct_buffer_to_host(*buffer, back, sizeof(back), NULL));
    assert_memory_equal(values, back, sizeof(back));
    CT_TRY(ct_buffer_to_array(*buffer, &read));
    ct_array_free(&read);
    size_t size;
    const ct_memory *memory;
    CT_TRY(ct_buffer_device_bytes(*buffer, &size));
    CT_TRY(ct_buffer_device(*buffer, &found));
    CT_TRY(ct_buffer_memory(*buffer, &memory));
    CT_TRY(ct_device_memory(device, "device", &memory));
    CT_TRY(ct_buffer_copy_to_device(*buffer, ct_client_addressable_device(client, 1), &copies[0]));
    CT_TRY(ct_buffer_copy_to_memory(*buffer, memory, &copies[1]));
    CT_TRY(ct_buffer_delete(copies[1]));
    return ct_buffer_is_deleted(copies[1], &is_ready);
}

static ct_status *use_executable(ct_executable *executable, ct_buffer **arguments)
{
    ct_array shape;
    ct_executable_memory memory;
    ct_executable_cost cost;
    ct_device *device;
    char format[32], *bytes;
    size_t size;
    CT_TRY(ct_executable_output_shape(executable, 1, &shape));
    CT_TRY(ct_executable_device(executable, 0, &device));
    CT_TRY(ct_executable_memory_stats(executable, &memory));
    CT_TRY(ct_executable_cost_stats(executable, &cost));
    CT_TRY(ct_executable_optimized(executable, format, &bytes, &size));
    free(bytes);
    ct_buffer *outputs[4];
    ct_event *done[2];
    ct_execute_opts opts = {.donated = (bool[]){true}, .out_done = done};
    ct_status *status = ct_executable_execute(executable, arguments, 1, &opts, outputs);
    if (status) { /* nothing was taken, nothing given */
        assert_non_null(arguments[0]);
        for (int i = 0; i < 4; i++) assert_null(outputs[i]);
        for (int i = 0; i < 2; i++) assert_null(done[i]);
        return status;
    }
    assert_null(arguments[0]);
    status = ct_events_await_free(done, 2);
    float back[6];
    if (!status) status = ct_buffer_to_host(outputs[3], back, sizeof(back), NULL);
    ct_buffers_free(outputs, 4);
    return status;
}

static ct_status *use_topology(void)
{
    ct_topology *topology;
    ct_executable *executable = NULL;
    CT_TRY(ct_topology_new(plugin, "fake:2", NULL, 0, &topology));
    ct_torus torus;
    int ids[2];
    ct_status *status = ct_topology_torus(topology, 0, &torus, ids);
    ct_compile_opts opts = {.num_partitions = 2, .device_ids = ids};
    if (!status) status = ct_topology_compile(topology, text, sizeof(text), &opts, &executable);
    ct_topology_free(topology);
    ct_executable_free(executable);
    return status;
}

/* All of the module once; the first error, with everything given back. */
static ct_status *scenario(const char *folder)
{
    ct_client *client = NULL;
    ct_buffer *buffer = NULL, *copies[2] = {NULL};
    ct_buffer *arguments[2] = {NULL};
    ct_executable *executable = NULL, *loaded = NULL;
    char *path = ct_path_join(folder, "saved");
    ct_memory_stats stats;
    ct_status *status = NULL;
    CT_TRY_OUT(ct_client_new(plugin, &(ct_client_opts){.device_count = 2}, &client));
    CT_TRY_OUT(ct_device_memory_stats(ct_client_device(client, 1), &stats));
    CT_TRY_OUT(use_buffers(client, &buffer, copies));
    ct_compile_opts opts = {.num_partitions = 2, .cache_folder = folder};
    CT_TRY_OUT(ct_client_compile(client, text, sizeof(text), &opts, &executable));
    arguments[0] = buffer;
    arguments[1] = copies[0];
    buffer = copies[0] = NULL;
    CT_TRY_OUT(use_executable(executable, arguments));
    CT_TRY_OUT(ct_executable_save(executable, path));
    CT_TRY_OUT(ct_executable_load(client, path, &loaded));
    CT_TRY_OUT(use_topology());
out:
    ct_buffer_free(buffer);
    ct_buffers_free(copies, 2);
    ct_buffers_free(arguments, 2);
    ct_executable_free(executable);
    ct_executable_free(loaded);
    ct_client_free(client);
    free(path);
    return status;
}

static void check_all_returned(void)
{
    fake->release();
    assert_int_equal(fake->num_live, 0);
    assert_int_equal(fake->num_short_args, 0);
}

static void test_honest(void **state)
{
    (void)state;
    load_fake();
    reset();
    char *folder = ct_test_folder_new();
    expect_ok(scenario(folder));
    assert_int_equal(fake->num_donated, 2);
    check_all_returned();
    assert_string_equal(ct_plugin_stablehlo_version(plugin), "1.2.3");
    ct_test_folder_free(folder);
}

/* Calls whose error is not the caller's: clean-up, and the cache, which only warns. */
static bool may_pass(const char *call)
{
    return strstr(call, "Destroy") || !strcmp(call, "PJRT_Executable_Serialize") ||
           !strcmp(call, "PJRT_Executable_DeserializeAndLoad");
}

static void test_every_call_fails_once(void **state)
{
    (void)state;
    load_fake();
    int num_failures = 0;
    for (int warm = 0; warm < 2; warm++) { /* with an empty cache, and with the program in it */
        for (int n = 1;; n++) {
            char *folder = ct_test_folder_new();
            reset();
            if (warm) expect_ok(scenario(folder));
            fake->num_calls = 0;
            fake->fail_at = n;
            ct_status *status = scenario(folder);
            bool has_failed = fake->has_failed;
            if (!status && has_failed && !may_pass(fake->failed_call)) {
                /* Loading a cached program is more than one call; the program is compiled instead. */
                if (!warm) fail_msg("call %d, %s, failed and nobody noticed", n, fake->failed_call);
            }
            if (status) {
                assert_true(has_failed);
                assert_int_equal(ct_status_code(status), CT_CODE_RESOURCE_EXHAUSTED);
                assert_non_null(strstr(ct_status_message(status), "fake: PJRT_"));
            }
            ct_status_free(status);
            check_all_returned();
            ct_test_folder_free(folder);
            if (!has_failed) break;
            num_failures++;
        }
    }
    assert_true(num_failures > 150);
}

static void test_lies(void **state)
{
    (void)state;
    load_fake();
    char *folder = ct_test_folder_new();
    for (int lie = FAKE_HONEST + 1; lie < FAKE_NUM_LIES; lie++) {
        expect_ok(ct_dir_remove(folder));
        expect_ok(ct_dir_make(folder));
        reset();
        fake->lie = (fake_lie)lie;
        if (lie == FAKE_STRANGE_CODE || lie == FAKE_OK_CODE) fake->fail_at = 1;
        ct_status *status = scenario(folder);
        switch (lie) {
        case FAKE_NOT_A_PROGRAM: assert_null(status); break; /* only a reader of it can tell */
        case FAKE_STRANGE_CODE:
        case FAKE_OK_CODE: assert_int_equal(ct_status_code(status), CT_CODE_UNKNOWN); break;
        default: assert_non_null(status);
        }
        ct_status_free(status);
        check_all_returned();
    }
    ct_test_folder_free(folder);
}

static void test_plugin_that_cannot_serialize(void **state)
{
    (void)state;
    load_fake();
    reset();
    fake->lie = FAKE_NO_SERIAL;
    char *folder = ct_test_folder_new();
    ct_client *client;
    ct_executable *executable;
    expect_ok(ct_client_new(plugin, NULL, &client));
    for (int i = 0; i < 2; i++) {
        expect_ok(
            ct_client_compile(client, text, sizeof(text), &(ct_compile_opts){.cache_folder = folder}, &executable));
        assert_false(ct_executable_is_from_cache(executable));
        ct_executable_free(executable);
    }
    fake->lie = FAKE_BAD_SERIAL; /* writes entries that do not load again */
    for (int i = 0; i < 2; i++) {
        expect_ok(
            ct_client_compile(client, text, sizeof(text), &(ct_compile_opts){.cache_folder = folder}, &executable));
        assert_false(ct_executable_is_from_cache(executable));
        ct_executable_free(executable);
    }
    fake->lie = FAKE_NOT_A_PROGRAM;
    expect_ok(ct_client_compile(client, text, sizeof(text), NULL, &executable));
    ct_arena arena;
    ct_arena_init(&arena);
    ct_hlo_module *module;
    expect_error(ct_executable_hlo(executable, &arena, &module), CT_CODE_DATA_LOSS, "cannot be decoded");
    ct_arena_deinit(&arena);
    ct_executable_free(executable);
    ct_client_free(client);
    check_all_returned();
    ct_test_folder_free(folder);
}

static void test_late_and_broken_events(void **state)
{
    (void)state;
    load_fake();
    reset();
    fake->delays_events = true;
    ct_client *client;
    expect_ok(ct_client_new(plugin, NULL, &client));
    float values[2] = {1, 2};
    ct_array array = {.dtype = CT_DTYPE_F32, .rank = 1, .sizes = {2}, .data = values};
    ct_buffer *buffer;
    ct_event *done, *forgotten;
    int num_calls = 0;
    expect_ok(ct_buffer_from_host(ct_client_device(client, 0), &array, NULL, &done, &buffer));
    bool is_ready;
    expect_ok(ct_event_is_ready(done, &is_ready));
    assert_false(is_ready);
    expect_ok(ct_event_on_ready(done, count_call, &num_calls));
    expect_ok(ct_buffer_ready_event(buffer, &forgotten));
    ct_event_free(forgotten); /* before it is ready */
    assert_int_equal(num_calls, 0);
    expect_ok(ct_event_await(done)); /* the fake releases all */
    assert_int_equal(num_calls, 1);
    ct_event_free(done);

    fake->delays_events = false;
    fake->breaks_events = true;
    expect_error(ct_buffer_to_host(buffer, values, sizeof(values), NULL), CT_CODE_DATA_LOSS, "the work broke");
    ct_event *events[3] = {NULL};
    expect_ok(ct_buffer_ready_event(buffer, &events[0]));
    expect_ok(ct_buffer_ready_event(buffer, &events[2]));
    expect_error(ct_events_await_free(events, 3), CT_CODE_DATA_LOSS, "the work broke");
    ct_buffer_free(buffer);
    ct_client_free(client);
    check_all_returned();
}

/* Tables that cannot be used are refused with the reason. */
static void test_refused_tables(void **state)
{
    (void)state;
    static const struct {
        const char *kind;
        ct_code code;
        const char *message;
    } cases[] = {
        {"null", CT_CODE_INVALID_ARGUMENT, "returned nothing"},
        {"tiny", CT_CODE_FAILED_PRECONDITION, "too short for a version"},
        {"major", CT_CODE_FAILED_PRECONDITION, "has PJRT API 1.81; this build needs 0.x"},
        {"short", CT_CODE_FAILED_PRECONDITION, "use a newer plugin"},
        {"mute", CT_CODE_FAILED_PRECONDITION, "cannot report errors"},
    };
    char *folder = ct_test_folder_new(), *copy = ct_path_join(folder, "plugin.so"), *bytes;
    size_t size;
    expect_ok(ct_file_read(CT_FAKE_PLUGIN, &bytes, &size));
    expect_ok(ct_file_write(copy, bytes, size));
    for (size_t i = 0; i < CT_COUNT(cases); i++) {
        setenv("FAKE_PLUGIN_TABLE", cases[i].kind, 1);
        ct_plugin *refused;
        expect_error(ct_plugin_load(&(ct_plugin_opts){.path = copy}, &refused), cases[i].code, cases[i].message);
        assert_null(refused);
    }
    unsetenv("FAKE_PLUGIN_TABLE");
    free(bytes);
    free(copy);
    ct_test_folder_free(folder);
}

/* An old plugin works but for what it lacks. */
static void test_old_table(void **state)
{
    (void)state;
    char *folder = ct_test_folder_new(), *bytes;
    size_t size;
    expect_ok(ct_file_read(CT_FAKE_PLUGIN, &bytes, &size));
    static const char *const kinds[] = {"old", "bare"};
    for (int i = 0; i < 2; i++) {
        char *copy = ct_path_join(folder, kinds[i]);
        expect_ok(ct_file_write(copy, bytes, size));
        setenv("FAKE_PLUGIN_TABLE", kinds[i], 1);
        ct_plugin *old;
        expect_ok(ct_plugin_load(&(ct_plugin_opts){.path = copy}, &old));
        ct_client *client;
        expect_ok(ct_client_new(old, NULL, &client));
        float values[6] = {1, 2, 3, 4, 5, 6};
        ct_buffer *arguments[2] = {ct_test_buffer(client, 0, values, 1, (int64_t[]){6}),
                                   ct_test_buffer(client, 1, values, 1, (int64_t[]){6})};
        ct_buffer *outputs[4], *copied;
        ct_executable *executable = ct_test_compile(client, text, &(ct_compile_opts){.cache_folder = folder});
        expect_ok(ct_executable_execute(executable, arguments, 1, NULL, outputs));
        ct_test_floats(outputs[0], values, 6);
        ct_array shape;
        expect_error(ct_executable_output_shape(executable, 0, &shape), CT_CODE_UNIMPLEMENTED,
                     "PJRT_Executable_OutputElementTypes is not in the plugin");
        expect_error(ct_buffer_copy_to_memory(outputs[0], ct_client_memory(client, 0), &copied), CT_CODE_UNIMPLEMENTED,
                     "PJRT API 0.20");
        ct_memory_stats stats;
        expect_ok(ct_device_memory_stats(ct_client_device(client, 0), &stats));
        assert_int_equal(stats.bytes_in_use, i ? -1 : 1000);
        ct_topology *topology;
        ct_status *status = ct_topology_new(old, "any", NULL, 0, &topology);
        assert_int_equal(ct_status_code(status), i ? CT_CODE_UNIMPLEMENTED : CT_CODE_OK);
        ct_status_free(status);
        ct_topology_free(topology);
        ct_buffers_free(arguments, 2);
        ct_buffers_free(outputs, 4);
        ct_executable_free(executable);
        ct_client_free(client);
        free(copy);
    }
    unsetenv("FAKE_PLUGIN_TABLE");
    free(bytes);
    ct_test_folder_free(folder);
}

/* Loading itself fails at its first and second call; then it works. Runs first, before the fake is loaded. */
static void test_loading_fails(void **state)
{
    (void)state;
    void *library = dlopen(CT_FAKE_PLUGIN, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    fake_plugin_control_function *get_control;
    void *symbol = dlsym(library, "fake_plugin_control");
    memcpy(&get_control, &symbol, sizeof(get_control));
    for (int n = 1; n <= 2; n++) {
        get_control()->num_calls = 0;
        get_control()->fail_at = n;
        ct_plugin *refused;
        expect_error(ct_plugin_load(&(ct_plugin_opts){.path = CT_FAKE_PLUGIN}, &refused), CT_CODE_RESOURCE_EXHAUSTED,
                     n == 1 ? "PJRT_Plugin_Initialize" : "PJRT_Plugin_Attributes");
        assert_int_equal(get_control()->num_live, 0);
    }
    get_control()->fail_at = 0;
    load_fake();
}

static void profile_as(const char *wish, const char *error)
{
    setenv("FAKE_PLUGIN_PROFILER", wish, 1);
    ct_profiler *profiler;
    ct_str trace;
    ct_str_init(&trace);
    ct_status *status = ct_profiler_start(plugin, &profiler);
    if (!status)
        status = ct_profiler_stop(profiler, &trace);
    else
        assert_null(profiler);
    if (error) {
        expect_error(status, CT_CODE_INTERNAL, error);
    } else {
        expect_ok(status);
        assert_int_equal(trace.length, sizeof(FAKE_PROFILER_SEEN) - 1);
        assert_memory_equal(trace.data, FAKE_PROFILER_SEEN, trace.length);
    }
    assert_int_equal(fake->num_live, 0);
    ct_str_deinit(&trace);
    unsetenv("FAKE_PLUGIN_PROFILER");
}

static void test_profiler(void **state)
{
    (void)state;
    load_fake();
    reset();
    assert_true(ct_profiler_is_there(plugin));
    profile_as("lend", NULL);
    profile_as("copy", NULL);
    profile_as("start", "profiler cannot start: another one runs");
    profile_as("collect", "nothing was seen");
    profile_as("broken", "XSpace message of 5 bytes, but only 0 are whole");
}

int main(void)
{
    ct_log_set_level(CT_LOG_ERROR);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loading_fails),
        cmocka_unit_test(test_honest),
        cmocka_unit_test(test_every_call_fails_once),
        cmocka_unit_test(test_lies),
        cmocka_unit_test(test_plugin_that_cannot_serialize),
        cmocka_unit_test(test_late_and_broken_events),
        cmocka_unit_test(test_refused_tables),
        cmocka_unit_test(test_old_table),
        cmocka_unit_test(test_profiler),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
