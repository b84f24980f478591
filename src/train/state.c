/* State in and out of devices, a part of a parameter at a time. */
#include "train/state.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/box.h"
#include "train/init.h"
#include "train/weights.h"

enum { PARAM, EXP_AVG, EXP_AVG_SQ, NUM_KINDS };

static const ct_mesh ONE_DEVICE = {.num_devices = 1};

void ct_train_state_init(ct_train_state *state, ct_session *session, const ct_model *model, const ct_parallel *parallel,
                         ct_dtype param_dtype, ct_dtype moment_dtype)
{
    *state = (ct_train_state){.session = session,
                              .model = model,
                              .parallel = parallel,
                              .param_dtype = param_dtype,
                              .moment_dtype = moment_dtype,
                              .num_buffers = (size_t)model->num_params * NUM_KINDS + 1};
    state->buffers = ct_alloc_zeroed(state->num_buffers * (size_t)session->num_devices, sizeof(*state->buffers));
}

void ct_train_state_deinit(ct_train_state *state)
{
    if (state->buffers) ct_buffers_free(state->buffers, state->num_buffers * (size_t)state->session->num_devices);
    free(state->buffers);
    *state = (ct_train_state){0};
}

static ct_layout layout_of_param(const ct_model_param *param, const ct_parallel *parallel, int kind, ct_dtype dtype)
{
    ct_layout layout = {.mesh = parallel ? &parallel->mesh : &ONE_DEVICE, .dtype = dtype, .rank = param->rank};
    for (int i = 0; i < param->rank; i++) layout.sizes[i] = param->dims[i].size;
    if (parallel)
        layout.sharding = kind == PARAM ? ct_parallel_stored(parallel, param->rank, param->dims)
                                        : ct_parallel_moment(parallel, param->rank, param->dims);
    CT_ASSERT(!param->stacked || !layout.sharding.at.count[0]); /* layers are never split */
    return layout;
}

static ct_layout layout_of(const ct_train_state *state, int kind, int param)
{
    ct_layout layout = layout_of_param(&state->model->params[param], state->parallel, kind,
                                       kind == PARAM ? state->param_dtype : state->moment_dtype);
    layout.on_host = kind != PARAM && state->moments_on_host;
    return layout;
}

double ct_train_state_bytes(const ct_model *model, const ct_parallel *parallel, ct_dtype param_dtype,
                            ct_dtype moment_dtype, double *out_total)
{
    double total = 0, per_device = 0;
    for (int kind = 0; kind < NUM_KINDS; kind++)
        for (int i = 0; i < model->num_params; i++) {
            ct_dtype dtype = kind == PARAM ? param_dtype : moment_dtype;
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

static ct_buffer **buffers_of(const ct_train_state *state, int kind, int param)
{
    return &state->buffers[(size_t)kind * (size_t)state->model->num_params + (size_t)param];
}

static ct_status *put(ct_train_state *state, int kind, int param, ct_session_fill *fill, void *context)
{
    ct_layout layout = layout_of(state, kind, param);
    return ct_session_put(state->session, &layout, fill, context, buffers_of(state, kind, param), state->num_buffers);
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
    for (int kind = EXP_AVG; kind < NUM_KINDS; kind++)
        for (int i = 0; i < state->model->num_params; i++) CT_TRY(put(state, kind, i, leave_zero, NULL));
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
    ct_layout layout = layout_of(state, PARAM, param);
    return ct_session_fetch(state->session, &layout, buffers_of(state, PARAM, param), state->num_buffers, out_array);
}

ct_status *ct_train_state_from_seed(ct_train_state *state, uint64_t seed)
{
    ct_graph *graph;
    CT_TRY(ct_init_build(state->model, state->parallel, state->param_dtype, seed, &graph));
    size_t num_params = (size_t)state->model->num_params, num_devices = (size_t)state->session->num_devices;
    ct_executable *executable = NULL;
    ct_buffer **outputs = ct_alloc_zeroed(num_params * num_devices, sizeof(*outputs));
    ct_status *status = ct_session_compile(state->session, graph, "initial weights", &executable);
    if (!status) status = ct_executable_execute(executable, NULL, 0, NULL, outputs);
    if (!status) {
        for (size_t d = 0; d < num_devices; d++)
            memcpy(state->buffers + d * state->num_buffers, outputs + d * num_params, num_params * sizeof(*outputs));
        status = put_zeros(state);
    }
    if (!status) status = put_running(state);
    ct_executable_free(executable);
    ct_graph_free(graph);
    free(outputs);
    return status;
}

/* ---- parts from files, layer by layer ---- */

typedef struct part_source {
    const ct_train_state *state;
    const ct_model_param *param;
    int kind;
    const ct_safetensors *file;      /* Hugging Face weights, or */
    const ct_checkpoint *checkpoint; /* a saved step */
} part_source;

static ct_status *read_layer(const part_source *source, int64_t layer, const int64_t *offsets, const int64_t *sizes,
                             ct_array *layer_part);

static ct_status *fill_from_source(void *context, const int64_t *offsets, const int64_t *valid, ct_array *block)
{
    const part_source *source = context;
    int stacked = source->param->stacked ? 1 : 0, rank = block->rank - stacked;
    const int64_t *sizes = valid + stacked;
    ct_array part = ct_array_new(block->dtype, sizes, rank); /* of one layer, without padding */
    ct_array layer = {.dtype = block->dtype, .rank = rank, .data = block->data};
    for (int i = 0; i < rank; i++) layer.sizes[i] = block->sizes[i + stacked];
    size_t bytes = ct_array_bytes(&layer);
    ct_status *status = NULL;
    for (int64_t i = 0; i < (stacked ? valid[0] : 1) && !status; i++) {
        layer.data = (char *)block->data + (size_t)i * bytes;
        status = read_layer(source, i, offsets + stacked, sizes, &part);
        if (!status)
            ct_box_copy(rank, sizes, ct_dtype_bytes(block->dtype), &(ct_box_side){part.data, sizes, NULL},
                        &(ct_box_side){layer.data, layer.sizes, NULL});
    }
    ct_array_free(&part);
    return status;
}

static ct_status *put_from_source(ct_train_state *state, int kind, int param, const ct_safetensors *file,
                                  const ct_checkpoint *checkpoint)
{
    part_source source = {
        .state = state, .param = &state->model->params[param], .kind = kind, .file = file, .checkpoint = checkpoint};
    return put(state, kind, param, fill_from_source, &source);
}

ct_status *ct_train_state_from_hf(ct_train_state *state, const char *folder)
{
    ct_safetensors *file;
    CT_TRY(ct_safetensors_dir_open(folder, &file));
    ct_status *status = NULL;
    for (int i = 0; i < state->model->num_params && !status; i++) status = put_from_source(state, PARAM, i, file, NULL);
    if (!status) ct_weights_warn_unused(file, state->model);
    if (!status) status = put_zeros(state);
    if (!status) status = put_running(state);
    ct_safetensors_close(file);
    return ct_status_note(status, "loading the weights of %s", folder);
}

/* The name in a checkpoint of one kind of state; heap. */
static char *checkpoint_name(const ct_model_param *param, int64_t layer, int kind)
{
    char buffer[256];
    const char *name = ct_model_hf_name(param, layer, buffer);
    if (kind == PARAM) return ct_strdup(name);
    return ct_asprintf("state.%s.%s", name, kind == EXP_AVG ? "exp_avg" : "exp_avg_sq");
}

static ct_checkpoint_tensor checkpoint_tensor(const ct_train_state *state, int kind, const ct_model_param *param,
                                              const char *name)
{
    ct_checkpoint_tensor tensor = {
        .name = name, .dtype = kind == PARAM ? state->param_dtype : state->moment_dtype, .rank = param->hf_rank};
    for (int i = 0; i < param->hf_rank; i++) tensor.sizes[i] = param->hf_sizes[i];
    return tensor;
}

static ct_status *read_layer(const part_source *source, int64_t layer, const int64_t *offsets, const int64_t *sizes,
                             ct_array *layer_part)
{
    ct_status *status;
    if (source->checkpoint) {
        char *name = checkpoint_name(source->param, layer, source->kind);
        ct_checkpoint_tensor wanted = checkpoint_tensor(source->state, source->kind, source->param, name);
        ct_checkpoint_shard region = {0};
        ct_model_hf_box(source->param, offsets, sizes, region.offsets, region.sizes);
        status = ct_checkpoint_read(source->checkpoint, &wanted, &region, layer_part->data);
        free(name);
        return status;
    }
    if (layer_part->dtype == CT_DTYPE_F32)
        return ct_weights_read_box(source->file, source->param, layer, offsets, sizes, layer_part->data);
    ct_array wide = ct_array_new(CT_DTYPE_F32, layer_part->sizes, layer_part->rank);
    status = ct_weights_read_box(source->file, source->param, layer, offsets, sizes, wide.data);
    int64_t count = ct_array_num_elements(&wide);
    for (int64_t i = 0; i < count && !status; i++) ct_array_set(layer_part, i, ct_array_get(&wide, i));
    ct_array_free(&wide);
    return status;
}

ct_status *ct_train_state_load(ct_train_state *state, const ct_checkpoint *checkpoint, bool weights_only)
{
    for (int kind = 0; kind < (weights_only ? EXP_AVG : NUM_KINDS); kind++)
        for (int i = 0; i < state->model->num_params; i++) CT_TRY(put_from_source(state, kind, i, NULL, checkpoint));
    if (weights_only) CT_TRY(put_zeros(state));
    return put_running(state);
}

/* ---- saving ---- */

/* One tensor of a checkpoint: a layer of a parameter or moment. The shards are the parts that are not copies. */
typedef struct save_place {
    int kind, param;
    int64_t layer;
    const int64_t *holders; /* the device of each shard */
} save_place;

typedef struct save_walk {
    ct_train_state *state;
    ct_arena arena;
    ct_checkpoint_tensor *tensors;
    save_place *places;
    int *groups; /* the layers of one parameter belong together */
    size_t num_tensors;
    int fetched_kind, fetched_param; /* of the part that block is; -1: none */
    int64_t fetched_device;
    ct_array block; /* the part last fetched, all its layers */
    ct_array dense; /* one layer of it without padding */
} save_walk;

static ct_status *save_bytes(void *context, size_t tensor, size_t shard, const void **out_bytes)
{
    save_walk *walk = context;
    const save_place *place = &walk->places[tensor];
    const ct_model_param *param = &walk->state->model->params[place->param];
    int64_t device = place->holders[shard];
    ct_layout layout = layout_of(walk->state, place->kind, place->param);
    if (walk->fetched_kind != place->kind || walk->fetched_param != place->param || walk->fetched_device != device) {
        ct_array_free(&walk->block);
        walk->fetched_param = -1;
        ct_buffer **buffers = buffers_of(walk->state, place->kind, place->param);
        CT_TRY(ct_session_fetch_part(&layout, buffers[(size_t)device * walk->state->num_buffers], &walk->block));
        walk->fetched_kind = place->kind;
        walk->fetched_param = place->param;
        walk->fetched_device = device;
    }
    int stacked = param->stacked ? 1 : 0, rank = layout.rank - stacked;
    int64_t offsets[CT_MAX_RANK], valid[CT_MAX_RANK], local[CT_MAX_RANK];
    ct_sharding_box(layout.mesh, &layout.sharding, layout.rank, layout.sizes, device, offsets, valid, local);
    size_t bytes = ct_array_bytes(&walk->block) / (size_t)(stacked ? local[0] : 1);
    char *data = (char *)walk->block.data + (size_t)place->layer * bytes;
    *out_bytes = data;
    bool is_padded = false;
    for (int i = 0; i < layout.rank; i++) is_padded = is_padded || valid[i] != local[i];
    if (!is_padded) return NULL;
    ct_array_free(&walk->dense);
    walk->dense = ct_array_new(layout.dtype, valid + stacked, rank);
    ct_box_copy(rank, valid + stacked, ct_dtype_bytes(layout.dtype), &(ct_box_side){data, local + stacked, NULL},
                &(ct_box_side){walk->dense.data, valid + stacked, NULL});
    *out_bytes = walk->dense.data;
    return NULL;
}

/* The tensors of one parameter or moment. */
static void add_to_walk(save_walk *walk, int kind, int index)
{
    ct_train_state *state = walk->state;
    const ct_model_param *param = &state->model->params[index];
    ct_layout layout = layout_of(state, kind, index);
    int stacked = param->stacked ? 1 : 0, num_devices = state->session->num_devices;
    int64_t *holders = CT_ARENA_ARRAY(&walk->arena, int64_t, num_devices);
    ct_checkpoint_shard *shards = CT_ARENA_ARRAY(&walk->arena, ct_checkpoint_shard, num_devices);
    size_t num_shards = 0;
    for (int64_t d = 0; d < num_devices; d++) {
        int64_t offsets[CT_MAX_RANK], valid[CT_MAX_RANK], local[CT_MAX_RANK];
        if (ct_sharding_holder(layout.mesh, &layout.sharding, d) != d) continue;
        ct_sharding_box(layout.mesh, &layout.sharding, layout.rank, layout.sizes, d, offsets, valid, local);
        if (!ct_num_elements(valid, layout.rank)) continue;
        ct_model_hf_box(param, offsets + stacked, valid + stacked, shards[num_shards].offsets,
                        shards[num_shards].sizes);
        holders[num_shards++] = d;
    }
    for (int64_t layer = 0; layer < ct_model_param_layers(state->model, param); layer++) {
        char *name = checkpoint_name(param, layer, kind);
        ct_checkpoint_tensor *tensor = &walk->tensors[walk->num_tensors];
        *tensor = checkpoint_tensor(state, kind, param, ct_arena_strdup(&walk->arena, name));
        tensor->shards = shards;
        tensor->num_shards = num_shards;
        walk->groups[walk->num_tensors] = kind * state->model->num_params + index + 1;
        walk->places[walk->num_tensors++] =
            (save_place){.kind = kind, .param = index, .layer = layer, .holders = holders};
        free(name);
    }
}

ct_status *ct_train_state_save(ct_train_state *state, const char *folder, int64_t step, const char *info)
{
    const ct_model *model = state->model;
    size_t capacity = 0;
    for (int i = 0; i < model->num_params; i++)
        capacity += NUM_KINDS * (size_t)ct_model_param_layers(model, &model->params[i]);
    save_walk walk = {.state = state, .fetched_param = -1};
    ct_arena_init(&walk.arena);
    walk.tensors = CT_ARENA_ARRAY(&walk.arena, ct_checkpoint_tensor, capacity);
    walk.places = CT_ARENA_ARRAY(&walk.arena, save_place, capacity);
    walk.groups = CT_ARENA_ARRAY(&walk.arena, int, capacity);
    for (int kind = 0; kind < NUM_KINDS; kind++)
        for (int i = 0; i < model->num_params; i++) add_to_walk(&walk, kind, i);
    ct_checkpoint_save_opts opts = {.info = info, .groups = walk.groups};
    ct_status *status = ct_checkpoint_save(folder, step, walk.tensors, walk.num_tensors, save_bytes, &walk, &opts);
    ct_array_free(&walk.block);
    ct_array_free(&walk.dense);
    ct_arena_deinit(&walk.arena);
    return status;
}
