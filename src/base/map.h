/* A hash map from strings to pointers, open addressing, keeps insertion order.
 *
 *   slots: [ -1 | 2 | -1 | 0 | 1 ... ]   entries: [key,value][key,value][key,value]
 *
 * Keys are copied. Not thread-safe.
 */
#ifndef CT_BASE_MAP_H
#define CT_BASE_MAP_H

#include "base/macros.h"

typedef struct ct_map_entry {
    char *key;
    void *value;
} ct_map_entry;

typedef struct ct_map {
    ct_map_entry *entries; /* in order of insertion; iterate over [0, num_entries) */
    size_t num_entries;
    size_t entry_capacity;
    int64_t *slots;
    size_t num_slots;
} ct_map;

void ct_map_init(ct_map *map);
void ct_map_deinit(ct_map *map); /* values are the caller's */
void ct_map_set(ct_map *map, const char *key, void *value);
void *ct_map_get(const ct_map *map, const char *key); /* NULL when absent */
int ct_map_has(const ct_map *map, const char *key);

/* FNV-1a of bytes, also used for names as random keys (so its value must never change). */
uint64_t ct_hash_bytes(const void *bytes, size_t size);

#endif
