/* Work in a child: its reply and status come back, its death is an error, what it uses is told. */
#include "base/child.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/testing.h"

static ct_status *answer(void *context, ct_str *reply)
{
    ct_str_append_n(reply, "a\0b", 3);
    ct_str_append(reply, context);
    return NULL;
}

static ct_status *refuse(void *context, ct_str *reply)
{
    (void)context;
    ct_str_append(reply, "half");
    return ct_error(CT_CODE_RESOURCE_EXHAUSTED, "too large");
}

static ct_status *abort_it(void *context, ct_str *reply)
{
    (void)reply;
    fprintf(stderr, "%s\n", (const char *)context);
    signal(SIGABRT, SIG_DFL);
    abort();
}

static ct_status *exit_it(void *context, ct_str *reply)
{
    (void)context;
    (void)reply;
    fprintf(stderr, "ERROR: Unknown flag\n");
    _exit(3);
}

static ct_status *take_memory(void *context, ct_str *reply)
{
    size_t size = *(size_t *)context;
    char *bytes = ct_alloc(size);
    memset(bytes, 1, size);
    ct_str_printf(reply, "%d", bytes[size / 2]);
    free(bytes);
    return NULL;
}

static ct_status *large_reply(void *context, ct_str *reply)
{
    (void)context;
    for (int i = 0; i < 1000000; i++) ct_str_append(reply, "xyz");
    return NULL;
}

static ct_status *sleep_it(void *context, ct_str *reply)
{
    (void)context;
    (void)reply;
    usleep(1600000);
    return NULL;
}

static void count_tick(void *context, double seconds)
{
    assert_true(seconds >= 1);
    ++*(int *)context;
}

static void test_replies(void **state)
{
    (void)state;
    ct_str reply;
    ct_str_init(&reply);
    char rest[] = "rest";
    expect_ok(ct_child_run(answer, rest, NULL, &reply, NULL));
    assert_int_equal(reply.length, 7);
    assert_memory_equal(reply.data, "a\0brest", 7);
    ct_str_reset(&reply);
    expect_error(ct_child_run(refuse, NULL, NULL, &reply, NULL), CT_CODE_RESOURCE_EXHAUSTED, "too large");
    assert_string_equal(reply.data, "half");
    ct_str_reset(&reply);
    expect_ok(ct_child_run(large_reply, NULL, NULL, &reply, NULL));
    assert_int_equal(reply.length, 3000000);
    ct_str_deinit(&reply);
}

static void test_deaths(void **state)
{
    (void)state;
    ct_str reply;
    ct_str_init(&reply);
    char why[] = "Check failed: no";
    expect_error(ct_child_run(abort_it, why, NULL, &reply, NULL), CT_CODE_INTERNAL, "signal 6");
    expect_error(ct_child_run(abort_it, why, NULL, &reply, NULL), CT_CODE_INTERNAL, "Check failed: no");
    expect_error(ct_child_run(exit_it, NULL, NULL, &reply, NULL), CT_CODE_INTERNAL, "exit code 3");
    expect_error(ct_child_run(exit_it, NULL, NULL, &reply, NULL), CT_CODE_INTERNAL, "Unknown flag");
    assert_int_equal(reply.length, 0);
    ct_str_deinit(&reply);
}

static void test_usage(void **state)
{
    (void)state;
    ct_str reply;
    ct_str_init(&reply);
    ct_child_usage small, large;
    size_t size = 1 << 20;
    expect_ok(ct_child_run(take_memory, &size, NULL, &reply, &small));
    size = 200 << 20;
    expect_ok(ct_child_run(take_memory, &size, NULL, &reply, &large));
    assert_true(large.peak_bytes > small.peak_bytes + (150 << 20));
    assert_true(large.cpu_seconds > 0 && large.seconds > 0);
    int ticks = 0;
    expect_ok(
        ct_child_run(sleep_it, NULL, &(ct_child_opts){.tick = count_tick, .tick_context = &ticks}, &reply, &large));
    assert_int_equal(ticks, 1);
    assert_true(large.seconds >= 1.6);
    ct_str_deinit(&reply);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replies),
        cmocka_unit_test(test_deaths),
        cmocka_unit_test(test_usage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
