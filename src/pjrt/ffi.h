/* Kernels in C that a program calls by name: XLA's FFI, for the host platform.
 *
 *   static ct_status *scale(const ct_ffi_call *call) { ... }           the kernel
 *   CT_FFI_HANDLER(scale_handler, scale)                               its entry, at file scope
 *   ct_ffi_register(plugin, "ct_scale", scale_handler)                 once per process and plugin
 *   stablehlo.custom_call @ct_scale(%x) {api_version = 4 : i32, backend_config = {alpha = 2.0 : f32}} ...
 *
 * A kernel runs on one of XLA's threads, several calls at once. It must not touch the client, nor wait for buffers.
 */
#ifndef CT_PJRT_FFI_H
#define CT_PJRT_FFI_H

#include "base/dtype.h"
#include "pjrt/plugin.h"

/* One call of a kernel; valid until the kernel returns. */
typedef struct ct_ffi_call ct_ffi_call;
typedef ct_status *ct_ffi_function(const ct_ffi_call *call); /* an error fails the program's execution */

typedef void *ct_ffi_handler(void *call_frame);
void *ct__ffi_enter(void *call_frame, ct_ffi_function *function);
#define CT_FFI_HANDLER(handler, function)                                                                              \
    static void *handler(void *call_frame)                                                                             \
    {                                                                                                                  \
        return ct__ffi_enter(call_frame, (function));                                                                  \
    }                                                                                                                  \
    _Static_assert(1, "wants a semicolon after it")

/* Makes the kernel known under target_name to all programs that the plugin compiles from now on. Registering the same
 * pair again changes nothing.
 * Errors: UNIMPLEMENTED when the plugin has no FFI; ALREADY_EXISTS for a name with another handler.
 */
CT_MUST_USE ct_status *ct_ffi_register(ct_plugin *plugin, const char *target_name, ct_ffi_handler *handler);

size_t ct_ffi_num_arguments(const ct_ffi_call *call);
size_t ct_ffi_num_results(const ct_ffi_call *call);

/* Views of the operands and of the memory for the results: dense, row-major, borrowed.
 * Errors: INVALID_ARGUMENT for an index beyond the end; UNIMPLEMENTED for a dtype or rank that ct_array cannot hold.
 */
CT_MUST_USE ct_status *ct_ffi_argument(const ct_ffi_call *call, size_t index, ct_array *out_array);
CT_MUST_USE ct_status *ct_ffi_result(const ct_ffi_call *call, size_t index, ct_array *out_array);

/* Attributes of backend_config. Errors: NOT_FOUND; INVALID_ARGUMENT for another type (integers of any width are fine,
 * and so are f32 and f64). The text is not NUL-terminated.
 */
CT_MUST_USE ct_status *ct_ffi_attribute_float(const ct_ffi_call *call, const char *name, double *out_value);
CT_MUST_USE ct_status *ct_ffi_attribute_int(const ct_ffi_call *call, const char *name, int64_t *out_value);
CT_MUST_USE ct_status *ct_ffi_attribute_text(const ct_ffi_call *call, const char *name, const char **out_text,
                                             size_t *out_length);

/* Calls body(user, i) for every i in [0, num_items), on XLA's threads and this one, and returns when all are done. Each
 * item should be worth some microseconds.
 */
typedef void ct_ffi_body(void *user, size_t item);
void ct_ffi_parallel_for(const ct_ffi_call *call, size_t num_items, ct_ffi_body *body, void *user);

#endif
