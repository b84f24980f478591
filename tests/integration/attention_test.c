/* ct_attention by the plugin against plain C, in f64: every option, grouped queries, rows that see nothing; gradients
 * against differences of the same plain C.
 */
#include <math.h>

#include "autodiff/grad.h"
#include "graph/ops.h"
#include "kernels/attention/attention.h"
#include "pjrt/testing.h"
#include "reference.h"

enum { BATCH = 2, SEQ = 5, KV_SEQ = 7, HEADS = 6, KV_HEADS = 2, DIM = 4 };
enum { NUM_Q = BATCH * SEQ * HEADS * DIM, NUM_KV = BATCH * KV_SEQ * KV_HEADS * DIM };
enum { Q, K, V, POSITIONS, KV_POSITIONS, SEGMENTS, KV_SEGMENTS, NUM_INPUTS };

typedef struct attention_case {
    const char *name;
    bool causal, has_positions, has_segments;
    int window;
    double scale, soft_cap;
} attention_case;

static const attention_case CASES[] = {
    {.name = "plain"},
    {.name = "causal", .causal = true},
    {.name = "causal window", .causal = true, .window = 2},
    {.name = "window", .window = 2},
    {.name = "scale and soft cap", .causal = true, .scale = 0.9, .soft_cap = 1.5},
    {.name = "segments", .causal = true, .has_segments = true},
    {.name = "positions", .causal = true, .has_positions = true}, /* of another shard: some queries see nothing */
    {.name = "all", .causal = true, .has_positions = true, .has_segments = true, .window = 3, .soft_cap = 2},
};

typedef struct values {
    double q[NUM_Q], k[NUM_KV], v[NUM_KV];
    int32_t positions[SEQ], kv_positions[KV_SEQ], segments[BATCH * SEQ], kv_segments[BATCH * KV_SEQ];
} values;

static void fill(values *x)
{
    for (uint32_t i = 0; i < NUM_Q; i++) x->q[i] = 1.5 * ct_test_random(1, i);
    for (uint32_t i = 0; i < NUM_KV; i++) x->k[i] = 1.5 * ct_test_random(2, i);
    for (uint32_t i = 0; i < NUM_KV; i++) x->v[i] = ct_test_random(3, i);
    for (int i = 0; i < SEQ; i++) x->positions[i] = 2 * i;
    for (int i = 0; i < KV_SEQ; i++) x->kv_positions[i] = i + 3;
    for (int i = 0; i < BATCH * SEQ; i++) x->segments[i] = i % SEQ > 2;
    for (int i = 0; i < BATCH * KV_SEQ; i++) x->kv_segments[i] = i % KV_SEQ > 1 + i / KV_SEQ;
}

static bool sees(const attention_case *c, const values *x, int b, int s, int t)
{
    int q = c->has_positions ? x->positions[s] : s, k = c->has_positions ? x->kv_positions[t] : t;
    if (c->causal && k > q) return false;
    if (c->window && q - k >= c->window) return false;
    if (c->window && !c->causal && k - q >= c->window) return false;
    return !c->has_segments || x->segments[b * SEQ + s] == x->kv_segments[b * KV_SEQ + t];
}

/* out [batch seq heads dim], out_logsumexp [batch heads seq] (may be NULL) */
static void attend(const attention_case *c, const values *x, double *out, double *out_logsumexp)
{
    double scale = c->scale > 0 ? c->scale : 1 / sqrt(DIM);
    for (int b = 0; b < BATCH; b++)
        for (int s = 0; s < SEQ; s++)
            for (int h = 0; h < HEADS; h++) {
                const double *q = x->q + ((b * SEQ + s) * HEADS + h) * DIM;
                double *o = out + ((b * SEQ + s) * HEADS + h) * DIM, total = 0;
                for (int i = 0; i < DIM; i++) o[i] = 0;
                for (int t = 0; t < KV_SEQ; t++) {
                    if (!sees(c, x, b, s, t)) continue;
                    int at = ((b * KV_SEQ + t) * KV_HEADS + h / (HEADS / KV_HEADS)) * DIM;
                    double score = 0;
                    for (int i = 0; i < DIM; i++) score += q[i] * x->k[at + i] * scale;
                    if (c->soft_cap > 0) score = c->soft_cap * tanh(score / c->soft_cap);
                    total += exp(score);
                    for (int i = 0; i < DIM; i++) o[i] += exp(score) * x->v[at + i];
                }
                for (int i = 0; i < DIM && total > 0; i++) o[i] /= total;
                if (out_logsumexp) out_logsumexp[(b * HEADS + h) * SEQ + s] = log(total);
            }
}

/* A weighted sum of the results, whose gradients are compared. */
static double loss_of(const attention_case *c, const values *x, const double *weights)
{
    double out[NUM_Q], sum = 0;
    attend(c, x, out, NULL);
    for (int i = 0; i < NUM_Q; i++) sum += weights[i] * out[i];
    return sum;
}

static double worst_difference(const attention_case *c, values *x, double *parameter, int count, const double *weights,
                               const double *gradient)
{
    const double h = 1e-5;
    double worst = 0;
    for (int i = 0; i < count; i++) {
        double value = parameter[i];
        parameter[i] = value + h;
        double above = loss_of(c, x, weights);
        parameter[i] = value - h;
        double below = loss_of(c, x, weights);
        parameter[i] = value;
        double error = fabs((above - below) / (2 * h) - gradient[i]);
        worst = error <= worst ? worst : error; /* NaN is kept */
    }
    return worst;
}

/* Outputs: result, log-sum-exp, gradients of q, k, v. */
static ct_graph *build(const attention_case *c, const double *weights)
{
    ct_graph *graph = ct_graph_new("attention");
    static const struct {
        const char *name, *axes;
        ct_dtype dtype;
    } inputs[NUM_INPUTS] = {{"q", "batch seq heads head_dim", CT_DTYPE_F64},
                            {"k", "batch kv_seq kv_heads head_dim", CT_DTYPE_F64},
                            {"v", "batch kv_seq kv_heads head_dim", CT_DTYPE_F64},
                            {"positions", "seq", CT_DTYPE_S32},
                            {"kv_positions", "kv_seq", CT_DTYPE_S32},
                            {"segments", "batch seq", CT_DTYPE_S32},
                            {"kv_segments", "batch kv_seq", CT_DTYPE_S32}};
    static const struct {
        const char *name;
        int64_t size;
    } axes[] = {{"batch", BATCH}, {"seq", SEQ},           {"kv_seq", KV_SEQ},
                {"heads", HEADS}, {"kv_heads", KV_HEADS}, {"head_dim", DIM}};
    for (size_t i = 0; i < CT_COUNT(axes); i++) ct_graph_declare_axis(graph, axes[i].name, axes[i].size);
    ct_tensor *x[NUM_INPUTS], *gradients[3], *logsumexp;
    for (int i = 0; i < NUM_INPUTS; i++) x[i] = ct_input(graph, inputs[i].name, inputs[i].dtype, inputs[i].axes);
    ct_attention_opts opts = {.causal = c->causal,
                              .window = c->window,
                              .scale = c->scale,
                              .soft_cap = c->soft_cap,
                              .out_logsumexp = &logsumexp};
    if (c->has_positions) opts.positions = x[POSITIONS], opts.kv_positions = x[KV_POSITIONS];
    if (c->has_segments) opts.segments = x[SEGMENTS], opts.kv_segments = x[KV_SEGMENTS];
    ct_tensor *result = ct_attention(x[Q], x[K], x[V], &opts);
    ct_array array = {
        .dtype = CT_DTYPE_F64, .rank = 4, .sizes = {BATCH, SEQ, HEADS, DIM}, .data = (void *)(uintptr_t)weights};
    ct_tensor *weighted = ct_mul(result, ct_constant(graph, &array, inputs[Q].axes));
    expect_ok(ct_grad(graph, ct_sum(weighted, inputs[Q].axes), x, 3, gradients));
    ct_output(graph, "result", result, NULL);
    ct_output(graph, "logsumexp", logsumexp, NULL);
    for (int i = 0; i < 3; i++) ct_output(graph, inputs[i].name, gradients[i], NULL);
    expect_ok(ct_graph_check(graph));
    return graph;
}

static void test_attention(void **state)
{
    (void)state;
    static values x;
    static double weights[NUM_Q], expected[NUM_Q], expected_lse[BATCH * HEADS * SEQ];
    static double found[NUM_Q], gradient[3][NUM_Q];
    static float lse[BATCH * HEADS * SEQ];
    fill(&x);
    for (uint32_t i = 0; i < NUM_Q; i++) weights[i] = ct_test_random(4, i);
    ct_client *client = ct_test_client(1);
    const struct {
        ct_dtype dtype;
        int rank;
        int64_t sizes[4];
        void *data;
    } arrays[NUM_INPUTS] = {{CT_DTYPE_F64, 4, {BATCH, SEQ, HEADS, DIM}, x.q},
                            {CT_DTYPE_F64, 4, {BATCH, KV_SEQ, KV_HEADS, DIM}, x.k},
                            {CT_DTYPE_F64, 4, {BATCH, KV_SEQ, KV_HEADS, DIM}, x.v},
                            {CT_DTYPE_S32, 1, {SEQ}, x.positions},
                            {CT_DTYPE_S32, 1, {KV_SEQ}, x.kv_positions},
                            {CT_DTYPE_S32, 2, {BATCH, SEQ}, x.segments},
                            {CT_DTYPE_S32, 2, {BATCH, KV_SEQ}, x.kv_segments}};
    ct_buffer *inputs[NUM_INPUTS];
    for (int i = 0; i < NUM_INPUTS; i++) {
        ct_array array = {.dtype = arrays[i].dtype, .rank = arrays[i].rank, .data = arrays[i].data};
        memcpy(array.sizes, arrays[i].sizes, sizeof(arrays[i].sizes));
        expect_ok(ct_buffer_from_host(ct_client_addressable_device(client, 0), &array, NULL, NULL, &inputs[i]));
    }
    for (size_t n = 0; n < CT_COUNT(CASES); n++) {
        const attention_case *c = &CASES[n];
        ct_graph *graph = build(c, weights);
        ct_str text;
        ct_str_init(&text);
        expect_ok(ct_graph_print(graph, &text));
        ct_executable *executable = ct_test_compile(client, text.data, NULL);
        ct_buffer *outputs[5] = {0};
        expect_ok(ct_executable_execute(executable, inputs, NUM_INPUTS, NULL, outputs));
        expect_ok(ct_buffer_to_host(outputs[0], found, sizeof(found), NULL));
        expect_ok(ct_buffer_to_host(outputs[1], lse, sizeof(lse), NULL));
        for (int i = 0; i < 3; i++)
            expect_ok(ct_buffer_to_host(outputs[2 + i], gradient[i], (i ? NUM_KV : NUM_Q) * sizeof(double), NULL));
        attend(c, &x, expected, expected_lse);
        double worst = 0;
        for (int i = 0; i < NUM_Q; i++) {
            assert_true(isfinite(found[i]));
            worst = fmax(worst, fabs(found[i] - expected[i]));
        }
        int num_empty = 0;
        for (int i = 0; i < BATCH * HEADS * SEQ; i++) {
            num_empty += isinf(expected_lse[i]) != 0;
            if (isinf(expected_lse[i]) ? lse[i] != -INFINITY : fabs((double)lse[i] - expected_lse[i]) > 1e-6)
                fail_msg("%s: log-sum-exp %d is %g, wanted %g", c->name, i, (double)lse[i], expected_lse[i]);
        }
        assert_true(c->has_positions ? num_empty > 0 : true);
        double by_q = worst_difference(c, &x, x.q, NUM_Q, weights, gradient[Q]);
        double by_k = worst_difference(c, &x, x.k, NUM_KV, weights, gradient[K]);
        double by_v = worst_difference(c, &x, x.v, NUM_KV, weights, gradient[V]);
        if (!(worst < 1e-12 && by_q < 1e-8 && by_k < 1e-8 && by_v < 1e-8))
            fail_msg("%s: result off by %g, gradients by %g, %g, %g", c->name, worst, by_q, by_k, by_v);
        ct_buffers_free(outputs, 5);
        ct_executable_free(executable);
        ct_str_deinit(&text);
        ct_graph_free(graph);
    }
    ct_buffers_free(inputs, NUM_INPUTS);
    ct_client_free(client);
}

/* What does not fit together is an error of the graph that names it. */
static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *q, *k, *segments, *text;
    } cases[] = {
        {"batch=2 seq=3 heads=4 head_dim=2", "batch=2 kv_seq=3 kv_heads=3 head_dim=2", NULL,
         "heads = 4 must be a multiple of kv_heads = 3"},
        {"batch=2 seq=3 heads=4", "batch=2 kv_seq=3 kv_heads=2 head_dim=2", NULL, "head_dim"},
        {"batch=2 seq=3 heads=4 head_dim=2 more=1", "batch=2 kv_seq=3 kv_heads=2 head_dim=2", NULL,
         "q must have exactly the axes"},
        {"batch=2 seq=3 heads=4 head_dim=2", "batch=2 kv_seq=3 kv_heads=2 head_dim=2", "batch=2 seq=3",
         "must be given together"},
    };
    for (size_t i = 0; i < CT_COUNT(cases); i++) {
        ct_graph *graph = ct_graph_new("refused");
        ct_tensor *q = ct_input(graph, "q", CT_DTYPE_F32, cases[i].q);
        ct_tensor *k = ct_input(graph, "k", CT_DTYPE_F32, cases[i].k);
        ct_attention_opts opts = {0};
        if (cases[i].segments) opts.segments = ct_input(graph, "segments", CT_DTYPE_S32, cases[i].segments);
        assert_true(ct_tensor_is_poison(ct_attention(q, k, k, &opts)));
        expect_error(ct_graph_check(graph), CT_CODE_INVALID_ARGUMENT, cases[i].text);
        ct_graph_free(graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_attention), cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
