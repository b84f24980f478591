#include "tokenizer/charsmap.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

struct ct__charsmap {
    uint32_t *units;
    size_t num_units;
    char *replacements; /* ends with a zero byte */
    size_t replacement_bytes;
};

ct_status *ct__charsmap_new(const char *bytes, size_t length, ct__charsmap **out_charsmap)
{
    *out_charsmap = NULL;
    uint32_t trie_bytes = 0;
    if (length >= 4) memcpy(&trie_bytes, bytes, 4);
    if (length < 4 || trie_bytes % 4 || trie_bytes > length - 4 || !trie_bytes)
        return ct_error(
            CT_CODE_INVALID_ARGUMENT,
            "a precompiled character map must begin with the size of its trie, but has %zu bytes and names %u", length,
            trie_bytes);
    ct__charsmap *map = ct_alloc(sizeof(*map));
    map->num_units = trie_bytes / 4;
    map->units = ct_alloc(trie_bytes);
    memcpy(map->units, bytes + 4, trie_bytes);
    map->replacement_bytes = length - 4 - trie_bytes;
    map->replacements = ct_alloc(map->replacement_bytes + 1);
    memcpy(map->replacements, bytes + 4 + trie_bytes, map->replacement_bytes);
    map->replacements[map->replacement_bytes] = 0;
    *out_charsmap = map;
    return NULL;
}

void ct__charsmap_free(ct__charsmap *charsmap)
{
    if (!charsmap) return;
    free(charsmap->units);
    free(charsmap->replacements);
    free(charsmap);
}

static size_t offset_of(uint32_t unit)
{
    return (size_t)(unit >> 10) << ((unit & (1u << 9)) >> 6);
}

static const char *find(const ct__charsmap *map, const char *text, size_t length, bool longest, size_t *out_used)
{
    const char *found = NULL;
    *out_used = 0;
    size_t node = offset_of(map->units[0]);
    for (size_t i = 0; i < length; i++) {
        unsigned char label = (unsigned char)text[i];
        node ^= label;
        if (!label || node >= map->num_units) break;
        uint32_t unit = map->units[node];
        if ((unit & (1u << 31 | 0xff)) != label) break;
        node ^= offset_of(unit);
        if (node >= map->num_units) break;
        if (!(unit >> 8 & 1)) continue;
        uint32_t value = map->units[node] & 0x7fffffff;
        if (value > map->replacement_bytes) break;
        found = map->replacements + value;
        *out_used = i + 1;
        if (!longest) break;
    }
    return found;
}

const char *ct__charsmap_shortest(const ct__charsmap *charsmap, const char *text, size_t length, size_t *out_used)
{
    return find(charsmap, text, length, false, out_used);
}

const char *ct__charsmap_longest(const ct__charsmap *charsmap, const char *text, size_t length, size_t *out_used)
{
    return find(charsmap, text, length, true, out_used);
}
