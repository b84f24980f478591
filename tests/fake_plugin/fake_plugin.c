/* The fake plugin. Every object is a small heap struct; every call goes through ENTER, which counts and fails. */
#include "fake_plugin.h"

#include "fake_profiler.h"

#include <pjrt_c_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void release_events(void);
static fake_control control = {.release = release_events};

fake_control *fake_plugin_control(void)
{
    return &control;
}

struct PJRT_Error {
    int code;
    char message[64];
};
struct PJRT_Event {
    bool is_ready;
    bool is_destroyed; /* by its owner, while it is still in the list of events to come */
    PJRT_Event_OnReadyCallback callback;
    void *user;
    PJRT_Event *next;
};
struct PJRT_DeviceDescription {
    int id;
};
struct PJRT_Memory {
    int id;
};
struct PJRT_Device {
    PJRT_DeviceDescription description;
    PJRT_Memory memory;
    PJRT_Memory *memories[1];
};
struct PJRT_Client {
    int unused;
};
struct PJRT_Buffer {
    int device;
    PJRT_Buffer_Type type;
    size_t num_dims;
    int64_t dims[8];
    size_t size;
    bool is_deleted;
    char *data;
};
struct PJRT_Executable {
    int unused;
};
struct PJRT_LoadedExecutable {
    PJRT_Executable *executable;
};
struct PJRT_TopologyDescription {
    int unused;
};

static PJRT_Device devices[3] = {{{0}, {0}, {0}}, {{1}, {1}, {0}}, {{2}, {2}, {0}}};
static PJRT_Device *device_list[3] = {&devices[0], &devices[1], &devices[2]};
static PJRT_Memory *memory_list[2] = {&devices[0].memory, &devices[1].memory};
static PJRT_DeviceDescription *description_list[2] = {&devices[0].description, &devices[1].description};
static PJRT_Event *waiting; /* delayed events */

static void *make(size_t size)
{
    control.num_live++;
    void *object = calloc(1, size);
    if (!object) abort();
    return object;
}

static void unmake(void *object)
{
    if (!object) return;
    control.num_live--;
    free(object);
}

static PJRT_Error *make_error(int code, const char *text)
{
    PJRT_Error *error = make(sizeof(*error));
    error->code = control.lie == FAKE_STRANGE_CODE ? 77 : control.lie == FAKE_OK_CODE ? 0 : code;
    snprintf(error->message, sizeof(error->message), "fake: %s", text);
    return error;
}

static PJRT_Error *enter(const char *call, size_t args_size, size_t wanted_size)
{
    if (args_size < wanted_size) control.num_short_args++;
    if (++control.num_calls != control.fail_at) return NULL;
    control.has_failed = true;
    control.failed_call = call;
    return make_error(PJRT_Error_Code_RESOURCE_EXHAUSTED, call);
}
#define ENTER(function)                                                                                                \
    do {                                                                                                               \
        PJRT_Error *enter_error = enter(#function, args->struct_size, function##_Args_STRUCT_SIZE);                    \
        if (enter_error) return enter_error;                                                                           \
    } while (0)
/* For destruction: it happens, even if the call then reports an error. */
#define ENTER_LATE(function) enter(#function, args->struct_size, function##_Args_STRUCT_SIZE)
#define FUNCTION(function)   static PJRT_Error *fake_##function(function##_Args *args)
#define TEXT(args, field, text)                                                                                        \
    do {                                                                                                               \
        (args)->field = (text);                                                                                        \
        (args)->field##_size = strlen(text);                                                                           \
    } while (0)

/* Errors */

static void fake_PJRT_Error_Destroy(PJRT_Error_Destroy_Args *args)
{
    unmake(args->error);
}

static void fake_PJRT_Error_Message(PJRT_Error_Message_Args *args)
{
    args->message = args->error->message;
    args->message_size = strlen(args->error->message);
}

FUNCTION(PJRT_Error_GetCode)
{
    args->code = (PJRT_Error_Code)args->error->code;
    return NULL;
}

/* Plugin */

FUNCTION(PJRT_Plugin_Initialize)
{
    ENTER(PJRT_Plugin_Initialize);
    for (int i = 0; i < 3; i++) devices[i].memories[0] = &devices[i].memory;
    return NULL;
}

FUNCTION(PJRT_Plugin_Attributes)
{
    ENTER(PJRT_Plugin_Attributes);
    static const int64_t version[3] = {1, 2, 3};
    static PJRT_NamedValue attributes[2];
    attributes[0] = (PJRT_NamedValue){.struct_size = PJRT_NamedValue_STRUCT_SIZE,
                                      .name = "stablehlo_current_version",
                                      .name_size = strlen("stablehlo_current_version"),
                                      .type = PJRT_NamedValue_kInt64List,
                                      .int64_array_value = version,
                                      .value_size = 3};
    attributes[1] = (PJRT_NamedValue){.struct_size = PJRT_NamedValue_STRUCT_SIZE,
                                      .name = "of_the_future",
                                      .name_size = strlen("of_the_future"),
                                      .type = (PJRT_NamedValue_Type)99,
                                      .value_size = 1};
    args->attributes = attributes;
    args->num_attributes = 2;
    return NULL;
}

/* Events */

static PJRT_Event *make_event(void)
{
    if (control.lie == FAKE_NO_EVENT) return NULL;
    PJRT_Event *event = make(sizeof(*event));
    event->is_ready = !control.delays_events;
    if (control.delays_events) {
        event->next = waiting;
        waiting = event;
    }
    return event;
}

static PJRT_Error *event_error(void)
{
    return control.breaks_events ? make_error(PJRT_Error_Code_DATA_LOSS, "the work broke") : NULL;
}

static void release_events(void)
{
    while (waiting) {
        PJRT_Event *event = waiting;
        waiting = event->next;
        event->is_ready = true;
        if (event->callback) event->callback(event_error(), event->user);
        event->callback = NULL;
        if (event->is_destroyed) unmake(event);
    }
}

FUNCTION(PJRT_Event_Destroy)
{
    PJRT_Error *error = ENTER_LATE(PJRT_Event_Destroy);
    if (args->event->is_ready)
        unmake(args->event);
    else
        args->event->is_destroyed = true;
    return error;
}

FUNCTION(PJRT_Event_IsReady)
{
    ENTER(PJRT_Event_IsReady);
    args->is_ready = args->event->is_ready;
    return NULL;
}

FUNCTION(PJRT_Event_Await)
{
    ENTER(PJRT_Event_Await);
    if (!args->event->is_ready) release_events();
    return event_error();
}

FUNCTION(PJRT_Event_OnReady)
{
    ENTER(PJRT_Event_OnReady);
    args->event->callback = args->callback;
    args->event->user = args->user_arg;
    if (args->event->is_ready) {
        args->event->callback = NULL;
        args->callback(event_error(), args->user_arg);
    }
    return NULL;
}

/* Clients, devices, memories */

FUNCTION(PJRT_Client_Create)
{
    ENTER(PJRT_Client_Create);
    args->client = control.lie == FAKE_NO_CLIENT ? NULL : make(sizeof(PJRT_Client));
    return NULL;
}

FUNCTION(PJRT_Client_Destroy)
{
    PJRT_Error *error = ENTER_LATE(PJRT_Client_Destroy);
    unmake(args->client);
    return error;
}

FUNCTION(PJRT_Client_PlatformName)
{
    ENTER(PJRT_Client_PlatformName);
    TEXT(args, platform_name, "fake");
    return NULL;
}

FUNCTION(PJRT_Client_PlatformVersion)
{
    ENTER(PJRT_Client_PlatformVersion);
    TEXT(args, platform_version, "fake 1");
    return NULL;
}

FUNCTION(PJRT_Client_ProcessIndex)
{
    ENTER(PJRT_Client_ProcessIndex);
    args->process_index = 0;
    return NULL;
}

FUNCTION(PJRT_Client_Devices)
{
    ENTER(PJRT_Client_Devices);
    args->devices = device_list;
    args->num_devices = 2;
    return NULL;
}

FUNCTION(PJRT_Client_AddressableDevices)
{
    ENTER(PJRT_Client_AddressableDevices);
    args->addressable_devices = device_list;
    args->num_addressable_devices = control.lie == FAKE_NO_DEVICE ? 0 : control.lie == FAKE_FOREIGN_DEVICE ? 3 : 2;
    return NULL;
}

FUNCTION(PJRT_Client_AddressableMemories)
{
    ENTER(PJRT_Client_AddressableMemories);
    args->addressable_memories = memory_list;
    args->num_addressable_memories = 2;
    return NULL;
}

FUNCTION(PJRT_DeviceDescription_Id)
{
    ENTER(PJRT_DeviceDescription_Id);
    args->id = args->device_description->id;
    return NULL;
}

FUNCTION(PJRT_DeviceDescription_ProcessIndex)
{
    ENTER(PJRT_DeviceDescription_ProcessIndex);
    args->process_index = 0;
    return NULL;
}

FUNCTION(PJRT_DeviceDescription_Kind)
{
    ENTER(PJRT_DeviceDescription_Kind);
    TEXT(args, device_kind, "fake");
    return NULL;
}

FUNCTION(PJRT_DeviceDescription_ToString)
{
    ENTER(PJRT_DeviceDescription_ToString);
    TEXT(args, to_string, "FakeDevice");
    return NULL;
}

FUNCTION(PJRT_DeviceDescription_Attributes)
{
    ENTER(PJRT_DeviceDescription_Attributes);
    static int64_t coords[3][3];
    int id = args->device_description->id;
    coords[id][0] = control.lie == FAKE_SAME_PLACE ? 0 : control.lie == FAKE_NO_PLACE ? -1 : id;
    static PJRT_NamedValue attributes[3][2];
    attributes[id][0] = (PJRT_NamedValue){.struct_size = PJRT_NamedValue_STRUCT_SIZE,
                                          .name = "coords",
                                          .name_size = 6,
                                          .type = PJRT_NamedValue_kInt64List,
                                          .int64_array_value = coords[id],
                                          .value_size = 3};
    attributes[id][1] = (PJRT_NamedValue){.struct_size = PJRT_NamedValue_STRUCT_SIZE,
                                          .name = "core_on_chip",
                                          .name_size = 12,
                                          .type = PJRT_NamedValue_kInt64,
                                          .value_size = 1};
    args->attributes = attributes[id];
    args->num_attributes = 2;
    return NULL;
}

FUNCTION(PJRT_Device_GetDescription)
{
    ENTER(PJRT_Device_GetDescription);
    args->device_description = &args->device->description;
    return NULL;
}

FUNCTION(PJRT_Device_IsAddressable)
{
    ENTER(PJRT_Device_IsAddressable);
    args->is_addressable = true;
    return NULL;
}

FUNCTION(PJRT_Device_LocalHardwareId)
{
    ENTER(PJRT_Device_LocalHardwareId);
    args->local_hardware_id = args->device->description.id;
    return NULL;
}

FUNCTION(PJRT_Device_AddressableMemories)
{
    ENTER(PJRT_Device_AddressableMemories);
    args->memories = args->device->memories;
    args->num_memories = 1;
    return NULL;
}

FUNCTION(PJRT_Device_DefaultMemory)
{
    ENTER(PJRT_Device_DefaultMemory);
    args->memory = &args->device->memory;
    return NULL;
}

FUNCTION(PJRT_Device_MemoryStats)
{
    ENTER(PJRT_Device_MemoryStats);
    args->bytes_in_use = 1000;
    args->peak_bytes_in_use = 2000;
    args->peak_bytes_in_use_is_set = true;
    return NULL;
}

FUNCTION(PJRT_Memory_Id)
{
    ENTER(PJRT_Memory_Id);
    args->id = args->memory->id;
    return NULL;
}

FUNCTION(PJRT_Memory_Kind)
{
    ENTER(PJRT_Memory_Kind);
    TEXT(args, kind, "device");
    return NULL;
}

FUNCTION(PJRT_Memory_ToString)
{
    ENTER(PJRT_Memory_ToString);
    TEXT(args, to_string, "FakeMemory");
    return NULL;
}

/* Buffers: f32 and dense */

static PJRT_Buffer *make_buffer(const PJRT_Buffer *like, int device, const void *data)
{
    if (control.lie == FAKE_NO_BUFFER) return NULL;
    PJRT_Buffer *buffer = make(sizeof(*buffer));
    *buffer = *like;
    buffer->device = device;
    buffer->is_deleted = false;
    buffer->data = malloc(like->size + 1);
    if (!buffer->data) abort();
    memcpy(buffer->data, data, like->size);
    return buffer;
}

FUNCTION(PJRT_Client_BufferFromHostBuffer)
{
    ENTER(PJRT_Client_BufferFromHostBuffer);
    PJRT_Buffer like = {.type = args->type, .num_dims = args->num_dims, .size = sizeof(float)};
    for (size_t i = 0; i < args->num_dims; i++) like.size *= (size_t)(like.dims[i] = args->dims[i]);
    args->buffer = make_buffer(&like, args->device->description.id, args->data);
    args->done_with_host_buffer = make_event();
    return NULL;
}

FUNCTION(PJRT_Buffer_Destroy)
{
    PJRT_Error *error = ENTER_LATE(PJRT_Buffer_Destroy);
    free(args->buffer->data);
    unmake(args->buffer);
    return error;
}

FUNCTION(PJRT_Buffer_ElementType)
{
    ENTER(PJRT_Buffer_ElementType);
    args->type = control.lie == FAKE_UNKNOWN_TYPE ? (PJRT_Buffer_Type)300 : args->buffer->type;
    return NULL;
}

FUNCTION(PJRT_Buffer_Dimensions)
{
    ENTER(PJRT_Buffer_Dimensions);
    static const int64_t negative[2] = {3, -1}, overflowing[2] = {INT64_MAX / 2, 8};
    static int64_t many[200];
    args->dims = args->buffer->dims;
    args->num_dims = args->buffer->num_dims;
    if (control.lie == FAKE_HUGE_RANK) {
        args->dims = many;
        args->num_dims = 200;
    } else if (control.lie == FAKE_NEGATIVE_SIZE || control.lie == FAKE_OVERFLOWING_SIZE) {
        args->dims = control.lie == FAKE_NEGATIVE_SIZE ? negative : overflowing;
        args->num_dims = 2;
    }
    return NULL;
}

FUNCTION(PJRT_Buffer_OnDeviceSizeInBytes)
{
    ENTER(PJRT_Buffer_OnDeviceSizeInBytes);
    args->on_device_size_in_bytes = args->buffer->size;
    return NULL;
}

FUNCTION(PJRT_Buffer_Device)
{
    ENTER(PJRT_Buffer_Device);
    args->device = control.lie == FAKE_FOREIGN_DEVICE ? &devices[2] : &devices[args->buffer->device];
    return NULL;
}

FUNCTION(PJRT_Buffer_Memory)
{
    ENTER(PJRT_Buffer_Memory);
    args->memory = &devices[args->buffer->device].memory;
    return NULL;
}

FUNCTION(PJRT_Buffer_Delete)
{
    ENTER(PJRT_Buffer_Delete);
    args->buffer->is_deleted = true;
    return NULL;
}

FUNCTION(PJRT_Buffer_IsDeleted)
{
    ENTER(PJRT_Buffer_IsDeleted);
    args->is_deleted = args->buffer->is_deleted;
    return NULL;
}

FUNCTION(PJRT_Buffer_CopyToDevice)
{
    ENTER(PJRT_Buffer_CopyToDevice);
    args->dst_buffer = make_buffer(args->buffer, args->dst_device->description.id, args->buffer->data);
    return NULL;
}

FUNCTION(PJRT_Buffer_CopyToMemory)
{
    ENTER(PJRT_Buffer_CopyToMemory);
    args->dst_buffer = make_buffer(args->buffer, args->dst_memory->id, args->buffer->data);
    return NULL;
}

FUNCTION(PJRT_Buffer_ToHostBuffer)
{
    ENTER(PJRT_Buffer_ToHostBuffer);
    if (args->src->is_deleted) return make_error(PJRT_Error_Code_INVALID_ARGUMENT, "the buffer is deleted");
    if (args->dst_size < args->src->size) return make_error(PJRT_Error_Code_INVALID_ARGUMENT, "too small");
    memcpy(args->dst, args->src->data, args->src->size);
    args->event = make_event();
    return NULL;
}

FUNCTION(PJRT_Buffer_ReadyEvent)
{
    ENTER(PJRT_Buffer_ReadyEvent);
    args->event = make_event();
    return NULL;
}

/* Programs */

static PJRT_LoadedExecutable *make_loaded(void)
{
    if (control.lie == FAKE_NO_EXECUTABLE) return NULL;
    PJRT_LoadedExecutable *loaded = make(sizeof(*loaded));
    return loaded;
}

FUNCTION(PJRT_Client_Compile)
{
    ENTER(PJRT_Client_Compile);
    args->executable = make_loaded();
    return NULL;
}

FUNCTION(PJRT_LoadedExecutable_GetExecutable)
{
    ENTER(PJRT_LoadedExecutable_GetExecutable);
    args->executable = make(sizeof(PJRT_Executable));
    return NULL;
}

FUNCTION(PJRT_Executable_Destroy)
{
    PJRT_Error *error = ENTER_LATE(PJRT_Executable_Destroy);
    unmake(args->executable);
    return error;
}

FUNCTION(PJRT_LoadedExecutable_Destroy)
{
    PJRT_Error *error = ENTER_LATE(PJRT_LoadedExecutable_Destroy);
    unmake(args->executable);
    return error;
}

FUNCTION(PJRT_LoadedExecutable_AddressableDevices)
{
    ENTER(PJRT_LoadedExecutable_AddressableDevices);
    args->addressable_devices = device_list;
    args->num_addressable_devices = 2;
    return NULL;
}

FUNCTION(PJRT_Executable_NumOutputs)
{
    ENTER(PJRT_Executable_NumOutputs);
    args->num_outputs = 2;
    return NULL;
}

FUNCTION(PJRT_Executable_OutputElementTypes)
{
    ENTER(PJRT_Executable_OutputElementTypes);
    static PJRT_Buffer_Type types[2] = {PJRT_Buffer_Type_F32, PJRT_Buffer_Type_F32};
    args->output_types = types;
    args->num_output_types = control.lie == FAKE_OUTPUT_COUNT ? 1 : 2;
    return NULL;
}

FUNCTION(PJRT_Executable_OutputDimensions)
{
    ENTER(PJRT_Executable_OutputDimensions);
    static const int64_t dims[3] = {2, 3, 6};
    static const size_t dim_sizes[2] = {2, 1}, huge_sizes[2] = {200, 1};
    args->num_outputs = 2;
    args->dims = dims;
    args->dim_sizes = control.lie == FAKE_HUGE_RANK ? huge_sizes : dim_sizes;
    return NULL;
}

FUNCTION(PJRT_Executable_GetCompiledMemoryStats)
{
    ENTER(PJRT_Executable_GetCompiledMemoryStats);
    args->argument_size_in_bytes = 24;
    args->output_size_in_bytes = 48;
    return NULL;
}

FUNCTION(PJRT_Executable_GetCostAnalysis)
{
    ENTER(PJRT_Executable_GetCostAnalysis);
    static PJRT_NamedValue properties[2];
    properties[0] = (PJRT_NamedValue){.struct_size = PJRT_NamedValue_STRUCT_SIZE,
                                      .name = "flops",
                                      .name_size = 5,
                                      .type = PJRT_NamedValue_kFloat,
                                      .float_value = 42.0f,
                                      .value_size = 1};
    properties[1] = properties[0];
    properties[1].name = "bytes accessed";
    properties[1].name_size = strlen("bytes accessed");
    properties[1].float_value = -1.0f;
    args->properties = properties;
    args->num_properties = 2;
    return NULL;
}

FUNCTION(PJRT_Executable_OptimizedProgram)
{
    ENTER(PJRT_Executable_OptimizedProgram);
    static const char noise[] = "\xff\xfe not a program";
    args->program->format = "hlo_with_config";
    args->program->format_size = strlen("hlo_with_config");
    size_t size = control.lie == FAKE_NOT_A_PROGRAM ? sizeof(noise) : 0;
    if (args->program->code && size) memcpy(args->program->code, noise, size);
    if (args->program->code && control.lie == FAKE_GROWING_PROGRAM) size += 4096;
    args->program->code_size = size;
    return NULL;
}

static void delete_serialized(PJRT_SerializedExecutable *serialized)
{
    unmake(serialized);
}

FUNCTION(PJRT_Executable_Serialize)
{
    ENTER(PJRT_Executable_Serialize);
    if (control.lie == FAKE_NO_SERIAL) return make_error(PJRT_Error_Code_UNIMPLEMENTED, "no serialization");
    char *bytes = make(16);
    memcpy(bytes, "a fake program.", 16);
    args->serialized_bytes = bytes;
    args->serialized_bytes_size = control.lie == FAKE_EMPTY_SERIAL ? 0 : 16;
    args->serialized_executable = (PJRT_SerializedExecutable *)bytes;
    args->serialized_executable_deleter = delete_serialized;
    return NULL;
}

FUNCTION(PJRT_Executable_DeserializeAndLoad)
{
    ENTER(PJRT_Executable_DeserializeAndLoad);
    if (control.lie == FAKE_BAD_SERIAL || args->serialized_executable_size != 16 ||
        memcmp(args->serialized_executable, "a fake program.", 16))
        return make_error(PJRT_Error_Code_INVALID_ARGUMENT, "this is no program of mine");
    args->loaded_executable = make_loaded();
    return NULL;
}

FUNCTION(PJRT_LoadedExecutable_Execute)
{
    ENTER(PJRT_LoadedExecutable_Execute);
    if (!args->num_args) return make_error(PJRT_Error_Code_INVALID_ARGUMENT, "no argument");
    for (size_t d = 0; d < args->num_devices; d++) {
        const PJRT_Buffer *from = args->argument_lists[d][0];
        args->output_lists[d][0] = make_buffer(from, (int)d, from->data);
        args->output_lists[d][1] = control.lie == FAKE_NO_OUTPUT ? NULL : make_buffer(from, (int)d, from->data);
        if (args->device_complete_events) args->device_complete_events[d] = make_event();
    }
    control.num_donated += (int)((args->num_args - args->options->num_non_donatable_input_indices) * args->num_devices);
    return NULL;
}

/* Topologies */

FUNCTION(PJRT_TopologyDescription_Create)
{
    ENTER(PJRT_TopologyDescription_Create);
    args->topology = control.lie == FAKE_NO_TOPOLOGY ? NULL : make(sizeof(PJRT_TopologyDescription));
    return NULL;
}

FUNCTION(PJRT_TopologyDescription_Destroy)
{
    PJRT_Error *error = ENTER_LATE(PJRT_TopologyDescription_Destroy);
    unmake(args->topology);
    return error;
}

FUNCTION(PJRT_TopologyDescription_PlatformName)
{
    ENTER(PJRT_TopologyDescription_PlatformName);
    TEXT(args, platform_name, "fake");
    return NULL;
}

FUNCTION(PJRT_TopologyDescription_PlatformVersion)
{
    ENTER(PJRT_TopologyDescription_PlatformVersion);
    TEXT(args, platform_version, "fake 1");
    return NULL;
}

FUNCTION(PJRT_TopologyDescription_GetDeviceDescriptions)
{
    ENTER(PJRT_TopologyDescription_GetDeviceDescriptions);
    args->descriptions = description_list;
    args->num_descriptions = 2;
    return NULL;
}

FUNCTION(PJRT_Compile)
{
    ENTER(PJRT_Compile);
    args->executable = control.lie == FAKE_NO_EXECUTABLE ? NULL : make(sizeof(PJRT_Executable));
    return NULL;
}

#define SET(function) .function = fake_##function

static PJRT_Api full_table(void)
{
    return (PJRT_Api){
        .struct_size = PJRT_Api_STRUCT_SIZE,
        .pjrt_api_version = {.struct_size = PJRT_Api_Version_STRUCT_SIZE, .major_version = 0, .minor_version = 81},
        SET(PJRT_Error_Destroy),
        SET(PJRT_Error_Message),
        SET(PJRT_Error_GetCode),
        SET(PJRT_Plugin_Initialize),
        SET(PJRT_Plugin_Attributes),
        SET(PJRT_Event_Destroy),
        SET(PJRT_Event_IsReady),
        SET(PJRT_Event_Await),
        SET(PJRT_Event_OnReady),
        SET(PJRT_Client_Create),
        SET(PJRT_Client_Destroy),
        SET(PJRT_Client_PlatformName),
        SET(PJRT_Client_PlatformVersion),
        SET(PJRT_Client_ProcessIndex),
        SET(PJRT_Client_Devices),
        SET(PJRT_Client_AddressableDevices),
        SET(PJRT_Client_AddressableMemories),
        SET(PJRT_DeviceDescription_Id),
        SET(PJRT_DeviceDescription_ProcessIndex),
        SET(PJRT_DeviceDescription_Kind),
        SET(PJRT_DeviceDescription_ToString),
        SET(PJRT_DeviceDescription_Attributes),
        SET(PJRT_Device_GetDescription),
        SET(PJRT_Device_IsAddressable),
        SET(PJRT_Device_LocalHardwareId),
        SET(PJRT_Device_AddressableMemories),
        SET(PJRT_Device_DefaultMemory),
        SET(PJRT_Device_MemoryStats),
        SET(PJRT_Memory_Id),
        SET(PJRT_Memory_Kind),
        SET(PJRT_Memory_ToString),
        SET(PJRT_Client_BufferFromHostBuffer),
        SET(PJRT_Buffer_Destroy),
        SET(PJRT_Buffer_ElementType),
        SET(PJRT_Buffer_Dimensions),
        SET(PJRT_Buffer_OnDeviceSizeInBytes),
        SET(PJRT_Buffer_Device),
        SET(PJRT_Buffer_Memory),
        SET(PJRT_Buffer_Delete),
        SET(PJRT_Buffer_IsDeleted),
        SET(PJRT_Buffer_CopyToDevice),
        SET(PJRT_Buffer_CopyToMemory),
        SET(PJRT_Buffer_ToHostBuffer),
        SET(PJRT_Buffer_ReadyEvent),
        SET(PJRT_Client_Compile),
        SET(PJRT_LoadedExecutable_GetExecutable),
        SET(PJRT_Executable_Destroy),
        SET(PJRT_LoadedExecutable_Destroy),
        SET(PJRT_LoadedExecutable_AddressableDevices),
        SET(PJRT_Executable_NumOutputs),
        SET(PJRT_Executable_OutputElementTypes),
        SET(PJRT_Executable_OutputDimensions),
        SET(PJRT_Executable_GetCompiledMemoryStats),
        SET(PJRT_Executable_GetCostAnalysis),
        SET(PJRT_Executable_OptimizedProgram),
        SET(PJRT_Executable_Serialize),
        SET(PJRT_Executable_DeserializeAndLoad),
        SET(PJRT_LoadedExecutable_Execute),
        SET(PJRT_TopologyDescription_Create),
        SET(PJRT_TopologyDescription_Destroy),
        SET(PJRT_TopologyDescription_PlatformName),
        SET(PJRT_TopologyDescription_PlatformVersion),
        SET(PJRT_TopologyDescription_GetDeviceDescriptions),
        SET(PJRT_Compile),
    };
}

const PJRT_Api *GetPjrtApi(void);
const PJRT_Api *GetPjrtApi(void)
{
    static PJRT_Api table;
    table = full_table();
    table.extension_start = (PJRT_Extension_Base *)fake_profiler_extension(&control.num_live);
    const char *kind = getenv("FAKE_PLUGIN_TABLE");
    if (!kind) return &table;
    if (!strcmp(kind, "null")) return NULL;
    if (!strcmp(kind, "tiny")) table.struct_size = 16;
    if (!strcmp(kind, "major")) table.pjrt_api_version.major_version = 1;
    if (!strcmp(kind, "short")) table.struct_size = offsetof(PJRT_Api, PJRT_Client_Compile);
    if (!strcmp(kind, "mute")) table.PJRT_Error_Message = NULL;
    if (!strcmp(kind, "old") || !strcmp(kind, "bare")) {
        table.struct_size = offsetof(PJRT_Api, PJRT_Compile) + sizeof(table.PJRT_Compile);
        table.pjrt_api_version.minor_version = 20;
    }
    if (!strcmp(kind, "bare")) {
        table.PJRT_Plugin_Attributes = NULL;
        table.PJRT_Device_MemoryStats = NULL;
        table.PJRT_Executable_Serialize = NULL;
        table.PJRT_TopologyDescription_Create = NULL;
    }
    return &table;
}
