/* Context parallel attention on eight virtual devices, gathered and as a ring, against the definition on one device:
 * result, log-sum-exp, gradients of q, k and v. And what the programs hold.
 */
#include <math.h>

#include "autodiff/grad.h"
#include "base/rng.h"
#include "graph/ops.h"
#include "kernels/attention/attention.h"
#include "pjrt/testing.h"
#include "spmd/balance.h"
#include "spmd/localize.h"

enum { Q, K, V, POSITIONS, KV_POSITIONS, SEGMENTS, KV_SEGMENTS, NUM_INPUTS };
enum { RESULT, LSE, DQ, DK, DV, NUM_OUTPUTS };
static const char *const OUTPUT_NAMES[NUM_OUTPUTS] = {"result", "log-sum-exp", "dq", "dk", "dv"};

typedef enum position_kind {
    NO_POSITIONS,
    HEAD_TAIL, /* balanced over cp */
    PER_BATCH, /* [batch seq], every row in an order of its own */
    LATE_KEYS, /* keys after most queries: rows that see nothing */
} position_kind;

typedef struct context_case {
    const char *name;
    ct_dtype dtype;       /* 0: f32 */
    int64_t cp[2];        /* its mesh axes; second 0: one */
    int64_t tp, dp, hsdp; /* 0 is 1 */
    int64_t spare;        /* a mesh axis that no tensor uses */
    int64_t heads, kv_heads;
    bool causal, segments, scan, no_lse;
    position_kind positions;
    int64_t window;
    double scale, soft_cap;
} context_case;

enum { BATCH = 4, SEQ = 16, HEAD_DIM = 4 };

static const context_case CASES[] = {
    {.name = "cp2 plain", .cp = {2}, .heads = 4, .kv_heads = 2},
    {.name = "cp2 f64", .dtype = CT_DTYPE_F64, .cp = {2}, .heads = 4, .kv_heads = 2, .causal = true, .soft_cap = 1.5},
    {.name = "cp4 causal bf16", .dtype = CT_DTYPE_BF16, .cp = {4}, .heads = 8, .kv_heads = 2, .causal = true},
    {.name = "cp8 causal", .cp = {8}, .heads = 4, .kv_heads = 1, .causal = true},
    {.name = "cp8 of two axes, head-tail",
     .cp = {2, 4},
     .heads = 2,
     .kv_heads = 2,
     .causal = true,
     .positions = HEAD_TAIL},
    {.name = "cp2 tp2 dp2, 8/2, documents",
     .cp = {2},
     .tp = 2,
     .dp = 2,
     .heads = 8,
     .kv_heads = 2,
     .causal = true,
     .segments = true},
    {.name = "cp2 tp4, 8/2, kv heads shared by two", .cp = {2}, .tp = 4, .heads = 8, .kv_heads = 2, .causal = true},
    {.name = "cp2 tp4, 4/1, kv heads shared by all, bf16",
     .dtype = CT_DTYPE_BF16,
     .cp = {2},
     .tp = 4,
     .heads = 4,
     .kv_heads = 1,
     .causal = true},
    {.name = "cp2 tp2, 8/8, window", .cp = {2}, .tp = 2, .heads = 8, .kv_heads = 8, .window = 3},
    {.name = "cp4 tp2, causal window, soft cap, scale, head-tail",
     .cp = {4},
     .tp = 2,
     .heads = 4,
     .kv_heads = 2,
     .causal = true,
     .positions = HEAD_TAIL,
     .window = 5,
     .scale = 0.7,
     .soft_cap = 2},
    {.name = "hsdp2x2 cp2, documents, positions per row",
     .cp = {2},
     .dp = 2,
     .hsdp = 2,
     .heads = 2,
     .kv_heads = 1,
     .causal = true,
     .segments = true,
     .positions = PER_BATCH},
    {.name = "cp4, rows that see nothing",
     .cp = {4},
     .heads = 4,
     .kv_heads = 2,
     .causal = true,
     .no_lse = true,
     .soft_cap = 1,
     .positions = LATE_KEYS},
    {.name = "cp2 tp2 and an axis that nothing uses",
     .cp = {2},
     .tp = 2,
     .spare = 2,
     .heads = 2,
     .kv_heads = 1,
     .causal = true},
    {.name = "cp2 tp2 in a scan with remat",
     .cp = {2},
     .tp = 2,
     .heads = 4,
     .kv_heads = 2,
     .causal = true,
     .scan = true},
};

/* ---- meshes ---- */

static const ct_sharding_axis AXES[] = {{"batch", "dp", NULL, false},
                                        {"seq", "cp", NULL, false},
                                        {"kv_seq", "cp", NULL, false},
                                        {"heads", "tp", NULL, false},
                                        {"kv_heads", "tp_kv", NULL, false}};
static const ct_sharding_table TABLE = {.axes = AXES, .num_axes = CT_COUNT(AXES), .fsdp_axes = ""};

static ct_parallel parallel_of(const context_case *c, ct_rotate rotate)
{
    ct_parallel parallel = {.table = &TABLE, .rotate = rotate};
    int64_t cp = c->cp[0] * CT_MAX(c->cp[1], 1);
    ct_mesh_opts opts = {.degrees = {CT_MAX(c->hsdp, 1), CT_MAX(c->dp, 1), cp, CT_MAX(c->tp, 1)},
                         .num_devices = cp * CT_MAX(c->hsdp, 1) * CT_MAX(c->dp, 1) * CT_MAX(c->tp, 1),
                         .num_torus = c->cp[1] ? 2 : 0,
                         .torus = {c->cp[0], c->cp[1]},
                         .num_kv_heads = c->kv_heads};
    expect_ok(ct_mesh_init(&opts, &parallel.mesh));
    return parallel;
}

static void attach(ct_graph *graph, const ct_parallel *parallel, int64_t spare)
{
    ct_parallel_attach(graph, parallel);
    if (!spare) return;
    char *mesh = ct_mesh_text(&parallel->mesh), *wider = ct_asprintf("%s spare=%lld", mesh, (long long)spare);
    ct_graph_set_mesh(graph, wider);
    free(mesh);
    free(wider);
}

/* ---- the program ---- */

typedef struct step {
    ct_tensor *k, *v;
    ct_attention_opts opts;
} step;

static void turn(ct_graph *graph, void *context, ct_tensor *const *carries, ct_tensor *const *slices,
                 ct_tensor **out_carries, ct_tensor **out_slices)
{
    (void)graph, (void)slices;
    const step *s = context;
    ct_attention_opts opts = s->opts;
    opts.out_logsumexp = &out_slices[0];
    out_carries[0] = ct_add(carries[0], ct_attention(carries[0], s->k, s->v, &opts));
}

static double uniform(uint32_t stream, uint32_t index)
{
    uint32_t bits[2];
    ct_threefry((const uint32_t[2]){stream, 7}, (const uint32_t[2]){index, 0}, bits);
    return bits[0] / 2147483648.0 - 1;
}

static ct_tensor *random_constant(ct_tensor *like, uint32_t stream)
{
    int64_t sizes[CT_MAX_RANK];
    ct_str axes = {0};
    for (int i = 0; i < like->rank; i++) {
        sizes[i] = like->axes[i].size;
        ct_str_printf(&axes, "%s ", like->axes[i].name);
    }
    ct_array array = ct_array_new(like->dtype, sizes, like->rank);
    for (int64_t i = 0; i < ct_array_num_elements(&array); i++) ct_array_set(&array, i, uniform(stream, (uint32_t)i));
    ct_tensor *constant = ct_constant(like->graph, &array, axes.data);
    ct_array_free(&array);
    ct_str_deinit(&axes);
    return constant;
}

static const char *const INPUT_NAMES[NUM_INPUTS] = {"q",        "k",          "v", "positions", "kv_positions",
                                                    "segments", "kv_segments"};

static void input_axes(const context_case *c, int input, ct_array *out_array, const char **out_axes)
{
    static const char *const axes[NUM_INPUTS] = {"batch seq heads head_dim",
                                                 "batch kv_seq kv_heads head_dim",
                                                 "batch kv_seq kv_heads head_dim",
                                                 "seq",
                                                 "kv_seq",
                                                 "batch seq",
                                                 "batch kv_seq"};
    *out_axes = axes[input];
    ct_dtype dtype = input > V ? CT_DTYPE_S32 : c->dtype ? c->dtype : CT_DTYPE_F32;
    int64_t sizes[4] = {BATCH, SEQ, input == Q ? c->heads : c->kv_heads, HEAD_DIM};
    bool has_rows = input < POSITIONS || input > KV_POSITIONS || c->positions == PER_BATCH;
    if (has_rows && input > V) *out_axes = strstr(*out_axes, "kv") ? "batch kv_seq" : "batch seq";
    *out_array = ct_array_new(dtype, has_rows ? sizes : sizes + 1, input <= V ? 4 : has_rows ? 2 : 1);
}

static double input_value(const context_case *c, int input, int64_t index, const int64_t *order)
{
    int64_t column = index % SEQ, row = index / SEQ;
    switch (input) {
    case Q:
    case K:
    case V: return 1.5 * uniform((uint32_t)input, (uint32_t)index);
    case POSITIONS:
    case KV_POSITIONS:
        if (c->positions == HEAD_TAIL) return (double)order[column];
        if (c->positions == PER_BATCH) return (double)((column * 5 + row) % SEQ);
        return (double)(column + (input == KV_POSITIONS ? SEQ - 3 : 0));
    default: return (double)(column > 4 + row) + (double)(column > 9);
    }
}

static const char *place_of(const ct_tensor *x)
{
    return ct_tensor_find_axis(x, "seq") >= 0 ? "seq=cp" : "kv_seq=cp";
}

/* is_placed: inputs and outputs lie where attention wants them (mesh axis cp alone), else all is whole everywhere. */
static ct_graph *build(const context_case *c, const ct_parallel *parallel, bool is_placed)
{
    ct_graph *graph = ct_graph_new("context");
    if (parallel) attach(graph, parallel, c->spare);
    ct_tensor *x[NUM_INPUTS], *lse, *gradients[3], *result;
    for (int i = 0; i < NUM_INPUTS; i++) {
        ct_array array;
        const char *axes;
        input_axes(c, i, &array, &axes);
        ct_graph_declare_axis(graph, "batch", BATCH);
        ct_graph_declare_axis(graph, "seq", SEQ);
        ct_graph_declare_axis(graph, "kv_seq", SEQ);
        ct_graph_declare_axis(graph, "heads", c->heads);
        ct_graph_declare_axis(graph, "kv_heads", c->kv_heads);
        ct_graph_declare_axis(graph, "head_dim", HEAD_DIM);
        x[i] = ct_input(graph, INPUT_NAMES[i], array.dtype, axes);
        if (parallel) ct_graph_set_input_sharding(graph, x[i], is_placed ? place_of(x[i]) : "");
        ct_array_free(&array);
    }
    step s = {.k = x[K],
              .v = x[V],
              .opts = {.causal = c->causal, .window = c->window, .scale = c->scale, .soft_cap = c->soft_cap}};
    if (c->positions) s.opts.positions = x[POSITIONS], s.opts.kv_positions = x[KV_POSITIONS];
    if (c->segments) s.opts.segments = x[SEGMENTS], s.opts.kv_segments = x[KV_SEGMENTS];
    if (c->scan) {
        static const ct_remat_policy policy = {.mode = CT_REMAT_FULL};
        ct_scan_opts opts = {
            .axis = "layers", .length = 2, .num_carries = 1, .num_outputs = 1, .carries = &x[Q], .remat = &policy};
        ct_scan(graph, &opts, turn, &s, &result, &lse);
    } else {
        s.opts.out_logsumexp = &lse;
        result = ct_attention(x[Q], x[K], x[V], &s.opts);
    }
    if (!ct_graph_has_failed(graph)) {
        ct_tensor *loss =
            ct_sum(ct_convert(ct_mul(result, random_constant(result, 11)), CT_DTYPE_F32), "batch seq heads head_dim");
        const char *rows = c->scan ? "layers batch seq heads" : "batch seq heads";
        if (!c->no_lse) loss = ct_add(loss, ct_sum(ct_mul(lse, random_constant(lse, 12)), rows));
        expect_ok(ct_grad(graph, loss, x, 3, gradients));
        ct_tensor *outputs[NUM_OUTPUTS] = {result, lse, gradients[0], gradients[1], gradients[2]};
        for (int i = 0; i < NUM_OUTPUTS; i++) {
            ct_output(graph, OUTPUT_NAMES[i], outputs[i], NULL);
            if (parallel) ct_graph_set_output_sharding(graph, i, is_placed ? place_of(outputs[i]) : "");
        }
    }
    return graph;
}

/* ---- runs ---- */

static char *text_of(ct_graph *graph)
{
    ct_str text = {0};
    expect_ok(ct_graph_print(graph, &text));
    ct_graph_free(graph);
    return ct_str_release(&text);
}

static void run(ct_client *client, const context_case *c, const ct_parallel *parallel, bool localize,
                ct_array outputs[NUM_OUTPUTS])
{
    int64_t cp = c->cp[0] * CT_MAX(c->cp[1], 1), order[SEQ];
    size_t num_devices = parallel ? (size_t)(parallel->mesh.num_devices * CT_MAX(c->spare, 1)) : 1;
    ct_graph *graph = build(c, parallel, false);
    if (localize) expect_ok(ct_localize(graph, NULL));
    char *text = text_of(graph);
    static const ct_named_value fast = {.name = "xla_backend_optimization_level", .type = CT_VALUE_INT, .integer = 0};
    ct_executable *executable = ct_test_compile(
        client, text, &(ct_compile_opts){.num_partitions = (int)num_devices, .flags = &fast, .num_flags = 1});
    ct_buffer *inputs[8 * NUM_INPUTS] = {0}, *results[8 * NUM_OUTPUTS] = {0};
    expect_ok(ct_head_tail_order(SEQ, cp, order));
    for (int i = 0; i < NUM_INPUTS; i++) {
        ct_array array;
        const char *axes;
        input_axes(c, i, &array, &axes);
        for (int64_t j = 0; j < ct_array_num_elements(&array); j++)
            ct_array_set(&array, j, input_value(c, i, j, order));
        for (size_t d = 0; d < num_devices; d++) {
            ct_device *device;
            expect_ok(ct_executable_device(executable, d, &device));
            expect_ok(ct_buffer_from_host(device, &array, NULL, NULL, &inputs[d * NUM_INPUTS + (size_t)i]));
        }
        ct_array_free(&array);
    }
    expect_ok(ct_executable_execute(executable, inputs, NUM_INPUTS, NULL, results));
    for (int i = 0; i < NUM_OUTPUTS; i++) {
        expect_ok(ct_buffer_to_array(results[i], &outputs[i]));
        for (size_t d = 1; d < num_devices; d++) {
            ct_array other;
            expect_ok(ct_buffer_to_array(results[d * NUM_OUTPUTS + (size_t)i], &other));
            assert_memory_equal(other.data, outputs[i].data, ct_array_bytes(&other));
            ct_array_free(&other);
        }
    }
    ct_buffers_free(inputs, num_devices * NUM_INPUTS);
    ct_buffers_free(results, num_devices * NUM_OUTPUTS);
    ct_executable_free(executable);
    free(text);
}

static void compare(const context_case *c, const char *form, const ct_array *found, const ct_array *expected)
{
    int num_empty = 0;
    for (int i = 0; i < NUM_OUTPUTS; i++) {
        double tolerance = c->dtype == CT_DTYPE_BF16 ? 0.02 : c->dtype == CT_DTYPE_F64 && i != LSE ? 1e-12 : 1e-5;
        double worst = 0, largest = 0;
        assert_int_equal(ct_array_bytes(&found[i]), ct_array_bytes(&expected[i]));
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
        assert_true(largest > 0.1); /* there is something to compare */
        if (!(worst <= tolerance * largest))
            fail_msg("%s, %s: %s is off by %g of %g", form, c->name, OUTPUT_NAMES[i], worst, largest);
    }
    assert_int_equal(num_empty > 0, c->positions == LATE_KEYS);
}

static const char *const FORMS[4] = {"all-gather", "ring", "all-gather, localized", "ring, localized"};

/* Regions among logical tensors, which the partitioner lays out, and the localized program. */
static void test_against_one_device(void **state)
{
    (void)state;
    ct_client *client = ct_test_client(8);
    for (size_t n = 0; n < CT_COUNT(CASES); n++) {
        const context_case *c = &CASES[n];
        ct_array expected[NUM_OUTPUTS], found[NUM_OUTPUTS];
        run(client, c, NULL, false, expected);
        for (int form = 0; form < 4; form++) {
            bool is_ring = form & 1, localize = form & 2;
            if (localize ? c->spare > 0 : !c->spare && n % 3) continue;
            ct_parallel parallel = parallel_of(c, is_ring ? CT_ROTATE_RING : CT_ROTATE_ALLGATHER);
            run(client, c, &parallel, localize, found);
            compare(c, FORMS[form], found, expected);
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

static void test_size_and_transfers(void **state)
{
    (void)state;
    static const context_case two = {
        .name = "cp2", .cp = {2}, .heads = 2, .kv_heads = 1, .causal = true, .no_lse = true};
    static const context_case eight = {
        .name = "cp8", .cp = {8}, .heads = 2, .kv_heads = 1, .causal = true, .no_lse = true};
    for (int ring = 0; ring < 2; ring++) {
        ct_rotate rotate = ring ? CT_ROTATE_RING : CT_ROTATE_ALLGATHER;
        ct_parallel small = parallel_of(&two, rotate), large = parallel_of(&eight, rotate);
        char *a = text_of(build(&two, &small, false)), *b = text_of(build(&eight, &large, false));
        assert_int_equal(count(a, "stablehlo."), count(b, "stablehlo."));
        int gathers = count(b, "stablehlo.all_gather"), scatters = count(b, "stablehlo.reduce_scatter");
        int permutes = count(b, "stablehlo.collective_permute");
        assert_int_equal(count(b, "stablehlo.all_reduce"), 0); /* every mesh axis splits every input */
        if (ring) {
            /* loop of forward: k v positions; of backward: and dk dv; after it: dk dv */
            assert_int_equal(gathers + scatters, 0);
            assert_int_equal(permutes, 3 + 5 + 2);
        } else {
            assert_int_equal(gathers, 2 * 3); /* k v positions, in both passes */
            assert_int_equal(scatters, 2);
            assert_int_equal(permutes, 0);
        }
        free(a);
        free(b);
    }
}

/* Localized, where all lies as attention wants it, the regions' transfers are the only ones. */
static void test_nothing_else_moves(void **state)
{
    (void)state;
    static const context_case c = {
        .name = "cp4", .cp = {4}, .heads = 2, .kv_heads = 1, .causal = true, .segments = true, .no_lse = true};
    for (int ring = 0; ring < 2; ring++) {
        ct_parallel parallel = parallel_of(&c, ring ? CT_ROTATE_RING : CT_ROTATE_ALLGATHER);
        ct_graph *graph = build(&c, &parallel, true);
        expect_ok(ct_localize(graph, NULL));
        char *text = text_of(graph);
        assert_int_equal(count(text, "sdy.manual_computation"), 1);
        assert_int_equal(count(text, "stablehlo.collective_permute"), ring ? 4 + 6 + 2 : 0);
        assert_int_equal(count(text, "stablehlo.all_gather"), ring ? 0 : 2 * 4);
        assert_int_equal(count(text, "stablehlo.reduce_scatter"), ring ? 0 : 2);
        assert_int_equal(count(text, "stablehlo.all_reduce") + count(text, "stablehlo.all_to_all"), 0);
        free(text);
    }
}

/* A mesh without cp leaves attention alone. */
static void test_without_cp(void **state)
{
    (void)state;
    context_case c = {.name = "cp1", .cp = {1}, .tp = 2, .heads = 4, .kv_heads = 2, .causal = true};
    ct_parallel parallel = parallel_of(&c, CT_ROTATE_ALLGATHER);
    char *text = text_of(build(&c, &parallel, false)), *plain = text_of(build(&c, NULL, false));
    assert_int_equal(count(text, "sdy.manual_computation"), 0);
    assert_int_equal(count(text, "stablehlo."), count(plain, "stablehlo."));
    free(text);
    free(plain);
}

static void expect_refused(const context_case *c, const ct_parallel *parallel, const char *text)
{
    ct_graph *graph = build(c, parallel, false);
    expect_error(ct_graph_check(graph), CT_CODE_INVALID_ARGUMENT, text);
    ct_graph_free(graph);
}

static void test_refusals(void **state)
{
    (void)state;
    context_case c = {.name = "refused", .cp = {3}, .heads = 4, .kv_heads = 2};
    ct_parallel parallel = parallel_of(&c, CT_ROTATE_ALLGATHER);
    expect_refused(&c, &parallel,
                   "axis seq of f32[batch=4 seq=16 heads=4 head_dim=4] cannot be split into 3 equal parts");
    c = (context_case){.name = "refused", .cp = {2}, .tp = 4, .heads = 4, .kv_heads = 2};
    parallel = parallel_of(&c, CT_ROTATE_ALLGATHER);
    parallel.mesh.num_tp_kv_axes = 0;
    expect_refused(&c, &parallel, "further than kv_heads = 2, which leaves 2 to a device");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_one_device), cmocka_unit_test(test_size_and_transfers),
        cmocka_unit_test(test_nothing_else_moves), cmocka_unit_test(test_without_cp), cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
