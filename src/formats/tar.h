/* Tar archives read in order: ustar, with pax and GNU headers for long names and large sizes, compressed or not.
 *
 *   header 512 bytes | contents, padded to 512 | header | contents | ... | two zero blocks
 *   header: name 100, mode 8, uid 8, gid 8, size 12 (octal, or base 256 when its first bit is set), mtime 12,
 *           checksum 8, type 1, link 100, "ustar" 6, version 2, owner 32, group 32, device 16, prefix 155
 *
 * A member begins at its own first header, the offset to resume from. Belongs to one thread.
 */
#ifndef CT_FORMATS_TAR_H
#define CT_FORMATS_TAR_H

#include "base/str.h"
#include "formats/byte_stream.h"

typedef struct ct_tar ct_tar;

typedef struct ct_tar_member {
    const char *name;     /* valid until the next call */
    int64_t offset, size; /* of its first header; of its contents */
    bool is_file;         /* else a folder, a link, a device: no contents */
} ct_tar_member;

/* The stream is the archive's from then on, and stands at a member or at the begin. */
ct_tar *ct_tar_new(ct_byte_stream *stream);
void ct_tar_free(ct_tar *tar); /* NULL is allowed */

/* The next member; out_member->name is NULL at the end, which is two zero blocks or the end of the file.
 * Errors: DATA_LOSS naming path and offset: no tar header there, a wrong checksum, a file cut short. */
CT_MUST_USE ct_status *ct_tar_next(ct_tar *tar, ct_tar_member *out_member);

/* Appends the contents of the member that _next gave; once. */
CT_MUST_USE ct_status *ct_tar_read(ct_tar *tar, ct_str *out_contents);

/* Moves forward to a member that is known to begin at offset. */
CT_MUST_USE ct_status *ct_tar_skip_to(ct_tar *tar, int64_t offset);

#endif
