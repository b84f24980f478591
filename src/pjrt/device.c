/* Devices: what does not change is read once, when the client is made. */
#include "pjrt/device.h"

#include <string.h>

#include "base/str.h"
#include "pjrt/internal.h"

/* TPUs have the attributes coords (x, y, z), core_on_chip and, with several slices, slice_index; other devices have
 * none. */
static ct_status *read_coords(ct_plugin *plugin, PJRT_DeviceDescription *description, ct_device *out_device)
{
    if (!CT__PJRT_HAS(plugin, PJRT_DeviceDescription_Attributes)) return NULL;
    PJRT_DeviceDescription_Attributes_Args args = {CT_PJRT_ARGS(PJRT_DeviceDescription_Attributes),
                                                   .device_description = description};
    CT_TRY(CT_PJRT(plugin, PJRT_DeviceDescription_Attributes, &args));
    for (size_t i = 0; i < args.num_attributes; i++) {
        const PJRT_NamedValue *value = &args.attributes[i];
        if (value->type == PJRT_NamedValue_kInt64List && value->name_size == strlen("coords") &&
            !memcmp(value->name, "coords", value->name_size)) {
            out_device->has_coords = true;
            for (size_t j = 0; j < value->value_size && j < 3; j++) out_device->coords[j] = value->int64_array_value[j];
        }
        if (value->type == PJRT_NamedValue_kInt64 && value->name_size == strlen("core_on_chip") &&
            !memcmp(value->name, "core_on_chip", value->name_size))
            out_device->coords[3] = value->int64_value;
        if (value->type == PJRT_NamedValue_kInt64 && value->name_size == strlen("slice_index") &&
            !memcmp(value->name, "slice_index", value->name_size))
            out_device->slice = value->int64_value;
    }
    if (out_device->slice < 0 || out_device->slice > 65535)
        return ct_error(CT_CODE_INTERNAL, "the device %s has the slice %lld", out_device->text,
                        (long long)out_device->slice);
    for (int j = 0; j < 4; j++)
        if (out_device->coords[j] < 0 || out_device->coords[j] > 65535)
            return ct_error(CT_CODE_INTERNAL, "the device %s has the coordinate %lld", out_device->text,
                            (long long)out_device->coords[j]);
    return NULL;
}

ct_status *ct__device_describe(ct_plugin *plugin, ct_arena *arena, PJRT_DeviceDescription *description,
                               ct_device *out_device)
{
    PJRT_DeviceDescription_Id_Args id = {CT_PJRT_ARGS(PJRT_DeviceDescription_Id), .device_description = description};
    PJRT_DeviceDescription_ProcessIndex_Args process = {CT_PJRT_ARGS(PJRT_DeviceDescription_ProcessIndex),
                                                        .device_description = description};
    PJRT_DeviceDescription_Kind_Args kind = {CT_PJRT_ARGS(PJRT_DeviceDescription_Kind),
                                             .device_description = description};
    PJRT_DeviceDescription_ToString_Args text = {CT_PJRT_ARGS(PJRT_DeviceDescription_ToString),
                                                 .device_description = description};
    CT_TRY(CT_PJRT(plugin, PJRT_DeviceDescription_Id, &id));
    CT_TRY(CT_PJRT(plugin, PJRT_DeviceDescription_ProcessIndex, &process));
    CT_TRY(CT_PJRT(plugin, PJRT_DeviceDescription_Kind, &kind));
    CT_TRY(CT_PJRT(plugin, PJRT_DeviceDescription_ToString, &text));
    out_device->id = id.id;
    out_device->process_index = process.process_index;
    out_device->kind = ct_arena_strndup(arena, kind.device_kind, kind.device_kind_size);
    out_device->text = ct_arena_strndup(arena, text.to_string, text.to_string_size);
    return read_coords(plugin, description, out_device);
}

ct_status *ct__device_init(ct_client *client, PJRT_Device *device, ct_device *out_device)
{
    ct_plugin *plugin = client->plugin;
    *out_device = (ct_device){.client = client, .device = device, .local_id = -1};
    PJRT_Device_GetDescription_Args description = {CT_PJRT_ARGS(PJRT_Device_GetDescription), .device = device};
    PJRT_Device_IsAddressable_Args addressable = {CT_PJRT_ARGS(PJRT_Device_IsAddressable), .device = device};
    CT_TRY(CT_PJRT(plugin, PJRT_Device_GetDescription, &description));
    CT_TRY(CT_PJRT(plugin, PJRT_Device_IsAddressable, &addressable));
    CT_TRY(ct__device_describe(plugin, &client->arena, description.device_description, out_device));
    out_device->is_addressable = addressable.is_addressable;
    if (!addressable.is_addressable) return NULL;
    PJRT_Device_LocalHardwareId_Args local = {CT_PJRT_ARGS(PJRT_Device_LocalHardwareId), .device = device};
    CT_TRY(CT_PJRT(plugin, PJRT_Device_LocalHardwareId, &local));
    out_device->local_id = local.local_hardware_id;
    PJRT_Device_DefaultMemory_Args memory = {CT_PJRT_ARGS(PJRT_Device_DefaultMemory), .device = device};
    CT_TRY(CT_PJRT(plugin, PJRT_Device_DefaultMemory, &memory));
    out_device->default_memory = ct__client_memory(client, memory.memory);
    return NULL;
}

ct_client *ct_device_client(const ct_device *device)
{
    return device->client;
}

int ct_device_id(const ct_device *device)
{
    return device->id;
}

int ct_device_process_index(const ct_device *device)
{
    return device->process_index;
}

int ct_device_local_id(const ct_device *device)
{
    return device->local_id;
}

bool ct_device_is_addressable(const ct_device *device)
{
    return device->is_addressable;
}

const char *ct_device_kind(const ct_device *device)
{
    return device->kind;
}

const char *ct_device_text(const ct_device *device)
{
    return device->text;
}

const ct_memory *ct_device_default_memory(const ct_device *device)
{
    return device->default_memory;
}

ct_status *ct_device_memory(const ct_device *device, const char *kind, const ct_memory **out_memory)
{
    *out_memory = NULL;
    PJRT_Device_AddressableMemories_Args args = {CT_PJRT_ARGS(PJRT_Device_AddressableMemories),
                                                 .device = device->device};
    CT_TRY(CT_PJRT(device->client->plugin, PJRT_Device_AddressableMemories, &args));
    ct_str kinds;
    ct_str_init(&kinds);
    for (size_t i = 0; i < args.num_memories && !*out_memory; i++) {
        const ct_memory *memory = ct__client_memory(device->client, args.memories[i]);
        if (!memory) continue;
        if (!strcmp(memory->kind, kind)) *out_memory = memory;
        ct_str_printf(&kinds, "%s%s", kinds.length ? ", " : "", memory->kind);
    }
    ct_status *status = NULL;
    if (!*out_memory)
        status = ct_error(CT_CODE_NOT_FOUND, "device %s has no memory of kind \"%s\"; it has %s", device->text, kind,
                          kinds.length ? kinds.data : "none");
    ct_str_deinit(&kinds);
    return status;
}

ct_status *ct_device_memory_stats(const ct_device *device, ct_memory_stats *out_stats)
{
    *out_stats = (ct_memory_stats){-1, -1, -1, -1, -1};
    PJRT_Device_MemoryStats_Args args = {CT_PJRT_ARGS(PJRT_Device_MemoryStats), .device = device->device};
    ct_status *status = CT_PJRT(device->client->plugin, PJRT_Device_MemoryStats, &args);
    if (ct_status_code(status) == CT_CODE_UNIMPLEMENTED) {
        ct_status_free(status);
        return NULL;
    }
    if (status) return status;
    out_stats->bytes_in_use = args.bytes_in_use;
    if (args.peak_bytes_in_use_is_set) out_stats->peak_bytes_in_use = args.peak_bytes_in_use;
    if (args.bytes_limit_is_set) out_stats->bytes_limit = args.bytes_limit;
    if (args.num_allocs_is_set) out_stats->num_allocs = args.num_allocs;
    if (args.largest_alloc_size_is_set) out_stats->largest_alloc_bytes = args.largest_alloc_size;
    return NULL;
}
