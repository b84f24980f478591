/* Saving: shards are laid out over files first, then each file is streamed and hashed in one pass, then the manifest
 * makes the folder a checkpoint and a rename makes it the step.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "checkpoint/box.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/manifest.h"
#include "checkpoint/steps.h"
#include "formats/safetensors.h"

static const int64_t DEFAULT_FILE_BYTES = (int64_t)4 << 30;

/* One shard on its way into a file. */
typedef struct piece {
    size_t tensor, shard, file;
    int64_t size_bytes;
} piece;

typedef struct save {
    ct_arena arena;
    ct__manifest manifest;
    piece *pieces;
    size_t num_pieces;
    ct_checkpoint_bytes bytes;
    void *context;
    const int *groups;
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
    if (!s->groups || !s->groups[begin]) return end;
    while (end < s->manifest.num_tensors && s->groups[end] == s->groups[begin] &&
           tensors[end].num_shards == first->num_shards && tensors[end].dtype == first->dtype)
        end++;
    return end;
}

/* All shards, larger elements first so that every one is aligned in its file, and the file of each. */
static void lay_out(save *s, int64_t max_file_bytes)
{
    ct__manifest *manifest = &s->manifest;
    s->pieces = CT_ARENA_ARRAY(&s->arena, piece, s->num_pieces);
    size_t count = 0;
    for (size_t size = 8; size; size /= 2)
        for (size_t begin = 0, end; begin < manifest->num_tensors; begin = end) {
            end = group_end(s, begin);
            if (element_bytes(s, begin) != size) continue;
            for (size_t j = 0; j < manifest->tensors[begin].num_shards; j++)
                for (size_t i = begin; i < end; i++) {
                    int64_t volume = ct__box_volume(&manifest->tensors[i].shards[j], manifest->tensors[i].rank);
                    s->pieces[count++] = (piece){.tensor = i, .shard = j, .size_bytes = volume * (int64_t)size};
                }
        }
    CT_ASSERT(count == s->num_pieces);
    int64_t file_bytes = 0;
    for (size_t i = 0; i < count; i++) {
        piece *p = &s->pieces[i];
        if (i == 0 || (file_bytes && p->size_bytes && p->size_bytes > max_file_bytes - file_bytes)) {
            manifest->num_files++;
            file_bytes = 0;
        }
        p->file = manifest->num_files - 1;
        file_bytes += p->size_bytes;
    }
    manifest->files = CT_ARENA_ARRAY(&s->arena, ct__manifest_file, manifest->num_files);
    for (size_t i = 0; i < manifest->num_files; i++)
        snprintf(manifest->files[i].name, sizeof(manifest->files[i].name), "state-%05zu.safetensors", i + 1);
}

typedef struct observer {
    ct__hash *hash;
    int64_t size_bytes;
} observer;

static void observe(void *context, const void *bytes, size_t size_bytes)
{
    observer *seen = context;
    ct__hash_update(seen->hash, bytes, size_bytes);
    seen->size_bytes += (int64_t)size_bytes;
}

static const char *piece_name(save *s, const piece *p)
{
    const ct_checkpoint_tensor *tensor = &s->manifest.tensors[p->tensor];
    return tensor->num_shards == 1 ? tensor->name : ct_arena_printf(&s->arena, "%s@%zu", tensor->name, p->shard);
}

/* Pieces [begin, end), one file. */
static ct_status *write_file(save *s, const char *folder, size_t begin, size_t end)
{
    ct__manifest_file *file = &s->manifest.files[s->pieces[begin].file];
    observer seen = {.hash = ct__hash_new()};
    char *path = ct_path_join(folder, file->name);
    ct_safetensors_writer *writer = NULL;
    ct_status *status = NULL;
    CT_TRY_OUT(ct_safetensors_writer_new(path, &(ct_safetensors_writer_opts){observe, &seen}, &writer));
    for (size_t i = begin; i < end; i++) {
        const ct_checkpoint_tensor *tensor = &s->manifest.tensors[s->pieces[i].tensor];
        CT_TRY_OUT(ct_safetensors_writer_add(writer, piece_name(s, &s->pieces[i]), tensor->dtype,
                                             tensor->shards[s->pieces[i].shard].sizes, tensor->rank));
    }
    for (size_t i = begin; i < end; i++) {
        const piece *p = &s->pieces[i];
        const char *name = piece_name(s, p);
        const void *bytes = NULL;
        CT_TRY_OUT(ct_status_note(s->bytes(s->context, p->tensor, p->shard, &bytes), "saving %s", name));
        CT_TRY_OUT(ct_safetensors_writer_write(writer, name, bytes, (size_t)p->size_bytes));
        s->manifest.places[p->tensor][p->shard] =
            (ct__manifest_place){.file = p->file, .offset = ct_safetensors_writer_offset(writer, name)};
    }
    status = ct_safetensors_writer_finish(writer);
    writer = NULL;
out:
    ct_safetensors_writer_free(writer);
    ct__hash_finish(seen.hash, file->hash);
    file->size_bytes = seen.size_bytes;
    free(path);
    return status;
}

static ct_status *write_step(save *s, const char *temporary, ct_json_value info)
{
    CT_TRY(ct_dir_make(temporary));
    for (size_t begin = 0, end; begin < s->num_pieces; begin = end) {
        end = begin + 1;
        while (end < s->num_pieces && s->pieces[end].file == s->pieces[begin].file) end++;
        CT_TRY(write_file(s, temporary, begin, end));
    }
    char *text = ct__manifest_text(&s->manifest, info);
    char *path = ct_path_join(temporary, CT__MANIFEST_NAME);
    ct_status *status = ct_file_write(path, text, strlen(text)); /* flushes the folder too */
    free(path);
    free(text);
    return status;
}

ct_status *ct_checkpoint_save(const char *folder, int64_t step, const ct_checkpoint_tensor *tensors, size_t num_tensors,
                              ct_checkpoint_bytes bytes, void *context, const ct_checkpoint_save_opts *opts)
{
    CT_ASSERT(step >= 0);
    ct_status *status = NULL;
    ct_json *json = NULL;
    save s = {.manifest.step = step, .bytes = bytes, .context = context};
    ct_arena_init(&s.arena);
    char *temporary = ct__step_temporary(folder, step), *parent = ct_path_parent(folder);
    bool begun = false;
    ct_json_value info = {0};
    if (opts && opts->info) {
        CT_TRY_OUT(ct_json_parse(opts->info, strlen(opts->info), "checkpoint info", &json));
        CT_TRY_OUT(ct_json_as_object(ct_json_root(json), &info));
    }
    CT_TRY_OUT(add_tensors(&s, tensors, num_tensors));
    if (opts) s.groups = opts->groups;
    lay_out(&s, opts && opts->max_file_bytes ? opts->max_file_bytes : DEFAULT_FILE_BYTES);
    CT_TRY_OUT(ct_dir_make(folder));
    CT_TRY_OUT(ct_dir_sync(parent));
    CT_TRY_OUT(ct__steps_clean(folder));
    begun = true;
    CT_TRY_OUT(write_step(&s, temporary, info));
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
