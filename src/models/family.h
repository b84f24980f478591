/* A model family: its flavors, its parameters and its block. Internal to models; each family's folder defines one. */
#ifndef CT_MODELS_FAMILY_H
#define CT_MODELS_FAMILY_H

#include "models/config.h"
#include "models/model.h"

/* What a block needs besides its weights and x. */
typedef struct ct_block_context {
    const ct_model_config *config;
    ct_dtype compute_dtype;
    ct_rope rope;
    ct_tensor *segments, *kv_segments;           /* s32 [batch seq], [batch kv_seq]; NULL: one document per row */
    ct_tensor *positions, *kv_positions;         /* the same, for attention; NULL: columns are in their order */
    ct_tensor *cache_start;                      /* s32: the column of the cache that x begins at; NULL: at its first */
    ct_tensor **cache_key, **cache_value;        /* this layer's, see ct_model_cache; NULL: there is no cache */
    const ct_model_lora *lora;                   /* NULL: there are no adapters; else */
    ct_tensor *const *weights, *const *adapters; /* this layer's, adapters as A, B of each target */
    double lora_scale;
} ct_block_context;

/* x times a weight of the layer in use, given as its place among the block's weights (&w->wq), contracting the axes
 * that they share; with what its adapter adds, if it has one. */
#define ct__block_linear(x, weight, context) ct__block_linear_at(CT_LOC, x, weight, context)
ct_tensor *ct__block_linear_at(const char *loc, ct_tensor *x, ct_tensor *const *weight,
                               const ct_block_context *context);

/* silu(x gate^T) * (x up^T), then down: gate and up [ffn dim], down [dim ffn], each as for _linear. Shazeer 2020. */
#define ct__block_swiglu(x, gate, up, down, context) ct__block_swiglu_at(CT_LOC, x, gate, up, down, context)
ct_tensor *ct__block_swiglu_at(const char *loc, ct_tensor *x, ct_tensor *const *gate, ct_tensor *const *up,
                               ct_tensor *const *down, const ct_block_context *context);

/* Causal attention of a block in this context. q [batch seq heads head_dim], k and v [batch seq kv_heads head_dim], all
 * rotated as the family wants it; with a cache the earlier keys and values are seen as well. */
ct_tensor *ct__block_attention(ct_tensor *q, ct_tensor *k, ct_tensor *v, const ct_block_context *context);

/* x [batch seq dim] -> [batch seq dim]. weights: the family's layer parameters in table order, of one layer. */
typedef ct_tensor *ct_block_fn(ct_tensor *const *weights, ct_tensor *x, const ct_block_context *context);

struct ct_model_family {
    const char *name;
    const char *hf_model_type;   /* model_type of config.json */
    const char *hf_architecture; /* architectures[0] */
    const ct_model_config *flavors;
    int num_flavors;
    const ct_param_spec *layer_params; /* names with "{}" for the layer's number */
    int num_layer_params;
    const ct_param_spec *embedding, *norm, *head; /* head is absent from a tied model */
    ct_block_fn *block;
    const ct_sharding_table *sharding;
};

extern const ct_model_family ct__llama3, ct__qwen3;

/* The next of the model's parameters, of one layer (-1: of none) or stacked; params has room for it. */
void ct__model_add_param(ct_model *model, const ct_param_spec *spec, int64_t layer, bool stacked);

/* The table of models made of attention and feed-forward blocks. */
extern const ct_sharding_table ct__decoder_sharding;

#endif
