/* Boxes of dense row-major arrays: a range of indices in each dim. */
#ifndef CT_BASE_BOX_H
#define CT_BASE_BOX_H

#include "base/dtype.h"

/* Where a box lies in an array. */
typedef struct ct_box_side {
    void *data;             /* of the array */
    const int64_t *sizes;   /* of the array */
    const int64_t *offsets; /* of the box in it; NULL: all 0 */
} ct_box_side;

/* Copies a box of `sizes` from one array to another, which do not overlap. from is not written to. */
void ct_box_copy(int rank, const int64_t *sizes, size_t element_bytes, const ct_box_side *from, const ct_box_side *to);

#endif
