/* Decoder-only language models as graphs of logical (whole-array) sizes.
 *
 *   tokens -> embedding -> block x num_layers -> norm -> hidden [batch seq dim] -> head -> logits [batch seq vocab]
 *
 * Layers are unrolled, each with parameters of its own, or scanned, with each layer parameter stacked along a leading
 * axis `layers`; the block function is the same. Parameter names and layout are Hugging Face's.
 */
#ifndef CT_MODELS_MODEL_H
#define CT_MODELS_MODEL_H

#include "graph/graph.h"
#include "graph/remat.h"
#include "models/config.h"
#include "spmd/parallel.h"

typedef enum ct_init_kind {
    CT_INIT_ONES,
    CT_INIT_ZEROS,
    CT_INIT_NORMAL,
    CT_INIT_TRUNC_NORMAL,
    CT_INIT_UNIFORM
} ct_init_kind;

/* One parameter of a family, as in its table. */
typedef struct ct_param_spec {
    const char *name; /* "model.layers.{}.self_attn.q_proj.weight" */
    const char *axes; /* "(heads head_dim) dim": parentheses are one dim in checkpoints */
    ct_init_kind init;
    double std;        /* 0: dim^-0.5 */
    double cut;        /* TRUNC_NORMAL: at this many std */
    bool depth_scaled; /* std / sqrt(2 (layer + 1)) */
    double bound;      /* UNIFORM: from -bound to it */
} ct_param_spec;

/* One parameter of a program: a spec, a layer of it, or all its layers stacked. */
typedef struct ct_model_param {
    const ct_param_spec *spec;
    const char *name; /* the checkpoint's; stacked ones have "*" for the layer's number */
    int64_t layer;    /* -1: not of a layer, or stacked */
    bool stacked;
    const char *axes; /* "layers=28 heads=16 head_dim=128 dim=1024" */
    int rank;
    ct_axis dims[CT_MAX_RANK]; /* the same; names are not a graph's */
    int64_t num_elements;
    int hf_rank; /* of one layer's tensor in a checkpoint */
    int64_t hf_sizes[CT_MAX_RANK];
} ct_model_param;

/* The adapters that a model was given (models/lora.h). */
typedef struct ct_model_lora {
    int64_t rank;
    double alpha;
    ct_dtype frozen_dtype;
    int num_targets;
    int *places; /* of a family's layer parameter among the targets; -1: it is none */
} ct_model_lora;

typedef struct ct_model {
    const ct_model_family *family;
    ct_model_config config;
    bool scan_layers;
    int num_params;
    ct_model_param *params; /* embedding, layer parameters (by layer, or stacked), norm, head; then adapters */
    ct_model_lora *lora;    /* NULL: there are no adapters */
    int num_frozen;         /* of the parameters the first that are not trained: 0, or all but the adapters */
    struct ct_arena *arena;
} ct_model;

/* config is checked. */
CT_MUST_USE ct_status *ct_model_new(const ct_model_family *family, const ct_model_config *config, bool scan_layers,
                                    ct_model **out_model);
void ct_model_free(ct_model *model);

/* A parameter's name in a checkpoint, for one layer of a stacked one (layer is ignored otherwise); in *buffer. */
const char *ct_model_hf_name(const ct_model_param *param, int64_t layer, char buffer[256]);
int64_t ct_model_param_layers(const ct_model *model,
                              const ct_model_param *param); /* tensors in a checkpoint: 1 or num_layers */

/* The box of one layer's tensor in a checkpoint that is the box [offsets, offsets + sizes) of the parameter without its
 * axis layers. A later axis of several in one dim of the checkpoint must be whole. */
void ct_model_hf_box(const ct_model_param *param, const int64_t *offsets, const int64_t *sizes,
                     int64_t out_offsets[CT_MAX_RANK], int64_t out_sizes[CT_MAX_RANK]);

int64_t ct_model_num_params(const ct_model_config *config, const ct_model_family *family); /* without adapters */
/* Elements of the parameters that are trained: those of the adapters where there are any, else all. */
int64_t ct_model_num_trained(const ct_model *model);
/* The dtype that a parameter is kept in where those that are trained are kept in `dtype`. */
ct_dtype ct_model_param_dtype(const ct_model *model, int param, ct_dtype dtype);
int64_t ct_model_num_embedding_params(const ct_model_config *config, const ct_model_family *family);

/* How the family lies on a mesh. */
const ct_sharding_table *ct_model_sharding(const ct_model *model);

/* Checks the configuration's sizes, and batch and seq_len of one pass, against the table on parallel's mesh. Errors:
 * those of ct_parallel_check. */
CT_MUST_USE ct_status *ct_model_check_parallel(const ct_model *model, const ct_parallel *parallel, int64_t batch,
                                               int64_t seq_len);

/* Declares the parameters as inputs of the graph, of dtype, or what it makes of it: out_params[num_params]. */
void ct_model_inputs(const ct_model *model, ct_graph *graph, ct_dtype dtype, ct_tensor **out_params);

/* The values that blocks name for activation checkpointing (ct_checkpoint_name). */
const char *const *ct_model_checkpoint_names(size_t *out_count);

/* Keys and values of earlier columns, so that new tokens are computed alone. Layers must be unrolled.
 *
 * A row's tokens stand in columns of the cache, and kv_positions say where each column is in its row; a position later
 * than any query's hides a column, so what is not written yet and what is padding needs no mask of its own. */
typedef struct ct_model_cache {
    ct_tensor *start;           /* s32 scalar: the column of the first of the new tokens. NULL: there are no columns but
                                   the new ones, and keys and values need not be given */
    ct_tensor *kv_positions;    /* s32 [batch kv_seq] */
    ct_tensor **keys, **values; /* [num_layers], each [batch kv_seq kv_heads head_dim] of the compute dtype; the forward
                                  pass puts those with the new columns in their place */
} ct_model_cache;

typedef struct ct_model_opts {
    ct_dtype compute_dtype;       /* of activations and of weights in use; 0: the parameters' */
    const ct_remat_policy *remat; /* per layer; NULL: none. Must live as long as the graph */
    const ct_model_cache *cache;  /* NULL: none */
} ct_model_opts;

/* tokens, positions s32 [batch seq]; segments s32 [batch seq] or NULL. Result: [batch seq dim] after the last norm. */
ct_tensor *ct_model_hidden(const ct_model *model, ct_tensor *const *params, ct_tensor *tokens, ct_tensor *positions,
                           ct_tensor *segments, const ct_model_opts *opts);
/* Which parameter the head's weight is: the embedding where they are tied. */
int ct_model_head_index(const ct_model *model);
/* The head's weight [vocab dim] in use, in the compute dtype: what ct_linear_cross_entropy takes with hidden. */
ct_tensor *ct_model_head(const ct_model *model, ct_tensor *const *params, const ct_model_opts *opts);
/* hidden -> [batch seq vocab], in the compute dtype. */
ct_tensor *ct_model_logits(const ct_model *model, ct_tensor *const *params, ct_tensor *hidden,
                           const ct_model_opts *opts);

#endif
