/* Initial weights: the same bits from stacked and separate layers, on one device and spread over four, and on the host;
 * the distributions are TorchTitan's.
 */
#include "train/init.h"

#include <math.h>

#include "base/rng.h"
#include "base/testing.h"
#include "graph/random.h"
#include "train/state.h"
#include "train/weights.h"

static const ct_model_config SMALL = {.dim = 24,
                                      .num_layers = 2,
                                      .num_heads = 4,
                                      .num_kv_heads = 2,
                                      .head_dim = 6,
                                      .ffn_dim = 40,
                                      .vocab_size = 77,
                                      .max_seq_len = 32,
                                      .norm_eps = 1e-5,
                                      .rope = {.theta = 10000}};

static ct_session *open_session(int num_devices)
{
    ct_session *session;
    ct_session_opts opts = {.plugin = {.path = getenv("CTITAN_PLUGIN_PATH")}, .num_devices = num_devices};
    expect_ok(ct_session_open(&opts, &session));
    return session;
}

static ct_model *new_model(const char *family_name, const ct_model_config *config, bool scan_layers)
{
    const ct_model_family *family;
    ct_model_config ignored;
    ct_model *model;
    expect_ok(ct_model_config_find(family_name, "debugmodel", &family, &ignored));
    expect_ok(ct_model_new(family, config ? config : &ignored, scan_layers, &model));
    return model;
}

/* What TorchTitan's sources say of a parameter; std 0: ones. */
static double expected_std(const char *family, const char *name, int64_t layer, int64_t dim)
{
    if (strstr(name, "norm")) return 0;
    if (!strcmp(family, "qwen3")) return 0.02;
    if (strstr(name, "embed_tokens")) return 1;
    if (strstr(name, "lm_head")) return 1 / sqrt((double)dim);
    bool scaled = strstr(name, "o_proj") || strstr(name, "up_proj") || strstr(name, "down_proj");
    return scaled ? 0.02 / sqrt(2.0 * (double)(layer + 1)) : 0.02;
}

/* One layer's values as the host makes them. */
static void host_values(const char *family, const char *name, int64_t layer, int64_t dim, uint64_t seed, int64_t count,
                        float *out)
{
    float std = (float)expected_std(family, name, layer, dim);
    bool is_cut = !strcmp(family, "llama3") && strstr(name, "lm_head");
    uint32_t key[2];
    ct_rng_key(seed, name, key);
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits[2];
        ct_threefry(key, (const uint32_t[2]){(uint32_t)i, 0}, bits);
        float normal = is_cut ? ct_truncated_normal_of_bits(bits[0], -3, 3) : ct_normal_of_bits(bits[0]);
        out[i] = std > 0 ? normal * std : 1;
    }
}

/* Every parameter against the host's. */
static void expect_host_bits(const char *family, const ct_model *model, const ct_train_state *state, uint64_t seed)
{
    for (int i = 0; i < model->num_params; i++) {
        const ct_model_param *param = &model->params[i];
        ct_array array;
        expect_ok(ct_train_state_param(state, i, &array));
        int64_t layers = ct_model_param_layers(model, param), count = param->num_elements / layers;
        float *expected = ct_alloc((size_t)count * sizeof(float));
        for (int64_t layer = 0; layer < layers; layer++) {
            char buffer[256];
            const char *name = ct_model_hf_name(param, layer, buffer);
            host_values(family, name, param->stacked ? layer : param->layer, model->config.dim, seed, count, expected);
            if (memcmp((float *)array.data + layer * count, expected, (size_t)count * sizeof(float)) != 0)
                fail_msg("%s %s has other bits on %d devices than on the host", family, name,
                         state->session->num_devices);
        }
        free(expected);
        ct_array_free(&array);
    }
}

static void test_bits(void **state)
{
    (void)state;
    static const char *const families[] = {"llama3", "qwen3"};
    const uint64_t seed = 0x123456789abcdef0; /* both words of the key count */
    for (int num_devices = 1; num_devices <= 4; num_devices += 3) {
        ct_session *session = open_session(num_devices);
        for (size_t i = 0; i < 2 * CT_COUNT(families); i++) {
            if (num_devices > 1 && i % 2 == 0) continue; /* separate layers are what one device has shown */
            ct_model *model = new_model(families[i / 2], &SMALL, i % 2);
            ct_parallel parallel = {.table = ct_model_sharding(model), .zero_stage = 3, .replicate_below = 1};
            ct_mesh_opts mesh = {.degrees = {1, -1, 1, CT_MIN(num_devices, 2)}, .num_devices = num_devices};
            expect_ok(ct_mesh_init(&mesh, &parallel.mesh));
            parallel.partition = i == 1 ? CT_PARTITION_MANUAL : CT_PARTITION_SHARDY;
            ct_train_state train;
            ct_train_state_init(&train, session, model, &parallel, CT_DTYPE_F32, CT_DTYPE_F32);
            expect_ok(ct_train_state_from_seed(&train, seed));
            expect_host_bits(families[i / 2], model, &train, seed);
            ct_train_state_deinit(&train);
            ct_model_free(model);
        }
        ct_session_close(session);
    }
}

/* bf16 master weights are the f32 ones, rounded; moments and the halted flag are zero. */
static void test_bf16(void **state)
{
    (void)state;
    ct_session *session = open_session(1);
    ct_model *model = new_model("llama3", &SMALL, true);
    ct_train_state wide, narrow;
    ct_train_state_init(&wide, session, model, NULL, CT_DTYPE_F32, CT_DTYPE_F32);
    ct_train_state_init(&narrow, session, model, NULL, CT_DTYPE_BF16, CT_DTYPE_BF16);
    expect_ok(ct_train_state_from_seed(&wide, 1));
    expect_ok(ct_train_state_from_seed(&narrow, 1));
    for (size_t i = 0; i < narrow.num_buffers; i++) {
        ct_array a, b;
        expect_ok(ct_buffer_to_array(narrow.buffers[i], &a));
        expect_ok(ct_buffer_to_array(wide.buffers[i], &b));
        bool is_last = i == narrow.num_buffers - 1;
        assert_int_equal(a.dtype, is_last ? CT_DTYPE_S32 : CT_DTYPE_BF16);
        ct_array rounded = ct_array_new(a.dtype, b.sizes, b.rank);
        for (int64_t j = 0; j < ct_array_num_elements(&b); j++) {
            ct_array_set(&rounded, j, ct_array_get(&b, j));
            if (i >= (size_t)model->num_params) assert_true(ct_array_get(&b, j) == 0);
        }
        assert_memory_equal(a.data, rounded.data, ct_array_bytes(&a));
        ct_array_free(&a);
        ct_array_free(&b);
        ct_array_free(&rounded);
    }
    ct_train_state_deinit(&wide);
    ct_train_state_deinit(&narrow);
    ct_model_free(model);
    ct_session_close(session);
}

/* Mean, deviation and extremes of the debug model, whose tensors are large enough to tell. */
static void test_distributions(void **state)
{
    (void)state;
    ct_session *session = open_session(1);
    ct_model *model = new_model("llama3", NULL, false);
    ct_train_state train;
    ct_train_state_init(&train, session, model, NULL, CT_DTYPE_F32, CT_DTYPE_F32);
    expect_ok(ct_train_state_from_seed(&train, 42));
    for (int i = 0; i < model->num_params; i++) {
        const ct_model_param *param = &model->params[i];
        char buffer[256];
        const char *name = ct_model_hf_name(param, 0, buffer);
        double std = expected_std("llama3", name, param->layer, model->config.dim);
        bool is_head = strstr(name, "lm_head") != NULL;
        ct_array array;
        expect_ok(ct_buffer_to_array(train.buffers[i], &array));
        double sum = 0, squares = 0, largest = 0, n = (double)param->num_elements;
        for (int64_t j = 0; j < param->num_elements; j++) {
            double value = ct_array_get(&array, j);
            sum += value;
            squares += value * value;
            largest = fmax(largest, fabs(value));
        }
        double found = sqrt(squares / n - sum / n * (sum / n));
        if (std == 0) {
            assert_true(sum == n && found == 0);
        } else {
            /* a normal cut at three deviations has 0.98658 of the deviation; five standard errors are allowed */
            double wanted = is_head ? 0.98658 * std : std;
            if (fabs(sum / n) > 5 * std / sqrt(n) || fabs(found / wanted - 1) > 5 / sqrt(2 * n))
                fail_msg("%s: mean %g, deviation %g, wanted %g", name, sum / n, found, wanted);
            assert_true(is_head ? largest <= 3 * std : largest > 3.5 * std);
        }
        ct_array_free(&array);
    }
    ct_train_state_deinit(&train);
    ct_model_free(model);
    ct_session_close(session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_bf16),
        cmocka_unit_test(test_distributions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
