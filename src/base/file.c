/* Files over POSIX calls, with errno turned into statuses. */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"

static ct_code code_of_errno(int error)
{
    switch (error) {
    case ENOENT:
    case ENOTDIR: return CT_CODE_NOT_FOUND;
    case EACCES:
    case EPERM:
    case EROFS: return CT_CODE_PERMISSION_DENIED;
    case EEXIST: return CT_CODE_ALREADY_EXISTS;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EMFILE: return CT_CODE_RESOURCE_EXHAUSTED;
    case EISDIR:
    case EINVAL: return CT_CODE_INVALID_ARGUMENT;
    default: return CT_CODE_INTERNAL;
    }
}

ct_status *ct__errno_error(const char *file, int line, const char *format, ...)
{
    int error = errno;
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    return ct__status_new(code_of_errno(error), file, line, "%s: %s", text, strerror(error));
}

ct_status *ct_file_write_all(int descriptor, const char *path, const void *data, size_t size_bytes)
{
    const char *next = data;
    while (size_bytes) {
        ssize_t written = write(descriptor, next, size_bytes);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return ct_errno_error("cannot write %s", path);
        next += written;
        size_bytes -= (size_t)written;
    }
    return NULL;
}

ct_status *ct_file_read(const char *path, char **out_data, size_t *out_size_bytes)
{
    *out_data = NULL;
    *out_size_bytes = 0;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return ct_errno_error("cannot open %s", path);
    ct_status *status = NULL;
    size_t size = 0, capacity = 1 << 16;
    char *data = ct_alloc(capacity + 1);
    for (;;) {
        if (size == capacity) data = ct_realloc(data, (capacity *= 2) + 1);
        ssize_t count = read(descriptor, data + size, capacity - size);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) {
            status = ct_errno_error("cannot read %s", path);
            break;
        }
        if (count == 0) break;
        size += (size_t)count;
    }
    close(descriptor);
    if (status) {
        free(data);
        return status;
    }
    data[size] = 0;
    *out_data = data;
    *out_size_bytes = size;
    return NULL;
}

ct_status *ct_file_write(const char *path, const void *data, size_t size_bytes)
{
    ct_status *status = NULL;
    char *parent = ct_path_parent(path);
    char *temporary = ct_asprintf("%s.tmp.%ld.XXXXXX", path, (long)getpid());
    int descriptor = mkostemp(temporary, O_CLOEXEC);
    if (descriptor < 0) {
        status = ct_errno_error("cannot create %s", temporary);
        goto out;
    }
    status = ct_file_write_all(descriptor, temporary, data, size_bytes);
    if (!status && fchmod(descriptor, 0644)) status = ct_errno_error("cannot set the mode of %s", temporary);
    if (!status && fsync(descriptor)) status = ct_errno_error("cannot flush %s", temporary);
    if (close(descriptor) && !status) status = ct_errno_error("cannot close %s", temporary);
    if (!status && rename(temporary, path)) status = ct_errno_error("cannot rename %s to %s", temporary, path);
    if (status)
        unlink(temporary);
    else
        status = ct_dir_sync(parent);
out:
    free(temporary);
    free(parent);
    return status;
}

ct_status *ct_file_map_open(const char *path, ct_file_map *out_map)
{
    *out_map = (ct_file_map){.data = (const unsigned char *)""};
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return ct_errno_error("cannot open %s", path);
    ct_status *status = NULL;
    struct stat info;
    if (fstat(descriptor, &info)) {
        status = ct_errno_error("cannot stat %s", path);
    } else if (!S_ISREG(info.st_mode)) {
        status = ct_error(CT_CODE_INVALID_ARGUMENT, "%s must be a regular file", path);
    } else if (info.st_size > 0) {
        void *data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
        if (data == MAP_FAILED)
            status = ct_errno_error("cannot map %s", path);
        else
            *out_map = (ct_file_map){.data = data, .size_bytes = (size_t)info.st_size};
    }
    close(descriptor);
    return status;
}

void ct_file_map_close(ct_file_map *map)
{
    if (map->size_bytes) munmap((void *)(uintptr_t)map->data, map->size_bytes);
    *map = (ct_file_map){0};
}

/* flock, not a file that exists: the kernel lets go of it when the process dies. */
ct_status *ct_file_lock_take(const char *path, ct_file_lock *out_lock)
{
    out_lock->descriptor = -1;
    int descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor < 0) return ct_errno_error("cannot open %s", path);
    char holder[32] = {0};
    ct_status *status = NULL;
    if (flock(descriptor, LOCK_EX | LOCK_NB)) {
        if (errno != EWOULDBLOCK) {
            status = ct_errno_error("cannot lock %s", path);
        } else {
            if (pread(descriptor, holder, sizeof(holder) - 1, 0) < 0) holder[0] = 0;
            status = ct_error(CT_CODE_FAILED_PRECONDITION, "%s is held by another process (%ld)", path,
                              strtol(holder, NULL, 10));
        }
        close(descriptor);
        return status;
    }
    snprintf(holder, sizeof(holder), "%ld\n", (long)getpid()); /* for that message only: a full disk does not matter */
    if (ftruncate(descriptor, 0) || pwrite(descriptor, holder, strlen(holder), 0) < 0) errno = 0;
    out_lock->descriptor = descriptor;
    return NULL;
}

void ct_file_lock_release(ct_file_lock *lock)
{
    if (lock->descriptor >= 0) close(lock->descriptor);
    lock->descriptor = -1;
}

ct_status *ct_dir_make(const char *path)
{
    ct_status *status = NULL;
    char *copy = ct_strdup(path);
    for (char *p = copy + 1;; p++) {
        if (*p && *p != '/') continue;
        char saved = *p;
        *p = 0;
        if (mkdir(copy, 0777) && !(errno == EEXIST && ct_path_is_dir(copy)))
            status = ct_errno_error("cannot make the folder %s", copy);
        *p = saved;
        if (!saved || status) break;
    }
    free(copy);
    return status;
}

ct_status *ct_dir_sync(const char *path)
{
    int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return ct_errno_error("cannot open the folder %s", path);
    ct_status *status = NULL;
    /* Some file systems refuse fsync on folders; that is not a failed write. */
    if (fsync(descriptor) && errno != EINVAL) status = ct_errno_error("cannot flush the folder %s", path);
    close(descriptor);
    return status;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

ct_status *ct_dir_list(const char *path, char ***out_names, size_t *out_num_names)
{
    *out_names = NULL;
    *out_num_names = 0;
    DIR *folder = opendir(path);
    if (!folder) return ct_errno_error("cannot open the folder %s", path);
    char **names = NULL;
    size_t num_names = 0;
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        names = ct_realloc(names, (num_names + 1) * sizeof(*names));
        names[num_names++] = ct_strdup(entry->d_name);
    }
    closedir(folder);
    if (num_names) qsort(names, num_names, sizeof(*names), compare_names);
    *out_names = names;
    *out_num_names = num_names;
    return NULL;
}

void ct_names_free(char **names, size_t num_names)
{
    for (size_t i = 0; i < num_names; i++) free(names[i]);
    free(names);
}

ct_status *ct_dir_remove(const char *path)
{
    struct stat info;
    if (lstat(path, &info)) return errno == ENOENT ? NULL : ct_errno_error("cannot stat %s", path);
    if (!S_ISDIR(info.st_mode)) return unlink(path) ? ct_errno_error("cannot remove %s", path) : NULL;
    char **names = NULL;
    size_t num_names = 0;
    CT_TRY(ct_dir_list(path, &names, &num_names));
    ct_status *status = NULL;
    for (size_t i = 0; i < num_names && !status; i++) {
        char *child = ct_path_join(path, names[i]);
        status = ct_dir_remove(child);
        free(child);
    }
    ct_names_free(names, num_names);
    if (!status && rmdir(path)) status = ct_errno_error("cannot remove the folder %s", path);
    return status;
}

bool ct_path_exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

bool ct_path_is_dir(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

char *ct_path_join(const char *folder, const char *name)
{
    if (name[0] == '/' || !folder[0]) return ct_strdup(name);
    size_t length = strlen(folder);
    return ct_asprintf("%s%s%s", folder, folder[length - 1] == '/' ? "" : "/", name);
}

char *ct_path_parent(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash) return ct_strdup(".");
    if (slash == path) return ct_strdup("/");
    char *parent = ct_strdup(path);
    parent[slash - path] = 0;
    return parent;
}
