/* XXH3-128 from the header of libxxhash, so that nothing is linked. A ct__hash is its state, under our name. */
#include "checkpoint/hash.h"

#include <stdio.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

ct__hash *ct__hash_new(void)
{
    XXH3_state_t *state = XXH3_createState();
    if (!state || XXH3_128bits_reset(state) == XXH_ERROR) CT_BUG("out of host memory: a hash state wanted");
    return (ct__hash *)state;
}

void ct__hash_update(ct__hash *hash, const void *bytes, size_t size_bytes)
{
    if (size_bytes) XXH3_128bits_update((XXH3_state_t *)hash, bytes, size_bytes);
}

static void print_digits(XXH128_hash_t value, char out_digits[CT__HASH_DIGITS + 1])
{
    snprintf(out_digits, CT__HASH_DIGITS + 1, "%016llx%016llx", (unsigned long long)value.high64,
             (unsigned long long)value.low64);
}

void ct__hash_finish(ct__hash *hash, char out_digits[CT__HASH_DIGITS + 1])
{
    print_digits(XXH3_128bits_digest((XXH3_state_t *)hash), out_digits);
    XXH3_freeState((XXH3_state_t *)hash);
}

void ct__hash_bytes(const void *bytes, size_t size_bytes, char out_digits[CT__HASH_DIGITS + 1])
{
    print_digits(XXH3_128bits(bytes, size_bytes), out_digits);
}
