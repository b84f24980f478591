/* Counter-based random numbers as integer ops: the same bits on every machine, plugin, mesh and sharding.
 *
 * Element i of a tensor (i its row-major index over the whole array) gets the first word of Threefry-2x32(key, i), as
 * ct_threefry gives it on the host. With one key per position of the first axis, i counts within the position, so that
 * a stacked parameter [layers ...] holds exactly the bits of its layers' own parameters.
 */
#ifndef CT_GRAPH_RANDOM_H
#define CT_GRAPH_RANDOM_H

#include "graph/graph.h"

typedef struct ct_random_keys {
    int count;                  /* 1: one key for all; else the size of the first axis: one key per position */
    const uint32_t (*words)[2]; /* ct_rng_key; copied */
} ct_random_keys;

/* u32, all values equally likely. axes need sizes (declared or written); a position has fewer than 2^64 elements. */
ct_tensor *ct__random_bits(const char *loc, ct_graph *graph, const char *axes, const ct_random_keys *keys);
#define ct_random_bits(graph, axes, keys) ct__random_bits(CT_LOC, graph, axes, keys)

/* The same from keys that the program computes: two u32 tensors, without axes or with the first of `axes` alone. */
ct_tensor *ct__random_bits_from(const char *loc, ct_tensor *key0, ct_tensor *key1, const char *axes);
#define ct_random_bits_from(key0, key1, axes) ct__random_bits_from(CT_LOC, key0, key1, axes)

/* Threefry-2x32 with 20 rounds, element by element; u32 tensors, broadcast by name. For keys made from keys. */
void ct__threefry_bits(const char *loc, ct_tensor *const key[2], ct_tensor *const counter[2], ct_tensor *out_bits[2]);
#define ct_threefry_bits(key, counter, out_bits) ct__threefry_bits(CT_LOC, key, counter, out_bits)

/* f32 from u32 bits. Distributions of bits that are uniform:
 *   uniform   (bits >> 8) * 2^-24, in [0, 1)
 *   normal    the normal quantile of (bits + 1/2) / 2^32, within 6.4 of zero; piecewise cubics in integers, error below
 *             2^-26 before the rounding to f32; multiply by the standard deviation, add the mean
 *   truncated the same given low <= z <= high (standard deviations) */
ct_tensor *ct__uniform_from_bits(const char *loc, ct_tensor *bits);
ct_tensor *ct__normal_from_bits(const char *loc, ct_tensor *bits);
ct_tensor *ct__truncated_normal_from_bits(const char *loc, ct_tensor *bits, double low, double high);
#define ct_uniform_from_bits(bits)                     ct__uniform_from_bits(CT_LOC, bits)
#define ct_normal_from_bits(bits)                      ct__normal_from_bits(CT_LOC, bits)
#define ct_truncated_normal_from_bits(bits, low, high) ct__truncated_normal_from_bits(CT_LOC, bits, low, high)

#define ct_random_uniform(graph, axes, keys) ct_uniform_from_bits(ct_random_bits(graph, axes, keys))
#define ct_random_normal(graph, axes, keys)  ct_normal_from_bits(ct_random_bits(graph, axes, keys))
#define ct_random_truncated_normal(graph, axes, keys, low, high)                                                       \
    ct_truncated_normal_from_bits(ct_random_bits(graph, axes, keys), low, high)

/* The same function on the host, bit for bit: normal quantile of (bits + 1/2) / 2^32. */
float ct_normal_of_bits(uint32_t bits);
float ct_truncated_normal_of_bits(uint32_t bits, double low, double high);

#endif
