/* FFI: registration, and the view of a call frame that kernels get. */
#include "pjrt/ffi.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "pjrt/ffi_abi.h"
#include "pjrt/internal.h"

/* The extension, after PJRT_Extension_Base; the first two functions are not used. */
typedef struct {
    size_t struct_size;
    const char *target_name;
    size_t target_name_size;
    void *handler;
    const char *platform_name;
    size_t platform_name_size;
    int traits;
} register_args;

typedef struct {
    PJRT_Extension_Base base;
    void (*type_id_register)(void);
    void (*user_data_add)(void);
    PJRT_Error *(*register_handler)(register_args *args);
} ffi_registry;

struct ct_ffi_call {
    const ffi_call_frame *frame;
};

static ct_status *register_kernel(ct_plugin *plugin, const char *target_name, void *handler)
{
    ffi_registry *registry = (ffi_registry *)ct__plugin_extension(plugin, PJRT_Extension_Type_FFI);
    if (!registry || registry->base.struct_size < sizeof(*registry) || !registry->register_handler)
        return ct_error(CT_CODE_UNIMPLEMENTED, "the plugin %s cannot call kernels in C: it has no FFI extension",
                        plugin->path);
    register_args args = {
        .struct_size = offsetof(register_args, traits) + sizeof(int),
        .target_name = target_name,
        .target_name_size = strlen(target_name),
        .handler = handler,
        .platform_name = "HOST",
        .platform_name_size = strlen("HOST"),
    };
    PJRT_Error *error = registry->register_handler(&args);
    return ct_status_note(ct__pjrt_status(plugin, error, "PJRT_FFI_Register_Handler", __FILE__, __LINE__),
                          "registering the kernel %s", target_name);
}

/* Plugins take a second handler for a name without a word, so the names are kept here. */
ct_status *ct_ffi_register(ct_plugin *plugin, const char *target_name, ct_ffi_handler *handler)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    void *wanted;
    memcpy(&wanted, &handler, sizeof(wanted)); /* ISO C has no cast from functions to objects */
    pthread_mutex_lock(&lock);
    void *known = ct_map_get(&plugin->kernels, target_name);
    ct_status *status = NULL;
    if (known && known != wanted)
        status = ct_error(CT_CODE_ALREADY_EXISTS, "there is another kernel called %s", target_name);
    else if (!known && !(status = register_kernel(plugin, target_name, wanted)))
        ct_map_set(&plugin->kernels, target_name, wanted);
    pthread_mutex_unlock(&lock);
    return status;
}

/* Fills in what the runtime asks on the first call of a handler. */
static bool answer_metadata(ffi_call_frame *frame)
{
    ffi_extension *extension = frame->extensions;
    if (!extension || extension->type != FFI_EXTENSION_METADATA) return false;
    ffi_metadata *metadata = ((ffi_metadata_request *)extension)->metadata;
    metadata->api_version.major = FFI_MAJOR;
    metadata->api_version.minor = FFI_MINOR;
    metadata->traits = 0;
    return true;
}

void *ct__ffi_enter(void *call_frame, ct_ffi_function *function)
{
    ffi_call_frame *frame = call_frame;
    if (answer_metadata(frame)) return NULL;
    ct_status *status = function(&(ct_ffi_call){.frame = frame});
    if (!status) return NULL;
    ffi_error_args args = {.struct_size = offsetof(ffi_error_args, code) + sizeof(int),
                           .message = ct_status_message(status),
                           .code = (int)ct_status_code(status)};
    void *error = frame->api->error_create(&args);
    ct_status_free(status);
    return error;
}

static ct_dtype dtype_of(int type)
{
    switch (type) {
    case FFI_PRED: return CT_DTYPE_BOOL;
    case FFI_S8: return CT_DTYPE_S8;
    case FFI_S32: return CT_DTYPE_S32;
    case FFI_S64: return CT_DTYPE_S64;
    case FFI_U8: return CT_DTYPE_U8;
    case FFI_U32: return CT_DTYPE_U32;
    case FFI_F16: return CT_DTYPE_F16;
    case FFI_BF16: return CT_DTYPE_BF16;
    case FFI_F32: return CT_DTYPE_F32;
    case FFI_F64: return CT_DTYPE_F64;
    default: return CT_DTYPE_INVALID;
    }
}

static ct_status *get_array(const ffi_values *values, size_t index, const char *what, ct_array *out_array)
{
    *out_array = (ct_array){0};
    if (index >= (size_t)values->count)
        return ct_error(CT_CODE_INVALID_ARGUMENT, "the kernel wants %s %zu, the program gives %lld", what, index,
                        (long long)values->count);
    if (values->kinds[index] != FFI_BUFFER)
        return ct_error(CT_CODE_UNIMPLEMENTED, "%s %zu of a kernel must be an array", what, index);
    const ffi_buffer *buffer = values->values[index];
    ct_dtype dtype = dtype_of(buffer->dtype);
    if (dtype == CT_DTYPE_INVALID || buffer->rank < 0 || buffer->rank > CT_MAX_RANK)
        return ct_error(CT_CODE_UNIMPLEMENTED, "%s %zu of a kernel has type %d in XLA's numbering and rank %lld", what,
                        index, buffer->dtype, (long long)buffer->rank);
    out_array->dtype = dtype;
    out_array->rank = (int)buffer->rank;
    for (int i = 0; i < out_array->rank; i++) out_array->sizes[i] = buffer->sizes[i];
    out_array->data = buffer->data;
    return NULL;
}

size_t ct_ffi_num_arguments(const ct_ffi_call *call)
{
    return (size_t)call->frame->arguments.count;
}

size_t ct_ffi_num_results(const ct_ffi_call *call)
{
    return (size_t)call->frame->results.count;
}

ct_status *ct_ffi_argument(const ct_ffi_call *call, size_t index, ct_array *out_array)
{
    return get_array(&call->frame->arguments, index, "argument", out_array);
}

ct_status *ct_ffi_result(const ct_ffi_call *call, size_t index, ct_array *out_array)
{
    return get_array(&call->frame->results, index, "result", out_array);
}

static ct_status *find_attribute(const ct_ffi_call *call, const char *name, int kind, const void **out_value)
{
    const ffi_attributes *attributes = &call->frame->attributes;
    for (int64_t i = 0; i < attributes->count; i++) {
        const ffi_span *found = attributes->names[i];
        if (found->length != strlen(name) || memcmp(found->data, name, found->length)) continue;
        if (attributes->kinds[i] != kind)
            return ct_error(CT_CODE_INVALID_ARGUMENT, "the kernel's attribute %s must be a %s", name,
                            kind == FFI_ATTR_SCALAR ? "number" : "string");
        *out_value = attributes->values[i];
        return NULL;
    }
    return ct_error(CT_CODE_NOT_FOUND, "the kernel wants the attribute %s, which backend_config does not have", name);
}

ct_status *ct_ffi_attribute_float(const ct_ffi_call *call, const char *name, double *out_value)
{
    *out_value = 0;
    const void *value;
    CT_TRY(find_attribute(call, name, FFI_ATTR_SCALAR, &value));
    const ffi_scalar *scalar = value;
    switch (scalar->dtype) {
    case FFI_F32: *out_value = (double)*(const float *)scalar->value; return NULL;
    case FFI_F64: *out_value = *(const double *)scalar->value; return NULL;
    default:
        return ct_error(CT_CODE_INVALID_ARGUMENT, "the kernel's attribute %s must be f32 or f64 (type %d)", name,
                        scalar->dtype);
    }
}

ct_status *ct_ffi_attribute_int(const ct_ffi_call *call, const char *name, int64_t *out_value)
{
    *out_value = 0;
    const void *value;
    CT_TRY(find_attribute(call, name, FFI_ATTR_SCALAR, &value));
    const ffi_scalar *scalar = value;
    switch (scalar->dtype) {
    case FFI_PRED:
    case FFI_U8: *out_value = *(const uint8_t *)scalar->value; return NULL;
    case FFI_S8: *out_value = *(const int8_t *)scalar->value; return NULL;
    case FFI_S16: *out_value = *(const int16_t *)scalar->value; return NULL;
    case FFI_U16: *out_value = *(const uint16_t *)scalar->value; return NULL;
    case FFI_S32: *out_value = *(const int32_t *)scalar->value; return NULL;
    case FFI_U32: *out_value = *(const uint32_t *)scalar->value; return NULL;
    case FFI_S64:
    case FFI_U64: memcpy(out_value, scalar->value, sizeof(*out_value)); return NULL;
    default:
        return ct_error(CT_CODE_INVALID_ARGUMENT, "the kernel's attribute %s must be an integer (type %d)", name,
                        scalar->dtype);
    }
}

ct_status *ct_ffi_attribute_text(const ct_ffi_call *call, const char *name, const char **out_text, size_t *out_length)
{
    *out_text = "";
    *out_length = 0;
    const void *value = NULL;
    CT_TRY(find_attribute(call, name, FFI_ATTR_STRING, &value));
    *out_text = ((const ffi_span *)value)->data;
    *out_length = ((const ffi_span *)value)->length;
    return NULL;
}

/* Work for several threads. Helpers that come late find nothing left; so nobody ever waits for a helper to start, and a
 * kernel that runs on the pool itself cannot lock it up. The last to let go frees it. */
typedef struct {
    ct_ffi_body *body;
    void *user;
    size_t num_items;
    atomic_size_t next_item, num_done, num_holders;
    pthread_mutex_t lock;
    pthread_cond_t all_done;
} shared_work;

static void release(shared_work *work)
{
    if (atomic_fetch_sub(&work->num_holders, 1) != 1) return;
    pthread_mutex_destroy(&work->lock);
    pthread_cond_destroy(&work->all_done);
    free(work);
}

static void do_items(shared_work *work)
{
    for (;;) {
        size_t item = atomic_fetch_add(&work->next_item, 1);
        if (item >= work->num_items) return;
        work->body(work->user, item);
        if (atomic_fetch_add(&work->num_done, 1) + 1 != work->num_items) continue;
        pthread_mutex_lock(&work->lock);
        pthread_cond_signal(&work->all_done);
        pthread_mutex_unlock(&work->lock);
    }
}

static void helper_main(void *data)
{
    do_items(data);
    release(data);
}

static size_t count_threads(const ffi_call_frame *frame)
{
    const ffi_api *api = frame->api;
    if (api->struct_size < sizeof(*api) || !api->schedule || !api->num_threads) return 1;
    int64_t count = 1;
    ffi_num_threads_args args = {.struct_size = sizeof(args), .context = frame->context, .num_threads = &count};
    return api->num_threads(&args) || count < 1 ? 1 : (size_t)count; /* an error: there is no pool */
}

void ct_ffi_parallel_for(const ct_ffi_call *call, size_t num_items, ct_ffi_body *body, void *user)
{
    const ffi_call_frame *frame = call->frame;
    size_t num_threads = num_items > 1 ? CT_MIN(count_threads(frame), num_items) : 1;
    if (num_threads == 1) {
        for (size_t i = 0; i < num_items; i++) body(user, i);
        return;
    }
    shared_work *work = ct_alloc_zeroed(1, sizeof(*work));
    work->body = body;
    work->user = user;
    work->num_items = num_items;
    atomic_store(&work->num_holders, num_threads);
    pthread_mutex_init(&work->lock, NULL);
    pthread_cond_init(&work->all_done, NULL);
    /* One hold, this thread's, is left to the end, which the analyzer cannot count. */
    /* NOLINTBEGIN(clang-analyzer-unix.Malloc) */
    for (size_t i = 1; i < num_threads; i++) {
        ffi_schedule_args args = {
            .struct_size = sizeof(args), .context = frame->context, .task = helper_main, .data = work};
        if (frame->api->schedule(&args)) release(work); /* refused: one holder less */
    }
    do_items(work);
    pthread_mutex_lock(&work->lock);
    while (atomic_load(&work->num_done) < num_items) pthread_cond_wait(&work->all_done, &work->lock);
    pthread_mutex_unlock(&work->lock);
    release(work);
    /* NOLINTEND(clang-analyzer-unix.Malloc) */
}
