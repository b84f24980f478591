/* A client: a plugin's devices and memories, opened for this process. Thread-safe: several threads may make buffers,
 * compile and execute at once.
 */
#ifndef CT_PJRT_CLIENT_H
#define CT_PJRT_CLIENT_H

#include "pjrt/device.h"
#include "pjrt/plugin.h"

typedef struct ct_client ct_client;

typedef struct ct_client_opts {
    int device_count; /* virtual devices of the CPU plugin (cpu_device_count); 0 leaves it to the plugin (one) */
    /* Further create options, by the plugin's own names; borrowed during the call. */
    const ct_named_value *options;
    size_t num_options;
} ct_client_opts;

/* Errors: whatever the plugin says (UNAVAILABLE without the hardware, INVALID_ARGUMENT for an option, ...). */
CT_MUST_USE ct_status *ct_client_new(ct_plugin *plugin, const ct_client_opts *opts, ct_client **out_client);

/* All buffers and executables of the client must be gone; that they are not is a bug. NULL is allowed. */
void ct_client_free(ct_client *client);

ct_plugin *ct_client_plugin(const ct_client *client);
const char *ct_client_platform_name(const ct_client *client);    /* "cpu", "tpu", "cuda" */
const char *ct_client_platform_version(const ct_client *client); /* free text */
int ct_client_process_index(const ct_client *client);

size_t ct_client_num_devices(const ct_client *client); /* of all processes */
ct_device *ct_client_device(const ct_client *client, size_t index);
size_t ct_client_num_addressable_devices(const ct_client *client); /* of this process */
ct_device *ct_client_addressable_device(const ct_client *client, size_t index);
size_t ct_client_num_memories(const ct_client *client); /* addressable ones */
const ct_memory *ct_client_memory(const ct_client *client, size_t index);

#endif
