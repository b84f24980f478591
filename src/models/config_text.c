/* config.json from a configuration. */
#include "formats/json.h"
#include "models/config.h"
#include "models/family.h"

char *ct_model_config_text(const ct_model_family *family, const ct_model_config *config, ct_dtype dtype)
{
    ct_json_writer *writer = ct_json_writer_new();
    ct_json_begin_object(writer, NULL);
    ct_json_begin_array(writer, "architectures");
    ct_json_put_string(writer, NULL, family->hf_architecture);
    ct_json_end(writer);
    ct_json_put_string(writer, "model_type", family->hf_model_type);
    ct_json_put_int(writer, "hidden_size", config->dim);
    ct_json_put_int(writer, "num_hidden_layers", config->num_layers);
    ct_json_put_int(writer, "num_attention_heads", config->num_heads);
    ct_json_put_int(writer, "num_key_value_heads", config->num_kv_heads);
    ct_json_put_int(writer, "head_dim", config->head_dim);
    ct_json_put_int(writer, "intermediate_size", config->ffn_dim);
    ct_json_put_int(writer, "vocab_size", config->vocab_size);
    ct_json_put_int(writer, "max_position_embeddings", config->max_seq_len);
    ct_json_put_string(writer, "hidden_act", "silu");
    ct_json_put_double(writer, "rms_norm_eps", config->norm_eps);
    ct_json_put_bool(writer, "tie_word_embeddings", config->tied);
    ct_json_put_bool(writer, "attention_bias", false);
    ct_json_put_double(writer, "rope_theta", config->rope.theta);
    if (config->rope.factor > 0) {
        ct_json_begin_object(writer, "rope_scaling");
        ct_json_put_string(writer, "rope_type", "llama3");
        ct_json_put_double(writer, "factor", config->rope.factor);
        ct_json_put_double(writer, "low_freq_factor", config->rope.low_freq_factor);
        ct_json_put_double(writer, "high_freq_factor", config->rope.high_freq_factor);
        ct_json_put_int(writer, "original_max_position_embeddings", (int64_t)config->rope.original_max_position);
        ct_json_end(writer);
    }
    ct_json_put_string(writer, "torch_dtype", ct_dtype_torch(dtype));
    ct_json_put_bool(writer, "use_cache", true);
    ct_json_end(writer);
    char *text = ct_json_writer_text(writer, true);
    ct_json_writer_free(writer);
    return text;
}
