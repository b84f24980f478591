/* Initial weights: a program whose outputs are the parameters.
 *
 * Bits are a function of seed, parameter name (of each layer) and index, by integer ops, so they are the same on any
 * machine and mesh, and the same for stacked and separate layers. Distributions are TorchTitan's.
 */
#ifndef CT_TRAIN_INIT_H
#define CT_TRAIN_INIT_H

#include "models/model.h"

/* No inputs; outputs: the parameters from first on in the model's order, of dtype or what the model makes of it, lying
 * as parallel (may be NULL) stores them. */
CT_MUST_USE ct_status *ct_init_build(const ct_model *model, int first, const ct_parallel *parallel, ct_dtype dtype,
                                     uint64_t seed, ct_graph **out_graph);

#endif
