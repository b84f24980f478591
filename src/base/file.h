/* Files: whole reads, maps, and writes that are either complete or absent. Every error names the path and the cause. */
#ifndef CT_BASE_FILE_H
#define CT_BASE_FILE_H

#include <stdbool.h>

#include "base/status.h"

/* Reads all of path; data is NUL-terminated beyond size, and the caller's to free(). */
CT_MUST_USE ct_status *ct_file_read(const char *path, char **out_data, size_t *out_size_bytes);

/* Writes path whole: to a temporary neighbour, flushed to disk, renamed over path. On error path is as it was. */
CT_MUST_USE ct_status *ct_file_write(const char *path, const void *data, size_t size_bytes);

/* write(2) until all is written; for streaming writers. path is only for the message. */
CT_MUST_USE ct_status *ct_file_write_all(int descriptor, const char *path, const void *data, size_t size_bytes);

/* A read-only memory map of a whole file; an empty file maps to data = "" with size 0. */
typedef struct ct_file_map {
    const unsigned char *data;
    size_t size_bytes;
} ct_file_map;
CT_MUST_USE ct_status *ct_file_map_open(const char *path, ct_file_map *out_map);
void ct_file_map_close(ct_file_map *map);

/* A lock file, made when absent: held until released or the process ends, however it ends. The file stays.
 * Errors: FAILED_PRECONDITION naming the process that holds it; those of opening. */
typedef struct ct_file_lock {
    int descriptor; /* -1: not held */
} ct_file_lock;
CT_MUST_USE ct_status *ct_file_lock_take(const char *path, ct_file_lock *out_lock);
void ct_file_lock_release(ct_file_lock *lock);

CT_MUST_USE ct_status *ct_dir_make(const char *path);   /* with its parents; fine if it exists */
CT_MUST_USE ct_status *ct_dir_sync(const char *path);   /* fsync, so that renames in it are on disk */
CT_MUST_USE ct_status *ct_dir_remove(const char *path); /* with all it holds; fine if it is absent */

/* The names in a folder, without "." and "..", sorted; the caller frees each and the array. */
CT_MUST_USE ct_status *ct_dir_list(const char *path, char ***out_names, size_t *out_num_names);
void ct_names_free(char **names, size_t num_names);

bool ct_path_exists(const char *path);
bool ct_path_is_dir(const char *path);
char *ct_path_join(const char *folder, const char *name); /* heap; name alone when it is absolute */
char *ct_path_parent(const char *path);                   /* heap; "." for a bare name; no slash at the end allowed */

/* The error of a failed system call: INVALID_ARGUMENT, NOT_FOUND, RESOURCE_EXHAUSTED (disk full), ... from errno. */
#define ct_errno_error(...) CT__NOT_NULL(ct__errno_error(__FILE__, __LINE__, __VA_ARGS__))
CT_MUST_USE ct_status *ct__errno_error(const char *file, int line, const char *format, ...) CT_PRINTF(3, 4);

#endif
