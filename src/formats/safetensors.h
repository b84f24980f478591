/* Safetensors files: read through a memory map with every number in the header checked, written as a stream.
 *
 *   offset 0      u64, little endian: N, the header's size, at most 100,000,000
 *   offset 8      N bytes of JSON, the first of them '{', padded with spaces (by our writer to 8 + N = 0 mod 64):
 *                 {"__metadata__": {"format": "pt"},                     optional, strings to strings
 *                  "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
 *   offset 8 + N  the data, row-major, little endian; data_offsets [begin, end) count from here.
 *                 The tensors cover the data exactly: no gap, no overlap, nothing after the last.
 *
 * Element types of the format: BOOL U8 I8 F8_E4M3 F8_E5M2 F8_E8M0 I16 U16 F16 BF16 I32 U32 F32 I64 U64 F64 C64. Those
 * that have no ct_dtype can be listed, and are an error only when used.
 * Source: the format section of the README of huggingface/safetensors.
 */
#ifndef CT_FORMATS_SAFETENSORS_H
#define CT_FORMATS_SAFETENSORS_H

#include "base/dtype.h"
#include "base/status.h"

/* ---- Reading. An open ct_safetensors is immutable, so threads may share it. ---- */

/* One file, or all files of a folder seen as one. */
typedef struct ct_safetensors ct_safetensors;

/* One tensor. All pointers are borrowed from the ct_safetensors that it came from. */
typedef struct ct_safetensors_tensor {
    const char *name;
    ct_dtype dtype;         /* CT_DTYPE_INVALID when the file's type has no ct_dtype (F8_E4M3, I16, ...) */
    const char *dtype_name; /* the file's spelling, "BF16" */
    int rank;
    int64_t sizes[CT_MAX_RANK];
    const void *data; /* in the map; not always aligned to the element, so copy it or check with _borrow */
    size_t size_bytes;
    const char *path; /* the file that holds it */
} ct_safetensors_tensor;

/* Maps one file and checks its header whole.
 * Errors: those of opening; INVALID_ARGUMENT naming file, tensor and numbers when the file breaks a rule of the format,
 * has a tensor of more than CT_MAX_RANK dims, or is cut short. */
CT_MUST_USE ct_status *ct_safetensors_open(const char *path, ct_safetensors **out_file);

/* All tensors of a Hugging Face folder: model.safetensors, else the files that model.safetensors.index.json lists
 * (each name must be in the file that the index says).
 * Errors: NOT_FOUND when the folder has neither or a shard is missing, and as for _open. */
CT_MUST_USE ct_status *ct_safetensors_dir_open(const char *folder, ct_safetensors **out_file);

/* The same from memory that the caller keeps alive; path is for messages. */
CT_MUST_USE ct_status *ct_safetensors_parse(const void *bytes, size_t size_bytes, const char *path,
                                            ct_safetensors **out_file);

void ct_safetensors_close(ct_safetensors *file); /* NULL is allowed */

size_t ct_safetensors_num_tensors(const ct_safetensors *file);
const ct_safetensors_tensor *ct_safetensors_at(const ct_safetensors *file, size_t index); /* in order of the data */
const ct_safetensors_tensor *ct_safetensors_get(const ct_safetensors *file, const char *name); /* NULL when absent */

/* As _get, but absence is NOT_FOUND with the file, the name and the nearest name that it has. */
CT_MUST_USE ct_status *ct_safetensors_find(const ct_safetensors *file, const char *name,
                                           const ct_safetensors_tensor **out_tensor);

/* A string of __metadata__, or NULL; in a folder, of the first file that has the key. */
const char *ct_safetensors_metadata(const ct_safetensors *file, const char *key);

/* INVALID_ARGUMENT naming tensor, required and found shape, unless the shapes are equal. A size of -1 allows any. */
CT_MUST_USE ct_status *ct_safetensors_check_shape(const ct_safetensors_tensor *tensor, const int64_t *sizes, int rank);

/* The elements of an f32, f16, bf16 or f64 tensor as f32 (f64 rounded to nearest even).
 * count must be the tensor's number of elements. Errors: INVALID_ARGUMENT for another dtype or count. */
CT_MUST_USE ct_status *ct_safetensors_read_f32(const ct_safetensors_tensor *tensor, float *out_values, int64_t count);

/* The tensor as an array of its own dtype: _load copies (free with ct_array_free); _borrow points into the map, which
 * must be treated as read-only, and fails when the data is not aligned to its element.
 * Errors: UNIMPLEMENTED when dtype is CT_DTYPE_INVALID. */
CT_MUST_USE ct_status *ct_safetensors_load(const ct_safetensors_tensor *tensor, ct_array *out_array);
CT_MUST_USE ct_status *ct_safetensors_borrow(const ct_safetensors_tensor *tensor, ct_array *out_array);

/* ---- Writing. First every tensor is declared, then the data of each is written, in that order, in pieces.
 *
 *     ct_safetensors_writer_new(path, NULL, &writer)
 *     ct_safetensors_writer_add(writer, "a", ...) ...        then
 *     ct_safetensors_writer_write(writer, "a", bytes, n) ... then
 *     ct_safetensors_writer_finish(writer)                   or _free at any time to give up
 *
 * The bytes go to a temporary neighbour of path, which _finish flushes to disk and renames; until then, and after any
 * error, path is as it was and the temporary is removed by _free. A full disk is RESOURCE_EXHAUSTED naming path.
 * Tensors lie in the order in which they were declared: declare larger elements first and all are aligned.
 * A writer belongs to one thread. ---- */
typedef struct ct_safetensors_writer ct_safetensors_writer;

typedef struct ct_safetensors_writer_opts {
    /* Sees every byte of the file in order, for a checksum of it. */
    void (*observe)(void *context, const void *bytes, size_t size_bytes);
    void *context;
} ct_safetensors_writer_opts;

CT_MUST_USE ct_status *ct_safetensors_writer_new(const char *path, const ct_safetensors_writer_opts *opts,
                                                 ct_safetensors_writer **out_writer);

/* Before the first _write. Errors: INVALID_ARGUMENT for a repeated or reserved name, or a size that overflows. */
CT_MUST_USE ct_status *ct_safetensors_writer_add(ct_safetensors_writer *writer, const char *name, ct_dtype dtype,
                                                 const int64_t *sizes, int rank);
void ct_safetensors_writer_metadata(ct_safetensors_writer *writer, const char *key, const char *value);

/* The next piece of the tensor's data. Errors: those of writing; FAILED_PRECONDITION when name is not the tensor whose
 * turn it is, or when the bytes are more than it has left. */
CT_MUST_USE ct_status *ct_safetensors_writer_write(ct_safetensors_writer *writer, const char *name, const void *bytes,
                                                   size_t size_bytes);

/* Where the tensor's data begins in the file; known once the first piece of any tensor is written. */
int64_t ct_safetensors_writer_offset(const ct_safetensors_writer *writer, const char *name);

/* Flushes, renames and frees writer, also on error. Errors: FAILED_PRECONDITION when a tensor lacks data. */
CT_MUST_USE ct_status *ct_safetensors_writer_finish(ct_safetensors_writer *writer);
void ct_safetensors_writer_free(ct_safetensors_writer *writer); /* gives up; NULL is allowed */

/* Writes whole arrays in one call, larger elements first. */
typedef struct ct_safetensors_entry {
    const char *name;
    ct_array array;
} ct_safetensors_entry;
CT_MUST_USE ct_status *ct_safetensors_save(const char *path, const ct_safetensors_entry *entries, size_t num_entries);

/* "F32" for CT_DTYPE_F32; and back, CT_DTYPE_INVALID when there is none. */
const char *ct_safetensors_dtype_name(ct_dtype dtype);
ct_dtype ct_safetensors_dtype_from_name(const char *name);

#endif
