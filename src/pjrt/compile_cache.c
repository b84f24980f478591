/* The compilation cache: keys, entries, and the rule that a bad entry costs time, never correctness. */
#include "pjrt/compile_cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "pjrt/internal.h"

static const char magic[8] = "CTEXEC1\n";
enum { KEY_AT = 8, SIZE_AT = 24, CHECKSUM_AT = 32, HEADER_BYTES = 48 };

static void update_part(XXH3_state_t *state, const void *bytes, size_t size)
{
    /* With its length before it, no part can run into the next. */
    uint64_t length = size;
    XXH3_128bits_update(state, &length, sizeof(length));
    XXH3_128bits_update(state, bytes, size);
}

/* CPU programs are machine code for the processor at hand, and folders move between machines. */
static void update_machine(XXH3_state_t *state)
{
    char *info = NULL;
    size_t size;
    ct_status *status = ct_file_read("/proc/cpuinfo", &info, &size);
    if (!status) {
        const char *model = strstr(info, "model name"), *flags = strstr(info, "\nflags");
        if (model) update_part(state, model, strcspn(model, "\n"));
        if (flags) update_part(state, flags + 1, strcspn(flags + 1, "\n"));
        free(info);
    }
    ct_status_free(status);
}

static ct_cache_key finish(XXH3_state_t *state)
{
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state));
    XXH3_freeState(state);
    ct_cache_key key;
    memcpy(key.bytes, canonical.digest, sizeof(key.bytes));
    return key;
}

static XXH3_state_t *new_state(void)
{
    XXH3_state_t *state = XXH3_createState();
    if (!state) CT_BUG("no memory for a hash");
    XXH3_128bits_reset(state);
    return state;
}

static XXH3_state_t *start(const ct_plugin *plugin, bool with_machine)
{
    XXH3_state_t *state = new_state();
    update_part(state, plugin->identity, strlen(plugin->identity));
    if (with_machine) update_machine(state);
    return state;
}

/* What is compiled for: the platform and its devices, in their order. */
static void update_target(XXH3_state_t *state, const char *name, const char *version, const ct_device *devices,
                          size_t num_devices)
{
    update_part(state, name, strlen(name));
    update_part(state, version, strlen(version));
    update_part(state, &num_devices, sizeof(num_devices));
    update_part(state, devices[0].kind, strlen(devices[0].kind));
}

ct_cache_key ct__cache_plugin_key(const ct_plugin *plugin, bool is_for_machine)
{
    XXH3_state_t *state = new_state();
    update_part(state, plugin->build, strlen(plugin->build));
    if (is_for_machine) update_machine(state);
    return finish(state);
}

ct_cache_key ct__cache_key(const ct_client *client, const char *text, size_t text_bytes, const char *options,
                           size_t options_bytes)
{
    XXH3_state_t *state = start(client->plugin, true);
    update_target(state, client->platform_name, client->platform_version, client->devices, client->num_devices);
    update_part(state, options, options_bytes);
    update_part(state, text, text_bytes);
    return finish(state);
}

ct_cache_key ct__cache_topology_key(const ct_plugin *plugin, const char *name, const char *version,
                                    const ct_device *devices, size_t num_devices, const bool *wraps, size_t num_wraps,
                                    const char *text, size_t text_bytes, const char *options, size_t options_bytes)
{
    XXH3_state_t *state = start(plugin, false); /* code for chips is the same on every machine */
    update_target(state, name, version, devices, num_devices);
    for (size_t i = 0; i < num_devices; i++) update_part(state, devices[i].coords, sizeof(devices[i].coords));
    update_part(state, wraps, num_wraps * sizeof(*wraps));
    update_part(state, options, options_bytes);
    update_part(state, text, text_bytes);
    return finish(state);
}

void ct__cache_key_text(const ct_cache_key *key, char out_text[33])
{
    for (size_t i = 0; i < sizeof(key->bytes); i++) snprintf(out_text + 2 * i, 3, "%02x", key->bytes[i]);
}

char *ct__cache_path(const char *folder, const ct_cache_key *key)
{
    char text[33], name[64];
    ct__cache_key_text(key, text);
    snprintf(name, sizeof(name), "%s.executable", text);
    return ct_path_join(folder, name);
}

static void checksum(const void *bytes, size_t size, unsigned char out_digest[16])
{
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes, size));
    memcpy(out_digest, canonical.digest, 16);
}

static ct_status *check_entry(const ct_file_map *map, const ct_cache_key *key, const char *path)
{
    if (map->size_bytes < HEADER_BYTES || memcmp(map->data, magic, sizeof(magic)))
        return ct_error(CT_CODE_DATA_LOSS, "%s does not begin like a compiled program", path);
    if (memcmp(map->data + KEY_AT, key->bytes, sizeof(key->bytes)))
        return ct_error(CT_CODE_FAILED_PRECONDITION,
                        "%s was compiled by another plugin or for another machine; compile it again", path);
    uint64_t payload_bytes = 0;
    for (int i = 0; i < 8; i++) payload_bytes |= (uint64_t)map->data[SIZE_AT + i] << (8 * i);
    if (payload_bytes != map->size_bytes - HEADER_BYTES)
        return ct_error(CT_CODE_DATA_LOSS, "%s should hold %llu bytes of program and holds %zu", path,
                        (unsigned long long)payload_bytes, map->size_bytes - HEADER_BYTES);
    unsigned char digest[16];
    checksum(map->data + HEADER_BYTES, (size_t)payload_bytes, digest);
    if (memcmp(digest, map->data + CHECKSUM_AT, sizeof(digest)))
        return ct_error(CT_CODE_DATA_LOSS, "%s is damaged: its checksum does not match", path);
    return NULL;
}

ct_status *ct__cache_read(ct_client *client, const char *path, const ct_cache_key *key, ct_executable **out_executable)
{
    *out_executable = NULL;
    ct_file_map map;
    CT_TRY(ct_file_map_open(path, &map));
    ct_status *status = check_entry(&map, key, path);
    if (!status)
        status =
            ct__executable_deserialize(client, map.data + HEADER_BYTES, map.size_bytes - HEADER_BYTES, out_executable);
    ct_file_map_close(&map);
    return ct_status_note(status, "reading the compiled program %s", path);
}

void ct__cache_seal(unsigned char *header, const void *payload, size_t payload_bytes)
{
    for (int i = 0; i < 8; i++) header[SIZE_AT + i] = (unsigned char)((uint64_t)payload_bytes >> (8 * i));
    checksum(payload, payload_bytes, header + CHECKSUM_AT);
}

ct_status *ct__cache_write(ct_executable *executable, const char *path, const ct_cache_key *key)
{
    char *payload;
    size_t payload_bytes;
    CT_TRY(ct__executable_serialize(executable, &payload, &payload_bytes));
    unsigned char *entry = ct_alloc(HEADER_BYTES + payload_bytes);
    memcpy(entry, magic, sizeof(magic));
    memcpy(entry + KEY_AT, key->bytes, sizeof(key->bytes));
    ct__cache_seal(entry, payload, payload_bytes);
    memcpy(entry + HEADER_BYTES, payload, payload_bytes);
    ct_status *status = ct_file_write(path, entry, HEADER_BYTES + payload_bytes);
    free(entry);
    free(payload);
    return status;
}

ct_executable *ct__cache_load(ct_client *client, const char *path, const ct_cache_key *key)
{
    if (!ct_path_exists(path)) return NULL;
    ct_executable *executable;
    ct_status *status = ct__cache_read(client, path, key, &executable);
    if (status) ct_warning("compiling again: %s", ct_status_message(status));
    ct_status_free(status);
    return executable;
}

void ct__cache_store(ct_executable *executable, const char *folder, const char *path, const ct_cache_key *key)
{
    ct_status *status = ct_dir_make(folder);
    if (!status) status = ct__cache_write(executable, path, key);
    if (status && ct_status_code(status) != CT_CODE_UNIMPLEMENTED)
        ct_warning("the compiled program is not cached: %s", ct_status_message(status));
    ct_status_free(status);
}
