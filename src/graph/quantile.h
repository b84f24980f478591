/* The normal quantile as a table of cubics in fixed point, and its distribution function; host side. Only + - * / and
 * sqrt of doubles, so every host makes the same table.
 *
 *   32 random bits q -> tail: mirrored to the half below the median, w = 2q + 1, p = w / 2^33 < 1/2
 *   w << leading zeros = 1 ssss rrrrrrrrrrrrrrrrrrrrrrrrrrr      s: segment of the octave, r: 27 bits within it
 *   |z| = a0 + r (a1 + r (a2 + r a3))                             row 16 * leading zeros + s of the table
 */
#ifndef CT_GRAPH_QUANTILE_H
#define CT_GRAPH_QUANTILE_H

#include "base/macros.h"

enum {
    CT__QUANTILE_ROWS = 32 * 16,
    CT__QUANTILE_Z_BITS = 28,     /* a0 and z count 2^-28 */
    CT__QUANTILE_SLOPE_BITS = 30, /* a1, a2, a3 count 2^-30 */
    CT__QUANTILE_R_BITS = 27,
};

/* out[k][row]: a_k */
void ct__quantile_table(int32_t out[4][CT__QUANTILE_ROWS]);
/* Phi(x) in units of 2^-32, rounded, within [0, 2^32]. */
int64_t ct__normal_cdf_fixed(double x);

#endif
