/* Threefry-2x32 and what is built on it. */
#include "base/rng.h"

#include <string.h>

#include "base/map.h"

static uint32_t rotate(uint32_t x, unsigned r)
{
    return (x << r) | (x >> (32 - r));
}

void ct_threefry(const uint32_t key[2], const uint32_t counter[2], uint32_t out_bits[2])
{
    static const unsigned rotations[8] = {13, 15, 26, 6, 17, 29, 16, 24};
    const uint32_t schedule[3] = {key[0], key[1], key[0] ^ key[1] ^ 0x1bd11bdau};
    uint32_t x0 = counter[0] + schedule[0], x1 = counter[1] + schedule[1];
    for (uint32_t round = 0; round < 20; round++) {
        x0 += x1;
        x1 = rotate(x1, rotations[round % 8]) ^ x0;
        if (round % 4 == 3) {
            uint32_t group = round / 4 + 1;
            x0 += schedule[group % 3];
            x1 += schedule[(group + 1) % 3] + group;
        }
    }
    out_bits[0] = x0;
    out_bits[1] = x1;
}

void ct_rng_key(uint64_t seed, const char *name, uint32_t out_key[2])
{
    uint64_t hash = ct_hash_bytes(name, strlen(name));
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    const uint32_t counter[2] = {(uint32_t)hash, (uint32_t)(hash >> 32)};
    ct_threefry(key, counter, out_key);
}

uint64_t ct_rng_permute(const uint32_t key[2], uint64_t count, uint64_t index)
{
    CT_ASSERT(index < count);
    /* A Feistel network over the smallest even number of bits that holds count; walk the cycle until inside. */
    unsigned half_bits = 1;
    while (half_bits < 32 && (uint64_t)1 << (2 * half_bits) < count) half_bits++;
    uint64_t mask = ((uint64_t)1 << half_bits) - 1;
    do {
        uint64_t left = index >> half_bits, right = index & mask;
        for (uint32_t round = 0; round < 6; round++) {
            uint32_t bits[2];
            ct_threefry(key, (const uint32_t[2]){(uint32_t)right, round}, bits);
            uint64_t next = left ^ (bits[0] & mask);
            left = right;
            right = next;
        }
        index = left << half_bits | right;
    } while (index >= count);
    return index;
}
