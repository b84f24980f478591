/* A TPU kernel as text: generic `stable_mosaic` operations, version 15, written op by op from C, and the
 * tpu_custom_call that carries it. About thirty ops; the interpreter of tests/mosaic runs the same text on the host.
 *
 *   ct_mosaic *k = ct_mosaic_new("splash_fwd");
 *   grid, prefetched scalars, windows, scratch are declared, then the body is emitted:
 *   ct_mosaic_value q = ct_mosaic_load(k, window_q, ...), s = ct_mosaic_matmul(k, q, kt, acc, ...)
 *
 * Values are SSA names with types ("vector<128x512xf32>"); builders infer result types and keep the first mistake.
 * Errors are bugs of the kernel's author: they abort.
 */
#ifndef CT_KERNELS_MOSAIC_H
#define CT_KERNELS_MOSAIC_H

#include "graph/graph.h"

/* What follows is the work of this module's author. */

#endif
