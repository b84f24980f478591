/* ctitan devices: what the plugin is and which devices and memories it has. */
#include <stdio.h>
#include <string.h>

#include "cli/args.h"
#include "cli/environment.h"
#include "cli/verb.h"
#include "pjrt/client.h"

static void print_plugin(const ct_plugin *plugin, ct_arena *arena)
{
    int major, minor;
    ct_plugin_api_version(plugin, &major, &minor);
    printf("plugin      %s\n", ct_plugin_path(plugin));
    printf("PJRT API    %d.%d\n", major, minor);
    size_t num_attributes;
    const ct_named_value *attributes = ct_plugin_attributes(plugin, &num_attributes);
    for (size_t i = 0; i < num_attributes; i++) {
        static const struct {
            const char *name, *shown;
        } known[] = {
            {"stablehlo_current_version", "StableHLO"},
            {"stablehlo_minimum_version", "  back to"},
        };
        for (size_t j = 0; j < CT_COUNT(known); j++)
            if (!strcmp(attributes[i].name, known[j].name))
                printf("%-11s %s\n", known[j].shown, ct_named_value_text(arena, &attributes[i]));
    }
}

static ct_status *print_bytes(const ct_device *device)
{
    ct_memory_stats stats;
    CT_TRY(ct_device_memory_stats(device, &stats));
    if (stats.bytes_in_use < 0) {
        printf("; its plugin keeps no memory statistics\n");
        return NULL;
    }
    double mib = 1.0 / (1 << 20);
    printf("; %.1f MiB in use", (double)stats.bytes_in_use * mib);
    if (stats.peak_bytes_in_use >= 0) printf(", peak %.1f", (double)stats.peak_bytes_in_use * mib);
    if (stats.bytes_limit >= 0) printf(", limit %.1f", (double)stats.bytes_limit * mib);
    printf("\n");
    return NULL;
}

static ct_status *print_client(const ct_client *client)
{
    printf("platform    %s (%s)\n", ct_client_platform_name(client), ct_client_platform_version(client));
    printf("devices     %zu, of which %zu belong to this process (%d)\n", ct_client_num_devices(client),
           ct_client_num_addressable_devices(client), ct_client_process_index(client));
    for (size_t i = 0; i < ct_client_num_devices(client); i++) {
        const ct_device *device = ct_client_device(client, i);
        printf("  %-3d %s, kind \"%s\"", ct_device_id(device), ct_device_text(device), ct_device_kind(device));
        if (!ct_device_is_addressable(device)) {
            printf("; of process %d\n", ct_device_process_index(device));
            continue;
        }
        const ct_memory *memory = ct_device_default_memory(device);
        if (memory) printf(", memory %d \"%s\"", ct_memory_id(memory), ct_memory_kind(memory));
        CT_TRY(print_bytes(device));
    }
    printf("memories    %zu\n", ct_client_num_memories(client));
    for (size_t i = 0; i < ct_client_num_memories(client); i++) {
        const ct_memory *memory = ct_client_memory(client, i);
        printf("  %-3d %s, kind \"%s\"\n", ct_memory_id(memory), ct_memory_text(memory), ct_memory_kind(memory));
    }
    return NULL;
}

int ct_verb_devices(int argc, char **argv)
{
    const char *platform = NULL, *path = NULL;
    int64_t count = 0;
    const ct_flag flags[] = {
        {"platform", CT_FLAG_TEXT, &platform, "NAME  cpu (default), cuda, tpu, or the path of a plugin"},
        {"plugin", CT_FLAG_TEXT, &path, "PATH  the plugin's library; CTITAN_PLUGIN_PATH names it, too"},
        {"device.platform", CT_FLAG_TEXT, &platform, "NAME  the same as --platform"},
        {"device.plugin_path", CT_FLAG_TEXT, &path, "PATH  the same as --plugin"},
        {"device.count", CT_FLAG_INT, &count, "N  virtual devices of the CPU plugin"},
    };
    ct_args args = {.usage = "ctitan devices [--platform=NAME] [--plugin=PATH] [--device.count=N]",
                    .about = "Shows the plugin, its versions, and its devices and memories.",
                    .flags = flags,
                    .num_flags = CT_COUNT(flags)};
    ct_arena arena;
    ct_arena_init(&arena);
    ct_client *client = NULL;
    int code = CT_EXIT_OK;
    ct_status *status = ct_args_parse(&args, argc, argv);
    if (!status && (count < 0 || count > 65536))
        status =
            ct_error(CT_CODE_INVALID_ARGUMENT, "--device.count must be from 1 to 65536, found %lld", (long long)count);
    if (status) {
        ct_verb_fail("devices", status);
        code = CT_EXIT_USAGE;
        goto out;
    }
    if (args.wants_help) goto out;
    ct_plugin *plugin;
    ct_plugin_opts opts = ct_environment_plugin_opts(&arena, platform, path);
    CT_TRY_OUT(ct_plugin_load(&opts, &plugin));
    print_plugin(plugin, &arena);
    CT_TRY_OUT(ct_client_new(plugin, &(ct_client_opts){.device_count = (int)count}, &client));
    CT_TRY_OUT(print_client(client));
out:
    if (code == CT_EXIT_OK) code = ct_verb_fail("devices", status);
    ct_client_free(client);
    ct_args_deinit(&args);
    ct_arena_deinit(&arena);
    return code;
}
