#include "train/profile.h"

#include <fake_profiler.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/testing.h"
#include "formats/json.h"

static ct_json *read_trace(const char *folder, const char *iteration)
{
    char *path = ct_asprintf("%s/%s/rank0_trace.json", folder, iteration);
    ct_json *json;
    expect_ok(ct_json_read(path, &json));
    free(path);
    return json;
}

/* Spans of a name and a step, each within the trace. */
static size_t count_spans(const ct_json *json, const char *name, int64_t step)
{
    size_t count = 0;
    ct_json_iter iter = ct_json_iterate(ct_json_get(ct_json_root(json), "traceEvents"));
    while (ct_json_next(&iter)) {
        const char *phase, *found;
        expect_ok(ct_json_need_string(iter.value, "ph", &phase));
        expect_ok(ct_json_need_string(iter.value, "name", &found));
        if (strcmp(phase, "X") != 0 || strcmp(found, name) != 0) continue;
        int64_t of_step;
        double start, length;
        expect_ok(ct_json_need_int(ct_json_get(iter.value, "args"), "step", &of_step));
        expect_ok(ct_json_need_double(iter.value, "ts", &start));
        expect_ok(ct_json_need_double(iter.value, "dur", &length));
        assert_true(start >= 0 && length >= 0 && start + length < 60e6);
        count += of_step == step;
    }
    return count;
}

/* Ten steps; 4 and 5, 9 and 10 are traced. */
static void test_windows(void **state)
{
    (void)state;
    ct_log_set_level(CT_LOG_ERROR);
    char *folder = ct_test_folder_new();
    ct_profile *profile = ct_profile_new(&(ct_profile_opts){.folder = folder, .freq = 5, .active = 2});
    for (int64_t step = 1; step <= 10; step++) {
        if (ct_profile_begins(profile, step)) {
            assert_true(step == 4 || step == 9);
            expect_ok(ct_profile_begin(profile));
        }
        double start = ct_clock_seconds();
        ct_profile_span(profile, CT_PROFILE_HOST, "launch", step, start);
        ct_profile_span(profile, CT_PROFILE_STEPS, "step", step, start);
        ct_profile_span(profile, CT_PROFILE_HOST, "data wait", step, start - 100); /* began before the trace */
        assert_int_equal(ct_profile_ends(profile, step), step == 5 || step == 10);
        if (ct_profile_ends(profile, step)) expect_ok(ct_profile_end(profile, step));
    }
    ct_profile_free(profile);
    ct_json *first = read_trace(folder, "iteration_5"), *second = read_trace(folder, "iteration_10");
    for (int64_t step = 1; step <= 10; step++) {
        assert_int_equal(count_spans(first, "launch", step), step == 4 || step == 5);
        assert_int_equal(count_spans(first, "step", step), step == 4 || step == 5);
        assert_int_equal(count_spans(second, "step", step), step == 9 || step == 10);
        assert_int_equal(count_spans(first, "data wait", step), 0);
    }
    ct_json_free(first);
    ct_json_free(second);
    ct_test_folder_free(folder);
}

/* What the plugin saw lies where XProf and TensorBoard look, beside the host's spans. */
static void test_plugin_trace(void **state)
{
    (void)state;
    ct_log_set_level(CT_LOG_ERROR);
    ct_plugin *plugin;
    expect_ok(ct_plugin_load(&(ct_plugin_opts){.path = CT_FAKE_PLUGIN}, &plugin));
    char *folder = ct_test_folder_new(), host[256] = "";
    assert_int_equal(gethostname(host, sizeof(host) - 1), 0);
    ct_profile *profile =
        ct_profile_new(&(ct_profile_opts){.folder = folder, .freq = 3, .active = 1, .plugin = plugin});
    expect_ok(ct_profile_begin(profile));
    expect_ok(ct_profile_end(profile, 3));
    char *path = ct_asprintf("%s/plugins/profile/iteration_3/%s.xplane.pb", folder, host), *bytes;
    size_t size;
    expect_ok(ct_file_read(path, &bytes, &size));
    assert_int_equal(size, sizeof(FAKE_PROFILER_SEEN) - 1);
    assert_memory_equal(bytes, FAKE_PROFILER_SEEN, size);
    ct_json_free(read_trace(folder, "iteration_3"));
    free(bytes);
    free(path);
    setenv("FAKE_PLUGIN_PROFILER", "collect", 1);
    expect_ok(ct_profile_begin(profile));
    expect_error(ct_profile_end(profile, 6), CT_CODE_INTERNAL, "nothing was seen");
    unsetenv("FAKE_PLUGIN_PROFILER");
    expect_ok(ct_profile_begin(profile));
    ct_profile_free(profile); /* with a trace under way */
    ct_test_folder_free(folder);
}

static void test_no_profile(void **state)
{
    (void)state;
    assert_false(ct_profile_begins(NULL, 1));
    assert_false(ct_profile_ends(NULL, 1));
    ct_profile_span(NULL, CT_PROFILE_HOST, "launch", 1, 0);
    ct_profile_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_windows), cmocka_unit_test(test_plugin_trace),
                                       cmocka_unit_test(test_no_profile)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
