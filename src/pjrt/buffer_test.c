/* Transfers in all dtypes, their events, and what a buffer knows of itself. */
#include "pjrt/buffer.h"

#include <pthread.h>

#include "pjrt/testing.h"

static void test_round_trips(void **state)
{
    (void)state;
    ct_client *client = ct_test_client(2);
    static const struct {
        int rank;
        int64_t sizes[4];
    } shapes[] = {{0, {0}}, {1, {7}}, {2, {3, 5}}, {4, {2, 3, 1, 4}}, {2, {0, 4}}};
    for (ct_dtype dtype = CT_DTYPE_BOOL; dtype < CT_NUM_DTYPES; dtype++) {
        for (size_t s = 0; s < CT_COUNT(shapes); s++) {
            ct_array array = ct_array_new(dtype, shapes[s].sizes, shapes[s].rank);
            for (int64_t i = 0; i < ct_array_num_elements(&array); i++)
                ct_array_set(&array, i, dtype == CT_DTYPE_BOOL ? (double)(i % 2) : (double)(i % 100));
            ct_device *device = ct_client_addressable_device(client, s % 2), *found;
            ct_buffer *buffer;
            ct_event *done;
            expect_ok(ct_buffer_from_host(device, &array, NULL, &done, &buffer));
            expect_ok(ct_event_await(done));
            ct_event_free(done);
            ct_array shape, back;
            expect_ok(ct_buffer_shape(buffer, &shape));
            assert_int_equal(shape.dtype, dtype);
            assert_int_equal(shape.rank, array.rank);
            for (int i = 0; i < shape.rank; i++) assert_int_equal(shape.sizes[i], array.sizes[i]);
            size_t device_bytes;
            expect_ok(ct_buffer_device_bytes(buffer, &device_bytes));
            assert_true(device_bytes >= ct_array_bytes(&array));
            expect_ok(ct_buffer_device(buffer, &found));
            assert_ptr_equal(found, device);
            expect_ok(ct_buffer_to_array(buffer, &back));
            assert_memory_equal(back.data, array.data, ct_array_bytes(&array));
            ct_array_free(&back);
            ct_array_free(&array);
            ct_buffer_free(buffer);
        }
    }
    ct_client_free(client);
}

/* Without a done event the host memory is ours again at once; with one, when it is ready. */
static void test_host_memory_is_free_again(void **state)
{
    (void)state;
    ct_client *client = ct_test_client(1);
    enum { COUNT = 1 << 20 };
    float *values = ct_alloc(COUNT * sizeof(*values)), *back = ct_alloc(COUNT * sizeof(*back));
    for (int with_event = 0; with_event < 2; with_event++) {
        for (int i = 0; i < COUNT; i++) values[i] = (float)i;
        ct_array array = {.dtype = CT_DTYPE_F32, .rank = 1, .sizes = {COUNT}, .data = values};
        ct_buffer *buffer;
        ct_event *done = NULL;
        expect_ok(ct_buffer_from_host(ct_client_addressable_device(client, 0), &array, NULL, with_event ? &done : NULL,
                                      &buffer));
        if (done) expect_ok(ct_event_await(done));
        ct_event_free(done);
        memset(values, 0xff, COUNT * sizeof(*values));
        ct_test_floats(buffer, back, COUNT);
        for (int i = 0; i < COUNT; i++) assert_true(back[i] == (float)i);
        ct_buffer_free(buffer);
    }
    free(values);
    free(back);
    ct_client_free(client);
}

typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t called_once;
    int num_calls;
    bool failed;
} ready_state;

static void on_ready(void *user, ct_status *error)
{
    ready_state *ready = user;
    pthread_mutex_lock(&ready->lock);
    ready->num_calls++;
    ready->failed = error != NULL;
    pthread_cond_signal(&ready->called_once);
    pthread_mutex_unlock(&ready->lock);
    ct_status_free(error);
}

static void test_events(void **state)
{
    (void)state;
    ct_client *client = ct_test_client(1);
    float values[4] = {1, 2, 3, 4}, back[4];
    ct_buffer *buffer = ct_test_buffer(client, 0, values, 1, (int64_t[]){4});
    ready_state ready = {.lock = PTHREAD_MUTEX_INITIALIZER, .called_once = PTHREAD_COND_INITIALIZER};
    ct_event *event;
    expect_ok(ct_buffer_ready_event(buffer, &event));
    expect_ok(ct_event_on_ready(event, on_ready, &ready));
    ct_event_free(event);
    pthread_mutex_lock(&ready.lock);
    while (!ready.num_calls) pthread_cond_wait(&ready.called_once, &ready.lock);
    pthread_mutex_unlock(&ready.lock);
    assert_int_equal(ready.num_calls, 1);
    assert_false(ready.failed);

    ct_event *done[2] = {NULL};
    expect_ok(ct_buffer_to_host(buffer, back, sizeof(back), &done[1]));
    expect_ok(ct_event_await(done[1]));
    bool is_ready;
    expect_ok(ct_event_is_ready(done[1], &is_ready));
    assert_true(is_ready);
    expect_ok(ct_events_await_free(done, 2));
    assert_null(done[1]);
    assert_memory_equal(back, values, sizeof(values));
    ct_buffer_free(buffer);
    ct_client_free(client);
}

static void test_copies_and_deletion(void **state)
{
    (void)state;
    ct_client *client = ct_test_client(2);
    float values[3] = {1, 2, 3}, back[3] = {0};
    ct_buffer *buffer = ct_test_buffer(client, 0, values, 1, (int64_t[]){3}), *copy;
    ct_device *second = ct_client_addressable_device(client, 1), *found;
    expect_ok(ct_buffer_copy_to_device(buffer, second, &copy));
    expect_ok(ct_buffer_device(copy, &found));
    assert_ptr_equal(found, second);
    bool is_deleted;
    expect_ok(ct_buffer_is_deleted(buffer, &is_deleted));
    assert_false(is_deleted);
    expect_ok(ct_buffer_delete(buffer));
    expect_ok(ct_buffer_is_deleted(buffer, &is_deleted));
    assert_true(is_deleted);
    ct_status *status = ct_buffer_to_host(buffer, back, sizeof(back), NULL);
    assert_non_null(status);
    ct_status_free(status);
    ct_test_floats(copy, back, 3);
    assert_memory_equal(back, values, sizeof(values));
    ct_buffer_free(buffer);
    ct_buffer_free(copy);

    const ct_memory *memory, *held;
    if (ct_status_code(status = ct_device_memory(second, "pinned_host", &memory)) == CT_CODE_OK) {
        ct_array array = {.dtype = CT_DTYPE_F32, .rank = 1, .sizes = {3}, .data = values};
        expect_ok(ct_buffer_from_host(second, &array, &(ct_buffer_opts){.memory = memory}, NULL, &buffer));
        expect_ok(ct_buffer_memory(buffer, &held));
        assert_ptr_equal(held, memory);
        expect_ok(ct_buffer_copy_to_memory(buffer, ct_device_default_memory(second), &copy));
        expect_ok(ct_buffer_memory(copy, &held));
        assert_ptr_equal(held, ct_device_default_memory(second));
        ct_test_floats(copy, back, 3);
        assert_memory_equal(back, values, sizeof(values));
        ct_buffer_free(buffer);
        ct_buffer_free(copy);
    } else {
        print_message("SKIPPED: pinned_host memory: %s\n", ct_status_message(status));
    }
    ct_status_free(status);
    ct_client_free(client);
}

static void test_wrong_size(void **state)
{
    (void)state;
    ct_client *client = ct_test_client(1);
    float values[3] = {1, 2, 3}, back[4];
    ct_buffer *buffer = ct_test_buffer(client, 0, values, 1, (int64_t[]){3});
    expect_error(ct_buffer_to_host(buffer, back, sizeof(back), NULL), CT_CODE_INVALID_ARGUMENT,
                 "holds 12 bytes, the host memory for it 16");
    ct_buffer_free(buffer);
    ct_client_free(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trips), cmocka_unit_test(test_host_memory_is_free_again),
        cmocka_unit_test(test_events),      cmocka_unit_test(test_copies_and_deletion),
        cmocka_unit_test(test_wrong_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
