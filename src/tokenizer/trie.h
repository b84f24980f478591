/* A trie of byte strings, each with a number. Only for files in this folder.
 *
 *   (node, byte) -> child: one hash table for all nodes, so a step is one probe        node 0 is the root
 */
#ifndef CT_TOKENIZER_TRIE_H
#define CT_TOKENIZER_TRIE_H

#include "base/macros.h"

typedef struct ct__trie_slot {
    uint64_t key; /* node << 8 | byte; UINT64_MAX: free */
    uint32_t child;
} ct__trie_slot;

typedef struct ct__trie {
    ct__trie_slot *slots;
    size_t num_slots;
    int32_t *values; /* by node: of the string that ends there, -1 for none */
    size_t num_nodes, node_capacity;
} ct__trie;

void ct__trie_init(ct__trie *trie);
void ct__trie_deinit(ct__trie *trie);
void ct__trie_put(ct__trie *trie, const char *bytes, size_t length, int32_t value); /* the last one counts */

/* The child of a node; 0 when there is none. */
static inline uint32_t ct__trie_step(const ct__trie *trie, uint32_t node, unsigned char byte)
{
    uint64_t key = (uint64_t)node << 8 | byte;
    uint64_t hash = key * 0x9e3779b97f4a7c15u;
    for (size_t slot = (size_t)(hash >> 32) & (trie->num_slots - 1);; slot = (slot + 1) & (trie->num_slots - 1)) {
        if (trie->slots[slot].key == key) return trie->slots[slot].child;
        if (trie->slots[slot].key == UINT64_MAX) return 0;
    }
}

#endif
