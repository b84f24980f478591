/* Where a model meets the sharding table. Each is a no-op (or a plain convert) in a graph without ct_parallel.
 */
#ifndef CT_SPMD_POINTS_H
#define CT_SPMD_POINTS_H

#include "graph/graph.h"

/* A parameter as computation uses it: in dtype, gathered as the table's activation column says. Its derivative is
 * ct_store of the cotangent. */
#define ct_use(param, dtype) ct__use(CT_LOC, param, dtype)
ct_tensor *ct__use(const char *loc, ct_tensor *param, ct_dtype dtype);

/* A gradient as it is stored beside param: summed over the devices in the reduce dtype, in param's dtype after. */
#define ct_store(gradient, param) ct__store(CT_LOC, gradient, param)
ct_tensor *ct__store(const char *loc, ct_tensor *gradient, ct_tensor *param);

/* A placement point: from here on x lies as the table says for the point. Its derivative is the same point. */
#define ct_shard(x, point) ct__shard(CT_LOC, x, point)
ct_tensor *ct__shard(const char *loc, ct_tensor *x, const char *point);

/* What lies as a weight in use, with its axes padded at their ends as its parts on the devices are, so that a manual
 * region can take it; x itself where all divide. What padding holds is undefined. No derivative. */
#define ct_padded(x) ct__padded(CT_LOC, x)
ct_tensor *ct__padded(const char *loc, ct_tensor *x);

/* The reverse: x without the padding that ct_padded(like) has. */
#define ct_unpadded(x, like) ct__unpadded(CT_LOC, x, like)
ct_tensor *ct__unpadded(const char *loc, ct_tensor *x, ct_tensor *like);

#endif
