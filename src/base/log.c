/* One line per call, written with one write so that threads do not mix. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/str.h"

static ct_log_level smallest_level = CT_LOG_INFO;

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
    fprintf(stderr, "[titan] %s,%03ld - root - %s - %s\n", date, now.tv_nsec / 1000000, names[level], text);
}
