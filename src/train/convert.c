/* Conversion: a list of tensors with a way to their bytes, from either form, given to the writer of either form. */
#include "train/convert.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/convert.h"
#include "base/file.h"
#include "base/log.h"
#include "base/map.h"
#include "checkpoint/checkpoint.h"
#include "formats/safetensors.h"
#include "train/hf_files.h"
#include "train/lora.h"

enum { MAX_LANES = 4 };

enum { SOURCE, TARGET, MERGED, LOW_A, LOW_B, ROUNDED, NUM_MEMORIES };

/* Memory of one writing thread. */
typedef struct lane {
    ct_checkpoint_reader *reader, *adapters;
    void *memory[NUM_MEMORIES];
    size_t memory_bytes[NUM_MEMORIES];
} lane;

typedef struct conversion {
    const ct_convert_opts *opts;
    ct_arena arena;
    ct_checkpoint *checkpoint; /* where the weights are, or */
    ct_safetensors *folder;
    ct_checkpoint *adapters; /* a step of adapters to those weights; NULL: none */
    ct_model *model;
    ct_hf_files files;
    ct_checkpoint_tensor *tensors; /* as they are written */
    ct_dtype *dtypes;              /* as they are in the source */
    int *params;                   /* of the model; -1: the tensor is not part of it */
    const ct_safetensors_tensor **sources;
    size_t num_tensors;
    lane lanes[MAX_LANES];
} conversion;

static bool is_file_of(const char *folder, const char *name)
{
    char *path = ct_path_join(folder, name);
    bool exists = ct_path_exists(path);
    free(path);
    return exists;
}

/* ---- sources ---- */

static ct_status *open_source(conversion *c)
{
    const char *source = c->opts->source;
    const ct_checkpoint_open_opts verify = {.verify =
                                                true}; /* to choose; a step that was chosen is verified as it is read */
    if (!ct_path_is_dir(source)) return ct_error(CT_CODE_NOT_FOUND, "%s must be a folder, and there is none", source);
    ct_status *status = ct_checkpoint_open_path(source, NULL, &c->checkpoint);
    if (ct_status_code(status) != CT_CODE_NOT_FOUND) return status;
    ct_status_free(status); /* it is no step */
    if (is_file_of(source, "config.json")) return ct_safetensors_dir_open(source, &c->folder);
    int64_t step;
    CT_TRY(ct_checkpoint_latest(source, &verify, &step));
    if (step < 0)
        return ct_error(CT_CODE_NOT_FOUND,
                        "%s must be a saved step (manifest.json), a folder of steps (step-N), or a Hugging Face folder "
                        "(config.json and safetensors), but has none of them",
                        source);
    ct_info("The newest whole step in %s is step-%lld", source, (long long)step);
    return ct_checkpoint_open(source, step, NULL, &c->checkpoint);
}

/* Adapters and moments are no weights. */
static bool is_weight(const char *name)
{
    return strncmp(name, "state.", 6) != 0 && strncmp(name, CT_LORA_PREFIX, strlen(CT_LORA_PREFIX)) != 0;
}

static bool has_weights(const ct_checkpoint *checkpoint)
{
    for (size_t i = 0; i < ct_checkpoint_num_tensors(checkpoint); i++)
        if (is_weight(ct_checkpoint_at(checkpoint, i)->name)) return true;
    return false;
}

/* Of a step of adapters: opens the weights that they were trained on in its place. */
static ct_status *open_base(conversion *c)
{
    bool is_of_adapters =
        c->checkpoint && ct_lora_info_has(ct_checkpoint_info(c->checkpoint)) && !has_weights(c->checkpoint);
    if (!is_of_adapters) {
        if (!c->opts->base) return NULL;
        return ct_error(CT_CODE_FAILED_PRECONDITION, "--base is for a step of adapters, and %s has weights itself",
                        c->opts->source);
    }
    c->adapters = c->checkpoint;
    c->checkpoint = NULL;
    ct_lora_base base;
    CT_TRY(ct_lora_info_base(ct_checkpoint_info(c->adapters), &base));
    if (!base.path)
        return ct_error(CT_CODE_FAILED_PRECONDITION,
                        "%s has adapters to weights that were made from seed %lld and are in no file; let the run end "
                        "with checkpoint.last_save_in_hf = true for a folder of both",
                        c->opts->source, (long long)base.seed);
    const char *path = c->opts->base ? c->opts->base : base.path;
    if (!ct_path_is_dir(path))
        return ct_error(CT_CODE_NOT_FOUND,
                        "%s has adapters to the weights of %s, and there is no such folder here; say with --base=DIR "
                        "where it is now",
                        c->opts->source, path);
    char fingerprint[sizeof(base.fingerprint)];
    CT_TRY(ct_lora_fingerprint(path, base.is_hf, fingerprint));
    if (strcmp(fingerprint, base.fingerprint) != 0)
        return ct_error(CT_CODE_FAILED_PRECONDITION,
                        "%s has adapters to the weights that %s had when they were trained (fingerprint %s), but %s "
                        "has others (%s)",
                        c->opts->source, base.path, base.fingerprint, path, fingerprint);
    ct_info("Merging the adapters into the weights of %s", path);
    return base.is_hf ? ct_safetensors_dir_open(path, &c->folder) : ct_checkpoint_open_path(path, NULL, &c->checkpoint);
}

/* The model that config.json describes; a step has its config.json among its files. */
static ct_status *read_model(conversion *c)
{
    const ct_model_family *family;
    ct_model_config config;
    if (c->folder && !c->adapters) {
        CT_TRY(ct_model_config_read(c->opts->source, &family, &config));
        CT_TRY(ct_model_new(family, &config, false, &c->model));
        return ct_hf_files_open(c->model, c->opts->source, NULL, NULL, &c->files);
    }
    CT_TRY(ct_hf_files_of_step(c->adapters ? c->adapters : c->checkpoint, &c->files));
    const ct_checkpoint_asset *text = &c->files.assets[0];
    CT_TRY(ct_model_config_parse(text->bytes, text->size_bytes, "the step's config.json", &family, &config));
    CT_TRY(ct_model_new(family, &config, false, &c->model));
    if (!c->adapters) return NULL;
    ct_lora lora;
    CT_TRY(ct_lora_info_read(ct_checkpoint_info(c->adapters), &c->arena, &lora));
    lora.frozen_dtype = CT_DTYPE_F32; /* of no matter here */
    return ct_model_adapt(c->model, &lora);
}

static ct_status *add_tensor(conversion *c, const ct_checkpoint_tensor *tensor, const ct_safetensors_tensor *source)
{
    if (source && tensor->dtype == CT_DTYPE_INVALID)
        return ct_error(CT_CODE_UNIMPLEMENTED, "%s: tensor %s is of a type that ctitan does not have, %s", source->path,
                        tensor->name, source->dtype_name);
    ct_checkpoint_tensor *next = &c->tensors[c->num_tensors];
    *next = *tensor;
    next->shards = NULL;
    next->num_shards = 0;
    if (c->opts->dtype && ct_dtype_is_float(tensor->dtype)) next->dtype = c->opts->dtype;
    c->sources[c->num_tensors] = source;
    c->dtypes[c->num_tensors++] = tensor->dtype;
    return NULL;
}

static ct_status *list_tensors(conversion *c)
{
    size_t count = c->checkpoint ? ct_checkpoint_num_tensors(c->checkpoint) : ct_safetensors_num_tensors(c->folder);
    c->tensors = CT_ARENA_ARRAY(&c->arena, ct_checkpoint_tensor, count);
    c->sources = CT_ARENA_ARRAY(&c->arena, const ct_safetensors_tensor *, count);
    c->dtypes = CT_ARENA_ARRAY(&c->arena, ct_dtype, count);
    c->params = CT_ARENA_ARRAY(&c->arena, int, count);
    for (size_t i = 0; i < count; i++) c->params[i] = -1;
    for (size_t i = 0; i < count; i++) {
        if (c->checkpoint) {
            const ct_checkpoint_tensor *tensor = ct_checkpoint_at(c->checkpoint, i);
            if (is_weight(tensor->name)) CT_TRY(add_tensor(c, tensor, NULL));
            continue;
        }
        const ct_safetensors_tensor *source = ct_safetensors_at(c->folder, i);
        ct_checkpoint_tensor tensor = {.name = source->name, .dtype = source->dtype, .rank = source->rank};
        for (int d = 0; d < source->rank; d++) tensor.sizes[d] = source->sizes[d];
        CT_TRY(add_tensor(c, &tensor, source));
    }
    return NULL;
}

/* Every parameter of the model must be there with its shape. What else is there is carried along. */
static ct_status *check_tensors(conversion *c)
{
    ct_status *status = NULL;
    const char *extra = NULL;
    size_t num_found = 0;
    const char **names = ct_alloc((c->num_tensors + 1) * sizeof(*names));
    ct_map by_name, wanted;
    ct_map_init(&by_name);
    ct_map_init(&wanted);
    for (size_t i = 0; i < c->num_tensors; i++) {
        names[i] = c->tensors[i].name;
        ct_map_set(&by_name, names[i], &c->tensors[i]);
    }
    int num_base = c->model->lora ? c->model->num_frozen : c->model->num_params;
    for (int i = 0; i < num_base && !status; i++, num_found++) {
        const ct_model_param *param = &c->model->params[i];
        char buffer[256];
        const char *name = ct_model_hf_name(param, param->layer, buffer);
        const ct_checkpoint_tensor *tensor = ct_map_get(&by_name, name);
        ct_map_set(&wanted, name, NULL);
        if (!tensor) {
            const char *nearest = ct_nearest_name(name, names, c->num_tensors);
            status = ct_error(CT_CODE_NOT_FOUND, "%s must hold tensor %s, which config.json calls for%s%s",
                              c->opts->source, name, nearest ? "; the nearest is " : "", nearest ? nearest : "");
        } else if (tensor->rank != param->hf_rank ||
                   memcmp(tensor->sizes, param->hf_sizes, (size_t)param->hf_rank * sizeof(tensor->sizes[0])) != 0) {
            status = ct_error(CT_CODE_INVALID_ARGUMENT, "%s: tensor %s has another shape than config.json calls for",
                              c->opts->source, name);
        } else {
            c->params[tensor - c->tensors] = i;
        }
    }
    for (size_t i = 0; i < c->num_tensors && !extra; i++)
        if (!ct_map_has(&wanted, names[i])) extra = names[i];
    if (!status && extra)
        ct_warning("%zu tensors are not part of the model and are carried along, the first is %s",
                   c->num_tensors - num_found, extra);
    ct_map_deinit(&by_name);
    ct_map_deinit(&wanted);
    free(names);
    return status;
}

/* ---- targets ---- */

static void *reserve(lane *l, int memory, size_t size_bytes)
{
    return ct_reserve(&l->memory[memory], &l->memory_bytes[memory], size_bytes);
}

/* An adapter's matrix as f32, in memory of the lane. */
static ct_status *read_adapter(conversion *c, lane *l, int param, int memory, const float **out_values)
{
    char buffer[256];
    const ct_model_param *p = &c->model->params[param];
    ct_checkpoint_tensor wanted = {.name = ct_model_hf_name(p, p->layer, buffer), .dtype = CT_DTYPE_F32};
    wanted.rank = p->hf_rank;
    memcpy(wanted.sizes, p->hf_sizes, sizeof(wanted.sizes));
    const ct_checkpoint_tensor *saved = ct_checkpoint_find(c->adapters, wanted.name);
    if (saved && ct_dtype_is_float(saved->dtype)) wanted.dtype = saved->dtype;
    if (!l->adapters) l->adapters = ct_checkpoint_reader_new(c->adapters);
    bool is_f32 = wanted.dtype == CT_DTYPE_F32;
    void *bytes = reserve(l, is_f32 ? memory : ROUNDED, (size_t)p->num_elements * ct_dtype_bytes(wanted.dtype));
    CT_TRY(ct_checkpoint_reader_read(l->adapters, &wanted, NULL, bytes));
    float *values = is_f32 ? bytes : reserve(l, memory, (size_t)p->num_elements * sizeof(float));
    if (!is_f32) ct_convert_elements(wanted.dtype, bytes, CT_DTYPE_F32, values, p->num_elements);
    *out_values = values;
    return NULL;
}

/* The tensor with its adapter merged, f32; NULL when it has none. */
static ct_status *merge(conversion *c, lane *l, size_t index, const void *bytes, const float **out_merged)
{
    int low_a, low_b;
    *out_merged = NULL;
    if (!c->adapters || !ct_model_adapters_of(c->model, c->params[index], &low_a, &low_b)) return NULL;
    const float *a, *b;
    CT_TRY(read_adapter(c, l, low_a, LOW_A, &a));
    CT_TRY(read_adapter(c, l, low_b, LOW_B, &b));
    const int64_t *sizes = c->tensors[index].sizes;
    float *merged = reserve(l, MERGED, (size_t)(sizes[0] * sizes[1]) * sizeof(*merged));
    ct_convert_elements(c->dtypes[index], bytes, CT_DTYPE_F32, merged, sizes[0] * sizes[1]);
    ct_lora_merge(merged, a, b, sizes[0], sizes[1], c->model->lora->rank, ct_model_lora_scale(c->model));
    *out_merged = merged;
    return NULL;
}

static ct_status *give_bytes(void *context, int lane_number, size_t index, size_t shard, const void **out_bytes)
{
    (void)shard;
    conversion *c = context;
    lane *l = &c->lanes[lane_number];
    ct_checkpoint_tensor tensor = c->tensors[index];
    ct_dtype target = tensor.dtype;
    tensor.dtype = c->dtypes[index];
    int64_t count = ct_num_elements(tensor.sizes, tensor.rank);
    size_t element_bytes = ct_dtype_bytes(tensor.dtype), size_bytes = (size_t)count * element_bytes;
    const void *bytes;
    if (c->checkpoint) {
        void *whole = reserve(l, SOURCE, size_bytes);
        if (!l->reader) l->reader = ct_checkpoint_reader_new(c->checkpoint);
        CT_TRY(ct_checkpoint_reader_read(l->reader, &tensor, NULL, whole));
        bytes = whole;
    } else {
        bytes = c->sources[index]->data;
        if ((c->adapters || target != tensor.dtype) && (uintptr_t)bytes % element_bytes)
            bytes = memcpy(reserve(l, SOURCE, size_bytes), bytes, size_bytes);
    }
    const float *merged;
    CT_TRY(merge(c, l, index, bytes, &merged));
    if (merged) {
        bytes = merged;
        tensor.dtype = CT_DTYPE_F32;
    }
    if (target != tensor.dtype) {
        void *converted = reserve(l, TARGET, (size_t)count * ct_dtype_bytes(target));
        ct_convert_elements(tensor.dtype, bytes, target, converted, count);
        bytes = converted;
    }
    *out_bytes = bytes;
    return NULL;
}

/* The step that a path ".../step-7" names, and the folder that it is in (heap); -1 for any other. */
static int64_t step_of_path(const char *path, char **out_folder)
{
    char *copy = ct_strdup(path), *end;
    size_t length = strlen(copy);
    while (length > 1 && copy[length - 1] == '/') copy[--length] = 0;
    const char *slash = strrchr(copy, '/'), *name = slash ? slash + 1 : copy;
    int64_t step = -1;
    if (!strncmp(name, "step-", 5) && name[5] >= '0' && name[5] <= '9') {
        step = strtoll(name + 5, &end, 10);
        char *folder = ct_path_parent(copy), *same = ct_checkpoint_path(folder, step);
        const char *base = strrchr(same, '/');
        if (*end || strcmp(base ? base + 1 : same, name) != 0) step = -1;
        *out_folder = folder;
        free(same);
    }
    free(copy);
    return step;
}

static ct_status *write_target(conversion *c, ct_convert_result *result)
{
    const char *target = c->opts->target;
    char *folder = NULL;
    int64_t step = step_of_path(target, &folder);
    ct_checkpoint_save_opts opts = {.num_lanes = MAX_LANES,
                                    .max_file_bytes = c->opts->max_shard_bytes,
                                    .assets = c->files.assets,
                                    .num_assets = c->files.num_assets};
    if (c->opts->dtype) opts.assets = ct_hf_files_for(&c->files, c->opts->dtype, &opts.num_assets);
    ct_status *status;
    result->is_step = step >= 0;
    if (step < 0) {
        status = ct_checkpoint_export(target, c->tensors, c->num_tensors, give_bytes, c, &opts);
    } else if (ct_path_exists(target)) {
        status = ct_error(CT_CODE_ALREADY_EXISTS, "%s exists already; move it away, or choose another", target);
    } else {
        char *info = ct_asprintf("{\"n_tokens_seen\": 0, \"model_only\": true, \"model\": \"%s\"}",
                                 ct_model_family_name(c->model->family));
        opts.info = info;
        status = ct_checkpoint_save(folder, step, c->tensors, c->num_tensors, give_bytes, c, &opts);
        free(info);
    }
    free(folder);
    return status;
}

ct_status *ct_convert(const ct_convert_opts *opts, ct_convert_result *out_result)
{
    *out_result = (ct_convert_result){0};
    conversion c = {.opts = opts};
    ct_arena_init(&c.arena);
    ct_status *status = open_source(&c);
    if (!status) status = open_base(&c);
    if (!status) status = read_model(&c);
    if (!status) status = list_tensors(&c);
    if (!status) status = check_tensors(&c);
    if (!status) status = write_target(&c, out_result);
    out_result->num_tensors = c.num_tensors;
    for (size_t i = 0; i < c.num_tensors; i++)
        out_result->size_bytes +=
            ct_num_elements(c.tensors[i].sizes, c.tensors[i].rank) * (int64_t)ct_dtype_bytes(c.tensors[i].dtype);
    for (int i = 0; i < MAX_LANES; i++) {
        ct_checkpoint_reader_free(c.lanes[i].reader);
        ct_checkpoint_reader_free(c.lanes[i].adapters);
        for (int m = 0; m < NUM_MEMORIES; m++) free(c.lanes[i].memory[m]);
    }
    ct_hf_files_close(&c.files);
    ct_model_free(c.model);
    ct_safetensors_close(c.folder);
    ct_checkpoint_close(c.checkpoint);
    ct_checkpoint_close(c.adapters);
    ct_arena_deinit(&c.arena);
    return status;
}
