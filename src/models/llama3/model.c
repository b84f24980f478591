/* Llama 3: pre-norm decoder with grouped-query attention, rope with Llama 3.1's scaling and a SwiGLU feed-forward.
 * Axes: batch seq dim heads kv_heads head_dim ffn vocab; weights are [out in], rope in half-split form.
 * Source: "The Llama 3 Herd of Models", Meta 2024; transformers' LlamaForCausalLM; initial weights as in TorchTitan.
 */
#include "graph/ops.h"
#include "models/llama3/llama3.h"

typedef struct llama3_block {
    ct_tensor *attention_norm, *wq, *wk, *wv, *wo, *ffn_norm, *gate, *up, *down;
} llama3_block;

/* TorchTitan cuts these at +-2, which is 100 std: the plain distribution */
#define NORMAL .init = CT_INIT_NORMAL, .std = 0.02
static const ct_param_spec LAYER[] = {
    {"model.layers.{}.input_layernorm.weight", "dim", .init = CT_INIT_ONES},
    {"model.layers.{}.self_attn.q_proj.weight", "(heads head_dim) dim", NORMAL},
    {"model.layers.{}.self_attn.k_proj.weight", "(kv_heads head_dim) dim", NORMAL},
    {"model.layers.{}.self_attn.v_proj.weight", "(kv_heads head_dim) dim", NORMAL},
    {"model.layers.{}.self_attn.o_proj.weight", "dim (heads head_dim)", .depth_scaled = true, NORMAL},
    {"model.layers.{}.post_attention_layernorm.weight", "dim", .init = CT_INIT_ONES},
    {"model.layers.{}.mlp.gate_proj.weight", "ffn dim", NORMAL},
    {"model.layers.{}.mlp.up_proj.weight", "ffn dim", .depth_scaled = true, NORMAL},
    {"model.layers.{}.mlp.down_proj.weight", "dim ffn", .depth_scaled = true, NORMAL},
};
_Static_assert(sizeof(llama3_block) == CT_COUNT(LAYER) * sizeof(ct_tensor *), "one pointer per layer parameter");
static const ct_param_spec EMBEDDING = {"model.embed_tokens.weight", "vocab dim", .init = CT_INIT_NORMAL, .std = 1};
static const ct_param_spec NORM = {"model.norm.weight", "dim", .init = CT_INIT_ONES};
static const ct_param_spec HEAD = {"lm_head.weight", "vocab dim", .init = CT_INIT_TRUNC_NORMAL, .cut = 3};

static ct_tensor *attention(const llama3_block *w, ct_tensor *x, const ct_block_context *c)
{
    ct_tensor *q = ct_rope_apply(ct__block_linear(x, &w->wq, c), &c->rope); /* [batch seq heads head_dim] */
    ct_tensor *k = ct_rope_apply(ct__block_linear(x, &w->wk, c), &c->rope); /* [batch seq kv_heads head_dim] */
    ct_tensor *v = ct__block_linear(x, &w->wv, c);
    ct_tensor *o = ct__block_attention(q, k, v, c);
    return ct__block_linear(o, &w->wo, c); /* contracts heads and head_dim */
}

static ct_tensor *block(ct_tensor *const *weights, ct_tensor *x, const ct_block_context *c)
{
    const llama3_block *w = (const llama3_block *)(const void *)weights;
    double eps = c->config->norm_eps;
    ct_tensor *h = ct_add(x, attention(w, ct_shard(ct_rms_norm(x, w->attention_norm, eps), "residual"), c));
    h = ct_checkpoint_name(ct_shard(h, "residual"), "attention_residual");
    ct_tensor *normed = ct_shard(ct_rms_norm(h, w->ffn_norm, eps), "residual");
    ct_tensor *ffn = ct__block_swiglu(normed, &w->gate, &w->up, &w->down, c);
    return ct_shard(ct_add(h, ffn), "residual");
}

const ct_model_family ct__llama3 = {
    .name = "llama3",
    .hf_model_type = "llama",
    .hf_architecture = "LlamaForCausalLM",
    .flavors = ct__llama3_flavors,
    .num_flavors = CT_LLAMA3_NUM_FLAVORS,
    .layer_params = LAYER,
    .num_layer_params = (int)CT_COUNT(LAYER),
    .embedding = &EMBEDDING,
    .norm = &NORM,
    .head = &HEAD,
    .block = block,
    .sharding = &ct__decoder_sharding,
};
