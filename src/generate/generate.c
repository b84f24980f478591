/* Weights, programs for the sizes at hand, and the loop of launches. */
#include "generate/generate.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "train/chip.h"
#include "train/weights.h"

struct ct_generator {
    const ct_model *model;
    ct_model *owned_model;
    ct_session *session;
    ct_generate_opts opts; /* stop ids and sampling are the programs' */
    size_t num_params, num_caches;
    ct_buffer **params;
};

enum { DEFAULT_STEPS = 16 };

const ct_model *ct_generator_model(const ct_generator *g)
{
    return g->model;
}

ct_generator *ct_generator_new(const ct_model *model, ct_dtype dtype, ct_session *session, ct_buffer **params)
{
    ct_generator *g = ct_alloc_zeroed(1, sizeof(*g));
    const char *kind = ct_device_kind(ct_session_device(session, 0));
    g->model = model;
    g->session = session;
    g->opts = (ct_generate_opts){.dtype = dtype,
                                 .kernels = {.platform = ct_chip_platform(kind, "cpu"), .chip = ct_chip_name(kind)}};
    g->num_params = (size_t)model->num_params;
    g->num_caches = (size_t)model->config.num_layers * 2;
    g->params = ct_alloc(g->num_params * sizeof(*g->params));
    memcpy(g->params, params, g->num_params * sizeof(*params));
    memset(params, 0, g->num_params * sizeof(*params));
    return g;
}

ct_status *ct_generator_open(const char *folder, ct_dtype dtype, ct_session *session, ct_generator **out_generator)
{
    *out_generator = NULL;
    const ct_model_family *family;
    ct_model_config config;
    ct_model *model;
    CT_TRY(ct_model_config_read(folder, &family, &config));
    CT_TRY(ct_model_new(family, &config, false, &model));
    size_t num_params = (size_t)model->num_params;
    ct_buffer **params = ct_alloc_zeroed(num_params, sizeof(*params));
    ct_status *status = ct_weights_put(folder, model, dtype, session, params);
    if (status) {
        ct_buffers_free(params, num_params);
        ct_model_free(model);
    } else {
        *out_generator = ct_generator_new(model, dtype, session, params);
        (*out_generator)->owned_model = model;
    }
    free(params);
    return status;
}

void ct_generator_free(ct_generator *g)
{
    if (!g) return;
    ct_buffers_free(g->params, g->num_params);
    free(g->params);
    ct_model_free(g->owned_model);
    free(g);
}

/* ---- sizes ---- */

static int64_t round_up(int64_t value, int64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

/* Powers of two, and from 512 on multiples of 512: few sizes, so that few programs are compiled. */
static int64_t prompt_bucket(int64_t length)
{
    int64_t bucket = 16;
    while (bucket < length && bucket < 512) bucket *= 2;
    return length <= bucket ? bucket : round_up(length, 512);
}

static ct_status *check(const ct_generator *g, const ct_generation *want, int64_t *longest)
{
    int64_t vocab_size = g->model->config.vocab_size, limit = g->model->config.max_seq_len;
    CT_TRY(ct_sampling_check(&want->sampling));
    if (want->max_tokens < 1)
        return ct_error(CT_CODE_INVALID_ARGUMENT, "max-tokens must be at least 1, found %lld",
                        (long long)want->max_tokens);
    if (!want->num_prompts) return ct_error(CT_CODE_INVALID_ARGUMENT, "at least one prompt is required, found none");
    for (size_t i = 0; i < want->num_prompts; i++) {
        const ct_prompt *prompt = &want->prompts[i];
        int64_t length = (int64_t)prompt->num_ids;
        if (!length)
            return ct_error(CT_CODE_INVALID_ARGUMENT, "prompt %zu must have at least one token to go on from, has none",
                            i + 1);
        if (length + want->max_tokens > limit)
            return ct_error(CT_CODE_INVALID_ARGUMENT,
                            "prompt %zu of %lld tokens and %lld new ones exceed the model's longest sequence, %lld; "
                            "shorten the prompt or lower max-tokens",
                            i + 1, (long long)length, (long long)want->max_tokens, (long long)limit);
        for (size_t t = 0; t < prompt->num_ids; t++)
            if (prompt->ids[t] < 0 || prompt->ids[t] >= vocab_size)
                return ct_error(CT_CODE_OUT_OF_RANGE,
                                "token %zu of prompt %zu must be from 0 to %lld, the model's vocabulary, found %d; is "
                                "the tokenizer that of the model?",
                                t, i + 1, (long long)vocab_size - 1, prompt->ids[t]);
        *longest = CT_MAX(*longest, length);
    }
    return NULL;
}

/* ---- a run ---- */

typedef struct run {
    ct_generator *g;
    const ct_generation *want;
    ct_generate_opts opts;
    ct_generate_shape shape;
    ct_executable *prefill, *decode;
    ct_buffer **caches, *next, *pads, *sampling[CT_SAMPLING_INPUTS];
    size_t num_sampling;
    int32_t *finished; /* [batch], not 0 */
    int64_t *counts;   /* tokens so far */
} run;

static ct_status *put(const run *r, ct_dtype dtype, int rank, const int64_t *sizes, const void *data,
                      ct_buffer **out_buffer)
{
    ct_array array = {.dtype = dtype, .rank = rank, .data = (void *)(uintptr_t)data};
    for (int i = 0; i < rank; i++) array.sizes[i] = sizes[i];
    return ct_buffer_from_host(ct_session_device(r->g->session, 0), &array, NULL, NULL, out_buffer);
}

static ct_status *compile(run *r)
{
    ct_graph *graph;
    CT_TRY(ct_prefill_build(r->g->model, &r->shape, &r->opts, &graph));
    ct_status *status = ct_session_compile(r->g->session, graph, "prefill", &r->prefill);
    ct_graph_free(graph);
    CT_TRY(status);
    if (r->want->max_tokens == 1) return NULL;
    CT_TRY(ct_decode_build(r->g->model, &r->shape, &r->opts, &graph));
    status = ct_session_compile(r->g->session, graph, "decoding loop", &r->decode);
    ct_graph_free(graph);
    return status;
}

static ct_status *put_sampling(run *r)
{
    const ct_sampling *sampling = &r->opts.sampling;
    if (!(sampling->temperature > 0)) return NULL;
    r->num_sampling = CT_SAMPLING_INPUTS;
    size_t batch = (size_t)r->shape.batch;
    uint32_t key[2], *keys = ct_alloc(2 * batch * sizeof(*keys));
    ct_rng_key(sampling->seed, "generate", key);
    for (size_t row = 0; row < batch; row++) {
        uint32_t bits[2];
        ct_threefry(key, (const uint32_t[2]){(uint32_t)row, 0}, bits);
        keys[row] = bits[0];
        keys[batch + row] = bits[1];
    }
    const float settings[3] = {(float)sampling->temperature, (float)sampling->top_p, (float)sampling->min_p};
    ct_status *status = NULL;
    for (size_t i = 0; i < CT_SAMPLING_INPUTS && !status; i++)
        status = i < 2 ? put(r, CT_DTYPE_U32, 1, &r->shape.batch, keys + i * batch, &r->sampling[i])
                       : put(r, CT_DTYPE_F32, 0, NULL, &settings[i - 2], &r->sampling[i]);
    free(keys);
    return status;
}

/* A token of a row that is not finished. */
static ct_status *report(run *r, size_t row, int32_t id)
{
    bool stop = false;
    CT_TRY(r->want->on_token(r->want->context, row, id, &stop));
    for (size_t i = 0; i < r->opts.num_stop_ids; i++) stop = stop || id == r->opts.stop_ids[i];
    if (stop || ++r->counts[row] == r->want->max_tokens) r->finished[row] = 1;
    return NULL;
}

static ct_status *execute(ct_executable *executable, ct_buffer **arguments, size_t num_arguments, const bool *donated,
                          ct_buffer **outputs)
{
    ct_execute_opts opts = {.donated = donated};
    return ct_executable_execute(executable, arguments, num_arguments, &opts, outputs);
}

static ct_status *start(run *r)
{
    size_t batch = (size_t)r->shape.batch, length = (size_t)r->shape.prompt_len, num_params = r->g->num_params;
    int32_t *tokens = ct_alloc_zeroed(batch * length, sizeof(*tokens)), *pads = ct_alloc(batch * sizeof(*pads));
    for (size_t row = 0; row < batch; row++) {
        const ct_prompt *prompt = &r->want->prompts[row];
        size_t pad = length - prompt->num_ids;
        pads[row] = (int32_t)pad;
        memcpy(tokens + row * length + pad, prompt->ids, prompt->num_ids * sizeof(*tokens));
    }
    size_t num_arguments = num_params + 2 + r->num_sampling;
    ct_buffer **arguments = ct_alloc_zeroed(num_arguments, sizeof(*arguments)), *tokens_buffer = NULL;
    ct_buffer **outputs = ct_alloc_zeroed(r->g->num_caches + 1, sizeof(*outputs));
    ct_status *status =
        put(r, CT_DTYPE_S32, 2, (const int64_t[]){r->shape.batch, r->shape.prompt_len}, tokens, &tokens_buffer);
    if (!status) status = put(r, CT_DTYPE_S32, 1, &r->shape.batch, pads, &r->pads);
    if (!status) {
        memcpy(arguments, r->g->params, num_params * sizeof(*arguments));
        arguments[num_params] = tokens_buffer;
        arguments[num_params + 1] = r->pads;
        memcpy(arguments + num_params + 2, r->sampling, r->num_sampling * sizeof(*arguments));
        status = execute(r->prefill, arguments, num_arguments, NULL, outputs);
    }
    if (!status) {
        memcpy(r->caches, outputs, r->g->num_caches * sizeof(*outputs));
        r->next = outputs[r->g->num_caches];
        status = ct_buffer_to_host(r->next, pads, batch * sizeof(*pads), NULL);
    }
    for (size_t row = 0; row < batch && !status; row++) status = report(r, row, pads[row]);
    ct_buffer_free(tokens_buffer);
    free(arguments);
    free(outputs);
    free(tokens);
    free(pads);
    return status;
}

/* One launch. column: of the newest token, which the cache does not have yet. */
static ct_status *launch(run *r, int32_t column, ct_buffer **arguments, const bool *donated, ct_buffer **outputs,
                         int32_t *chosen)
{
    size_t num_params = r->g->num_params, num_caches = r->g->num_caches, batch = (size_t)r->shape.batch;
    size_t steps = (size_t)r->shape.steps, num_arguments = num_params + num_caches + 4 + r->num_sampling;
    ct_buffer **inputs = arguments + num_params + num_caches, *fresh[2] = {NULL, NULL};
    ct_status *status = put(r, CT_DTYPE_S32, 0, NULL, &column, &fresh[0]);
    if (!status) status = put(r, CT_DTYPE_S32, 1, &r->shape.batch, r->finished, &fresh[1]);
    if (!status) {
        memcpy(arguments, r->g->params, num_params * sizeof(*arguments));
        memcpy(arguments + num_params, r->caches, num_caches * sizeof(*arguments));
        inputs[0] = r->next;
        inputs[1] = r->pads;
        inputs[2] = fresh[0];
        inputs[3] = fresh[1];
        memcpy(inputs + 4, r->sampling, r->num_sampling * sizeof(*inputs));
        status = execute(r->decode, arguments, num_arguments, donated, outputs);
    }
    if (!status) { /* the old cache went into the new one */
        memcpy(r->caches, outputs, num_caches * sizeof(*outputs));
        ct_buffer_free(r->next);
        r->next = outputs[num_caches];
        status = ct_buffer_to_host(outputs[num_caches + 1], chosen, batch * steps * sizeof(*chosen), NULL);
        ct_buffer_free(outputs[num_caches + 1]);
    }
    for (size_t row = 0; row < batch && !status; row++)
        for (size_t t = 0; t < steps && !r->finished[row] && !status; t++)
            status = report(r, row, chosen[row * steps + t]);
    ct_buffers_free(fresh, 2);
    return status;
}

static ct_status *go_on(run *r)
{
    size_t num_params = r->g->num_params, num_caches = r->g->num_caches;
    size_t num_arguments = num_params + num_caches + 4 + r->num_sampling;
    ct_buffer **arguments = ct_alloc_zeroed(num_arguments, sizeof(*arguments));
    ct_buffer **outputs = ct_alloc_zeroed(num_caches + 2, sizeof(*outputs));
    bool *donated = ct_alloc_zeroed(num_arguments, sizeof(*donated));
    for (size_t i = 0; i < num_caches; i++) donated[num_params + i] = true;
    int32_t *chosen = ct_alloc((size_t)(r->shape.batch * r->shape.steps) * sizeof(*chosen));
    ct_status *status = NULL;
    for (int64_t column = r->shape.prompt_len; !status; column += r->shape.steps) {
        bool all_finished = true;
        for (int64_t row = 0; row < r->shape.batch; row++) all_finished = all_finished && r->finished[row];
        if (all_finished) break;
        CT_ASSERT(column + r->shape.steps <= r->shape.capacity);
        status = launch(r, (int32_t)column, arguments, donated, outputs, chosen);
    }
    free(arguments);
    free(outputs);
    free(donated);
    free(chosen);
    return status;
}

ct_status *ct_generate(ct_generator *g, const ct_generation *want)
{
    int64_t longest = 0;
    CT_TRY(check(g, want, &longest));
    run r = {.g = g, .want = want, .opts = g->opts};
    r.opts.sampling = want->sampling;
    r.opts.stop_ids = want->stop_ids;
    r.opts.num_stop_ids = want->num_stop_ids;
    int64_t steps = want->tokens_per_launch ? want->tokens_per_launch : DEFAULT_STEPS;
    r.shape =
        (ct_generate_shape){.batch = (int64_t)want->num_prompts, .prompt_len = prompt_bucket(longest), .steps = steps};
    /* whole launches behind the first token, which is prefill's */
    r.shape.capacity = round_up(r.shape.prompt_len + round_up(want->max_tokens - 1, steps), 64);
    r.caches = ct_alloc_zeroed(g->num_caches, sizeof(*r.caches));
    r.finished = ct_alloc_zeroed(want->num_prompts, sizeof(*r.finished));
    r.counts = ct_alloc_zeroed(want->num_prompts, sizeof(*r.counts));
    ct_status *status = compile(&r);
    if (!status) status = put_sampling(&r);
    if (!status) status = start(&r);
    if (!status) status = go_on(&r);
    ct_buffers_free(r.caches, g->num_caches);
    ct_buffers_free(r.sampling, r.num_sampling);
    ct_buffer_free(r.next);
    ct_buffer_free(r.pads);
    ct_executable_free(r.prefill);
    ct_executable_free(r.decode);
    free(r.caches);
    free(r.finished);
    free(r.counts);
    return status;
}
