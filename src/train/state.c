/* State in and out of devices, a part of a parameter at a time. */
#include "train/state.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/box.h"
#include "base/convert.h"
#include "base/workers.h"
#include "train/init.h"
#include "train/state_parts.h"
#include "train/weights.h"

static const ct_mesh ONE_DEVICE = {.num_devices = 1};

void ct_train_state_init(ct_train_state *state, ct_session *session, const ct_model *model, const ct_parallel *parallel,
                         ct_dtype param_dtype, ct_dtype moment_dtype)
{
    *state = (ct_train_state){.session = session,
                              .model = model,
                              .parallel = parallel,
                              .param_dtype = param_dtype,
                              .moment_dtype = moment_dtype,
                              .num_buffers = (size_t)model->num_frozen +
                                             (size_t)(model->num_params - model->num_frozen) * CT__STATE_NUM_KINDS + 1};
    state->buffers = ct_alloc_zeroed(state->num_buffers * (size_t)session->num_devices, sizeof(*state->buffers));
}

void ct_train_state_deinit(ct_train_state *state)
{
    if (state->buffers) ct_buffers_free(state->buffers, state->num_buffers * (size_t)state->session->num_devices);
    free(state->buffers);
    *state = (ct_train_state){0};
}

size_t ct__state_num_items(const ct_train_state *state)
{
    return state->num_buffers - 1;
}

void ct__state_item(const ct_train_state *state, size_t item, int *out_kind, int *out_param)
{
    size_t num_params = (size_t)state->model->num_params, num_frozen = (size_t)state->model->num_frozen;
    size_t moment = item < num_params ? 0 : item - num_params, num_trained = num_params - num_frozen;
    *out_kind = item < num_params ? CT__STATE_PARAM : CT__STATE_EXP_AVG + (int)(moment / num_trained);
    *out_param = (int)(item < num_params ? item : num_frozen + moment % num_trained);
}

size_t ct__state_find_item(const ct_train_state *state, int kind, int param)
{
    size_t num_params = (size_t)state->model->num_params, num_frozen = (size_t)state->model->num_frozen;
    if (kind == CT__STATE_PARAM) return (size_t)param;
    CT_ASSERT((size_t)param >= num_frozen);
    return num_params + (size_t)(kind - CT__STATE_EXP_AVG) * (num_params - num_frozen) + (size_t)param - num_frozen;
}

static ct_layout layout_of_param(const ct_model_param *param, const ct_parallel *parallel, int kind, ct_dtype dtype)
{
    ct_layout layout = {.mesh = parallel ? &parallel->mesh : &ONE_DEVICE, .dtype = dtype, .rank = param->rank};
    for (int i = 0; i < param->rank; i++) layout.sizes[i] = param->dims[i].size;
    if (parallel)
        layout.sharding = kind == CT__STATE_PARAM ? ct_parallel_stored(parallel, param->rank, param->dims)
                                                  : ct_parallel_moment(parallel, param->rank, param->dims);
    CT_ASSERT(!param->stacked || !layout.sharding.at.count[0]); /* layers are never split */
    return layout;
}

ct_layout ct__state_layout(const ct_train_state *state, int kind, int param)
{
    ct_layout layout = layout_of_param(
        &state->model->params[param], state->parallel, kind,
        kind == CT__STATE_PARAM ? ct_model_param_dtype(state->model, param, state->param_dtype) : state->moment_dtype);
    layout.on_host = kind != CT__STATE_PARAM && state->moments_on_host;
    return layout;
}

/* Parameters from first on, and all moments. */
static double count_bytes(const ct_model *model, int first, const ct_parallel *parallel, ct_dtype param_dtype,
                          ct_dtype moment_dtype, double *out_total)
{
    double total = 0, per_device = 0;
    for (int kind = 0; kind < CT__STATE_NUM_KINDS; kind++)
        for (int i = kind == CT__STATE_PARAM ? first : model->num_frozen; i < model->num_params; i++) {
            ct_dtype dtype = kind == CT__STATE_PARAM ? ct_model_param_dtype(model, i, param_dtype) : moment_dtype;
            ct_layout layout = layout_of_param(&model->params[i], parallel, kind, dtype);
            double bytes = (double)ct_dtype_bytes(layout.dtype);
            total += bytes * (double)model->params[i].num_elements;
            for (int dim = 0; dim < layout.rank; dim++)
                bytes *= (double)ct_sharding_local_size(layout.mesh, &layout.sharding, dim, layout.sizes[dim]);
            per_device += bytes;
        }
    if (out_total) *out_total = total;
    return per_device;
}

double ct_train_state_bytes(const ct_model *model, const ct_parallel *parallel, ct_dtype param_dtype,
                            ct_dtype moment_dtype, double *out_total)
{
    return count_bytes(model, 0, parallel, param_dtype, moment_dtype, out_total);
}

double ct_train_state_changing_bytes(const ct_train_state *state)
{
    return count_bytes(state->model, state->model->num_frozen, state->parallel, state->param_dtype, state->moment_dtype,
                       NULL);
}

ct_buffer **ct__state_buffers(const ct_train_state *state, int kind, int param)
{
    return &state->buffers[ct__state_find_item(state, kind, param)];
}

static ct_status *put(ct_train_state *state, int kind, int param, ct_session_fill *fill, void *context,
                      ct_session_scratch *scratch)
{
    ct_layout layout = ct__state_layout(state, kind, param);
    return ct_session_put(state->session, &layout, fill, context, scratch, ct__state_buffers(state, kind, param),
                          state->num_buffers);
}

static ct_status *leave_zero(void *context, const int64_t *offsets, const int64_t *valid, ct_array *block)
{
    (void)context;
    (void)offsets;
    (void)valid;
    (void)block;
    return NULL;
}

static ct_status *put_zeros(ct_train_state *state)
{
    for (size_t item = (size_t)state->model->num_params; item < ct__state_num_items(state); item++) {
        int kind, param;
        ct__state_item(state, item, &kind, &param);
        CT_TRY(put(state, kind, param, leave_zero, NULL, NULL));
    }
    return NULL;
}

static ct_status *put_running(ct_train_state *state)
{
    int32_t halted = 0;
    ct_array array = {.dtype = CT_DTYPE_S32, .data = &halted};
    return ct_session_replicate(state->session, &array, &state->buffers[state->num_buffers - 1], state->num_buffers);
}

ct_status *ct_train_state_param(const ct_train_state *state, int param, ct_array *out_array)
{
    ct_layout layout = ct__state_layout(state, CT__STATE_PARAM, param);
    return ct_session_fetch(state->session, &layout, ct__state_buffers(state, CT__STATE_PARAM, param),
                            state->num_buffers, out_array);
}

/* Frees what the state holds from an item on. */
static void free_from(ct_train_state *state, size_t first)
{
    for (size_t d = 0; d < (size_t)state->session->num_devices; d++)
        ct_buffers_free(state->buffers + d * state->num_buffers + first, state->num_buffers - first);
}

/* Parameters from first on, and zero moments. */
static ct_status *make_from_seed(ct_train_state *state, size_t first, uint64_t seed)
{
    ct_graph *graph;
    CT_TRY(ct_init_build(state->model, (int)first, state->parallel, state->param_dtype, seed, &graph));
    free_from(state, first);
    size_t num_made = (size_t)state->model->num_params - first, num_devices = (size_t)state->session->num_devices;
    ct_executable *executable = NULL;
    ct_buffer **outputs = ct_alloc_zeroed(num_made * num_devices, sizeof(*outputs));
    ct_status *status = ct_session_compile(state->session, graph, first ? "adapters" : "initial weights", &executable);
    if (!status) status = ct_executable_execute(executable, NULL, 0, NULL, outputs);
    if (!status) {
        for (size_t d = 0; d < num_devices; d++)
            memcpy(state->buffers + d * state->num_buffers + first, outputs + d * num_made,
                   num_made * sizeof(*outputs));
        status = put_zeros(state);
    }
    if (!status) status = put_running(state);
    ct_executable_free(executable);
    ct_graph_free(graph);
    free(outputs);
    return status;
}

ct_status *ct_train_state_from_seed(ct_train_state *state, uint64_t seed)
{
    return make_from_seed(state, 0, seed);
}

ct_status *ct_train_state_new_adapters(ct_train_state *state, uint64_t seed)
{
    return make_from_seed(state, (size_t)state->model->num_frozen, seed);
}

/* ---- parts from files, layer by layer ---- */

typedef struct part_source {
    const ct_train_state *state;
    const ct_model_param *param;
    int kind;
    const ct_safetensors *file;      /* Hugging Face weights, or */
    const ct_checkpoint *checkpoint; /* a saved step, through */
    ct_checkpoint_reader *reader;
    bool converts; /* a step's weights may be of another type */
} part_source;

static ct_status *read_layer(const part_source *source, int64_t layer, const int64_t *offsets, const int64_t *sizes,
                             ct_array *layer_part);

static ct_status *fill_from_source(void *context, const int64_t *offsets, const int64_t *valid, ct_array *block)
{
    const part_source *source = context;
    int stacked = source->param->stacked ? 1 : 0, rank = block->rank - stacked;
    const int64_t *sizes = valid + stacked;
    ct_array layer = {.dtype = block->dtype, .rank = rank, .data = block->data};
    bool is_padded = false;
    for (int i = 0; i < rank; i++) {
        layer.sizes[i] = block->sizes[i + stacked];
        is_padded = is_padded || layer.sizes[i] != sizes[i];
    }
    ct_array part = {0}; /* of one layer, without padding */
    if (is_padded) part = ct_array_new(block->dtype, sizes, rank);
    size_t bytes = ct_array_bytes(&layer);
    ct_status *status = NULL;
    for (int64_t i = 0; i < (stacked ? valid[0] : 1) && !status; i++) {
        layer.data = (char *)block->data + (size_t)i * bytes;
        status = read_layer(source, i, offsets + stacked, sizes, is_padded ? &part : &layer);
        if (!status && is_padded)
            ct_box_copy(rank, sizes, ct_dtype_bytes(block->dtype), &(ct_box_side){part.data, sizes, NULL},
                        &(ct_box_side){layer.data, layer.sizes, NULL});
    }
    ct_array_free(&part);
    return status;
}

/* The tensor as a step must have it; with converts of any floating type that it has. */
static ct_checkpoint_tensor wanted_of_step(const ct_train_state *state, const ct_checkpoint *checkpoint, int kind,
                                           const ct_model_param *param, const char *name, bool converts)
{
    ct_checkpoint_tensor wanted = ct__state_tensor(state, kind, param, name);
    const ct_checkpoint_tensor *saved = converts ? ct_checkpoint_find(checkpoint, name) : NULL;
    if (saved && ct_dtype_is_float(saved->dtype)) wanted.dtype = saved->dtype;
    return wanted;
}

enum { MAX_LOADERS = 4 };

/* Parameters and moments, several at a time: some wait for the disk while others go to their devices. */
typedef struct load {
    ct_train_state *state;
    const ct_safetensors *file;
    const ct_checkpoint *checkpoint;
    ct_checkpoint_reader *readers[MAX_LOADERS];
    ct_session_scratch scratch[MAX_LOADERS];
    size_t first, end; /* items */
    bool converts;
} load;

static ct_status *load_item(void *context, int worker, size_t item)
{
    load *l = context;
    int kind, param;
    ct__state_item(l->state, l->first + item, &kind, &param);
    part_source source = {.state = l->state,
                          .param = &l->state->model->params[param],
                          .kind = kind,
                          .file = l->file,
                          .checkpoint = l->checkpoint,
                          .reader = l->readers[worker],
                          .converts = l->converts};
    return put(l->state, kind, param, fill_from_source, &source, &l->scratch[worker]);
}

/* Before anything is loaded: the first tensor that the step lacks, or has otherwise, is the error. */
static ct_status *check_step(const load *l)
{
    const ct_model *model = l->state->model;
    for (size_t item = l->first; item < l->end; item++) {
        int kind, i;
        ct__state_item(l->state, item, &kind, &i);
        for (int64_t layer = 0; layer < ct_model_param_layers(model, &model->params[i]); layer++) {
            char *name = ct__state_name(&model->params[i], layer, kind);
            ct_checkpoint_tensor wanted =
                wanted_of_step(l->state, l->checkpoint, kind, &model->params[i], name, l->converts);
            ct_status *status = ct_checkpoint_check(l->checkpoint, &wanted);
            free(name);
            CT_TRY(status);
        }
    }
    return NULL;
}

/* What the state held from the first item on is freed, and moments that are not loaded are zero. */
static ct_status *load_items(load *l)
{
    ct_train_state *state = l->state;
    if (l->checkpoint) CT_TRY(check_step(l));
    free_from(state, l->first);
    for (int i = 0; i < MAX_LOADERS && l->checkpoint; i++) l->readers[i] = ct_checkpoint_reader_new(l->checkpoint);
    ct_status *status = ct_workers_run(MAX_LOADERS, l->end - l->first, load_item, l);
    for (int i = 0; i < MAX_LOADERS; i++) {
        ct_checkpoint_reader_free(l->readers[i]);
        free(l->scratch[i].memory);
    }
    if (!status && l->end == (size_t)state->model->num_params) status = put_zeros(state);
    return status ? status : put_running(state);
}

/* The parameters that a model has without adapters: all of them, or those that are frozen. */
static size_t count_base(const ct_model *model)
{
    return (size_t)(model->lora ? model->num_frozen : model->num_params);
}

ct_status *ct_train_state_from_hf(ct_train_state *state, const char *folder)
{
    ct_safetensors *file;
    CT_TRY(ct_weights_open(folder, &file));
    ct_status *status = load_items(&(load){.state = state, .file = file, .end = count_base(state->model)});
    if (!status) ct_weights_warn_unused(file, state->model);
    ct_safetensors_close(file);
    return ct_status_note(status, "loading the weights of %s", folder);
}

ct_status *ct_train_state_read_adapters(ct_train_state *state, const char *path)
{
    ct_safetensors *file;
    CT_TRY(ct_safetensors_open(path, &file));
    const ct_model *model = state->model;
    load l = {.state = state, .file = file, .first = (size_t)model->num_frozen, .end = (size_t)model->num_params};
    ct_status *status = load_items(&l);
    if (!status) ct_weights_warn_unused(file, model);
    ct_safetensors_close(file);
    return ct_status_note(status, "loading the adapters of %s", path);
}

ct_status *ct_train_state_load_frozen(ct_train_state *state, const ct_checkpoint *checkpoint)
{
    size_t end = (size_t)state->model->num_frozen;
    return load_items(&(load){.state = state, .checkpoint = checkpoint, .end = end, .converts = true});
}

char *ct__state_name(const ct_model_param *param, int64_t layer, int kind)
{
    char buffer[256];
    const char *name = ct_model_hf_name(param, layer, buffer);
    if (kind == CT__STATE_PARAM) return ct_strdup(name);
    return ct_asprintf("state.%s.%s", name, kind == CT__STATE_EXP_AVG ? "exp_avg" : "exp_avg_sq");
}

ct_checkpoint_tensor ct__state_tensor(const ct_train_state *state, int kind, const ct_model_param *param,
                                      const char *name)
{
    ct_checkpoint_tensor tensor = {.name = name, .dtype = state->moment_dtype, .rank = param->hf_rank};
    if (kind == CT__STATE_PARAM)
        tensor.dtype = ct_model_param_dtype(state->model, (int)(param - state->model->params), state->param_dtype);
    for (int i = 0; i < param->hf_rank; i++) tensor.sizes[i] = param->hf_sizes[i];
    return tensor;
}

static ct_status *read_layer_of_step(const part_source *source, int64_t layer, const int64_t *offsets,
                                     const int64_t *sizes, ct_array *layer_part)
{
    char *name = ct__state_name(source->param, layer, source->kind);
    ct_checkpoint_tensor wanted =
        wanted_of_step(source->state, source->checkpoint, source->kind, source->param, name, source->converts);
    ct_checkpoint_shard region = {0};
    ct_model_hf_box(source->param, offsets, sizes, region.offsets, region.sizes);
    ct_status *status;
    if (wanted.dtype != layer_part->dtype) {
        ct_array part = ct_array_new(wanted.dtype, layer_part->sizes, layer_part->rank);
        status = ct_checkpoint_reader_read(source->reader, &wanted, &region, part.data);
        if (!status)
            ct_convert_elements(part.dtype, part.data, layer_part->dtype, layer_part->data,
                                ct_array_num_elements(&part));
        ct_array_free(&part);
    } else {
        status = ct_checkpoint_reader_read(source->reader, &wanted, &region, layer_part->data);
    }
    free(name);
    return status;
}

static ct_status *read_layer(const part_source *source, int64_t layer, const int64_t *offsets, const int64_t *sizes,
                             ct_array *layer_part)
{
    if (source->checkpoint) return read_layer_of_step(source, layer, offsets, sizes, layer_part);
    if (layer_part->dtype == CT_DTYPE_F32)
        return ct_weights_read_box(source->file, source->param, layer, offsets, sizes, layer_part->data);
    ct_array wide = ct_array_new(CT_DTYPE_F32, layer_part->sizes, layer_part->rank);
    ct_status *status = ct_weights_read_box(source->file, source->param, layer, offsets, sizes, wide.data);
    if (!status)
        ct_convert_elements(CT_DTYPE_F32, wide.data, layer_part->dtype, layer_part->data, ct_array_num_elements(&wide));
    ct_array_free(&wide);
    return status;
}

ct_status *ct_train_state_load(ct_train_state *state, const ct_checkpoint *checkpoint, bool weights_only)
{
    load l = {.state = state, .checkpoint = checkpoint, .converts = weights_only};
    l.first = (size_t)state->model->num_frozen;
    l.end = weights_only ? (size_t)state->model->num_params : ct__state_num_items(state);
    return load_items(&l);
}
