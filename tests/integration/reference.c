/* Forward passes in f64. */
#include "reference.h"

#include <math.h>

#include "base/half.h"
#include "base/rng.h"
#include "base/str.h"
#include "support.h"

double ct_test_random(uint32_t seed, uint32_t index)
{
    uint32_t bits[2];
    ct_threefry((uint32_t[]){seed, 0x7e57}, (uint32_t[]){index, 0}, bits);
    return (double)bits[0] / 2147483648.0 - 1;
}

/* ---- weights ---- */

static void add_weight(ct_test_model *model, uint32_t seed, int64_t rows, int64_t columns, const char *name, int layer)
{
    ct_test_weight *weight = &model->weights[model->num_weights++];
    *weight = (ct_test_weight){.rank = columns ? 2 : 1, .sizes = {rows, columns}, .count = rows * CT_MAX(columns, 1)};
    if (layer < 0)
        snprintf(weight->name, sizeof(weight->name), "%s", name);
    else
        snprintf(weight->name, sizeof(weight->name), "model.layers.%d.%s", layer, name);
    weight->values = ct_alloc((size_t)weight->count * sizeof(double));
    ct_array rounded = ct_array_new(CT_DTYPE_BF16, (int64_t[]){1}, 1);
    for (int64_t i = 0; i < weight->count; i++) {
        double value = ct_test_random(seed + (uint32_t)model->num_weights, (uint32_t)i);
        ct_array_set(&rounded, 0, columns ? 0.4 * value : 1 + 0.5 * value);
        weight->values[i] = ct_array_get(&rounded, 0);
    }
    ct_array_free(&rounded);
}

ct_test_model ct_test_model_new(const ct_test_config *config, uint32_t seed)
{
    ct_test_model model = {.config = *config};
    model.weights = ct_alloc_zeroed((size_t)config->num_layers * 11 + 3, sizeof(*model.weights));
    int dim = config->dim, q = config->num_heads * config->head_dim, kv = config->num_kv_heads * config->head_dim;
    add_weight(&model, seed, config->vocab_size, dim, "model.embed_tokens.weight", -1);
    for (int layer = 0; layer < config->num_layers; layer++) {
        add_weight(&model, seed, dim, 0, "input_layernorm.weight", layer);
        add_weight(&model, seed, q, dim, "self_attn.q_proj.weight", layer);
        add_weight(&model, seed, kv, dim, "self_attn.k_proj.weight", layer);
        add_weight(&model, seed, kv, dim, "self_attn.v_proj.weight", layer);
        add_weight(&model, seed, dim, q, "self_attn.o_proj.weight", layer);
        if (config->is_qwen3) {
            add_weight(&model, seed, config->head_dim, 0, "self_attn.q_norm.weight", layer);
            add_weight(&model, seed, config->head_dim, 0, "self_attn.k_norm.weight", layer);
        }
        add_weight(&model, seed, dim, 0, "post_attention_layernorm.weight", layer);
        add_weight(&model, seed, config->ffn_dim, dim, "mlp.gate_proj.weight", layer);
        add_weight(&model, seed, config->ffn_dim, dim, "mlp.up_proj.weight", layer);
        add_weight(&model, seed, dim, config->ffn_dim, "mlp.down_proj.weight", layer);
    }
    add_weight(&model, seed, dim, 0, "model.norm.weight", -1);
    if (!config->tied) add_weight(&model, seed, config->vocab_size, dim, "lm_head.weight", -1);
    return model;
}

void ct_test_model_free(ct_test_model *model)
{
    for (int i = 0; i < model->num_weights; i++) free(model->weights[i].values);
    free(model->weights);
    *model = (ct_test_model){0};
}

static const double *weight_of(const ct_test_model *model, const char *name, int layer)
{
    char full[80];
    if (layer < 0)
        snprintf(full, sizeof(full), "%s", name);
    else
        snprintf(full, sizeof(full), "model.layers.%d.%s", layer, name);
    for (int i = 0; i < model->num_weights; i++)
        if (!strcmp(model->weights[i].name, full)) return model->weights[i].values;
    fail_msg("the reference has no weight %s", full);
    return NULL;
}

/* ---- the folder ---- */

static void write_config(const ct_test_model *model, const char *folder, bool is_old)
{
    const ct_test_config *c = &model->config;
    char rope[400], scaling[300] = "\"rope_type\": \"default\"";
    if (c->factor > 0)
        snprintf(scaling, sizeof(scaling),
                 "\"rope_type\": \"llama3\", \"factor\": %g, \"low_freq_factor\": %g, \"high_freq_factor\": %g, "
                 "\"original_max_position_embeddings\": %g",
                 c->factor, c->low_freq_factor, c->high_freq_factor, c->original_length);
    if (is_old && c->factor > 0)
        snprintf(rope, sizeof(rope), "\"rope_theta\": %.1f, \"rope_scaling\": {%s}", c->theta, scaling);
    else if (is_old)
        snprintf(rope, sizeof(rope), "\"rope_theta\": %.1f, \"rope_scaling\": null", c->theta);
    else
        snprintf(rope, sizeof(rope), "\"rope_parameters\": {\"rope_theta\": %.1f, %s}", c->theta, scaling);
    char head_dim[40] = ""; /* left out where it is what follows from the rest, as older files do */
    if (!is_old || c->head_dim * c->num_heads != c->dim)
        snprintf(head_dim, sizeof(head_dim), "\"head_dim\": %d, ", c->head_dim);
    char *path = ct_path_join(folder, "config.json");
    ct_test_write(path,
                  "{\"architectures\": [\"%s\"], \"model_type\": \"%s\", \"hidden_act\": \"silu\", "
                  "\"hidden_size\": %d, \"num_hidden_layers\": %d, \"num_attention_heads\": %d, "
                  "\"num_key_value_heads\": %d, %s\"intermediate_size\": %d, \"vocab_size\": %d, "
                  "\"max_position_embeddings\": 64, \"rms_norm_eps\": %g, \"tie_word_embeddings\": %s, "
                  "\"attention_bias\": false, %s}\n",
                  c->is_qwen3 ? "Qwen3ForCausalLM" : "LlamaForCausalLM", c->is_qwen3 ? "qwen3" : "llama", c->dim,
                  c->num_layers, c->num_heads, c->num_kv_heads, head_dim, c->ffn_dim, c->vocab_size, c->norm_eps,
                  c->tied ? "true" : "false", rope);
    free(path);
}

static ct_array array_of(const ct_test_weight *weight, ct_dtype dtype)
{
    ct_array array = ct_array_new(dtype, weight->sizes, weight->rank);
    for (int64_t i = 0; i < weight->count; i++) ct_array_set(&array, i, weight->values[i]);
    return array;
}

void ct_test_model_write(const ct_test_model *model, const char *folder, ct_dtype dtype, int num_shards, bool is_old)
{
    write_config(model, folder, is_old);
    ct_safetensors_entry *entries = ct_alloc((size_t)model->num_weights * sizeof(*entries));
    ct_str index;
    ct_str_init(&index);
    for (int shard = 0; shard < num_shards; shard++) {
        char file[64] = "model.safetensors";
        if (num_shards > 1) snprintf(file, sizeof(file), "model-%05d-of-%05d.safetensors", shard + 1, num_shards);
        size_t count = 0;
        for (int i = shard; i < model->num_weights; i += num_shards) {
            const ct_test_weight *weight = &model->weights[i];
            entries[count++] = (ct_safetensors_entry){weight->name, array_of(weight, dtype)};
            ct_str_printf(&index, "%s\"%s\": \"%s\"", index.length ? ", " : "", weight->name, file);
        }
        char *path = ct_path_join(folder, file);
        expect_ok(ct_safetensors_save(path, entries, count));
        for (size_t i = 0; i < count; i++) ct_array_free(&entries[i].array);
        free(path);
    }
    if (num_shards > 1) {
        char *path = ct_path_join(folder, "model.safetensors.index.json");
        ct_test_write(path, "{\"metadata\": {}, \"weight_map\": {%s}}\n", index.data);
        free(path);
    }
    ct_str_deinit(&index);
    free(entries);
}

/* ---- the forward pass ---- */

/* out[rows] = weight[rows columns] x[columns] */
static void multiply(const double *weight, const double *x, int rows, int columns, double *out)
{
    for (int r = 0; r < rows; r++) {
        double sum = 0;
        for (int c = 0; c < columns; c++) sum += weight[r * columns + c] * x[c];
        out[r] = sum;
    }
}

/* x / sqrt(mean(x^2) + eps) * weight */
static void normalize(const double *weight, const double *x, int size, double eps, double *out)
{
    double sum = 0;
    for (int i = 0; i < size; i++) sum += x[i] * x[i];
    double scale = 1 / sqrt(sum / size + eps);
    for (int i = 0; i < size; i++) out[i] = x[i] * scale * weight[i];
}

/* Radians per position of pair i: theta^(-2i/head_dim), and below a wavelength-dependent divisor for long contexts. */
static double frequency(const ct_test_config *c, int i)
{
    double f = pow(c->theta, -2.0 * i / c->head_dim);
    if (c->factor <= 0) return f;
    double turns = c->original_length * f / (2 * acos(-1)); /* within the original context */
    if (turns < c->low_freq_factor) return f / c->factor;
    if (turns > c->high_freq_factor) return f;
    double keep = (turns - c->low_freq_factor) / (c->high_freq_factor - c->low_freq_factor);
    return keep * f + (1 - keep) * f / c->factor;
}

/* Pair (i, i + head_dim / 2) of a head turned by position times its frequency. */
static void turn(const ct_test_config *c, double *head, int position)
{
    int half = c->head_dim / 2;
    for (int i = 0; i < half; i++) {
        double angle = position * frequency(c, i), a = head[i], b = head[i + half];
        head[i] = a * cos(angle) - b * sin(angle);
        head[i + half] = b * cos(angle) + a * sin(angle);
    }
}

/* Heads of one position: projected, normed for Qwen3, turned. */
static void make_heads(const ct_test_model *model, const double *weight, const double *norm, const double *x, int count,
                       int position, double *out)
{
    const ct_test_config *c = &model->config;
    multiply(weight, x, count * c->head_dim, c->dim, out);
    for (int h = 0; h < count; h++) {
        double *head = out + h * c->head_dim;
        if (norm) normalize(norm, head, c->head_dim, c->norm_eps, head);
        turn(c, head, position);
    }
}

/* Query at `position` over the keys up to it; out [heads head_dim]. */
static void attend(const ct_test_config *c, const double *q, const double *k, const double *v, int position,
                   double *out)
{
    int group = c->num_heads / c->num_kv_heads, d = c->head_dim, row = c->num_kv_heads * d;
    double *weights = ct_alloc((size_t)(position + 1) * sizeof(double));
    for (int h = 0; h < c->num_heads; h++) {
        int kv = h / group * d;
        double sum = 0;
        for (int p = 0; p <= position; p++) {
            double score = 0;
            for (int i = 0; i < d; i++) score += q[h * d + i] * k[p * row + kv + i];
            sum += weights[p] = exp(score / sqrt(d));
        }
        for (int i = 0; i < d; i++) {
            double mixed = 0;
            for (int p = 0; p <= position; p++) mixed += weights[p] / sum * v[p * row + kv + i];
            out[h * d + i] = mixed;
        }
    }
    free(weights);
}

static double *zeros(int count)
{
    return ct_alloc_zeroed((size_t)count, sizeof(double));
}

/* x [seq dim] += attention(norm(x)) */
static void attention_layer(const ct_test_model *model, int layer, double *x, int seq)
{
    const ct_test_config *c = &model->config;
    int q_size = c->num_heads * c->head_dim, kv_size = c->num_kv_heads * c->head_dim;
    double *normed = zeros(c->dim), *q = zeros(q_size * seq), *k = zeros(kv_size * seq), *v = zeros(kv_size * seq);
    double *mixed = zeros(q_size), *out = zeros(c->dim);
    const double *q_norm = c->is_qwen3 ? weight_of(model, "self_attn.q_norm.weight", layer) : NULL;
    const double *k_norm = c->is_qwen3 ? weight_of(model, "self_attn.k_norm.weight", layer) : NULL;
    for (int p = 0; p < seq; p++) {
        normalize(weight_of(model, "input_layernorm.weight", layer), x + p * c->dim, c->dim, c->norm_eps, normed);
        make_heads(model, weight_of(model, "self_attn.q_proj.weight", layer), q_norm, normed, c->num_heads, p,
                   q + p * q_size);
        make_heads(model, weight_of(model, "self_attn.k_proj.weight", layer), k_norm, normed, c->num_kv_heads, p,
                   k + p * kv_size);
        multiply(weight_of(model, "self_attn.v_proj.weight", layer), normed, kv_size, c->dim, v + p * kv_size);
    }
    for (int p = 0; p < seq; p++) {
        attend(c, q + p * q_size, k, v, p, mixed);
        multiply(weight_of(model, "self_attn.o_proj.weight", layer), mixed, c->dim, q_size, out);
        for (int i = 0; i < c->dim; i++) x[p * c->dim + i] += out[i];
    }
    free(normed);
    free(q);
    free(k);
    free(v);
    free(mixed);
    free(out);
}

/* x [seq dim] += down(silu(gate(norm(x))) * up(norm(x))) */
static void feed_forward_layer(const ct_test_model *model, int layer, double *x, int seq)
{
    const ct_test_config *c = &model->config;
    double *normed = zeros(c->dim), *gate = zeros(c->ffn_dim), *up = zeros(c->ffn_dim), *out = zeros(c->dim);
    for (int p = 0; p < seq; p++) {
        double *row = x + p * c->dim;
        normalize(weight_of(model, "post_attention_layernorm.weight", layer), row, c->dim, c->norm_eps, normed);
        multiply(weight_of(model, "mlp.gate_proj.weight", layer), normed, c->ffn_dim, c->dim, gate);
        multiply(weight_of(model, "mlp.up_proj.weight", layer), normed, c->ffn_dim, c->dim, up);
        for (int i = 0; i < c->ffn_dim; i++) gate[i] = gate[i] / (1 + exp(-gate[i])) * up[i];
        multiply(weight_of(model, "mlp.down_proj.weight", layer), gate, c->dim, c->ffn_dim, out);
        for (int i = 0; i < c->dim; i++) row[i] += out[i];
    }
    free(normed);
    free(gate);
    free(up);
    free(out);
}

/* logits [seq vocab] of one row of tokens */
static void forward(const ct_test_model *model, const int32_t *tokens, int seq, double *logits)
{
    const ct_test_config *c = &model->config;
    const double *embedding = weight_of(model, "model.embed_tokens.weight", -1);
    const double *head = c->tied ? embedding : weight_of(model, "lm_head.weight", -1);
    double *x = zeros(seq * c->dim), *normed = zeros(c->dim);
    for (int p = 0; p < seq; p++)
        memcpy(x + p * c->dim, embedding + tokens[p] * c->dim, (size_t)c->dim * sizeof(double));
    for (int layer = 0; layer < c->num_layers; layer++) {
        attention_layer(model, layer, x, seq);
        feed_forward_layer(model, layer, x, seq);
    }
    for (int p = 0; p < seq; p++) {
        normalize(weight_of(model, "model.norm.weight", -1), x + p * c->dim, c->dim, c->norm_eps, normed);
        multiply(head, normed, c->vocab_size, c->dim, logits + p * c->vocab_size);
    }
    free(x);
    free(normed);
}

double ct_test_model_loss(const ct_test_model *model, const int32_t *tokens, const int32_t *labels, int batch, int seq,
                          double *out_logits)
{
    int vocab = model->config.vocab_size, counted = 0;
    double *logits = zeros(seq * vocab), sum = 0;
    for (int b = 0; b < batch; b++) {
        forward(model, tokens + b * seq, seq, logits);
        for (int p = 0; p < seq; p++) {
            int32_t label = labels[b * seq + p];
            if (label == -100) continue;
            double total = 0;
            for (int i = 0; i < vocab; i++) total += exp(logits[p * vocab + i]);
            sum += log(total) - logits[p * vocab + label];
            counted++;
        }
        if (out_logits) memcpy(out_logits + b * seq * vocab, logits, (size_t)seq * (size_t)vocab * sizeof(double));
    }
    free(logits);
    return sum / counted;
}
