/* The manifest: written from and read into one struct. Its own hash is its last member, over the text with that hash as
 * zeros, so a manifest that was changed or cut is known before anything in it is believed.
 */
#include "checkpoint/manifest.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "checkpoint/box.h"

static const char FORMAT[] = "ctitan checkpoint";
enum { VERSION = 2 };

#define HASH_KEY "\"manifest_xxh3_128\":\""
static const char ZEROS[CT__HASH_DIGITS + 1] = "00000000000000000000000000000000";

static void put_numbers(ct_json_writer *writer, const char *key, const int64_t *numbers, int count)
{
    ct_json_begin_array(writer, key);
    for (int i = 0; i < count; i++) ct_json_put_int(writer, NULL, numbers[i]);
    ct_json_end(writer);
}

static void put_tensor(ct_json_writer *writer, const ct_checkpoint_tensor *tensor, const ct__manifest_place *places)
{
    ct_json_begin_object(writer, tensor->name);
    ct_json_put_string(writer, "dtype", ct_dtype_name(tensor->dtype));
    put_numbers(writer, "shape", tensor->sizes, tensor->rank);
    ct_json_begin_array(writer, "shards");
    for (size_t i = 0; i < tensor->num_shards; i++) {
        ct_json_begin_object(writer, NULL);
        ct_json_put_int(writer, "file", (int64_t)places[i].file);
        ct_json_put_int(writer, "offset", places[i].offset);
        put_numbers(writer, "offsets", tensor->shards[i].offsets, tensor->rank);
        put_numbers(writer, "sizes", tensor->shards[i].sizes, tensor->rank);
        ct_json_put_string(writer, "xxh3_128", places[i].hash);
        ct_json_end(writer);
    }
    ct_json_end(writer);
    ct_json_end(writer);
}

char *ct__manifest_text(const ct__manifest *manifest, ct_json_value info)
{
    ct_json_writer *writer = ct_json_writer_new();
    ct_json_begin_object(writer, NULL);
    ct_json_put_string(writer, "format", FORMAT);
    ct_json_put_int(writer, "version", VERSION);
    ct_json_put_int(writer, "step", manifest->step);
    ct_json_begin_array(writer, "files");
    for (size_t i = 0; i < manifest->num_files; i++) {
        ct_json_begin_object(writer, NULL);
        ct_json_put_string(writer, "name", manifest->files[i].name);
        ct_json_put_int(writer, "size_bytes", manifest->files[i].size_bytes);
        ct_json_put_string(writer, "xxh3_128", manifest->files[i].hash);
        ct_json_end(writer);
    }
    ct_json_end(writer);
    ct_json_begin_object(writer, "tensors");
    for (size_t i = 0; i < manifest->num_tensors; i++) put_tensor(writer, &manifest->tensors[i], manifest->places[i]);
    ct_json_end(writer);
    if (ct_json_is_absent(info)) {
        ct_json_begin_object(writer, "info");
        ct_json_end(writer);
    } else {
        ct_json_put_value(writer, "info", info);
    }
    ct_json_put_string(writer, "manifest_xxh3_128", ZEROS);
    ct_json_end(writer);
    char *text = ct_json_writer_text(writer, false);
    ct_json_writer_free(writer);
    size_t length = strlen(text);
    char digits[CT__HASH_DIGITS + 1];
    ct__hash_bytes(text, length, digits);
    memcpy(text + length - 2 - CT__HASH_DIGITS, digits, CT__HASH_DIGITS);
    return text;
}

/* ---- Reading. ---- */

static ct_status *check_hash(const char *path, char *text, size_t length)
{
    const size_t tail = strlen(HASH_KEY) + CT__HASH_DIGITS + 2; /* "manifest_xxh3_128":"...."} */
    if (length < tail || strncmp(text + length - tail, HASH_KEY, strlen(HASH_KEY)) != 0)
        return ct_error(CT_CODE_DATA_LOSS, "%s is cut short or not a manifest", path);
    char saved[CT__HASH_DIGITS + 1] = {0}, digits[CT__HASH_DIGITS + 1];
    char *place = text + length - 2 - CT__HASH_DIGITS;
    memcpy(saved, place, CT__HASH_DIGITS);
    memcpy(place, ZEROS, CT__HASH_DIGITS);
    ct__hash_bytes(text, length, digits);
    if (strcmp(saved, digits) != 0)
        return ct_error(CT_CODE_DATA_LOSS, "%s was changed: its hash must be %.40s, but is %s", path, saved, digits);
    return NULL;
}

static ct_status *read_numbers(ct_json_value object, const char *key, int count, int64_t *out_numbers)
{
    ct_json_value array;
    CT_TRY(ct_json_need_array(object, key, &array));
    if (ct_json_size(array) != (size_t)count)
        return ct_error(CT_CODE_DATA_LOSS, "%s must have %d numbers, but has %zu", key, count, ct_json_size(array));
    ct_json_iter iter = ct_json_iterate(array);
    while (ct_json_next(&iter)) CT_TRY(ct_json_as_int(iter.value, &out_numbers[iter.index]));
    return NULL;
}

bool ct__manifest_name_fits(const char *name)
{
    const char *slash = strchr(name, '/'), *last = slash ? slash + 1 : name;
    bool is_plain = name[0] && name[0] != '.' && last[0] && last[0] != '.' && !strchr(last, '/');
    return is_plain && name != slash && strlen(name) < sizeof(((ct__manifest_file *)NULL)->name);
}

static ct_status *read_files(ct_json_value root, ct_arena *arena, ct__manifest *manifest)
{
    ct_json_value array;
    CT_TRY(ct_json_need_array(root, "files", &array));
    manifest->num_files = ct_json_size(array);
    manifest->files = CT_ARENA_ARRAY(arena, ct__manifest_file, manifest->num_files);
    ct_json_iter iter = ct_json_iterate(array);
    while (ct_json_next(&iter)) {
        ct__manifest_file *file = &manifest->files[iter.index];
        const char *name, *hash;
        CT_TRY(ct_json_need_string(iter.value, "name", &name));
        CT_TRY(ct_json_need_string(iter.value, "xxh3_128", &hash));
        CT_TRY(ct_json_need_int(iter.value, "size_bytes", &file->size_bytes));
        if (!ct__manifest_name_fits(name) || strlen(hash) != CT__HASH_DIGITS || file->size_bytes < 0)
            return ct_error(CT_CODE_DATA_LOSS, "file %zu has an impossible name, hash or size", iter.index);
        strcpy(file->name, name);
        strcpy(file->hash, hash);
    }
    return NULL;
}

static ct_status *read_shard(ct_json_value value, const ct__manifest *manifest, const ct_checkpoint_tensor *tensor,
                             ct_checkpoint_shard *shard, ct__manifest_place *place)
{
    int64_t file;
    const char *hash;
    CT_TRY(ct_json_need_string(value, "xxh3_128", &hash));
    CT_TRY(ct_json_need_int(value, "file", &file));
    CT_TRY(ct_json_need_int(value, "offset", &place->offset));
    CT_TRY(read_numbers(value, "offsets", tensor->rank, shard->offsets));
    CT_TRY(read_numbers(value, "sizes", tensor->rank, shard->sizes));
    if (file < 0 || (size_t)file >= manifest->num_files)
        return ct_error(CT_CODE_DATA_LOSS, "tensor %s lies in file %lld of %zu", tensor->name, (long long)file,
                        manifest->num_files);
    if (strlen(hash) != CT__HASH_DIGITS)
        return ct_error(CT_CODE_DATA_LOSS, "tensor %s has a shard with an impossible hash", tensor->name);
    strcpy(place->hash, hash);
    place->file = (size_t)file;
    return NULL;
}

static ct_status *read_tensor(const ct_json_iter *pair, ct_arena *arena, ct__manifest *manifest)
{
    ct_checkpoint_tensor *tensor = &manifest->tensors[pair->index];
    const char *dtype;
    ct_json_value shape, shards;
    tensor->name = ct_arena_strdup(arena, pair->key);
    CT_TRY(ct_json_need_string(pair->value, "dtype", &dtype));
    CT_TRY(ct_json_need_array(pair->value, "shape", &shape));
    CT_TRY(ct_json_need_array(pair->value, "shards", &shards));
    tensor->dtype = ct_dtype_from_name(dtype);
    tensor->num_shards = ct_json_size(shards);
    if (tensor->dtype == CT_DTYPE_INVALID || ct_json_size(shape) > CT_MAX_RANK || !tensor->num_shards)
        return ct_error(CT_CODE_DATA_LOSS, "tensor %s has an impossible dtype, rank or number of shards", tensor->name);
    tensor->rank = (int)ct_json_size(shape);
    CT_TRY(read_numbers(pair->value, "shape", tensor->rank, tensor->sizes));
    ct_checkpoint_shard *boxes = CT_ARENA_ARRAY(arena, ct_checkpoint_shard, tensor->num_shards);
    ct__manifest_place *places = CT_ARENA_ARRAY(arena, ct__manifest_place, tensor->num_shards);
    tensor->shards = boxes;
    manifest->places[pair->index] = places;
    ct_json_iter iter = ct_json_iterate(shards);
    while (ct_json_next(&iter))
        CT_TRY(read_shard(iter.value, manifest, tensor, &boxes[iter.index], &places[iter.index]));
    CT_TRY(ct__shards_check(tensor));
    for (size_t i = 0; i < tensor->num_shards; i++) {
        int64_t size_bytes = ct__box_volume(&boxes[i], tensor->rank) * (int64_t)ct_dtype_bytes(tensor->dtype);
        int64_t file_bytes = manifest->files[places[i].file].size_bytes;
        if (places[i].offset < 0 || places[i].offset > file_bytes || size_bytes > file_bytes - places[i].offset)
            return ct_error(CT_CODE_DATA_LOSS, "tensor %s: shard %zu lies outside its file", tensor->name, i);
    }
    return NULL;
}

static ct_status *read_members(ct_json_value root, ct_arena *arena, ct__manifest *manifest)
{
    const char *format;
    int64_t version;
    ct_json_value tensors, info;
    CT_TRY(ct_json_need_string(root, "format", &format));
    CT_TRY(ct_json_need_int(root, "version", &version));
    if (strcmp(format, FORMAT) != 0 || version != VERSION)
        return ct_error(CT_CODE_UNIMPLEMENTED, "format must be \"%s\" of version %d, but is \"%s\" of version %lld",
                        FORMAT, VERSION, format, (long long)version);
    CT_TRY(ct_json_need_int(root, "step", &manifest->step));
    CT_TRY(read_files(root, arena, manifest));
    CT_TRY(ct_json_need_object(root, "tensors", &tensors));
    manifest->num_tensors = ct_json_size(tensors);
    manifest->tensors = CT_ARENA_ARRAY(arena, ct_checkpoint_tensor, manifest->num_tensors);
    manifest->places = CT_ARENA_ARRAY(arena, ct__manifest_place *, manifest->num_tensors);
    ct_json_iter iter = ct_json_iterate(tensors);
    while (ct_json_next(&iter)) CT_TRY(read_tensor(&iter, arena, manifest));
    return ct_json_need_object(root, "info", &info);
}

ct_status *ct__manifest_parse(const char *path, char *text, size_t length, ct_arena *arena, ct__manifest *out_manifest,
                              ct_json **out_json)
{
    *out_manifest = (ct__manifest){0};
    *out_json = NULL;
    ct_json *json;
    CT_TRY(check_hash(path, text, length));
    CT_TRY(ct_json_parse(text, length, path, &json));
    ct_status *status = read_members(ct_json_root(json), arena, out_manifest);
    if (status)
        ct_json_free(json);
    else
        *out_json = json;
    return status;
}

ct_status *ct__manifest_read(const char *path, ct_arena *arena, ct__manifest *out_manifest, ct_json **out_json)
{
    *out_json = NULL;
    char *text;
    size_t length;
    CT_TRY(ct_file_read(path, &text, &length));
    ct_status *status = ct__manifest_parse(path, text, length, arena, out_manifest, out_json);
    free(text);
    return ct_status_note(status, "reading %s", path);
}
