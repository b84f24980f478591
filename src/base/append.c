/* Appending whole records. */
#include "base/append.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"

struct ct_append_file {
    char *path;
    int descriptor;
    ct_str waiting;
    bool has_told_full;
};

ct_status *ct_append_open(const char *path, ct_append_file **out_file)
{
    *out_file = NULL;
    int descriptor = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (descriptor < 0) return ct_errno_error("cannot open %s for writing", path);
    ct_append_file *file = ct_alloc_zeroed(1, sizeof(*file));
    file->path = ct_strdup(path);
    file->descriptor = descriptor;
    ct_str_init(&file->waiting);
    *out_file = file;
    return NULL;
}

static ct_status *write_waiting(ct_append_file *file)
{
    off_t end = lseek(file->descriptor, 0, SEEK_END);
    ct_status *status = ct_file_write_all(file->descriptor, file->path, file->waiting.data, file->waiting.length);
    if (!status) {
        ct_str_reset(&file->waiting);
        return NULL;
    }
    if (ct_status_code(status) != CT_CODE_RESOURCE_EXHAUSTED || end < 0 || ftruncate(file->descriptor, end))
        return status;
    if (!file->has_told_full)
        ct_warning("%s; training goes on, and the lines are written when there is room again",
                   ct_status_message(status));
    file->has_told_full = true;
    ct_status_free(status);
    return NULL;
}

ct_status *ct_append_record(ct_append_file *file, const void *data, size_t size_bytes)
{
    ct_str_append_n(&file->waiting, data, size_bytes);
    return write_waiting(file);
}

void ct_append_close(ct_append_file *file)
{
    if (!file) return;
    ct_status *status = file->waiting.length ? write_waiting(file) : NULL;
    if (status || file->waiting.length)
        ct_warning("%s lacks its last lines: %s", file->path, status ? ct_status_message(status) : "the disk is full");
    ct_status_free(status);
    close(file->descriptor);
    ct_str_deinit(&file->waiting);
    free(file->path);
    free(file);
}
