/* The prefetching loader: one thread fills the ring ahead of the caller. made and taken count batches since the start;
 * slot i % num_slots holds batch i, and the caller's batch (taken - 1) keeps its slot until the next call. */
#include "data/loader.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/alloc.h"

struct ct_loader {
    ct_dataset *dataset;
    ct_batch *slots;
    int64_t num_slots;

    pthread_t thread;
    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t changed;
    int64_t made, taken;
    bool stopping;
    ct_status *error; /* of batch number made; the thread has ended */
};

static void *run(void *argument)
{
    ct_loader *loader = argument;
    pthread_mutex_lock(&loader->mutex);
    while (!loader->stopping && !loader->error) {
        /* Batch taken - 1 is in the caller's hands, so num_slots - 1 may be ready. */
        if (loader->made - loader->taken >= loader->num_slots - 1) {
            pthread_cond_wait(&loader->changed, &loader->mutex);
            continue;
        }
        int64_t index = loader->made;
        pthread_mutex_unlock(&loader->mutex);
        ct_status *status = ct_dataset_next(loader->dataset, &loader->slots[index % loader->num_slots]);
        pthread_mutex_lock(&loader->mutex);
        if (status)
            loader->error = status;
        else
            loader->made++;
        pthread_cond_broadcast(&loader->changed);
    }
    pthread_mutex_unlock(&loader->mutex);
    return NULL;
}

ct_status *ct_loader_new(ct_dataset *dataset, int num_prefetch, ct_loader **out_loader)
{
    *out_loader = NULL;
    CT_ASSERT(num_prefetch >= 0);
    ct_loader *loader = ct_alloc_zeroed(1, sizeof(*loader));
    loader->dataset = dataset;
    loader->num_slots = (num_prefetch ? num_prefetch : 2) + 1;
    loader->slots = ct_alloc_zeroed((size_t)loader->num_slots, sizeof(*loader->slots));
    for (int64_t i = 0; i < loader->num_slots; i++) ct_batch_init(&loader->slots[i], dataset);
    pthread_mutex_init(&loader->mutex, NULL);
    pthread_cond_init(&loader->changed, NULL);
    int result = pthread_create(&loader->thread, NULL, run, loader);
    if (result) {
        for (int64_t i = 0; i < loader->num_slots; i++) ct_batch_deinit(&loader->slots[i]);
        pthread_mutex_destroy(&loader->mutex);
        pthread_cond_destroy(&loader->changed);
        free(loader->slots);
        free(loader);
        return ct_error(CT_CODE_RESOURCE_EXHAUSTED, "cannot start the data loader's thread: error %d", result);
    }
    *out_loader = loader;
    return NULL;
}

void ct_loader_free(ct_loader *loader)
{
    if (!loader) return;
    pthread_mutex_lock(&loader->mutex);
    loader->stopping = true;
    pthread_cond_broadcast(&loader->changed);
    pthread_mutex_unlock(&loader->mutex);
    pthread_join(loader->thread, NULL);
    for (int64_t i = 0; i < loader->num_slots; i++) ct_batch_deinit(&loader->slots[i]);
    pthread_mutex_destroy(&loader->mutex);
    pthread_cond_destroy(&loader->changed);
    ct_status_free(loader->error);
    free(loader->slots);
    free(loader);
}

ct_status *ct_loader_next(ct_loader *loader, const ct_batch **out_batch)
{
    *out_batch = NULL;
    ct_status *status = NULL;
    pthread_mutex_lock(&loader->mutex);
    while (loader->made == loader->taken && !loader->error) pthread_cond_wait(&loader->changed, &loader->mutex);
    if (loader->made > loader->taken) {
        *out_batch = &loader->slots[loader->taken % loader->num_slots];
        loader->taken++;
        pthread_cond_broadcast(&loader->changed);
    } else {
        status = ct_error(ct_status_code(loader->error), "%s", ct_status_message(loader->error));
    }
    pthread_mutex_unlock(&loader->mutex);
    return status;
}
