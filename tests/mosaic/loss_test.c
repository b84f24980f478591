/* The kernels of the loss, interpreted on the host, against the definition in f64: losses, log-sum-exp, gradients of
 * hidden and weight over a table of shapes, dtypes, labels, options, blocks and meshes. And what is refused.
 */
#include <math.h>

#include "autodiff/grad.h"
#include "base/rng.h"
#include "calls.h"
#include "graph/ops.h"
#include "kernels/kernel.h"
#include "kernels/linear_cross_entropy/linear_cross_entropy.h"
#include "kernels/linear_cross_entropy/mosaic.h"
#include "models/family.h"
#include "pjrt/testing.h"
#include "spmd/localize.h"

enum { HIDDEN, WEIGHT, LABELS, D_LOSS, D_LSE, NUM_INPUTS };
enum { LOSS, LSE, D_HIDDEN, D_WEIGHT, NUM_OUTPUTS };
static const char *const INPUT_NAMES[NUM_INPUTS] = {"hidden", "weight", "labels", "d_loss", "d_lse"};
static const char *const OUTPUT_NAMES[NUM_OUTPUTS] = {"loss", "log-sum-exp", "d hidden", "d weight"};

typedef enum label_kind { RANDOM, FIRST_FIVE_IGNORED, ALL_IGNORED, OUTSIDE } label_kind;

typedef struct loss_case {
    const char *name;
    ct_dtype dtype; /* 0: bf16 */
    int64_t batch, seq, dim, vocab;
    ct_loss_blocks blocks; /* 0: tuned */
    label_kind labels;
    double z_loss, soft_cap;
    int64_t dp, cp, tp; /* 0: 1 */
    bool whole_sequence;
} loss_case;

#define F32 CT_DTYPE_F32
#define B128                                                                                                           \
    {                                                                                                                  \
        128, 128, 128                                                                                                  \
    }
static const loss_case CASES[] = {
    {.name = "one token", .batch = 1, .seq = 1, .dim = 128, .vocab = 128, .blocks = B128},
    {.name = "one token, f32, tuned", .dtype = F32, .batch = 1, .seq = 1, .dim = 40, .vocab = 50},
    {.name = "vocabulary of one", .dtype = F32, .batch = 1, .seq = 3, .dim = 16, .vocab = 1, .blocks = B128},
    {.name = "whole blocks", .batch = 2, .seq = 128, .dim = 256, .vocab = 384, .blocks = B128},
    {.name = "whole blocks, f32", .dtype = F32, .batch = 2, .seq = 128, .dim = 256, .vocab = 256, .blocks = B128},
    {.name = "one block of dim", .batch = 2, .seq = 128, .dim = 256, .vocab = 256, .blocks = {128, 256, 128}},
    {.name = "dim of no lanes", .dtype = F32, .batch = 1, .seq = 200, .dim = 80, .vocab = 300, .blocks = B128},
    {.name = "nothing is a multiple", .batch = 3, .seq = 67, .dim = 256, .vocab = 251, .blocks = B128},
    {.name = "nothing is a multiple, f32",
     .dtype = F32,
     .batch = 3,
     .seq = 67,
     .dim = 256,
     .vocab = 251,
     .blocks = B128},
    {.name = "one more than a block", .dtype = F32, .batch = 1, .seq = 129, .dim = 128, .vocab = 129, .blocks = B128},
    {.name = "blocks of other sizes", .batch = 2, .seq = 250, .dim = 512, .vocab = 700, .blocks = {256, 128, 384}},
    {.name = "several chunks of a tile", .batch = 1, .seq = 256, .dim = 128, .vocab = 1000, .blocks = {256, 0, 1024}},
    {.name = "tuned", .dtype = F32, .batch = 2, .seq = 100, .dim = 96, .vocab = 500},
    {.name = "five ignored, z-loss",
     .dtype = F32,
     .batch = 1,
     .seq = 140,
     .dim = 128,
     .vocab = 200,
     .blocks = B128,
     .labels = FIRST_FIVE_IGNORED,
     .z_loss = 0.1},
    {.name = "all ignored, z-loss, soft cap",
     .dtype = F32,
     .batch = 1,
     .seq = 130,
     .dim = 64,
     .vocab = 140,
     .blocks = B128,
     .labels = ALL_IGNORED,
     .z_loss = 0.1,
     .soft_cap = 2},
    {.name = "soft cap",
     .dtype = F32,
     .batch = 1,
     .seq = 130,
     .dim = 256,
     .vocab = 300,
     .blocks = B128,
     .soft_cap = 1.5},
    {.name = "soft cap, z-loss, bf16",
     .batch = 1,
     .seq = 128,
     .dim = 128,
     .vocab = 300,
     .blocks = B128,
     .labels = FIRST_FIVE_IGNORED,
     .z_loss = 0.05,
     .soft_cap = 30},
    {.name = "labels outside of the vocabulary",
     .dtype = F32,
     .batch = 1,
     .seq = 60,
     .dim = 32,
     .vocab = 90,
     .blocks = B128,
     .labels = OUTSIDE},
    {.name = "tp2", .batch = 4, .seq = 16, .dim = 64, .vocab = 256, .blocks = B128, .tp = 2},
    {.name = "tp4, padded",
     .dtype = F32,
     .batch = 4,
     .seq = 16,
     .dim = 32,
     .vocab = 251,
     .blocks = B128,
     .labels = FIRST_FIVE_IGNORED,
     .z_loss = 0.05,
     .soft_cap = 2,
     .tp = 4},
    {.name = "tp2, padded within the second block, whole sequence",
     .dtype = F32,
     .batch = 4,
     .seq = 16,
     .dim = 32,
     .vocab = 401,
     .blocks = B128,
     .labels = OUTSIDE,
     .tp = 2,
     .whole_sequence = true},
    {.name = "devices with nothing but padding",
     .dtype = F32,
     .batch = 4,
     .seq = 16,
     .dim = 32,
     .vocab = 3,
     .blocks = B128,
     .z_loss = 0.1,
     .tp = 8},
    {.name = "dp2 cp2 tp2",
     .dtype = F32,
     .batch = 4,
     .seq = 16,
     .dim = 32,
     .vocab = 251,
     .labels = FIRST_FIVE_IGNORED,
     .dp = 2,
     .cp = 2,
     .tp = 2},
    {.name = "dp4", .batch = 4, .seq = 16, .dim = 32, .vocab = 131, .blocks = B128, .dp = 4},
};

static int64_t or_one(int64_t value)
{
    return value ? value : 1;
}

static ct_dtype dtype_of(const loss_case *c)
{
    return c->dtype ? c->dtype : CT_DTYPE_BF16;
}

/* ---- inputs ---- */

static double value_of(const loss_case *c, int input, int64_t index)
{
    uint32_t bits[2];
    ct_threefry((const uint32_t[2]){(uint32_t)input, 11}, (const uint32_t[2]){(uint32_t)index, 0}, bits);
    double value = bits[0] / 2147483648.0 - 1;
    if (input == HIDDEN) return value * 2;
    if (input == WEIGHT) return value / sqrt((double)c->dim) * 3;
    if (input != LABELS) return value;
    bool is_ignored = c->labels == ALL_IGNORED || (c->labels == FIRST_FIVE_IGNORED && index < 5);
    if (is_ignored) return CT_IGNORE_LABEL;
    if (c->labels == OUTSIDE && index % 3 == 0) return (double)(c->vocab + index % 7);
    return floor((value + 1) / 2 * (double)c->vocab);
}

static ct_array type_of(const loss_case *c, int input, ct_dtype dtype)
{
    const int64_t sizes[3] = {c->batch, c->seq, c->dim}, weight[2] = {c->vocab, c->dim};
    if (input == HIDDEN) return ct_array_new(dtype, sizes, 3);
    if (input == WEIGHT) return ct_array_new(dtype, weight, 2);
    return ct_array_new(input == LABELS ? CT_DTYPE_S32 : dtype == CT_DTYPE_F64 ? CT_DTYPE_F64 : F32, sizes, 2);
}

/* as: the dtype that values are rounded to first. */
static ct_array array_of(const loss_case *c, int input, ct_dtype dtype, ct_dtype as)
{
    ct_array array = type_of(c, input, dtype), rounded = type_of(c, input, as);
    for (int64_t i = 0; i < ct_array_num_elements(&array); i++) {
        ct_array_set(&rounded, i, value_of(c, input, i));
        ct_array_set(&array, i, ct_array_get(&rounded, i));
    }
    ct_array_free(&rounded);
    return array;
}

/* ---- programs ---- */

static ct_graph *build(const loss_case *c, ct_dtype dtype, const ct_kernels *kernels, const ct_parallel *parallel)
{
    ct_graph *graph = ct_graph_new("loss");
    ct_kernels_attach(graph, kernels);
    if (parallel) ct_parallel_attach(graph, parallel);
    ct_graph_declare_axis(graph, "batch", c->batch);
    ct_graph_declare_axis(graph, "seq", c->seq);
    ct_graph_declare_axis(graph, "dim", c->dim);
    ct_graph_declare_axis(graph, "vocab", c->vocab);
    static const char *const axes[NUM_INPUTS] = {"batch seq dim", "vocab dim", "batch seq", "batch seq", "batch seq"};
    ct_tensor *x[NUM_INPUTS], *lse, *gradients[2];
    for (int i = 0; i < NUM_INPUTS; i++) {
        ct_array array = type_of(c, i, dtype);
        x[i] = ct_input(graph, INPUT_NAMES[i], array.dtype, axes[i]);
        if (parallel) ct_parallel_set_input(graph, x[i], &(ct_sharding){0});
        ct_array_free(&array);
    }
    ct_linear_cross_entropy_opts opts = {.z_loss = c->z_loss, .soft_cap = c->soft_cap, .out_logsumexp = &lse};
    ct_tensor *hidden = ct_shard(x[HIDDEN], "residual"), *weight = ct_use(x[WEIGHT], dtype);
    ct_tensor *loss = ct_linear_cross_entropy(hidden, weight, x[LABELS], &opts);
    if (ct_graph_has_failed(graph)) return graph;
    expect_ok(
        ct_grad_from(graph, 2, (ct_tensor *[]){loss, lse}, (ct_tensor *[]){x[D_LOSS], x[D_LSE]}, x, 2, gradients));
    ct_tensor *outputs[NUM_OUTPUTS] = {loss, lse, gradients[0], gradients[1]};
    for (int i = 0; i < NUM_OUTPUTS; i++) {
        ct_output(graph, OUTPUT_NAMES[i], outputs[i], NULL);
        if (parallel) ct_parallel_set_output(graph, i, &(ct_sharding){0});
    }
    if (parallel) expect_ok(ct_localize(graph, NULL));
    return graph;
}

static char *text_of(ct_graph *graph)
{
    ct_str text = {0};
    expect_ok(ct_graph_print(graph, &text));
    ct_graph_free(graph);
    return ct_str_release(&text);
}

static void run(ct_client *client, const loss_case *c, ct_dtype dtype, const ct_kernels *kernels,
                const ct_parallel *parallel, ct_array outputs[NUM_OUTPUTS])
{
    int num_calls;
    char *printed = text_of(build(c, dtype, kernels, parallel)), *text = mosaic_rewrite(printed, &num_calls);
    assert_int_equal(num_calls, kernels ? CT__LOSS_KERNELS : 0);
    size_t num_devices = parallel ? (size_t)parallel->mesh.num_devices : 1;
    static const ct_named_value fast = {.name = "xla_backend_optimization_level", .type = CT_VALUE_INT, .integer = 0};
    ct_executable *executable = ct_test_compile(
        client, text, &(ct_compile_opts){.num_partitions = (int)num_devices, .flags = &fast, .num_flags = 1});
    ct_buffer *inputs[8 * NUM_INPUTS] = {0}, *results[8 * NUM_OUTPUTS] = {0};
    for (int i = 0; i < NUM_INPUTS; i++) {
        ct_array array = array_of(c, i, dtype, dtype_of(c));
        for (size_t d = 0; d < num_devices; d++) {
            ct_device *device;
            expect_ok(ct_executable_device(executable, d, &device));
            expect_ok(ct_buffer_from_host(device, &array, NULL, NULL, &inputs[d * NUM_INPUTS + (size_t)i]));
        }
        ct_array_free(&array);
    }
    expect_ok(ct_executable_execute(executable, inputs, NUM_INPUTS, NULL, results));
    for (int i = 0; i < NUM_OUTPUTS; i++) expect_ok(ct_buffer_to_array(results[i], &outputs[i]));
    ct_buffers_free(inputs, num_devices * NUM_INPUTS);
    ct_buffers_free(results, num_devices * NUM_OUTPUTS);
    ct_executable_free(executable);
    free(printed);
    free(text);
}

/* ---- the table ---- */

static void compare(const loss_case *c, const ct_array *found, const ct_array *expected, double worst[NUM_OUTPUTS])
{
    for (int i = 0; i < NUM_OUTPUTS; i++) {
        double tolerance = i <= LSE ? 2e-6 : c->dtype == F32 ? 2e-6 : 8e-3, error = 0, largest = 0;
        assert_int_equal(ct_array_num_elements(&found[i]), ct_array_num_elements(&expected[i]));
        for (int64_t j = 0; j < ct_array_num_elements(&found[i]); j++) {
            double a = ct_array_get(&found[i], j), b = ct_array_get(&expected[i], j);
            if (!isfinite(a)) fail_msg("%s: %s %lld is %g", c->name, OUTPUT_NAMES[i], (long long)j, a);
            error = fmax(error, fabs(a - b));
            largest = fmax(largest, fabs(b));
        }
        if (!(error <= tolerance * fmax(largest, 0.1)))
            fail_msg("%s: %s is off by %g of %g", c->name, OUTPUT_NAMES[i], error, largest);
        bool is_zero = c->labels == ALL_IGNORED && i == LOSS;
        if (is_zero) assert_true(largest == 0.0 && error == 0.0);
        if (!is_zero && c->vocab > 1) assert_true(largest > 1e-2);
        worst[i] = fmax(worst[i], largest > 0 ? error / largest : 0);
    }
}

static ct_parallel parallel_of(const loss_case *c)
{
    ct_parallel parallel = {.table = &ct__decoder_sharding,
                            .sequence_parallel = !c->whole_sequence,
                            .loss_parallel = true,
                            .zero_stage = 3,
                            .gather_form = CT_FORM_JOINT,
                            .reduce_form = CT_FORM_JOINT,
                            .reduce_dtype = F32,
                            .replicate_below = 1};
    ct_mesh_opts opts = {.degrees = {1, or_one(c->dp), or_one(c->cp), or_one(c->tp)},
                         .num_devices = or_one(c->dp) * or_one(c->cp) * or_one(c->tp),
                         .num_kv_heads = or_one(c->tp)};
    expect_ok(ct_mesh_init(&opts, &parallel.mesh));
    return parallel;
}

static ct_kernels kernels_of(const loss_case *c)
{
    return (ct_kernels){.loss = CT_KERNEL_MOSAIC, .platform = "tpu", .chip = "v5e", .loss_blocks = c->blocks};
}

static void test_table(void **state)
{
    (void)state;
    ct_client *client = ct_test_client(8);
    expect_ok(mosaic_register(ct_client_plugin(client)));
    const char *only = getenv("CTITAN_TEST_CASE");
    double worst[2][NUM_OUTPUTS] = {0};
    for (size_t n = 0; n < CT_COUNT(CASES); n++) {
        const loss_case *c = &CASES[n];
        if (only && !strstr(c->name, only)) continue;
        ct_array expected[NUM_OUTPUTS], found[NUM_OUTPUTS];
        run(client, c, CT_DTYPE_F64, NULL, NULL, expected);
        ct_parallel parallel = parallel_of(c);
        ct_kernels kernels = kernels_of(c);
        run(client, c, dtype_of(c), &kernels, parallel.mesh.num_devices > 1 ? &parallel : NULL, found);
        compare(c, found, expected, worst[c->dtype == F32]);
        for (int i = 0; i < NUM_OUTPUTS; i++) {
            ct_array_free(&found[i]);
            ct_array_free(&expected[i]);
        }
    }
    for (int f32 = 0; f32 < 2; f32++)
        print_message("%s: loss %.1e, log-sum-exp %.1e, d hidden %.1e, d weight %.1e\n", f32 ? "f32" : "bf16",
                      worst[f32][LOSS], worst[f32][LSE], worst[f32][D_HIDDEN], worst[f32][D_WEIGHT]);
    ct_client_free(client);
}

/* ---- which form ---- */

static void expect_refused(const loss_case *c, ct_dtype dtype, const ct_kernels *kernels, const char *text)
{
    ct_graph *graph = build(c, dtype, kernels, NULL);
    expect_error(ct_graph_check(graph), CT_CODE_INVALID_ARGUMENT, text);
    ct_graph_free(graph);
}

static void test_refusals(void **state)
{
    (void)state;
    loss_case c = {.name = "refused", .batch = 1, .seq = 8192, .dim = 4096, .vocab = 32000};
    ct_kernels kernels = kernels_of(&c);
    kernels.loss_blocks.rows = 100;
    expect_refused(&c, CT_DTYPE_BF16, &kernels, "loss_kernel.loss_b_block_size = 100 must be a multiple of 128");
    kernels.loss_blocks = (ct_loss_blocks){.hidden = 384};
    expect_refused(&c, CT_DTYPE_BF16, &kernels,
                   "loss_kernel.loss_h_block_size = 384 must divide dim, 4096, or be more");
    kernels.loss_blocks = (ct_loss_blocks){.vocab = -128};
    expect_refused(&c, CT_DTYPE_BF16, &kernels, "loss_v_block_size = -128 must be");
    kernels.chip = "tpu7x";
    kernels.loss_blocks = (ct_loss_blocks){.rows = 4096, .vocab = 4096};
    expect_refused(&c, CT_DTYPE_BF16, &kernels, "loss_kernel: the loss in blocks of 4096 rows, ");
    kernels.loss_blocks = (ct_loss_blocks){.rows = 4096};
    expect_refused(&c, CT_DTYPE_BF16, &kernels, "loss_kernel: the gradient of hidden states in blocks of 4096 rows, ");
    kernels.loss_blocks = (ct_loss_blocks){.vocab = 4096};
    expect_refused(&c, CT_DTYPE_BF16, &kernels,
                   " MiB of vector memory at dim 4096, and a kernel may take 63 MiB; set "
                   "loss_b_block_size, loss_h_block_size, loss_v_block_size to ");
    kernels = kernels_of(&c);
    expect_refused(&c, CT_DTYPE_F16, &kernels, "takes bf16 and f32, found f16");
    kernels.platform = "cuda";
    expect_refused(&c, CT_DTYPE_BF16, &kernels, "for TPUs, and the platform is cuda");
    kernels.platform = "tpu";
    kernels.vector_bytes = 2 << 20;
    expect_refused(&c, CT_DTYPE_BF16, &kernels, "no smaller blocks would do, ask for portable or definition");
}

/* What a refusal names is then taken, and uses more than an eighth of what there is. */
static void test_sizes_that_fit(void **state)
{
    (void)state;
    static const int64_t dims[] = {80, 1024, 8192};
    for (int i = 0; i < 6; i++) {
        loss_case c = {.name = "fit", .batch = 1, .seq = 1 << 16, .dim = dims[i / 2], .vocab = 1 << 17};
        ct_kernels kernels = kernels_of(&c);
        kernels.chip = "v5p";
        kernels.loss_blocks = (ct_loss_blocks){.rows = 1 << 13, .vocab = 1 << 13};
        ct_dtype dtype = i % 2 ? F32 : CT_DTYPE_BF16;
        ct_graph *graph = build(&c, dtype, &kernels, NULL);
        ct_status *status = ct_graph_check(graph);
        const char *advice = strstr(ct_status_message(status), "loss_v_block_size to ");
        assert_non_null(advice);
        long long sizes[3];
        assert_int_equal(sscanf(advice, "loss_v_block_size to %lld, %lld, %lld", &sizes[0], &sizes[1], &sizes[2]), 3);
        ct_status_free(status);
        ct_graph_free(graph);
        kernels.loss_blocks = (ct_loss_blocks){sizes[0], dims[i / 2] % 128 ? 0 : sizes[1], sizes[2]};
        graph = build(&c, dtype, &kernels, NULL);
        expect_ok(ct_graph_check(graph));
        ct_graph_free(graph);
        ct__loss_mosaic s = {.element = i % 2 ? CT_MOSAIC_F32 : CT_MOSAIC_BF16,
                             .rows = c.seq,
                             .vocab = c.vocab,
                             .dim = c.dim,
                             .blocks = {sizes[0], sizes[1], sizes[2]},
                             .vector_bytes = 64 << 20};
        int64_t most = 0;
        for (ct__loss_kernel kernel = 0; kernel < CT__LOSS_KERNELS; kernel++) {
            most = CT_MAX(most, ct__loss_mosaic_bytes(&s, kernel));
            /* and so does what is chosen where nothing is asked for, alone */
            ct_kernels tuned = {.chip = "v5p"};
            ct__loss_mosaic chosen = s;
            chosen.blocks = ct__loss_mosaic_blocks(&tuned, &s, kernel);
            assert_true(ct__loss_mosaic_bytes(&chosen, kernel) <= 64 << 20);
        }
        assert_in_range(most, 8 << 20, 64 << 20);
    }
}

static int num_kernels(const loss_case *c, ct_dtype dtype, const ct_kernels *kernels)
{
    int count;
    char *printed = text_of(build(c, dtype, kernels, NULL)), *text = mosaic_rewrite(printed, &count);
    free(printed);
    free(text);
    return count;
}

static void test_auto(void **state)
{
    (void)state;
    loss_case c = {.name = "auto", .batch = 2, .seq = 16, .dim = 128, .vocab = 300};
    ct_kernels kernels = kernels_of(&c);
    kernels.loss = CT_KERNEL_AUTO;
    assert_int_equal(num_kernels(&c, CT_DTYPE_BF16, &kernels), 3);
    assert_int_equal(num_kernels(&c, F32, &kernels), 3);
    kernels.loss_blocks = (ct_loss_blocks){0};
    assert_int_equal(num_kernels(&c, CT_DTYPE_F64, &kernels), 0);
    /* sizes that are asked for are taken or refused */
    kernels.loss_blocks = (ct_loss_blocks){.vocab = 1 << 20};
    c.vocab = 1 << 20;
    expect_refused(&c, CT_DTYPE_BF16, &kernels, "loss_v_block_size to ");
    c.vocab = 300;
    kernels.loss_blocks = (ct_loss_blocks){0};
    kernels.platform = "cpu";
    assert_int_equal(num_kernels(&c, CT_DTYPE_BF16, &kernels), 0);
}

/* A program's size does not grow with rows or vocabulary, and no array in it has both. */
static void test_size_of_program(void **state)
{
    (void)state;
    loss_case c = {.name = "size", .batch = 1, .seq = 4096, .dim = 256, .vocab = 8192, .blocks = B128};
    ct_kernels kernels = kernels_of(&c);
    char *small = text_of(build(&c, CT_DTYPE_BF16, &kernels, NULL));
    c.seq = 1 << 17, c.vocab = 250000;
    char *large = text_of(build(&c, CT_DTYPE_BF16, &kernels, NULL));
    assert_in_range(strlen(large), strlen(small), strlen(small) * 5 / 4);
    assert_null(strstr(large, "131072x250000"));
    assert_null(strstr(large, "250000x131072"));
    free(small);
    free(large);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_table), cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_sizes_that_fit), cmocka_unit_test(test_auto),
                                       cmocka_unit_test(test_size_of_program)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
