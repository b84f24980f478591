/* State in and out of devices. */
#include "train/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "train/init.h"
#include "train/weights.h"

enum { PARAM, EXP_AVG, EXP_AVG_SQ, NUM_KINDS };

void ct_train_state_init(ct_train_state *state, ct_session *session, const ct_model *model, ct_dtype param_dtype,
                         ct_dtype moment_dtype)
{
    *state = (ct_train_state){.session = session,
                              .model = model,
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

static ct_dtype dtype_of(const ct_train_state *state, int kind)
{
    return kind == PARAM ? state->param_dtype : state->moment_dtype;
}

static ct_status *put(ct_train_state *state, int kind, int param, const ct_array *array)
{
    size_t index = (size_t)kind * (size_t)state->model->num_params + (size_t)param;
    return ct_session_replicate(state->session, array, &state->buffers[index], state->num_buffers);
}

static ct_array new_array(const ct_train_state *state, int kind, int param)
{
    int rank;
    int64_t sizes[CT_MAX_RANK];
    ct_model_param_sizes(state->model, param, &rank, sizes);
    return ct_array_new(dtype_of(state, kind), sizes, rank);
}

static ct_status *put_zeros(ct_train_state *state)
{
    for (int kind = EXP_AVG; kind < NUM_KINDS; kind++)
        for (int i = 0; i < state->model->num_params; i++) {
            ct_array zeros = new_array(state, kind, i);
            ct_status *status = put(state, kind, i, &zeros);
            ct_array_free(&zeros);
            CT_TRY(status);
        }
    return NULL;
}

static ct_status *put_running(ct_train_state *state)
{
    int32_t halted = 0;
    ct_array array = {.dtype = CT_DTYPE_S32, .data = &halted};
    return ct_session_replicate(state->session, &array, &state->buffers[state->num_buffers - 1], state->num_buffers);
}

ct_status *ct_train_state_from_seed(ct_train_state *state, uint64_t seed)
{
    ct_graph *graph;
    CT_TRY(ct_init_build(state->model, state->param_dtype, seed, &graph));
    size_t num_params = (size_t)state->model->num_params, num_devices = (size_t)state->session->num_devices;
    if (num_devices > 1) { /* each device makes all of it */
        char mesh[32];
        snprintf(mesh, sizeof(mesh), "dp=%zu", num_devices);
        ct_graph_set_mesh(graph, mesh);
        for (int i = 0; i < state->model->num_params; i++) ct_graph_set_output_sharding(graph, i, "");
    }
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

/* f32 -> the parameters' dtype, in place of array */
static void narrow(ct_array *array, ct_dtype dtype)
{
    if (array->dtype == dtype) return;
    ct_array narrowed = ct_array_new(dtype, array->sizes, array->rank);
    int64_t count = ct_array_num_elements(array);
    for (int64_t i = 0; i < count; i++) ct_array_set(&narrowed, i, ct_array_get(array, i));
    ct_array_free(array);
    *array = narrowed;
}

ct_status *ct_train_state_from_hf(ct_train_state *state, const char *folder)
{
    ct_safetensors *file;
    CT_TRY(ct_safetensors_dir_open(folder, &file));
    ct_status *status = NULL;
    for (int i = 0; i < state->model->num_params && !status; i++) {
        ct_array array;
        status = ct_weights_read(file, state->model, i, &array);
        if (status) break;
        narrow(&array, state->param_dtype);
        status = put(state, PARAM, i, &array);
        ct_array_free(&array);
    }
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

static ct_checkpoint_tensor checkpoint_tensor(const ct_train_state *state, int kind, int param, const char *name)
{
    const ct_model_param *p = &state->model->params[param];
    ct_checkpoint_tensor tensor = {.name = name, .dtype = dtype_of(state, kind), .rank = p->hf_rank};
    for (int i = 0; i < p->hf_rank; i++) tensor.sizes[i] = p->hf_sizes[i];
    return tensor;
}

ct_status *ct_train_state_load(ct_train_state *state, const ct_checkpoint *checkpoint, bool weights_only)
{
    const ct_model *model = state->model;
    for (int kind = 0; kind < (weights_only ? EXP_AVG : NUM_KINDS); kind++)
        for (int i = 0; i < model->num_params; i++) {
            const ct_model_param *param = &model->params[i];
            ct_array array = new_array(state, kind, i);
            int64_t layers = ct_model_param_layers(model, param);
            size_t bytes = ct_array_bytes(&array) / (size_t)layers;
            ct_status *status = NULL;
            for (int64_t layer = 0; layer < layers && !status; layer++) {
                char *name = checkpoint_name(param, layer, kind);
                ct_checkpoint_tensor wanted = checkpoint_tensor(state, kind, i, name);
                status = ct_checkpoint_read(checkpoint, &wanted, NULL, (char *)array.data + (size_t)layer * bytes);
                free(name);
            }
            if (!status) status = put(state, kind, i, &array);
            ct_array_free(&array);
            CT_TRY(status);
        }
    if (weights_only) CT_TRY(put_zeros(state));
    return put_running(state);
}

/* What a save walks over: each tensor is one layer of one buffer; the buffer last fetched is kept. */
typedef struct save_walk {
    ct_train_state *state;
    struct save_place {
        size_t buffer;
        int64_t layer, num_layers;
    } * places;
    size_t fetched; /* buffer index; SIZE_MAX: none */
    ct_array array;
} save_walk;

static ct_status *save_bytes(void *context, size_t tensor, size_t shard, const void **out_bytes)
{
    (void)shard;
    save_walk *walk = context;
    const struct save_place *place = &walk->places[tensor];
    if (walk->fetched != place->buffer) {
        ct_array_free(&walk->array);
        walk->fetched = SIZE_MAX;
        CT_TRY(ct_buffer_to_array(walk->state->buffers[place->buffer], &walk->array)); /* device 0 */
        walk->fetched = place->buffer;
    }
    size_t bytes = ct_array_bytes(&walk->array) / (size_t)place->num_layers;
    *out_bytes = (const char *)walk->array.data + (size_t)place->layer * bytes;
    return NULL;
}

ct_status *ct_train_state_save(ct_train_state *state, const char *folder, int64_t step, const char *info)
{
    const ct_model *model = state->model;
    size_t capacity = 0, count = 0;
    for (int i = 0; i < model->num_params; i++)
        capacity += NUM_KINDS * (size_t)ct_model_param_layers(model, &model->params[i]);
    ct_checkpoint_tensor *tensors = ct_alloc(capacity * sizeof(*tensors));
    save_walk walk = {.state = state, .places = ct_alloc(capacity * sizeof(*walk.places)), .fetched = SIZE_MAX};
    for (int kind = 0; kind < NUM_KINDS; kind++)
        for (int i = 0; i < model->num_params; i++) {
            int64_t layers = ct_model_param_layers(model, &model->params[i]);
            for (int64_t layer = 0; layer < layers; layer++, count++) {
                tensors[count] = checkpoint_tensor(state, kind, i, checkpoint_name(&model->params[i], layer, kind));
                walk.places[count] = (struct save_place){.buffer = (size_t)kind * (size_t)model->num_params + (size_t)i,
                                                         .layer = layer,
                                                         .num_layers = layers};
            }
        }
    ct_checkpoint_save_opts opts = {.info = info};
    ct_status *status = ct_checkpoint_save(folder, step, tensors, count, save_bytes, &walk, &opts);
    for (size_t i = 0; i < count; i++) free((void *)(uintptr_t)tensors[i].name);
    free(tensors);
    free(walk.places);
    ct_array_free(&walk.array);
    return status;
}
