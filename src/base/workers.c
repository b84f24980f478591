/* Threads that take the next item until there is none. */
#include "base/workers.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "base/alloc.h"

typedef struct work {
    ct_workers_function *function;
    void *context;
    size_t num_items;
    pthread_mutex_t mutex; /* guards what follows */
    size_t next, failed;   /* failed: the lowest item that did, and its error */
    ct_status *status;
} work;

typedef struct worker {
    work *work;
    int number;
    pthread_t thread;
} worker;

static void *run(void *argument)
{
    worker *self = argument;
    work *w = self->work;
    pthread_mutex_lock(&w->mutex);
    while (w->next < w->num_items && !w->status) {
        size_t item = w->next++;
        pthread_mutex_unlock(&w->mutex);
        ct_status *status = w->function(w->context, self->number, item);
        pthread_mutex_lock(&w->mutex);
        if (status && (!w->status || item < w->failed)) {
            ct_status_free(w->status);
            w->status = status;
            w->failed = item;
        } else {
            ct_status_free(status);
        }
    }
    pthread_mutex_unlock(&w->mutex);
    return NULL;
}

ct_status *ct_workers_run(int num_workers, size_t num_items, ct_workers_function *function, void *context)
{
    CT_ASSERT(num_workers > 0);
    work w = {.function = function, .context = context, .num_items = num_items};
    pthread_mutex_init(&w.mutex, NULL);
    int num_threads = (int)CT_MIN((size_t)num_workers, CT_MAX(num_items, 1)), started = 1;
    worker *workers = ct_alloc_zeroed((size_t)num_threads, sizeof(*workers));
    for (int i = 0; i < num_threads; i++) workers[i] = (worker){.work = &w, .number = i};
    while (started < num_threads && !pthread_create(&workers[started].thread, NULL, run, &workers[started])) started++;
    run(&workers[0]);
    for (int i = 1; i < started; i++) pthread_join(workers[i].thread, NULL);
    pthread_mutex_destroy(&w.mutex);
    free(workers);
    return w.status;
}

int ct_workers_count(int limit)
{
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);
    return CT_MAX(CT_MIN(count, limit), 1);
}
