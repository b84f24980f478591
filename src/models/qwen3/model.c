/* Qwen3 dense: Llama's block with RMSNorm on each head's queries and keys and plain rope.
 * Axes: batch seq dim heads kv_heads head_dim ffn vocab; weights are [out in], rope in half-split form.
 * Source: "Qwen3 Technical Report", 2025; transformers' Qwen3ForCausalLM; initial weights as in TorchTitan.
 */
#include "graph/ops.h"
#include "models/qwen3/qwen3.h"

typedef struct qwen3_block {
    ct_tensor *attention_norm, *wq, *wk, *wv, *q_norm, *k_norm, *wo, *ffn_norm, *gate, *up, *down;
} qwen3_block;

#define NORMAL .init = CT_INIT_NORMAL, .std = 0.02
static const ct_param_spec LAYER[] = {
    {"model.layers.{}.input_layernorm.weight", "dim", .init = CT_INIT_ONES},
    {"model.layers.{}.self_attn.q_proj.weight", "(heads head_dim) dim", NORMAL},
    {"model.layers.{}.self_attn.k_proj.weight", "(kv_heads head_dim) dim", NORMAL},
    {"model.layers.{}.self_attn.v_proj.weight", "(kv_heads head_dim) dim", NORMAL},
    {"model.layers.{}.self_attn.q_norm.weight", "head_dim", .init = CT_INIT_ONES},
    {"model.layers.{}.self_attn.k_norm.weight", "head_dim", .init = CT_INIT_ONES},
    {"model.layers.{}.self_attn.o_proj.weight", "dim (heads head_dim)", NORMAL},
    {"model.layers.{}.post_attention_layernorm.weight", "dim", .init = CT_INIT_ONES},
    {"model.layers.{}.mlp.gate_proj.weight", "ffn dim", NORMAL},
    {"model.layers.{}.mlp.up_proj.weight", "ffn dim", NORMAL},
    {"model.layers.{}.mlp.down_proj.weight", "dim ffn", NORMAL},
};
_Static_assert(sizeof(qwen3_block) == CT_COUNT(LAYER) * sizeof(ct_tensor *), "one pointer per layer parameter");
static const ct_param_spec EMBEDDING = {"model.embed_tokens.weight", "vocab dim", NORMAL};
static const ct_param_spec NORM = {"model.norm.weight", "dim", .init = CT_INIT_ONES};
static const ct_param_spec HEAD = {"lm_head.weight", "vocab dim", NORMAL};

static ct_tensor *attention(const qwen3_block *w, ct_tensor *x, const ct_block_context *c)
{
    double eps = c->config->norm_eps;
    ct_tensor *q = ct_rms_norm(ct__block_linear(x, &w->wq, c), w->q_norm, eps); /* [batch seq heads head_dim] */
    ct_tensor *k = ct_rms_norm(ct__block_linear(x, &w->wk, c), w->k_norm, eps); /* [batch seq kv_heads head_dim] */
    ct_tensor *v = ct__block_linear(x, &w->wv, c);
    q = ct_rope_apply(q, &c->rope);
    k = ct_rope_apply(k, &c->rope);
    ct_tensor *o = ct__block_attention(q, k, v, c);
    return ct__block_linear(o, &w->wo, c); /* contracts heads and head_dim */
}

static ct_tensor *block(ct_tensor *const *weights, ct_tensor *x, const ct_block_context *c)
{
    const qwen3_block *w = (const qwen3_block *)(const void *)weights;
    double eps = c->config->norm_eps;
    ct_tensor *h = ct_add(x, attention(w, ct_shard(ct_rms_norm(x, w->attention_norm, eps), "residual"), c));
    h = ct_checkpoint_name(ct_shard(h, "residual"), "attention_residual");
    ct_tensor *normed = ct_shard(ct_rms_norm(h, w->ffn_norm, eps), "residual");
    ct_tensor *ffn = ct__block_swiglu(normed, &w->gate, &w->up, &w->down, c);
    return ct_shard(ct_add(h, ffn), "residual");
}

const ct_model_family ct__qwen3 = {
    .name = "qwen3",
    .hf_model_type = "qwen3",
    .hf_architecture = "Qwen3ForCausalLM",
    .flavors = ct__qwen3_flavors,
    .num_flavors = CT_QWEN3_NUM_FLAVORS,
    .layer_params = LAYER,
    .num_layer_params = (int)CT_COUNT(LAYER),
    .embedding = &EMBEDDING,
    .norm = &NORM,
    .head = &HEAD,
    .block = block,
    .sharding = &ct__decoder_sharding,
};
