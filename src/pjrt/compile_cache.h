/* Compiled programs on disk. Internal; executable.h has the public side.
 *
 *   offset  bytes  what
 *        0      8  "CTEXEC1\n"
 *        8     16  key: XXH3-128 of program, options, plugin and machine (for the cache), or of plugin and machine
 * alone 24      8  payload_bytes, little-endian 32     16  XXH3-128 of the payload 48      -  payload: what the plugin
 * serialized
 *
 * An entry is written aside and renamed, so processes that share a folder see whole entries; when two compile the same
 * program, the later one's entry stays. An entry that is not right in every byte is compiled anew and replaced.
 */
#ifndef CT_PJRT_COMPILE_CACHE_H
#define CT_PJRT_COMPILE_CACHE_H

#include "pjrt/executable.h"

typedef struct ct_cache_key {
    unsigned char bytes[16];
} ct_cache_key;

ct_cache_key ct__cache_key(const ct_client *client, const char *text, size_t text_bytes, const char *options,
                           size_t options_bytes);
ct_cache_key ct__cache_topology_key(const ct_plugin *plugin, const char *name, const char *version,
                                    const ct_device *devices, size_t num_devices, const bool *wraps, size_t num_wraps,
                                    const char *text, size_t text_bytes, const char *options, size_t options_bytes);
void ct__cache_key_text(const ct_cache_key *key, char out_text[33]);
/* Of saved programs, which move between machines unless they are code for one. */
ct_cache_key ct__cache_plugin_key(const ct_plugin *plugin, bool is_for_machine);
char *ct__cache_path(const char *folder, const ct_cache_key *key); /* heap */

/* NULL when there is no entry, or (with a warning in the log) one that is no good. */
ct_executable *ct__cache_load(ct_client *client, const char *path, const ct_cache_key *key);

/* Best effort: a failure is a warning in the log. A plugin that cannot serialize is left alone. */
void ct__cache_store(ct_executable *executable, const char *folder, const char *path, const ct_cache_key *key);

CT_MUST_USE ct_status *ct__cache_read(ct_client *client, const char *path, const ct_cache_key *key,
                                      ct_executable **out_executable);
CT_MUST_USE ct_status *ct__cache_write(ct_executable *executable, const char *path, const ct_cache_key *key);

/* Writes the size and checksum of payload into an entry's header. */
void ct__cache_seal(unsigned char *header, const void *payload, size_t payload_bytes);

#endif
