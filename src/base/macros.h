/* Compiler attributes and the assertion that marks a bug of ours (never used for input). */
#ifndef CT_BASE_MACROS_H
#define CT_BASE_MACROS_H

#include <stddef.h>
#include <stdint.h>

#define CT_MUST_USE                             __attribute__((warn_unused_result))
#define CT_NEVER_NULL                           __attribute__((returns_nonnull))
#define CT_NORETURN                             __attribute__((noreturn))
#define CT_PRINTF(format_index, first_argument) __attribute__((format(printf, format_index, first_argument)))
#define CT_COUNT(array)                         (sizeof(array) / sizeof((array)[0]))
#define CT_MIN(a, b)                            ((a) < (b) ? (a) : (b))
#define CT_MAX(a, b)                            ((a) > (b) ? (a) : (b))

/* Prints file, line, message and a backtrace, then aborts. */
CT_NORETURN void ct__bug(const char *file, int line, const char *format, ...) CT_PRINTF(3, 4);

#define CT_BUG(...) ct__bug(__FILE__, __LINE__, __VA_ARGS__)
#define CT_ASSERT(condition)                                                                                           \
    do {                                                                                                               \
        if (!(condition)) CT_BUG("%s", "failed: " #condition);                                                         \
    } while (0)

#endif
