/* Counter-based random bits on the host: Threefry-2x32 with 20 rounds, the same function that the graph builds for the
 * device. Bits depend on key and counter alone, so any worker can make any part of a stream.
 * Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
 */
#ifndef CT_BASE_RNG_H
#define CT_BASE_RNG_H

#include "base/macros.h"

/* out_bits[0..1] = Threefry2x32-20(key, counter). */
void ct_threefry(const uint32_t key[2], const uint32_t counter[2], uint32_t out_bits[2]);

/* A key for a named stream: (seed, name) -> two words. Stable for ever: initial weights hang on it. */
void ct_rng_key(uint64_t seed, const char *name, uint32_t out_key[2]);

/* The image of index under a pseudorandom permutation of [0, count), chosen by key: shuffling without memory. */
uint64_t ct_rng_permute(const uint32_t key[2], uint64_t count, uint64_t index);

#endif
