/* What a terminal gets to see, through a pseudo-terminal in place of stderr. */
#include "base/log.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/testing.h"

static int saved_stderr, master;

static void to_terminal(void)
{
    master = posix_openpt(O_RDWR | O_NOCTTY);
    assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    assert_true(slave >= 0);
    struct winsize size = {.ws_col = 30, .ws_row = 10};
    assert_int_equal(ioctl(slave, TIOCSWINSZ, &size), 0);
    saved_stderr = dup(STDERR_FILENO);
    dup2(slave, STDERR_FILENO);
    close(slave);
}

/* All that was shown, up to `ending`, since a terminal hands it over bit by bit; each newline came out as "\r\n". */
static void from_terminal(char *text, size_t size, const char *ending)
{
    size_t length = 0;
    struct pollfd ready = {.fd = master, .events = POLLIN};
    text[0] = 0;
    while (!strstr(text, ending) && poll(&ready, 1, 10000) == 1) {
        ssize_t num_read = read(master, text + length, size - 1 - length);
        assert_true(num_read > 0);
        length += (size_t)num_read;
        text[length] = 0;
    }
    dup2(saved_stderr, STDERR_FILENO);
    close(saved_stderr);
    close(master);
}

static void test_status_line_on_a_terminal(void **state)
{
    (void)state;
    to_terminal();
    ct_log_status("step %d", 1);
    ct_info("a line");
    ct_log_status("%s", "a status line that is longer than the terminal is wide");
    ct_log_status("%s", "");
    ct_log_status("%s", ""); /* nothing to wipe any more */
    ct_info("free");
    char text[1024];
    from_terminal(text, sizeof(text), "INFO - free\r\n");
    assert_memory_equal(text, "\r\x1b[Kstep 1\r\x1b[K[titan] ", 22);
    const char *behind =
        strstr(text, " - root - INFO - a line\r\nstep 1\r\x1b[Ka status line that is longer \r\x1b[K[titan] ");
    assert_non_null(behind);
    assert_non_null(strstr(behind, "INFO - free\r\n"));
    assert_string_equal(text + strlen(text) - 6, "free\r\n");
}

static void test_no_status_line_in_a_file(void **state)
{
    (void)state;
    char *folder = ct_test_folder_new(), *path = ct_path_join(folder, "log");
    int file = open(path, O_RDWR | O_CREAT, 0600);
    saved_stderr = dup(STDERR_FILENO);
    dup2(file, STDERR_FILENO);
    ct_log_status("step %d", 1);
    ct_warning("seen %d", 2);
    dup2(saved_stderr, STDERR_FILENO);
    close(saved_stderr);
    close(file);
    char *text;
    size_t size;
    expect_ok(ct_file_read(path, &text, &size));
    assert_memory_equal(text, "[titan] ", 8);
    assert_non_null(strstr(text, " - root - WARNING - seen 2\n"));
    assert_null(strstr(text, "step"));
    free(text);
    free(path);
    ct_test_folder_free(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_status_line_on_a_terminal),
        cmocka_unit_test(test_no_status_line_in_a_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
