/* Random numbers on the device, bit for bit those of the host. */
#include "base/rng.h"
#include "op_table.h"

static const uint32_t words[3][2] = {{1, 2}, {0xfffffff0u, 7}, {12345, 0x80000000u}};
static const ct_random_keys one_key = {1, words}, key_per_row = {3, words};

static uint32_t host_bits(int key, uint32_t low, uint32_t high)
{
    uint32_t bits[2];
    ct_threefry(words[key], (const uint32_t[2]){low, high}, bits);
    return bits[0];
}

BUILD(build_bits)
{
    UNUSED4;
    out[0] = ct_random_bits(graph, "a=3 b=5 c=7", &one_key);
    out[1] = ct_random_bits(graph, "a=3 b=5 c=7", &key_per_row);
    out[2] = ct_random_bits(graph, "", &one_key);
    ct_tensor *keys[2] = {in[0], in[0]};
    out[3] = ct_random_bits_from(keys[0], keys[1], "a=3");
}
REFERENCE(ref_bits)
{
    for (uint32_t i = 0; i < 105; i++) {
        out[0][i] = host_bits(0, i, 0);
        out[1][i] = host_bits((int)i / 35, i % 35, 0);
    }
    out[2][0] = host_bits(0, 0, 0);
    for (int i = 0; i < 3; i++) {
        uint32_t key = (uint32_t)in[0][i], bits[2];
        ct_threefry((const uint32_t[2]){key, key}, (const uint32_t[2]){0, 0}, bits);
        out[3][i] = bits[0];
    }
}

/* Rows so long that indices need both words: the last elements of each of the first rows, of u8 broadcasts never made.
 */
BUILD(build_long_index)
{
    UNUSED4;
    ct_tensor *bits = ct_random_bits(graph, "a=5 b=3000000000", &one_key);
    out[0] = ct_slice_strided(bits, "b", 2999999990, 3000000000, 3);
}
REFERENCE(ref_long_index)
{
    (void)in;
    for (uint64_t a = 0; a < 5; a++)
        for (uint64_t k = 0; k < 4; k++) {
            uint64_t index = a * 3000000000u + 2999999990u + 3 * k;
            out[0][a * 4 + k] = host_bits(0, (uint32_t)index, (uint32_t)(index >> 32));
        }
}

BUILD(build_distributions)
{
    UNUSED4;
    out[0] = ct_random_uniform(graph, "n=20000", &one_key);
    out[1] = ct_random_normal(graph, "n=20000", &one_key);
    out[2] = ct_random_truncated_normal(graph, "n=20000", &one_key, -1.5, 2);
    out[3] = ct_random_truncated_normal(graph, "n=20000", &one_key, -100, 100);
    out[4] = ct_normal_from_bits(in[0]);
}
REFERENCE(ref_distributions)
{
    for (uint32_t i = 0; i < 20000; i++) {
        uint32_t bits = host_bits(0, i, 0);
        out[0][i] = (double)(bits >> 8) * 0x1p-24;
        out[1][i] = (double)ct_normal_of_bits(bits);
        out[2][i] = (double)ct_truncated_normal_of_bits(bits, -1.5, 2);
        out[3][i] = (double)ct_truncated_normal_of_bits(bits, -100, 100);
    }
    for (int i = 0; i < 64; i++) out[4][i] = (double)ct_normal_of_bits((uint32_t)in[0][i]);
}

static const op_case cases[] = {
    {.name = "random_bits",
     .dtypes = D(U32),
     .inputs = {{"a=3", 0, 4e9, 0}},
     .num_outputs = 4,
     .build = build_bits,
     .reference = ref_bits},
    {.name = "random_bits, 64-bit index",
     .dtypes = D(U32),
     .num_outputs = 1,
     .build = build_long_index,
     .reference = ref_long_index},
    {.name = "uniform, normal, truncated normal",
     .dtypes = D(U32),
     .inputs = {{"n=64", 0, 4294967295.0, 0}},
     .num_outputs = 5,
     .build = build_distributions,
     .reference = ref_distributions,
     .tolerance = 1e-300},
};
const op_family random_cases = {"random", cases, CT_COUNT(cases)};
