/* Large files read past the page cache: as fast as the disk, where filling the cache costs more than the read, and
 * without pushing out what is in it. Small files, and those of file systems that cannot, go through the cache.
 */
#ifndef CT_BASE_DIRECT_H
#define CT_BASE_DIRECT_H

#include <stdbool.h>

#include "base/status.h"

enum {
    CT_DIRECT_ALIGNMENT = 4096,    /* of places in the file and in memory */
    CT_DIRECT_PIECE = 4 << 20,     /* bytes of one request */
    CT_DIRECT_SMALLEST = 16 << 20, /* a smaller file is no large one */
};

typedef struct ct_direct_file {
    int descriptor; /* -1: none */
    int64_t size_bytes;
} ct_direct_file;

/* is_cached: through the page cache all the same, for what is read more than once. Errors: those of opening;
 * INVALID_ARGUMENT when it is no regular file. */
CT_MUST_USE ct_status *ct_direct_open(const char *path, bool is_cached, ct_direct_file *out_file);
void ct_direct_close(ct_direct_file *file);

/* Sees the next bytes of a read. */
typedef void ct_direct_visit(void *context, const void *bytes, size_t size_bytes);

/* Reads [offset, offset + size_bytes), piece by piece in order. piece: CT_DIRECT_PIECE bytes of ct_direct_piece_new.
 * Threads may read the same file with pieces of their own. Errors: those of reading; DATA_LOSS when the file ends
 * before that. path is for messages. */
CT_MUST_USE ct_status *ct_direct_read(const ct_direct_file *file, const char *path, int64_t offset, int64_t size_bytes,
                                      void *piece, ct_direct_visit *visit, void *context);

void *ct_direct_piece_new(void); /* aligned; freed with free() */

/* Lets writes or reads of an open file bypass the cache, or not; false when the file system cannot. */
bool ct_direct_set(int descriptor, bool is_direct);

#endif
