/* From paths to files: which there are, and of what kind. Only for files in this folder. */
#ifndef CT_DATA_FILES_H
#define CT_DATA_FILES_H

#include "data/dataset.h"

typedef struct ct__files {
    char **paths;
    size_t count;
} ct__files;

/* The files of a path: itself, all in the folder and below but those whose name begins with a dot, or all that match a
 * pattern; in the order of their names. A range in braces, shard-{000..127}.tar, stands for each of its numbers.
 * Errors: NOT_FOUND when there is none. */
CT_MUST_USE ct_status *ct__files_add(ct__files *files, const char *path);
void ct__files_deinit(ct__files *files);

ct_data_kind ct__kind_of_file(const char *path); /* by its suffix; text when that says nothing */
const char *ct__kind_name(ct_data_kind kind);

/* A hash of the names (without their folders, so that data may be moved) and sizes, and the sum of sizes.
 * Errors: of asking a file for its size. */
CT_MUST_USE ct_status *ct__files_fingerprint(const ct__files *files, int64_t *out_hash, int64_t *out_num_bytes);

#endif
