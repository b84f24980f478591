/* Every form of attention against the definition in f64: one table of shapes, dtypes, masks and meshes; result,
 * log-sum-exp and gradients of q, k and v, with cotangents for both results.
 */
#include <math.h>

#include "autodiff/grad.h"
#include "base/rng.h"
#include "graph/node.h"
#include "graph/ops.h"
#include "kernels/attention/attention.h"
#include "kernels/kernel.h"
#include "pjrt/testing.h"
#include "spmd/localize.h"

enum { Q, K, V, D_RESULT, D_LSE, POSITIONS, KV_POSITIONS, SEGMENTS, KV_SEGMENTS, NUM_INPUTS };
enum { RESULT, LSE, DQ, DK, DV, NUM_OUTPUTS };
static const char *const OUTPUT_NAMES[NUM_OUTPUTS] = {"result", "log-sum-exp", "dq", "dk", "dv"};

typedef enum position_kind {
    IN_ORDER,  /* none are given */
    SHIFTED,   /* [seq]: queries begin 5 after keys */
    EARLY,     /* [seq]: the first queries stand before all keys, and see nothing */
    BACKWARD,  /* [seq]: from the last to the first */
    DOCUMENTS, /* [batch seq]: beginning anew with each segment */
} position_kind;

typedef struct attention_case {
    const char *name;
    ct_dtype dtype;                                 /* 0: f32 */
    int64_t batch, seq, kv_seq;                     /* batch 0: 1; kv_seq 0: seq */
    int64_t heads, kv_heads, head_dim;              /* head_dim 0: 8 */
    int64_t rows, kv_rows, back_rows, back_kv_rows; /* of blocks; 0: the last that is set */
    bool causal, segments;
    int64_t window;
    position_kind positions;
    double scale, soft_cap;
    int64_t dp, tp, cp; /* 0: 1 */
    bool ring;
} attention_case;

static const attention_case CASES[] = {
    {.name = "one token", .seq = 1, .heads = 1, .kv_heads = 1, .rows = 4, .causal = true},
    {.name = "one query, many keys", .seq = 1, .kv_seq = 37, .heads = 4, .kv_heads = 2, .rows = 8},
    {.name = "full", .seq = 24, .heads = 2, .kv_heads = 2, .rows = 8},
    {.name = "full, no multiple of the block", .seq = 19, .kv_seq = 29, .heads = 2, .kv_heads = 1, .rows = 8},
    {.name = "causal", .seq = 32, .heads = 4, .kv_heads = 4, .rows = 8, .causal = true},
    {.name = "causal, blocks of other sizes",
     .batch = 2,
     .seq = 45,
     .heads = 4,
     .kv_heads = 2,
     .rows = 16,
     .kv_rows = 8,
     .back_rows = 8,
     .back_kv_rows = 24,
     .causal = true},
    {.name = "causal, one block", .seq = 20, .heads = 2, .kv_heads = 1, .rows = 64, .causal = true},
    {.name = "window", .seq = 40, .heads = 2, .kv_heads = 2, .rows = 8, .window = 5},
    {.name = "causal window", .seq = 43, .heads = 2, .kv_heads = 2, .rows = 8, .causal = true, .window = 9},
    {.name = "segments", .batch = 3, .seq = 37, .heads = 2, .kv_heads = 1, .rows = 8, .segments = true},
    {.name = "documents",
     .batch = 2,
     .seq = 40,
     .heads = 4,
     .kv_heads = 2,
     .rows = 8,
     .causal = true,
     .segments = true,
     .positions = DOCUMENTS},
    {.name = "soft cap and scale", .seq = 21, .heads = 2, .kv_heads = 2, .rows = 8, .soft_cap = 1.5, .scale = 0.8},
    {.name = "shifted queries",
     .seq = 16,
     .kv_seq = 28,
     .heads = 2,
     .kv_heads = 2,
     .rows = 8,
     .causal = true,
     .positions = SHIFTED},
    {.name = "rows that see nothing",
     .seq = 30,
     .heads = 4,
     .kv_heads = 2,
     .rows = 8,
     .causal = true,
     .soft_cap = 2,
     .positions = EARLY},
    {.name = "backward", .seq = 30, .heads = 2, .kv_heads = 2, .rows = 8, .causal = true, .positions = BACKWARD},
    {.name = "f64, all of it",
     .dtype = CT_DTYPE_F64,
     .batch = 2,
     .seq = 29,
     .heads = 6,
     .kv_heads = 2,
     .rows = 8,
     .kv_rows = 16,
     .causal = true,
     .segments = true,
     .window = 11,
     .soft_cap = 3},
    {.name = "bf16", .dtype = CT_DTYPE_BF16, .seq = 33, .heads = 2, .kv_heads = 1, .rows = 16, .causal = true},
    {.name = "f16", .dtype = CT_DTYPE_F16, .seq = 33, .heads = 2, .kv_heads = 1, .rows = 16, .causal = true},
    {.name = "bf16, head_dim 64, 64 heads in groups of 8",
     .dtype = CT_DTYPE_BF16,
     .seq = 20,
     .heads = 64,
     .kv_heads = 8,
     .head_dim = 64,
     .rows = 8,
     .causal = true},
    {.name = "head_dim 128, groups of 4",
     .seq = 20,
     .heads = 8,
     .kv_heads = 2,
     .head_dim = 128,
     .rows = 8,
     .causal = true,
     .soft_cap = 5},
    {.name = "head_dim 256", .seq = 20, .heads = 3, .kv_heads = 1, .head_dim = 256, .rows = 8, .causal = true},
    {.name = "dp 2", .batch = 4, .seq = 21, .heads = 2, .kv_heads = 1, .rows = 8, .causal = true, .dp = 2},
    {.name = "dp 2, a batch of 1", .seq = 21, .heads = 2, .kv_heads = 1, .rows = 8, .causal = true, .dp = 2},
    {.name = "dp 2, tp 2, documents",
     .batch = 2,
     .seq = 24,
     .heads = 8,
     .kv_heads = 2,
     .rows = 8,
     .causal = true,
     .segments = true,
     .positions = DOCUMENTS,
     .dp = 2,
     .tp = 2},
    {.name = "tp 4, kv heads shared by two",
     .seq = 24,
     .heads = 8,
     .kv_heads = 2,
     .rows = 8,
     .causal = true,
     .window = 10,
     .tp = 4},
    {.name = "cp 2, gathered", .batch = 2, .seq = 44, .heads = 2, .kv_heads = 1, .rows = 8, .causal = true, .cp = 2},
    {.name = "cp 4, ring",
     .seq = 44,
     .heads = 2,
     .kv_heads = 2,
     .rows = 8,
     .causal = true,
     .soft_cap = 2,
     .cp = 4,
     .ring = true},
    {.name = "cp 2, tp 2, dp 2, gathered, backward",
     .dtype = CT_DTYPE_BF16,
     .batch = 2,
     .seq = 48,
     .heads = 4,
     .kv_heads = 2,
     .rows = 8,
     .causal = true,
     .positions = BACKWARD,
     .dp = 2,
     .tp = 2,
     .cp = 2},
    {.name = "cp 2, tp 2, dp 2, ring, documents",
     .batch = 2,
     .seq = 44,
     .heads = 4,
     .kv_heads = 2,
     .rows = 8,
     .causal = true,
     .segments = true,
     .positions = DOCUMENTS,
     .dp = 2,
     .tp = 2,
     .cp = 2,
     .ring = true},
    {.name = "cp 2, full, ring", .seq = 36, .heads = 2, .kv_heads = 2, .rows = 16, .cp = 2, .ring = true},
};

/* ---- inputs ---- */

static int64_t or_one(int64_t size)
{
    return CT_MAX(size, 1);
}

static int64_t kv_seq_of(const attention_case *c)
{
    return c->kv_seq ? c->kv_seq : c->seq;
}

static ct_dtype dtype_of(const attention_case *c)
{
    return c->dtype ? c->dtype : CT_DTYPE_F32;
}

typedef struct input_type {
    const char *name, *axes;
    ct_dtype dtype;
    int rank;
    int64_t sizes[4];
} input_type;

static input_type type_of(const attention_case *c, int input, ct_dtype dtype)
{
    int64_t batch = or_one(c->batch), dim = c->head_dim ? c->head_dim : 8, kv_seq = kv_seq_of(c);
    bool has_rows = c->positions == DOCUMENTS;
    switch (input) {
    case Q: return (input_type){"q", "batch seq heads head_dim", dtype, 4, {batch, c->seq, c->heads, dim}};
    case D_RESULT:
        return (input_type){"d_result", "batch seq heads head_dim", dtype, 4, {batch, c->seq, c->heads, dim}};
    case D_LSE: return (input_type){"d_lse", "batch heads seq", CT_DTYPE_F32, 3, {batch, c->heads, c->seq}};
    case K: return (input_type){"k", "batch kv_seq kv_heads head_dim", dtype, 4, {batch, kv_seq, c->kv_heads, dim}};
    case V: return (input_type){"v", "batch kv_seq kv_heads head_dim", dtype, 4, {batch, kv_seq, c->kv_heads, dim}};
    case POSITIONS:
        if (has_rows) return (input_type){"positions", "batch seq", CT_DTYPE_S32, 2, {batch, c->seq}};
        return (input_type){"positions", "seq", CT_DTYPE_S32, 1, {c->seq}};
    case KV_POSITIONS:
        if (has_rows) return (input_type){"kv_positions", "batch kv_seq", CT_DTYPE_S32, 2, {batch, kv_seq}};
        return (input_type){"kv_positions", "kv_seq", CT_DTYPE_S32, 1, {kv_seq}};
    case SEGMENTS: return (input_type){"segments", "batch seq", CT_DTYPE_S32, 2, {batch, c->seq}};
    default: return (input_type){"kv_segments", "batch kv_seq", CT_DTYPE_S32, 2, {batch, kv_seq}};
    }
}

/* A row's documents: three, of lengths that differ from row to row. */
static int64_t segment_of(int64_t column, int64_t row, int64_t length, int64_t *out_start)
{
    int64_t first = length / 3 + row, second = length / 3 * 2 - row;
    *out_start = column < first ? 0 : column < second ? first : second;
    return column < first ? 0 : column < second ? 1 : 2;
}

static double value_of(const attention_case *c, int input, int64_t index)
{
    if (input <= D_LSE) {
        uint32_t bits[2];
        ct_threefry((const uint32_t[2]){(uint32_t)input, 7}, (const uint32_t[2]){(uint32_t)index, 0}, bits);
        return (bits[0] / 2147483648.0 - 1) * (input == Q ? 2 : 1);
    }
    bool is_of_keys = input == KV_POSITIONS || input == KV_SEGMENTS;
    int64_t length = is_of_keys ? kv_seq_of(c) : c->seq, column = index % length, start;
    int64_t segment = segment_of(column, index / length, length, &start);
    if (input >= SEGMENTS) return (double)segment;
    switch (c->positions) {
    case SHIFTED: return (double)(column + (is_of_keys ? 0 : 5));
    case EARLY: return (double)(column + (is_of_keys ? 12 : 0));
    case BACKWARD: return (double)(length - 1 - column);
    case DOCUMENTS: return (double)(column - start);
    default: return (double)column;
    }
}

/* as: the dtype that values are rounded to first. */
static ct_array array_of(const attention_case *c, int input, ct_dtype dtype, ct_dtype as)
{
    input_type type = type_of(c, input, dtype), rounded_type = type_of(c, input, as);
    ct_array array = ct_array_new(type.dtype, type.sizes, type.rank);
    ct_array rounded = ct_array_new(rounded_type.dtype, type.sizes, type.rank);
    for (int64_t i = 0; i < ct_array_num_elements(&array); i++) {
        ct_array_set(&rounded, i, value_of(c, input, i));
        ct_array_set(&array, i, ct_array_get(&rounded, i));
    }
    ct_array_free(&rounded);
    return array;
}

/* ---- programs ---- */

/* is_placed: inputs and outputs lie on the mesh as attention has them, else they are whole. */
static ct_graph *build(const attention_case *c, ct_dtype dtype, const ct_kernels *kernels, const ct_parallel *parallel,
                       bool is_placed)
{
    ct_graph *graph = ct_graph_new("attention");
    ct_kernels_attach(graph, kernels);
    if (parallel) ct_parallel_attach(graph, parallel);
    ct_tensor *x[NUM_INPUTS], *lse, *gradients[3];
    for (int i = 0; i < NUM_INPUTS; i++) {
        input_type type = type_of(c, i, dtype);
        char axes[128] = "";
        int dim = 0;
        for (const char *word = type.axes; *word; word += strspn(word, " ")) {
            int length = (int)strcspn(word, " ");
            snprintf(axes + strlen(axes), sizeof(axes) - strlen(axes), "%.*s=%lld ", length, word,
                     (long long)type.sizes[dim++]);
            word += length;
        }
        x[i] = ct_input(graph, type.name, type.dtype, axes);
        ct_sharding sharding = {0};
        if (is_placed) sharding = ct_parallel_activation(parallel, x[i]->rank, x[i]->axes);
        if (parallel) ct_parallel_set_input(graph, x[i], &sharding);
    }
    ct_attention_opts opts = {
        .causal = c->causal, .window = c->window, .scale = c->scale, .soft_cap = c->soft_cap, .out_logsumexp = &lse};
    if (c->positions) opts.positions = x[POSITIONS], opts.kv_positions = x[KV_POSITIONS];
    if (c->segments) opts.segments = x[SEGMENTS], opts.kv_segments = x[KV_SEGMENTS];
    ct_tensor *result = ct_attention(x[Q], x[K], x[V], &opts);
    if (ct_graph_has_failed(graph)) return graph;
    expect_ok(
        ct_grad_from(graph, 2, (ct_tensor *[]){result, lse}, (ct_tensor *[]){x[D_RESULT], x[D_LSE]}, x, 3, gradients));
    ct_tensor *outputs[NUM_OUTPUTS] = {result, lse, gradients[0], gradients[1], gradients[2]};
    for (int i = 0; i < NUM_OUTPUTS; i++) {
        ct_output(graph, OUTPUT_NAMES[i], outputs[i], NULL);
        ct_sharding sharding = {0};
        if (is_placed) sharding = ct_parallel_activation(parallel, outputs[i]->rank, outputs[i]->axes);
        if (parallel) ct_parallel_set_output(graph, i, &sharding);
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

static void run(ct_client *client, const attention_case *c, ct_dtype dtype, const ct_kernels *kernels,
                const ct_parallel *parallel, ct_array outputs[NUM_OUTPUTS])
{
    char *text = text_of(build(c, dtype, kernels, parallel, false));
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
    free(text);
}

/* ---- the table ---- */

static void compare(const attention_case *c, const char *form, const ct_array *found, const ct_array *expected)
{
    double roundoff = c->dtype == CT_DTYPE_BF16 ? 0.01 : c->dtype == CT_DTYPE_F16 ? 2e-3 : 1e-5;
    if (c->dtype == CT_DTYPE_F64) roundoff = 1e-12;
    int num_empty = 0;
    for (int i = 0; i < NUM_OUTPUTS; i++) {
        double tolerance = i == LSE ? 1e-5 : roundoff, worst = 0, largest = 0;
        assert_int_equal(ct_array_num_elements(&found[i]), ct_array_num_elements(&expected[i]));
        for (int64_t j = 0; j < ct_array_num_elements(&found[i]); j++) {
            double a = ct_array_get(&found[i], j), b = ct_array_get(&expected[i], j);
            if (i == LSE && isinf(b) && a <= b) {
                num_empty++;
                continue;
            }
            if (!isfinite(a)) fail_msg("%s, %s: %s %lld is %g", form, c->name, OUTPUT_NAMES[i], (long long)j, a);
            worst = fmax(worst, fabs(a - b));
            largest = fmax(largest, fabs(b));
        }
        if (!(worst <= tolerance * fmax(largest, 0.1)))
            fail_msg("%s, %s: %s is off by %g of %g", form, c->name, OUTPUT_NAMES[i], worst, largest);
    }
    assert_int_equal(num_empty > 0, c->positions == EARLY);
}

static const ct_sharding_axis AXES[] = {{"batch", "dp", NULL, false},
                                        {"seq", "cp", NULL, false},
                                        {"kv_seq", "cp", NULL, false},
                                        {"heads", "tp", NULL, false},
                                        {"kv_heads", "tp_kv", NULL, false}};
static const ct_sharding_table TABLE = {.axes = AXES, .num_axes = CT_COUNT(AXES), .fsdp_axes = ""};

static ct_parallel parallel_of(const attention_case *c)
{
    ct_parallel parallel = {.table = &TABLE, .rotate = c->ring ? CT_ROTATE_RING : CT_ROTATE_ALLGATHER};
    ct_mesh_opts opts = {.degrees = {1, or_one(c->dp), or_one(c->cp), or_one(c->tp)},
                         .num_devices = or_one(c->dp) * or_one(c->cp) * or_one(c->tp),
                         .num_kv_heads = c->kv_heads};
    expect_ok(ct_mesh_init(&opts, &parallel.mesh));
    return parallel;
}

static ct_kernels kernels_of(const attention_case *c, ct_kernel_form form)
{
    ct_attention_blocks blocks = {.q = c->rows, .kv = c->kv_rows ? c->kv_rows : c->rows};
    blocks.q_dkv = c->back_rows ? c->back_rows : blocks.q;
    blocks.kv_dkv = c->back_kv_rows ? c->back_kv_rows : blocks.kv;
    return (ct_kernels){.attention = form, .platform = "cpu", .attention_blocks = blocks};
}

static void test_table(void **state)
{
    (void)state;
    static const ct_kernel_form forms[] = {CT_KERNEL_DEFINITION, CT_KERNEL_PORTABLE};
    ct_client *client = ct_test_client(8);
    for (size_t n = 0; n < CT_COUNT(CASES); n++) {
        const attention_case *c = &CASES[n];
        ct_array expected[NUM_OUTPUTS], found[NUM_OUTPUTS];
        run(client, c, CT_DTYPE_F64, NULL, NULL, expected);
        ct_parallel parallel = parallel_of(c);
        for (size_t f = 0; f < CT_COUNT(forms); f++) {
            if (forms[f] == CT_KERNEL_DEFINITION && (!c->dtype || parallel.mesh.num_devices > 1)) continue;
            ct_kernels kernels = kernels_of(c, forms[f]);
            run(client, c, dtype_of(c), &kernels, parallel.mesh.num_devices > 1 ? &parallel : NULL, found);
            compare(c, ct_kernel_form_name(forms[f]), found, expected);
            for (int i = 0; i < NUM_OUTPUTS; i++) ct_array_free(&found[i]);
        }
        for (int i = 0; i < NUM_OUTPUTS; i++) ct_array_free(&expected[i]);
    }
    ct_client_free(client);
}

/* ---- what the programs hold ---- */

static int count(const char *text, const char *word)
{
    int occurrences = 0;
    for (const char *at = text; (at = strstr(at, word)); at++) occurrences++;
    return occurrences;
}

static void test_size_of_program(void **state)
{
    (void)state;
    attention_case small = {.name = "small", .seq = 64, .heads = 2, .kv_heads = 1, .rows = 16, .causal = true};
    attention_case large = small;
    large.seq = 1 << 17;
    ct_kernels kernels = kernels_of(&small, CT_KERNEL_PORTABLE);
    char *a = text_of(build(&small, CT_DTYPE_F32, &kernels, NULL, false));
    char *b = text_of(build(&large, CT_DTYPE_F32, &kernels, NULL, false));
    assert_int_equal(count(a, "stablehlo."), count(b, "stablehlo."));
    assert_null(strstr(b, "131072x131072"));
    assert_null(strstr(b, "131072x16x"));
    free(a);
    free(b);
}

/* On a mesh of dp and tp nothing moves, where all lies as attention has it. */
static void test_no_collective(void **state)
{
    (void)state;
    attention_case c = {.name = "dp2 tp2",
                        .batch = 2,
                        .seq = 32,
                        .heads = 4,
                        .kv_heads = 2,
                        .rows = 8,
                        .causal = true,
                        .segments = true,
                        .positions = DOCUMENTS,
                        .dp = 2,
                        .tp = 2};
    ct_kernels kernels = kernels_of(&c, CT_KERNEL_PORTABLE);
    ct_parallel parallel = parallel_of(&c);
    char *text = text_of(build(&c, CT_DTYPE_F32, &kernels, &parallel, true));
    assert_int_equal(count(text, "stablehlo.all_") + count(text, "stablehlo.reduce_scatter"), 0);
    assert_int_equal(count(text, "stablehlo.collective_permute"), 0);
    free(text);
}

static void test_refusal(void **state)
{
    (void)state;
    attention_case c = {.name = "refused", .seq = 8, .heads = 2, .kv_heads = 1, .rows = 8};
    ct_kernels kernels = {.attention = CT_KERNEL_MOSAIC, .platform = "cpu"};
    ct_graph *graph = build(&c, CT_DTYPE_F32, &kernels, NULL, false);
    expect_error(ct_graph_check(graph), CT_CODE_INVALID_ARGUMENT, "mosaic");
    ct_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_table), cmocka_unit_test(test_size_of_program),
                                       cmocka_unit_test(test_no_collective), cmocka_unit_test(test_refusal)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
