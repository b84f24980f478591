/* Prices of single instructions, what has none, comparisons, tori, and what is printed. */
#include "predict/predict.h"

#include "base/base64.h"
#include "predict/predict_fuzz.c" /* its corpus is replayed below */
#include "predict/testing.h"

#define HEAD "HloModule m, is_scheduled=true\n"

/* ---- the compiler's estimates ---- */

/* What a fusion calls may carry estimates of its own: they are inside the fusion's. */
static void test_no_double_counting(void **state)
{
    (void)state;
    ct_prediction *p = ct_test_predict(HEAD "inner {\n  x = f32[1024,256]{1,0} parameter(0)\n" CT_TEST_WORK(
        "ROOT a", "x", "3500") "}\n"
                               "fused {\n  x = f32[1024,256]{1,0} parameter(0)\n" CT_TEST_WORK(
                                   "a", "x",
                                   "7000") "  ROOT b = f32[1024,256]{1,0} fusion(a), kind=kLoop, calls=inner, "
                                           "backend_config={\"estimated_cycles\":\"8750\"}\n}\n"
                                           "ENTRY main {\n  x = f32[1024,256]{1,0} parameter(0)\n"
                                           "  ROOT f = f32[1024,256]{1,0} fusion(x), kind=kLoop, calls=fused, "
                                           "backend_config={\"estimated_cycles\":\"17500\"}\n}\n");
    expect_near(ct_test_us(p), 10);
    expect_near(1e6 * p->estimate_seconds, 10);
    assert_int_equal(p->num_items, 1);
    expect_near(p->items[0].bytes, 2 * 1024 * 256 * 4);
}

static void test_groups(void **state)
{
    (void)state;
#define CYCLES ", backend_config={\"estimated_cycles\":\"1750\"}\n"
    ct_prediction *p = ct_test_predict(
        HEAD "product {\n  a = bf16[128,128]{1,0} parameter(0)\n  ROOT d = bf16[128,128]{1,0} convolution(a, a)\n}\n"
             "outer {\n  a = bf16[128,128]{1,0} parameter(0)\n  d = bf16[128,128]{1,0} fusion(a), calls=product\n"
             "  ROOT e = bf16[128,128]{1,0} exponential(d)\n}\n"
             "turn {\n  a = bf16[128,128]{1,0} parameter(0)\n  t = bf16[128,128]{0,1} transpose(a), dimensions={1,0}\n"
             "  ROOT c = bf16[128,128]{1,0} copy(t)\n}\n"
             "scale {\n  a = bf16[128,128]{1,0} parameter(0)\n  t = bf16[128,128]{0,1} transpose(a), dimensions={1,0}\n"
             "  ROOT c = bf16[128,128]{0,1} negate(t)\n}\n"
             "ENTRY main {\n  a = bf16[128,128]{1,0} parameter(0)\n"
             "  m = bf16[128,128]{1,0} fusion(a), kind=kOutput, calls=outer" CYCLES
             "  t = bf16[128,128]{1,0} fusion(m), kind=kLoop, calls=turn" CYCLES
             "  c = bf16[128,128]{0,1} copy(t)" CYCLES
             "  s = bf16[128,128]{0,1} fusion(c), kind=kLoop, calls=scale" CYCLES "}\n");
    expect_near(1e6 * p->groups[CT_PREDICT_MATMUL].at[0], 1);
    expect_near(1e6 * p->groups[CT_PREDICT_LAYOUT].at[0], 2);
    expect_near(1e6 * p->groups[CT_PREDICT_ELEMENTWISE].at[0], 1);
    ct_test_sums(p);
}

/* Nothing is dropped: it is counted, with what it moves. */
static void test_unknown(void **state)
{
    (void)state;
    ct_prediction *p = ct_test_predict(
        HEAD "fused {\n  x = f32[1000]{0} parameter(0)\n  ROOT s = f32[1000]{0} scatter(x, x)\n}\n"
             "ENTRY main {\n  x = f32[1000]{0} parameter(0)\n  i = s32[] parameter(1)\n"
             "  f = f32[1000]{0} fusion(x), kind=kCustom, calls=fused, "
             "backend_config={\"estimated_cycles\":\"9223372036854775807\"}\n"
             "  g = f32[1000]{0} fusion(x), kind=kCustom, calls=fused, backend_config={\"estimated_cycles\":\"-5\"}\n"
             "  h = f32[1000]{0} fusion(x), kind=kCustom, calls=fused, "
             "backend_config={\"estimated_cycles\":\"77000000000000\"}\n"
             "  c = f32[1000]{0} custom-call(x), custom_call_target=\"Other\"\n  d = f32[1000]{0} copy(c)\n"
             "  s = s32[] add(i, i)\n  t = f32[1000]{0} sort(d), dimensions={0}\n}\n");
    assert_true(p->step.at[CT_CHIP_MID] == 0);
    expect_near(ct_test_unknown(p, "fusions")->count, 3);
    expect_near(ct_test_unknown(p, "fusions")->bytes, 3 * 8000);
    assert_string_equal(ct_test_unknown(p, "fusions")->example, "f");
    expect_near(ct_test_unknown(p, "custom calls")->bytes, 8000);
    expect_near(ct_test_unknown(p, "copies")->bytes, 8000);
    expect_near(ct_test_unknown(p, "scalars")->count, 1);
    expect_near(ct_test_unknown(p, "other")->bytes, 8000);
    assert_true(ct_test_noted(p, "g has an estimate of -5 cycles"));
    assert_true(ct_test_noted(p, "h has an estimate of 7.7e+13 cycles, which is absurd"));
    assert_false(ct_test_noted(p, "f has")); /* how libtpu says that it has none */
    assert_true(ct_test_noted(ct_test_predict("HloModule m\nENTRY e {\n  a = f32[] parameter(0)\n}\n"), "schedule"));
}

/* ---- kernels ---- */

/* Columns of 512 of b at a time, as kernels/mosaic prints a product [rows 256] x [256 512 n]; cost: its own estimate.
 */
static const char *kernel_call(const char *shapes, int64_t rows, int64_t steps, const char *cost, const char *element)
{
    ct_arena *arena = &ct_test_arena;
    const char *body = ct_arena_printf(
        arena,
        "\"builtin.module\"() ({\n\"stable_mosaic.func.func\"() ({\n"
        "^bb0(%%1: i32, %%2: memref<%lldx256x%s, #tpu.memory_space<vmem>>, %%3: memref<256x512x%s, "
        "#tpu.memory_space<vmem>>, %%4: memref<%lldx512xf32, #tpu.memory_space<vmem>>):\n"
        "%%8 = \"stable_mosaic.tpu.matmul\"(%%5, %%6, %%7) {dimension_numbers = "
        "#tpu.dot_dimension_numbers<[1], [0], [0], [1], [0, 0, 1, 1], [], []>} : (vector<%lldx256x%s>, "
        "vector<256x512x%s>, vector<%lldx512xf32>) -> vector<%lldx512xf32>\n"
        "\"stable_mosaic.func.return\"() : () -> ()\n}) {iteration_bounds = array<i64: %lld>, scalar_prefetch = 0 : "
        "i64, scratch_operands = 0 : i64, sym_name = \"product\", window_params = [{transform_indices = @transform_0, "
        "window_bounds = array<i64: %lld, 256>}, {transform_indices = @transform_1, window_bounds = array<i64: 256, "
        "512>}, {transform_indices = @transform_1, window_bounds = array<i64: %lld, 512>}]} : () -> ()\n"
        "\"stable_mosaic.func.func\"() ({\n^bb0(%%1: i32):\n"
        "%%9 = \"stable_mosaic.arith.constant\"() {value = 0 : i32} : () -> i32\n"
        "\"stable_mosaic.func.return\"(%%9, %%9) : (i32, i32) -> ()\n}) {sym_name = \"transform_0\"} : () -> ()\n"
        "\"stable_mosaic.func.func\"() ({\n^bb0(%%1: i32):\n"
        "%%10 = \"stable_mosaic.arith.constant\"() {value = 0 : i32} : () -> i32\n"
        "\"stable_mosaic.func.return\"(%%10, %%1) : (i32, i32) -> ()\n}) {sym_name = \"transform_1\"} : () -> ()\n"
        "}) {stable_mosaic.version = 15 : i64} : () -> ()\n",
        (long long)rows, element, element, (long long)rows, (long long)rows, element, element, (long long)rows,
        (long long)rows, (long long)steps, (long long)rows, (long long)rows);
    ct_str text;
    ct_str_init(&text);
    ct_base64_append(&text, body, strlen(body));
    const char *result = ct_arena_printf(arena,
                                         "  ROOT k = f32[]{} custom-call(%s), custom_call_target=\"tpu_custom_call\", "
                                         "backend_config={\"custom_call_config\":{\"body\":\"%s\"%s}}\n}\n",
                                         shapes, text.data, cost);
    ct_str_deinit(&text);
    return result;
}

static void test_kernel_of_text(void **state)
{
    (void)state;
    const char *parameters = HEAD "ENTRY main {\n  a = bf16[1024,256]{1,0} parameter(0)\n";
    ct_prediction *p =
        ct_test_predict(ct_arena_printf(&ct_test_arena, "%s%s", parameters, kernel_call("a", 1024, 100, "", "bf16")));
    double flops = 2.0 * 1024 * 256 * 512 * 100;
    assert_int_equal(p->num_kernels, 1);
    assert_string_equal(p->kernels[0].name, "product");
    assert_true(p->kernels[0].has_flops && !p->kernels[0].is_attention);
    expect_near(p->kernels[0].flops, flops);
    /* a once, b and the result block by block */
    expect_near(p->kernels[0].bytes, 1024 * 256 * 2 + 100 * (256 * 512 * 2 + 1024 * 512 * 4));
    expect_near(p->step.at[CT_CHIP_MID],
                CT_MAX(flops / (918e12 * 0.76), p->kernels[0].bytes / p->chip->hbm_bytes_per_s));
    assert_true(p->step.at[CT_CHIP_LOW] == p->step.at[CT_CHIP_HIGH]); /* the assumptions are of attention alone */
    /* Its own cost estimate changes nothing, whatever it says. */
    static const char *const costs[] = {",\"cost_estimate\":{\"flops\":\"1\",\"bytes_accessed\":\"1\"}",
                                        ",\"cost_estimate\":{\"flops\":\"99999999999999\",\"bytes_accessed\":\"0\"}"};
    for (size_t i = 0; i < CT_COUNT(costs); i++) {
        ct_prediction *other = ct_test_predict(
            ct_arena_printf(&ct_test_arena, "%s%s", parameters, kernel_call("a", 1024, 100, costs[i], "bf16")));
        assert_true(other->step.at[CT_CHIP_MID] == p->step.at[CT_CHIP_MID]);
    }
    /* f32 in full precision is six passes. */
    ct_prediction *wide =
        ct_test_predict(ct_arena_printf(&ct_test_arena, "%s%s", parameters, kernel_call("a", 1024, 100, "", "f32")));
    expect_near(wide->step.at[CT_CHIP_MID], 6 * flops / (918e12 * 0.76));
}

/* Attention by shapes: ours and JAX's the same; the mask halves, a full one does not. */
static void test_attention(void **state)
{
    (void)state;
#define QKV                                                                                                            \
    HEAD "ENTRY main {\n  t = s8[1,4,4]{2,1,0} parameter(0)\n  q = bf16[2,16,4096,128]{3,2,1,0} parameter(1)\n"        \
         "  k = bf16[2,8,4096,128]{3,2,1,0} parameter(2)\n"
#define CALL(result, name)                                                                                             \
    "  ROOT r = " result " custom-call(t, q, k, k), custom_call_target=\"tpu_custom_call\", metadata={op_name=\"" name \
    "\"}\n}\n"
#define ONE   "bf16[2,16,4096,128]{3,2,1,0}"
#define TWO   "(" ONE ", " ONE ")"
#define THREE "(" ONE ", " ONE ", " ONE ")"
    double product = 2.0 * 2 * 16 * 4096 * 4096 * 128;
    static const struct {
        const char *text;
        double products;
    } rows[] = {
        {QKV CALL(ONE, "jit/splash_mha_fwd_residuals/pallas_call"), 1},
        {QKV CALL(TWO, "jit/splash_mha_dkv_no_residuals/pallas_call"), 2},
        {QKV CALL(THREE, "jit/splash_mha_dkv_no_residuals/pallas_call"), 2.5},
        {QKV CALL(ONE, "jit/splash_mha_dq/pallas_call"), 1.5},
        {QKV CALL(ONE, "jit/splash_forward_full/call"), 2},
        {QKV CALL(ONE, "jit/splash_forward_window512/call"), 0.25},
        {QKV CALL(ONE, "jit/splash_forward_full_window512/call"), 0.5},
    };
    for (size_t i = 0; i < CT_COUNT(rows); i++) {
        ct_prediction *p = ct_test_predict(rows[i].text);
        assert_int_equal(p->num_kernels, 1);
        assert_true(p->kernels[0].is_attention && p->kernels[0].has_flops);
        expect_near(p->kernels[0].flops, rows[i].products * product);
        for (int e = 0; e < CT_CHIP_NUM_EFFICIENCIES; e++)
            expect_near(p->step.at[e], rows[i].products * product / 918e12 / p->chip->attention_efficiency[e]);
        ct_test_sums(p);
    }
}

/* A kernel that nobody knows: its bytes, and it is said so. */
static void test_other_kernels(void **state)
{
    (void)state;
    ct_prediction *p = ct_test_predict(
        HEAD
        "ENTRY main {\n  x = bf16[1024,1024]{1,0} parameter(0)\n"
        "  ROOT my_kernel.7 = bf16[1024,1024]{1,0} custom-call(x), custom_call_target=\"tpu_custom_call\", "
        "backend_config={\"custom_call_config\":{\"body\":\"TUzvUg==\",\"cost_estimate\":{\"flops\":\"5e12\"}}}\n}\n");
    assert_string_equal(p->kernels[0].name, "my_kernel");
    assert_false(p->kernels[0].has_flops);
    expect_near(p->step.at[CT_CHIP_MID], 2 * 1024 * 1024 * 2 / 1638e9);
    expect_near(ct_test_unknown(p, "kernels priced by bytes alone")->count, 1);
    /* megablox: rows of all groups together, each with its group's matrix */
    p = ct_test_predict(
        HEAD
        "ENTRY main {\n  n = s32[] parameter(0)\n  g = s32[9]{0} parameter(1)\n"
        "  x = bf16[8192,4096]{1,0} parameter(2)\n  w = bf16[8,4096,2048]{2,1,0} parameter(3)\n"
        "  ROOT gmm.1 = bf16[8192,2048]{1,0} custom-call(n, g, x, w), custom_call_target=\"tpu_custom_call\"\n}\n");
    expect_near(p->kernels[0].flops, 2.0 * 8192 * 4096 * 2048);
    expect_near(p->step.at[CT_CHIP_MID], p->kernels[0].flops / (918e12 * 0.76));
}

/* ---- tori ---- */

static void expect_torus(const char *chip, const char *shape, int64_t devices, const char *wanted)
{
    ct_torus torus;
    expect_ok(ct_predict_torus(ct_chip_find(chip), shape, devices, &torus));
    char text[64] = "", *at = text;
    for (int i = 0; i < torus.num_axes; i++)
        at += sprintf(at, "%s%c%d%s", i ? " " : "", torus.names[i], (int)torus.sizes[i], torus.wraps[i] ? "*" : "");
    assert_string_equal(text, wanted);
}

static void test_torus(void **state)
{
    (void)state;
    expect_torus("v6e", NULL, 16, "x4 y4"); /* as ct_topology_torus orders them */
    expect_torus("v6e", NULL, 8, "y4 x2");
    expect_torus("v6e", NULL, 256, "x16* y16*");
    expect_torus("v5p", NULL, 128, "z8* x4* y4*");
    expect_torus("v5p", "4x4x8", 0, "z8* x4* y4*");
    expect_torus("v5p", "v5p:8x8x16", 0, "z16* x8* y8*");
    expect_torus("v5p", "2x2x1", 0, "x2 y2");
    expect_torus("tpu7x", NULL, 16, "x2 y2 z2 c2");
    expect_torus("v5e", "1x1", 0, "x1");
    ct_torus torus;
    const ct_chip *v6e = ct_chip_find("v6e");
    expect_error(ct_predict_torus(v6e, "4x4x4", 0, &torus), CT_CODE_INVALID_ARGUMENT,
                 "has 2 sizes of 1 to 256, as 4x4");
    expect_error(ct_predict_torus(v6e, "v5e:4x4", 0, &torus), CT_CODE_INVALID_ARGUMENT,
                 "must be of the chip v6e, found \"v5e:4x4\"");
    expect_error(ct_predict_torus(v6e, "32x32", 0, &torus), CT_CODE_INVALID_ARGUMENT, "a slice of v6e has at most 256");
    expect_error(ct_predict_torus(v6e, NULL, 512, &torus), CT_CODE_INVALID_ARGUMENT, "512 devices are no slice of v6e");
    ct_prediction *p;
    ct_predict_opts opts = {.chip = v6e, .torus = &torus, .num_devices = 8};
    expect_ok(ct_predict_torus(v6e, "2x2", 0, &torus));
    expect_error(
        ct_predict(&ct_test_arena, ct_test_module("HloModule m\ne {\n  a = f32[] parameter(0)\n}\n"), &opts, &p),
        CT_CODE_INVALID_ARGUMENT, "8 devices a slice, the topology 4");
    assert_null(p);
}

/* ---- results ---- */

static const char small[] = HEAD
    "ENTRY main {\n  x = f32[1024,256]{1,0} parameter(0)\n"
    "  w = f32[1024,256]{1,0} negate(x), metadata={op_name=\"layers/mlp\"}, "
    "backend_config={\"estimated_cycles\":\"%d\"}\n"
    "  v = f32[1024,256]{1,0} negate(w), metadata={op_name=\"layers/attention\"}, "
    "backend_config={\"estimated_cycles\":\"1750\"}\n"
    "  g = f32[4096,256]{1,0} all-gather(v), dimensions={0}, replica_groups={}, metadata={op_name=\"gather\"}\n}\n";

static ct_prediction *predict_small(const char *chip, int cycles)
{
    return ct_test_predict_on(chip, "2x2", ct_arena_printf(&ct_test_arena, small, cycles));
}

static void test_compare(void **state)
{
    (void)state;
    ct_prediction *a = predict_small("v6e", 17500), *b = predict_small("v6e", 35000), *other = predict_small("v5e", 1);
    ct_str out;
    ct_str_init(&out);
    expect_ok(ct_prediction_compare(a, b, 10, &out));
    assert_non_null(strstr(out.data, "+0.010 "));
    assert_non_null(strstr(out.data, "layers/mlp"));
    assert_null(strstr(out.data, "layers/attention")); /* the same in both */
    /* The biases of the estimates differ from chip to chip. */
    expect_error(ct_prediction_compare(a, other, 10, &out), CT_CODE_INVALID_ARGUMENT, "on one chip only");
    ct_str_deinit(&out);
}

static void test_output(void **state)
{
    (void)state;
    ct_predict_opts opts = {
        .chip = ct_chip_find("v6e"), .num_devices = 4, .model_flops = 918e12 * 4 * 5e-6, .tokens = 400};
    ct_prediction *p;
    expect_ok(ct_predict(&ct_test_arena, ct_test_module(ct_arena_printf(&ct_test_arena, small, 17500)), &opts, &p));
    double step = 11e-6 + 4194304 * 0.75 / 2 / 90e9;
    expect_near(p->step.at[CT_CHIP_MID], step);
    expect_near(p->tokens_per_s_chip[CT_CHIP_MID], 100 / step);
    expect_near(p->mfu[CT_CHIP_MID], 5e-6 / step);
    assert_true(ct_test_noted(p, "topology was not given"));
    ct_str out;
    ct_str_init(&out);
    ct_prediction_print(p, 2, &out);
    static const char *const wanted[] = {
        "v6e x2 y2, 4 devices", "waiting for collectives", "tokens/s/chip", "MFU", "all_gather", "x+y", "layers/mlp"};
    for (size_t i = 0; i < CT_COUNT(wanted); i++)
        if (!strstr(out.data, wanted[i])) fail_msg("no \"%s\" in\n%s", wanted[i], out.data);
    assert_null(strstr(out.data, "layers/attention")); /* the third longest */

    ct_json_writer *writer = ct_json_writer_new();
    ct_json_begin_object(writer, NULL);
    ct_prediction_json(p, 2, writer);
    ct_json_end(writer);
    char *text = ct_json_writer_text(writer, true);
    ct_json *json;
    expect_ok(ct_json_parse(text, strlen(text), "prediction", &json));
    ct_json_value root = ct_json_root(json);
    double seconds;
    expect_ok(ct_json_need_double(ct_json_get(root, "step_seconds"), "mid", &seconds));
    expect_near(seconds, step);
    assert_int_equal(ct_json_size(ct_json_get(root, "longest")), 2);
    assert_int_equal(ct_json_size(ct_json_get(root, "collectives")), 1);
    double sum = 0;
    ct_json_iter iter = ct_json_iterate(ct_json_get(root, "groups"));
    while (ct_json_next(&iter)) {
        expect_ok(ct_json_need_double(iter.value, "mid", &seconds));
        sum += seconds;
    }
    expect_near(sum, step);
    ct_json_free(json);
    free(text);
    ct_json_writer_free(writer);
    ct_str_deinit(&out);
}

static void test_corpus(void **state)
{
    (void)state;
    ct_test_replay(CT_TEST_CORPORA, "predict", LLVMFuzzerTestOneInput);
    ct_test_replay(CT_TEST_CORPORA, "hlo_text", LLVMFuzzerTestOneInput);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_double_counting),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_kernel_of_text),
        cmocka_unit_test(test_attention),
        cmocka_unit_test(test_other_kernels),
        cmocka_unit_test(test_torus),
        cmocka_unit_test(test_compare),
        cmocka_unit_test(test_output),
        cmocka_unit_test(test_corpus),
    };
    return cmocka_run_group_tests(tests, ct_test_arena_init, ct_test_arena_deinit);
}
