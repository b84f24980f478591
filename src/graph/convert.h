/* Changes of dtype. */
#ifndef CT_GRAPH_CONVERT_H
#define CT_GRAPH_CONVERT_H

#include "graph/graph.h"

/* x as dtype; x itself when it has that dtype already. Float to integer truncates; to bool means != 0. The derivative
 * is the conversion back; there is none through integers. */
ct_tensor *ct__convert(const char *loc, ct_tensor *x, ct_dtype dtype);
#define ct_convert(x, dtype) ct__convert(CT_LOC, x, dtype)

/* The same bits as a dtype of equal size. */
ct_tensor *ct__bitcast(const char *loc, ct_tensor *x, ct_dtype dtype);
#define ct_bitcast(x, dtype) ct__bitcast(CT_LOC, x, dtype)

/* x rounded to the precision of dtype (F16 or BF16) but kept in its own dtype; a rounding that XLA may not elide. */
ct_tensor *ct__reduce_precision(const char *loc, ct_tensor *x, ct_dtype dtype);
#define ct_reduce_precision(x, dtype) ct__reduce_precision(CT_LOC, x, dtype)

#endif
