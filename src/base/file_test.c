#include "base/testing.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* A lock keeps others out until its holder lets go or is killed, and names the holder. */
static void test_lock(void **state)
{
    (void)state;
    char *folder = ct_test_folder_new(), *path = ct_path_join(folder, "lock"), text[64];
    int told[2];
    assert_int_equal(pipe(told), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        ct_file_lock lock;
        ct_status *status = ct_file_lock_take(path, &lock);
        if (status || write(told[1], "x", 1) != 1) _exit(1);
        for (;;) pause();
    }
    assert_int_equal(read(told[0], text, 1), 1);
    ct_file_lock lock, other;
    snprintf(text, sizeof(text), "is held by another process (%d)", (int)child);
    expect_error(ct_file_lock_take(path, &lock), CT_CODE_FAILED_PRECONDITION, text);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    expect_ok(ct_file_lock_take(path, &lock));
    expect_error(ct_file_lock_take(path, &other), CT_CODE_FAILED_PRECONDITION, "is held by another");
    ct_file_lock_release(&lock);
    expect_ok(ct_file_lock_take(path, &other));
    ct_file_lock_release(&other);
    expect_error(ct_file_lock_take(folder, &lock), CT_CODE_INVALID_ARGUMENT, "cannot open");
    ct_file_lock_release(&lock); /* of what was never held */
    close(told[0]);
    close(told[1]);
    free(path);
    ct_test_folder_free(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lock)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
