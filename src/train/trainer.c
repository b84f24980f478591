/* The training loop. */
#include "train/trainer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "data/loader.h"
#include "formats/json.h"
#include "spmd/balance.h"
#include "train/metrics.h"
#include "train/metrics_flops.h"
#include "train/sample.h"
#include "train/setup.h"
#include "train/state.h"

enum { MAX_IN_FLIGHT = 2, NUM_BATCH_INPUTS = 5 /* tokens, labels, positions, segments, scalars */ };

/* A step whose metrics are still to be read. */
typedef struct pending_step {
    int64_t step, num_tokens;
    double lr, data_s, host_s;
    ct_buffer *buffer;
    ct_event *done;
    float values[CT_STEP_NUM_METRICS];
} pending_step;

typedef struct trainer {
    const ct_train_opts *opts;
    const ct_recipe *recipe;
    ct_model *model;
    ct_session *session;
    ct_train_state state;
    ct_parallel parallel;
    ct_step_opts step_opts;
    int64_t *column_order; /* of the sequence's columns on the devices (spmd/balance.h); NULL: as they are */
    ct_array columns;      /* a batch input in that order */
    ct_graph *graph;
    ct_executable *executable;
    ct_tokenizer *tokenizer;
    ct_dataset *dataset;
    ct_loader *loader;
    ct_metrics *metrics;
    char *checkpoint_folder;
    ct_lr_schedule schedule;
    int64_t step; /* the last one started */
    int64_t tokens_seen;
    int64_t batch_position; /* of the data after the last step started */
    /* the next step's inputs, on the devices: [device][NUM_BATCH_INPUTS] */
    ct_buffer **next_inputs;
    int64_t next_num_tokens;
    double next_lr, next_data_s, next_host_s;
    ct_buffer **arguments, **outputs;
    bool *donated;
    pending_step pending[MAX_IN_FLIGHT]; /* a ring: copies from the device go to its own places */
    int first_pending, num_pending;
} trainer;

/* ---- setting up ---- */

static int64_t devices_of(const trainer *t)
{
    return t->session->num_devices;
}

static ct_status *open_data(trainer *t)
{
    const ct_recipe *recipe = t->recipe;
    t->tokenizer = ct_tokenizer_bytes_new();
    ct_dataset_opts opts = {.dataset = recipe->training.dataset == CT_DATASET_TEXT ? "text" : "tokens",
                            .path = recipe->training.dataset_path,
                            .seq_len = recipe->training.seq_len,
                            .batch_size = t->step_opts.batch * t->step_opts.num_microbatches,
                            .vocab_size = t->model->config.vocab_size,
                            .shuffle = recipe->training.shuffle,
                            .seed = (uint64_t)recipe->debug.seed,
                            .tokenizer = t->tokenizer};
    CT_TRY_NOTE(ct_dataset_open(&opts, &t->dataset), "training.dataset_path (%s)",
                ct_recipe_where(recipe, "training.dataset_path"));
    ct_info("Data: %s, %lld tokens, %lld sequences of %lld per epoch, %lld per step", opts.path,
            (long long)ct_dataset_num_tokens(t->dataset), (long long)ct_dataset_num_samples(t->dataset),
            (long long)opts.seq_len, (long long)opts.batch_size);
    if (recipe->training.dataset == CT_DATASET_TEXT) {
        double entropy;
        CT_TRY(ct_dataset_unigram_entropy(t->dataset, &entropy));
        ct_info("A model that knows only how frequent each token is would reach a loss of %.4f (unigram entropy)",
                entropy);
    }
    return NULL;
}

/* A step is taken only if its hashes are right: to train on from damaged weights is worse than to say so. */
static const ct_checkpoint_open_opts VERIFY = {.verify = true};

static ct_status *resume(trainer *t, int64_t step, const ct_checkpoint_open_opts *opts)
{
    ct_checkpoint *checkpoint;
    CT_TRY(ct_checkpoint_open(t->checkpoint_folder, step, opts, &checkpoint));
    ct_json_value info = ct_checkpoint_info(checkpoint);
    int64_t position = 0;
    ct_status *status = ct_json_need_int(info, "n_tokens_seen", &t->tokens_seen);
    if (!status) status = ct_dataset_position_read(t->dataset, ct_json_get(info, "dataloader"), &position);
    if (!status) status = ct_train_state_load(&t->state, checkpoint, false);
    if (!status) {
        ct_dataset_seek(t->dataset, position);
        t->step = step;
        ct_info("Resumed from %s/step-%lld", t->checkpoint_folder, (long long)step);
    }
    ct_checkpoint_close(checkpoint);
    return ct_status_note(status, "resuming from %s/step-%lld", t->checkpoint_folder, (long long)step);
}

/* Weights of another run's checkpoint: path/step-N. */
static ct_status *load_weights(trainer *t, const char *path)
{
    char *copy = ct_strdup(path);
    size_t length = strlen(copy);
    while (length > 1 && copy[length - 1] == '/') copy[--length] = 0;
    char *slash = strrchr(copy, '/');
    const char *name = slash ? slash + 1 : copy;
    int64_t step = -1;
    ct_status *status = NULL;
    ct_checkpoint *checkpoint = NULL;
    if (sscanf(name, "step-%" SCNd64, &step) != 1 || step < 0)
        status = ct_error(CT_CODE_INVALID_ARGUMENT,
                          "checkpoint.initial_load_path must be a saved step, .../step-N, or with "
                          "checkpoint.initial_load_in_hf a Hugging Face folder; found %s (%s)",
                          path, ct_recipe_where(t->recipe, "checkpoint.initial_load_path"));
    if (!status) {
        if (slash) *slash = 0;
        status = ct_checkpoint_open(slash ? copy : ".", step, &VERIFY, &checkpoint);
    }
    if (!status) status = ct_train_state_load(&t->state, checkpoint, true);
    ct_checkpoint_close(checkpoint);
    free(copy);
    return ct_status_note(status, "loading the weights of %s", path);
}

static ct_status *make_state(trainer *t)
{
    const ct_recipe *recipe = t->recipe;
    ct_train_state_init(&t->state, t->session, t->model, &t->parallel, t->step_opts.param_dtype,
                        t->step_opts.moment_dtype);
    t->state.moments_on_host = t->step_opts.moments_on_host;
    if (recipe->checkpoint.enable) {
        int64_t step = recipe->checkpoint.load_step;
        bool newest = step < 0;
        if (newest) CT_TRY(ct_checkpoint_latest(t->checkpoint_folder, &VERIFY, &step));
        if (step >= 0) return resume(t, step, newest ? NULL : &VERIFY);
    }
    const char *path = recipe->checkpoint.initial_load_path;
    if (!path) return ct_train_state_from_seed(&t->state, (uint64_t)recipe->debug.seed);
    CT_TRY(recipe->checkpoint.initial_load_in_hf ? ct_train_state_from_hf(&t->state, path) : load_weights(t, path));
    ct_info("Loaded the initial weights from %s", path);
    return NULL;
}

static ct_status *build_step(trainer *t)
{
    CT_TRY(ct_train_step_build(t->model, &t->step_opts, &t->graph));
    CT_TRY(ct_session_compile(t->session, t->graph, "training step", &t->executable));
    size_t num_devices = (size_t)devices_of(t), num_arguments = t->state.num_buffers + NUM_BATCH_INPUTS;
    t->arguments = ct_alloc_zeroed(num_devices * num_arguments, sizeof(*t->arguments));
    t->outputs = ct_alloc_zeroed(num_devices * (t->state.num_buffers + 1), sizeof(*t->outputs));
    t->next_inputs = ct_alloc_zeroed(num_devices * NUM_BATCH_INPUTS, sizeof(*t->next_inputs));
    t->donated = ct_alloc_zeroed(num_arguments, sizeof(*t->donated));
    for (size_t i = 0; i < t->state.num_buffers; i++) t->donated[i] = true;
    return NULL;
}

static ct_status *open_metrics(trainer *t)
{
    const ct_recipe *recipe = t->recipe;
    bool is_known;
    double peak = ct_peak_flops(ct_device_kind(ct_session_device(t->session, 0)), &is_known);
    if (!is_known)
        ct_warning("Peak flops of \"%s\" are not known, so mfu is of an A100's %.0f TFLOP/s",
                   ct_device_kind(ct_session_device(t->session, 0)), peak / 1e12);
    ct_metrics_opts opts = {.folder = recipe->dump_folder,
                            .num_steps = recipe->training.steps,
                            .log_freq = recipe->metrics.log_freq,
                            .first_step = t->step + 1,
                            .n_tokens_seen = t->tokens_seen,
                            .num_devices = devices_of(t),
                            .flops_per_token = ct_model_flops_per_token(t->model, recipe->training.seq_len),
                            .peak_flops = peak,
                            .start_s = ct_clock_seconds(),
                            .disable_color_printing = recipe->metrics.disable_color_printing};
    return ct_metrics_open(&opts, &t->metrics);
}

static ct_status *write_recipe(const trainer *t)
{
    ct_str text;
    ct_str_init(&text);
    ct_recipe_print(t->recipe, &text);
    char *path = ct_path_join(t->recipe->dump_folder, "recipe.toml");
    ct_status *status = ct_dir_make(t->recipe->dump_folder);
    if (!status) status = ct_file_write(path, text.data, text.length);
    free(path);
    ct_str_deinit(&text);
    return status;
}

/* ---- steps ---- */

/* The columns of a batch input as context parallel wants them; the array itself where it does not care. */
static ct_array ordered(trainer *t, const ct_array *array)
{
    if (!t->column_order) return *array;
    int64_t rows = array->sizes[0], seq_len = array->sizes[1];
    if (!t->columns.data) t->columns = ct_array_new(CT_DTYPE_S32, array->sizes, 2);
    const int32_t *from = array->data;
    int32_t *to = t->columns.data;
    for (int64_t row = 0; row < rows; row++, from += seq_len)
        for (int64_t i = 0; i < seq_len; i++) *to++ = from[t->column_order[i]];
    return t->columns;
}

/* [global batch, seq], as [accum, batch, seq] with microbatches; each device gets its box. */
static ct_status *put_batch(trainer *t, const ct_array *whole, ct_buffer **out_buffers)
{
    ct_array array = ordered(t, whole);
    ct_axis axes[3] = {
        {"accum", t->step_opts.num_microbatches}, {"batch", t->step_opts.batch}, {"seq", t->step_opts.seq_len}};
    int first = t->step_opts.num_microbatches > 1 ? 0 : 1;
    ct_layout layout = {.mesh = &t->parallel.mesh, .dtype = array.dtype, .rank = 3 - first};
    layout.sharding = ct_parallel_activation(&t->parallel, layout.rank, axes + first);
    array.rank = layout.rank;
    for (int i = 0; i < layout.rank; i++) array.sizes[i] = layout.sizes[i] = axes[first + i].size;
    return ct_session_share(t->session, &array, &layout, out_buffers, NUM_BATCH_INPUTS);
}

/* Puts the inputs of step n on the devices. */
static ct_status *put_next(trainer *t, int64_t n)
{
    double start = ct_clock_seconds();
    const ct_batch *batch;
    CT_TRY(ct_loader_next(t->loader, &batch));
    t->next_data_s = ct_clock_seconds() - start;
    start += t->next_data_s;
    if (!batch->num_valid_labels)
        return ct_error(CT_CODE_INVALID_ARGUMENT, "step %lld: all labels of the batch are %d, so it has no loss",
                        (long long)n, CT_IGNORED_LABEL);
    const ct_array *arrays[4] = {&batch->inputs, &batch->labels, &batch->positions, &batch->segment_ids};
    for (int i = 0; i < 4; i++) CT_TRY(put_batch(t, arrays[i], &t->next_inputs[i]));
    t->next_lr = t->recipe->optimizer.lr * ct_lr_factor(&t->schedule, n - 1);
    t->next_num_tokens = batch->inputs.sizes[0] * batch->inputs.sizes[1];
    double corrections[2];
    ct_adamw_corrections(&t->step_opts.adamw, n, corrections);
    float scalars[CT_STEP_NUM_SCALARS] = {[CT_STEP_LR] = (float)t->next_lr,
                                          [CT_STEP_BIAS1] = (float)corrections[0],
                                          [CT_STEP_BIAS2] = (float)corrections[1],
                                          [CT_STEP_NUM_VALID] = (float)batch->num_valid_labels};
    ct_array array = {.dtype = CT_DTYPE_F32, .rank = 1, .sizes = {CT_STEP_NUM_SCALARS}, .data = scalars};
    CT_TRY(ct_session_replicate(t->session, &array, &t->next_inputs[4], NUM_BATCH_INPUTS));
    t->next_host_s = ct_clock_seconds() - start;
    return NULL;
}

/* Starts step t->step + 1 with the inputs that were put before. */
static ct_status *start_step(trainer *t)
{
    double start = ct_clock_seconds();
    size_t num_devices = (size_t)devices_of(t), num_state = t->state.num_buffers;
    size_t num_arguments = num_state + NUM_BATCH_INPUTS, num_outputs = num_state + 1;
    for (size_t d = 0; d < num_devices; d++) {
        ct_buffer **row = t->arguments + d * num_arguments;
        memcpy(row, t->state.buffers + d * num_state, num_state * sizeof(*row));
        memcpy(row + num_state, t->next_inputs + d * NUM_BATCH_INPUTS, NUM_BATCH_INPUTS * sizeof(*row));
    }
    ct_execute_opts opts = {.donated = t->donated};
    CT_TRY(ct_executable_execute(t->executable, t->arguments, num_arguments, &opts, t->outputs));
    t->step++;
    t->batch_position = ct_loader_position(t->loader);
    t->tokens_seen += t->next_num_tokens;
    for (size_t d = 0; d < num_devices; d++)
        memcpy(t->state.buffers + d * num_state, t->outputs + d * num_outputs, num_state * sizeof(*t->outputs));
    ct_buffers_free(t->next_inputs, num_devices * NUM_BATCH_INPUTS);
    for (size_t d = 1; d < num_devices; d++) ct_buffer_free(t->outputs[d * num_outputs + num_state]);

    pending_step *pending = &t->pending[(t->first_pending + t->num_pending++) % MAX_IN_FLIGHT];
    *pending = (pending_step){.step = t->step,
                              .num_tokens = t->next_num_tokens,
                              .lr = t->next_lr,
                              .data_s = t->next_data_s,
                              .buffer = t->outputs[num_state]};
    ct_status *status = ct_buffer_to_host(pending->buffer, pending->values, sizeof(pending->values), &pending->done);
    pending->host_s = t->next_host_s + ct_clock_seconds() - start;
    return status;
}

/* Peak bytes in use and their limit on the first device; 0 where the plugin does not say. */
static ct_status *device_memory(const trainer *t, ct_metrics_step *out)
{
    ct_memory_stats stats;
    CT_TRY(ct_device_memory_stats(ct_session_device(t->session, 0), &stats));
    out->memory_bytes = CT_MAX(stats.peak_bytes_in_use, 0);
    out->memory_limit_bytes = CT_MAX(stats.bytes_limit, 0);
    return NULL;
}

/* Waits for the oldest step under way and records it. */
static ct_status *finish_step(trainer *t)
{
    pending_step *pending = &t->pending[t->first_pending];
    t->first_pending = (t->first_pending + 1) % MAX_IN_FLIGHT;
    t->num_pending--;
    ct_status *status = ct_events_await_free(&pending->done, 1);
    ct_buffer_free(pending->buffer);
    CT_TRY_NOTE(status, "in step %lld", (long long)pending->step);
    double loss = (double)pending->values[CT_STEP_LOSS], norm = (double)pending->values[CT_STEP_GRAD_NORM];
    if (pending->values[CT_STEP_FINITE] != 1.0f)
        return ct_error(
            CT_CODE_ABORTED,
            "step %lld: loss and gradient norm must be finite, found loss %f and norm %f; the weights are "
            "those before this step. Lower optimizer.lr, raise lr_scheduler.warmup_steps, or look at the data",
            (long long)pending->step, loss, norm);
    ct_metrics_step step = {.step = pending->step,
                            .loss = loss,
                            .grad_norm = norm,
                            .lr = pending->lr,
                            .num_tokens = pending->num_tokens,
                            .data_loading_s = pending->data_s,
                            .host_s = pending->host_s,
                            .end_s = ct_clock_seconds()};
    CT_TRY(device_memory(t, &step));
    return ct_metrics_record(t->metrics, &step);
}

static ct_status *finish_all(trainer *t)
{
    while (t->num_pending) CT_TRY(finish_step(t));
    return NULL;
}

static ct_status *save(trainer *t)
{
    CT_TRY(finish_all(t)); /* nothing that turns out not to be finite is saved */
    ct_json_writer *writer = ct_json_writer_new();
    ct_json_begin_object(writer, NULL);
    ct_json_put_int(writer, "n_tokens_seen", t->tokens_seen);
    ct_dataset_position_write(t->dataset, t->batch_position, writer, "dataloader");
    ct_json_put_int(writer, "seed", t->recipe->debug.seed); /* all random bits are functions of it */
    ct_json_put_string(writer, "model", t->recipe->model.name);
    ct_json_put_string(writer, "flavor", t->recipe->model.flavor);
    ct_json_end(writer);
    char *info = ct_json_writer_text(writer, false);
    ct_json_writer_free(writer);
    double start = ct_clock_seconds();
    ct_status *status = ct_train_state_save(&t->state, t->checkpoint_folder, t->step, info);
    free(info);
    if (!status)
        ct_info("Saved %s/step-%lld in %.2f s", t->checkpoint_folder, (long long)t->step, ct_clock_seconds() - start);
    return status;
}

static ct_status *loop(trainer *t)
{
    int64_t last = t->recipe->training.steps, saved = t->step;
    if (t->step >= last) {
        ct_info("Step %lld of %lld is done already; raise training.steps to go on", (long long)t->step,
                (long long)last);
        return NULL;
    }
    ct_info("Training starts at step %lld", (long long)t->step + 1);
    CT_TRY(put_next(t, t->step + 1));
    while (t->step < last) {
        CT_TRY(start_step(t));
        bool stopped = t->opts->stop && *t->opts->stop;
        if (t->step < last && !stopped) {
            ct_status *status = put_next(t, t->step + 1);
            if (status) return ct_status_first(status, finish_all(t)); /* what was done is recorded */
        }
        if (t->num_pending == MAX_IN_FLIGHT) CT_TRY(finish_step(t));
        bool is_due = t->step % t->recipe->checkpoint.interval == 0 || t->step == last || stopped;
        if (t->recipe->checkpoint.enable && is_due && t->step != saved) {
            CT_TRY(save(t));
            saved = t->step;
        }
        if (stopped) {
            CT_TRY(finish_all(t));
            return ct_error(CT_CODE_CANCELLED, "stopped after step %lld%s", (long long)t->step,
                            t->recipe->checkpoint.enable ? ", which is saved; the same command goes on from there"
                                                         : "; nothing is saved, as checkpoint.enable is false");
        }
    }
    return finish_all(t);
}

static ct_status *print_sample(trainer *t)
{
    const ct_recipe *recipe = t->recipe;
    if (!recipe->sample.max_tokens || recipe->training.dataset != CT_DATASET_TEXT) return NULL;
    ct_sample_opts opts = {.prompt = recipe->sample.prompt,
                           .max_tokens = recipe->sample.max_tokens,
                           .temperature = recipe->sample.temperature,
                           .seed = (uint64_t)recipe->debug.seed,
                           .kernels = t->step_opts.kernels};
    ct_str text;
    ct_str_init(&text);
    ct_status *status = ct_sample(&t->state, t->tokenizer, &opts, &text);
    if (!status) printf("---- sample ----\n%s\n----------------\n", text.data);
    fflush(stdout);
    ct_str_deinit(&text);
    return status;
}

static ct_status *order_columns(trainer *t)
{
    int64_t cp = t->parallel.mesh.degrees[CT_MESH_CP], seq_len = t->step_opts.seq_len;
    if (cp == 1) return NULL;
    t->column_order = ct_alloc((size_t)seq_len * sizeof(*t->column_order));
    return ct_head_tail_order(seq_len, cp, t->column_order);
}

static ct_status *run(trainer *t)
{
    const ct_recipe *recipe = t->recipe;
    CT_TRY(ct_recipe_model(recipe, &t->model));
    ct_info("Model %s %s size: %lld total parameters", recipe->model.name, recipe->model.flavor,
            (long long)ct_model_num_params(&t->model->config, t->model->family));
    t->schedule = ct_recipe_lr_schedule(recipe);
    CT_TRY(ct_recipe_parallel(recipe, t->model, 0, NULL, NULL, &t->parallel));
    t->step_opts = ct_recipe_step(recipe, &t->parallel, NULL);
    CT_TRY(order_columns(t));
    t->checkpoint_folder = ct_path_join(recipe->dump_folder, recipe->checkpoint.folder);
    CT_TRY(ct_session_open(&t->opts->session, &t->session));
    /* once more, along the devices' torus */
    const char *kind = ct_device_kind(ct_session_device(t->session, 0));
    CT_TRY(
        ct_recipe_parallel(recipe, t->model, t->session->torus.num_axes, t->session->torus.sizes, kind, &t->parallel));
    t->step_opts.kernels = ct_recipe_kernels(recipe, kind);
    char *kernels = ct_step_kernels_text(&t->step_opts, t->model);
    ct_info("Kernels: %s", kernels);
    free(kernels);
    CT_TRY(open_data(t));
    CT_TRY(write_recipe(t));
    CT_TRY(make_state(t));
    CT_TRY(build_step(t));
    CT_TRY(ct_loader_new(t->dataset, 0, &t->loader));
    CT_TRY(open_metrics(t));
    CT_TRY(loop(t));
    CT_TRY(print_sample(t));
    ct_info("Outputs are in %s: metrics.jsonl, recipe.toml%s%s", recipe->dump_folder,
            recipe->checkpoint.enable ? ", " : "", recipe->checkpoint.enable ? recipe->checkpoint.folder : "");
    return NULL;
}

static void free_all(trainer *t)
{
    while (t->num_pending) { /* after an error */
        pending_step *pending = &t->pending[t->first_pending];
        ct_status_free(ct_events_await_free(&pending->done, 1));
        ct_buffer_free(pending->buffer);
        t->first_pending = (t->first_pending + 1) % MAX_IN_FLIGHT;
        t->num_pending--;
    }
    ct_metrics_close(t->metrics);
    ct_loader_free(t->loader);
    ct_dataset_close(t->dataset);
    ct_tokenizer_free(t->tokenizer);
    if (t->next_inputs) ct_buffers_free(t->next_inputs, (size_t)devices_of(t) * NUM_BATCH_INPUTS);
    ct_train_state_deinit(&t->state);
    ct_executable_free(t->executable);
    ct_graph_free(t->graph);
    ct_session_close(t->session);
    ct_model_free(t->model);
    ct_array_free(&t->columns);
    free(t->column_order);
    free(t->next_inputs);
    free(t->arguments);
    free(t->outputs);
    free(t->donated);
    free(t->checkpoint_folder);
}

ct_status *ct_train(const ct_train_opts *opts)
{
    trainer t = {.opts = opts, .recipe = opts->recipe};
    ct_status *status = run(&t);
    free_all(&t);
    return status;
}
