/* Loading: the files are mapped, and a region of a tensor is put together from the shards that it meets. Hashes are
 * taken through reads, which the kernel does ahead of use; in the background they bring the pages that the maps then
 * find.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "base/workers.h"
#include "checkpoint/box.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/manifest.h"

struct ct_checkpoint {
    char *path; /* of the step */
    ct_arena arena;
    ct__manifest manifest;
    ct_json *json;  /* of the manifest, for the info */
    ct_map by_name; /* name -> index + 1 */
    ct_file_map *maps;
    size_t *assets; /* files that are not of tensors */
    size_t num_assets;
    bool is_verifying; /* until the thread is joined */
    atomic_bool is_closing;
    pthread_t verifier;
    ct_status *verified; /* the thread's result */
};

enum { MAX_VERIFIERS = 4 };

void ct_checkpoint_close(ct_checkpoint *checkpoint)
{
    if (!checkpoint) return;
    checkpoint->is_closing = true;
    if (checkpoint->is_verifying) pthread_join(checkpoint->verifier, NULL);
    ct_status_free(checkpoint->verified);
    for (size_t i = 0; checkpoint->maps && i < checkpoint->manifest.num_files; i++)
        ct_file_map_close(&checkpoint->maps[i]);
    free(checkpoint->maps);
    ct_map_deinit(&checkpoint->by_name);
    ct_json_free(checkpoint->json);
    ct_arena_deinit(&checkpoint->arena);
    free(checkpoint->path);
    free(checkpoint);
}

static ct_status *open_file(const ct_checkpoint *checkpoint, size_t index)
{
    const ct__manifest_file *file = &checkpoint->manifest.files[index];
    ct_file_map *map = &checkpoint->maps[index];
    char *path = ct_path_join(checkpoint->path, file->name);
    ct_status *status = NULL;
    if (!ct_path_exists(path)) {
        status = ct_error(CT_CODE_DATA_LOSS, "%s is missing", path);
        goto out;
    }
    CT_TRY_OUT(ct_file_map_open(path, map));
    if ((int64_t)map->size_bytes != file->size_bytes)
        status = ct_error(CT_CODE_DATA_LOSS, "%s must have %lld bytes, but has %zu", path, (long long)file->size_bytes,
                          map->size_bytes);
    else if (map->size_bytes)
        (void)madvise((void *)(uintptr_t)map->data, map->size_bytes, MADV_SEQUENTIAL); /* only a hint */
out:
    free(path);
    return status;
}

static ct_status *verify_file(void *context, int worker, size_t index)
{
    (void)worker;
    const ct_checkpoint *checkpoint = context;
    const ct__manifest_file *file = &checkpoint->manifest.files[index];
    if (checkpoint->is_closing) return NULL;
    char *path = ct_path_join(checkpoint->path, file->name), digits[CT__HASH_DIGITS + 1];
    ct_status *status = ct__hash_file(path, file->size_bytes, digits);
    if (!status && strcmp(digits, file->hash) != 0)
        status =
            ct_error(CT_CODE_DATA_LOSS, "%s was changed: its hash must be %s, but is %s", path, file->hash, digits);
    free(path);
    return status;
}

static ct_status *verify(ct_checkpoint *checkpoint)
{
    return ct_workers_run(ct_workers_count(MAX_VERIFIERS), checkpoint->manifest.num_files, verify_file, checkpoint);
}

static void *verify_in_background(void *argument)
{
    ct_checkpoint *checkpoint = argument;
    checkpoint->verified = verify(checkpoint);
    return NULL;
}

ct_status *ct_checkpoint_verified(ct_checkpoint *checkpoint)
{
    if (checkpoint->is_verifying) pthread_join(checkpoint->verifier, NULL);
    checkpoint->is_verifying = false;
    ct_status *status = checkpoint->verified;
    checkpoint->verified = NULL;
    return status;
}

static ct_status *start_verify(ct_checkpoint *checkpoint, const ct_checkpoint_open_opts *opts)
{
    if (!opts || !opts->verify) return NULL;
    if (!opts->in_background || pthread_create(&checkpoint->verifier, NULL, verify_in_background, checkpoint))
        return verify(checkpoint);
    checkpoint->is_verifying = true;
    return NULL;
}

/* The files that hold no tensor, but for the index that Hugging Face's form has of them. */
static void find_assets(ct_checkpoint *checkpoint)
{
    const ct__manifest *manifest = &checkpoint->manifest;
    bool *holds = CT_ARENA_ARRAY(&checkpoint->arena, bool, manifest->num_files);
    for (size_t i = 0; i < manifest->num_tensors; i++)
        for (size_t j = 0; j < manifest->tensors[i].num_shards; j++) holds[manifest->places[i][j].file] = true;
    checkpoint->assets = CT_ARENA_ARRAY(&checkpoint->arena, size_t, manifest->num_files);
    for (size_t i = 0; i < manifest->num_files; i++)
        if (!holds[i] && strcmp(manifest->files[i].name, CT__INDEX_NAME) != 0)
            checkpoint->assets[checkpoint->num_assets++] = i;
}

/* step -1: any */
static ct_status *open_step(ct_checkpoint *checkpoint, int64_t step, const ct_checkpoint_open_opts *opts)
{
    char *path = ct_path_join(checkpoint->path, CT__MANIFEST_NAME);
    ct__manifest *manifest = &checkpoint->manifest;
    ct_status *status = NULL;
    if (!ct_path_exists(path)) {
        status = ct_error(CT_CODE_DATA_LOSS, "%s is missing", path);
        goto out;
    }
    CT_TRY_OUT(ct__manifest_read(path, &checkpoint->arena, manifest, &checkpoint->json));
    if (step >= 0 && manifest->step != step) {
        status = ct_error(CT_CODE_DATA_LOSS, "%s is of step %lld", path, (long long)manifest->step);
        goto out;
    }
    for (size_t i = 0; i < manifest->num_tensors; i++)
        ct_map_set(&checkpoint->by_name, manifest->tensors[i].name, (void *)(uintptr_t)(i + 1));
    checkpoint->maps = ct_alloc_zeroed(manifest->num_files, sizeof(*checkpoint->maps));
    for (size_t i = 0; i < manifest->num_files; i++) CT_TRY_OUT(open_file(checkpoint, i));
    find_assets(checkpoint);
    status = start_verify(checkpoint, opts);
out:
    free(path);
    return status;
}

static ct_status *no_such_step(const char *folder, int64_t step)
{
    int64_t *steps;
    size_t num_steps;
    CT_TRY(ct_checkpoint_list(folder, &steps, &num_steps));
    ct_status *status =
        num_steps ? ct_error(CT_CODE_NOT_FOUND, "%s has no step %lld; it has %zu from step %lld to %lld", folder,
                             (long long)step, num_steps, (long long)steps[0], (long long)steps[num_steps - 1])
                  : ct_error(CT_CODE_NOT_FOUND, "%s has no step %lld, nor any other", folder, (long long)step);
    free(steps);
    return status;
}

static ct_checkpoint *new_checkpoint(char *path)
{
    ct_checkpoint *checkpoint = ct_alloc_zeroed(1, sizeof(*checkpoint));
    checkpoint->path = path;
    ct_arena_init(&checkpoint->arena);
    ct_map_init(&checkpoint->by_name);
    return checkpoint;
}

ct_status *ct_checkpoint_open(const char *folder, int64_t step, const ct_checkpoint_open_opts *opts,
                              ct_checkpoint **out_checkpoint)
{
    *out_checkpoint = NULL;
    ct_checkpoint *checkpoint = new_checkpoint(ct_checkpoint_path(folder, step));
    ct_status *status =
        ct_path_is_dir(checkpoint->path) ? open_step(checkpoint, step, opts) : no_such_step(folder, step);
    if (status)
        ct_checkpoint_close(checkpoint);
    else
        *out_checkpoint = checkpoint;
    return status;
}

ct_status *ct_checkpoint_open_path(const char *path, const ct_checkpoint_open_opts *opts,
                                   ct_checkpoint **out_checkpoint)
{
    *out_checkpoint = NULL;
    ct_checkpoint *checkpoint = new_checkpoint(ct_strdup(path));
    char *manifest = ct_path_join(path, CT__MANIFEST_NAME);
    ct_status *status = ct_path_exists(manifest)
                            ? open_step(checkpoint, -1, opts)
                            : ct_error(CT_CODE_NOT_FOUND, "%s must be a saved step, with a " CT__MANIFEST_NAME, path);
    free(manifest);
    if (status)
        ct_checkpoint_close(checkpoint);
    else
        *out_checkpoint = checkpoint;
    return status;
}

int64_t ct_checkpoint_step(const ct_checkpoint *checkpoint)
{
    return checkpoint->manifest.step;
}

ct_json_value ct_checkpoint_info(const ct_checkpoint *checkpoint)
{
    return ct_json_get(ct_json_root(checkpoint->json), "info");
}

size_t ct_checkpoint_num_tensors(const ct_checkpoint *checkpoint)
{
    return checkpoint->manifest.num_tensors;
}

const ct_checkpoint_tensor *ct_checkpoint_at(const ct_checkpoint *checkpoint, size_t index)
{
    CT_ASSERT(index < checkpoint->manifest.num_tensors);
    return &checkpoint->manifest.tensors[index];
}

const ct_checkpoint_tensor *ct_checkpoint_find(const ct_checkpoint *checkpoint, const char *name)
{
    size_t index = (size_t)(uintptr_t)ct_map_get(&checkpoint->by_name, name);
    return index ? &checkpoint->manifest.tensors[index - 1] : NULL;
}

size_t ct_checkpoint_num_assets(const ct_checkpoint *checkpoint)
{
    return checkpoint->num_assets;
}

ct_checkpoint_asset ct_checkpoint_asset_at(const ct_checkpoint *checkpoint, size_t index)
{
    CT_ASSERT(index < checkpoint->num_assets);
    size_t file = checkpoint->assets[index];
    return (ct_checkpoint_asset){.name = checkpoint->manifest.files[file].name,
                                 .bytes = checkpoint->maps[file].data,
                                 .size_bytes = checkpoint->maps[file].size_bytes};
}

static ct_status *not_found(const ct_checkpoint *checkpoint, const char *name)
{
    size_t count = checkpoint->manifest.num_tensors;
    const char **names = ct_alloc((count + 1) * sizeof(*names));
    for (size_t i = 0; i < count; i++) names[i] = checkpoint->manifest.tensors[i].name;
    const char *nearest = ct_nearest_name(name, names, count);
    free(names);
    ct_status *status = ct_error(CT_CODE_NOT_FOUND, "%s has no tensor %s among its %zu", checkpoint->path, name, count);
    return nearest ? ct_status_note(status, "the nearest is %s", nearest) : status;
}

static void append_type(ct_str *text, const ct_checkpoint_tensor *tensor)
{
    ct_str_printf(text, "%s [", ct_dtype_name(tensor->dtype));
    for (int i = 0; i < tensor->rank; i++) ct_str_printf(text, "%s%lld", i ? ", " : "", (long long)tensor->sizes[i]);
    ct_str_append_char(text, ']');
}

static ct_status *check_type(const ct_checkpoint *checkpoint, const ct_checkpoint_tensor *wanted,
                             const ct_checkpoint_tensor *saved)
{
    if (wanted->dtype == saved->dtype && wanted->rank == saved->rank &&
        !memcmp(wanted->sizes, saved->sizes, (size_t)saved->rank * sizeof(saved->sizes[0])))
        return NULL;
    ct_str text;
    ct_str_init(&text);
    ct_str_printf(&text, "tensor %s must be ", wanted->name);
    append_type(&text, wanted);
    ct_str_append(&text, ", but is ");
    append_type(&text, saved);
    ct_status *status = ct_error(CT_CODE_INVALID_ARGUMENT, "%s in %s", text.data, checkpoint->path);
    ct_str_deinit(&text);
    return status;
}

ct_status *ct_checkpoint_read(const ct_checkpoint *checkpoint, const ct_checkpoint_tensor *wanted,
                              const ct_checkpoint_shard *region, void *out_bytes)
{
    const ct_checkpoint_tensor *saved = ct_checkpoint_find(checkpoint, wanted->name);
    if (!saved) return not_found(checkpoint, wanted->name);
    CT_TRY(check_type(checkpoint, wanted, saved));
    ct_checkpoint_shard whole = ct__box_whole(saved->sizes, saved->rank);
    if (!region) region = &whole;
    CT_ASSERT(ct__box_within(region, saved->sizes, saved->rank));
    const ct__manifest_place *places = checkpoint->manifest.places[saved - checkpoint->manifest.tensors];
    for (size_t i = 0; i < saved->num_shards; i++) {
        ct_checkpoint_shard part;
        if (!ct__box_intersect(region, &saved->shards[i], saved->rank, &part)) continue;
        ct__box_copy(&part, saved->rank, ct_dtype_bytes(saved->dtype), &saved->shards[i],
                     checkpoint->maps[places[i].file].data + places[i].offset, region, out_bytes);
    }
    return NULL;
}
