/* The oracle: Llama 3 and Qwen3 forward passes in plain C and f64, written from the papers, one loop per formula and
 * nothing shared with what is tested. Slow; for models of a few thousand parameters.
 */
#ifndef CT_TESTS_INTEGRATION_REFERENCE_H
#define CT_TESTS_INTEGRATION_REFERENCE_H

#include <stdbool.h>

#include "base/dtype.h"

typedef struct ct_test_config {
    bool is_qwen3; /* norms on queries and keys */
    int dim, num_layers, num_heads, num_kv_heads, head_dim, ffn_dim, vocab_size;
    bool tied;
    double norm_eps, theta;
    double factor, low_freq_factor, high_freq_factor, original_length; /* Llama 3.1's scaling; factor 0: none */
} ct_test_config;

typedef struct ct_test_weight {
    char name[80]; /* transformers' */
    int rank;
    int64_t sizes[2];
    int64_t count;
    double *values;
} ct_test_weight;

typedef struct ct_test_model {
    ct_test_config config;
    ct_test_weight *weights;
    int num_weights;
} ct_test_model;

/* Random weights, each a bf16 number, so that every file type holds them exactly. */
ct_test_model ct_test_model_new(const ct_test_config *config, uint32_t seed);
void ct_test_model_free(ct_test_model *model);

/* Writes FOLDER/config.json and the weights: one file, or with num_shards > 1 several and their index. is_old spells
 * the configuration as transformers 4 did. */
void ct_test_model_write(const ct_test_model *model, const char *folder, ct_dtype dtype, int num_shards, bool is_old);

/* Mean cross-entropy of labels [batch seq] that are not -100. out_logits [batch seq vocab] may be NULL. */
double ct_test_model_loss(const ct_test_model *model, const int32_t *tokens, const int32_t *labels, int batch, int seq,
                          double *out_logits);

/* A number in [-1, 1) that depends on seed and index alone. */
double ct_test_random(uint32_t seed, uint32_t index);

#endif
