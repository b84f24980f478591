/* Configurations from tables and from config.json. */
#include "models/config.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "formats/json.h"
#include "models/family.h"

static const ct_model_family *const FAMILIES[] = {&ct__llama3, &ct__qwen3};

const ct_model_family *const *ct_model_families(int *out_count)
{
    *out_count = (int)CT_COUNT(FAMILIES);
    return FAMILIES;
}

const char *ct_model_family_name(const ct_model_family *family)
{
    return family->name;
}

/* "a, b, c" of names, and the nearest to what was asked for */
static ct_status *unknown(const char *what, const char *found, const char *const *names, size_t num_names)
{
    ct_str list;
    ct_str_init(&list);
    for (size_t i = 0; i < num_names; i++) ct_str_printf(&list, "%s%s", i ? ", " : "", names[i]);
    const char *nearest = ct_nearest_name(found, names, num_names);
    ct_status *status = ct_error(CT_CODE_NOT_FOUND, "%s must be one of %s, found \"%s\"%s%s%s", what, list.data, found,
                                 nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
    ct_str_deinit(&list);
    return status;
}

ct_status *ct_model_config_find(const char *family, const char *flavor, const ct_model_family **out_family,
                                ct_model_config *out_config)
{
    *out_family = NULL;
    *out_config = (ct_model_config){0};
    const char *names[32];
    for (size_t i = 0; i < CT_COUNT(FAMILIES); i++) {
        names[i] = FAMILIES[i]->name;
        if (!strcmp(family, names[i])) *out_family = FAMILIES[i];
    }
    if (!*out_family) return unknown("model.name", family, names, CT_COUNT(FAMILIES));
    const ct_model_family *found = *out_family;
    for (int i = 0; i < found->num_flavors; i++) {
        names[i] = found->flavors[i].flavor;
        if (!strcmp(flavor, names[i])) {
            *out_config = found->flavors[i];
            return NULL;
        }
    }
    return ct_status_note(unknown("model.flavor", flavor, names, (size_t)found->num_flavors),
                          "or the path of a Hugging Face folder with a config.json");
}

ct_status *ct_model_config_check(const ct_model_config *config, const char *where)
{
    const struct {
        const char *name;
        int64_t value;
    } sizes[] = {
        {"hidden_size", config->dim},
        {"num_hidden_layers", config->num_layers},
        {"num_attention_heads", config->num_heads},
        {"num_key_value_heads", config->num_kv_heads},
        {"head_dim", config->head_dim},
        {"intermediate_size", config->ffn_dim},
        {"vocab_size", config->vocab_size},
        {"max_position_embeddings", config->max_seq_len},
    };
    for (size_t i = 0; i < CT_COUNT(sizes); i++)
        if (sizes[i].value < 1 || sizes[i].value > INT32_MAX)
            return ct_error(CT_CODE_INVALID_ARGUMENT, "%s: %s must be from 1 to %d, found %lld", where, sizes[i].name,
                            INT32_MAX, (long long)sizes[i].value);
    if (config->num_heads % config->num_kv_heads)
        return ct_error(CT_CODE_INVALID_ARGUMENT,
                        "%s: num_attention_heads = %lld must be a multiple of num_key_value_heads = %lld", where,
                        (long long)config->num_heads, (long long)config->num_kv_heads);
    if (config->head_dim % 2)
        return ct_error(CT_CODE_INVALID_ARGUMENT, "%s: head_dim = %lld must be even for rotary embeddings", where,
                        (long long)config->head_dim);
    if (!(config->norm_eps > 0 && config->norm_eps < 1))
        return ct_error(CT_CODE_INVALID_ARGUMENT, "%s: rms_norm_eps must be between 0 and 1, found %g", where,
                        config->norm_eps);
    if (!(config->rope.theta > 0))
        return ct_error(CT_CODE_INVALID_ARGUMENT, "%s: rope_theta must be positive, found %g", where,
                        config->rope.theta);
    return NULL;
}

/* transformers 5 keeps all of rope in rope_parameters; before, rope_theta stood alone and rope_scaling beside it. */
static ct_status *read_rope(ct_json_value root, const char *path, ct_rope_config *out_rope)
{
    *out_rope = (ct_rope_config){.theta = 10000};
    CT_TRY(ct_json_get_double(root, "rope_theta", &out_rope->theta));
    ct_json_value scaling = ct_json_get(root, "rope_parameters");
    if (ct_json_is_null(scaling)) scaling = ct_json_get(root, "rope_scaling");
    if (ct_json_is_null(scaling)) return NULL;
    CT_TRY(ct_json_as_object(scaling, &scaling));
    CT_TRY(ct_json_get_double(scaling, "rope_theta", &out_rope->theta));
    const char *type = "default";
    CT_TRY(ct_json_get_string(scaling, "type", &type)); /* the older spelling */
    CT_TRY(ct_json_get_string(scaling, "rope_type", &type));
    if (!strcmp(type, "default")) return NULL;
    if (strcmp(type, "llama3") != 0)
        return ct_error(CT_CODE_UNIMPLEMENTED, "%s: rope_type must be \"default\" or \"llama3\", found \"%s\"", path,
                        type);
    CT_TRY(ct_json_need_double(scaling, "factor", &out_rope->factor));
    CT_TRY(ct_json_need_double(scaling, "low_freq_factor", &out_rope->low_freq_factor));
    CT_TRY(ct_json_need_double(scaling, "high_freq_factor", &out_rope->high_freq_factor));
    CT_TRY(ct_json_need_double(scaling, "original_max_position_embeddings", &out_rope->original_max_position));
    if (!(out_rope->factor > 0) || !(out_rope->high_freq_factor > out_rope->low_freq_factor))
        return ct_error(CT_CODE_INVALID_ARGUMENT,
                        "%s: rope scaling needs factor > 0 and high_freq_factor > low_freq_factor, found %g, %g, %g",
                        path, out_rope->factor, out_rope->high_freq_factor, out_rope->low_freq_factor);
    return NULL;
}

/* Settings of config.json that the models here do not have must be off. */
static ct_status *refuse_unsupported(ct_json_value root, const char *path)
{
    static const char *const flags[] = {"attention_bias", "mlp_bias", "use_sliding_window"};
    for (size_t i = 0; i < CT_COUNT(flags); i++) {
        bool on = false;
        CT_TRY(ct_json_get_bool(root, flags[i], &on));
        if (on) return ct_error(CT_CODE_UNIMPLEMENTED, "%s: %s must be false, found true", path, flags[i]);
    }
    const char *activation = "silu";
    CT_TRY(ct_json_get_string(root, "hidden_act", &activation));
    if (strcmp(activation, "silu") != 0)
        return ct_error(CT_CODE_UNIMPLEMENTED, "%s: hidden_act must be \"silu\", found \"%s\"", path, activation);
    return NULL;
}

static ct_status *read_config(ct_json_value root, const char *path, const ct_model_family **out_family,
                              ct_model_config *config)
{
    const char *type, *types[CT_COUNT(FAMILIES)];
    CT_TRY(ct_json_need_string(root, "model_type", &type));
    for (size_t i = 0; i < CT_COUNT(FAMILIES); i++) {
        types[i] = FAMILIES[i]->hf_model_type;
        if (!strcmp(type, types[i])) *out_family = FAMILIES[i];
    }
    if (!*out_family) return ct_status_note(unknown("model_type", type, types, CT_COUNT(types)), "in %s", path);
    CT_TRY(refuse_unsupported(root, path));
    CT_TRY(ct_json_need_int(root, "hidden_size", &config->dim));
    CT_TRY(ct_json_need_int(root, "num_hidden_layers", &config->num_layers));
    CT_TRY(ct_json_need_int(root, "num_attention_heads", &config->num_heads));
    config->num_kv_heads = config->num_heads;
    CT_TRY(ct_json_get_int(root, "num_key_value_heads", &config->num_kv_heads));
    config->head_dim = config->num_heads > 0 ? config->dim / config->num_heads : 0;
    CT_TRY(ct_json_get_int(root, "head_dim", &config->head_dim));
    CT_TRY(ct_json_need_int(root, "intermediate_size", &config->ffn_dim));
    CT_TRY(ct_json_need_int(root, "vocab_size", &config->vocab_size));
    config->max_seq_len = 2048;
    CT_TRY(ct_json_get_int(root, "max_position_embeddings", &config->max_seq_len));
    config->norm_eps = 1e-6;
    CT_TRY(ct_json_get_double(root, "rms_norm_eps", &config->norm_eps));
    CT_TRY(ct_json_get_bool(root, "tie_word_embeddings", &config->tied));
    CT_TRY(read_rope(root, path, &config->rope));
    return ct_model_config_check(config, path);
}

ct_status *ct_model_config_parse(const char *text, size_t length, const char *path, const ct_model_family **out_family,
                                 ct_model_config *out_config)
{
    *out_family = NULL;
    *out_config = (ct_model_config){.flavor = ""};
    ct_json *json;
    CT_TRY(ct_json_parse(text, length, path, &json));
    ct_status *status = read_config(ct_json_root(json), path, out_family, out_config);
    ct_json_free(json);
    return status;
}

ct_status *ct_model_config_read(const char *folder, const ct_model_family **out_family, ct_model_config *out_config)
{
    *out_family = NULL;
    *out_config = (ct_model_config){.flavor = ""};
    char *path = ct_path_join(folder, "config.json");
    ct_json *json = NULL;
    ct_status *status = ct_json_read(path, &json);
    if (status && ct_status_code(status) == CT_CODE_NOT_FOUND)
        status =
            ct_status_note(status, "a Hugging Face folder is wanted; of a run's checkpoint ctitan convert makes one");
    if (!status) status = read_config(ct_json_root(json), path, out_family, out_config);
    ct_json_free(json);
    free(path);
    return status;
}
