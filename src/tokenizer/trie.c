#include "tokenizer/trie.h"

#include <stdlib.h>

#include "base/alloc.h"

static void insert(ct__trie *trie, ct__trie_slot entry)
{
    size_t slot = (size_t)((entry.key * 0x9e3779b97f4a7c15u) >> 32) & (trie->num_slots - 1);
    while (trie->slots[slot].key != UINT64_MAX) slot = (slot + 1) & (trie->num_slots - 1);
    trie->slots[slot] = entry;
}

static void grow_slots(ct__trie *trie)
{
    ct__trie_slot *old = trie->slots;
    size_t num_old = trie->num_slots;
    trie->num_slots = CT_MAX(num_old * 2, (size_t)256);
    trie->slots = ct_alloc(trie->num_slots * sizeof(*trie->slots));
    for (size_t i = 0; i < trie->num_slots; i++) trie->slots[i] = (ct__trie_slot){.key = UINT64_MAX};
    for (size_t i = 0; i < num_old; i++)
        if (old[i].key != UINT64_MAX) insert(trie, old[i]);
    free(old);
}

static uint32_t new_node(ct__trie *trie)
{
    if (trie->num_nodes == trie->node_capacity) {
        trie->node_capacity = CT_MAX(trie->node_capacity * 2, (size_t)256);
        trie->values = ct_realloc(trie->values, trie->node_capacity * sizeof(*trie->values));
    }
    trie->values[trie->num_nodes] = -1;
    return (uint32_t)trie->num_nodes++;
}

void ct__trie_init(ct__trie *trie)
{
    *trie = (ct__trie){0};
    grow_slots(trie);
    new_node(trie);
}

void ct__trie_deinit(ct__trie *trie)
{
    free(trie->slots);
    free(trie->values);
}

void ct__trie_put(ct__trie *trie, const char *bytes, size_t length, int32_t value)
{
    uint32_t node = 0;
    for (size_t i = 0; i < length; i++) {
        uint32_t child = ct__trie_step(trie, node, (unsigned char)bytes[i]);
        if (!child) {
            if (trie->num_nodes * 2 >= trie->num_slots) grow_slots(trie);
            child = new_node(trie);
            insert(trie, (ct__trie_slot){(uint64_t)node << 8 | (unsigned char)bytes[i], child});
        }
        node = child;
    }
    trie->values[node] = value;
}
