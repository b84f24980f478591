/* One line per call, written with one write so that threads do not mix. The status line is wiped before a log line and
 * drawn again behind it, in that same write.
 */
#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/str.h"

#define WIPE "\r\x1b[K"

static ct_log_level smallest_level = CT_LOG_INFO;
static pthread_mutex_t terminal = PTHREAD_MUTEX_INITIALIZER; /* guards status_line and the order of writes */
static char status_line[512];

void ct_log_set_level(ct_log_level level)
{
    smallest_level = level;
}

void ct_log(ct_log_level level, const char *format, ...)
{
    static const char *const names[] = {"DEBUG", "INFO", "WARNING", "ERROR"};
    if (level < smallest_level) return;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    struct tm local;
    localtime_r(&now.tv_sec, &local);
    char date[32], text[4096];
    strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S", &local);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    pthread_mutex_lock(&terminal);
    fprintf(stderr, "%s[titan] %s,%03ld - root - %s - %s\n%s", status_line[0] ? WIPE : "", date, now.tv_nsec / 1000000,
            names[level], text, status_line);
    pthread_mutex_unlock(&terminal);
}

static size_t terminal_width(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
    return size.ws_col;
}

bool ct_log_has_status(void)
{
    return isatty(STDERR_FILENO);
}

void ct_log_status(const char *format, ...)
{
    if (!ct_log_has_status()) return;
    char text[sizeof(status_line)];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    size_t width = terminal_width() - 1; /* the last column would wrap */
    if (strlen(text) > width) text[width] = 0;
    pthread_mutex_lock(&terminal);
    if (text[0] || status_line[0]) fprintf(stderr, WIPE "%s", text);
    memcpy(status_line, text, strlen(text) + 1);
    pthread_mutex_unlock(&terminal);
}
