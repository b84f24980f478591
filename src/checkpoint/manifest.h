/* The manifest as both sides see it. Only for files in this folder. */
#ifndef CT_CHECKPOINT_MANIFEST_H
#define CT_CHECKPOINT_MANIFEST_H

#include "base/arena.h"
#include "base/map.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/hash.h"

typedef struct ct__manifest_file {
    char name[64];
    int64_t size_bytes;
    char hash[CT__HASH_DIGITS + 1];
} ct__manifest_file;

/* Where a shard lies. */
typedef struct ct__manifest_place {
    size_t file;
    int64_t offset;
    char hash[CT__HASH_DIGITS + 1];
} ct__manifest_place;

typedef struct ct__manifest {
    int64_t step;
    ct__manifest_file *files;
    size_t num_files;
    ct_checkpoint_tensor *tensors; /* with num_shards >= 1 */
    ct__manifest_place **places;   /* [tensor][shard] */
    size_t num_tensors;
} ct__manifest;

#define CT__MANIFEST_NAME "manifest.json"
#define CT__INDEX_NAME    "model.safetensors.index.json"

/* Can a file of a step have the name: short enough, and "a" or "a/b" that lies within the step's folder? */
bool ct__manifest_name_fits(const char *name);

/* The text of a manifest; info may be absent. Heap. */
char *ct__manifest_text(const ct__manifest *manifest, ct_json_value info);

/* Reads and checks a manifest: its hash, its shards covering their tensors, all of them inside the files. Memory comes
 * from arena; out_json owns the info. Errors: DATA_LOSS naming path and what is wrong. */
CT_MUST_USE ct_status *ct__manifest_read(const char *path, ct_arena *arena, ct__manifest *out_manifest,
                                         ct_json **out_json);

/* The same from memory; the digits of the hash in text become zeros. */
CT_MUST_USE ct_status *ct__manifest_parse(const char *path, char *text, size_t length, ct_arena *arena,
                                          ct__manifest *out_manifest, ct_json **out_json);

#endif
