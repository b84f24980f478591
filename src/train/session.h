/* A session: a plugin, its client, and the devices that programs of this run are spread over. Here text meets pjrt.
 *
 * Arrays of buffers are [device][argument], row-major, as pjrt takes them.
 */
#ifndef CT_TRAIN_SESSION_H
#define CT_TRAIN_SESSION_H

#include "graph/graph.h"
#include "pjrt/executable.h"

typedef struct ct_session_opts {
    ct_plugin_opts plugin;
    int num_devices;          /* 0 means 1 */
    const char *cache_folder; /* of compiled programs; NULL: none */
    const ct_named_value *xla_flags;
    size_t num_xla_flags;
} ct_session_opts;

typedef struct ct_session {
    ct_plugin *plugin;
    ct_client *client;
    int num_devices;
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
/* Shares array out over the devices by equal parts of dim. */
CT_MUST_USE ct_status *ct_session_share(const ct_session *session, const ct_array *array, int dim,
                                        ct_buffer **out_buffers, size_t stride);

#endif
