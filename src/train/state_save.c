/* State from devices to files: each device's parts as they lie there, or, in Hugging Face's form, whole tensors. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/box.h"
#include "base/convert.h"
#include "base/workers.h"
#include "train/state.h"
#include "train/state_parts.h"

enum { MAX_LANES = 4, WHOLE = -1 };

/* One tensor of a checkpoint: a layer of a parameter or moment. The shards are the parts that are not copies. */
typedef struct place {
    int kind, param;
    int64_t layer;
    const int64_t *holders; /* the device of each shard, or WHOLE */
} place;

/* What one writing thread holds: a part as it came from the device, and one layer of it as the file wants it. */
typedef struct lane {
    int kind, param; /* of the part in block; param -1: none */
    int64_t device;
    const void *part; /* in block, or where the state has it on the host */
    void *block, *layer;
    size_t block_bytes, layer_bytes;
} lane;

typedef struct walk {
    ct_train_state *state;
    const ct_train_save_opts *opts;
    ct_arena arena;
    ct_checkpoint_tensor *tensors;
    place *places;
    int *groups; /* the layers of one parameter belong together */
    size_t num_tensors;
    lane lanes[MAX_LANES];
    atomic_int *reads_left; /* [kind][param] shards that are still to be asked for */
} walk;

static ct_status *fetch(walk *w, lane *l, const place *where, int64_t device, const ct_layout *layout)
{
    if (l->param == where->param && l->kind == where->kind && l->device == device) return NULL;
    l->param = -1;
    ct_buffer **buffers = ct__state_buffers(w->state, where->kind, where->param);
    if (device == WHOLE) {
        ct_array whole;
        CT_TRY(ct_session_fetch(w->state->session, layout, buffers, w->state->num_buffers, &whole));
        free(l->block);
        l->block = whole.data;
        l->block_bytes = ct_array_bytes(&whole);
        l->part = l->block;
    } else if (w->state->host) {
        size_t first = (size_t)(buffers - w->state->buffers);
        l->part = w->state->host[(size_t)device * w->state->num_buffers + first];
    } else {
        void *block = ct_reserve(&l->block, &l->block_bytes, ct_session_part_bytes(layout));
        CT_TRY(ct_session_fetch_part_to(layout, buffers[(size_t)device * w->state->num_buffers], block));
        l->part = block;
    }
    l->kind = where->kind;
    l->param = where->param;
    l->device = device;
    return NULL;
}

/* One shard was read; the last one of a parameter or moment takes its buffers with it. */
static void count_read(walk *w, const place *where)
{
    atomic_int *left = &w->reads_left[where->kind * w->state->model->num_params + where->param];
    if (atomic_fetch_sub(left, 1) > 1 || !w->opts->may_free || !atomic_load(w->opts->may_free)) return;
    ct_buffer **buffers = ct__state_buffers(w->state, where->kind, where->param);
    for (int d = 0; d < w->state->session->num_devices; d++)
        ct_buffers_free(&buffers[(size_t)d * w->state->num_buffers], 1);
}

static ct_status *give_bytes(void *context, int lane_number, size_t tensor, size_t shard, const void **out_bytes)
{
    walk *w = context;
    lane *l = &w->lanes[lane_number];
    const place *where = &w->places[tensor];
    const ct_model_param *param = &w->state->model->params[where->param];
    int64_t device = where->holders[shard];
    ct_layout layout = ct__state_layout(w->state, where->kind, where->param);
    ct_status *status = fetch(w, l, where, device, &layout);
    if (status && w->opts->out_device_failed) *w->opts->out_device_failed = true;
    CT_TRY(status);
    count_read(w, where);

    int stacked = param->stacked ? 1 : 0, rank = layout.rank - stacked;
    int64_t offsets[CT_MAX_RANK], valid[CT_MAX_RANK], local[CT_MAX_RANK];
    if (device == WHOLE)
        for (int i = 0; i < layout.rank; i++) valid[i] = local[i] = layout.sizes[i];
    else
        ct_sharding_box(layout.mesh, &layout.sharding, layout.rank, layout.sizes, device, offsets, valid, local);
    size_t element_bytes = ct_dtype_bytes(layout.dtype);
    int64_t local_count = ct_num_elements(local + stacked, rank), count = ct_num_elements(valid + stacked, rank);
    const char *bytes = (const char *)l->part + (size_t)(where->layer * local_count) * element_bytes;
    *out_bytes = bytes;
    if (count != local_count) { /* padded: made dense */
        void *dense = ct_reserve(&l->layer, &l->layer_bytes, (size_t)count * element_bytes);
        ct_box_copy(rank, valid + stacked, element_bytes,
                    &(ct_box_side){(void *)(uintptr_t)bytes, local + stacked, NULL},
                    &(ct_box_side){dense, valid + stacked, NULL});
        *out_bytes = dense;
    }
    if (w->tensors[tensor].dtype != layout.dtype) {
        CT_ASSERT(count == local_count); /* only whole tensors are converted */
        ct_dtype dtype = w->tensors[tensor].dtype;
        void *converted = ct_reserve(&l->layer, &l->layer_bytes, (size_t)count * ct_dtype_bytes(dtype));
        ct_convert_elements(layout.dtype, bytes, dtype, converted, count);
        *out_bytes = converted;
    }
    return NULL;
}

/* The boxes of a tensor's shards: all of it, or a box for each device that holds a part that no device before it does.
 */
static size_t make_shards(walk *w, const ct_model_param *param, const ct_layout *layout, bool is_whole,
                          int64_t *out_holders, ct_checkpoint_shard *out_shards)
{
    if (is_whole) {
        out_holders[0] = WHOLE;
        for (int i = 0; i < param->hf_rank; i++) out_shards[0].sizes[i] = param->hf_sizes[i];
        return 1;
    }
    int stacked = param->stacked ? 1 : 0;
    size_t num_shards = 0;
    for (int64_t d = 0; d < w->state->session->num_devices; d++) {
        int64_t offsets[CT_MAX_RANK], valid[CT_MAX_RANK], local[CT_MAX_RANK];
        if (ct_sharding_holder(layout->mesh, &layout->sharding, d) != d) continue;
        ct_sharding_box(layout->mesh, &layout->sharding, layout->rank, layout->sizes, d, offsets, valid, local);
        if (!ct_num_elements(valid, layout->rank)) continue;
        ct_model_hf_box(param, offsets + stacked, valid + stacked, out_shards[num_shards].offsets,
                        out_shards[num_shards].sizes);
        out_holders[num_shards++] = d;
    }
    return num_shards;
}

/* The tensors of one parameter or moment. */
static void add_tensors(walk *w, int kind, int index)
{
    ct_train_state *state = w->state;
    const ct_model_param *param = &state->model->params[index];
    ct_layout layout = ct__state_layout(state, kind, index);
    ct_dtype dtype = w->opts->dtype ? w->opts->dtype : layout.dtype;
    int num_devices = state->session->num_devices;
    int64_t *holders = CT_ARENA_ARRAY(&w->arena, int64_t, num_devices);
    ct_checkpoint_shard *shards = CT_ARENA_ARRAY(&w->arena, ct_checkpoint_shard, num_devices);
    size_t num_shards = make_shards(w, param, &layout, w->opts->is_hf || dtype != layout.dtype, holders, shards);
    int64_t num_layers = ct_model_param_layers(state->model, param);
    for (int64_t layer = 0; layer < num_layers; layer++) {
        char *name = ct__state_name(param, layer, kind);
        ct_checkpoint_tensor *tensor = &w->tensors[w->num_tensors];
        *tensor = ct__state_tensor(state, kind, param, ct_arena_strdup(&w->arena, name));
        tensor->dtype = dtype;
        tensor->shards = shards;
        tensor->num_shards = num_shards;
        w->groups[w->num_tensors] = kind * state->model->num_params + index + 1;
        w->places[w->num_tensors++] = (place){.kind = kind, .param = index, .layer = layer, .holders = holders};
        free(name);
    }
    atomic_init(&w->reads_left[kind * state->model->num_params + index], (int)((size_t)num_layers * num_shards));
}

ct_status *ct_train_state_copy(const ct_train_state *state, void **memory, size_t *memory_bytes, void **out_host,
                               ct_event **out_events)
{
    enum { ALIGNMENT = 64 };
    int num_params = state->model->num_params, num_devices = state->session->num_devices;
    for (int pass = 0; pass < 2; pass++) { /* sizes, then copies */
        size_t used = 0;
        for (int i = 0; i < CT__STATE_NUM_KINDS * num_params; i++) {
            ct_layout layout = ct__state_layout(state, i / num_params, i % num_params);
            size_t part_bytes = ct_session_part_bytes(&layout);
            for (int d = 0; d < num_devices; d++) {
                if (ct_sharding_holder(layout.mesh, &layout.sharding, d) != d) continue;
                size_t index = (size_t)d * state->num_buffers + (size_t)i;
                if (pass) {
                    out_host[index] = (char *)*memory + used;
                    CT_TRY(ct_buffer_to_host(state->buffers[index], out_host[index], part_bytes, &out_events[index]));
                }
                used += (part_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
            }
        }
        if (!pass) ct_reserve(memory, memory_bytes, used);
    }
    return NULL;
}

ct_status *ct_train_state_save(ct_train_state *state, const char *folder, int64_t step, const ct_train_save_opts *opts)
{
    CT_ASSERT(opts->model_only || (!opts->is_hf && !opts->dtype));
    const ct_model *model = state->model;
    int num_kinds = opts->model_only ? CT__STATE_EXP_AVG : CT__STATE_NUM_KINDS;
    size_t capacity = 0;
    for (int i = 0; i < model->num_params; i++)
        capacity += (size_t)num_kinds * (size_t)ct_model_param_layers(model, &model->params[i]);
    walk w = {.state = state, .opts = opts};
    ct_arena_init(&w.arena);
    w.tensors = CT_ARENA_ARRAY(&w.arena, ct_checkpoint_tensor, capacity);
    w.places = CT_ARENA_ARRAY(&w.arena, place, capacity);
    w.groups = CT_ARENA_ARRAY(&w.arena, int, capacity);
    w.reads_left = CT_ARENA_ARRAY(&w.arena, atomic_int, num_kinds * model->num_params);
    for (int i = 0; i < MAX_LANES; i++) w.lanes[i].param = -1;
    for (int kind = 0; kind < num_kinds; kind++)
        for (int i = 0; i < model->num_params; i++) add_tensors(&w, kind, i);
    ct_checkpoint_save_opts save_opts = {.info = opts->info,
                                         .groups = w.groups,
                                         .num_lanes = MAX_LANES, /* they wait for the disk more than they compute */
                                         .is_hf = opts->is_hf,
                                         .assets = opts->assets,
                                         .num_assets = opts->num_assets};
    ct_status *status = ct_checkpoint_save(folder, step, w.tensors, w.num_tensors, give_bytes, &w, &save_opts);
    for (int i = 0; i < MAX_LANES; i++) {
        free(w.lanes[i].block);
        free(w.lanes[i].layer);
    }
    ct_arena_deinit(&w.arena);
    return status;
}
