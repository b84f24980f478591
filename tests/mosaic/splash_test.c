/* Splash attention, its kernels interpreted on the host, against the definition in f64: result, log-sum-exp, gradients
 * of q, k and v over a table of shapes, dtypes, masks, blocks and meshes. And which blocks are visited.
 */
#include <math.h>

#include "autodiff/grad.h"
#include "base/rng.h"
#include "calls.h"
#include "graph/node.h"
#include "graph/ops.h"
#include "graph/remat.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/mosaic.h"
#include "kernels/kernel.h"
#include "pjrt/testing.h"
#include "spmd/localize.h"

enum { Q, K, V, D_RESULT, D_LSE, POSITIONS, KV_POSITIONS, SEGMENTS, KV_SEGMENTS, NUM_INPUTS };
enum { RESULT, LSE, DQ, DK, DV, NUM_OUTPUTS };
static const char *const INPUT_NAMES[NUM_INPUTS] = {
    "q", "k", "v", "d_result", "d_lse", "positions", "kv_positions", "segments", "kv_segments"};
static const char *const OUTPUT_NAMES[NUM_OUTPUTS] = {"result", "log-sum-exp", "dq", "dk", "dv"};

typedef enum position_kind {
    IN_ORDER,  /* none are given */
    SHIFTED,   /* [seq]: queries begin 70 after keys */
    EARLY,     /* [seq]: the first queries stand before all keys, and see nothing */
    BACKWARD,  /* [seq]: from the last to the first */
    HEAD_TAIL, /* [seq]: quarters 0 3 1 2, as a balanced context parallel has them */
    DOCUMENTS, /* [batch seq]: beginning anew with each segment */
} position_kind;

typedef struct splash_case {
    const char *name;
    ct_dtype dtype;                    /* 0: bf16 */
    int64_t batch, seq, kv_seq;        /* batch 0: 1; kv_seq 0: seq */
    int64_t heads, kv_heads, head_dim; /* 0: 1, heads, 64 */
    ct_attention_blocks blocks;        /* 0: 128 */
    bool causal, segments;
    int64_t window;
    position_kind positions;
    double scale, soft_cap;
    int64_t dp, tp, cp; /* 0: 1 */
    bool ring;
    bool in_parts; /* the fused backward's scratch holds one block of queries */
    int64_t busy;  /* not 0: steps of the forward kernel that compute */
    bool is_drawn; /* whether some query sees nothing is not known */
} splash_case;

#define F32 CT_DTYPE_F32
static const splash_case CASES[] = {
    {.name = "one token", .seq = 1, .causal = true},
    {.name = "one query, many keys", .seq = 1, .kv_seq = 300, .heads = 2, .kv_heads = 1, .dtype = F32},
    {.name = "full", .seq = 256, .heads = 2, .busy = 8},
    {.name = "full, no multiple of the block", .seq = 200, .kv_seq = 333, .dtype = F32},
    {.name = "causal", .seq = 384, .heads = 2, .causal = true, .dtype = F32, .busy = 12},
    {.name = "causal, bf16", .seq = 384, .heads = 2, .causal = true, .busy = 12},
    {.name = "causal, blocks of other sizes",
     .seq = 500,
     .causal = true,
     .dtype = F32,
     .blocks = {.q = 128, .kv = 256, .kv_compute = 128, .q_dkv = 256, .kv_dkv = 384, .kv_dkv_compute = 128}},
    {.name = "causal, parts of blocks on the diagonal",
     .seq = 600,
     .heads = 2,
     .kv_heads = 1,
     .causal = true,
     .dtype = F32,
     .blocks = {.q = 256, .kv = 256, .kv_compute = 128, .q_dkv = 384, .kv_dkv = 384, .kv_dkv_compute = 128}},
    {.name = "causal, parts of blocks, more queries than keys",
     .seq = 600,
     .kv_seq = 300,
     .causal = true,
     .blocks = {.q = 256, .kv = 256, .kv_compute = 128, .q_dkv = 256, .kv_dkv = 256, .kv_dkv_compute = 128}},
    {.name = "causal, separate backward",
     .seq = 500,
     .heads = 4,
     .kv_heads = 2,
     .causal = true,
     .dtype = F32,
     .blocks = {.separate_backward = true, .q_dq = 256, .kv_dq = 128}},
    {.name = "window", .seq = 512, .window = 100, .dtype = F32},
    {.name = "causal window", .seq = 640, .causal = true, .window = 130, .dtype = F32, .busy = 12},
    {.name = "causal window, separate backward",
     .seq = 384,
     .causal = true,
     .window = 50,
     .blocks = {.separate_backward = true}},
    {.name = "segments", .batch = 2, .seq = 300, .segments = true, .dtype = F32},
    {.name = "segments, causal, separate backward",
     .batch = 2,
     .seq = 300,
     .heads = 2,
     .kv_heads = 1,
     .causal = true,
     .segments = true,
     .blocks = {.separate_backward = true}},
    {.name = "documents",
     .batch = 2,
     .seq = 320,
     .heads = 2,
     .kv_heads = 1,
     .causal = true,
     .segments = true,
     .positions = DOCUMENTS,
     .dtype = F32},
    {.name = "soft cap and scale", .seq = 256, .causal = true, .soft_cap = 1.5, .scale = 0.8, .dtype = F32},
    {.name = "soft cap, separate backward",
     .seq = 256,
     .causal = true,
     .soft_cap = 5,
     .blocks = {.separate_backward = true}},
    {.name = "shifted queries", .seq = 140, .kv_seq = 280, .causal = true, .positions = SHIFTED, .dtype = F32},
    {.name = "rows that see nothing",
     .seq = 300,
     .heads = 2,
     .causal = true,
     .soft_cap = 2,
     .positions = EARLY,
     .dtype = F32},
    {.name = "backward", .seq = 260, .causal = true, .positions = BACKWARD, .dtype = F32},
    {.name = "head-tail", .seq = 512, .causal = true, .positions = HEAD_TAIL, .dtype = F32, .busy = 10},
    {.name = "groups of 8", .seq = 140, .heads = 8, .kv_heads = 1, .causal = true, .head_dim = 32},
    {.name = "64 heads in groups of 4", .seq = 20, .heads = 64, .kv_heads = 16, .causal = true, .head_dim = 16},
    {.name = "head_dim 128", .seq = 256, .heads = 2, .kv_heads = 1, .head_dim = 128, .causal = true},
    {.name = "head_dim 192", .seq = 130, .head_dim = 192, .causal = true},
    {.name = "head_dim 256", .seq = 256, .head_dim = 256, .causal = true, .window = 100, .dtype = F32},
    {.name = "fused in parts",
     .batch = 2,
     .seq = 600,
     .heads = 8,
     .kv_heads = 1,
     .causal = true,
     .segments = true,
     .dtype = F32,
     .in_parts = true},
    {.name = "fused in parts, bf16", .seq = 400, .kv_seq = 300, .heads = 8, .kv_heads = 1, .in_parts = true},
    {.name = "dp 2, tp 2, documents",
     .batch = 2,
     .seq = 200,
     .heads = 4,
     .kv_heads = 2,
     .causal = true,
     .segments = true,
     .positions = DOCUMENTS,
     .dp = 2,
     .tp = 2},
    {.name = "tp 4, kv heads shared by two",
     .seq = 140,
     .heads = 8,
     .kv_heads = 2,
     .causal = true,
     .window = 90,
     .dtype = F32,
     .tp = 4},
    {.name = "cp 2, gathered", .seq = 512, .heads = 2, .kv_heads = 1, .causal = true, .dtype = F32, .cp = 2},
    {.name = "cp 4, ring", .seq = 512, .causal = true, .soft_cap = 2, .dtype = F32, .cp = 4, .ring = true},
    {.name = "cp 2, ring, full, separate backward",
     .seq = 300,
     .heads = 2,
     .kv_heads = 1,
     .cp = 2,
     .ring = true,
     .blocks = {.separate_backward = true}},
    {.name = "cp 2, ring, rows that see nothing",
     .seq = 520,
     .causal = true,
     .positions = EARLY,
     .dtype = F32,
     .cp = 2,
     .ring = true},
    {.name = "cp 2, tp 2, dp 2, ring, documents",
     .batch = 2,
     .seq = 512,
     .heads = 4,
     .kv_heads = 2,
     .causal = true,
     .segments = true,
     .positions = DOCUMENTS,
     .dtype = F32,
     .dp = 2,
     .tp = 2,
     .cp = 2,
     .ring = true},
    {.name = "cp 2, tp 2, dp 2, head-tail",
     .batch = 2,
     .seq = 512,
     .heads = 2,
     .causal = true,
     .positions = HEAD_TAIL,
     .dp = 2,
     .tp = 2,
     .cp = 2},
};

/* ---- inputs ---- */

static int64_t or_one(int64_t size)
{
    return CT_MAX(size, 1);
}

static int64_t kv_seq_of(const splash_case *c)
{
    return c->kv_seq ? c->kv_seq : c->seq;
}

static int64_t kv_heads_of(const splash_case *c)
{
    return c->kv_heads ? c->kv_heads : or_one(c->heads);
}

static ct_dtype dtype_of(const splash_case *c)
{
    return c->dtype ? c->dtype : CT_DTYPE_BF16;
}

/* An array of zeros, and its axes. */
static ct_array type_of(const splash_case *c, int input, ct_dtype dtype, const char **out_axes)
{
    int64_t batch = or_one(c->batch), dim = c->head_dim ? c->head_dim : 64, heads = or_one(c->heads);
    bool is_key = input == K || input == V, is_of_keys = is_key || input == KV_POSITIONS || input == KV_SEGMENTS;
    int64_t length = is_of_keys ? kv_seq_of(c) : c->seq;
    if (input == D_LSE) {
        *out_axes = "batch heads seq";
        return ct_array_new(CT_DTYPE_F32, (int64_t[]){batch, heads, length}, 3);
    }
    if (input < POSITIONS) {
        *out_axes = is_key ? "batch kv_seq kv_heads head_dim" : "batch seq heads head_dim";
        return ct_array_new(dtype, (int64_t[]){batch, length, is_key ? kv_heads_of(c) : heads, dim}, 4);
    }
    bool has_rows = input >= SEGMENTS || c->positions == DOCUMENTS;
    *out_axes = is_of_keys ? "batch kv_seq" : "batch seq";
    if (!has_rows) *out_axes += strlen("batch ");
    int64_t sizes[2] = {batch, length};
    return ct_array_new(CT_DTYPE_S32, has_rows ? sizes : sizes + 1, has_rows ? 2 : 1);
}

/* A row's documents: three, of lengths that differ from row to row. */
static int64_t segment_of(int64_t column, int64_t row, int64_t length, int64_t *out_start)
{
    int64_t first = length / 3 + row, second = length / 3 * 2 - row;
    *out_start = column < first ? 0 : column < second ? first : second;
    return column < first ? 0 : column < second ? 1 : 2;
}

static double value_of(const splash_case *c, int input, int64_t index)
{
    if (input <= D_LSE) {
        uint32_t bits[2];
        ct_threefry((const uint32_t[2]){(uint32_t)input, 7}, (const uint32_t[2]){(uint32_t)index, 0}, bits);
        return (bits[0] / 2147483648.0 - 1) * (input == Q ? 2 : 1);
    }
    bool is_of_keys = input == KV_POSITIONS || input == KV_SEGMENTS;
    int64_t length = is_of_keys ? kv_seq_of(c) : c->seq, column = index % length, start;
    int64_t segment = segment_of(column, index / length, length, &start), quarter = length / 4;
    if (input >= SEGMENTS) return (double)segment;
    switch (c->positions) {
    case SHIFTED: return (double)(column + (is_of_keys ? 0 : 70));
    case EARLY: return (double)(column + (is_of_keys ? 140 : 0));
    case BACKWARD: return (double)(length - 1 - column);
    case HEAD_TAIL: return (double)(column % quarter + quarter * (int64_t[]){0, 3, 1, 2}[column / quarter]);
    case DOCUMENTS: return (double)(column - start);
    default: return (double)column;
    }
}

/* as: the dtype that values are rounded to first. */
static ct_array array_of(const splash_case *c, int input, ct_dtype dtype, ct_dtype as)
{
    const char *axes;
    ct_array array = type_of(c, input, dtype, &axes), rounded = type_of(c, input, as, &axes);
    for (int64_t i = 0; i < ct_array_num_elements(&array); i++) {
        ct_array_set(&rounded, i, value_of(c, input, i));
        ct_array_set(&array, i, ct_array_get(&rounded, i));
    }
    ct_array_free(&rounded);
    return array;
}

/* ---- programs ---- */

static void declare_axes(ct_graph *graph, const char *axes, const ct_array *array)
{
    int dim = 0;
    for (const char *word = axes; *word; word += strspn(word, " ")) {
        char name[32];
        size_t length = strcspn(word, " ");
        snprintf(name, sizeof(name), "%.*s", (int)length, word);
        ct_graph_declare_axis(graph, name, array->sizes[dim++]);
        word += length;
    }
}

static ct_graph *build(const splash_case *c, ct_dtype dtype, const ct_kernels *kernels, const ct_parallel *parallel)
{
    ct_graph *graph = ct_graph_new("splash");
    ct_kernels_attach(graph, kernels);
    if (parallel) ct_parallel_attach(graph, parallel);
    ct_tensor *x[NUM_INPUTS], *lse, *gradients[3];
    for (int i = 0; i < NUM_INPUTS; i++) {
        const char *axes;
        ct_array array = type_of(c, i, dtype, &axes);
        declare_axes(graph, axes, &array);
        x[i] = ct_input(graph, INPUT_NAMES[i], array.dtype, axes);
        if (parallel) ct_parallel_set_input(graph, x[i], &(ct_sharding){0});
        ct_array_free(&array);
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

static void run(ct_client *client, const splash_case *c, ct_dtype dtype, const ct_kernels *kernels,
                const ct_parallel *parallel, ct_array outputs[NUM_OUTPUTS])
{
    int num_calls;
    char *printed = text_of(build(c, dtype, kernels, parallel)), *text = mosaic_rewrite(printed, &num_calls);
    bool is_separate = kernels && kernels->attention_blocks.separate_backward;
    assert_int_equal(num_calls, kernels ? (2 + is_separate) * (1 + c->ring) : 0);
    assert_int_equal(strstr(text, "stablehlo.while") != NULL, kernels && (c->in_parts || c->ring));
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

static void compare(const splash_case *c, const ct_array *found, const ct_array *expected)
{
    double roundoff = c->dtype == F32 ? 2e-6 : 8e-3;
    int num_empty = 0;
    for (int i = 0; i < NUM_OUTPUTS; i++) {
        double tolerance = i == LSE ? 2e-6 : roundoff, worst = 0, largest = 0;
        assert_int_equal(ct_array_num_elements(&found[i]), ct_array_num_elements(&expected[i]));
        for (int64_t j = 0; j < ct_array_num_elements(&found[i]); j++) {
            double a = ct_array_get(&found[i], j), b = ct_array_get(&expected[i], j);
            if (i == LSE && isinf(b) && a <= b) {
                num_empty++;
                continue;
            }
            if (!isfinite(a)) fail_msg("%s: %s %lld is %g", c->name, OUTPUT_NAMES[i], (long long)j, a);
            worst = fmax(worst, fabs(a - b));
            largest = fmax(largest, fabs(b));
        }
        if (!(worst <= tolerance * fmax(largest, 0.1)))
            fail_msg("%s: %s is off by %g of %g", c->name, OUTPUT_NAMES[i], worst, largest);
    }
    if (!c->is_drawn) assert_int_equal(num_empty > 0, c->positions == EARLY);
}

static const ct_sharding_axis AXES[] = {{"batch", "dp", NULL, false},
                                        {"seq", "cp", NULL, false},
                                        {"kv_seq", "cp", NULL, false},
                                        {"heads", "tp", NULL, false},
                                        {"kv_heads", "tp_kv", NULL, false}};
static const ct_sharding_table TABLE = {.axes = AXES, .num_axes = CT_COUNT(AXES), .fsdp_axes = ""};

static ct_parallel parallel_of(const splash_case *c)
{
    ct_parallel parallel = {.table = &TABLE, .rotate = c->ring ? CT_ROTATE_RING : CT_ROTATE_ALLGATHER};
    ct_mesh_opts opts = {.degrees = {1, or_one(c->dp), or_one(c->cp), or_one(c->tp)},
                         .num_devices = or_one(c->dp) * or_one(c->cp) * or_one(c->tp),
                         .num_kv_heads = kv_heads_of(c)};
    expect_ok(ct_mesh_init(&opts, &parallel.mesh));
    return parallel;
}

static ct_kernels kernels_of(const splash_case *c)
{
    ct_attention_blocks b = c->blocks;
    int64_t *const sizes[] = {&b.q, &b.kv, &b.kv_compute, &b.q_dkv, &b.kv_dkv, &b.kv_dkv_compute, &b.q_dq, &b.kv_dq};
    for (size_t i = 0; i < CT_COUNT(sizes); i++)
        if (!*sizes[i]) *sizes[i] = 128;
    return (ct_kernels){.attention = CT_KERNEL_MOSAIC,
                        .platform = "tpu",
                        .chip = "v5e",
                        .attention_blocks = b,
                        .vector_bytes = c->in_parts ? 6 << 20 : 0};
}

/* The kernels against the definition in f64, on the same values. */
static void check_case(ct_client *client, const splash_case *c)
{
    const char *only = getenv("CTITAN_TEST_CASE");
    if (only && !strstr(c->name, only)) return;
    ct_array expected[NUM_OUTPUTS], found[NUM_OUTPUTS];
    run(client, c, CT_DTYPE_F64, NULL, NULL, expected);
    ct_parallel parallel = parallel_of(c);
    ct_kernels kernels = kernels_of(c);
    run(client, c, dtype_of(c), &kernels, parallel.mesh.num_devices > 1 ? &parallel : NULL, found);
    compare(c, found, expected);
    int64_t busy = mosaic_take_busy_steps("ctitan_splash_forward");
    if (c->busy) assert_int_equal(busy, c->busy);
    for (int i = 0; i < NUM_OUTPUTS; i++) {
        ct_array_free(&found[i]);
        ct_array_free(&expected[i]);
    }
}

static ct_client *client_new(void)
{
    ct_client *client = ct_test_client(8);
    expect_ok(mosaic_register(ct_client_plugin(client)));
    return client;
}

static void test_table(void **state)
{
    (void)state;
    ct_client *client = client_new();
    for (size_t n = 0; n < CT_COUNT(CASES); n++) check_case(client, &CASES[n]);
    ct_client_free(client);
}

/* ---- combinations, drawn ---- */

typedef struct dice {
    uint32_t number, throws;
} dice;

/* 0 .. sides - 1 */
static int64_t draw(dice *d, int64_t sides)
{
    uint32_t bits[2];
    ct_threefry((const uint32_t[2]){d->number, 11}, (const uint32_t[2]){d->throws++, 0}, bits);
    return (int64_t)(bits[0] % (uint32_t)sides);
}

static splash_case draw_case(uint32_t number)
{
    static const int64_t dims[] = {64, 96, 128, 256}, groups[] = {1, 2, 3, 8};
    static char name[32];
    dice d = {.number = number};
    splash_case c = {.name = name, .is_drawn = true, .dtype = draw(&d, 2) ? F32 : CT_DTYPE_BF16};
    snprintf(name, sizeof(name), "drawn %u", number);
    c.batch = 1 + draw(&d, 2);
    c.seq = 1 + draw(&d, 400);
    c.kv_heads = 1 + draw(&d, 2);
    c.heads = c.kv_heads * groups[draw(&d, 4)];
    c.head_dim = dims[draw(&d, 4)];
    c.causal = draw(&d, 3) > 0;
    c.window = draw(&d, 3) ? 0 : 1 + draw(&d, 200);
    c.segments = draw(&d, 2) > 0;
    c.soft_cap = draw(&d, 3) ? 0 : 3;
    static const position_kind positions[] = {IN_ORDER, SHIFTED, BACKWARD, DOCUMENTS};
    c.positions = positions[draw(&d, 4)];
    c.blocks.separate_backward = draw(&d, 2) > 0;
    int64_t *const sizes[] = {&c.blocks.q,      &c.blocks.kv,   &c.blocks.q_dkv,
                              &c.blocks.kv_dkv, &c.blocks.q_dq, &c.blocks.kv_dq};
    for (size_t i = 0; i < CT_COUNT(sizes); i++) *sizes[i] = 128 * (1 + draw(&d, 3));
    return c;
}

static void test_drawn(void **state)
{
    (void)state;
    const char *wanted = getenv("CTITAN_TEST_DRAWN"); /* how many, for more than a regular run */
    ct_client *client = client_new();
    for (uint32_t n = 0; n < (wanted ? strtoul(wanted, NULL, 10) : 8); n++) {
        splash_case c = draw_case(n);
        check_case(client, &c);
    }
    ct_client_free(client);
}

/* ---- refusals ---- */

static void expect_refused(const splash_case *c, ct_dtype dtype, const ct_kernels *kernels, const char *text)
{
    ct_graph *graph = build(c, dtype, kernels, NULL);
    expect_error(ct_graph_check(graph), CT_CODE_INVALID_ARGUMENT, text);
    ct_graph_free(graph);
}

static void test_refusals(void **state)
{
    (void)state;
    splash_case c = {.name = "refused", .seq = 4096, .head_dim = 256, .causal = true};
    ct_kernels kernels = kernels_of(&c);
    kernels.attention_blocks.q = 100;
    expect_refused(&c, CT_DTYPE_BF16, &kernels, "sa_block_q = 100 must be a multiple of 128");
    kernels.attention_blocks = (ct_attention_blocks){.kv = 512, .kv_compute = 384};
    expect_refused(&c, CT_DTYPE_BF16, &kernels, "sa_block_kv_compute = 384 must divide 512");
    kernels.chip = "tpu7x";
    kernels.attention_blocks = (ct_attention_blocks){.q = 4096, .kv = 2048, .kv_compute = 2048};
    expect_refused(&c, CT_DTYPE_BF16, &kernels,
                   "takes 87 MiB of vector memory at head_dim 256, and a kernel may take 63 MiB; set sa_block_q, "
                   "sa_block_kv, sa_block_kv_compute to 2048, 2048, 2048");
    kernels.attention_blocks = (ct_attention_blocks){.q_dkv = 4096, .kv_dkv = 4096, .kv_dkv_compute = 4096};
    expect_refused(&c, CT_DTYPE_BF16, &kernels, "set sa_block_q_dkv, sa_block_kv_dkv, sa_block_kv_dkv_compute to ");
    kernels.attention_blocks = (ct_attention_blocks){.q_dq = 4096, .kv_dq = 4096, .separate_backward = true};
    expect_refused(&c, CT_DTYPE_BF16, &kernels, "set sa_block_q_dq, sa_block_kv_dq to ");
    kernels.attention_blocks = kernels_of(&c).attention_blocks;
    c = (splash_case){.name = "long", .batch = 32, .seq = 1 << 17, .segments = true};
    expect_refused(
        &c, CT_DTYPE_BF16, &kernels,
        "of 1024 blocks of queries and 1024 of keys for each of 32 sequences, take 1536 KiB of scalar memory, "
        "and a kernel may take 960 KiB; set sa_block_q, sa_block_kv, sa_block_kv_compute to at least 2 times");
    kernels = kernels_of(&c);
    c = (splash_case){.name = "refused", .seq = 4096, .head_dim = 256, .causal = true};
    expect_refused(&c, CT_DTYPE_F16, &kernels, "takes bf16 and f32, found f16");
    kernels.platform = "cuda";
    expect_refused(&c, CT_DTYPE_BF16, &kernels, "for TPUs, and the platform is cuda");
    kernels.platform = "tpu";
    kernels.vector_bytes = 1 << 20;
    expect_refused(&c, CT_DTYPE_BF16, &kernels, "no smaller blocks would do");
    c.scale = -1;
    expect_refused(&c, CT_DTYPE_BF16, &kernels, "a scale above 0");
}

static void expect_kernels(const splash_case *c, ct_dtype dtype, const ct_kernels *kernels, bool wanted)
{
    char *text = text_of(build(c, dtype, kernels, NULL));
    assert_int_equal(strstr(text, "tpu_custom_call") != NULL, wanted);
    free(text);
}

/* Auto on a TPU: these kernels, where they can be had. What is asked for is not to be had otherwise. */
static void test_auto(void **state)
{
    (void)state;
    splash_case c = {.name = "auto", .seq = 256, .causal = true};
    ct_kernels kernels = {.platform = "tpu", .chip = "v6e"};
    expect_kernels(&c, CT_DTYPE_BF16, &kernels, true);
    expect_kernels(&c, CT_DTYPE_F16, &kernels, false);
    kernels.attention_blocks.kv = 128;
    expect_refused(&c, CT_DTYPE_F16, &kernels, "takes bf16 and f32, found f16");

    c = (splash_case){
        .name = "auto", .seq = 8192, .head_dim = 256, .soft_cap = 3, .segments = true, .positions = DOCUMENTS};
    kernels = (ct_kernels){.platform = "tpu", .chip = "tpu7x"}; /* whose tuned blocks are too large in f32 */
    expect_kernels(&c, F32, &kernels, true);
    kernels.vector_bytes = 16 << 20;
    expect_kernels(&c, F32, &kernels, true);
    kernels.vector_bytes = 1 << 20;
    expect_kernels(&c, F32, &kernels, false);
    kernels = (ct_kernels){
        .platform = "tpu", .chip = "tpu7x", .attention_blocks = {.q = 2048, .kv = 2048, .kv_compute = 2048}};
    expect_refused(&c, F32, &kernels,
                   "and a kernel may take 63 MiB; set sa_block_q, sa_block_kv, sa_block_kv_compute to ");
}

/* A block that keeps attention's result by name keeps the log-sum-exp, too: its forward kernel runs once. */
static void test_kept(void **state)
{
    (void)state;
    static const char *const names[] = {"kept"};
    const ct_remat_policy policies[] = {{.mode = CT_REMAT_FULL}, {.mode = CT_REMAT_FULL, .num_save = 1, .save = names}};
    const ct_kernels kernels = {.platform = "tpu", .chip = "v6e"};
    splash_case c = {.name = "kept", .seq = 256, .heads = 2, .head_dim = 128, .causal = true};
    for (int i = 0; i < 2; i++) {
        ct_graph *graph = ct_graph_new("kept");
        ct_kernels_attach(graph, &kernels);
        ct_tensor *x[3], *inner[3], *gradients[3];
        for (int j = 0; j < 3; j++) {
            const char *axes;
            ct_array array = type_of(&c, j, CT_DTYPE_BF16, &axes);
            declare_axes(graph, axes, &array);
            x[j] = ct_input(graph, INPUT_NAMES[j], array.dtype, axes);
            ct_array_free(&array);
        }
        ct_checkpoint_begin(graph, &policies[i]);
        for (int j = 0; j < 3; j++) inner[j] = ct_sin(x[j]);
        ct_attention_opts opts = {.causal = true, .checkpoint_name = "kept"};
        ct_tensor *result = ct_attention(inner[Q], inner[K], inner[V], &opts);
        ct_checkpoint_end(graph);
        ct_tensor *loss = ct_sum(ct_convert(result, CT_DTYPE_F32), "batch seq heads head_dim");
        expect_ok(ct_grad(graph, loss, x, 3, gradients));
        ct_output(graph, "loss", loss, NULL);
        for (int j = 0; j < 3; j++) ct_output(graph, OUTPUT_NAMES[DQ + j], gradients[j], NULL);
        int num_calls;
        char *printed = text_of(graph), *text = mosaic_rewrite(printed, &num_calls);
        assert_int_equal(num_calls, i ? 2 : 3);
        free(text);
        free(printed);
    }
}

/* dq has a quarter of the vector memory's whole size: what libtpu keeps of it costs no block. */
static void test_parts(void **state)
{
    (void)state;
    static const struct {
        const char *chip;
        int64_t group, block, wanted;
    } rows[] = {{"v5p", 8, 1024, 4}, {"v5p", 16, 1024, 2}, {"v6e", 4, 2048, 8}};
    for (size_t i = 0; i < CT_COUNT(rows); i++) {
        ct__splash s = {.group = rows[i].group,
                        .head_dim = 128,
                        .blocks = {.q_dkv = rows[i].block},
                        .vector_bytes = ct_mosaic_chip_bytes(rows[i].chip)};
        assert_int_equal(ct__splash_part_blocks(&s), rows[i].wanted);
    }
}

static double flops_of(const splash_case *c, int call)
{
    ct_kernels kernels = kernels_of(c);
    char *text = text_of(build(c, CT_DTYPE_BF16, &kernels, NULL)), *at = text;
    for (int i = 0; i <= call && at; i++) at = strstr(at + 1, "flops");
    assert_non_null(at);
    double flops = strtod(at + strcspn(at, ":") + 1, NULL);
    free(text);
    return flops;
}

/* What XLA is told that a kernel costs: two products forward, five backward, of what the mask shows. */
static void test_costs(void **state)
{
    (void)state;
    splash_case c = {.name = "costs", .batch = 2, .seq = 4096, .heads = 3, .head_dim = 128};
    double product = 2.0 * 2 * 3 * 4096 * 4096 * 128;
    assert_true(flops_of(&c, 0) == 2 * product && flops_of(&c, 1) == 5 * product);
    c.causal = true;
    assert_true(flops_of(&c, 0) == product && flops_of(&c, 1) == 2.5 * product);
    c.window = 1024;
    assert_true(flops_of(&c, 0) == product / 2);
    c.blocks.separate_backward = true;
    assert_true(flops_of(&c, 1) + flops_of(&c, 2) == 7 * product / 4);
}

/* What is refused names sizes that are then taken. */
static void test_sizes_that_fit(void **state)
{
    (void)state;
    static const int64_t dims[] = {64, 128, 256};
    for (int i = 0; i < 3; i++)
        for (ct__splash_kernel kernel = CT__SPLASH_FORWARD; kernel <= CT__SPLASH_DQ; kernel++) {
            ct__splash s = {.element = i ? CT_MOSAIC_F32 : CT_MOSAIC_BF16,
                            .rows = 8,
                            .heads = 8,
                            .group = 2,
                            .q_len = 8192,
                            .num_keys = 8192,
                            .head_dim = dims[i],
                            .mask_batch = 1,
                            .causal = true,
                            .segments = true,
                            .scale = 1,
                            .blocks = {8192, 8192, 8192, 8192, 8192, 8192, 8192, 8192, false},
                            .vector_bytes = 64 << 20};
            s.kv_len = s.num_keys;
            assert_true(ct__splash_vector_bytes(&s, kernel) > s.vector_bytes);
            assert_true(ct__splash_shrink(&s, kernel));
            assert_true(ct__splash_vector_bytes(&s, kernel) <= s.vector_bytes);
            assert_true(ct__splash_vector_bytes(&s, kernel) > s.vector_bytes / 8);
        }
}

/* A program's size does not grow with the sequence. */
static void test_size_of_program(void **state)
{
    (void)state;
    splash_case c = {.name = "size", .seq = 1 << 12, .heads = 2, .causal = true};
    ct_kernels kernels = kernels_of(&c);
    char *small = text_of(build(&c, CT_DTYPE_BF16, &kernels, NULL));
    c.seq = 1 << 17;
    char *large = text_of(build(&c, CT_DTYPE_BF16, &kernels, NULL));
    assert_in_range(strlen(large), strlen(small), strlen(small) * 5 / 4);
    assert_null(strstr(large, "131072x131072"));
    free(small);
    free(large);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table), cmocka_unit_test(test_drawn),          cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_auto),  cmocka_unit_test(test_kept),           cmocka_unit_test(test_parts),
        cmocka_unit_test(test_costs), cmocka_unit_test(test_sizes_that_fit), cmocka_unit_test(test_size_of_program)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
