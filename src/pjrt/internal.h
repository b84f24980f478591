/* What the files of this module share: the structs behind the public names, and calls into a plugin.
 *
 * Every call goes through CT_PJRT, which refuses a function that the plugin's table is too short to hold (tables and
 * argument structs only grow, each carries its size) and turns a PJRT_Error into a status.
 */
#ifndef CT_PJRT_INTERNAL_H
#define CT_PJRT_INTERNAL_H

#include <pjrt_c_api.h>
#include <stdatomic.h>

#include "base/arena.h"
#include "base/dtype.h"
#include "base/map.h"
#include "base/status.h"
#include "pjrt/compile_options.h"
#include "pjrt/value.h"

typedef struct ct_plugin ct_plugin;
typedef struct ct_client ct_client;
typedef struct ct_device ct_device;
typedef struct ct_memory ct_memory;
typedef struct ct_buffer ct_buffer;
typedef struct ct_event ct_event;
typedef struct ct_executable ct_executable;

struct ct_plugin {
    ct_plugin *next; /* of the process's list */
    char *path;
    const PJRT_Api *api;
    ct_arena arena; /* process lifetime */
    ct_named_value *attributes;
    size_t num_attributes;
    const char *stablehlo_version;
    const char *build;    /* tells builds and flags apart, on any machine */
    const char *identity; /* tells installed files apart, for cache keys */
    ct_map kernels;       /* target name to handler, of ffi.c */
};

struct ct_memory {
    PJRT_Memory *memory;
    int id;
    const char *kind;
    const char *text;
};

struct ct_device {
    ct_client *client;
    PJRT_Device *device;
    int id;
    int process_index;
    int local_id; /* -1 when another process owns the device */
    bool is_addressable;
    bool has_coords;
    int64_t coords[4]; /* x, y, z of the chip in its slice, and the core on it */
    int64_t slice;
    const char *kind;
    const char *text;
    const ct_memory *default_memory;
};

struct ct_client {
    ct_plugin *plugin;
    PJRT_Client *client;
    ct_arena arena; /* lives as long as the client */
    const char *platform_name;
    const char *platform_version;
    int process_index;
    ct_device *devices;
    size_t num_devices;
    ct_device **addressable_devices;
    size_t num_addressable_devices;
    ct_memory *memories;
    size_t num_memories;
    atomic_size_t num_children; /* buffers and executables alive */
};

struct ct_event {
    ct_plugin *plugin;
    PJRT_Event *event;
};

struct ct_buffer {
    ct_client *client;
    PJRT_Buffer *buffer;
};

struct ct_executable {
    ct_plugin *plugin;
    ct_client *client;             /* NULL when compiled for a topology */
    PJRT_LoadedExecutable *loaded; /* NULL when compiled for a topology */
    PJRT_Executable *executable;
    size_t num_outputs;
    size_t num_devices; /* addressable ones that it runs on; 0 when not loaded */
    bool from_cache;
};

#define CT__PJRT_HAS(plugin, function)                                                                                 \
    ((plugin)->api->struct_size >= offsetof(PJRT_Api, function) + sizeof(void (*)(void)) && (plugin)->api->function)
#define CT_PJRT(plugin, function, args)                                                                                \
    (CT__PJRT_HAS(plugin, function)                                                                                    \
         ? ct__pjrt_status((plugin), (plugin)->api->function(args), #function, __FILE__, __LINE__)                     \
         : ct__pjrt_missing((plugin), #function, __FILE__, __LINE__))
#define CT_PJRT_ARGS(function) .struct_size = function##_Args_STRUCT_SIZE

CT_MUST_USE ct_status *ct__pjrt_status(ct_plugin *plugin, PJRT_Error *error, const char *call, const char *file,
                                       int line);
CT_MUST_USE ct_status *ct__pjrt_missing(ct_plugin *plugin, const char *call, const char *file, int line);

/* For clean-up, where an error can only be dropped. */
#define CT_PJRT_IGNORE(plugin, function, args) ct_status_free(CT_PJRT(plugin, function, args))

PJRT_Extension_Base *ct__plugin_extension(const ct_plugin *plugin, PJRT_Extension_Type type);

PJRT_NamedValue ct__value_to_pjrt(const ct_named_value *value);
ct_named_value ct__value_from_pjrt(ct_arena *arena, const PJRT_NamedValue *value);

PJRT_Buffer_Type ct__type_to_pjrt(ct_dtype dtype);
ct_dtype ct__type_from_pjrt(PJRT_Buffer_Type type); /* CT_DTYPE_INVALID for those that ct_dtype lacks */

/* Takes event over; NULL from the plugin is an error of its own. */
CT_MUST_USE ct_status *ct__event_new(ct_plugin *plugin, PJRT_Event *event, ct_event **out_event);
CT_MUST_USE ct_status *ct__buffer_new(ct_client *client, PJRT_Buffer *buffer, ct_buffer **out_buffer);

CT_MUST_USE ct_status *ct__device_describe(ct_plugin *plugin, ct_arena *arena, PJRT_DeviceDescription *description,
                                           ct_device *out_device);
CT_MUST_USE ct_status *ct__device_init(ct_client *client, PJRT_Device *device, ct_device *out_device);
CT_MUST_USE ct_status *ct__memory_init(ct_client *client, PJRT_Memory *memory, ct_memory *out_memory);
const ct_memory *ct__client_memory(const ct_client *client, const PJRT_Memory *memory);
ct_device *ct__client_device(const ct_client *client, const PJRT_Device *device);

/* torus.h says what it gives; wraps is in the order of coords. */
struct ct_torus;
CT_MUST_USE ct_status *ct__torus_order(const ct_device *devices, size_t num_devices, const bool wraps[4],
                                       int64_t innermost, struct ct_torus *out_torus, int *out_device_ids);

/* The ids that opts asks for, heap: its own list, or the first of devices. Errors: INVALID_ARGUMENT for too few. */
CT_MUST_USE ct_status *ct__choose_devices(const ct_compile_opts *opts, const ct_device *devices, size_t num_devices,
                                          int **out_device_ids);
PJRT_Program ct__program(const char *text, size_t text_bytes); /* borrows text */

/* Takes over loaded or, for a topology, executable. On error the object is gone. */
CT_MUST_USE ct_status *ct__executable_new(ct_plugin *plugin, ct_client *client, PJRT_LoadedExecutable *loaded,
                                          PJRT_Executable *executable, ct_executable **out_executable);
CT_MUST_USE ct_status *ct__executable_deserialize(ct_client *client, const void *bytes, size_t size_bytes,
                                                  ct_executable **out_executable);
/* out_bytes is heap memory. */
CT_MUST_USE ct_status *ct__executable_serialize(ct_executable *executable, char **out_bytes, size_t *out_size_bytes);

#endif
