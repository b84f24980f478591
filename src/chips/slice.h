/* The name of a slice of TPUs, "v6e:4x4": a chip of the table and how many of them stand along each axis of its torus.
 * It is what libtpu takes as a topology's name, and it says how many devices there are without libtpu.
 */
#ifndef CT_CHIPS_SLICE_H
#define CT_CHIPS_SLICE_H

#include "base/status.h"
#include "chips/chips.h"

typedef struct ct_chip_slice {
    const ct_chip *chip;
    int num_axes;
    int64_t sizes[3];    /* in chips */
    int64_t num_devices; /* as PJRT counts them */
} ct_chip_slice;

/* Errors: INVALID_ARGUMENT that says what a name looks like, which chips there are, what is too large. */
CT_MUST_USE ct_status *ct_chip_slice_parse(const char *name, ct_chip_slice *out_slice);

#endif
