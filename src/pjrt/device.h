/* A device of a client. Belongs to the client; immutable but for the statistics, so thread-safe. */
#ifndef CT_PJRT_DEVICE_H
#define CT_PJRT_DEVICE_H

#include <stdbool.h>

#include "base/status.h"
#include "pjrt/memory.h"

typedef struct ct_client ct_client;
typedef struct ct_device ct_device;

ct_client *ct_device_client(const ct_device *device);
int ct_device_id(const ct_device *device);            /* among all processes' devices; what device assignments hold */
int ct_device_process_index(const ct_device *device); /* the process that owns it */
int ct_device_local_id(const ct_device *device);      /* -1 when not addressable */
bool ct_device_is_addressable(const ct_device *device);
const char *ct_device_kind(const ct_device *device); /* "cpu", "TPU v5 lite", "NVIDIA H200" */
const char *ct_device_text(const ct_device *device); /* the plugin's description */

/* The memory that buffers go to unless told otherwise; NULL when the plugin has no such notion. */
const ct_memory *ct_device_default_memory(const ct_device *device);

/* The device's memory of that kind ("pinned_host"). Errors: NOT_FOUND lists the kinds there are. */
CT_MUST_USE ct_status *ct_device_memory(const ct_device *device, const char *kind, const ct_memory **out_memory);

/* The allocator's counts; -1 where the plugin does not say (the CPU plugin says nothing at all). */
typedef struct ct_memory_stats {
    int64_t bytes_in_use;
    int64_t peak_bytes_in_use;
    int64_t bytes_limit;
    int64_t num_allocs;
    int64_t largest_alloc_bytes;
} ct_memory_stats;
CT_MUST_USE ct_status *ct_device_memory_stats(const ct_device *device, ct_memory_stats *out_stats);

#endif
