/* Where everything of a training step lies, and what moves: found without a device. */
#ifndef CT_TRAIN_REPORT_SHARDING_H
#define CT_TRAIN_REPORT_SHARDING_H

#include "train/recipe.h"

/* Appends, for people to read:
 *
 *   the mesh; every parameter: type, the mesh axes of its axes as stored and as used, one device's sizes and bytes
 *   every placement point that the program has: the same
 *   every collective of the program: kind, mesh axes, dtype, bytes on one device, times per step, what moves and why,
 *   module and line; the sums per kind
 *
 * The torus is the topology's, num_torus 0 and device_kind NULL where none is known. Errors: those of the recipe's
 * model and mesh, and of building the step; FAILED_PRECONDITION for partitioner "shardy", whose collectives XLA
 * chooses. */
CT_MUST_USE ct_status *ct_sharding_report(const ct_recipe *recipe, int num_torus, const int64_t *torus,
                                          const char *device_kind, ct_str *out);

#endif
