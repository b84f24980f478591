/* One lock, one condition. Units take milliseconds, so nobody waits long for either. */
#include "data/workers.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/alloc.h"

struct ct__workers {
    int num_threads, num_started;
    pthread_t *threads;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    const ct__job **jobs;
    size_t num_jobs;
    bool stopping;
};

ct__workers *ct__workers_new(int num_threads)
{
    ct__workers *workers = ct_alloc_zeroed(1, sizeof(*workers));
    workers->num_threads = num_threads;
    workers->threads = ct_alloc((size_t)num_threads * sizeof(*workers->threads));
    pthread_mutex_init(&workers->mutex, NULL);
    pthread_cond_init(&workers->changed, NULL);
    return workers;
}

void ct__workers_free(ct__workers *workers)
{
    if (!workers) return;
    ct__workers_lock(workers);
    workers->stopping = true;
    ct__workers_changed(workers);
    ct__workers_unlock(workers);
    for (int i = 0; i < workers->num_started; i++) pthread_join(workers->threads[i], NULL);
    pthread_mutex_destroy(&workers->mutex);
    pthread_cond_destroy(&workers->changed);
    free(workers->threads);
    free(workers->jobs);
    free(workers);
}

void ct__workers_add(ct__workers *workers, const ct__job *job)
{
    CT_ASSERT(!workers->num_started);
    workers->jobs = ct_realloc(workers->jobs, (workers->num_jobs + 1) * sizeof(*workers->jobs));
    workers->jobs[workers->num_jobs++] = job;
}

void ct__workers_lock(ct__workers *workers)
{
    pthread_mutex_lock(&workers->mutex);
}

void ct__workers_unlock(ct__workers *workers)
{
    pthread_mutex_unlock(&workers->mutex);
}

void ct__workers_changed(ct__workers *workers)
{
    pthread_cond_broadcast(&workers->changed);
}

/* With the lock held, which is given up meanwhile. */
static bool do_one(ct__workers *workers, const ct__job *job)
{
    void *unit = job->take(job->context);
    if (!unit) return false;
    ct__workers_unlock(workers);
    job->run(job->context, unit);
    ct__workers_lock(workers);
    ct__workers_changed(workers);
    return true;
}

static void *run(void *argument)
{
    ct__workers *workers = argument;
    ct__workers_lock(workers);
    for (size_t at = 0; !workers->stopping;) {
        bool did = false;
        for (size_t i = 0; i < workers->num_jobs && !did; i++) { /* in turn, so that none starves */
            did = do_one(workers, workers->jobs[at]);
            at = (at + 1) % workers->num_jobs;
        }
        if (!did && !workers->stopping) pthread_cond_wait(&workers->changed, &workers->mutex);
    }
    ct__workers_unlock(workers);
    return NULL;
}

ct_status *ct__workers_start(ct__workers *workers)
{
    if (!workers->num_jobs) return NULL;
    for (; workers->num_started < workers->num_threads; workers->num_started++) {
        int result = pthread_create(&workers->threads[workers->num_started], NULL, run, workers);
        if (result)
            return ct_error(CT_CODE_RESOURCE_EXHAUSTED,
                            "cannot start a thread to load data: error %d; lower "
                            "dataloader.num_workers",
                            result);
    }
    return NULL;
}

void ct__workers_await(ct__workers *workers, const ct__job *job, const bool *done)
{
    while (!*done)
        if (!do_one(workers, job)) pthread_cond_wait(&workers->changed, &workers->mutex);
}

void ct__workers_await_none(ct__workers *workers, const int *count)
{
    while (*count) pthread_cond_wait(&workers->changed, &workers->mutex);
}
