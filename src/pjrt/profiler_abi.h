/* The binary layout of the PJRT extension of profilers (type 1, version 1), and of the profiler that it hands out.
 * Internal; there is no header for it in the plugins' wheels. Names and order of the fields are XLA's
 * (xla/pjrt/c/pjrt_c_api_profiler_extension.h, xla/backends/profiler/plugin/profiler_c_api.h).
 */
#ifndef CT_PJRT_PROFILER_ABI_H
#define CT_PJRT_PROFILER_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef struct profiler_object profiler_object;
typedef struct profiler_error profiler_error;

typedef struct profiler_error_args { /* of error_destroy, and what all of an error begin with */
    size_t struct_size;
    void *priv;
    profiler_error *error;
} profiler_error_args;

typedef struct profiler_message_args {
    size_t struct_size;
    void *priv;
    const profiler_error *error;
    const char *message; /* as long as error */
    size_t message_size;
} profiler_message_args;

typedef struct profiler_create_args {
    size_t struct_size;
    const char *options; /* tensorflow.ProfileOptions, serialized */
    size_t options_size;
    profiler_object *profiler;
} profiler_create_args;

typedef struct profiler_args { /* of start, stop and destroy */
    size_t struct_size;
    profiler_object *profiler;
} profiler_args;

typedef struct profiler_collect_args {
    size_t struct_size;
    profiler_object *profiler;
    uint8_t *buffer; /* in: NULL asks for the size; out: XLA's profilers lend their own at once, and never fill one */
    size_t buffer_size_in_bytes;
} profiler_collect_args;

typedef struct profiler_api {
    size_t struct_size;
    void *priv;
    void (*error_destroy)(profiler_error_args *args);
    void (*error_message)(profiler_message_args *args);
    void *error_get_code;
    profiler_error *(*create)(profiler_create_args *args);
    profiler_error *(*destroy)(profiler_args *args);
    profiler_error *(*start)(profiler_args *args);
    profiler_error *(*stop)(profiler_args *args);
    profiler_error *(*collect_data)(profiler_collect_args *args);
} profiler_api;

typedef struct profiler_extension {
    size_t struct_size;
    int type;
    struct profiler_extension *next;
    const profiler_api *api; /* NULL where the plugin was built without one */
} profiler_extension;

enum { PROFILER_EXTENSION_TYPE = 1 };

#endif
