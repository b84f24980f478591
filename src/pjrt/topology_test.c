/* Topologies without libtpu: names that are none, the order of devices, which slices are rings. */
#include "pjrt/testing.h"
#include "pjrt/torus.h"

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

static void test_devices_without_coordinates(void **state)
{
    (void)state;
    ct_client *client = ct_test_client(3);
    ct_torus torus;
    int ids[3];
    expect_ok(ct_client_torus(client, 0, &torus, ids));
    assert_int_equal(torus.num_axes, 1);
    assert_int_equal(torus.sizes[0], 3);
    assert_int_equal(torus.names[0], '-');
    for (int i = 0; i < 3; i++) assert_int_equal(ids[i], ct_device_id(ct_client_device(client, (size_t)i)));
    ct_client_free(client);
}

static void test_rings(void **state)
{
    (void)state;
    static const struct {
        int num_axes;
        int64_t sizes[3];
        bool wraps[3];
    } rows[] = {
        {2, {2, 4}, {0}},
        {2, {8, 16}, {false, true}},
        {2, {16, 16}, {true, true}},
        {3, {2, 2, 4}, {0}},
        {3, {2, 4, 4}, {0}},
        {3, {4, 4, 4}, {true, true, true}},
        {3, {4, 4, 8}, {true, true, true}},
    };
    for (size_t i = 0; i < CT_COUNT(rows); i++) {
        bool wraps[3];
        ct_tpu_slice_wraps(rows[i].num_axes, rows[i].sizes, wraps);
        for (int j = 0; j < rows[i].num_axes; j++) assert_int_equal(wraps[j], rows[i].wraps[j]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cpu_names_no_topology),
        cmocka_unit_test(test_devices_without_coordinates),
        cmocka_unit_test(test_rings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
