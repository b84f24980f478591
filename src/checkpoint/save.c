/* Saving: shards are laid out over files first, then each file is streamed and hashed in one pass, several files at a
 * time, then the manifest makes the folder a checkpoint and a rename makes it the step.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/workers.h"
#include "checkpoint/box.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/manifest.h"
#include "checkpoint/steps.h"
#include "formats/safetensors.h"

static const int64_t DEFAULT_FILE_BYTES = (int64_t)4 << 30, DEFAULT_HF_BYTES = 5000000000;
static const int64_t LEAST_LANE_BYTES = 32 << 20; /* less is not worth a file of its own */

/* One shard on its way into a file. */
typedef struct piece {
    size_t tensor, shard, file;
    int64_t size_bytes;
    const char *name; /* in the file */
} piece;

typedef struct save {
    ct_arena arena;
    ct_checkpoint_save_opts opts;
    ct__manifest manifest; /* files: first those of tensors, then index and assets */
    piece *pieces;
    size_t num_pieces;
    size_t *first_piece;            /* [num_data_files + 1] */
    size_t num_data_files, num_own; /* of the data files the first that are not opts.beside */
    ct_checkpoint_bytes bytes;
    void *context;
    const char *folder; /* where the files go */
} save;

static size_t element_bytes(const save *s, size_t tensor)
{
    return ct_dtype_bytes(s->manifest.tensors[tensor].dtype);
}

/* The caller's tensors with their shards made explicit. */
static ct_status *add_tensors(save *s, const ct_checkpoint_tensor *tensors, size_t num_tensors)
{
    ct__manifest *manifest = &s->manifest;
    manifest->num_tensors = num_tensors;
    manifest->tensors = CT_ARENA_ARRAY(&s->arena, ct_checkpoint_tensor, num_tensors);
    manifest->places = CT_ARENA_ARRAY(&s->arena, ct__manifest_place *, num_tensors);
    ct_status *status = NULL;
    ct_map seen;
    ct_map_init(&seen);
    for (size_t i = 0; i < num_tensors; i++) {
        ct_checkpoint_tensor *tensor = &manifest->tensors[i];
        *tensor = tensors[i];
        CT_TRY_OUT(ct__shards_check(tensor));
        if (ct_map_has(&seen, tensor->name)) {
            status = ct_error(CT_CODE_INVALID_ARGUMENT, "tensor %s is given twice", tensor->name);
            goto out;
        }
        ct_map_set(&seen, tensor->name, NULL);
        if (!tensor->num_shards) {
            ct_checkpoint_shard whole = ct__box_whole(tensor->sizes, tensor->rank);
            tensor->shards = ct_arena_dup(&s->arena, &whole, sizeof(whole));
            tensor->num_shards = 1;
        }
        manifest->places[i] = CT_ARENA_ARRAY(&s->arena, ct__manifest_place, tensor->num_shards);
        s->num_pieces += tensor->num_shards;
    }
out:
    ct_map_deinit(&seen);
    return status;
}

/* The end of the tensors from begin on that belong together. */
static size_t group_end(const save *s, size_t begin)
{
    const ct_checkpoint_tensor *tensors = s->manifest.tensors, *first = &tensors[begin];
    size_t end = begin + 1;
    if (!s->opts.groups || !s->opts.groups[begin]) return end;
    while (end < s->manifest.num_tensors && s->opts.groups[end] == s->opts.groups[begin] &&
           tensors[end].num_shards == first->num_shards && tensors[end].dtype == first->dtype)
        end++;
    return end;
}

/* The shards of tensors [first, last), larger elements first so that every one is aligned in its file. */
static void add_pieces(save *s, size_t first, size_t last, size_t *count)
{
    const ct_checkpoint_tensor *tensors = s->manifest.tensors;
    for (size_t size = 8; size; size /= 2)
        for (size_t begin = first, end; begin < last; begin = end) {
            end = group_end(s, begin);
            if (element_bytes(s, begin) != size) continue;
            for (size_t j = 0; j < tensors[begin].num_shards; j++)
                for (size_t i = begin; i < end; i++) {
                    int64_t volume = ct__box_volume(&tensors[i].shards[j], tensors[i].rank);
                    const char *name = tensors[i].num_shards == 1
                                           ? tensors[i].name
                                           : ct_arena_printf(&s->arena, "%s@%zu", tensors[i].name, j);
                    s->pieces[(*count)++] =
                        (piece){.tensor = i, .shard = j, .size_bytes = volume * (int64_t)size, .name = name};
                }
        }
}

static void order_pieces(save *s)
{
    size_t count = 0, num_tensors = s->manifest.num_tensors, first_beside = num_tensors - s->opts.num_beside;
    s->pieces = CT_ARENA_ARRAY(&s->arena, piece, s->num_pieces);
    add_pieces(s, 0, first_beside, &count);
    add_pieces(s, first_beside, num_tensors, &count);
    CT_ASSERT(count == s->num_pieces);
}

/* How many bytes a file may have: what the caller says, and no more than gives every lane a file. */
static int64_t file_limit(const save *s)
{
    int64_t limit = s->opts.max_file_bytes, total = 0;
    if (s->opts.is_hf) return limit ? limit : DEFAULT_HF_BYTES;
    for (size_t i = 0; i < s->num_pieces; i++) total += s->pieces[i].size_bytes;
    if (!limit) limit = DEFAULT_FILE_BYTES;
    return CT_MIN(limit, CT_MAX(total / s->opts.num_lanes + 1, LEAST_LANE_BYTES));
}

/* The file of each piece, and the files' names. */
static void lay_out(save *s)
{
    ct__manifest *manifest = &s->manifest;
    order_pieces(s);
    s->first_piece = CT_ARENA_ARRAY(&s->arena, size_t, s->num_pieces + 1);
    int64_t file_bytes = 0, limit = file_limit(s);
    size_t first_beside = s->num_pieces - s->opts.num_beside; /* one piece each */
    for (size_t i = 0; i < s->num_pieces; i++) {
        piece *p = &s->pieces[i];
        bool is_beside = i >= first_beside, is_full = file_bytes && p->size_bytes > limit - file_bytes;
        if (i == 0 || i == first_beside || (is_full && p->size_bytes && !is_beside)) {
            s->first_piece[s->num_data_files++] = i;
            file_bytes = 0;
        }
        p->file = s->num_data_files - 1;
        file_bytes += p->size_bytes;
    }
    s->first_piece[s->num_data_files] = s->num_pieces;
    manifest->num_files = s->num_data_files;
    manifest->files = CT_ARENA_ARRAY(&s->arena, ct__manifest_file, s->num_data_files + 1 + s->opts.num_assets);
    size_t num_own = s->num_data_files - (s->opts.num_beside ? 1 : 0);
    for (size_t i = 0; i < s->num_data_files; i++) {
        ct__manifest_file *file = &manifest->files[i];
        if (i == num_own)
            snprintf(file->name, sizeof(file->name), "%s", s->opts.beside);
        else if (!s->opts.is_hf)
            snprintf(file->name, sizeof(file->name), "state-%05zu.safetensors", i + 1);
        else if (num_own == 1)
            snprintf(file->name, sizeof(file->name), "model.safetensors");
        else
            snprintf(file->name, sizeof(file->name), "model-%05zu-of-%05zu.safetensors", i + 1, num_own);
    }
    s->num_own = num_own;
}

/* Sees the bytes on their way: all of the file, and the shard that is being written. */
typedef struct observer {
    ct__hash *file, *shard; /* shard: NULL in the header */
    int64_t size_bytes;
} observer;

static void observe(void *context, const void *bytes, size_t size_bytes)
{
    observer *seen = context;
    ct__hash_update(seen->file, bytes, size_bytes);
    if (seen->shard) ct__hash_update(seen->shard, bytes, size_bytes);
    seen->size_bytes += (int64_t)size_bytes;
}

static ct_status *write_file(void *context, int lane, size_t index)
{
    save *s = context;
    ct__manifest_file *file = &s->manifest.files[index];
    size_t begin = s->first_piece[index], end = s->first_piece[index + 1];
    observer seen = {.file = ct__hash_new()};
    char *path = ct_path_join(s->folder, file->name);
    ct_safetensors_writer *writer = NULL;
    ct_status *status = NULL;
    CT_TRY_OUT(ct_safetensors_writer_new(path, &(ct_safetensors_writer_opts){observe, &seen}, &writer));
    if (s->opts.is_hf || index >= s->num_own) ct_safetensors_writer_metadata(writer, "format", "pt");
    for (size_t i = begin; i < end; i++) {
        const ct_checkpoint_tensor *tensor = &s->manifest.tensors[s->pieces[i].tensor];
        CT_TRY_OUT(ct_safetensors_writer_add(writer, s->pieces[i].name, tensor->dtype,
                                             tensor->shards[s->pieces[i].shard].sizes, tensor->rank));
    }
    for (size_t i = begin; i < end; i++) {
        const piece *p = &s->pieces[i];
        ct__manifest_place *place = &s->manifest.places[p->tensor][p->shard];
        const void *bytes = NULL;
        CT_TRY_OUT(ct_status_note(s->bytes(s->context, lane, p->tensor, p->shard, &bytes), "saving %s", p->name));
        CT_TRY_OUT(ct_safetensors_writer_write(writer, p->name, NULL, 0)); /* the header, before the first */
        seen.shard = ct__hash_new();
        status = ct_safetensors_writer_write(writer, p->name, bytes, (size_t)p->size_bytes);
        ct__hash_finish(seen.shard, place->hash);
        seen.shard = NULL;
        if (status) goto out;
        place->file = p->file;
        place->offset = ct_safetensors_writer_offset(writer, p->name);
    }
    status = ct_safetensors_writer_finish(writer);
    writer = NULL;
out:
    ct_safetensors_writer_free(writer);
    ct__hash_finish(seen.file, file->hash);
    file->size_bytes = seen.size_bytes;
    free(path);
    return status;
}

/* A small file, hashed as the others are. */
static ct_status *write_small(save *s, const char *name, const void *bytes, size_t size_bytes)
{
    ct__manifest_file *file = &s->manifest.files[s->manifest.num_files];
    snprintf(file->name, sizeof(file->name), "%s", name);
    file->size_bytes = (int64_t)size_bytes;
    ct__hash_bytes(bytes, size_bytes, file->hash);
    s->manifest.num_files++;
    char *path = ct_path_join(s->folder, name);
    ct_status *status = ct_file_write(path, bytes, size_bytes);
    free(path);
    return status;
}

/* model.safetensors.index.json, which says in which file a tensor is. */
static ct_status *write_index(save *s)
{
    int64_t total_bytes = 0;
    ct_json_writer *writer = ct_json_writer_new();
    ct_json_begin_object(writer, NULL);
    ct_json_begin_object(writer, "metadata");
    size_t num_pieces = s->num_pieces - s->opts.num_beside;
    for (size_t i = 0; i < num_pieces; i++) total_bytes += s->pieces[i].size_bytes;
    ct_json_put_int(writer, "total_size", total_bytes);
    ct_json_end(writer);
    ct_json_begin_object(writer, "weight_map");
    for (size_t i = 0; i < num_pieces; i++)
        ct_json_put_string(writer, s->pieces[i].name, s->manifest.files[s->pieces[i].file].name);
    ct_json_end(writer);
    ct_json_end(writer);
    char *text = ct_json_writer_text(writer, true);
    ct_json_writer_free(writer);
    ct_status *status = write_small(s, CT__INDEX_NAME, text, strlen(text));
    free(text);
    return status;
}

/* Checks a file's name, and makes the folder that it has in it, if it has one. */
static ct_status *make_folder_of(const save *s, const char *name)
{
    if (!ct__manifest_name_fits(name))
        return ct_error(CT_CODE_INVALID_ARGUMENT,
                        "a file of a step must have a name below %zu characters, in one folder at most, found %s",
                        sizeof(s->manifest.files->name), name);
    if (!strchr(name, '/')) return NULL;
    char *path = ct_path_join(s->folder, name), *folder = ct_path_parent(path);
    ct_status *status = ct_dir_make(folder);
    free(folder);
    free(path);
    return status;
}

/* All but the manifest. */
static ct_status *write_files(save *s)
{
    CT_TRY(ct_dir_make(s->folder));
    if (s->opts.num_beside) CT_TRY(make_folder_of(s, s->opts.beside));
    for (size_t i = 0; i < s->opts.num_assets; i++) CT_TRY(make_folder_of(s, s->opts.assets[i].name));
    if (s->num_data_files) CT_TRY(ct_workers_run(s->opts.num_lanes, s->num_data_files, write_file, s));
    if (s->opts.is_hf && s->num_own > 1) CT_TRY(write_index(s));
    for (size_t i = 0; i < s->opts.num_assets; i++) {
        const ct_checkpoint_asset *asset = &s->opts.assets[i];
        CT_TRY(write_small(s, asset->name, asset->bytes, asset->size_bytes));
    }
    return NULL;
}

static ct_status *write_step(save *s, ct_json_value info)
{
    CT_TRY(write_files(s));
    char *text = ct__manifest_text(&s->manifest, info);
    char *path = ct_path_join(s->folder, CT__MANIFEST_NAME);
    ct_status *status = ct_file_write(path, text, strlen(text)); /* flushes the folder too */
    free(path);
    free(text);
    return status;
}

static ct_status *save_init(save *s, const ct_checkpoint_tensor *tensors, size_t num_tensors, ct_checkpoint_bytes bytes,
                            void *context, const ct_checkpoint_save_opts *opts)
{
    *s = (save){.bytes = bytes, .context = context};
    ct_arena_init(&s->arena);
    if (opts) s->opts = *opts;
    if (!s->opts.num_lanes) s->opts.num_lanes = 1;
    CT_TRY(add_tensors(s, tensors, num_tensors));
    CT_ASSERT(s->opts.num_beside <= num_tensors);
    for (size_t i = 0; i < num_tensors; i++) {
        bool is_whole = s->opts.is_hf || i >= num_tensors - s->opts.num_beside;
        CT_ASSERT(!is_whole || s->manifest.tensors[i].num_shards == 1);
    }
    lay_out(s);
    return NULL;
}

ct_status *ct_checkpoint_save(const char *folder, int64_t step, const ct_checkpoint_tensor *tensors, size_t num_tensors,
                              ct_checkpoint_bytes bytes, void *context, const ct_checkpoint_save_opts *opts)
{
    CT_ASSERT(step >= 0);
    ct_status *status = NULL;
    ct_json *json = NULL;
    save s;
    char *temporary = ct__step_temporary(folder, step), *parent = ct_path_parent(folder);
    bool begun = false;
    ct_json_value info = {0};
    CT_TRY_OUT(save_init(&s, tensors, num_tensors, bytes, context, opts));
    s.manifest.step = step;
    s.folder = temporary;
    if (s.opts.info) {
        CT_TRY_OUT(ct_json_parse(s.opts.info, strlen(s.opts.info), "checkpoint info", &json));
        CT_TRY_OUT(ct_json_as_object(ct_json_root(json), &info));
    }
    CT_TRY_OUT(ct_dir_make(folder));
    CT_TRY_OUT(ct_dir_sync(parent));
    CT_TRY_OUT(ct__steps_clean(folder));
    begun = true;
    CT_TRY_OUT(write_step(&s, info));
    CT_TRY_OUT(ct__step_install(folder, step, temporary));
out:
    if (status && begun) {
        status = ct_status_note(status, "saving step %lld; the steps saved before are untouched", (long long)step);
        status = ct_status_first(status, ct_dir_remove(temporary));
    }
    free(temporary);
    free(parent);
    ct_json_free(json);
    ct_arena_deinit(&s.arena);
    return status;
}

ct_status *ct_checkpoint_export(const char *path, const ct_checkpoint_tensor *tensors, size_t num_tensors,
                                ct_checkpoint_bytes bytes, void *context, const ct_checkpoint_save_opts *opts)
{
    ct_status *status = NULL;
    ct_checkpoint_save_opts hf = opts ? *opts : (ct_checkpoint_save_opts){0};
    hf.is_hf = true;
    save s;
    char *parent = ct_path_parent(path), *temporary = ct_asprintf("%s.tmp-%ld", path, (long)getpid());
    CT_TRY_OUT(save_init(&s, tensors, num_tensors, bytes, context, &hf));
    s.folder = temporary;
    if (ct_path_exists(path) && rmdir(path)) { /* an empty folder may stand there */
        status = ct_error(CT_CODE_ALREADY_EXISTS, "%s exists already; move it away, or choose another", path);
        goto out;
    }
    CT_TRY_OUT(ct_dir_make(parent));
    status = write_files(&s);
    if (!status) status = ct_dir_sync(temporary);
    if (!status && rename(temporary, path)) status = ct_errno_error("cannot rename %s to %s", temporary, path);
    if (!status) status = ct_dir_sync(parent);
    if (status) status = ct_status_first(status, ct_dir_remove(temporary));
out:
    free(parent);
    free(temporary);
    ct_arena_deinit(&s.arena);
    return status;
}
