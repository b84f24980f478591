/* The profiler that libtpu brings, of which no source is public. It runs without a device. Skipped where there is no
 * libtpu.
 */
#include "pjrt/profiler.h"

#include "pjrt/testing.h"

static void test_trace(void **state)
{
    (void)state;
    ct_plugin *plugin = ct_test_libtpu();
    assert_true(ct_profiler_is_there(plugin));
    for (int i = 0; i < 2; i++) {
        ct_profiler *profiler;
        ct_str trace;
        ct_str_init(&trace);
        expect_ok(ct_profiler_start(plugin, &profiler));
        ct_topology *topology; /* something to see */
        expect_ok(ct_topology_new(plugin, "v5e:2x2", NULL, 0, &topology));
        ct_topology_free(topology);
        expect_ok(ct_profiler_stop(profiler, &trace));
        assert_true(trace.length > 0 && trace.data[0] == '\x0a'); /* XSpace.planes */
        print_message("%zu bytes\n", trace.length);
        ct_str_deinit(&trace);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_trace)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
