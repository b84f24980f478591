/* Checked allocation and checked arithmetic. */
#include "base/alloc.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *ct_alloc(size_t size_bytes)
{
    void *memory = malloc(size_bytes ? size_bytes : 1);
    if (!memory) CT_BUG("out of host memory: %zu bytes wanted", size_bytes);
    return memory;
}

void *ct_alloc_zeroed(size_t count, size_t element_bytes)
{
    void *memory = calloc(count ? count : 1, element_bytes ? element_bytes : 1);
    if (!memory) CT_BUG("out of host memory: %zu x %zu bytes wanted", count, element_bytes);
    return memory;
}

void *ct_realloc(void *memory, size_t size_bytes)
{
    memory = realloc(memory, size_bytes ? size_bytes : 1);
    if (!memory) CT_BUG("out of host memory: %zu bytes wanted", size_bytes);
    return memory;
}

void *ct_reserve(void **memory, size_t *bytes, size_t wanted)
{
    if (!*memory || wanted > *bytes) {
        free(*memory);
        *memory = ct_alloc(wanted);
        *bytes = wanted;
    }
    return *memory;
}

char *ct_strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    return memcpy(ct_alloc(size), text, size);
}

char *ct_asprintf(const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    CT_ASSERT(length >= 0);
    char *text = ct_alloc((size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, format, arguments);
    va_end(arguments);
    return text;
}

int ct_checked_mul(int64_t a, int64_t b, int64_t *out_result)
{
    return !__builtin_mul_overflow(a, b, out_result);
}

int ct_checked_add(int64_t a, int64_t b, int64_t *out_result)
{
    return !__builtin_add_overflow(a, b, out_result);
}
