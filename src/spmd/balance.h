/* Balance of causal context parallelism: which columns of a sequence each of cp devices holds.
 *
 *   seq_len 8, cp 2:   2 cp blocks of 2 columns    0 1 | 2 3 | 4 5 | 6 7
 *                      device i: blocks i and 2 cp - 1 - i
 *                      order                       0 1   6 7 | 2 3   4 5
 *
 * Under a causal mask column n sees n + 1 others, so the sums are the same for all devices.
 */
#ifndef CT_SPMD_BALANCE_H
#define CT_SPMD_BALANCE_H

#include <stdint.h>

#include "base/status.h"

/* out_order[i]: the column of the sequence that stands at i; device d holds [d seq_len / cp, (d + 1) seq_len / cp).
 * cp 1 leaves all where it is. Errors: INVALID_ARGUMENT when 2 cp does not divide seq_len. */
CT_MUST_USE ct_status *ct_head_tail_order(int64_t seq_len, int64_t cp, int64_t *out_order);

#endif
