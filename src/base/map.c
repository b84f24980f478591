/* String map: an index of slots over a dense array of entries. */
#include "base/map.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

uint64_t ct_hash_bytes(const void *bytes, size_t size)
{
    const unsigned char *p = bytes;
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; i++) hash = (hash ^ p[i]) * 0x100000001b3u;
    return hash;
}

void ct_map_init(ct_map *map)
{
    *map = (ct_map){0};
}

void ct_map_deinit(ct_map *map)
{
    for (size_t i = 0; i < map->num_entries; i++) free(map->entries[i].key);
    free(map->entries);
    free(map->slots);
    *map = (ct_map){0};
}

static size_t find_slot(const ct_map *map, const char *key)
{
    size_t mask = map->num_slots - 1;
    size_t slot = (size_t)ct_hash_bytes(key, strlen(key)) & mask;
    while (map->slots[slot] >= 0 && strcmp(map->entries[map->slots[slot]].key, key) != 0) slot = (slot + 1) & mask;
    return slot;
}

static void grow(ct_map *map)
{
    map->num_slots = map->num_slots ? map->num_slots * 2 : 16;
    map->slots = ct_realloc(map->slots, map->num_slots * sizeof(*map->slots));
    for (size_t i = 0; i < map->num_slots; i++) map->slots[i] = -1;
    for (size_t i = 0; i < map->num_entries; i++) map->slots[find_slot(map, map->entries[i].key)] = (int64_t)i;
}

void ct_map_set(ct_map *map, const char *key, void *value)
{
    if ((map->num_entries + 1) * 2 > map->num_slots) grow(map);
    size_t slot = find_slot(map, key);
    if (map->slots[slot] >= 0) {
        map->entries[map->slots[slot]].value = value;
        return;
    }
    if (map->num_entries == map->entry_capacity) {
        map->entry_capacity = map->entry_capacity ? map->entry_capacity * 2 : 8;
        map->entries = ct_realloc(map->entries, map->entry_capacity * sizeof(*map->entries));
    }
    map->slots[slot] = (int64_t)map->num_entries;
    map->entries[map->num_entries++] = (ct_map_entry){.key = ct_strdup(key), .value = value};
}

static ct_map_entry *find_entry(const ct_map *map, const char *key)
{
    if (!map->num_slots) return NULL;
    size_t slot = find_slot(map, key);
    return map->slots[slot] < 0 ? NULL : &map->entries[map->slots[slot]];
}

void *ct_map_get(const ct_map *map, const char *key)
{
    ct_map_entry *entry = find_entry(map, key);
    return entry ? entry->value : NULL;
}

int ct_map_has(const ct_map *map, const char *key)
{
    return find_entry(map, key) != NULL;
}
