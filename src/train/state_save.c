/* State from devices to files: each device's parts as they lie there, or, in Hugging Face's form, whole tensors with
 * adapters merged into them. Of a model with adapters nothing that is frozen is saved but in that form, and the
 * adapters themselves go to a file of their own, as PEFT has it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/box.h"
#include "base/convert.h"
#include "base/workers.h"
#include "models/lora.h"
#include "train/lora.h"
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
    void *block, *layer, *merged;
    size_t block_bytes, layer_bytes, merged_bytes;
    ct_array adapters[2]; /* of the parameter in block, f32; empty: it has none */
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
    atomic_int *reads_left; /* [item] shards that are still to be asked for */
} walk;

/* A parameter as f32, whole. */
static ct_status *fetch_f32(walk *w, int param, ct_array *out_array)
{
    CT_TRY(ct_train_state_param(w->state, param, out_array));
    if (out_array->dtype == CT_DTYPE_F32) return NULL;
    ct_array wide = ct_array_new(CT_DTYPE_F32, out_array->sizes, out_array->rank);
    ct_convert_elements(out_array->dtype, out_array->data, wide.dtype, wide.data, ct_array_num_elements(&wide));
    ct_array_free(out_array);
    *out_array = wide;
    return NULL;
}

static void drop_adapters(lane *l)
{
    for (int i = 0; i < 2; i++) ct_array_free(&l->adapters[i]);
    memset(l->adapters, 0, sizeof(l->adapters));
}

static ct_status *fetch_adapters(walk *w, lane *l, int param)
{
    int a, b;
    drop_adapters(l);
    if (!w->opts->is_hf || !ct_model_adapters_of(w->state->model, param, &a, &b)) return NULL;
    CT_TRY(fetch_f32(w, a, &l->adapters[0]));
    return fetch_f32(w, b, &l->adapters[1]);
}

/* A layer of a parameter with its adapter merged, f32, in the lane's memory. */
static const void *merge_layer(walk *w, lane *l, const place *where, ct_dtype dtype, const void *bytes)
{
    const ct_model *model = w->state->model;
    const int64_t *sizes = model->params[where->param].hf_sizes;
    int64_t out = sizes[0], in = sizes[1], rank = model->lora->rank;
    float *merged = ct_reserve(&l->merged, &l->merged_bytes, (size_t)(out * in) * sizeof(*merged));
    ct_convert_elements(dtype, bytes, CT_DTYPE_F32, merged, out * in);
    ct_lora_merge(merged, (const float *)l->adapters[0].data + where->layer * rank * in,
                  (const float *)l->adapters[1].data + where->layer * out * rank, out, in, rank,
                  ct_model_lora_scale(model));
    return merged;
}

/* All of a parameter, from the devices or from where the state has its parts on the host. */
static ct_status *fetch_whole(const ct_train_state *state, const place *where, const ct_layout *layout,
                              ct_array *out_whole)
{
    size_t first = ct__state_find_item(state, where->kind, where->param), stride = state->num_buffers;
    if (!state->host) return ct_session_fetch(state->session, layout, &state->buffers[first], stride, out_whole);
    *out_whole = ct_array_new(layout->dtype, layout->sizes, layout->rank);
    for (int64_t d = 0; d < state->session->num_devices; d++) {
        int64_t offsets[CT_MAX_RANK], valid[CT_MAX_RANK], local[CT_MAX_RANK];
        if (ct_sharding_holder(layout->mesh, &layout->sharding, d) != d) continue;
        ct_sharding_box(layout->mesh, &layout->sharding, layout->rank, layout->sizes, d, offsets, valid, local);
        if (!ct_num_elements(valid, layout->rank)) continue;
        ct_box_copy(layout->rank, valid, ct_dtype_bytes(layout->dtype),
                    &(ct_box_side){state->host[(size_t)d * stride + first], local, NULL},
                    &(ct_box_side){out_whole->data, out_whole->sizes, offsets});
    }
    return NULL;
}

static ct_status *fetch(walk *w, lane *l, const place *where, int64_t device, const ct_layout *layout)
{
    if (l->param == where->param && l->kind == where->kind && l->device == device) return NULL;
    l->param = -1;
    ct_buffer **buffers = ct__state_buffers(w->state, where->kind, where->param);
    if (device == WHOLE) {
        ct_array whole;
        CT_TRY(fetch_whole(w->state, where, layout, &whole));
        free(l->block);
        l->block = whole.data;
        l->block_bytes = ct_array_bytes(&whole);
        l->part = l->block;
        CT_TRY(fetch_adapters(w, l, where->param));
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
    atomic_int *left = &w->reads_left[ct__state_find_item(w->state, where->kind, where->param)];
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
    ct_dtype from = layout.dtype, to = w->tensors[tensor].dtype;
    if (device == WHOLE && l->adapters[0].data) {
        *out_bytes = merge_layer(w, l, where, from, *out_bytes);
        from = CT_DTYPE_F32;
    }
    if (to != from) {
        CT_ASSERT(count == local_count); /* only whole tensors are converted */
        void *converted = ct_reserve(&l->layer, &l->layer_bytes, (size_t)count * ct_dtype_bytes(to));
        ct_convert_elements(from, *out_bytes, to, converted, count);
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
static void add_tensors(walk *w, size_t item)
{
    ct_train_state *state = w->state;
    int kind, index;
    ct__state_item(state, item, &kind, &index);
    const ct_model_param *param = &state->model->params[index];
    ct_layout layout = ct__state_layout(state, kind, index);
    ct_dtype dtype = w->opts->dtype ? w->opts->dtype : layout.dtype;
    int num_devices = state->session->num_devices;
    int64_t *holders = CT_ARENA_ARRAY(&w->arena, int64_t, num_devices);
    ct_checkpoint_shard *shards = CT_ARENA_ARRAY(&w->arena, ct_checkpoint_shard, num_devices);
    bool is_adapter = state->model->lora && kind == CT__STATE_PARAM && index >= state->model->num_frozen;
    bool is_whole = w->opts->is_hf || is_adapter || dtype != layout.dtype;
    size_t num_shards = make_shards(w, param, &layout, is_whole, holders, shards);
    int64_t num_layers = ct_model_param_layers(state->model, param);
    for (int64_t layer = 0; layer < num_layers; layer++) {
        char *name = ct__state_name(param, layer, kind);
        ct_checkpoint_tensor *tensor = &w->tensors[w->num_tensors];
        *tensor = ct__state_tensor(state, kind, param, ct_arena_strdup(&w->arena, name));
        tensor->dtype = dtype;
        tensor->shards = shards;
        tensor->num_shards = num_shards;
        w->groups[w->num_tensors] = (int)item + 1;
        w->places[w->num_tensors++] = (place){.kind = kind, .param = index, .layer = layer, .holders = holders};
        free(name);
    }
    atomic_init(&w->reads_left[item], (int)((size_t)num_layers * num_shards));
}

ct_status *ct_train_state_copy(const ct_train_state *state, void **memory, size_t *memory_bytes, void **out_host,
                               ct_event **out_events)
{
    enum { ALIGNMENT = 64 };
    int num_devices = state->session->num_devices;
    for (int pass = 0; pass < 2; pass++) { /* sizes, then copies */
        size_t used = 0;
        for (size_t i = (size_t)state->model->num_frozen; i < ct__state_num_items(state); i++) {
            int kind, param;
            ct__state_item(state, i, &kind, &param);
            ct_layout layout = ct__state_layout(state, kind, param);
            size_t part_bytes = ct_session_part_bytes(&layout);
            for (int d = 0; d < num_devices; d++) {
                if (ct_sharding_holder(layout.mesh, &layout.sharding, d) != d) continue;
                size_t index = (size_t)d * state->num_buffers + i;
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
    size_t num_params = (size_t)model->num_params, num_frozen = (size_t)model->num_frozen, capacity = 0, num_beside = 0;
    size_t first = opts->is_hf ? 0 : num_frozen, end = opts->model_only ? num_params : ct__state_num_items(state);
    for (size_t item = first; item < end; item++) {
        int kind, param;
        ct__state_item(state, item, &kind, &param);
        capacity += (size_t)ct_model_param_layers(model, &model->params[param]);
    }
    walk w = {.state = state, .opts = opts};
    ct_arena_init(&w.arena);
    w.tensors = CT_ARENA_ARRAY(&w.arena, ct_checkpoint_tensor, capacity);
    w.places = CT_ARENA_ARRAY(&w.arena, place, capacity);
    w.groups = CT_ARENA_ARRAY(&w.arena, int, capacity);
    w.reads_left = CT_ARENA_ARRAY(&w.arena, atomic_int, end);
    for (int i = 0; i < MAX_LANES; i++) w.lanes[i].param = -1;
    /* adapters come last: they go to their own file */
    size_t first_adapter = model->lora ? num_frozen : num_params;
    for (size_t item = first; item < end; item++)
        if (item < first_adapter || item >= num_params) add_tensors(&w, item);
    num_beside = w.num_tensors;
    for (size_t item = first_adapter; item < num_params; item++) add_tensors(&w, item);
    num_beside = w.num_tensors - num_beside;
    ct_checkpoint_save_opts save_opts = {.info = opts->info,
                                         .groups = w.groups,
                                         .num_lanes = MAX_LANES, /* they wait for the disk more than they compute */
                                         .is_hf = opts->is_hf,
                                         .assets = opts->assets,
                                         .num_assets = opts->num_assets,
                                         .beside = CT_ADAPTER_FILE,
                                         .num_beside = num_beside};
    ct_status *status = ct_checkpoint_save(folder, step, w.tensors, w.num_tensors, give_bytes, &w, &save_opts);
    for (int i = 0; i < MAX_LANES; i++) {
        free(w.lanes[i].block);
        free(w.lanes[i].layer);
        free(w.lanes[i].merged);
        drop_adapters(&w.lanes[i]);
    }
    ct_arena_deinit(&w.arena);
    return status;
}
