/* Scoring a folder's model on a file's tokens. */
#include "train/score.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "data/dataset.h"
#include "train/chip.h"
#include "train/step.h"
#include "train/weights.h"

typedef struct scorer {
    const ct_score_run_opts *opts;
    ct_model *model;
    ct_session *session;
    ct_array inputs, labels; /* s32 [batch seq] */
    ct_score_opts program;
    ct_executable *executable;
    size_t num_outputs;
    ct_buffer **arguments, **outputs;
} scorer;

/* The first of the leading dims of a rank-3 tensor, or a rank-2 tensor whole, as s32. */
static ct_status *read_ids(const ct_safetensors_tensor *tensor, ct_array *out_ids)
{
    *out_ids = (ct_array){0};
    if ((tensor->rank != 2 && tensor->rank != 3) || (tensor->dtype != CT_DTYPE_S32 && tensor->dtype != CT_DTYPE_S64) ||
        !tensor->size_bytes)
        return ct_error(CT_CODE_INVALID_ARGUMENT,
                        "%s: tensor %s must be I32 or I64 of 2 or 3 dims, none of them 0; found %s of %d dims",
                        tensor->path, tensor->name, tensor->dtype_name, tensor->rank);
    ct_array all;
    CT_TRY(ct_safetensors_load(tensor, &all));
    *out_ids = ct_array_new(CT_DTYPE_S32, tensor->sizes + tensor->rank - 2, 2);
    int32_t *ids = out_ids->data;
    int64_t count = ct_array_num_elements(out_ids);
    ct_status *status = NULL;
    for (int64_t i = 0; i < count && !status; i++) {
        double value = ct_array_get(&all, i);
        if (value < INT32_MIN || value > INT32_MAX)
            status = ct_error(CT_CODE_OUT_OF_RANGE, "%s: tensor %s: %.0f at index %lld is no id", tensor->path,
                              tensor->name, value, (long long)i);
        else
            ids[i] = (int32_t)value;
    }
    ct_array_free(&all);
    if (status) ct_array_free(out_ids);
    return status;
}

static ct_status *check_ids(const ct_array *ids, const char *what, int64_t vocab_size, bool may_ignore)
{
    const int32_t *values = ids->data;
    int64_t count = ct_array_num_elements(ids), num_counted = 0, seq = ids->sizes[1];
    for (int64_t i = 0; i < count; i++) {
        if (may_ignore && values[i] == CT_IGNORED_LABEL) continue;
        num_counted++;
        if (values[i] < 0 || values[i] >= vocab_size)
            return ct_error(CT_CODE_OUT_OF_RANGE,
                            "%s must be from 0 to %lld, the model's vocabulary%s; found %d at [%lld, %lld]", what,
                            (long long)vocab_size - 1, may_ignore ? ", or -100" : "", values[i], (long long)(i / seq),
                            (long long)(i % seq));
    }
    if (!num_counted) return ct_error(CT_CODE_INVALID_ARGUMENT, "all %s are -100, so there is nothing to score", what);
    return NULL;
}

static ct_status *read_tokens(scorer *s)
{
    ct_safetensors *file;
    CT_TRY(ct_safetensors_open(s->opts->tokens_path, &file));
    ct_array tokens = {0};
    const ct_safetensors_tensor *tensor;
    ct_status *status = NULL;
    CT_TRY_OUT(ct_safetensors_find(file, "tokens", &tensor));
    CT_TRY_OUT(read_ids(tensor, &tokens));
    int64_t sizes[2] = {tokens.sizes[0], tokens.sizes[1] - 1};
    if (sizes[1] < 1) {
        status = ct_error(CT_CODE_INVALID_ARGUMENT, "%s: tensor tokens must have at least 2 tokens per row, found %lld",
                          s->opts->tokens_path, (long long)tokens.sizes[1]);
        goto out;
    }
    if (sizes[1] > s->model->config.max_seq_len) {
        status = ct_error(CT_CODE_INVALID_ARGUMENT, "%s: rows of %lld tokens exceed the model's longest sequence, %lld",
                          s->opts->tokens_path, (long long)sizes[1], (long long)s->model->config.max_seq_len);
        goto out;
    }
    s->inputs = ct_array_new(CT_DTYPE_S32, sizes, 2);
    const ct_safetensors_tensor *labels = ct_safetensors_get(file, "labels");
    if (labels) {
        CT_TRY_OUT(read_ids(labels, &s->labels));
        if (s->labels.sizes[0] != sizes[0] || s->labels.sizes[1] != sizes[1]) {
            status = ct_error(CT_CODE_INVALID_ARGUMENT,
                              "%s: labels must be [%lld, %lld] as tokens without their last, found "
                              "[%lld, %lld]",
                              s->opts->tokens_path, (long long)sizes[0], (long long)sizes[1],
                              (long long)s->labels.sizes[0], (long long)s->labels.sizes[1]);
            goto out;
        }
    } else {
        s->labels = ct_array_new(CT_DTYPE_S32, sizes, 2);
    }
    for (int64_t row = 0; row < sizes[0]; row++) {
        const int32_t *from = (const int32_t *)tokens.data + row * (sizes[1] + 1);
        size_t bytes = (size_t)sizes[1] * sizeof(*from);
        memcpy((int32_t *)s->inputs.data + row * sizes[1], from, bytes);
        if (!labels) memcpy((int32_t *)s->labels.data + row * sizes[1], from + 1, bytes);
    }
    CT_TRY_OUT(check_ids(&s->inputs, "tokens", s->model->config.vocab_size, false));
    status = check_ids(&s->labels, "labels", s->model->config.vocab_size, true);
out:
    ct_array_free(&tokens);
    ct_safetensors_close(file);
    return status;
}

/* Writes output o under name; a stacked gradient layer by layer. */
static ct_status *write_output(scorer *s, ct_safetensors_writer *writer, size_t output, const ct_model_param *param)
{
    ct_array array;
    CT_TRY(ct_buffer_to_array(s->outputs[output], &array));
    int64_t layers = param ? ct_model_param_layers(s->model, param) : 1;
    size_t bytes = ct_array_bytes(&array) / (size_t)layers;
    static const char *const names[] = {"loss", "logprobs", "logits"};
    ct_status *status = NULL;
    for (int64_t layer = 0; layer < layers && !status; layer++) {
        char buffer[256];
        char *name = param ? ct_asprintf("grad.%s", ct_model_hf_name(param, layer, buffer)) : ct_strdup(names[output]);
        status = ct_safetensors_writer_write(writer, name, (const char *)array.data + (size_t)layer * bytes, bytes);
        free(name);
    }
    ct_array_free(&array);
    return status;
}

static ct_status *declare_outputs(const scorer *s, ct_safetensors_writer *writer)
{
    int64_t batch = s->inputs.sizes[0], seq = s->inputs.sizes[1];
    CT_TRY(ct_safetensors_writer_add(writer, "loss", CT_DTYPE_F32, (int64_t[]){1}, 1));
    CT_TRY(ct_safetensors_writer_add(writer, "logprobs", CT_DTYPE_F32, (int64_t[]){batch, seq}, 2));
    if (s->program.logits) {
        int64_t sizes[3] = {batch, seq, s->model->config.vocab_size};
        CT_TRY(ct_safetensors_writer_add(writer, "logits", CT_DTYPE_F32, sizes, 3));
    }
    for (int i = 0; s->program.gradients && i < s->model->num_params; i++) {
        const ct_model_param *param = &s->model->params[i];
        for (int64_t layer = 0; layer < ct_model_param_layers(s->model, param); layer++) {
            char buffer[256];
            char *name = ct_asprintf("grad.%s", ct_model_hf_name(param, layer, buffer));
            ct_status *status = ct_safetensors_writer_add(writer, name, CT_DTYPE_F32, param->hf_sizes, param->hf_rank);
            free(name);
            CT_TRY(status);
        }
    }
    return NULL;
}

static ct_status *write_all(scorer *s)
{
    ct_safetensors_writer *writer;
    CT_TRY(ct_safetensors_writer_new(s->opts->output_path, NULL, &writer));
    ct_status *status = declare_outputs(s, writer);
    size_t first_gradient = s->program.logits ? 3 : 2;
    for (size_t o = 0; o < s->num_outputs && !status; o++)
        status = write_output(s, writer, o, o < first_gradient ? NULL : &s->model->params[o - first_gradient]);
    if (status) {
        ct_safetensors_writer_free(writer);
        return status;
    }
    return ct_safetensors_writer_finish(writer);
}

static ct_status *run(scorer *s, double *out_loss)
{
    const ct_model_family *family;
    ct_model_config config;
    CT_TRY(ct_model_config_read(s->opts->model_folder, &family, &config));
    CT_TRY(ct_model_new(family, &config, true, &s->model));
    CT_TRY(read_tokens(s));
    s->program = (ct_score_opts){.batch = s->inputs.sizes[0],
                                 .seq_len = s->inputs.sizes[1],
                                 .logits = s->opts->logits,
                                 .gradients = s->opts->gradients,
                                 .kernels = s->opts->kernels};
    size_t num_params = (size_t)s->model->num_params, num_arguments = num_params + 2;
    s->num_outputs = 2 + (s->program.logits ? 1U : 0U) + (s->program.gradients ? num_params : 0);
    s->arguments = ct_alloc_zeroed(num_arguments, sizeof(*s->arguments));
    s->outputs = ct_alloc_zeroed(s->num_outputs, sizeof(*s->outputs));
    CT_TRY(ct_session_open(&s->opts->session, &s->session));
    CT_TRY(ct_weights_put(s->opts->model_folder, s->model, CT_DTYPE_F32, s->session, s->arguments));
    const char *kind = ct_device_kind(ct_session_device(s->session, 0));
    s->program.kernels.platform = ct_chip_platform(kind, "cpu");
    s->program.kernels.chip = ct_chip_name(kind);
    ct_graph *graph;
    CT_TRY(ct_score_build(s->model, &s->program, &graph));
    ct_status *status = ct_session_compile(s->session, graph, "scoring program", &s->executable);
    ct_graph_free(graph);
    CT_TRY(status);
    CT_TRY(ct_session_replicate(s->session, &s->inputs, &s->arguments[num_params], 0));
    CT_TRY(ct_session_replicate(s->session, &s->labels, &s->arguments[num_params + 1], 0));
    CT_TRY(ct_executable_execute(s->executable, s->arguments, num_arguments, NULL, s->outputs));
    float loss;
    CT_TRY(ct_buffer_to_host(s->outputs[0], &loss, sizeof(loss), NULL));
    *out_loss = (double)loss;
    return write_all(s);
}

ct_status *ct_score(const ct_score_run_opts *opts, double *out_loss)
{
    *out_loss = 0;
    scorer s = {.opts = opts};
    ct_status *status = run(&s, out_loss);
    if (s.arguments) ct_buffers_free(s.arguments, (size_t)s.model->num_params + 2);
    if (s.outputs) ct_buffers_free(s.outputs, s.num_outputs);
    ct_executable_free(s.executable);
    ct_session_close(s.session);
    ct_array_free(&s.inputs);
    ct_array_free(&s.labels);
    ct_model_free(s.model);
    free(s.arguments);
    free(s.outputs);
    return status;
}
