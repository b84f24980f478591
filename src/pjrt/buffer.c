/* Buffers and transfers. What the plugin says of a buffer is checked before host memory is sized by it. */
#include "pjrt/buffer.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "pjrt/internal.h"

static const struct {
    ct_dtype dtype;
    PJRT_Buffer_Type type;
} types[] = {
    {CT_DTYPE_BOOL, PJRT_Buffer_Type_PRED}, {CT_DTYPE_S8, PJRT_Buffer_Type_S8},
    {CT_DTYPE_S32, PJRT_Buffer_Type_S32},   {CT_DTYPE_S64, PJRT_Buffer_Type_S64},
    {CT_DTYPE_U8, PJRT_Buffer_Type_U8},     {CT_DTYPE_U32, PJRT_Buffer_Type_U32},
    {CT_DTYPE_F16, PJRT_Buffer_Type_F16},   {CT_DTYPE_BF16, PJRT_Buffer_Type_BF16},
    {CT_DTYPE_F32, PJRT_Buffer_Type_F32},   {CT_DTYPE_F64, PJRT_Buffer_Type_F64},
};

PJRT_Buffer_Type ct__type_to_pjrt(ct_dtype dtype)
{
    for (size_t i = 0; i < CT_COUNT(types); i++)
        if (types[i].dtype == dtype) return types[i].type;
    return PJRT_Buffer_Type_INVALID;
}

ct_dtype ct__type_from_pjrt(PJRT_Buffer_Type type)
{
    for (size_t i = 0; i < CT_COUNT(types); i++)
        if (types[i].type == type) return types[i].dtype;
    return CT_DTYPE_INVALID;
}

ct_status *ct__buffer_new(ct_client *client, PJRT_Buffer *buffer, ct_buffer **out_buffer)
{
    *out_buffer = NULL;
    if (!buffer) return ct_error(CT_CODE_INTERNAL, "the plugin %s gave no buffer", client->plugin->path);
    ct_buffer *made = ct_alloc(sizeof(*made));
    *made = (ct_buffer){.client = client, .buffer = buffer};
    atomic_fetch_add(&client->num_children, 1);
    *out_buffer = made;
    return NULL;
}

ct_status *ct_buffer_from_host(ct_device *device, const ct_array *array, const ct_buffer_opts *opts,
                               ct_event **out_done, ct_buffer **out_buffer)
{
    *out_buffer = NULL;
    if (out_done) *out_done = NULL;
    ct_client *client = device->client;
    PJRT_Client_BufferFromHostBuffer_Args args = {
        CT_PJRT_ARGS(PJRT_Client_BufferFromHostBuffer),
        .client = client->client,
        .data = array->data,
        .type = ct__type_to_pjrt(array->dtype),
        .dims = array->sizes,
        .num_dims = (size_t)array->rank,
        .host_buffer_semantics = out_done ? PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes
                                          : PJRT_HostBufferSemantics_kImmutableOnlyDuringCall,
        .device = device->device,
        .memory = opts && opts->memory ? opts->memory->memory : NULL,
    };
    CT_TRY_NOTE(CT_PJRT(client->plugin, PJRT_Client_BufferFromHostBuffer, &args), "copying to device %s", device->text);
    ct_event *done = NULL;
    ct_status *status = ct__buffer_new(client, args.buffer, out_buffer);
    if (args.done_with_host_buffer || !status)
        status = ct_status_first(status, ct__event_new(client->plugin, args.done_with_host_buffer, &done));
    /* With the copy made during the call, the event holds at most an error that the buffer has, too. */
    if (status || !out_done) {
        ct_event_free(done);
        done = NULL;
    }
    if (status) {
        ct_buffer_free(*out_buffer);
        *out_buffer = NULL;
        return status;
    }
    if (out_done) *out_done = done;
    return NULL;
}

ct_status *ct_buffer_shape(ct_buffer *buffer, ct_array *out_shape)
{
    *out_shape = (ct_array){0};
    ct_plugin *plugin = buffer->client->plugin;
    PJRT_Buffer_ElementType_Args type = {CT_PJRT_ARGS(PJRT_Buffer_ElementType), .buffer = buffer->buffer};
    PJRT_Buffer_Dimensions_Args dims = {CT_PJRT_ARGS(PJRT_Buffer_Dimensions), .buffer = buffer->buffer};
    CT_TRY(CT_PJRT(plugin, PJRT_Buffer_ElementType, &type));
    CT_TRY(CT_PJRT(plugin, PJRT_Buffer_Dimensions, &dims));
    ct_dtype dtype = ct__type_from_pjrt(type.type);
    if (dtype == CT_DTYPE_INVALID)
        return ct_error(CT_CODE_UNIMPLEMENTED, "the buffer's element type, %d in PJRT's numbering, is not supported",
                        (int)type.type);
    if (dims.num_dims > CT_MAX_RANK)
        return ct_error(CT_CODE_UNIMPLEMENTED, "a buffer may have at most %d dimensions, found %zu", CT_MAX_RANK,
                        dims.num_dims);
    int64_t bytes = (int64_t)ct_dtype_bytes(dtype);
    for (size_t i = 0; i < dims.num_dims; i++) {
        if (dims.dims[i] < 0 || !ct_checked_mul(bytes, dims.dims[i], &bytes))
            return ct_error(CT_CODE_INTERNAL, "the plugin gives a buffer the impossible size %lld in dimension %zu",
                            (long long)dims.dims[i], i);
        out_shape->sizes[i] = dims.dims[i];
    }
    out_shape->dtype = dtype;
    out_shape->rank = (int)dims.num_dims;
    return NULL;
}

ct_status *ct_buffer_to_host(ct_buffer *buffer, void *data, size_t size_bytes, ct_event **out_done)
{
    if (out_done) *out_done = NULL;
    ct_plugin *plugin = buffer->client->plugin;
    ct_array shape;
    CT_TRY(ct_buffer_shape(buffer, &shape));
    if (size_bytes != ct_array_bytes(&shape))
        return ct_error(CT_CODE_INVALID_ARGUMENT, "the buffer holds %zu bytes, the host memory for it %zu",
                        ct_array_bytes(&shape), size_bytes);
    int64_t minor_to_major[CT_MAX_RANK];
    for (int i = 0; i < shape.rank; i++) minor_to_major[i] = shape.rank - 1 - i;
    PJRT_Buffer_MemoryLayout layout = {
        .struct_size = PJRT_Buffer_MemoryLayout_STRUCT_SIZE,
        .tiled = {.struct_size = PJRT_Buffer_MemoryLayout_Tiled_STRUCT_SIZE,
                  .minor_to_major = minor_to_major,
                  .minor_to_major_size = (size_t)shape.rank},
        .type = PJRT_Buffer_MemoryLayout_Type_Tiled,
    };
    PJRT_Buffer_ToHostBuffer_Args args = {CT_PJRT_ARGS(PJRT_Buffer_ToHostBuffer), .src = buffer->buffer,
                                          .host_layout = &layout, .dst = data, .dst_size = size_bytes};
    CT_TRY(CT_PJRT(plugin, PJRT_Buffer_ToHostBuffer, &args));
    ct_event *done;
    CT_TRY(ct__event_new(plugin, args.event, &done));
    if (out_done) {
        *out_done = done;
        return NULL;
    }
    ct_status *status = ct_event_await(done);
    ct_event_free(done);
    return status;
}

ct_status *ct_buffer_to_array(ct_buffer *buffer, ct_array *out_array)
{
    CT_TRY(ct_buffer_shape(buffer, out_array));
    *out_array = ct_array_new(out_array->dtype, out_array->sizes, out_array->rank);
    ct_status *status = ct_buffer_to_host(buffer, out_array->data, ct_array_bytes(out_array), NULL);
    if (status) ct_array_free(out_array);
    return status;
}

ct_status *ct_buffer_device_bytes(ct_buffer *buffer, size_t *out_size_bytes)
{
    *out_size_bytes = 0;
    PJRT_Buffer_OnDeviceSizeInBytes_Args args = {CT_PJRT_ARGS(PJRT_Buffer_OnDeviceSizeInBytes),
                                                 .buffer = buffer->buffer};
    CT_TRY(CT_PJRT(buffer->client->plugin, PJRT_Buffer_OnDeviceSizeInBytes, &args));
    *out_size_bytes = args.on_device_size_in_bytes;
    return NULL;
}

ct_status *ct_buffer_ready_event(ct_buffer *buffer, ct_event **out_event)
{
    *out_event = NULL;
    PJRT_Buffer_ReadyEvent_Args args = {CT_PJRT_ARGS(PJRT_Buffer_ReadyEvent), .buffer = buffer->buffer};
    CT_TRY(CT_PJRT(buffer->client->plugin, PJRT_Buffer_ReadyEvent, &args));
    return ct__event_new(buffer->client->plugin, args.event, out_event);
}

ct_status *ct_buffer_device(ct_buffer *buffer, ct_device **out_device)
{
    *out_device = NULL;
    PJRT_Buffer_Device_Args args = {CT_PJRT_ARGS(PJRT_Buffer_Device), .buffer = buffer->buffer};
    CT_TRY(CT_PJRT(buffer->client->plugin, PJRT_Buffer_Device, &args));
    *out_device = ct__client_device(buffer->client, args.device);
    return *out_device ? NULL : ct_error(CT_CODE_INTERNAL, "the buffer's device is not one of the client's");
}

ct_status *ct_buffer_memory(ct_buffer *buffer, const ct_memory **out_memory)
{
    *out_memory = NULL;
    PJRT_Buffer_Memory_Args args = {CT_PJRT_ARGS(PJRT_Buffer_Memory), .buffer = buffer->buffer};
    CT_TRY(CT_PJRT(buffer->client->plugin, PJRT_Buffer_Memory, &args));
    *out_memory = ct__client_memory(buffer->client, args.memory);
    return *out_memory ? NULL : ct_error(CT_CODE_INTERNAL, "the buffer's memory is not one of the client's");
}

ct_status *ct_buffer_copy_to_device(ct_buffer *buffer, ct_device *device, ct_buffer **out_copy)
{
    *out_copy = NULL;
    PJRT_Buffer_CopyToDevice_Args args = {CT_PJRT_ARGS(PJRT_Buffer_CopyToDevice), .buffer = buffer->buffer,
                                          .dst_device = device->device};
    CT_TRY(CT_PJRT(buffer->client->plugin, PJRT_Buffer_CopyToDevice, &args));
    return ct__buffer_new(device->client, args.dst_buffer, out_copy);
}

ct_status *ct_buffer_copy_to_memory(ct_buffer *buffer, const ct_memory *memory, ct_buffer **out_copy)
{
    *out_copy = NULL;
    PJRT_Buffer_CopyToMemory_Args args = {CT_PJRT_ARGS(PJRT_Buffer_CopyToMemory), .buffer = buffer->buffer,
                                          .dst_memory = memory->memory};
    CT_TRY(CT_PJRT(buffer->client->plugin, PJRT_Buffer_CopyToMemory, &args));
    return ct__buffer_new(buffer->client, args.dst_buffer, out_copy);
}

ct_status *ct_buffer_delete(ct_buffer *buffer)
{
    PJRT_Buffer_Delete_Args args = {CT_PJRT_ARGS(PJRT_Buffer_Delete), .buffer = buffer->buffer};
    return CT_PJRT(buffer->client->plugin, PJRT_Buffer_Delete, &args);
}

ct_status *ct_buffer_is_deleted(ct_buffer *buffer, bool *out_deleted)
{
    *out_deleted = false;
    PJRT_Buffer_IsDeleted_Args args = {CT_PJRT_ARGS(PJRT_Buffer_IsDeleted), .buffer = buffer->buffer};
    CT_TRY(CT_PJRT(buffer->client->plugin, PJRT_Buffer_IsDeleted, &args));
    *out_deleted = args.is_deleted;
    return NULL;
}

void ct_buffer_free(ct_buffer *buffer)
{
    if (!buffer) return;
    PJRT_Buffer_Destroy_Args args = {CT_PJRT_ARGS(PJRT_Buffer_Destroy), .buffer = buffer->buffer};
    CT_PJRT_IGNORE(buffer->client->plugin, PJRT_Buffer_Destroy, &args);
    atomic_fetch_sub(&buffer->client->num_children, 1);
    free(buffer);
}

void ct_buffers_free(ct_buffer **buffers, size_t num_buffers)
{
    for (size_t i = 0; i < num_buffers; i++) {
        ct_buffer_free(buffers[i]);
        buffers[i] = NULL;
    }
}
