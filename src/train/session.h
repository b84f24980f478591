/* A session: a plugin, its client, and the devices that programs of this run are spread over. Here text meets pjrt.
 *
 * Arrays of buffers are [device][argument], row-major, as pjrt takes them.
 */
#ifndef CT_TRAIN_SESSION_H
#define CT_TRAIN_SESSION_H

#include "graph/graph.h"
#include "pjrt/executable.h"
#include "pjrt/torus.h"
#include "spmd/sharding.h"

typedef struct ct_session_opts {
    ct_plugin_opts plugin;
    int num_devices;          /* 0 means 1 */
    int64_t innermost;        /* devices that should be neighbours on the torus (tensor parallel); 0: no wish */
    const char *cache_folder; /* of compiled programs; NULL: none */
    const ct_named_value *xla_flags;
    size_t num_xla_flags;
} ct_session_opts;

typedef struct ct_session {
    ct_plugin *plugin;
    ct_client *client;
    int num_devices;
    ct_device **devices; /* in the order of the mesh: row-major on the torus */
    int *device_ids;
    ct_torus torus;
    ct_arena arena; /* flags */
    ct_compile_opts compile;
} ct_session;

/* opts' strings and flags must outlive the session. Errors: the plugin's; FAILED_PRECONDITION for too few devices. */
CT_MUST_USE ct_status *ct_session_open(const ct_session_opts *opts, ct_session **out_session);
void ct_session_close(ct_session *session); /* NULL is allowed */

ct_device *ct_session_device(const ct_session *session, int index);

/* Prints and compiles. what names the program in log lines ("training step"), NULL logs nothing. */
CT_MUST_USE ct_status *ct_session_compile(ct_session *session, ct_graph *graph, const char *what,
                                          ct_executable **out_executable);

/* Starts copies of array to every device: out_buffers[device * stride]. The array may change on return. */
CT_MUST_USE ct_status *ct_session_replicate(const ct_session *session, const ct_array *array, ct_buffer **out_buffers,
                                            size_t stride);

/* How an array lies on the devices, device d of the session being device d of the mesh. */
typedef struct ct_layout {
    const ct_mesh *mesh;
    ct_sharding sharding;
    bool on_host; /* in pinned memory */
    ct_dtype dtype;
    int rank;
    int64_t sizes[CT_MAX_RANK]; /* of the whole array */
} ct_layout;

/* Makes the bytes of one device's part: the box [offsets, offsets + valid) of the whole array, at the start of block,
 * which is zero. */
typedef ct_status *ct_session_fill(void *context, const int64_t *offsets, const int64_t *valid, ct_array *block);

/* Memory for blocks that is kept from one put to the next; all zero at first, memory freed by its owner. */
typedef struct ct_session_scratch {
    void *memory;
    size_t size_bytes;
} ct_session_scratch;

/* Puts an array on the devices, one part on the host at a time, each made once: out_buffers[device * stride]. scratch
 * may be NULL; with it a block is zero only where it has padding, so fill must make all the rest. */
CT_MUST_USE ct_status *ct_session_put(const ct_session *session, const ct_layout *layout, ct_session_fill *fill,
                                      void *context, ct_session_scratch *scratch, ct_buffer **out_buffers,
                                      size_t stride);
/* The same from a whole array, which may change on return; layout's type is the array's. */
CT_MUST_USE ct_status *ct_session_share(const ct_session *session, const ct_array *array, const ct_layout *layout,
                                        ct_buffer **out_buffers, size_t stride);
/* The part of one device, padding included; waits. Freed with ct_array_free. */
CT_MUST_USE ct_status *ct_session_fetch_part(const ct_layout *layout, ct_buffer *buffer, ct_array *out_part);
/* The same into memory of ct_session_part_bytes. */
CT_MUST_USE ct_status *ct_session_fetch_part_to(const ct_layout *layout, ct_buffer *buffer, void *out_bytes);
size_t ct_session_part_bytes(const ct_layout *layout);
/* The whole array from buffers[device * stride], freed with ct_array_free. */
CT_MUST_USE ct_status *ct_session_fetch(const ct_session *session, const ct_layout *layout, ct_buffer *const *buffers,
                                        size_t stride, ct_array *out_array);

#endif
