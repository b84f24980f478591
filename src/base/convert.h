/* Elements of one floating type as another, rounded to nearest even. */
#ifndef CT_BASE_CONVERT_H
#define CT_BASE_CONVERT_H

#include "base/dtype.h"

/* from and to are floating types; the same type is a copy. The memory does not overlap. */
void ct_convert_elements(ct_dtype from_dtype, const void *from, ct_dtype to_dtype, void *to, int64_t count);

#endif
