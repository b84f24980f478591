/* Reading safetensors. A header is believed only after every number in it was compared with the file: then the tensors
 * are pointers into the map and nothing is checked again. A folder is a table over files opened the same way.
 */
#include "formats/safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/file.h"
#include "base/half.h"
#include "base/map.h"
#include "base/str.h"
#include "formats/json.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tensors are used in the file's byte order");

static const int64_t MAX_HEADER_BYTES = 100000000;

static const struct {
    const char *name;
    int64_t bits; /* of one element */
    ct_dtype dtype;
} DTYPES[] = {
    {"BOOL", 8, CT_DTYPE_BOOL},       {"U8", 8, CT_DTYPE_U8},           {"I8", 8, CT_DTYPE_S8},
    {"F16", 16, CT_DTYPE_F16},        {"BF16", 16, CT_DTYPE_BF16},      {"I32", 32, CT_DTYPE_S32},
    {"U32", 32, CT_DTYPE_U32},        {"F32", 32, CT_DTYPE_F32},        {"I64", 64, CT_DTYPE_S64},
    {"F64", 64, CT_DTYPE_F64},        {"F4", 4, CT_DTYPE_INVALID},      {"F6_E2M3", 6, CT_DTYPE_INVALID},
    {"F6_E3M2", 6, CT_DTYPE_INVALID}, {"F8_E4M3", 8, CT_DTYPE_INVALID}, {"F8_E5M2", 8, CT_DTYPE_INVALID},
    {"F8_E8M0", 8, CT_DTYPE_INVALID}, {"I16", 16, CT_DTYPE_INVALID},    {"U16", 16, CT_DTYPE_INVALID},
    {"U64", 64, CT_DTYPE_INVALID},    {"C64", 64, CT_DTYPE_INVALID},
};

struct ct_safetensors {
    char *path;      /* file or folder */
    ct_file_map map; /* of a file that was opened by path */
    ct_arena arena;  /* names and metadata */
    ct_safetensors_tensor *tensors;
    size_t num_tensors;
    ct_map by_name;
    ct_map metadata;
    ct_safetensors **shards; /* of a folder */
    size_t num_shards;
};

const char *ct_safetensors_dtype_name(ct_dtype dtype)
{
    for (size_t i = 0; i < CT_COUNT(DTYPES); i++)
        if (DTYPES[i].dtype == dtype && dtype != CT_DTYPE_INVALID) return DTYPES[i].name;
    CT_BUG("safetensors has no dtype %d", (int)dtype);
}

ct_dtype ct_safetensors_dtype_from_name(const char *name)
{
    for (size_t i = 0; i < CT_COUNT(DTYPES); i++)
        if (!strcmp(DTYPES[i].name, name)) return DTYPES[i].dtype;
    return CT_DTYPE_INVALID;
}

static ct_safetensors *new_file(const char *path)
{
    ct_safetensors *file = ct_alloc_zeroed(1, sizeof(*file));
    file->path = ct_strdup(path);
    ct_arena_init(&file->arena);
    ct_map_init(&file->by_name);
    ct_map_init(&file->metadata);
    return file;
}

void ct_safetensors_close(ct_safetensors *file)
{
    if (!file) return;
    for (size_t i = 0; i < file->num_shards; i++) ct_safetensors_close(file->shards[i]);
    free(file->shards);
    free(file->tensors);
    ct_map_deinit(&file->by_name);
    ct_map_deinit(&file->metadata);
    ct_arena_deinit(&file->arena);
    ct_file_map_close(&file->map);
    free(file->path);
    free(file);
}

/* ---- One file's header. ---- */

static ct_status *parse_metadata(ct_safetensors *file, ct_json_value metadata)
{
    CT_TRY(ct_json_as_object(metadata, &metadata));
    ct_json_iter iter = ct_json_iterate(metadata);
    while (ct_json_next(&iter)) {
        const char *text;
        CT_TRY(ct_json_as_string(iter.value, &text));
        ct_map_set(&file->metadata, iter.key, ct_arena_strdup(&file->arena, text));
    }
    return NULL;
}

/* dtype and shape; out_bits is the size that they give. */
static ct_status *parse_type(ct_safetensors *file, ct_json_value entry, ct_safetensors_tensor *tensor,
                             int64_t *out_bits)
{
    const char *dtype_name;
    CT_TRY(ct_json_need_string(entry, "dtype", &dtype_name));
    size_t row = 0;
    while (row < CT_COUNT(DTYPES) && strcmp(DTYPES[row].name, dtype_name) != 0) row++;
    if (row == CT_COUNT(DTYPES))
        return ct_error(CT_CODE_INVALID_ARGUMENT, "%s: tensor %s has the unknown dtype \"%.40s\"", file->path,
                        tensor->name, dtype_name);
    tensor->dtype = DTYPES[row].dtype;
    tensor->dtype_name = DTYPES[row].name;
    *out_bits = DTYPES[row].bits;

    ct_json_value shape;
    CT_TRY(ct_json_need_array(entry, "shape", &shape));
    if (ct_json_size(shape) > CT_MAX_RANK)
        return ct_error(CT_CODE_INVALID_ARGUMENT, "%s: tensor %s may have at most %d dims, but has %zu", file->path,
                        tensor->name, CT_MAX_RANK, ct_json_size(shape));
    tensor->rank = (int)ct_json_size(shape);
    ct_json_iter iter = ct_json_iterate(shape);
    while (ct_json_next(&iter)) {
        int64_t size;
        CT_TRY(ct_json_as_int(iter.value, &size));
        if (size < 0)
            return ct_error(CT_CODE_INVALID_ARGUMENT, "%s: tensor %s: size %lld of dim %zu is negative", file->path,
                            tensor->name, (long long)size, iter.index);
        tensor->sizes[iter.index] = size;
        if (!ct_checked_mul(*out_bits, size, out_bits))
            return ct_error(CT_CODE_INVALID_ARGUMENT, "%s: tensor %s: its shape has more bits than 2^63", file->path,
                            tensor->name);
    }
    return NULL;
}

static ct_status *parse_entry(ct_safetensors *file, const ct_json_iter *pair, const unsigned char *data,
                              int64_t data_bytes, ct_safetensors_tensor *tensor)
{
    if (strlen(pair->key) != pair->key_length)
        return ct_error(CT_CODE_INVALID_ARGUMENT, "%s: the tensor name %s... holds a zero character", file->path,
                        pair->key);
    *tensor = (ct_safetensors_tensor){.name = ct_arena_strdup(&file->arena, pair->key), .path = file->path};
    ct_json_value entry, offsets;
    CT_TRY(ct_json_as_object(pair->value, &entry));
    int64_t bits, begin, end;
    CT_TRY(parse_type(file, entry, tensor, &bits));
    CT_TRY(ct_json_need_array(entry, "data_offsets", &offsets));
    if (ct_json_size(offsets) != 2)
        return ct_error(CT_CODE_INVALID_ARGUMENT,
                        "%s: tensor %s: data_offsets must be [begin, end], but has %zu values", file->path,
                        tensor->name, ct_json_size(offsets));
    CT_TRY(ct_json_as_int(ct_json_at(offsets, 0), &begin));
    CT_TRY(ct_json_as_int(ct_json_at(offsets, 1), &end));
    if (begin < 0 || begin > end || end > data_bytes)
        return ct_error(CT_CODE_INVALID_ARGUMENT,
                        "%s: tensor %s lies at [%lld, %lld), outside the %lld bytes of data that the file has; it may "
                        "be cut short",
                        file->path, tensor->name, (long long)begin, (long long)end, (long long)data_bytes);
    if (bits % 8 || bits / 8 != end - begin)
        return ct_error(CT_CODE_INVALID_ARGUMENT, "%s: tensor %s needs %lld bytes by its dtype and shape, but has %lld",
                        file->path, tensor->name, (long long)(bits / 8 + (bits % 8 != 0)), (long long)(end - begin));
    tensor->data = data + begin;
    tensor->size_bytes = (size_t)(end - begin);
    return NULL;
}

static int compare_place(const void *a, const void *b)
{
    const ct_safetensors_tensor *x = a, *y = b;
    if (x->data != y->data) return (uintptr_t)x->data < (uintptr_t)y->data ? -1 : 1;
    if (x->size_bytes != y->size_bytes) return x->size_bytes < y->size_bytes ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* The tensors, sorted by place, must cover the data from its first byte to its last. */
static ct_status *check_cover(const ct_safetensors *file, const unsigned char *data, int64_t data_bytes)
{
    int64_t position = 0;
    for (size_t i = 0; i < file->num_tensors; i++) {
        const ct_safetensors_tensor *tensor = &file->tensors[i];
        int64_t begin = (const unsigned char *)tensor->data - data;
        if (begin != position)
            return ct_error(CT_CODE_INVALID_ARGUMENT,
                            "%s: tensor %s begins at byte %lld of the data, but %s at %lld: %s", file->path,
                            tensor->name, (long long)begin, i ? "the one before it ends" : "the data begins",
                            (long long)position, begin < position ? "they overlap" : "a gap");
        position = begin + (int64_t)tensor->size_bytes;
    }
    if (position != data_bytes)
        return ct_error(CT_CODE_INVALID_ARGUMENT,
                        "%s: the last tensor ends at byte %lld of the data, but the file has %lld", file->path,
                        (long long)position, (long long)data_bytes);
    return NULL;
}

static void index_names(ct_safetensors *file)
{
    for (size_t i = 0; i < file->num_tensors; i++) ct_map_set(&file->by_name, file->tensors[i].name, &file->tensors[i]);
}

static ct_status *parse_header(ct_safetensors *file, const ct_json *json, const unsigned char *data, int64_t data_bytes)
{
    ct_json_value root;
    CT_TRY(ct_json_as_object(ct_json_root(json), &root));
    file->tensors = ct_alloc_zeroed(ct_json_size(root), sizeof(*file->tensors));
    bool seen_metadata = false;
    ct_map seen;
    ct_map_init(&seen);
    ct_status *status = NULL;
    ct_json_iter iter = ct_json_iterate(root);
    while (!status && ct_json_next(&iter)) {
        bool is_metadata = !strcmp(iter.key, "__metadata__");
        if (is_metadata ? seen_metadata : ct_map_has(&seen, iter.key)) {
            status =
                ct_error(CT_CODE_INVALID_ARGUMENT, "%s: the name %s stands twice in the header", file->path, iter.key);
        } else if (is_metadata) {
            seen_metadata = true;
            status = parse_metadata(file, iter.value);
        } else {
            ct_map_set(&seen, iter.key, NULL);
            status = parse_entry(file, &iter, data, data_bytes, &file->tensors[file->num_tensors]);
            file->num_tensors += !status;
        }
    }
    ct_map_deinit(&seen);
    if (status) return status;
    qsort(file->tensors, file->num_tensors, sizeof(*file->tensors), compare_place);
    index_names(file);
    return check_cover(file, data, data_bytes);
}

static ct_status *parse_file(ct_safetensors *file, const unsigned char *bytes, size_t size_bytes)
{
    if (size_bytes < 8)
        return ct_error(CT_CODE_INVALID_ARGUMENT, "%s: a safetensors file has at least 8 bytes, but this has %zu",
                        file->path, size_bytes);
    uint64_t header_bytes;
    memcpy(&header_bytes, bytes, 8);
    if (header_bytes > (uint64_t)MAX_HEADER_BYTES || header_bytes > size_bytes - 8)
        return ct_error(
            CT_CODE_INVALID_ARGUMENT,
            "%s: the header's size must be at most %lld and within the file's %zu bytes, but is %llu; it is "
            "cut short or no safetensors file",
            file->path, (long long)MAX_HEADER_BYTES, size_bytes, (unsigned long long)header_bytes);
    if (header_bytes == 0 || bytes[8] != '{')
        return ct_error(CT_CODE_INVALID_ARGUMENT, "%s: the header must begin with '{'", file->path);
    ct_json *json;
    CT_TRY(ct_json_parse((const char *)bytes + 8, (size_t)header_bytes, file->path, &json));
    ct_status *status =
        parse_header(file, json, bytes + 8 + header_bytes, (int64_t)(size_bytes - 8 - (size_t)header_bytes));
    ct_json_free(json);
    return status;
}

ct_status *ct_safetensors_parse(const void *bytes, size_t size_bytes, const char *path, ct_safetensors **out_file)
{
    *out_file = NULL;
    ct_safetensors *file = new_file(path);
    ct_status *status = parse_file(file, bytes, size_bytes);
    if (status)
        ct_safetensors_close(file);
    else
        *out_file = file;
    return status;
}

ct_status *ct_safetensors_open(const char *path, ct_safetensors **out_file)
{
    *out_file = NULL;
    ct_file_map map;
    CT_TRY(ct_file_map_open(path, &map));
    ct_status *status = ct_safetensors_parse(map.data, map.size_bytes, path, out_file);
    if (status)
        ct_file_map_close(&map);
    else
        (*out_file)->map = map;
    return status;
}

/* ---- A folder. ---- */

static ct_status *open_shard(ct_safetensors *folder, ct_map *by_file, const char *file_name, ct_safetensors **out_shard)
{
    *out_shard = ct_map_get(by_file, file_name);
    if (*out_shard) return NULL;
    if (strchr(file_name, '/') || !file_name[0])
        return ct_error(CT_CODE_INVALID_ARGUMENT, "%s: its index names the file \"%s\", which is not in the folder",
                        folder->path, file_name);
    char *path = ct_path_join(folder->path, file_name);
    ct_status *status = ct_safetensors_open(path, out_shard);
    free(path);
    CT_TRY_NOTE(status, "it is listed in model.safetensors.index.json");
    folder->shards = ct_realloc(folder->shards, (folder->num_shards + 1) * sizeof(*folder->shards));
    folder->shards[folder->num_shards++] = *out_shard;
    ct_map_set(by_file, file_name, *out_shard);
    return NULL;
}

static ct_status *read_index(ct_safetensors *folder, const ct_json *json)
{
    ct_json_value weight_map;
    CT_TRY(ct_json_need_object(ct_json_root(json), "weight_map", &weight_map));
    folder->tensors = ct_alloc_zeroed(ct_json_size(weight_map), sizeof(*folder->tensors));
    ct_status *status = NULL;
    ct_map by_file, seen;
    ct_map_init(&by_file);
    ct_map_init(&seen);
    ct_json_iter iter = ct_json_iterate(weight_map);
    while (ct_json_next(&iter)) {
        const char *file_name;
        ct_safetensors *shard;
        CT_TRY_OUT(ct_json_as_string(iter.value, &file_name));
        CT_TRY_OUT(open_shard(folder, &by_file, file_name, &shard));
        const ct_safetensors_tensor *tensor = ct_safetensors_get(shard, iter.key);
        if (!tensor || ct_map_has(&seen, iter.key)) {
            status = ct_error(CT_CODE_INVALID_ARGUMENT,
                              tensor ? "%s: the index lists tensor %s twice (now in %s)"
                                     : "%s: the index places tensor %s in %s, which does not have it",
                              folder->path, iter.key, file_name);
            goto out;
        }
        ct_map_set(&seen, iter.key, NULL);
        folder->tensors[folder->num_tensors++] = *tensor;
    }
    index_names(folder);
out:
    ct_map_deinit(&by_file);
    ct_map_deinit(&seen);
    return status;
}

ct_status *ct_safetensors_dir_open(const char *folder_path, ct_safetensors **out_file)
{
    *out_file = NULL;
    ct_status *status = NULL;
    ct_json *json = NULL;
    ct_safetensors *folder = NULL;
    char *single = ct_path_join(folder_path, "model.safetensors");
    char *index = ct_path_join(folder_path, "model.safetensors.index.json");
    if (ct_path_exists(single)) {
        status = ct_safetensors_open(single, out_file);
    } else if (!ct_path_exists(index)) {
        status = ct_error(CT_CODE_NOT_FOUND, "%s must hold model.safetensors or model.safetensors.index.json, but %s",
                          folder_path, ct_path_is_dir(folder_path) ? "has neither" : "is not a folder");
    } else {
        folder = new_file(folder_path);
        CT_TRY_OUT(ct_json_read(index, &json));
        CT_TRY_OUT(read_index(folder, json));
        *out_file = folder;
        folder = NULL;
    }
out:
    ct_safetensors_close(folder);
    ct_json_free(json);
    free(single);
    free(index);
    return status;
}

/* ---- Access. ---- */

size_t ct_safetensors_num_tensors(const ct_safetensors *file)
{
    return file->num_tensors;
}

const ct_safetensors_tensor *ct_safetensors_at(const ct_safetensors *file, size_t index)
{
    CT_ASSERT(index < file->num_tensors);
    return &file->tensors[index];
}

const ct_safetensors_tensor *ct_safetensors_get(const ct_safetensors *file, const char *name)
{
    return ct_map_get(&file->by_name, name);
}

ct_status *ct_safetensors_find(const ct_safetensors *file, const char *name, const ct_safetensors_tensor **out_tensor)
{
    *out_tensor = ct_safetensors_get(file, name);
    if (*out_tensor) return NULL;
    const char **names = ct_alloc((file->num_tensors + 1) * sizeof(*names));
    for (size_t i = 0; i < file->num_tensors; i++) names[i] = file->tensors[i].name;
    const char *nearest = ct_nearest_name(name, names, file->num_tensors);
    free(names);
    if (!nearest)
        return ct_error(CT_CODE_NOT_FOUND, "%s has no tensor %s among its %zu", file->path, name, file->num_tensors);
    return ct_error(CT_CODE_NOT_FOUND, "%s has no tensor %s; the nearest of its %zu names is %s", file->path, name,
                    file->num_tensors, nearest);
}

const char *ct_safetensors_metadata(const ct_safetensors *file, const char *key)
{
    const char *value = ct_map_get(&file->metadata, key);
    for (size_t i = 0; !value && i < file->num_shards; i++) value = ct_map_get(&file->shards[i]->metadata, key);
    return value;
}

static void append_shape(ct_str *text, const int64_t *sizes, int rank)
{
    ct_str_append_char(text, '[');
    for (int i = 0; i < rank; i++)
        if (sizes[i] < 0)
            ct_str_printf(text, "%sany", i ? ", " : "");
        else
            ct_str_printf(text, "%s%lld", i ? ", " : "", (long long)sizes[i]);
    ct_str_append_char(text, ']');
}

ct_status *ct_safetensors_check_shape(const ct_safetensors_tensor *tensor, const int64_t *sizes, int rank)
{
    bool equal = tensor->rank == rank;
    for (int i = 0; equal && i < rank; i++) equal = sizes[i] < 0 || sizes[i] == tensor->sizes[i];
    if (equal) return NULL;
    ct_str text;
    ct_str_init(&text);
    ct_str_printf(&text, "tensor %s must have the shape ", tensor->name);
    append_shape(&text, sizes, rank);
    ct_str_append(&text, ", but has ");
    append_shape(&text, tensor->sizes, tensor->rank);
    ct_status *status = ct_error(CT_CODE_INVALID_ARGUMENT, "%s in %s", text.data, tensor->path);
    ct_str_deinit(&text);
    return status;
}

ct_status *ct_safetensors_read_f32(const ct_safetensors_tensor *tensor, float *out_values, int64_t count)
{
    const unsigned char *data = tensor->data;
    if (tensor->dtype == CT_DTYPE_INVALID || !ct_dtype_is_float(tensor->dtype))
        return ct_error(CT_CODE_INVALID_ARGUMENT, "tensor %s in %s must be of F32, BF16, F16 or F64, but is of %s",
                        tensor->name, tensor->path, tensor->dtype_name);
    if (count != ct_num_elements(tensor->sizes, tensor->rank))
        return ct_error(CT_CODE_INVALID_ARGUMENT, "tensor %s in %s must have %lld elements, but has %lld", tensor->name,
                        tensor->path, (long long)count, (long long)ct_num_elements(tensor->sizes, tensor->rank));
    if (!count) return NULL;
    /* Through memcpy, for the data need not be aligned. */
    switch (tensor->dtype) {
    case CT_DTYPE_F32: memcpy(out_values, data, tensor->size_bytes); break;
    case CT_DTYPE_F64:
        for (int64_t i = 0; i < count; i++) {
            double value;
            memcpy(&value, data + 8 * i, 8);
            out_values[i] = (float)value;
        }
        break;
    case CT_DTYPE_BF16:
    case CT_DTYPE_F16:
        for (int64_t i = 0; i < count; i++) {
            uint16_t bits;
            memcpy(&bits, data + 2 * i, 2);
            out_values[i] = tensor->dtype == CT_DTYPE_BF16 ? ct_bf16_to_f32(bits) : ct_f16_to_f32(bits);
        }
        break;
    default: CT_BUG("float dtype %s has no conversion", tensor->dtype_name);
    }
    return NULL;
}

static ct_status *check_supported(const ct_safetensors_tensor *tensor)
{
    if (tensor->dtype != CT_DTYPE_INVALID) return NULL;
    return ct_error(CT_CODE_UNIMPLEMENTED, "tensor %s in %s is of %s, which ctitan cannot compute with", tensor->name,
                    tensor->path, tensor->dtype_name);
}

ct_status *ct_safetensors_load(const ct_safetensors_tensor *tensor, ct_array *out_array)
{
    *out_array = (ct_array){0};
    CT_TRY(check_supported(tensor));
    *out_array = ct_array_new(tensor->dtype, tensor->sizes, tensor->rank);
    if (tensor->size_bytes) memcpy(out_array->data, tensor->data, tensor->size_bytes);
    return NULL;
}

ct_status *ct_safetensors_borrow(const ct_safetensors_tensor *tensor, ct_array *out_array)
{
    *out_array = (ct_array){0};
    CT_TRY(check_supported(tensor));
    if ((uintptr_t)tensor->data % ct_dtype_bytes(tensor->dtype))
        return ct_error(CT_CODE_FAILED_PRECONDITION, "tensor %s in %s is not aligned to its elements of %s; copy it",
                        tensor->name, tensor->path, tensor->dtype_name);
    out_array->dtype = tensor->dtype;
    out_array->rank = tensor->rank;
    memcpy(out_array->sizes, tensor->sizes, sizeof(out_array->sizes));
    out_array->data = (void *)(uintptr_t)tensor->data;
    return NULL;
}
