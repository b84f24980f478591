/* O_DIRECT wants aligned places, lengths and memory, so a read takes whole blocks and shows only what was asked for. */
#include "base/direct.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

bool ct_direct_set(int descriptor, bool is_direct)
{
    int flags = fcntl(descriptor, F_GETFL);
    return flags >= 0 && !fcntl(descriptor, F_SETFL, is_direct ? flags | O_DIRECT : flags & ~O_DIRECT);
}

void *ct_direct_piece_new(void)
{
    void *piece = aligned_alloc(CT_DIRECT_ALIGNMENT, CT_DIRECT_PIECE);
    if (!piece) CT_BUG("out of host memory: %d bytes wanted", CT_DIRECT_PIECE);
    return piece;
}

ct_status *ct_direct_open(const char *path, bool is_cached, ct_direct_file *out_file)
{
    *out_file = (ct_direct_file){.descriptor = -1};
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return ct_errno_error("cannot open %s", path);
    struct stat info;
    ct_status *status = NULL;
    if (fstat(descriptor, &info))
        status = ct_errno_error("cannot stat %s", path);
    else if (!S_ISREG(info.st_mode))
        status = ct_error(CT_CODE_INVALID_ARGUMENT, "%s must be a regular file", path);
    if (status) {
        close(descriptor);
        return status;
    }
    *out_file = (ct_direct_file){.descriptor = descriptor, .size_bytes = info.st_size};
    if (is_cached || info.st_size < CT_DIRECT_SMALLEST || !ct_direct_set(descriptor, true))
        (void)posix_fadvise(descriptor, 0, 0, POSIX_FADV_SEQUENTIAL);
    return NULL;
}

void ct_direct_close(ct_direct_file *file)
{
    if (file->descriptor >= 0) close(file->descriptor);
    *file = (ct_direct_file){.descriptor = -1};
}

ct_status *ct_direct_read(const ct_direct_file *file, const char *path, int64_t offset, int64_t size_bytes, void *piece,
                          ct_direct_visit *visit, void *context)
{
    while (size_bytes) {
        int64_t begin = offset / CT_DIRECT_ALIGNMENT * CT_DIRECT_ALIGNMENT, skipped = offset - begin;
        int64_t wanted = (skipped + size_bytes + CT_DIRECT_ALIGNMENT - 1) / CT_DIRECT_ALIGNMENT * CT_DIRECT_ALIGNMENT;
        ssize_t count = pread(file->descriptor, piece, (size_t)CT_MIN(wanted, CT_DIRECT_PIECE), begin);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0 && errno == EINVAL && fcntl(file->descriptor, F_GETFL) & O_DIRECT &&
            ct_direct_set(file->descriptor, false))
            continue; /* it can be asked for, but not done */
        if (count < 0) return ct_errno_error("cannot read %s", path);
        if (count <= skipped)
            return ct_error(CT_CODE_DATA_LOSS, "%s ends at byte %lld, but has to have %lld", path,
                            (long long)(begin + count), (long long)(offset + size_bytes));
        int64_t seen = CT_MIN(count - skipped, size_bytes);
        visit(context, (const char *)piece + skipped, (size_t)seen);
        offset += seen;
        size_bytes -= seen;
    }
    return NULL;
}
