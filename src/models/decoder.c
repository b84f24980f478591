/* The forward pass around the blocks: embedding, layers unrolled or scanned, norm, head. */
#include <string.h>

#include "graph/node.h"
#include "graph/ops.h"
#include "kernels/attention/attention.h"
#include "models/family.h"
#include "models/lora.h"

const char *const *ct_model_checkpoint_names(size_t *out_count)
{
    static const char *const names[] = {"block_in",           "query",    "key",   "value", "attention_out",
                                        "attention_residual", "ffn_gate", "ffn_up"};
    *out_count = CT_COUNT(names);
    return names;
}

void ct_model_inputs(const ct_model *model, ct_graph *graph, ct_dtype dtype, ct_tensor **out_params)
{
    for (int i = 0; i < model->num_params; i++)
        out_params[i] =
            ct_input(graph, model->params[i].name, ct_model_param_dtype(model, i, dtype), model->params[i].axes);
}

ct_tensor *ct__block_linear_at(const char *loc, ct_tensor *x, ct_tensor *const *weight, const ct_block_context *c)
{
    const char *saved = ct__loc_enter(x->graph, loc);
    ct_dtype dtype = c->compute_dtype;
    ct_tensor *y = ct_linear(x, ct_use(*weight, dtype));
    int place = c->lora ? c->lora->places[weight - c->weights] : -1;
    if (place >= 0) {
        ct_tensor *const *adapter = c->adapters + (ptrdiff_t)2 * place;
        ct_tensor *low = ct_shard(ct_linear(x, ct_use(adapter[0], dtype)), "lora"); /* [batch seq lora] */
        y = ct_checkpoint_sum(y, ct_linear(ct_mul_scalar(low, c->lora_scale), ct_use(adapter[1], dtype)));
    }
    ct__loc_leave(x->graph, saved);
    return y;
}

ct_tensor *ct__block_swiglu_at(const char *loc, ct_tensor *x, ct_tensor *const *gate, ct_tensor *const *up,
                               ct_tensor *const *down, const ct_block_context *c)
{
    const char *saved = ct__loc_enter(x->graph, loc);
    ct_tensor *gated = ct_checkpoint_name(ct__block_linear(x, gate, c), "ffn_gate");
    ct_tensor *hidden = ct_mul(ct_silu(gated), ct_checkpoint_name(ct__block_linear(x, up, c), "ffn_up"));
    ct_tensor *result = ct__block_linear(hidden, down, c);
    ct__loc_leave(x->graph, saved);
    return result;
}

ct_tensor *ct__block_attention(ct_tensor *q, ct_tensor *k, ct_tensor *v, const ct_block_context *c)
{
    q = ct_checkpoint_name(q, "query");
    k = ct_checkpoint_name(k, "key");
    v = ct_rename(ct_checkpoint_name(v, "value"), "seq", "kv_seq");
    k = ct_rename(k, "seq", "kv_seq");
    if (c->cache_start) {
        k = ct_dynamic_update_slice(*c->cache_key, k, "kv_seq", c->cache_start);
        v = ct_dynamic_update_slice(*c->cache_value, v, "kv_seq", c->cache_start);
    }
    if (c->cache_key) {
        *c->cache_key = k;
        *c->cache_value = v;
    }
    ct_attention_opts opts = {.causal = true,
                              .positions = c->positions,
                              .kv_positions = c->kv_positions,
                              .segments = c->segments,
                              .kv_segments = c->kv_segments,
                              .checkpoint_name = "attention_out"};
    return ct_attention(q, k, v, &opts);
}

/* One block; weights: the layer's, adapters the same. */
static ct_tensor *run_block(const ct_model_family *family, ct_tensor *const *weights, ct_tensor *const *adapters,
                            ct_tensor *x, const ct_block_context *context)
{
    ct_block_context inner = *context;
    inner.weights = weights;
    inner.adapters = adapters;
    return family->block(weights, ct_checkpoint_name(x, "block_in"), &inner);
}

typedef struct layer_scan {
    const ct_model_family *family;
    const ct_block_context *context;
} layer_scan;

static void scan_body(ct_graph *graph, void *context, ct_tensor *const *carries, ct_tensor *const *slices,
                      ct_tensor **out_carries, ct_tensor **out_slices)
{
    (void)out_slices;
    const layer_scan *scan = context;
    ct_scope_push(graph, "layers");
    out_carries[0] =
        run_block(scan->family, slices, slices + scan->family->num_layer_params, carries[0], scan->context);
    ct_scope_pop(graph);
}

/* Parameters that are no adapters: the first of them. */
static int num_base(const ct_model *model)
{
    return model->lora ? model->num_frozen : model->num_params;
}

/* params: all of the model's */
static ct_tensor *layers(const ct_model *model, ct_tensor *const *params, ct_tensor *x, ct_block_context *context,
                         const ct_model_opts *opts)
{
    static const ct_remat_policy keep_all = {.mode = CT_REMAT_NONE};
    ct_graph *graph = ct_graph_of(x);
    const ct_model_family *family = model->family;
    const ct_remat_policy *remat = opts && opts->remat ? opts->remat : &keep_all;
    const ct_model_cache *cache = opts ? opts->cache : NULL;
    int num_weights = family->num_layer_params, num_adapters = model->lora ? 2 * model->lora->num_targets : 0;
    ct_tensor *const *weights = params + 1, *const *adapters = params + num_base(model);
    if (!model->scan_layers) {
        for (int64_t layer = 0; layer < model->config.num_layers; layer++) {
            ct_scope_push(graph, "layers.%lld", (long long)layer);
            ct_checkpoint_begin(graph, remat);
            if (cache) {
                context->cache_key = &cache->keys[layer];
                context->cache_value = &cache->values[layer];
            }
            x = run_block(family, weights + layer * num_weights, adapters + layer * num_adapters, x, context);
            ct_checkpoint_end(graph);
            ct_scope_pop(graph);
        }
        return x;
    }
    if (cache) return ct_graph_fail(graph, "model", "a cache of keys and values wants unrolled layers");
    layer_scan scan = {family, context};
    ct_tensor **inputs = CT_ARENA_ARRAY(&graph->arena, ct_tensor *, num_weights + num_adapters);
    memcpy(inputs, weights, (size_t)num_weights * sizeof(*inputs));
    memcpy(inputs + num_weights, adapters, (size_t)num_adapters * sizeof(*inputs));
    ct_scan_opts scan_opts = {.axis = "layers",
                              .num_carries = 1,
                              .carries = &x,
                              .num_inputs = num_weights + num_adapters,
                              .inputs = inputs,
                              .remat = remat};
    ct_tensor *result;
    ct_scan(graph, &scan_opts, scan_body, &scan, &result, NULL);
    return result;
}

static ct_dtype compute_dtype(ct_tensor *const *params, const ct_model_opts *opts)
{
    return opts && opts->compute_dtype ? opts->compute_dtype : ct_tensor_dtype(params[0]);
}

ct_tensor *ct_model_hidden(const ct_model *model, ct_tensor *const *params, ct_tensor *tokens, ct_tensor *positions,
                           ct_tensor *segments, const ct_model_opts *opts)
{
    ct_graph *graph = ct_graph_of(tokens);
    const ct_model_config *config = &model->config;
    ct_block_context context = {.config = config, .compute_dtype = compute_dtype(params, opts), .lora = model->lora};
    if (model->lora) context.lora_scale = ct_model_lora_scale(model);
    ct_scope_push(graph, "embedding");
    ct_tensor *x = ct_take(ct_use(params[0], context.compute_dtype), tokens, "vocab"); /* [batch seq dim] */
    x = ct_shard(x, "residual");
    context.rope = ct_rope_angles(positions, config->head_dim, &config->rope);
    if (segments) {
        context.segments = segments;
        context.kv_segments = ct_rename(segments, "seq", "kv_seq");
    }
    const ct_parallel *parallel = ct_parallel_of(graph);
    if (parallel && parallel->mesh.degrees[CT_MESH_CP] > 1) { /* the trainer reorders columns for balance */
        context.positions = positions;
        context.kv_positions = ct_rename(positions, "seq", "kv_seq");
    }
    if (opts && opts->cache) {
        context.positions = positions;
        context.kv_positions = opts->cache->kv_positions;
        context.cache_start = opts->cache->start;
    }
    ct_scope_pop(graph);
    x = layers(model, params, x, &context, opts);
    ct_scope_push(graph, "norm");
    int norm = num_base(model) - (config->tied ? 1 : 2);
    x = ct_shard(ct_rms_norm(x, params[norm], config->norm_eps), "residual");
    ct_scope_pop(graph);
    return x;
}

int ct_model_head_index(const ct_model *model)
{
    return model->config.tied ? 0 : num_base(model) - 1;
}

ct_tensor *ct_model_head(const ct_model *model, ct_tensor *const *params, const ct_model_opts *opts)
{
    ct_graph *graph = ct_graph_of(params[0]);
    ct_scope_push(graph, "head");
    ct_tensor *weight = ct_use(params[ct_model_head_index(model)], compute_dtype(params, opts));
    ct_scope_pop(graph);
    return weight;
}

ct_tensor *ct_model_logits(const ct_model *model, ct_tensor *const *params, ct_tensor *hidden,
                           const ct_model_opts *opts)
{
    ct_graph *graph = ct_graph_of(hidden);
    ct_tensor *weight = ct_model_head(model, params, opts);
    ct_scope_push(graph, "head");
    ct_tensor *logits = ct_linear(hidden, weight);
    ct_scope_pop(graph);
    return ct_shard(logits, "logits");
}
