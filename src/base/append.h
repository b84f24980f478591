/* A file that grows while a program runs, record by record: at any time it ends with a whole record, and on a full disk
 * records wait, after one warning, until there is room again. Not thread-safe.
 */
#ifndef CT_BASE_APPEND_H
#define CT_BASE_APPEND_H

#include "base/status.h"

typedef struct ct_append_file ct_append_file;

/* Opens path to write behind its end; made when absent. Errors: those of opening. */
CT_MUST_USE ct_status *ct_append_open(const char *path, ct_append_file **out_file);

/* Takes a record, and writes it and those that wait: what is written is with the operating system on return.
 * Errors: those of writing, but for a full disk. */
CT_MUST_USE ct_status *ct_append_record(ct_append_file *file, const void *data, size_t size_bytes);

/* Tries once more to write what waits; a warning says what is lost. NULL is allowed. */
void ct_append_close(ct_append_file *file);

#endif
