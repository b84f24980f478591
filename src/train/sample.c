/* Sampling by repeated forward passes, as one while loop. */
#include "train/sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "graph/ops.h"
#include "graph/random.h"

typedef struct sample_loop {
    const ct_model *model;
    ct_tensor **params;
    ct_tensor *key0, *key1, *temperature;
    int64_t seq_len;
} sample_loop;

/* carries: position of the token to be chosen, s32; tokens, s32 [seq] */
static ct_tensor *not_full(ct_graph *graph, void *context, ct_tensor *const *carries)
{
    const sample_loop *loop = context;
    return ct_lt(carries[0], ct_scalar(graph, CT_DTYPE_S32, (double)loop->seq_len));
}

static void choose_next(ct_graph *graph, void *context, ct_tensor *const *carries, ct_tensor **out_carries)
{
    const sample_loop *loop = context;
    ct_tensor *position = carries[0], *tokens = carries[1];
    ct_tensor *batch = ct_unsqueeze(tokens, "batch", 0);
    ct_graph_declare_axis(graph, "seq", loop->seq_len);
    ct_tensor *positions = ct_iota(graph, CT_DTYPE_S32, "batch=1 seq", "seq");
    ct_model_opts opts = {.compute_dtype = CT_DTYPE_F32};
    ct_tensor *hidden = ct_model_hidden(loop->model, loop->params, batch, positions, NULL, &opts);
    ct_tensor *last = ct_dynamic_slice(hidden, "seq", ct_add_scalar(position, -1), 1);
    ct_tensor *logits = ct_model_logits(loop->model, loop->params, last, &opts);
    logits = ct_convert(ct_squeeze(ct_squeeze(logits, "batch"), "seq"), CT_DTYPE_F32); /* [vocab] */

    /* Gumbel's trick: argmax(logits / T - log(-log u)) is a draw from softmax(logits / T) */
    char axes[48];
    snprintf(axes, sizeof(axes), "vocab=%lld", (long long)loop->model->config.vocab_size);
    ct_tensor *key1 = ct_xor(loop->key1, ct_convert(position, CT_DTYPE_U32));
    ct_tensor *uniform = ct_uniform_from_bits(ct_random_bits_from(loop->key0, key1, axes));
    uniform = ct_add_scalar(uniform, 0x1p-25); /* never 0 */
    ct_tensor *noise = ct_neg(ct_log(ct_neg(ct_log(uniform))));
    ct_tensor *next = ct_argmax(ct_add(logits, ct_mul(noise, loop->temperature)), "vocab");
    out_carries[0] = ct_add_scalar(position, 1);
    out_carries[1] = ct_dynamic_update_slice(tokens, ct_unsqueeze(next, "seq", 0), "seq", position);
}

static ct_status *build(const ct_model *model, int64_t seq_len, ct_dtype dtype, const ct_kernels *kernels,
                        ct_graph **out_graph)
{
    ct_graph *graph = ct_graph_new("sample");
    ct_kernels_attach(graph, kernels);
    ct_tensor **params = ct_alloc((size_t)model->num_params * sizeof(*params));
    ct_model_inputs(model, graph, dtype, params);
    ct_graph_declare_axis(graph, "seq", seq_len);
    ct_tensor *tokens = ct_input(graph, "tokens", CT_DTYPE_S32, "seq");
    ct_tensor *position = ct_input(graph, "position", CT_DTYPE_S32, "");
    sample_loop loop = {.model = model, .params = params, .seq_len = seq_len};
    loop.key0 = ct_input(graph, "key0", CT_DTYPE_U32, "");
    loop.key1 = ct_input(graph, "key1", CT_DTYPE_U32, "");
    loop.temperature = ct_input(graph, "temperature", CT_DTYPE_F32, "");
    ct_tensor *carries[2] = {position, tokens}, *last[2];
    ct_while(graph, 2, carries, not_full, choose_next, &loop, last);
    ct_output(graph, "tokens", last[1], NULL);
    free(params);
    ct_status *status = ct_graph_check(graph);
    if (status)
        ct_graph_free(graph);
    else
        *out_graph = graph;
    return status;
}

static ct_status *put_scalar(ct_session *session, ct_dtype dtype, const void *value, ct_buffer **out_buffer)
{
    ct_array array = {.dtype = dtype, .data = (void *)(uintptr_t)value};
    return ct_buffer_from_host(ct_session_device(session, 0), &array, NULL, NULL, out_buffer);
}

/* The parameters whole on device 0: out_params[num_params], the caller's to free where the state is spread out. */
static ct_status *gather(const ct_train_state *state, ct_buffer **out_params)
{
    if (state->session->num_devices == 1) {
        memcpy(out_params, state->buffers, (size_t)state->model->num_params * sizeof(*out_params));
        return NULL;
    }
    for (int i = 0; i < state->model->num_params; i++) {
        ct_array array;
        CT_TRY(ct_train_state_param(state, i, &array));
        ct_status *status =
            ct_buffer_from_host(ct_session_device(state->session, 0), &array, NULL, NULL, &out_params[i]);
        ct_array_free(&array);
        CT_TRY(status);
    }
    return NULL;
}

static ct_status *run(const ct_train_state *state, ct_array *tokens, int32_t position, const ct_sample_opts *opts)
{
    ct_graph *graph;
    ct_session *session = state->session;
    CT_TRY(build(state->model, tokens->sizes[0], state->param_dtype, &opts->kernels, &graph));
    size_t num_params = (size_t)state->model->num_params;
    ct_buffer **arguments = ct_alloc_zeroed(num_params + 5, sizeof(*arguments)), *output = NULL;
    ct_buffer **inputs = arguments + num_params;
    uint32_t key[2];
    ct_rng_key(opts->seed, "sample", key);
    float temperature = (float)opts->temperature;
    ct_executable *executable = NULL;
    ct_session single = *session;                           /* the sample needs one device only */
    single.num_devices = single.compile.num_partitions = 1; /* the first of the devices */
    ct_status *status = ct_session_compile(&single, graph, NULL, &executable);
    if (!status) status = gather(state, arguments);
    if (!status) status = ct_buffer_from_host(ct_session_device(session, 0), tokens, NULL, NULL, &inputs[0]);
    if (!status) status = put_scalar(session, CT_DTYPE_S32, &position, &inputs[1]);
    if (!status) status = put_scalar(session, CT_DTYPE_U32, &key[0], &inputs[2]);
    if (!status) status = put_scalar(session, CT_DTYPE_U32, &key[1], &inputs[3]);
    if (!status) status = put_scalar(session, CT_DTYPE_F32, &temperature, &inputs[4]);
    if (!status) status = ct_executable_execute(executable, arguments, num_params + 5, NULL, &output);
    if (!status) status = ct_buffer_to_host(output, tokens->data, ct_array_bytes(tokens), NULL);
    ct_buffers_free(inputs, 5);
    if (session->num_devices > 1) ct_buffers_free(arguments, num_params);
    ct_buffer_free(output);
    ct_executable_free(executable);
    ct_graph_free(graph);
    free(arguments);
    return status;
}

ct_status *ct_sample(const ct_train_state *state, const ct_tokenizer *tokenizer, const ct_sample_opts *opts,
                     ct_str *out_text)
{
    int32_t *ids;
    size_t num_ids;
    ct_tokenizer_encode_opts encode = {.add_bos = true};
    CT_TRY(ct_tokenizer_encode(tokenizer, opts->prompt, strlen(opts->prompt), &encode, &ids, &num_ids));
    int64_t size = CT_MIN((int64_t)num_ids + opts->max_tokens, state->model->config.max_seq_len);
    ct_status *status = NULL;
    if (!num_ids || (int64_t)num_ids >= size) {
        status = ct_error(CT_CODE_INVALID_ARGUMENT,
                          "sample.prompt must be 1 to %lld tokens long, so that one can follow; it has %zu",
                          (long long)size - 1, num_ids);
    } else {
        ct_array tokens = ct_array_new(CT_DTYPE_S32, &size, 1);
        memcpy(tokens.data, ids, num_ids * sizeof(*ids));
        status = run(state, &tokens, (int32_t)num_ids, opts);
        int32_t *chosen = tokens.data;
        size_t num_chosen = 0;
        for (int64_t i = 0; i < size && (i < (int64_t)num_ids || chosen[i] != ct_tokenizer_eos(tokenizer)); i++)
            if (chosen[i] < ct_tokenizer_vocab_size(tokenizer)) chosen[num_chosen++] = chosen[i]; /* others pad */
        if (!status) status = ct_tokenizer_decode(tokenizer, chosen, num_chosen, out_text);
        ct_array_free(&tokens);
    }
    free(ids);
    return ct_status_note(status, "sampling");
}
