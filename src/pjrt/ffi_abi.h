/* The binary layout of XLA's FFI as far as it is used (FFI 0.2 to 0.4, whose layouts agree), and of the PJRT extension
 * that registers handlers (type 5). Internal; there is no header for it in the plugin's wheel.
 */
#ifndef CT_PJRT_FFI_ABI_H
#define CT_PJRT_FFI_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef struct ffi_extension {
    size_t struct_size;
    int type; /* 1: the call asks for metadata */
    struct ffi_extension *next;
} ffi_extension;

enum { FFI_EXTENSION_METADATA = 1, FFI_MAJOR = 0, FFI_MINOR = 2 };

typedef struct ffi_version {
    size_t struct_size;
    ffi_extension *extensions;
    int major, minor;
} ffi_version;

typedef struct ffi_metadata {
    size_t struct_size;
    ffi_version api_version;
    uint32_t traits;
} ffi_metadata;

typedef struct ffi_metadata_request {
    ffi_extension base;
    ffi_metadata *metadata; /* to be filled in */
} ffi_metadata_request;

/* XLA's element types. */
enum {
    FFI_PRED = 1,
    FFI_S8 = 2,
    FFI_S16 = 3,
    FFI_S32 = 4,
    FFI_S64 = 5,
    FFI_U8 = 6,
    FFI_U16 = 7,
    FFI_U32 = 8,
    FFI_U64 = 9,
    FFI_F16 = 10,
    FFI_F32 = 11,
    FFI_F64 = 12,
    FFI_BF16 = 16,
};

typedef struct ffi_buffer {
    size_t struct_size;
    ffi_extension *extensions;
    int dtype;
    void *data;
    int64_t rank;
    int64_t *sizes;
} ffi_buffer;

enum { FFI_BUFFER = 1 }; /* argument and result kinds */
enum { FFI_ATTR_ARRAY = 1, FFI_ATTR_DICTIONARY = 2, FFI_ATTR_SCALAR = 3, FFI_ATTR_STRING = 4 };

typedef struct ffi_span {
    const char *data;
    size_t length;
} ffi_span;

typedef struct ffi_scalar {
    int dtype;
    void *value;
} ffi_scalar;

typedef struct ffi_values { /* arguments, and results in the same shape */
    size_t struct_size;
    ffi_extension *extensions;
    int64_t count;
    int *kinds;
    void **values;
} ffi_values;

typedef struct ffi_attributes {
    size_t struct_size;
    ffi_extension *extensions;
    int64_t count;
    int *kinds;
    ffi_span **names;
    void **values;
} ffi_attributes;

typedef struct ffi_error_args {
    size_t struct_size;
    ffi_extension *extensions;
    const char *message; /* copied */
    int code;            /* PJRT's codes */
} ffi_error_args;

typedef struct ffi_schedule_args {
    size_t struct_size;
    ffi_extension *extensions;
    void *context;
    void (*task)(void *data);
    void *data;
} ffi_schedule_args;

typedef struct ffi_num_threads_args {
    size_t struct_size;
    ffi_extension *extensions;
    void *context;
    int64_t *num_threads; /* out */
} ffi_num_threads_args;

typedef void *ffi_any_function(void *args);

typedef struct ffi_api {
    size_t struct_size;
    ffi_extension *extensions;
    ffi_version api_version;
    void *internal;
    void *(*error_create)(ffi_error_args *args);
    ffi_any_function *unused[10]; /* other errors, registration, streams, types, states, device memory */
    void *(*schedule)(ffi_schedule_args *args);
    void *(*num_threads)(ffi_num_threads_args *args);
} ffi_api;

typedef struct ffi_call_frame {
    size_t struct_size;
    ffi_extension *extensions;
    const ffi_api *api;
    void *context;
    int stage;
    ffi_values arguments;
    ffi_values results;
    ffi_attributes attributes;
} ffi_call_frame;

#endif
