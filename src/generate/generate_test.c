/* Generation with a cache against the whole forward pass for each token, rows of unequal lengths together. */
#include "generate/generate.h"

#include "base/testing.h"
#include "graph/ops.h"
#include "train/init.h"

enum { MAX_PROMPTS = 4, MAX_TOKENS = 40 };

typedef struct world {
    ct_session *session;
    ct_model *model;
    ct_generator *generator;
    ct_buffer **params; /* of the same values as the generator's */
} world;

static void execute_and_free(ct_session *session, ct_graph *graph, ct_buffer **arguments, size_t num_arguments,
                             ct_buffer **outputs)
{
    ct_executable *executable;
    expect_ok(ct_session_compile(session, graph, NULL, &executable));
    ct_graph_free(graph);
    expect_ok(ct_executable_execute(executable, arguments, num_arguments, NULL, outputs));
    ct_executable_free(executable);
}

/* Random weights, once for the generator and once for the forward pass. */
static void new_params(const world *w, ct_buffer **params[2])
{
    ct_graph *graph;
    ct_executable *executable;
    expect_ok(ct_init_build(w->model, 0, NULL, CT_DTYPE_F32, 7, &graph));
    expect_ok(ct_session_compile(w->session, graph, NULL, &executable));
    ct_graph_free(graph);
    for (int i = 0; i < 2; i++) {
        params[i] = ct_alloc_zeroed((size_t)w->model->num_params, sizeof(*params[i]));
        expect_ok(ct_executable_execute(executable, NULL, 0, NULL, params[i]));
    }
    ct_executable_free(executable);
}

static world open_world(const char *family_name)
{
    world w;
    const ct_model_family *family;
    ct_model_config config;
    expect_ok(ct_model_config_find(family_name, "debugmodel", &family, &config));
    config.dim = 48;
    config.num_layers = 3;
    config.num_heads = 4;
    config.num_kv_heads = 2;
    config.head_dim = 12;
    config.ffn_dim = 80;
    config.vocab_size = 131;
    config.max_seq_len = 1024;
    ct_session_opts opts = {.plugin = {.path = getenv("CTITAN_PLUGIN_PATH")}};
    expect_ok(ct_session_open(&opts, &w.session));
    expect_ok(ct_model_new(family, &config, false, &w.model));
    ct_buffer **params[2];
    new_params(&w, params);
    w.params = params[0];
    w.generator = ct_generator_new(w.model, CT_DTYPE_F32, w.session, params[1]);
    free(params[1]);
    return w;
}

static void close_world(world *w)
{
    ct_generator_free(w->generator);
    ct_buffers_free(w->params, (size_t)w->model->num_params);
    free(w->params);
    ct_model_free(w->model);
    ct_session_close(w->session);
}

/* ---- what came ---- */

typedef struct record {
    int32_t ids[MAX_PROMPTS][MAX_TOKENS];
    size_t counts[MAX_PROMPTS];
    int32_t stop_at[MAX_PROMPTS]; /* on_token ends the row at this many tokens; 0: never */
} record;

static ct_status *keep(void *context, size_t row, int32_t id, bool *out_stop)
{
    record *r = context;
    assert_true(row < MAX_PROMPTS && r->counts[row] < MAX_TOKENS);
    r->ids[row][r->counts[row]++] = id;
    *out_stop = r->stop_at[row] && (int32_t)r->counts[row] == r->stop_at[row];
    return NULL;
}

static const int32_t IDS[] = {5, 17, 99, 3, 42, 130, 0, 77, 64, 8, 21, 20, 19, 111, 50, 2, 90, 33, 71, 6, 12, 13, 14};
static const ct_prompt PROMPTS[MAX_PROMPTS] = {{IDS, 3}, {IDS + 2, 17}, {IDS + 7, 1}, {IDS + 1, 16}};

static ct_generation greedy(int64_t max_tokens, record *r)
{
    memset(r, 0, sizeof(*r));
    return (ct_generation){.prompts = PROMPTS,
                           .num_prompts = MAX_PROMPTS,
                           .max_tokens = max_tokens,
                           .tokens_per_launch = 5,
                           .sampling = {.top_p = 1},
                           .on_token = keep,
                           .context = r};
}

/* ---- against the forward pass ---- */

/* The likeliest token behind every prefix of prompt and continuation, whole sequences at a time, without a cache. */
static void expect_argmax(const world *w, const ct_prompt *prompt, const int32_t *ids, size_t count)
{
    int64_t length = (int64_t)(prompt->num_ids + count);
    ct_array tokens = ct_array_new(CT_DTYPE_S32, (int64_t[]){1, length}, 2);
    int32_t *values = tokens.data;
    memcpy(values, prompt->ids, prompt->num_ids * sizeof(*values));
    memcpy(values + prompt->num_ids, ids, count * sizeof(*values));
    ct_graph *graph = ct_graph_new("forward");
    size_t num_params = (size_t)w->model->num_params;
    ct_tensor **params = ct_alloc(num_params * sizeof(*params));
    ct_buffer **arguments = ct_alloc((num_params + 1) * sizeof(*arguments)), *output;
    ct_model_inputs(w->model, graph, CT_DTYPE_F32, params);
    ct_graph_declare_axis(graph, "seq", length);
    ct_tensor *input = ct_input(graph, "tokens", CT_DTYPE_S32, "batch=1 seq");
    ct_tensor *positions = ct_iota(graph, CT_DTYPE_S32, "batch=1 seq", "seq");
    ct_tensor *hidden = ct_model_hidden(w->model, params, input, positions, NULL, NULL);
    ct_output(graph, "likeliest", ct_argmax(ct_model_logits(w->model, params, hidden, NULL), "vocab"), NULL);
    memcpy(arguments, w->params, num_params * sizeof(*arguments));
    expect_ok(ct_session_replicate(w->session, &tokens, &arguments[num_params], 0));
    execute_and_free(w->session, graph, arguments, num_params + 1, &output);
    int32_t *likeliest = ct_alloc((size_t)length * sizeof(*likeliest));
    expect_ok(ct_buffer_to_host(output, likeliest, (size_t)length * sizeof(*likeliest), NULL));
    for (size_t t = 0; t < count; t++)
        if (ids[t] != likeliest[prompt->num_ids + t - 1])
            fail_msg("token %zu behind a prompt of %zu is %d, the forward pass says %d", t, prompt->num_ids, ids[t],
                     likeliest[prompt->num_ids + t - 1]);
    ct_buffer_free(output);
    ct_buffer_free(arguments[num_params]);
    ct_array_free(&tokens);
    free(likeliest);
    free(arguments);
    free(params);
}

static void check_greedy(const char *family)
{
    world w = open_world(family);
    record together, alone;
    ct_generation want = greedy(MAX_TOKENS - 3, &together);
    expect_ok(ct_generate(w.generator, &want));
    for (size_t row = 0; row < MAX_PROMPTS; row++) {
        assert_int_equal(together.counts[row], want.max_tokens);
        expect_argmax(&w, &PROMPTS[row], together.ids[row], together.counts[row]);
    }
    want = greedy(1, &alone); /* prefill alone */
    want.num_prompts = 1;
    expect_ok(ct_generate(w.generator, &want));
    assert_int_equal(alone.counts[0], 1);
    assert_int_equal(alone.ids[0][0], together.ids[0][0]);
    close_world(&w);
}

static void test_greedy_llama3(void **state)
{
    (void)state;
    check_greedy("llama3");
}

/* Keys enough for attention block by block, and blocks that one row has nothing but padding in. */
static void test_long_prompt(void **state)
{
    (void)state;
    world w = open_world("llama3");
    record r;
    int32_t ids[600];
    for (size_t i = 0; i < CT_COUNT(ids); i++) ids[i] = (int32_t)((i * 37 + i / 11) % 131);
    const ct_prompt prompts[2] = {{ids, CT_COUNT(ids)}, {IDS, 5}};
    ct_generation want = greedy(8, &r);
    want.prompts = prompts;
    want.num_prompts = 2;
    expect_ok(ct_generate(w.generator, &want));
    for (size_t row = 0; row < 2; row++) {
        assert_int_equal(r.counts[row], 8);
        expect_argmax(&w, &prompts[row], r.ids[row], r.counts[row]);
    }
    close_world(&w);
}

static void test_greedy_qwen3(void **state)
{
    (void)state;
    check_greedy("qwen3");
}

static void test_stops(void **state)
{
    (void)state;
    world w = open_world("llama3");
    record free_run, stopped;
    ct_generation want = greedy(20, &free_run);
    expect_ok(ct_generate(w.generator, &want));
    const int32_t stop_ids[] = {free_run.ids[1][7], free_run.ids[2][0]};
    want = greedy(20, &stopped);
    want.stop_ids = stop_ids;
    want.num_stop_ids = CT_COUNT(stop_ids);
    stopped.stop_at[0] = 9;
    expect_ok(ct_generate(w.generator, &want));
    for (size_t row = 0; row < MAX_PROMPTS; row++) { /* the same tokens, up to the first reason to stop */
        size_t end = 0;
        while (end < 20 && free_run.ids[row][end] != stop_ids[0] && free_run.ids[row][end] != stop_ids[1]) end++;
        if (end < 20) end++;
        if (row == 0) end = CT_MIN(end, (size_t)9);
        assert_int_equal(stopped.counts[row], end);
        assert_memory_equal(stopped.ids[row], free_run.ids[row], end * sizeof(int32_t));
    }
    assert_true(stopped.counts[2] == 1 && stopped.counts[1] <= 8);
    close_world(&w);
}

static void test_refusals(void **state)
{
    (void)state;
    world w = open_world("qwen3");
    record r;
    const ct_prompt none = {IDS, 0}, foreign = {(const int32_t[]){1, 131}, 2};
    ct_generation want = greedy(0, &r);
    expect_error(ct_generate(w.generator, &want), CT_CODE_INVALID_ARGUMENT, "max-tokens must be at least 1, found 0");
    want = greedy(1008, &r);
    expect_error(ct_generate(w.generator, &want), CT_CODE_INVALID_ARGUMENT,
                 "prompt 2 of 17 tokens and 1008 new ones exceed the model's longest sequence, 1024");
    want = greedy(4, &r);
    want.prompts = &none;
    want.num_prompts = 1;
    expect_error(ct_generate(w.generator, &want), CT_CODE_INVALID_ARGUMENT, "prompt 1 must have at least one token");
    want.prompts = &foreign;
    expect_error(ct_generate(w.generator, &want), CT_CODE_OUT_OF_RANGE,
                 "from 0 to 130, the model's vocabulary, found 131");
    want.num_prompts = 0;
    expect_error(ct_generate(w.generator, &want), CT_CODE_INVALID_ARGUMENT, "at least one prompt is required");
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_greedy_llama3), cmocka_unit_test(test_greedy_qwen3), cmocka_unit_test(test_long_prompt),
        cmocka_unit_test(test_stops),         cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
