/* Flavors and their parameter counts, configurations of folders, the parameter table. */
#include "models/lora.h"
#include "models/model.h"

#include "base/testing.h"

static void test_parameter_counts(void **state)
{
    (void)state;
    static const struct {
        const char *family, *flavor;
        int64_t count;
    } wanted[] = {
        {"llama3", "debugmodel", 6163712}, {"llama3", "1B", 1235814400},   {"llama3", "3B", 3212749824},
        {"llama3", "8B", 8030261248},      {"llama3", "70B", 70553706496}, {"llama3", "405B", 405853388800},
        {"qwen3", "debugmodel", 31987968}, {"qwen3", "0.6B", 596049920},   {"qwen3", "1.7B", 1720574976},
        {"qwen3", "4B", 4022468096},       {"qwen3", "8B", 8190735360},    {"qwen3", "14B", 14768307200},
        {"qwen3", "32B", 32762123264},
    };
    for (size_t i = 0; i < CT_COUNT(wanted); i++) {
        const ct_model_family *family;
        ct_model_config config;
        expect_ok(ct_model_config_find(wanted[i].family, wanted[i].flavor, &family, &config));
        expect_ok(ct_model_config_check(&config, wanted[i].flavor));
        if (ct_model_num_params(&config, family) != wanted[i].count)
            fail_msg("%s %s has %lld parameters, wanted %lld", wanted[i].family, wanted[i].flavor,
                     (long long)ct_model_num_params(&config, family), (long long)wanted[i].count);
        for (int scan = 0; scan < 2; scan++) { /* the table of parameters adds up to the same, either way */
            ct_model *model;
            expect_ok(ct_model_new(family, &config, scan, &model));
            int64_t total = 0, tensors = 0;
            for (int p = 0; p < model->num_params; p++) {
                total += model->params[p].num_elements;
                tensors += ct_model_param_layers(model, &model->params[p]);
            }
            assert_int_equal(total, wanted[i].count);
            int64_t per_layer = strcmp(wanted[i].family, "qwen3") ? 9 : 11;
            assert_int_equal(tensors, per_layer * config.num_layers + (config.tied ? 2 : 3));
            ct_model_free(model);
        }
    }
}

static void test_find(void **state)
{
    (void)state;
    const ct_model_family *family;
    ct_model_config config;
    expect_error(ct_model_config_find("lama3", "8B", &family, &config), CT_CODE_NOT_FOUND,
                 "model.name must be one of llama3, qwen3, found \"lama3\"; did you mean llama3?");
    expect_error(ct_model_config_find("qwen3", "1.7", &family, &config), CT_CODE_NOT_FOUND, "did you mean 1.7B?");
    expect_error(ct_model_config_find("llama3", "colossal", &family, &config), CT_CODE_NOT_FOUND,
                 "debugmodel, 1B, 3B, 8B, 70B, 405B");
}

#define COMMON "\"num_hidden_layers\": 2, \"num_attention_heads\": 6, \"intermediate_size\": 10, \"vocab_size\": 20"

static void read_folder(const char *json, ct_code code, const char *text, ct_model_config *config)
{
    char *folder = ct_test_folder_new(), *path = ct_path_join(folder, "config.json");
    expect_ok(ct_file_write(path, json, strlen(json)));
    const ct_model_family *family;
    ct_status *status = ct_model_config_read(folder, &family, config);
    if (code)
        expect_error(status, code, text);
    else
        expect_ok(status);
    free(path);
    ct_test_folder_free(folder);
}

static void test_config_defaults(void **state)
{
    (void)state;
    ct_model_config c;
    read_folder("{\"model_type\": \"llama\", \"hidden_size\": 48, " COMMON "}", 0, "", &c);
    assert_true(c.dim == 48 && c.num_layers == 2 && c.num_heads == 6 && c.ffn_dim == 10 && c.vocab_size == 20);
    assert_true(c.num_kv_heads == 6 && c.head_dim == 8 && c.max_seq_len == 2048 && !c.tied);
    assert_true(c.norm_eps == 1e-6 && c.rope.theta == 10000 && c.rope.factor == 0);
    /* transformers 4 and 5 spell rope differently */
    read_folder("{\"model_type\": \"llama\", \"hidden_size\": 48, " COMMON ", \"rope_theta\": 5e5, \"rope_scaling\": "
                "{\"type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 1, \"high_freq_factor\": 4, "
                "\"original_max_position_embeddings\": 8192}}",
                0, "", &c);
    assert_true(c.rope.theta == 5e5 && c.rope.factor == 8 && c.rope.original_max_position == 8192);
    read_folder("{\"model_type\": \"qwen3\", \"hidden_size\": 48, \"head_dim\": 128, \"num_key_value_heads\": 3, "
                "\"tie_word_embeddings\": true, " COMMON ", \"rope_parameters\": {\"rope_theta\": 1000000, "
                "\"rope_type\": \"default\"}}",
                0, "", &c);
    assert_true(c.rope.theta == 1e6 && c.head_dim == 128 && c.num_kv_heads == 3 && c.tied);
}

static void test_config_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *json, *text;
        ct_code code;
    } cases[] = {
        {"{\"hidden_size\": 48, " COMMON "}", "model_type is required", CT_CODE_NOT_FOUND},
        {"{\"model_type\": \"mamba\"}", "model_type must be one of llama, qwen3, found \"mamba\"", CT_CODE_NOT_FOUND},
        {"{\"model_type\": \"llama\", " COMMON "}", "hidden_size is required", CT_CODE_NOT_FOUND},
        {"{\"model_type\": \"llama\", \"hidden_size\": -48, " COMMON "}", "hidden_size must be from 1",
         CT_CODE_INVALID_ARGUMENT},
        {"{\"model_type\": \"llama\", \"hidden_size\": \"48\", " COMMON "}", "hidden_size must be an integer",
         CT_CODE_INVALID_ARGUMENT},
        {"{\"model_type\": \"llama\", \"hidden_size\": 48, \"num_key_value_heads\": 4, " COMMON "}",
         "must be a multiple of num_key_value_heads = 4", CT_CODE_INVALID_ARGUMENT},
        {"{\"model_type\": \"llama\", \"hidden_size\": 48, \"head_dim\": 7, " COMMON "}", "head_dim = 7 must be even",
         CT_CODE_INVALID_ARGUMENT},
        {"{\"model_type\": \"llama\", \"hidden_size\": 48, \"attention_bias\": true, " COMMON "}",
         "attention_bias must be false", CT_CODE_UNIMPLEMENTED},
        {"{\"model_type\": \"qwen3\", \"hidden_size\": 48, \"use_sliding_window\": true, " COMMON "}",
         "use_sliding_window must be false", CT_CODE_UNIMPLEMENTED},
        {"{\"model_type\": \"llama\", \"hidden_size\": 48, \"hidden_act\": \"gelu\", " COMMON "}",
         "hidden_act must be \"silu\"", CT_CODE_UNIMPLEMENTED},
        {"{\"model_type\": \"llama\", \"hidden_size\": 48, \"rope_scaling\": {\"rope_type\": \"yarn\"}, " COMMON "}",
         "found \"yarn\"", CT_CODE_UNIMPLEMENTED},
        {"{\"model_type\": \"llama\", \"hidden_size\": 48, \"rope_scaling\": {\"rope_type\": \"llama3\"}, " COMMON "}",
         "factor is required", CT_CODE_NOT_FOUND},
    };
    for (size_t i = 0; i < CT_COUNT(cases); i++) {
        ct_model_config config;
        read_folder(cases[i].json, cases[i].code, cases[i].text, &config);
    }
    const ct_model_family *family;
    ct_model_config config;
    expect_error(ct_model_config_read("/nowhere", &family, &config), CT_CODE_NOT_FOUND, "/nowhere/config.json");
}

static void test_names(void **state)
{
    (void)state;
    const ct_model_family *family;
    ct_model_config config;
    expect_ok(ct_model_config_find("qwen3", "0.6B", &family, &config));
    ct_model *stacked, *separate;
    expect_ok(ct_model_new(family, &config, true, &stacked));
    expect_ok(ct_model_new(family, &config, false, &separate));
    char buffer[256];
    const ct_model_param *q = &stacked->params[2];
    assert_string_equal(q->name, "model.layers.*.self_attn.q_proj.weight");
    assert_string_equal(q->axes, "layers=28 heads=16 head_dim=128 dim=1024");
    assert_string_equal(ct_model_hf_name(q, 27, buffer), "model.layers.27.self_attn.q_proj.weight");
    assert_true(q->hf_rank == 2 && q->hf_sizes[0] == 2048 && q->hf_sizes[1] == 1024);
    q = &separate->params[1 + 11 * 5 + 1];
    assert_string_equal(q->name, "model.layers.5.self_attn.q_proj.weight");
    assert_string_equal(q->axes, "heads=16 head_dim=128 dim=1024");
    assert_string_equal(separate->params[separate->num_params - 1].name, "model.norm.weight"); /* tied: no head */
    ct_model_free(stacked);
    ct_model_free(separate);
}

/* Adapters stand behind all else, in the order of the table, under PEFT's names. */
static void test_adapters(void **state)
{
    (void)state;
    const ct_model_family *family;
    ct_model_config config;
    expect_ok(ct_model_config_find("llama3", "debugmodel", &family, &config));
    for (int scan = 0; scan < 2; scan++) {
        ct_model *model;
        expect_ok(ct_model_new(family, &config, scan, &model));
        int num_base = model->num_params, a, b;
        assert_int_equal(model->num_frozen, 0);
        assert_false(ct_model_adapters_of(model, 2, &a, &b));
        ct_lora lora = {.rank = 4,
                        .alpha = 10,
                        .targets = (const char *const[]){"o_proj", "q_proj"},
                        .num_targets = 2,
                        .frozen_dtype = CT_DTYPE_BF16};
        expect_ok(ct_model_adapt(model, &lora));
        assert_int_equal(model->num_frozen, num_base);
        assert_int_equal(model->num_params, num_base + (scan ? 4 : 4 * 6));
        assert_int_equal(ct_model_num_trained(model), 6 * 4 * (256 + 256) * 2);
        assert_true(ct_model_lora_scale(model) == 2.5);
        assert_int_equal(ct_model_param_dtype(model, 0, CT_DTYPE_F32), CT_DTYPE_BF16);
        assert_int_equal(ct_model_param_dtype(model, num_base, CT_DTYPE_F32), CT_DTYPE_F32);
        char buffer[256];
        int layer = scan ? 0 : 5, first = num_base + 4 * layer;
        const ct_model_param *q_a = &model->params[first], *o_b = &model->params[first + 3];
        assert_string_equal(ct_model_hf_name(q_a, 5, buffer),
                            "base_model.model.model.layers.5.self_attn.q_proj.lora_A.weight");
        assert_string_equal(q_a->axes, scan ? "layers=6 lora=4 dim=256" : "lora=4 dim=256");
        assert_string_equal(ct_model_hf_name(o_b, 5, buffer),
                            "base_model.model.model.layers.5.self_attn.o_proj.lora_B.weight");
        assert_string_equal(o_b->axes, scan ? "layers=6 dim=256 lora=4" : "dim=256 lora=4");
        assert_string_equal(model->params[first + 1].axes,
                            scan ? "layers=6 heads=16 head_dim=16 lora=4" : "heads=16 head_dim=16 lora=4");
        assert_true(ct_model_adapters_of(model, 1 + 9 * layer + 4, &a, &b)); /* o_proj */
        assert_true(a == first + 2 && b == first + 3);
        assert_false(ct_model_adapters_of(model, 1 + 9 * layer + 2, &a, &b)); /* k_proj */
        assert_false(ct_model_adapters_of(model, 0, &a, &b));
        assert_false(ct_model_adapters_of(model, num_base - 1, &a, &b)); /* the head */
        const char *names[CT_LORA_MAX_TARGETS];
        assert_int_equal(ct_lora_targets(model, names), 2);
        assert_string_equal(names[0], "q_proj");
        assert_string_equal(names[1], "o_proj");
        ct_model_free(model);
    }
    ct_model *model;
    expect_ok(ct_model_new(family, &config, true, &model));
    ct_lora none = {.rank = 4, .alpha = 1}, unknown = none;
    unknown.targets = (const char *const[]){"input_layernorm"};
    unknown.num_targets = 1;
    expect_error(ct_model_adapt(model, &none), CT_CODE_INVALID_ARGUMENT, "there must be a target at least");
    expect_error(ct_model_adapt(model, &unknown), CT_CODE_INVALID_ARGUMENT,
                 "q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj, found \"input_layernorm\"");
    ct_model_free(model);

    float weight[6] = {1, 2, 3, 4, 5, 6};
    ct_lora_merge(weight, (const float[]){1, 0, -1}, (const float[]){2, -1}, 2, 3, 1, 0.5);
    assert_memory_equal(weight, ((float[]){2, 2, 2, 3.5F, 5, 6.5F}), sizeof(weight));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parameter_counts), cmocka_unit_test(test_find),  cmocka_unit_test(test_config_defaults),
        cmocka_unit_test(test_config_refusals),  cmocka_unit_test(test_names), cmocka_unit_test(test_adapters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
