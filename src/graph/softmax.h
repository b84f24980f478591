/* Softmax and log-sum-exp along one axis, in x's dtype, shifted by the largest value so that nothing overflows. A row
 * of -inf alone gives zeros from softmax and -inf from logsumexp, with zero gradients (fully masked attention rows).
 * Derivatives are written by hand: softmax keeps only its result. torch.softmax, torch.logsumexp.
 */
#ifndef CT_GRAPH_SOFTMAX_H
#define CT_GRAPH_SOFTMAX_H

#include "graph/graph.h"

ct_tensor *ct__softmax(const char *loc, ct_tensor *x, const char *axis);
ct_tensor *ct__logsumexp(const char *loc, ct_tensor *x, const char *axis); /* axis disappears */
ct_tensor *ct__log_softmax(const char *loc, ct_tensor *x, const char *axis);
#define ct_softmax(x, axis)     ct__softmax(CT_LOC, x, axis)
#define ct_logsumexp(x, axis)   ct__logsumexp(CT_LOC, x, axis)
#define ct_log_softmax(x, axis) ct__log_softmax(CT_LOC, x, axis)

#endif
