#include "train/provenance.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "formats/json.h"

static void put_text(ct_json_writer *writer, const char *key, const char *text)
{
    if (text && text[0])
        ct_json_put_string(writer, key, text);
    else
        ct_json_put_null(writer, key);
}

static void put_time(ct_json_writer *writer, const char *key, time_t when)
{
    struct tm utc;
    char text[32];
    gmtime_r(&when, &utc);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
    ct_json_put_string(writer, key, text);
}

static void put_program(ct_json_writer *writer, const ct_provenance *provenance)
{
    put_text(writer, "version", provenance->version);
    put_text(writer, "commit", provenance->commit);
    ct_json_begin_array(writer, "command");
    for (size_t i = 0; i < provenance->num_command; i++) ct_json_put_string(writer, NULL, provenance->command[i]);
    ct_json_end(writer);
    char *folder = getcwd(NULL, 0);
    put_text(writer, "working_directory", folder);
    free(folder);
    put_time(writer, "started", time(NULL));
}

static void put_host(ct_json_writer *writer)
{
    struct utsname names;
    if (uname(&names)) memset(&names, 0, sizeof(names));
    ct_json_begin_object(writer, "host");
    put_text(writer, "name", names.nodename);
    put_text(writer, "system", names.sysname);
    put_text(writer, "release", names.release);
    put_text(writer, "machine", names.machine);
    ct_json_put_int(writer, "num_cpus", sysconf(_SC_NPROCESSORS_ONLN));
    ct_json_put_int(writer, "memory_bytes", sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
    ct_json_end(writer);
}

static void put_plugin(ct_json_writer *writer, const ct_session_opts *opts, const ct_session *session)
{
    ct_arena arena;
    ct_arena_init(&arena);
    int major, minor;
    ct_plugin_api_version(session->plugin, &major, &minor);
    ct_json_begin_object(writer, "plugin");
    put_text(writer, "path", ct_plugin_path(session->plugin));
    put_text(writer, "build", ct_plugin_build(session->plugin));
    ct_json_put_string(writer, "api_version", ct_arena_printf(&arena, "%d.%d", major, minor));
    put_text(writer, "platform", ct_client_platform_name(session->client));
    put_text(writer, "platform_version", ct_client_platform_version(session->client));
    ct_json_begin_object(writer, "attributes");
    size_t num_attributes;
    const ct_named_value *attributes = ct_plugin_attributes(session->plugin, &num_attributes);
    for (size_t i = 0; i < num_attributes; i++)
        ct_json_put_string(writer, attributes[i].name, ct_named_value_text(&arena, &attributes[i]));
    ct_json_end(writer);
    put_text(writer, "XLA_FLAGS", opts->plugin.xla_flags);
    put_text(writer, "LIBTPU_INIT_ARGS", opts->plugin.libtpu_init_args);
    ct_json_end(writer);
    ct_arena_deinit(&arena);
}

ct_status *ct_provenance_write(const char *folder, const ct_provenance *provenance, const ct_session_opts *opts,
                               const ct_session *session)
{
    ct_json_writer *writer = ct_json_writer_new();
    ct_json_begin_object(writer, NULL);
    put_program(writer, provenance);
    put_host(writer);
    put_plugin(writer, opts, session);
    ct_json_begin_object(writer, "devices");
    put_text(writer, "kind", ct_device_kind(ct_session_device(session, 0)));
    ct_json_put_int(writer, "count", session->num_devices);
    ct_json_end(writer);
    ct_json_end(writer);
    char *text = ct_json_writer_text(writer, true), *path = ct_path_join(folder, "environment.json");
    ct_status *status = ct_file_write(path, text, strlen(text));
    free(path);
    free(text);
    ct_json_writer_free(writer);
    return status;
}
