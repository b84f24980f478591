/* What distinguishes one decoder-only language model from another: family, sizes, rope, weight tying.
 *
 * A configuration comes from a family's table of flavors ("llama3" "8B") or from a Hugging Face folder's config.json.
 */
#ifndef CT_MODELS_CONFIG_H
#define CT_MODELS_CONFIG_H

#include <stdbool.h>

#include "base/dtype.h"
#include "base/status.h"
#include "nn/layers.h"

typedef struct ct_model_family ct_model_family;

typedef struct ct_model_config {
    const char *flavor; /* a row's name, or "" when read from a config.json */
    int64_t dim, num_layers, num_heads, num_kv_heads, head_dim, ffn_dim, vocab_size;
    int64_t max_seq_len;
    bool tied; /* the output head is the embedding */
    double norm_eps;
    ct_rope_config rope;
} ct_model_config;

/* A row of the family's table. Errors: NOT_FOUND naming the families or flavors that exist and the nearest. */
CT_MUST_USE ct_status *ct_model_config_find(const char *family, const char *flavor, const ct_model_family **out_family,
                                            ct_model_config *out_config);

/* FOLDER/config.json of transformers' LlamaForCausalLM or Qwen3ForCausalLM.
 * Errors: NOT_FOUND without the file; INVALID_ARGUMENT for a missing or impossible value; UNIMPLEMENTED naming what is
 * not supported (another model_type, rope type, activation, biases, sliding windows). */
CT_MUST_USE ct_status *ct_model_config_read(const char *folder, const ct_model_family **out_family,
                                            ct_model_config *out_config);

/* The same from memory; path is for messages. */
CT_MUST_USE ct_status *ct_model_config_parse(const char *text, size_t length, const char *path,
                                             const ct_model_family **out_family, ct_model_config *out_config);

/* The text of a config.json that transformers and _read take for the model; heap. dtype: of the weights beside it. */
char *ct_model_config_text(const ct_model_family *family, const ct_model_config *config, ct_dtype dtype);

/* Sizes that fit together: positive, heads a multiple of kv heads, even head_dim. where is for the message. */
CT_MUST_USE ct_status *ct_model_config_check(const ct_model_config *config, const char *where);

const ct_model_family *const *ct_model_families(int *out_count);
const char *ct_model_family_name(const ct_model_family *family); /* "llama3" */

#endif
