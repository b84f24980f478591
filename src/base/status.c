/* Errors as values: one allocation per error, the text grown by each note. */
#include "base/status.h"

#include <execinfo.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

struct ct_status {
    ct_code code;
    char *message;
    char *location;
};

static char *format_text(const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (length < 0) CT_BUG("bad format: %s", format);
    char *text = ct_alloc((size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, format, arguments);
    return text;
}

ct_status *ct__status_new(ct_code code, const char *file, int line, const char *format, ...)
{
    CT_ASSERT(code != CT_CODE_OK);
    ct_status *status = ct_alloc(sizeof(*status));
    va_list arguments;
    va_start(arguments, format);
    status->code = code;
    status->message = format_text(format, arguments);
    va_end(arguments);
    size_t size = strlen(file) + 16;
    status->location = ct_alloc(size);
    snprintf(status->location, size, "%s:%d", file, line);
    return status;
}

ct_status *ct_status_note(ct_status *status, const char *format, ...)
{
    if (!status) return NULL;
    va_list arguments;
    va_start(arguments, format);
    char *note = format_text(format, arguments);
    va_end(arguments);
    size_t size = strlen(status->message) + strlen(note) + 3;
    status->message = ct_realloc(status->message, size);
    strcat(status->message, "; ");
    strcat(status->message, note);
    free(note);
    return status;
}

ct_code ct_status_code(const ct_status *status)
{
    return status ? status->code : CT_CODE_OK;
}

const char *ct_status_message(const ct_status *status)
{
    return status ? status->message : "OK";
}

const char *ct_status_location(const ct_status *status)
{
    return status ? status->location : "";
}

const char *ct_code_name(ct_code code)
{
    static const char *const names[] = {
        "OK",        "CANCELLED",       "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
        "NOT_FOUND", "ALREADY_EXISTS",  "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
        "ABORTED",   "OUT_OF_RANGE",    "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
        "DATA_LOSS", "UNAUTHENTICATED",
    };
    return (size_t)code < CT_COUNT(names) ? names[code] : "UNKNOWN";
}

void ct_status_free(ct_status *status)
{
    if (!status) return;
    free(status->message);
    free(status->location);
    free(status);
}

ct_status *ct_status_first(ct_status *first, ct_status *second)
{
    if (!first) return second;
    ct_status_free(second);
    return first;
}

void ct__bug(const char *file, int line, const char *format, ...)
{
    fflush(stdout);
    fprintf(stderr, "%s:%d: bug in ctitan: ", file, line);
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    void *frames[64];
    int num_frames = backtrace(frames, (int)CT_COUNT(frames));
    backtrace_symbols_fd(frames, num_frames, 2);
    abort();
}
