/* Heap memory that is never NULL: exhaustion of host memory aborts with the size asked for. Freed with free(). */
#ifndef CT_BASE_ALLOC_H
#define CT_BASE_ALLOC_H

#include "base/macros.h"

/* Uninitialised; size 0 gives a unique pointer. */
CT_NEVER_NULL void *ct_alloc(size_t size_bytes);
/* Zeroed; the product is checked for overflow. */
CT_NEVER_NULL void *ct_alloc_zeroed(size_t count, size_t element_bytes);
CT_NEVER_NULL void *ct_realloc(void *memory, size_t size_bytes);
/* Memory of at least wanted bytes in *memory, which has *bytes of them and may be NULL; what it held is lost when it
 * grows. For work that is done again and again: fresh pages cost as much as a copy into them. */
void *ct_reserve(void **memory, size_t *bytes, size_t wanted);
CT_NEVER_NULL char *ct_strdup(const char *text);
CT_NEVER_NULL char *ct_asprintf(const char *format, ...) CT_PRINTF(1, 2);

/* out_result = a * b (or a + b); false when it does not fit. For numbers that come from files. */
CT_MUST_USE int ct_checked_mul(int64_t a, int64_t b, int64_t *out_result);
CT_MUST_USE int ct_checked_add(int64_t a, int64_t b, int64_t *out_result);

#endif
