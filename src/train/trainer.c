/* The training loop. */
#include "train/trainer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "data/loader.h"
#include "formats/json.h"
#include "train/chat.h"
#include "train/hf_files.h"
#include "train/inputs.h"
#include "train/lora.h"
#include "train/metrics.h"
#include "train/metrics_flops.h"
#include "train/profile.h"
#include "train/progress.h"
#include "train/sample.h"
#include "train/saved_step.h"
#include "train/saver.h"
#include "train/setup.h"
#include "train/state.h"
#include "train/validate.h"

enum { MAX_IN_FLIGHT = 2, NUM_BATCH_INPUTS = CT_NUM_BATCH_ARRAYS + 1 /* and scalars */ };

/* A step whose metrics are still to be read. */
typedef struct pending_step {
    int64_t step, num_tokens;
    double lr, data_s, host_s, start_s;
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
    ct_inputs inputs;
    ct_validator *validator; /* NULL: none */
    ct_graph *graph;
    ct_executable *executable;
    ct_tokenizer *tokenizer;
    ct_recipe_chat chat;
    ct_dataset *dataset;
    ct_loader *loader;
    ct_metrics *metrics;
    ct_profile *profile; /* NULL: none */
    ct_file_lock lock;   /* on dump_folder */
    char *checkpoint_folder;
    ct_saver *saver;
    ct_hf_files files; /* that a checkpoint carries along */
    ct_lr_schedule schedule;
    ct_progress progress;      /* of the last step started */
    ct_data_state *data_state; /* of the data after it */
    bool data_ended;           /* there is no next batch */
    /* the next step's inputs, on the devices: [device][NUM_BATCH_INPUTS] */
    ct_buffer **next_inputs;
    ct_data_state *next_data_state;
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
    CT_TRY(ct_recipe_tokenizer(recipe, &t->tokenizer));
    ct_info("Tokenizer: %s, %d tokens", ct_tokenizer_name(t->tokenizer), ct_tokenizer_vocab_size(t->tokenizer));
    bool has_chat = recipe->dataloader.messages_column;
    if (has_chat) CT_TRY(ct_recipe_chat_open(&t->chat, recipe, t->tokenizer));
    ct_dataset_opts opts =
        ct_recipe_data(recipe, &t->step_opts, t->model, t->tokenizer, has_chat ? &t->chat.renderer : NULL);
    CT_TRY_NOTE(ct_dataset_open(&opts, &t->dataset), "training.dataset_path (%s)",
                ct_recipe_where(recipe, "training.dataset_path"));
    ct_str text;
    ct_str_init(&text);
    ct_dataset_describe(t->dataset, &text);
    ct_info("Data: %s; %lld sequences of %lld tokens per step", text.data, (long long)opts.batch_size,
            (long long)opts.seq_len);
    ct_str_deinit(&text);
    double entropy = ct_dataset_unigram_entropy(t->dataset);
    if (!isnan(entropy))
        ct_info("A model that knows only how frequent each token is would reach a loss of %.4f (unigram entropy)",
                entropy);
    return NULL;
}

static ct_status *make_state(trainer *t)
{
    const ct_recipe *recipe = t->recipe;
    ct_train_state_init(&t->state, t->session, t->model, &t->parallel, t->step_opts.param_dtype,
                        t->step_opts.moment_dtype);
    t->state.moments_on_host = t->step_opts.moments_on_host;
    ct_saver_opts opts = {.folder = t->checkpoint_folder,
                          .mode = ct_saver_mode_of(recipe->checkpoint.async_mode, t->session),
                          .keep = recipe->checkpoint.keep_latest_k};
    t->saver = ct_saver_new(&opts);
    CT_TRY(ct_hf_files_open(t->model, recipe->model.flavor, recipe->model.hf_assets_path, t->tokenizer, &t->files));
    if (t->model->lora) {
        const char *base = recipe->checkpoint.initial_load_path;
        char *text = ct_lora_config_text(t->model, base ? base : recipe->model.flavor);
        ct_hf_files_add(&t->files, CT_ADAPTER_CONFIG, text);
        free(text);
    }
    return ct_progress_start(recipe, t->checkpoint_folder, &t->state, t->dataset, &t->progress);
}

static ct_status *build_step(trainer *t)
{
    CT_TRY(ct_train_step_build(t->model, &t->step_opts, &t->graph));
    CT_TRY(ct_train_step_compile(t->recipe, t->session, t->graph, &t->executable));
    size_t num_devices = (size_t)devices_of(t), num_arguments = t->state.num_buffers + NUM_BATCH_INPUTS;
    t->arguments = ct_alloc_zeroed(num_devices * num_arguments, sizeof(*t->arguments));
    t->outputs = ct_alloc_zeroed(num_devices * (t->state.num_buffers + 1), sizeof(*t->outputs));
    t->next_inputs = ct_alloc_zeroed(num_devices * NUM_BATCH_INPUTS, sizeof(*t->next_inputs));
    t->donated = ct_alloc_zeroed(num_arguments, sizeof(*t->donated));
    for (size_t i = (size_t)t->model->num_frozen; i < t->state.num_buffers; i++) t->donated[i] = true;
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
    char *board =
        recipe->metrics.enable_tensorboard ? ct_path_join(recipe->dump_folder, recipe->metrics.save_tb_folder) : NULL;
    ct_metrics_opts opts = {.folder = recipe->dump_folder,
                            .tensorboard_folder = board,
                            .num_steps = recipe->training.steps,
                            .log_freq = recipe->metrics.log_freq,
                            .first_step = t->progress.step + 1,
                            .n_tokens_seen = t->progress.tokens_seen,
                            .num_devices = devices_of(t),
                            .flops_per_token = ct_model_flops_per_token(t->model, recipe->training.seq_len),
                            .peak_flops = peak,
                            .start_s = ct_clock_seconds(),
                            .disable_color_printing = recipe->metrics.disable_color_printing};
    ct_status *status = ct_metrics_open(&opts, &t->metrics);
    free(board);
    return status;
}

/* One run at a time writes into a folder: metrics and steps of two would mix. */
static ct_status *lock_folder(trainer *t)
{
    const char *folder = t->recipe->dump_folder;
    char *path = ct_path_join(folder, ".lock");
    ct_status *status = ct_dir_make(folder);
    if (!status) status = ct_file_lock_take(path, &t->lock);
    if (ct_status_code(status) == CT_CODE_FAILED_PRECONDITION)
        status = ct_status_note(
            status, "another run writes into dump_folder = %s; wait for it to end, or choose another", folder);
    free(path);
    return status;
}

static ct_status *write_recipe(const trainer *t)
{
    ct_str text;
    ct_str_init(&text);
    const char *args = t->opts->session.plugin.libtpu_init_args;
    ct_recipe_print(t->recipe, &text);
    if (args && args[0]) {
        ct_str_append(&text, "\n# LIBTPU_INIT_ARGS as libtpu read it: ");
        for (const char *at = args; *at; at++) ct_str_append_char(&text, (unsigned char)*at < 0x20 ? ' ' : *at);
        ct_str_append_char(&text, '\n');
    }
    char *path = ct_path_join(t->recipe->dump_folder, "recipe.toml");
    ct_status *status = ct_file_write(path, text.data, text.length);
    free(path);
    ct_str_deinit(&text);
    return status;
}

/* ---- steps ---- */

/* Puts the inputs of step n on the devices, unless the data has ended. */
static ct_status *put_next(trainer *t, int64_t n)
{
    double start = ct_clock_seconds();
    const ct_batch *batch;
    CT_TRY(ct_loader_next(t->loader, &batch));
    ct_profile_span(t->profile, CT_PROFILE_HOST, "data wait", n, start);
    t->next_data_s = ct_clock_seconds() - start;
    start += t->next_data_s;
    ct_data_state_free(t->next_data_state);
    t->next_data_state = NULL;
    t->data_ended = !batch->num_samples;
    if (t->data_ended) return NULL;
    if (!batch->num_valid_labels)
        return ct_error(CT_CODE_INVALID_ARGUMENT, "step %lld: all labels of the batch are %d, so it has no loss",
                        (long long)n, CT_IGNORED_LABEL);
    CT_TRY(ct_inputs_put(&t->inputs, batch, t->next_inputs, NUM_BATCH_INPUTS));
    t->next_lr = t->recipe->optimizer.lr * ct_lr_factor(&t->schedule, t->progress.schedule_steps);
    t->next_num_tokens = batch->inputs.sizes[0] * batch->inputs.sizes[1];
    double corrections[2];
    ct_adamw_corrections(&t->step_opts.adamw, t->progress.optimizer_steps + 1, corrections);
    float scalars[CT_STEP_NUM_SCALARS] = {[CT_STEP_LR] = (float)t->next_lr,
                                          [CT_STEP_BIAS1] = (float)corrections[0],
                                          [CT_STEP_BIAS2] = (float)corrections[1],
                                          [CT_STEP_NUM_VALID] = (float)batch->num_valid_labels};
    ct_array array = {.dtype = CT_DTYPE_F32, .rank = 1, .sizes = {CT_STEP_NUM_SCALARS}, .data = scalars};
    CT_TRY(ct_session_replicate(t->session, &array, &t->next_inputs[CT_NUM_BATCH_ARRAYS], NUM_BATCH_INPUTS));
    t->next_host_s = ct_clock_seconds() - start;
    ct_profile_span(t->profile, CT_PROFILE_HOST, "put batch", n, start);
    t->next_data_state = ct_data_state_copy(batch->state);
    return NULL;
}

/* Starts the next step with the inputs that were put before. */
static ct_status *start_step(trainer *t)
{
    double start = ct_clock_seconds();
    size_t num_devices = (size_t)devices_of(t), num_state = t->state.num_buffers;
    size_t num_frozen = (size_t)t->model->num_frozen, num_changing = num_state - num_frozen;
    size_t num_arguments = num_state + NUM_BATCH_INPUTS, num_outputs = num_changing + 1;
    for (size_t d = 0; d < num_devices; d++) {
        ct_buffer **row = t->arguments + d * num_arguments;
        memcpy(row, t->state.buffers + d * num_state, num_state * sizeof(*row));
        memcpy(row + num_state, t->next_inputs + d * NUM_BATCH_INPUTS, NUM_BATCH_INPUTS * sizeof(*row));
    }
    ct_execute_opts opts = {.donated = ct_saver_shares(t->saver) ? NULL : t->donated};
    CT_TRY(ct_executable_execute(t->executable, t->arguments, num_arguments, &opts, t->outputs));
    ct_saver_state_moved(t->saver);
    t->progress.step++;
    t->progress.schedule_steps++;
    t->progress.optimizer_steps++;
    t->progress.tokens_seen += t->next_num_tokens;
    ct_data_state_free(t->data_state);
    t->data_state = t->next_data_state;
    t->next_data_state = NULL;
    for (size_t d = 0; d < num_devices; d++)
        memcpy(t->state.buffers + d * num_state + num_frozen, t->outputs + d * num_outputs,
               num_changing * sizeof(*t->outputs));
    ct_buffers_free(t->next_inputs, num_devices * NUM_BATCH_INPUTS);
    for (size_t d = 1; d < num_devices; d++) ct_buffer_free(t->outputs[d * num_outputs + num_changing]);

    pending_step *pending = &t->pending[(t->first_pending + t->num_pending++) % MAX_IN_FLIGHT];
    *pending = (pending_step){.step = t->progress.step,
                              .num_tokens = t->next_num_tokens,
                              .lr = t->next_lr,
                              .data_s = t->next_data_s,
                              .start_s = start,
                              .buffer = t->outputs[num_changing]};
    ct_status *status = ct_buffer_to_host(pending->buffer, pending->values, sizeof(pending->values), &pending->done);
    pending->host_s = t->next_host_s + ct_clock_seconds() - start;
    ct_profile_span(t->profile, CT_PROFILE_HOST, "launch", t->progress.step, start);
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
    double wait_s = ct_clock_seconds();
    ct_status *status = ct_events_await_free(&pending->done, 1);
    ct_profile_span(t->profile, CT_PROFILE_HOST, "readback", pending->step, wait_s);
    ct_profile_span(t->profile, CT_PROFILE_STEPS, "step", pending->step, pending->start_s);
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

static ct_status *save(trainer *t, bool is_last)
{
    CT_TRY(finish_all(t)); /* nothing that turns out not to be finite is saved */
    const ct_recipe *recipe = t->recipe;
    bool is_end = t->progress.step == recipe->training.steps || t->data_ended,
         is_seed = recipe->checkpoint.create_seed_checkpoint;
    ct_saver_step step = {.step = t->progress.step, .is_last = is_last};
    step.model_only = is_seed || (is_end && recipe->checkpoint.last_save_model_only);
    step.is_hf = is_end && recipe->checkpoint.last_save_in_hf;
    step.dtype = is_end && step.model_only ? recipe->checkpoint.export_dtype : CT_DTYPE_INVALID;
    char *info = ct_progress_info(&t->progress, recipe, t->model, t->data_state, step.model_only);
    step.info = info;
    step.assets = ct_hf_files_for(&t->files, step.dtype ? step.dtype : t->step_opts.param_dtype, &step.num_assets);
    double start = ct_clock_seconds();
    ct_status *status = ct_saver_save(t->saver, &t->state, &step);
    ct_profile_span(t->profile, CT_PROFILE_HOST, "save", step.step, start);
    free(info);
    return status;
}

static bool is_save_due(const trainer *t, bool is_last)
{
    const ct_recipe *recipe = t->recipe;
    int64_t step = t->progress.step;
    if (!recipe->checkpoint.enable || recipe->checkpoint.load_only) return false;
    return is_last || step % recipe->checkpoint.interval == 0 ||
           (step == 1 && recipe->checkpoint.enable_first_step_checkpoint);
}

static ct_status *stopped_error(const trainer *t, bool is_saved)
{
    return ct_error(CT_CODE_CANCELLED, "stopped after step %lld%s", (long long)t->progress.step,
                    is_saved                       ? ", which is saved; the same command goes on from there"
                    : t->recipe->checkpoint.enable ? "; it is not saved, as checkpoint.load_only is true"
                                                   : "; nothing is saved, as checkpoint.enable is false");
}

static ct_status *open_validation(trainer *t)
{
    if (!t->recipe->validation.enable) return NULL;
    ct_validator_opts opts = {.recipe = t->recipe,
                              .session = t->session,
                              .model = t->model,
                              .parallel = &t->parallel,
                              .step = &t->step_opts,
                              .tokenizer = t->tokenizer,
                              .chat = t->chat.chat_template ? &t->chat.renderer : NULL};
    return ct_validator_open(&opts, &t->validator);
}

static ct_status *validate(trainer *t)
{
    CT_TRY(finish_all(t));
    ct_metrics_validation validation = {.step = t->progress.step, .start_s = ct_clock_seconds()};
    CT_TRY(ct_validator_run(t->validator, &t->state, &validation.loss, &validation.num_tokens));
    validation.end_s = ct_clock_seconds();
    ct_metrics_step memory = {0};
    CT_TRY(device_memory(t, &memory));
    validation.memory_bytes = memory.memory_bytes;
    validation.memory_limit_bytes = memory.memory_limit_bytes;
    return ct_metrics_validated(t->metrics, &validation);
}

static void open_profile(trainer *t)
{
    const ct_recipe *recipe = t->recipe;
    if (!recipe->profiler.enable_profiling) return;
    char *folder = ct_path_join(recipe->dump_folder, recipe->profiler.save_traces_folder);
    ct_profile_opts opts = {.folder = folder,
                            .freq = recipe->profiler.profile_freq,
                            .active = recipe->profiler.profiler_active,
                            .plugin = t->session->plugin};
    t->profile = ct_profile_new(&opts);
    free(folder);
}

/* A trace holds whole steps: none is under way when it begins, or when it ends. */
static ct_status *begin_trace(trainer *t)
{
    if (!ct_profile_begins(t->profile, t->progress.step + 1)) return NULL;
    CT_TRY(finish_all(t));
    return ct_profile_begin(t->profile);
}

static ct_status *end_trace(trainer *t)
{
    if (!ct_profile_ends(t->profile, t->progress.step)) return NULL;
    CT_TRY(finish_all(t));
    return ct_profile_end(t->profile, t->progress.step);
}

static ct_status *loop(trainer *t)
{
    int64_t last = t->recipe->training.steps;
    if (t->progress.step >= last) {
        ct_info("Step %lld of %lld is done already; raise training.steps to go on", (long long)t->progress.step,
                (long long)last);
        return NULL;
    }
    ct_info("Training starts at step %lld", (long long)t->progress.step + 1);
    CT_TRY(put_next(t, t->progress.step + 1));
    while (t->progress.step < last && !t->data_ended) {
        CT_TRY(begin_trace(t));
        CT_TRY(start_step(t));
        bool stopped = t->opts->stop && *t->opts->stop, is_last = stopped || t->progress.step == last;
        if (!is_last) {
            ct_status *status = put_next(t, t->progress.step + 1);
            if (status) return ct_status_first(status, finish_all(t)); /* what was done is recorded */
        }
        is_last = is_last || t->data_ended;
        if (t->num_pending == MAX_IN_FLIGHT) CT_TRY(finish_step(t));
        CT_TRY(ct_saver_poll(t->saver));
        bool is_due = is_save_due(t, is_last);
        if (is_due) CT_TRY(save(t, is_last));
        if (!stopped && ct_validation_is_due(t->recipe, t->progress.step)) CT_TRY(validate(t));
        CT_TRY(end_trace(t));
        if (stopped) {
            CT_TRY(finish_all(t));
            return stopped_error(t, is_due);
        }
    }
    if (t->data_ended)
        ct_info("The data ended after step %lld of %lld (dataloader.repeat = false)", (long long)t->progress.step,
                (long long)last);
    return finish_all(t);
}

static void tell_left_out(const trainer *t)
{
    int64_t num_broken = 0, num_too_long = 0;
    if (t->data_state) ct_data_state_left_out(t->data_state, &num_broken, &num_too_long);
    if (num_broken) ct_warning("%lld broken record%s left out", (long long)num_broken, num_broken == 1 ? "" : "s");
    if (num_too_long)
        ct_warning("%lld document%s longer than training.seq_len left out", (long long)num_too_long,
                   num_too_long == 1 ? "" : "s");
}

static ct_status *print_sample(trainer *t)
{
    const ct_recipe *recipe = t->recipe;
    if (!recipe->sample.max_tokens || !ct_dataset_is_text(t->dataset)) return NULL;
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

static ct_status *run(trainer *t)
{
    const ct_recipe *recipe = t->recipe;
    CT_TRY(ct_recipe_model(recipe, &t->model));
    ct_info("Model %s %s size: %lld total parameters", recipe->model.name, recipe->model.flavor,
            (long long)ct_model_num_params(&t->model->config, t->model->family));
    if (t->model->lora)
        ct_info("Adapters of rank %lld: %lld trained parameters", (long long)t->model->lora->rank,
                (long long)ct_model_num_trained(t->model));
    t->schedule = ct_recipe_lr_schedule(recipe);
    CT_TRY(ct_recipe_parallel(recipe, t->model, 0, NULL, NULL, &t->parallel));
    t->step_opts = ct_recipe_step(recipe, &t->parallel, NULL);
    CT_TRY(ct_inputs_init(&t->inputs, &t->parallel, &t->step_opts));
    t->checkpoint_folder = ct_path_join(recipe->dump_folder, recipe->checkpoint.folder);
    CT_TRY(ct_session_open(&t->opts->session, &t->session));
    t->inputs.session = t->session;
    /* once more, along the devices' torus */
    const char *kind = ct_device_kind(ct_session_device(t->session, 0));
    CT_TRY(ct_recipe_check_kind(recipe, kind));
    CT_TRY(
        ct_recipe_parallel(recipe, t->model, t->session->torus.num_axes, t->session->torus.sizes, kind, &t->parallel));
    t->step_opts.kernels = ct_recipe_kernels(recipe, kind);
    char *kernels = ct_step_kernels_text(&t->step_opts, t->model);
    ct_info("Kernels: %s", kernels);
    free(kernels);
    CT_TRY(open_data(t));
    CT_TRY(lock_folder(t));
    CT_TRY(write_recipe(t));
    CT_TRY(ct_provenance_write(recipe->dump_folder, &t->opts->provenance, &t->opts->session, t->session));
    CT_TRY(make_state(t));
    t->data_state = ct_dataset_state(t->dataset);
    if (recipe->checkpoint.create_seed_checkpoint) return save(t, true);
    CT_TRY(build_step(t));
    CT_TRY(open_validation(t));
    CT_TRY(ct_loader_new(t->dataset, (int)recipe->dataloader.prefetch, &t->loader));
    CT_TRY(open_metrics(t));
    open_profile(t);
    CT_TRY(loop(t));
    tell_left_out(t);
    CT_TRY(print_sample(t));
    ct_info("Outputs are in %s: metrics.jsonl, recipe.toml, environment.json%s%s", recipe->dump_folder,
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
    ct_saver_free(t->saver); /* before the state that it saves */
    ct_hf_files_close(&t->files);
    ct_metrics_close(t->metrics);
    ct_validator_free(t->validator);
    ct_profile_free(t->profile);
    ct_loader_free(t->loader);
    ct_dataset_close(t->dataset);
    ct_data_state_free(t->data_state);
    ct_data_state_free(t->next_data_state);
    ct_recipe_chat_close(&t->chat);
    ct_tokenizer_free(t->tokenizer);
    if (t->next_inputs) ct_buffers_free(t->next_inputs, (size_t)devices_of(t) * NUM_BATCH_INPUTS);
    ct_train_state_deinit(&t->state);
    ct_executable_free(t->executable);
    ct_graph_free(t->graph);
    ct_session_close(t->session);
    ct_model_free(t->model);
    ct_inputs_deinit(&t->inputs);
    free(t->next_inputs);
    free(t->arguments);
    free(t->outputs);
    free(t->donated);
    free(t->checkpoint_folder);
    ct_file_lock_release(&t->lock); /* last: until here it writes */
}

ct_status *ct_train(const ct_train_opts *opts)
{
    trainer t = {.opts = opts, .recipe = opts->recipe, .lock = {.descriptor = -1}};
    ct_status *status = run(&t);
    free_all(&t);
    return status;
}
