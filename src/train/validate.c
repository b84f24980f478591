/* Validation: its data, its program, its sums. */
#include "train/validate.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "train/inputs.h"
#include "train/setup.h"

struct ct_validator {
    ct_validator_opts opts;
    ct_step_opts step; /* training's, with validation's sizes */
    ct_parallel parallel;
    ct_dataset *dataset;
    ct_json *start; /* of the data: its state as a checkpoint has it */
    ct_batch batch;
    ct_inputs inputs;
    ct_graph *graph;
    ct_executable *executable;
    ct_buffer **arguments, **outputs; /* [device][params, batch], [device] */
};

bool ct_validation_is_due(const ct_recipe *recipe, int64_t step)
{
    return recipe->validation.enable && (step == 1 || step % recipe->validation.freq == 0);
}

static ct_status *check_sizes(const ct_validator *v)
{
    const ct_model *model = v->opts.model;
    const char *where = ct_recipe_where(v->opts.recipe, "validation.seq_len");
    if (v->step.seq_len > model->config.max_seq_len)
        return ct_error(CT_CODE_INVALID_ARGUMENT,
                        "validation.seq_len = %lld exceeds the model's longest sequence, %lld (%s); lower it",
                        (long long)v->step.seq_len, (long long)model->config.max_seq_len, where);
    CT_TRY_NOTE(ct_model_check_parallel(model, &v->parallel, v->step.batch, v->step.seq_len), "validation.seq_len (%s)",
                where);
    return NULL;
}

static ct_status *open_data(ct_validator *v)
{
    const ct_recipe *recipe = v->opts.recipe;
    ct_dataset_opts opts = ct_recipe_data(recipe, &v->step, v->opts.model, v->opts.tokenizer, v->opts.chat);
    opts.paths = recipe->validation.dataset_path.items;
    opts.num_paths = recipe->validation.dataset_path.num_items;
    opts.kind = recipe->validation.dataset;
    opts.seq_len = v->step.seq_len;
    opts.weights = NULL;
    opts.once = true;
    opts.shuffle = false;
    CT_TRY_NOTE(ct_dataset_open(&opts, &v->dataset), "validation.dataset_path (%s)",
                ct_recipe_where(recipe, "validation.dataset_path"));
    ct_batch_init(&v->batch, v->dataset);
    ct_data_state *state = ct_dataset_state(v->dataset);
    ct_json_writer *writer = ct_json_writer_new();
    ct_data_state_write(state, writer, NULL);
    char *text = ct_json_writer_text(writer, false);
    ct_status *status = ct_json_parse(text, strlen(text), "the start of the validation data", &v->start);
    free(text);
    ct_json_writer_free(writer);
    ct_data_state_free(state);
    CT_TRY(status);
    ct_str description;
    ct_str_init(&description);
    ct_dataset_describe(v->dataset, &description);
    ct_info("Validation data: %s; %lld sequences of %lld tokens per batch", description.data,
            (long long)opts.batch_size, (long long)opts.seq_len);
    ct_str_deinit(&description);
    return NULL;
}

static ct_status *build(ct_validator *v)
{
    size_t num_devices = (size_t)v->opts.session->num_devices;
    CT_TRY(ct_validation_build(v->opts.model, &v->step, &v->graph));
    CT_TRY(ct_session_compile(v->opts.session, v->graph, "validation program", &v->executable));
    size_t num_arguments = (size_t)v->opts.model->num_params + CT_NUM_BATCH_ARRAYS;
    v->arguments = ct_alloc_zeroed(num_devices * num_arguments, sizeof(*v->arguments));
    v->outputs = ct_alloc_zeroed(num_devices, sizeof(*v->outputs));
    return NULL;
}

ct_status *ct_validator_open(const ct_validator_opts *opts, ct_validator **out_validator)
{
    *out_validator = NULL;
    const ct_recipe *recipe = opts->recipe;
    ct_validator *v = ct_alloc_zeroed(1, sizeof(*v));
    v->opts = *opts;
    v->opts.step = NULL; /* copied */
    v->step = *opts->step;
    v->step.report = NULL;
    v->step.num_microbatches = 1;
    if (recipe->validation.local_batch_size > 0)
        v->step.batch = recipe->validation.local_batch_size * ct_recipe_num_data_parallel(recipe);
    if (recipe->validation.seq_len > 0) v->step.seq_len = recipe->validation.seq_len;
    v->parallel = *opts->parallel;
    v->parallel.reduce_once = false; /* there are no gradients */
    v->step.parallel = &v->parallel;
    ct_status *status = check_sizes(v);
    if (!status) status = ct_inputs_init(&v->inputs, &v->parallel, &v->step);
    v->inputs.session = opts->session;
    if (!status) status = open_data(v);
    if (!status) status = build(v);
    if (status)
        ct_validator_free(v);
    else
        *out_validator = v;
    return status;
}

void ct_validator_free(ct_validator *validator)
{
    if (!validator) return;
    free(validator->arguments);
    free(validator->outputs);
    ct_executable_free(validator->executable);
    ct_graph_free(validator->graph);
    ct_inputs_deinit(&validator->inputs);
    ct_batch_deinit(&validator->batch);
    ct_dataset_close(validator->dataset);
    ct_json_free(validator->start);
    free(validator);
}

/* The sum of the batch's losses. */
static ct_status *run_batch(ct_validator *v, const ct_train_state *state, double *out_sum)
{
    size_t num_devices = (size_t)v->opts.session->num_devices, num_params = (size_t)v->opts.model->num_params;
    size_t num_arguments = num_params + CT_NUM_BATCH_ARRAYS;
    for (size_t d = 0; d < num_devices; d++)
        memcpy(v->arguments + d * num_arguments, state->buffers + d * state->num_buffers,
               num_params * sizeof(*v->arguments));
    float sum = 0;
    ct_status *status = ct_inputs_put(&v->inputs, &v->batch, v->arguments + num_params, num_arguments);
    if (!status) status = ct_executable_execute(v->executable, v->arguments, num_arguments, NULL, v->outputs);
    if (!status) status = ct_buffer_to_host(v->outputs[0], &sum, sizeof(sum), NULL);
    for (size_t d = 0; d < num_devices; d++) /* the weights are the state's */
        ct_buffers_free(v->arguments + d * num_arguments + num_params, CT_NUM_BATCH_ARRAYS);
    ct_buffers_free(v->outputs, num_devices);
    *out_sum = (double)sum;
    return status;
}

static ct_status *run(ct_validator *v, const ct_train_state *state, double *out_loss, int64_t *out_num_tokens)
{
    double total = 0;
    int64_t num_labels = 0, max_steps = v->opts.recipe->validation.steps;
    CT_TRY(ct_dataset_restore(v->dataset, ct_json_root(v->start)));
    for (int64_t step = 0; max_steps < 0 || step < max_steps; step++) {
        double sum;
        CT_TRY(ct_dataset_next(v->dataset, &v->batch));
        if (!v->batch.num_samples) break;
        if (!v->batch.num_valid_labels) continue;
        CT_TRY(run_batch(v, state, &sum));
        total += sum;
        num_labels += v->batch.num_valid_labels;
        *out_num_tokens += v->step.batch * v->step.seq_len;
    }
    if (!num_labels)
        return ct_error(CT_CODE_INVALID_ARGUMENT,
                        "validation.dataset_path (%s) must give a label to average over, but "
                        "it gives no whole sequence of validation.seq_len = %lld",
                        ct_recipe_where(v->opts.recipe, "validation.dataset_path"), (long long)v->step.seq_len);
    *out_loss = total / (double)num_labels;
    return NULL;
}

ct_status *ct_validator_run(ct_validator *validator, const ct_train_state *state, double *out_loss,
                            int64_t *out_num_tokens)
{
    *out_loss = 0;
    *out_num_tokens = 0;
    return ct_status_note(run(validator, state, out_loss, out_num_tokens), "validating");
}
