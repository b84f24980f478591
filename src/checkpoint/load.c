/* Loading: a region of a tensor is put together from the shards that it meets. A region that is one shard, as on the
 * mesh that saved, is read past the page cache and hashed on the way: one pass over the disk. Of any other a shard is
 * read and hashed whole the first time, through the cache, where the regions after it find their parts. Nothing is used
 * that was not verified.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/direct.h"
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
    ct_json *json;                  /* of the manifest, for the info */
    ct_map by_name;                 /* name -> index + 1 */
    ct_direct_file *files, *cached; /* each file twice: past the page cache, and through it */
    atomic_bool **verified;         /* [tensor][shard] read before, and right */
    ct_checkpoint_asset *assets;    /* files that are not of tensors, read */
    size_t num_assets;
};

enum { MAX_VERIFIERS = 4 };

void ct_checkpoint_close(ct_checkpoint *checkpoint)
{
    if (!checkpoint) return;
    for (size_t i = 0; checkpoint->files && i < 2 * checkpoint->manifest.num_files; i++)
        ct_direct_close(&checkpoint->files[i]);
    free(checkpoint->files);
    ct_map_deinit(&checkpoint->by_name);
    ct_json_free(checkpoint->json);
    ct_arena_deinit(&checkpoint->arena);
    free(checkpoint->path);
    free(checkpoint);
}

static ct_status *open_file(const ct_checkpoint *checkpoint, size_t index)
{
    const ct__manifest_file *file = &checkpoint->manifest.files[index];
    ct_direct_file *open = &checkpoint->files[index];
    char *path = ct_path_join(checkpoint->path, file->name);
    ct_status *status = NULL;
    if (!ct_path_exists(path)) {
        status = ct_error(CT_CODE_DATA_LOSS, "%s is missing", path);
        goto out;
    }
    CT_TRY_OUT(ct_direct_open(path, false, open));
    CT_TRY_OUT(ct_direct_open(path, true, &checkpoint->cached[index]));
    if (open->size_bytes != file->size_bytes)
        status = ct_error(CT_CODE_DATA_LOSS, "%s must have %lld bytes, but has %lld", path, (long long)file->size_bytes,
                          (long long)open->size_bytes);
out:
    free(path);
    return status;
}

/* Bytes on their way from a file: hashed, and copied when there is a place for them. */
typedef struct passage {
    ct__hash *hash;
    char *place;
} passage;

static void pass(void *context, const void *bytes, size_t size_bytes)
{
    passage *way = context;
    ct__hash_update(way->hash, bytes, size_bytes);
    if (!way->place) return;
    memcpy(way->place, bytes, size_bytes);
    way->place += size_bytes;
}

/* Where in a file, and what for in the error. */
typedef struct range {
    size_t file;
    int64_t offset, size_bytes;
    const char *hash, *what; /* hash NULL: the range is not compared */
    bool is_cached;
} range;

/* Reads and compares; out_bytes NULL only compares. */
static ct_status *read_range(const ct_checkpoint *checkpoint, const range *r, void *piece, void *out_bytes)
{
    char *path = ct_path_join(checkpoint->path, checkpoint->manifest.files[r->file].name), digits[CT__HASH_DIGITS + 1];
    passage way = {.hash = ct__hash_new(), .place = out_bytes};
    const ct_direct_file *file = &(r->is_cached ? checkpoint->cached : checkpoint->files)[r->file];
    ct_status *status = ct_direct_read(file, path, r->offset, r->size_bytes, piece, pass, &way);
    ct__hash_finish(way.hash, digits);
    if (!status && r->hash && strcmp(digits, r->hash) != 0)
        status = ct_error(CT_CODE_DATA_LOSS, "%s was changed: the hash of %s must be %s, but is %s", path, r->what,
                          r->hash, digits);
    free(path);
    return status;
}

/* All of a file. */
static ct_status *read_whole(const ct_checkpoint *checkpoint, size_t index, void *piece, void *out_bytes)
{
    const ct__manifest_file *file = &checkpoint->manifest.files[index];
    range r = {.file = index, .size_bytes = file->size_bytes, .hash = file->hash, .what = "it"};
    return read_range(checkpoint, &r, piece, out_bytes);
}

static ct_status *verify_file(void *context, int worker, size_t index)
{
    (void)worker;
    const ct_checkpoint *checkpoint = context;
    void *piece = ct_direct_piece_new();
    ct_status *status = read_whole(checkpoint, index, piece, NULL);
    free(piece);
    return status;
}

/* The files that hold no tensor, but for the index that Hugging Face's form has of them. */
static ct_status *read_assets(ct_checkpoint *checkpoint)
{
    const ct__manifest *manifest = &checkpoint->manifest;
    ct_status *status = NULL;
    bool *holds = CT_ARENA_ARRAY(&checkpoint->arena, bool, manifest->num_files);
    for (size_t i = 0; i < manifest->num_tensors; i++)
        for (size_t j = 0; j < manifest->tensors[i].num_shards; j++) holds[manifest->places[i][j].file] = true;
    checkpoint->assets = CT_ARENA_ARRAY(&checkpoint->arena, ct_checkpoint_asset, manifest->num_files);
    void *piece = NULL;
    for (size_t i = 0; i < manifest->num_files && !status; i++) {
        const ct__manifest_file *file = &manifest->files[i];
        if (holds[i] || !strcmp(file->name, CT__INDEX_NAME)) continue;
        if (!piece) piece = ct_direct_piece_new();
        char *bytes = ct_arena_alloc(&checkpoint->arena, (size_t)file->size_bytes + 1);
        status = read_whole(checkpoint, i, piece, bytes);
        checkpoint->assets[checkpoint->num_assets++] =
            (ct_checkpoint_asset){.name = file->name, .bytes = bytes, .size_bytes = (size_t)file->size_bytes};
    }
    free(piece);
    return status;
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
    checkpoint->files = ct_alloc(2 * manifest->num_files * sizeof(*checkpoint->files));
    checkpoint->cached = checkpoint->files + manifest->num_files;
    for (size_t i = 0; i < 2 * manifest->num_files; i++) checkpoint->files[i].descriptor = -1;
    checkpoint->verified = CT_ARENA_ARRAY(&checkpoint->arena, atomic_bool *, manifest->num_tensors);
    for (size_t i = 0; i < manifest->num_tensors; i++)
        checkpoint->verified[i] = CT_ARENA_ARRAY(&checkpoint->arena, atomic_bool, manifest->tensors[i].num_shards);
    for (size_t i = 0; i < manifest->num_files; i++) CT_TRY_OUT(open_file(checkpoint, i));
    CT_TRY_OUT(read_assets(checkpoint));
    if (opts && opts->verify) status = ct_workers_run(MAX_VERIFIERS, manifest->num_files, verify_file, checkpoint);
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
    return checkpoint->assets[index];
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

ct_status *ct_checkpoint_check(const ct_checkpoint *checkpoint, const ct_checkpoint_tensor *wanted)
{
    const ct_checkpoint_tensor *saved = ct_checkpoint_find(checkpoint, wanted->name);
    return saved ? check_type(checkpoint, wanted, saved) : not_found(checkpoint, wanted->name);
}

struct ct_checkpoint_reader {
    const ct_checkpoint *checkpoint;
    void *piece, *shard;
    size_t shard_bytes;
    const ct__manifest_place *held; /* what shard holds, or NULL */
};

ct_checkpoint_reader *ct_checkpoint_reader_new(const ct_checkpoint *checkpoint)
{
    ct_checkpoint_reader *reader = ct_alloc_zeroed(1, sizeof(*reader));
    reader->checkpoint = checkpoint;
    reader->piece = ct_direct_piece_new();
    return reader;
}

void ct_checkpoint_reader_free(ct_checkpoint_reader *reader)
{
    if (!reader) return;
    free(reader->piece);
    free(reader->shard);
    free(reader);
}

static range range_of_shard(const ct_checkpoint *checkpoint, const ct_checkpoint_tensor *tensor, size_t shard)
{
    const ct__manifest_place *place = &checkpoint->manifest.places[tensor - checkpoint->manifest.tensors][shard];
    return (range){.file = place->file,
                   .offset = place->offset,
                   .size_bytes =
                       ct__box_volume(&tensor->shards[shard], tensor->rank) * (int64_t)ct_dtype_bytes(tensor->dtype),
                   .hash = place->hash,
                   .what = tensor->name};
}

/* Bytes of a shard from its first element in part to its last. */
static void find_span(const ct_checkpoint_tensor *tensor, size_t shard, const ct_checkpoint_shard *part,
                      int64_t *out_begin, int64_t *out_end)
{
    const ct_checkpoint_shard *box = &tensor->shards[shard];
    int64_t first = 0, last = 0;
    for (int i = 0; i < tensor->rank; i++) {
        first = first * box->sizes[i] + part->offsets[i] - box->offsets[i];
        last = last * box->sizes[i] + part->offsets[i] - box->offsets[i] + part->sizes[i] - 1;
    }
    *out_begin = first * (int64_t)ct_dtype_bytes(tensor->dtype);
    *out_end = (last + 1) * (int64_t)ct_dtype_bytes(tensor->dtype);
}

/* Reads what part needs of a shard to its place in the reader's memory. */
static ct_status *read_part(ct_checkpoint_reader *reader, const ct_checkpoint_tensor *tensor, size_t shard,
                            const ct_checkpoint_shard *part)
{
    const ct_checkpoint *checkpoint = reader->checkpoint;
    size_t index = (size_t)(tensor - checkpoint->manifest.tensors);
    const ct__manifest_place *place = &checkpoint->manifest.places[index][shard];
    atomic_bool *verified = &checkpoint->verified[index][shard];
    range r = range_of_shard(checkpoint, tensor, shard);
    r.is_cached = true;
    if (reader->held == place) return NULL;
    reader->held = NULL;
    char *bytes = ct_reserve(&reader->shard, &reader->shard_bytes, (size_t)r.size_bytes);
    if (!atomic_load(verified)) {
        CT_TRY(read_range(checkpoint, &r, reader->piece, bytes));
        atomic_store(verified, true);
        reader->held = place;
        return NULL;
    }
    int64_t begin, end;
    find_span(tensor, shard, part, &begin, &end);
    r.offset += begin;
    r.size_bytes = end - begin;
    r.hash = NULL;
    return read_range(checkpoint, &r, reader->piece, bytes + begin);
}

ct_status *ct_checkpoint_reader_read(ct_checkpoint_reader *reader, const ct_checkpoint_tensor *wanted,
                                     const ct_checkpoint_shard *region, void *out_bytes)
{
    const ct_checkpoint *checkpoint = reader->checkpoint;
    CT_TRY(ct_checkpoint_check(checkpoint, wanted));
    const ct_checkpoint_tensor *saved = ct_checkpoint_find(checkpoint, wanted->name);
    ct_checkpoint_shard whole = ct__box_whole(saved->sizes, saved->rank);
    if (!region) region = &whole;
    CT_ASSERT(ct__box_within(region, saved->sizes, saved->rank));
    for (size_t i = 0; i < saved->num_shards; i++) {
        ct_checkpoint_shard part;
        if (!ct__box_intersect(region, &saved->shards[i], saved->rank, &part)) continue;
        size_t box_bytes = (size_t)saved->rank * sizeof(int64_t);
        if (!memcmp(region->offsets, saved->shards[i].offsets, box_bytes) &&
            !memcmp(region->sizes, saved->shards[i].sizes, box_bytes)) {
            range r = range_of_shard(checkpoint, saved, i);
            return read_range(checkpoint, &r, reader->piece, out_bytes);
        }
        CT_TRY(read_part(reader, saved, i, &part));
        ct__box_copy(&part, saved->rank, ct_dtype_bytes(saved->dtype), &saved->shards[i], reader->shard, region,
                     out_bytes);
    }
    return NULL;
}

ct_status *ct_checkpoint_read(const ct_checkpoint *checkpoint, const ct_checkpoint_tensor *wanted,
                              const ct_checkpoint_shard *region, void *out_bytes)
{
    ct_checkpoint_reader *reader = ct_checkpoint_reader_new(checkpoint);
    ct_status *status = ct_checkpoint_reader_read(reader, wanted, region, out_bytes);
    ct_checkpoint_reader_free(reader);
    return status;
}
