/* Checkpoints: named tensors, each in one or more shards, and a JSON object, saved so that a step on disk is whole or
 * absent.
 *
 *   {folder}/step-500/manifest.json              written last
 *                     state-00001.safetensors    shards, larger elements first, at most max_file_bytes a file
 *                     state-00002.safetensors    tensor "a" in one shard is "a" there, in several "a@0", "a@1", ...
 *                     config.json, ...           assets, and files of certain tensors, also in folders: adapter/...
 *   {folder}/step-600.tmp-4711/                  a save by process 4711 under way, or the leftover of a dead one
 *
 *   manifest.json
 *     format, version      "ctitan checkpoint", 2
 *     step                 500
 *     files                [{name, size_bytes, xxh3_128}]                      hash of all its bytes, 32 hex digits
 *     tensors              {name: {dtype, shape, shards: [{file, offset, offsets, sizes, xxh3_128}]}}
 *                          file: index into files; offset: of the shard's first byte in the file; offsets, sizes: the
 *                          box of the tensor that the shard is. The shards cover the tensor exactly once.
 *     info                 the caller's object, verbatim
 *     manifest_xxh3_128    hash of the manifest's bytes with these 32 digits as zeros
 *
 * One process at a time may save into a folder. Reading is independent of how the tensors were sharded: any box of any
 * tensor can be read, so a run with another sharding can load it.
 */
#ifndef CT_CHECKPOINT_CHECKPOINT_H
#define CT_CHECKPOINT_CHECKPOINT_H

#include <stdbool.h>

#include "base/dtype.h"
#include "base/status.h"
#include "formats/json.h"

/* A box of a tensor: [offsets, offsets + sizes) in each dim. */
typedef struct ct_checkpoint_shard {
    int64_t offsets[CT_MAX_RANK];
    int64_t sizes[CT_MAX_RANK];
} ct_checkpoint_shard;

typedef struct ct_checkpoint_tensor {
    const char *name;
    ct_dtype dtype;
    int rank;
    int64_t sizes[CT_MAX_RANK];        /* of the whole tensor */
    const ct_checkpoint_shard *shards; /* together the whole tensor, each element once */
    size_t num_shards;                 /* 0: one shard that is all of it */
} ct_checkpoint_tensor;

/* ---- Saving. ---- */

/* Gives the bytes of a shard, row-major, which must stay valid until the next call on the same lane; called once for
 * each shard. A lane writes one file at a time: shards of larger elements first, otherwise in order (of a group: the
 * first shard of each tensor, then the second of each). Lanes call from threads of their own. So the state is never
 * copied as a whole. */
typedef ct_status *(*ct_checkpoint_bytes)(void *context, int lane, size_t tensor, size_t shard, const void **out_bytes);

/* A file that is saved beside the tensors as it is: config.json, a tokenizer. A name may have one folder in it. */
typedef struct ct_checkpoint_asset {
    const char *name;
    const void *bytes;
    size_t size_bytes;
} ct_checkpoint_asset;

typedef struct ct_checkpoint_save_opts {
    const char *info;       /* text of a JSON object: step counts, data position, ...; NULL is {} */
    int64_t max_file_bytes; /* 0 means 4 GiB, with is_hf 5 GB; a larger shard has a file of its own */
    int num_lanes;          /* files written at the same time; 0 means 1 */
    /* Files under Hugging Face's names, model.safetensors or model-00001-of-00002.safetensors and their index; each
     * tensor must be one shard. */
    bool is_hf;
    /* [num_tensors], or NULL: neighbours of the same number, not 0, with as many shards are asked for shard by shard */
    const int *groups;
    const ct_checkpoint_asset *assets;
    size_t num_assets;
    /* The last num_beside tensors, each one shard, go to a safetensors file of this name, whatever its size and is_hf,
     * and into no index. NULL: there are none. */
    const char *beside;
    size_t num_beside;
} ct_checkpoint_save_opts;

/* Saves a step: aside, flushed to disk, renamed. An existing step-N is replaced in one exchange. Leftovers of dead
 * processes are removed first. On error, and if the process dies at any moment, step-N is as it was.
 * Errors: RESOURCE_EXHAUSTED naming the path when the disk is full, those of writing, INVALID_ARGUMENT for shards that
 * do not cover their tensor or info that is not an object, and the error of bytes. */
CT_MUST_USE ct_status *ct_checkpoint_save(const char *folder, int64_t step, const ct_checkpoint_tensor *tensors,
                                          size_t num_tensors, ct_checkpoint_bytes bytes, void *context,
                                          const ct_checkpoint_save_opts *opts);

/* Writes a Hugging Face folder, the same way: whole at `path` or absent. opts->is_hf is implied, info is not used.
 * Errors: as of _save; ALREADY_EXISTS unless path is absent or an empty folder. */
CT_MUST_USE ct_status *ct_checkpoint_export(const char *path, const ct_checkpoint_tensor *tensors, size_t num_tensors,
                                            ct_checkpoint_bytes bytes, void *context,
                                            const ct_checkpoint_save_opts *opts);

/* Removes the steps before newest_step but for the newest `keep - 1` that open, newest_step being the one more that is
 * kept. A step that is being removed is never taken for one. */
CT_MUST_USE ct_status *ct_checkpoint_purge(const char *folder, int64_t newest_step, int64_t keep);

/* ---- Finding. ---- */

/* The steps in folder, ascending, whole or not; heap. A folder that does not exist has none. */
CT_MUST_USE ct_status *ct_checkpoint_list(const char *folder, int64_t **out_steps, size_t *out_num_steps);

char *ct_checkpoint_path(const char *folder, int64_t step); /* "{folder}/step-N", heap */

/* ---- Loading. An open checkpoint is immutable, so threads may share it. ---- */

typedef struct ct_checkpoint ct_checkpoint;

typedef struct ct_checkpoint_open_opts {
    bool verify; /* read all files and compare their hashes; else only the manifest, the files' sizes and the assets */
} ct_checkpoint_open_opts;

/* Errors: NOT_FOUND when the step is not there; DATA_LOSS naming the file that is missing, cut short or changed. */
CT_MUST_USE ct_status *ct_checkpoint_open(const char *folder, int64_t step, const ct_checkpoint_open_opts *opts,
                                          ct_checkpoint **out_checkpoint);
/* The same of a step's own folder, wherever it lies and whatever it is called. Errors: NOT_FOUND without a manifest. */
CT_MUST_USE ct_status *ct_checkpoint_open_path(const char *path, const ct_checkpoint_open_opts *opts,
                                               ct_checkpoint **out_checkpoint);
/* The newest step that opens with opts; -1 when folder has no step. Each newer one that does not open is a warning.
 * Errors: DATA_LOSS when there are steps, but none opens: a run must not start over on top of them unasked. */
CT_MUST_USE ct_status *ct_checkpoint_latest(const char *folder, const ct_checkpoint_open_opts *opts, int64_t *out_step);

void ct_checkpoint_close(ct_checkpoint *checkpoint); /* NULL is allowed */

int64_t ct_checkpoint_step(const ct_checkpoint *checkpoint);
ct_json_value ct_checkpoint_info(const ct_checkpoint *checkpoint); /* valid until _close */
size_t ct_checkpoint_num_tensors(const ct_checkpoint *checkpoint);
const ct_checkpoint_tensor *ct_checkpoint_at(const ct_checkpoint *checkpoint, size_t index); /* with its shards */
const ct_checkpoint_tensor *ct_checkpoint_find(const ct_checkpoint *checkpoint,
                                               const char *name); /* NULL when absent */

/* The step's assets in the order of their saving; bytes are borrowed. */
size_t ct_checkpoint_num_assets(const ct_checkpoint *checkpoint);
ct_checkpoint_asset ct_checkpoint_asset_at(const ct_checkpoint *checkpoint, size_t index);

/* Whether the step has the tensor: name, dtype and whole shape. Errors: NOT_FOUND, INVALID_ARGUMENT as of _read. */
CT_MUST_USE ct_status *ct_checkpoint_check(const ct_checkpoint *checkpoint, const ct_checkpoint_tensor *wanted);

/* Reads a box of a tensor, row-major; region NULL is all of it. wanted gives name, dtype and whole shape (its shards
 * are not looked at). Each shard that is met is read whole and its hash compared, so what was read is what was saved.
 * Errors: DATA_LOSS naming file and tensor, NOT_FOUND with the nearest name, INVALID_ARGUMENT naming both dtypes or
 * both shapes. */
CT_MUST_USE ct_status *ct_checkpoint_read(const ct_checkpoint *checkpoint, const ct_checkpoint_tensor *wanted,
                                          const ct_checkpoint_shard *region, void *out_bytes);

/* The same through memory that is kept from read to read; a reader belongs to one thread at a time, and remembers the
 * last shard that it read for boxes that are parts of it. */
typedef struct ct_checkpoint_reader ct_checkpoint_reader;
ct_checkpoint_reader *ct_checkpoint_reader_new(const ct_checkpoint *checkpoint);
void ct_checkpoint_reader_free(ct_checkpoint_reader *reader); /* NULL is allowed */
CT_MUST_USE ct_status *ct_checkpoint_reader_read(ct_checkpoint_reader *reader, const ct_checkpoint_tensor *wanted,
                                                 const ct_checkpoint_shard *region, void *out_bytes);

#endif
