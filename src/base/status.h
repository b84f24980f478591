/* What can fail returns a ct_status pointer: NULL is success, anything else is an error that the receiver owns.
 *
 * A status has a code (PJRT's numbering, which is gRPC's), a message, the place that made it, and notes added on the
 * way up ("reading shard x"). A message says what was required, what was found, and what to do. Thread-safe: a status
 * belongs to one thread at a time. Memory exhaustion aborts, so making one never fails.
 */
#ifndef CT_BASE_STATUS_H
#define CT_BASE_STATUS_H

#include "base/macros.h"

typedef enum ct_code {
    CT_CODE_OK = 0,
    CT_CODE_CANCELLED = 1,
    CT_CODE_UNKNOWN = 2,
    CT_CODE_INVALID_ARGUMENT = 3,
    CT_CODE_DEADLINE_EXCEEDED = 4,
    CT_CODE_NOT_FOUND = 5,
    CT_CODE_ALREADY_EXISTS = 6,
    CT_CODE_PERMISSION_DENIED = 7,
    CT_CODE_RESOURCE_EXHAUSTED = 8,
    CT_CODE_FAILED_PRECONDITION = 9,
    CT_CODE_ABORTED = 10,
    CT_CODE_OUT_OF_RANGE = 11,
    CT_CODE_UNIMPLEMENTED = 12,
    CT_CODE_INTERNAL = 13,
    CT_CODE_UNAVAILABLE = 14,
    CT_CODE_DATA_LOSS = 15,
    CT_CODE_UNAUTHENTICATED = 16,
} ct_code;

typedef struct ct_status ct_status;

/* A new error; code must not be CT_CODE_OK. */
#define ct_error(code, ...) CT__NOT_NULL(ct__status_new((code), __FILE__, __LINE__, __VA_ARGS__))

CT_MUST_USE ct_status *ct__status_new(ct_code code, const char *file, int line, const char *format, ...)
    CT_PRINTF(4, 5);

/* An error is never NULL. clang's analyzer reads one file at a time and has to be told. */
#ifdef __clang_analyzer__
static inline ct_status *ct__not_null(ct_status *status)
{
    if (!status) __builtin_unreachable();
    return status;
}
#define CT__NOT_NULL(status) ct__not_null(status)
#else
#define CT__NOT_NULL(status) (status)
#endif

/* Adds context, innermost first; the text reads "message; note; note". Returns its argument; NULL stays NULL. */
CT_MUST_USE ct_status *ct_status_note(ct_status *status, const char *format, ...) CT_PRINTF(2, 3);

ct_code ct_status_code(const ct_status *status);         /* CT_CODE_OK for NULL */
const char *ct_status_message(const ct_status *status);  /* with its notes; "OK" for NULL; lives as long as status */
const char *ct_status_location(const ct_status *status); /* "file.c:12"; "" for NULL */
const char *ct_code_name(ct_code code);                  /* "INVALID_ARGUMENT" */
void ct_status_free(ct_status *status);                  /* NULL is allowed */

/* Keeps the first of two errors and frees the second; for clean-up paths. */
CT_MUST_USE ct_status *ct_status_first(ct_status *first, ct_status *second);

/* Return the error of an expression, plain or with a note. */
#define CT_TRY(expression)                                                                                             \
    do {                                                                                                               \
        ct_status *ct_try_status = (expression);                                                                       \
        if (ct_try_status) return ct_try_status;                                                                       \
    } while (0)
#define CT_TRY_NOTE(expression, ...)                                                                                   \
    do {                                                                                                               \
        ct_status *ct_try_status = (expression);                                                                       \
        if (ct_try_status) return ct_status_note(ct_try_status, __VA_ARGS__);                                          \
    } while (0)
/* In functions that acquire something: set the local `status` and go to `out`. */
#define CT_TRY_OUT(expression)                                                                                         \
    do {                                                                                                               \
        if ((status = (expression))) goto out;                                                                         \
    } while (0)

#endif
