/* The order of columns under head-tail balance. */
#include "spmd/balance.h"

ct_status *ct_head_tail_order(int64_t seq_len, int64_t cp, int64_t *out_order)
{
    int64_t num_blocks = cp > 1 ? 2 * cp : 1;
    if (seq_len < 1 || cp < 1 || seq_len % num_blocks)
        return ct_error(CT_CODE_INVALID_ARGUMENT,
                        "context parallelism over %lld devices needs a sequence that 2 x %lld divides, found %lld "
                        "columns",
                        (long long)cp, (long long)cp, (long long)seq_len);
    int64_t size = seq_len / num_blocks;
    for (int64_t i = 0; i < seq_len; i++) {
        int64_t place = i / size, device = place / 2;
        int64_t block = place % 2 ? num_blocks - 1 - device : device;
        out_order[i] = block * size + i % size;
    }
    return NULL;
}
