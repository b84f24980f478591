/* Starting and resuming. What is read of a step is verified on the way: to train on from damaged weights is worse than
 * to go back to the step before.
 */
#include "train/progress.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "formats/json.h"

typedef struct start {
    const ct_recipe *recipe;
    const char *folder;
    ct_train_state *state;
    ct_dataset *dataset;
    ct_progress *progress;
    ct_lora_base base; /* with adapters */
    bool is_unfit;     /* the step last tried is not whole, or not to be gone on from: the one before it may be */
} start;

char *ct_progress_info(const ct_progress *progress, const ct_recipe *recipe, const ct_model *model,
                       const ct_data_state *data, bool model_only)
{
    ct_json_writer *writer = ct_json_writer_new();
    ct_json_begin_object(writer, NULL);
    ct_json_put_int(writer, "n_tokens_seen", progress->tokens_seen);
    ct_json_begin_object(writer, "lr_scheduler");
    ct_json_put_int(writer, "last_epoch", progress->schedule_steps);
    ct_json_end(writer);
    ct_json_begin_object(writer, "optimizer");
    ct_json_put_int(writer, "steps", progress->optimizer_steps);
    ct_json_end(writer);
    ct_json_put_bool(writer, "model_only", model_only);
    ct_data_state_write(data, writer, "dataloader");
    ct_json_put_int(writer, "seed", recipe->debug.seed);
    ct_json_put_string(writer, "model", recipe->model.name);
    ct_json_put_string(writer, "flavor", recipe->model.flavor);
    if (model->lora) ct_lora_info_write(model, &progress->base, writer);
    ct_json_end(writer);
    char *info = ct_json_writer_text(writer, false);
    ct_json_writer_free(writer);
    return info;
}

static bool is_excluded(const ct_recipe *recipe, const char *part)
{
    const ct_recipe_list *list = &recipe->checkpoint.exclude_from_loading;
    for (size_t i = 0; i < list->num_items; i++)
        if (!strcmp(list->items[i], part)) return true;
    return false;
}

static ct_status *is_model_only(const ct_checkpoint *checkpoint, bool *out_model_only)
{
    *out_model_only = ct_checkpoint_step(checkpoint) == 0; /* a seed checkpoint */
    return ct_json_get_bool(ct_checkpoint_info(checkpoint), "model_only", out_model_only);
}

static ct_status *load_state(start *s, ct_checkpoint *checkpoint, bool weights_only)
{
    ct_status *status = ct_train_state_load(s->state, checkpoint, weights_only);
    s->is_unfit = ct_status_code(status) == CT_CODE_DATA_LOSS;
    return status;
}

/* All parts of a step but those that are excluded. */
static ct_status *load_all(start *s, ct_checkpoint *checkpoint)
{
    ct_json_value info = ct_checkpoint_info(checkpoint);
    ct_progress found = {.step = ct_checkpoint_step(checkpoint)};
    found.schedule_steps = found.optimizer_steps = found.step;
    CT_TRY(ct_json_need_int(info, "n_tokens_seen", &found.tokens_seen));
    CT_TRY(ct_json_get_int(ct_json_get(info, "lr_scheduler"), "last_epoch", &found.schedule_steps));
    CT_TRY(ct_json_get_int(ct_json_get(info, "optimizer"), "steps", &found.optimizer_steps));
    if (!is_excluded(s->recipe, "dataloader"))
        CT_TRY_NOTE(ct_dataset_restore(s->dataset, ct_json_get(info, "dataloader")),
                    "checkpoint.exclude_from_loading = [\"dataloader\"] starts at the beginning of the data");
    bool weights_only = is_excluded(s->recipe, "optimizer");
    CT_TRY(load_state(s, checkpoint, weights_only));
    if (is_excluded(s->recipe, "train_state")) found.step = found.tokens_seen = 0;
    if (is_excluded(s->recipe, "lr_scheduler")) found.schedule_steps = 0;
    if (weights_only) found.optimizer_steps = 0;
    *s->progress = found;
    return NULL;
}

/* One step of the run's own folder. */
static ct_status *resume(start *s, ct_checkpoint *checkpoint)
{
    bool model_only;
    int64_t step = ct_checkpoint_step(checkpoint);
    CT_TRY(ct_lora_info_check(ct_checkpoint_info(checkpoint), s->state->model, &s->base));
    CT_TRY(is_model_only(checkpoint, &model_only));
    if (!model_only) return load_all(s, checkpoint);
    s->is_unfit = step > 0 && step < s->recipe->training.steps;
    if (s->is_unfit)
        return ct_error(
            CT_CODE_FAILED_PRECONDITION,
            "it has weights alone (checkpoint.last_save_model_only), which training can't go on from; a new "
            "run can start with them: checkpoint.initial_load_path");
    CT_TRY(load_state(s, checkpoint, true));
    *s->progress = (ct_progress){.step = step};
    return NULL;
}

static ct_status *open_and_resume(start *s, int64_t step)
{
    ct_checkpoint *checkpoint;
    ct_status *status = ct_checkpoint_open(s->folder, step, NULL, &checkpoint);
    s->is_unfit = status != NULL;
    if (!status) status = resume(s, checkpoint);
    ct_checkpoint_close(checkpoint);
    if (!status) ct_info("Resumed from %s/step-%lld", s->folder, (long long)step);
    return status;
}

static ct_status *resume_newest(start *s, bool *out_found)
{
    int64_t *steps;
    size_t num_steps;
    CT_TRY(ct_checkpoint_list(s->folder, &steps, &num_steps));
    ct_status *status = NULL;
    *out_found = false;
    for (size_t i = num_steps; i-- > 0 && !*out_found;) {
        status = open_and_resume(s, steps[i]);
        *out_found = !status;
        if (status && !s->is_unfit) break;
        if (status && i) {
            ct_warning("skipping step %lld: %s", (long long)steps[i], ct_status_message(status));
            ct_status_free(status);
            status = NULL;
        }
    }
    if (status && s->is_unfit)
        status = ct_status_note(status, "none of the %zu steps in %s can be resumed; move them away to start over",
                                num_steps, s->folder);
    else if (status)
        status = ct_status_note(status, "resuming from %s", s->folder);
    free(steps);
    return status;
}

/* Of a step that is to give the weights of a model. */
static ct_status *check_has_weights(const ct_checkpoint *checkpoint)
{
    if (!ct_lora_info_has(ct_checkpoint_info(checkpoint))) return NULL;
    return ct_error(CT_CODE_FAILED_PRECONDITION,
                    "it has adapters and not the weights that they adapt; merge them with ctitan convert and load what "
                    "comes out, or go on from its folder " CT_ADAPTER_FOLDER " by lora.adapter_path");
}

/* checkpoint.initial_load_path, a step. */
static ct_status *load_initial(start *s, const char *path)
{
    ct_checkpoint *checkpoint;
    ct_status *status = ct_checkpoint_open_path(path, NULL, &checkpoint);
    if (ct_status_code(status) == CT_CODE_NOT_FOUND)
        return ct_status_note(status,
                              "checkpoint.initial_load_path (%s) is such a step, .../step-N, or with "
                              "checkpoint.initial_load_in_hf a Hugging Face folder",
                              ct_recipe_where(s->recipe, "checkpoint.initial_load_path"));
    CT_TRY(status);
    bool model_only, is_bare;
    status = check_has_weights(checkpoint);
    if (!status) status = is_model_only(checkpoint, &is_bare);
    model_only = s->recipe->checkpoint.initial_load_model_only;
    if (!status && is_bare && !model_only)
        status = ct_error(CT_CODE_FAILED_PRECONDITION,
                          "it has weights alone, so checkpoint.initial_load_model_only must be true (%s)",
                          ct_recipe_where(s->recipe, "checkpoint.initial_load_model_only"));
    if (!status && s->state->model->lora)
        status = ct_train_state_load_frozen(s->state, checkpoint);
    else if (!status)
        status = model_only ? load_state(s, checkpoint, true) : load_all(s, checkpoint);
    ct_checkpoint_close(checkpoint);
    return status;
}

/* What is not frozen when there is no step to resume. */
static ct_status *make_adapters(const start *s)
{
    const char *folder = s->recipe->lora.adapter_path;
    if (!folder) return ct_train_state_new_adapters(s->state, (uint64_t)s->recipe->debug.seed);
    char *path = ct_path_join(folder, CT_ADAPTER_MODEL_NAME);
    ct_status *status = ct_lora_config_check(folder, s->state->model);
    if (!status) status = ct_train_state_read_adapters(s->state, path);
    free(path);
    CT_TRY_NOTE(status, "lora.adapter_path (%s)", ct_recipe_where(s->recipe, "lora.adapter_path"));
    ct_info("Loaded the adapters of %s", folder);
    return NULL;
}

/* The weights of checkpoint.initial_load_path, or of the seed. Of a model with adapters those that are frozen. */
static ct_status *load_weights(start *s)
{
    const ct_recipe *recipe = s->recipe;
    const char *path = recipe->checkpoint.initial_load_path;
    if (!path) return ct_train_state_from_seed(s->state, (uint64_t)recipe->debug.seed);
    ct_status *status =
        recipe->checkpoint.initial_load_in_hf ? ct_train_state_from_hf(s->state, path) : load_initial(s, path);
    if (status) return ct_status_note(status, "loading %s", path);
    ct_info("Loaded the %s weights from %s", s->state->model->lora ? "frozen" : "initial", path);
    return NULL;
}

/* A model with adapters has its frozen weights before anything else. */
static ct_status *load_base(start *s)
{
    if (!s->state->model->lora) return NULL;
    if (!s->recipe->checkpoint.initial_load_path)
        ct_warning("lora.rank = %lld without checkpoint.initial_load_path: the frozen weights are random ones",
                   (long long)s->recipe->lora.rank);
    CT_TRY_NOTE(ct_lora_base_of(s->recipe, &s->base), "checkpoint.initial_load_path (%s)",
                ct_recipe_where(s->recipe, "checkpoint.initial_load_path"));
    return load_weights(s);
}

/* From the steps in the run's own folder, if there is one to go on from. */
static ct_status *resume_own(start *s, bool *out_found)
{
    const ct_recipe *recipe = s->recipe;
    int64_t step = recipe->checkpoint.load_step;
    *out_found = false;
    if (!recipe->checkpoint.enable || recipe->checkpoint.create_seed_checkpoint) return NULL;
    if (step < 0) return resume_newest(s, out_found);
    *out_found = true;
    return ct_status_note(open_and_resume(s, step), "resuming from %s/step-%lld", s->folder, (long long)step);
}

ct_status *ct_progress_start(const ct_recipe *recipe, const char *folder, ct_train_state *state, ct_dataset *dataset,
                             ct_progress *out_progress)
{
    *out_progress = (ct_progress){0};
    start s = {.recipe = recipe, .folder = folder, .state = state, .dataset = dataset, .progress = out_progress};
    bool found;
    CT_TRY(load_base(&s));
    CT_TRY(resume_own(&s, &found));
    if (!found) CT_TRY(state->model->lora ? make_adapters(&s) : load_weights(&s));
    out_progress->base = s.base;
    return NULL;
}
