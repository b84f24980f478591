/* Clients: everything that does not change is read once into the client's arena. */
#include "pjrt/client.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "pjrt/internal.h"

static ct_status *read_names(ct_client *client)
{
    ct_plugin *plugin = client->plugin;
    PJRT_Client_PlatformName_Args name = {CT_PJRT_ARGS(PJRT_Client_PlatformName), .client = client->client};
    PJRT_Client_PlatformVersion_Args version = {CT_PJRT_ARGS(PJRT_Client_PlatformVersion), .client = client->client};
    PJRT_Client_ProcessIndex_Args process = {CT_PJRT_ARGS(PJRT_Client_ProcessIndex), .client = client->client};
    CT_TRY(CT_PJRT(plugin, PJRT_Client_PlatformName, &name));
    CT_TRY(CT_PJRT(plugin, PJRT_Client_PlatformVersion, &version));
    CT_TRY(CT_PJRT(plugin, PJRT_Client_ProcessIndex, &process));
    client->platform_name = ct_arena_strndup(&client->arena, name.platform_name, name.platform_name_size);
    client->platform_version =
        ct_arena_strndup(&client->arena, version.platform_version, version.platform_version_size);
    client->process_index = process.process_index;
    return NULL;
}

static ct_status *read_memories(ct_client *client)
{
    PJRT_Client_AddressableMemories_Args args = {CT_PJRT_ARGS(PJRT_Client_AddressableMemories),
                                                 .client = client->client};
    CT_TRY(CT_PJRT(client->plugin, PJRT_Client_AddressableMemories, &args));
    client->memories = CT_ARENA_ARRAY(&client->arena, ct_memory, args.num_addressable_memories);
    for (size_t i = 0; i < args.num_addressable_memories; i++)
        CT_TRY(ct__memory_init(client, args.addressable_memories[i], &client->memories[i]));
    client->num_memories = args.num_addressable_memories;
    return NULL;
}

static ct_status *read_devices(ct_client *client)
{
    PJRT_Client_Devices_Args all = {CT_PJRT_ARGS(PJRT_Client_Devices), .client = client->client};
    PJRT_Client_AddressableDevices_Args own = {CT_PJRT_ARGS(PJRT_Client_AddressableDevices), .client = client->client};
    CT_TRY(CT_PJRT(client->plugin, PJRT_Client_Devices, &all));
    CT_TRY(CT_PJRT(client->plugin, PJRT_Client_AddressableDevices, &own));
    client->devices = CT_ARENA_ARRAY(&client->arena, ct_device, all.num_devices);
    for (size_t i = 0; i < all.num_devices; i++) CT_TRY(ct__device_init(client, all.devices[i], &client->devices[i]));
    client->num_devices = all.num_devices;
    client->addressable_devices = CT_ARENA_ARRAY(&client->arena, ct_device *, own.num_addressable_devices);
    for (size_t i = 0; i < own.num_addressable_devices; i++) {
        ct_device *device = ct__client_device(client, own.addressable_devices[i]);
        if (!device)
            return ct_error(CT_CODE_INTERNAL, "addressable device %zu of the plugin %s is not among its devices", i,
                            client->plugin->path);
        client->addressable_devices[i] = device;
    }
    client->num_addressable_devices = own.num_addressable_devices;
    if (!client->num_addressable_devices)
        return ct_error(CT_CODE_UNAVAILABLE, "the plugin %s has no device for this process", client->plugin->path);
    return NULL;
}

ct_status *ct_client_new(ct_plugin *plugin, const ct_client_opts *opts, ct_client **out_client)
{
    *out_client = NULL;
    static const ct_client_opts defaults = {0};
    if (!opts) opts = &defaults;
    if (opts->device_count < 0)
        return ct_error(CT_CODE_INVALID_ARGUMENT, "the number of devices must be positive, found %d",
                        opts->device_count);
    ct_client *client = ct_alloc_zeroed(1, sizeof(*client));
    client->plugin = plugin;
    ct_arena_init(&client->arena);
    ct_status *status = NULL;

    PJRT_NamedValue *values = ct_alloc_zeroed(opts->num_options + 1, sizeof(*values));
    size_t num_values = 0;
    for (size_t i = 0; i < opts->num_options; i++) values[num_values++] = ct__value_to_pjrt(&opts->options[i]);
    if (opts->device_count)
        values[num_values++] = ct__value_to_pjrt(
            &(ct_named_value){.name = "cpu_device_count", .type = CT_VALUE_INT, .integer = opts->device_count});

    PJRT_Client_Create_Args args = {CT_PJRT_ARGS(PJRT_Client_Create), .create_options = values,
                                    .num_options = num_values};
    status = CT_PJRT(plugin, PJRT_Client_Create, &args);
    free(values);
    if (!status && !args.client) status = ct_error(CT_CODE_INTERNAL, "the plugin %s made no client", plugin->path);
    client->client = args.client;
    if (!status) status = read_names(client);
    if (!status) status = read_memories(client);
    if (!status) status = read_devices(client);
    if (status) {
        ct_client_free(client);
        return ct_status_note(status, "opening the devices of %s", plugin->path);
    }
    *out_client = client;
    return NULL;
}

void ct_client_free(ct_client *client)
{
    if (!client) return;
    size_t num_children = atomic_load(&client->num_children);
    if (num_children) CT_BUG("a client is freed before %zu of its buffers and executables", num_children);
    if (client->client) {
        PJRT_Client_Destroy_Args args = {CT_PJRT_ARGS(PJRT_Client_Destroy), .client = client->client};
        CT_PJRT_IGNORE(client->plugin, PJRT_Client_Destroy, &args);
    }
    ct_arena_deinit(&client->arena);
    free(client);
}

ct_plugin *ct_client_plugin(const ct_client *client)
{
    return client->plugin;
}

const char *ct_client_platform_name(const ct_client *client)
{
    return client->platform_name;
}

const char *ct_client_platform_version(const ct_client *client)
{
    return client->platform_version;
}

int ct_client_process_index(const ct_client *client)
{
    return client->process_index;
}

size_t ct_client_num_devices(const ct_client *client)
{
    return client->num_devices;
}

ct_device *ct_client_device(const ct_client *client, size_t index)
{
    CT_ASSERT(index < client->num_devices);
    return &client->devices[index];
}

size_t ct_client_num_addressable_devices(const ct_client *client)
{
    return client->num_addressable_devices;
}

ct_device *ct_client_addressable_device(const ct_client *client, size_t index)
{
    CT_ASSERT(index < client->num_addressable_devices);
    return client->addressable_devices[index];
}

size_t ct_client_num_memories(const ct_client *client)
{
    return client->num_memories;
}

const ct_memory *ct_client_memory(const ct_client *client, size_t index)
{
    CT_ASSERT(index < client->num_memories);
    return &client->memories[index];
}

const ct_memory *ct__client_memory(const ct_client *client, const PJRT_Memory *memory)
{
    for (size_t i = 0; i < client->num_memories; i++)
        if (client->memories[i].memory == memory) return &client->memories[i];
    return NULL;
}

ct_device *ct__client_device(const ct_client *client, const PJRT_Device *device)
{
    for (size_t i = 0; i < client->num_devices; i++)
        if (client->devices[i].device == device) return &client->devices[i];
    return NULL;
}
