/* Filters against plain C in transformers' order, draws against the probabilities that are left. */
#include "generate/sampling.h"

#include <math.h>

#include "base/rng.h"
#include "base/testing.h"
#include "graph/ops.h"
#include "train/session.h"

enum { ROWS = 3, VOCAB = 40, DRAWS = 4000 };

static ct_session *open_session(void)
{
    ct_session *session;
    ct_session_opts opts = {.plugin = {.path = getenv("CTITAN_PLUGIN_PATH")}};
    expect_ok(ct_session_open(&opts, &session));
    return session;
}

static void put(ct_session *session, ct_dtype dtype, int rank, const int64_t *sizes, const void *data, ct_buffer **out)
{
    ct_array array = {.dtype = dtype, .rank = rank, .data = (void *)(uintptr_t)data};
    for (int i = 0; i < rank; i++) array.sizes[i] = sizes[i];
    expect_ok(ct_session_replicate(session, &array, out, 0));
}

/* Runs filter, or choose at positions that are not NULL, on logits [batch vocab]. */
static void run(ct_session *session, const ct_sampling *sampling, int64_t batch, const float *logits,
                const int32_t *positions, void *out, size_t out_bytes)
{
    ct_graph *graph = ct_graph_new("sampling");
    ct_graph_declare_axis(graph, "batch", batch);
    ct_tensor *x = ct_input(graph, "logits", CT_DTYPE_F32, "batch vocab=40");
    ct_tensor *at = ct_input(graph, "positions", CT_DTYPE_S32, "batch");
    ct_sampling_inputs inputs = ct_sampling_declare(graph, sampling);
    ct_tensor *result =
        positions ? ct_sampling_choose(sampling, &inputs, x, at) : ct_sampling_filter(sampling, &inputs, x);
    ct_output(graph, "result", result, NULL);
    ct_executable *executable;
    expect_ok(ct_session_compile(session, graph, NULL, &executable));
    ct_graph_free(graph);
    ct_buffer *arguments[2 + CT_SAMPLING_INPUTS], *output;
    int32_t *zeros = ct_alloc_zeroed((size_t)batch, sizeof(*zeros));
    uint32_t *keys = ct_alloc((size_t)batch * sizeof(*keys));
    for (int64_t i = 0; i < batch; i++) keys[i] = 77;
    float settings[3] = {(float)sampling->temperature, (float)sampling->top_p, (float)sampling->min_p};
    put(session, CT_DTYPE_F32, 2, (int64_t[]){batch, VOCAB}, logits, &arguments[0]);
    put(session, CT_DTYPE_S32, 1, &batch, positions ? positions : zeros, &arguments[1]);
    for (int i = 0; i < 2; i++) put(session, CT_DTYPE_U32, 1, &batch, keys, &arguments[2 + i]);
    for (int i = 0; i < 3; i++) put(session, CT_DTYPE_F32, 0, NULL, &settings[i], &arguments[4 + i]);
    expect_ok(ct_executable_execute(executable, arguments, CT_COUNT(arguments), NULL, &output));
    expect_ok(ct_buffer_to_host(output, out, out_bytes, NULL));
    ct_buffer_free(output);
    ct_buffers_free(arguments, CT_COUNT(arguments));
    ct_executable_free(executable);
    free(zeros);
    free(keys);
}

static void make_logits(float *logits, int rows)
{
    const uint32_t key[2] = {1, 2};
    for (int i = 0; i < rows * VOCAB; i++) {
        uint32_t bits[2];
        ct_threefry(key, (const uint32_t[2]){(uint32_t)i, 0}, bits);
        logits[i] = (float)bits[0] / 4294967296.0f * 8 - 4;
    }
}

/* What transformers' warpers leave of one row, in double; out_kept[VOCAB]. */
static void expected_kept(const ct_sampling *s, const float *logits, double *x, bool *out_kept)
{
    int order[VOCAB];
    for (int i = 0; i < VOCAB; i++) {
        x[i] = (double)logits[i] / s->temperature;
        order[i] = i;
    }
    for (int i = 0; i < VOCAB; i++) /* likeliest first */
        for (int j = i + 1; j < VOCAB; j++)
            if (x[order[j]] > x[order[i]]) {
                int other = order[i];
                order[i] = order[j];
                order[j] = other;
            }
    int count = s->top_k ? (int)s->top_k : VOCAB;
    double total = 0, before = 0;
    for (int i = 0; i < count; i++) total += exp(x[order[i]]);
    for (int i = 0; i < count && s->top_p < 1; i++) {
        if (before >= s->top_p) {
            count = i;
            break;
        }
        before += exp(x[order[i]]) / total;
    }
    for (int i = 0; i < VOCAB; i++) out_kept[i] = false;
    for (int i = 0; i < count; i++) out_kept[order[i]] = exp(x[order[i]] - x[order[0]]) >= s->min_p;
}

static const ct_sampling SETTINGS[] = {
    {.temperature = 0.7, .top_p = 1},
    {.temperature = 1, .top_k = 5, .top_p = 1},
    {.temperature = 1.5, .top_p = 0.6},
    {.temperature = 1, .top_p = 0.05}, /* the likeliest alone */
    {.temperature = 2, .top_p = 1, .min_p = 0.2},
    {.temperature = 0.9, .top_k = 12, .top_p = 0.8, .min_p = 0.15},
    {.temperature = 3, .top_k = 1, .top_p = 0.5},
};

static void test_filters(void **state)
{
    (void)state;
    ct_session *session = open_session();
    float logits[ROWS * VOCAB], found[ROWS * VOCAB];
    make_logits(logits, ROWS);
    for (size_t c = 0; c < CT_COUNT(SETTINGS); c++) {
        run(session, &SETTINGS[c], ROWS, logits, NULL, found, sizeof(found));
        for (int row = 0; row < ROWS; row++) {
            double x[VOCAB];
            bool kept[VOCAB];
            expected_kept(&SETTINGS[c], logits + (ptrdiff_t)row * VOCAB, x, kept);
            for (int i = 0; i < VOCAB; i++) {
                double value = (double)found[row * VOCAB + i];
                if (kept[i] ? fabs(value - x[i]) > 1e-5 : !(isinf(value) && value < 0))
                    fail_msg("settings %zu, row %d, token %d: found %g, wanted %s %g", c, row, i, value,
                             kept[i] ? "kept" : "left out", x[i]);
            }
        }
    }
    ct_session_close(session);
}

static void test_draws(void **state)
{
    (void)state;
    ct_session *session = open_session();
    const ct_sampling *s = &SETTINGS[5];
    float row[VOCAB], *logits = ct_alloc((size_t)DRAWS * sizeof(row));
    int32_t *positions = ct_alloc(DRAWS * sizeof(*positions)), *ids = ct_alloc(DRAWS * sizeof(*ids));
    make_logits(row, 1);
    for (int i = 0; i < DRAWS; i++) {
        memcpy(logits + (ptrdiff_t)i * VOCAB, row, sizeof(row));
        positions[i] = i;
    }
    run(session, s, DRAWS, logits, positions, ids, DRAWS * sizeof(*ids));
    double x[VOCAB], total = 0, chi2 = 0;
    bool kept[VOCAB];
    int counts[VOCAB] = {0}, num_kept = 0;
    expected_kept(s, row, x, kept);
    for (int i = 0; i < DRAWS; i++) {
        assert_true(ids[i] >= 0 && ids[i] < VOCAB && kept[ids[i]]);
        counts[ids[i]]++;
    }
    for (int i = 0; i < VOCAB; i++) total += kept[i] ? exp(x[i]) : 0;
    for (int i = 0; i < VOCAB; i++) {
        if (!kept[i]) continue;
        double wanted = exp(x[i]) / total * DRAWS;
        chi2 += (counts[i] - wanted) * (counts[i] - wanted) / wanted;
        num_kept++;
    }
    assert_true(num_kept > 3 && num_kept < 12);
    assert_true(chi2 < num_kept - 1 + 5 * sqrt(2.0 * (num_kept - 1))); /* five standard deviations */
    free(logits);
    free(positions);
    free(ids);
    ct_session_close(session);
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        ct_sampling sampling;
        const char *text;
    } cases[] = {
        {{.temperature = -1, .top_p = 1}, "temperature must be 0 (the likeliest token) or more, found -1"},
        {{.temperature = NAN, .top_p = 1}, "temperature must be"},
        {{.top_k = -2, .top_p = 1}, "top-k must be 0 (all tokens) or more, found -2"},
        {{.top_p = 0}, "top-p must be above 0 and at most 1 (all tokens), found 0"},
        {{.top_p = 1.5}, "found 1.5"},
        {{.top_p = 1, .min_p = 2}, "min-p must be from 0 (all tokens) to 1, found 2"},
    };
    for (size_t i = 0; i < CT_COUNT(cases); i++)
        expect_error(ct_sampling_check(&cases[i].sampling), CT_CODE_INVALID_ARGUMENT, cases[i].text);
    expect_ok(ct_sampling_check(&SETTINGS[5]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_filters),
        cmocka_unit_test(test_draws),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
