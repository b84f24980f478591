/* A set of devices that need not be here, to compile for: "v5e:4x4" with libtpu on a machine without TPUs.
 * Thread-safe.
 */
#ifndef CT_PJRT_TOPOLOGY_H
#define CT_PJRT_TOPOLOGY_H

#include "pjrt/executable.h"

typedef struct ct_topology ct_topology;

/* options are the plugin's own, for example num_slices (an integer); may be NULL. libtpu takes every slice for one
 * without rings unless it gets the option wrap: it does, as ct_tpu_slice_wraps (torus.h) says, where options do not
 * have it. Errors: UNIMPLEMENTED when the plugin has no topologies; the plugin's own for a name.
 */
CT_MUST_USE ct_status *ct_topology_new(ct_plugin *plugin, const char *name, const ct_named_value *options,
                                       size_t num_options, ct_topology **out_topology);
void ct_topology_free(ct_topology *topology); /* NULL is allowed; executables may outlive it */

const char *ct_topology_platform_name(const ct_topology *topology);
const char *ct_topology_platform_version(const ct_topology *topology);
size_t ct_topology_num_devices(const ct_topology *topology);
int ct_topology_device_id(const ct_topology *topology, size_t index);
const char *ct_topology_device_kind(const ct_topology *topology, size_t index);
const char *ct_topology_device_text(const ct_topology *topology, size_t index);

/* Compiles as ct_client_compile does; the executable can be looked at and saved, not run. opts->cache_folder must be
 * NULL: what cannot be loaded cannot be cached.
 */
CT_MUST_USE ct_status *ct_topology_compile(ct_topology *topology, const char *text, size_t text_bytes,
                                           const ct_compile_opts *opts, ct_executable **out_executable);

/* As ct_client_program_key, for ct_topology_compile; the same on every machine. */
CT_MUST_USE ct_status *ct_topology_program_key(ct_topology *topology, const char *text, size_t text_bytes,
                                               const ct_compile_opts *opts, char out_key[33]);

#endif
