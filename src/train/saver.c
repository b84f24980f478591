/* The saver. A job is one save; at most one is under way, on its own thread. */
#include "train/saver.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"

typedef struct job {
    ct_saver *saver;
    ct_train_state state; /* with buffers of its own array */
    ct_saver_step step;
    ct_arena arena;       /* of the step's copies */
    bool is_shared;       /* the buffers were the trainer's when it began */
    ct_event **copies;    /* of copies to host memory that are under way; NULL: none */
    atomic_bool is_moved; /* the buffers are the job's alone */
    double start_s, seconds;
    double held_s; /* before the next step could begin: for the save before, for the state to be taken */
    double taken_s;
    pthread_t thread;
    atomic_bool is_done;
    bool device_failed;
    ct_status *status; /* of the save; not of purging */
} job;

struct ct_saver {
    char *folder;
    ct_saver_mode mode;
    int64_t keep, newest; /* the newest step that was saved or -1 */
    job *current;
    void *memory; /* the copies of the state that are being saved, on the CPU */
    size_t memory_bytes;
    bool has_told; /* that there is no room for copies */
};

ct_saver_mode ct_saver_mode_of(ct_recipe_async async_mode, const ct_session *session)
{
    if (async_mode == CT_ASYNC_PINNED_HOST) return CT_SAVER_PINNED;
    if (async_mode == CT_ASYNC_DISABLED) return CT_SAVER_WAITS;
    return !strcmp(ct_client_platform_name(session->client), "cpu") ? CT_SAVER_COPIED : CT_SAVER_SHARED;
}

ct_saver *ct_saver_new(const ct_saver_opts *opts)
{
    ct_saver *saver = ct_alloc_zeroed(1, sizeof(*saver));
    saver->folder = ct_strdup(opts->folder);
    saver->mode = opts->mode;
    saver->keep = opts->keep;
    saver->newest = -1;
    return saver;
}

/* ---- one save ---- */

static size_t count_buffers(const ct_train_state *state)
{
    return state->num_buffers * (size_t)state->session->num_devices;
}

static void write_step(job *j)
{
    ct_train_save_opts opts = {.info = j->step.info,
                               .model_only = j->step.model_only,
                               .is_hf = j->step.is_hf,
                               .dtype = j->step.dtype,
                               .assets = j->step.assets,
                               .num_assets = j->step.num_assets,
                               .may_free = &j->is_moved,
                               .out_device_failed = &j->device_failed};
    if (j->copies) {
        j->status = ct_events_await_free(j->copies, count_buffers(&j->state));
        j->held_s += ct_clock_seconds() - j->taken_s;
    }
    if (j->status) {
        j->device_failed = true;
        return;
    }
    j->status = ct_train_state_save(&j->state, j->saver->folder, j->step.step, &opts);
    j->seconds = ct_clock_seconds() - j->start_s;
    if (j->status || !j->saver->keep) return;
    ct_status *status = ct_checkpoint_purge(j->saver->folder, j->step.step, j->saver->keep);
    if (status)
        ct_warning("Steps older than the newest %lld could not be removed: %s", (long long)j->saver->keep,
                   ct_status_message(status));
    ct_status_free(status);
}

static void *run(void *argument)
{
    job *j = argument;
    write_step(j);
    atomic_store(&j->is_done, true);
    return NULL;
}

static job *new_job(ct_saver *saver, const ct_train_state *state, const ct_saver_step *step)
{
    job *j = ct_alloc_zeroed(1, sizeof(*j));
    j->saver = saver;
    j->start_s = ct_clock_seconds();
    j->state = *state;
    j->state.buffers = ct_alloc_zeroed(count_buffers(state), sizeof(*j->state.buffers));
    j->step = *step;
    ct_arena_init(&j->arena);
    j->step.info = ct_arena_strdup(&j->arena, step->info);
    ct_checkpoint_asset *assets = CT_ARENA_ARRAY(&j->arena, ct_checkpoint_asset, step->num_assets);
    for (size_t i = 0; i < step->num_assets; i++)
        assets[i] = (ct_checkpoint_asset){
            .name = ct_arena_strdup(&j->arena, step->assets[i].name),
            .bytes = ct_arena_dup(&j->arena, step->assets[i].bytes, step->assets[i].size_bytes),
            .size_bytes = step->assets[i].size_bytes,
        };
    j->step.assets = assets;
    return j;
}

static void free_job(job *j)
{
    if (j->is_moved) ct_buffers_free(j->state.buffers, count_buffers(&j->state));
    if (j->copies) ct_status_free(ct_events_await_free(j->copies, count_buffers(&j->state)));
    free(j->copies);
    free(j->state.host);
    free(j->state.buffers);
    ct_arena_deinit(&j->arena);
    free(j);
}

/* The job is done: says so, or that it failed. */
static ct_status *report(ct_saver *saver, job *j)
{
    ct_status *status = j->status;
    long long step = (long long)j->step.step;
    if (!status) {
        saver->newest = j->step.step;
        char *background = saver->current == j
                               ? ct_asprintf(", in the background; it held up training for %.3f s", j->held_s)
                               : ct_strdup("");
        ct_info("Saved %s/step-%lld in %.2f s%s%s", saver->folder, step, j->seconds,
                j->step.is_hf        ? ", a Hugging Face folder"
                : j->step.model_only ? ", weights alone"
                                     : "",
                background);
        free(background);
    } else if (!j->device_failed && !j->step.is_last) {
        char *newest = saver->newest >= 0 ? ct_asprintf("step %lld", (long long)saver->newest) : NULL;
        ct_warning("Step %lld could not be saved: %s. Training goes on; the newest step that this run has saved is %s, "
                   "and the next save is tried when it is due",
                   step, ct_status_message(status), newest ? newest : "none");
        free(newest);
        ct_status_free(status);
        status = NULL;
    }
    free_job(j);
    return status;
}

/* ---- the buffers of a background save ---- */

/* Does a device have room for its part of the state a second time, beside the most that a step has taken so far? */
static ct_status *has_room(const ct_train_state *state, bool *out_has_room)
{
    double state_bytes = ct_train_state_changing_bytes(state);
    *out_has_room = true;
    for (int d = 0; d < state->session->num_devices && *out_has_room; d++) {
        ct_memory_stats stats;
        CT_TRY(ct_device_memory_stats(ct_session_device(state->session, d), &stats));
        int64_t used = CT_MAX(stats.peak_bytes_in_use, stats.bytes_in_use);
        if (stats.bytes_limit > 0 && used >= 0) *out_has_room = (double)(stats.bytes_limit - used) > state_bytes;
    }
    return NULL;
}

static ct_status *copy_to_pinned(job *j, const ct_train_state *state)
{
    size_t stride = state->num_buffers;
    for (int d = 0; d < state->session->num_devices; d++) {
        const ct_memory *memory;
        CT_TRY(ct_device_memory(ct_session_device(state->session, d), "pinned_host", &memory));
        for (size_t i = (size_t)state->model->num_frozen; i + 1 < stride; i++) /* the last, halted, is not saved */
            CT_TRY(ct_buffer_copy_to_memory(state->buffers[(size_t)d * stride + i], memory,
                                            &j->state.buffers[(size_t)d * stride + i]));
    }
    return NULL;
}

/* Copies to the saver's own memory. The job has no buffers. */
static ct_status *copy_to_memory(ct_saver *saver, job *j, const ct_train_state *state)
{
    size_t count = count_buffers(state);
    j->is_moved = true;
    j->copies = ct_alloc_zeroed(count, sizeof(*j->copies));
    j->state.host = ct_alloc_zeroed(count, sizeof(*j->state.host));
    return ct_status_note(ct_train_state_copy(state, &saver->memory, &saver->memory_bytes, j->state.host, j->copies),
                          "copying the state to be saved");
}

/* Gives the job its buffers. */
static ct_status *take_buffers(ct_saver *saver, job *j, const ct_train_state *state, ct_saver_mode mode)
{
    if (mode == CT_SAVER_COPIED) return copy_to_memory(saver, j, state);
    bool room = mode != CT_SAVER_PINNED;
    if (mode == CT_SAVER_SHARED) CT_TRY(has_room(state, &room));
    if (mode == CT_SAVER_SHARED && !room && !saver->has_told) {
        saver->has_told = true;
        ct_info("The devices have no room for the state a second time, so it is copied to pinned host memory to be "
                "saved, as with checkpoint.async_mode = \"async_with_pinned_mem\"");
    }
    if (!room) {
        j->is_moved = true;
        return ct_status_note(copy_to_pinned(j, state), "copying the state to pinned host memory");
    }
    /* what is frozen stays the trainer's, and a last save alone, which ends before the state does, has a use for it */
    size_t stride = state->num_buffers, first = j->step.is_last ? 0 : (size_t)state->model->num_frozen;
    for (size_t d = 0; d < (size_t)state->session->num_devices; d++)
        memcpy(j->state.buffers + d * stride + first, state->buffers + d * stride + first,
               (stride - first) * sizeof(*j->state.buffers));
    j->is_shared = true;
    return NULL;
}

ct_status *ct_saver_save(ct_saver *saver, ct_train_state *state, const ct_saver_step *step)
{
    double start = ct_clock_seconds();
    CT_ASSERT(!step->is_hf || step->is_last || !state->model->num_frozen);
    CT_TRY(ct_saver_wait(saver));
    job *j = new_job(saver, state, step);
    ct_saver_mode mode = step->is_last ? CT_SAVER_WAITS : saver->mode;
    ct_status *status = take_buffers(saver, j, state, mode);
    if (status) {
        free_job(j);
        return status;
    }
    j->taken_s = ct_clock_seconds();
    j->held_s = j->taken_s - start;
    if (mode != CT_SAVER_WAITS && !pthread_create(&j->thread, NULL, run, j)) {
        saver->current = j;
        return NULL;
    }
    write_step(j);
    return report(saver, j);
}

bool ct_saver_shares(const ct_saver *saver)
{
    return saver->current && saver->current->is_shared && !atomic_load(&saver->current->is_moved);
}

void ct_saver_state_moved(ct_saver *saver)
{
    if (saver->current) atomic_store(&saver->current->is_moved, true);
}

ct_status *ct_saver_wait(ct_saver *saver)
{
    job *j = saver->current;
    if (!j) return NULL;
    pthread_join(j->thread, NULL);
    ct_status *status = report(saver, j);
    saver->current = NULL;
    return status;
}

ct_status *ct_saver_poll(ct_saver *saver)
{
    return saver->current && atomic_load(&saver->current->is_done) ? ct_saver_wait(saver) : NULL;
}

void ct_saver_free(ct_saver *saver)
{
    if (!saver) return;
    ct_status *status = ct_saver_wait(saver);
    if (status) ct_warning("%s", ct_status_message(status));
    ct_status_free(status);
    free(saver->memory);
    free(saver->folder);
    free(saver);
}
