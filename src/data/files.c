/* Files, folders and patterns as lists of files. */
#include "data/files.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/map.h"

enum { MAX_RANGE = 1000000 };

static void add(ct__files *files, const char *path)
{
    files->paths = ct_realloc(files->paths, (files->count + 1) * sizeof(*files->paths));
    files->paths[files->count++] = ct_strdup(path);
}

static ct_status *add_folder(ct__files *files, const char *folder)
{
    char **names;
    size_t num_names;
    CT_TRY(ct_dir_list(folder, &names, &num_names));
    ct_status *status = NULL;
    for (size_t i = 0; i < num_names && !status; i++) {
        if (names[i][0] == '.') continue;
        char *path = ct_path_join(folder, names[i]);
        if (ct_path_is_dir(path))
            status = add_folder(files, path);
        else
            add(files, path);
        free(path);
    }
    ct_names_free(names, num_names);
    return status;
}

static ct_status *add_matches(ct__files *files, const char *pattern)
{
    glob_t matches;
    int result = glob(pattern, 0, NULL, &matches);
    if (result && result != GLOB_NOMATCH)
        return ct_error(CT_CODE_INTERNAL, "cannot look for files that match %s", pattern);
    if (!result)
        for (size_t i = 0; i < matches.gl_pathc; i++)
            if (!ct_path_is_dir(matches.gl_pathv[i])) add(files, matches.gl_pathv[i]);
    globfree(&matches);
    return NULL;
}

/* "{007..012}" as WebDataset writes it: numbers with as many digits as the first has. False: there is none. */
static bool find_range(const char *path, const char **out_begin, const char **out_end, long *out_first, long *out_last,
                       int *out_digits)
{
    for (const char *at = path; (at = strchr(at, '{')); at++) {
        char *end;
        if (at[1] < '0' || at[1] > '9') continue;
        *out_first = strtol(at + 1, &end, 10);
        *out_digits = (int)(end - at - 1);
        if (strncmp(end, "..", 2) != 0 || end[2] < '0' || end[2] > '9') continue;
        *out_last = strtol(end + 2, &end, 10);
        if (*end != '}' || *out_digits > 18 || *out_last < *out_first || *out_last - *out_first >= MAX_RANGE) continue;
        *out_begin = at;
        *out_end = end + 1;
        return true;
    }
    return false;
}

ct_status *ct__files_add(ct__files *files, const char *path)
{
    const char *begin, *end;
    long first, last;
    int digits;
    if (!ct_path_exists(path) && find_range(path, &begin, &end, &first, &last, &digits)) {
        ct_status *status = NULL;
        for (long i = first; i <= last && !status; i++) {
            char *one = ct_asprintf("%.*s%0*ld%s", (int)(begin - path), path, digits, i, end);
            status = ct__files_add(files, one);
            free(one);
        }
        return status;
    }
    size_t before = files->count;
    if (ct_path_is_dir(path))
        CT_TRY(add_folder(files, path));
    else if (ct_path_exists(path) || !strpbrk(path, "*?["))
        add(files, path); /* a missing file is told when it is opened */
    else
        CT_TRY(add_matches(files, path));
    if (files->count > before) return NULL;
    return ct_error(CT_CODE_NOT_FOUND, "training.dataset_path = \"%s\" must name files, but %s", path,
                    ct_path_is_dir(path) ? "the folder has none" : "no file matches");
}

void ct__files_deinit(ct__files *files)
{
    ct_names_free(files->paths, files->count);
    *files = (ct__files){0};
}

static bool has_suffix(const char *path, size_t length, const char *suffix)
{
    size_t size = strlen(suffix);
    return length > size && !strncasecmp(path + length - size, suffix, size);
}

ct_data_kind ct__kind_of_file(const char *path)
{
    static const struct {
        const char *suffix;
        ct_data_kind kind;
    } suffixes[] = {
        {".jsonl", CT_DATA_JSON},     {".ndjson", CT_DATA_JSON},     {".json", CT_DATA_JSON},
        {".tar", CT_DATA_WEBDATASET}, {".parquet", CT_DATA_PARQUET}, {".safetensors", CT_DATA_TOKENS},
    };
    size_t length = strlen(path);
    if (has_suffix(path, length, ".tgz")) return CT_DATA_WEBDATASET;
    if (has_suffix(path, length, ".gz")) length -= 3;
    if (has_suffix(path, length, ".zst")) length -= 4;
    for (size_t i = 0; i < CT_COUNT(suffixes); i++)
        if (has_suffix(path, length, suffixes[i].suffix)) return suffixes[i].kind;
    return CT_DATA_TEXT;
}

const char *ct__kind_name(ct_data_kind kind)
{
    static const char *const names[] = {"auto", "text", "tokens", "json", "parquet", "webdataset"};
    return names[kind];
}

ct_status *ct__files_fingerprint(const ct__files *files, int64_t *out_hash, int64_t *out_num_bytes)
{
    uint64_t hash = 0;
    *out_num_bytes = 0;
    for (size_t i = 0; i < files->count; i++) {
        struct stat info;
        if (stat(files->paths[i], &info)) return ct_errno_error("cannot open %s", files->paths[i]);
        const char *slash = strrchr(files->paths[i], '/'), *name = slash ? slash + 1 : files->paths[i];
        uint64_t parts[3] = {hash, ct_hash_bytes(name, strlen(name)), (uint64_t)info.st_size};
        hash = ct_hash_bytes(parts, sizeof(parts));
        *out_num_bytes += (int64_t)info.st_size;
    }
    *out_hash = (int64_t)(hash >> 1); /* JSON's integers are signed */
    return NULL;
}
