/* The derivative of a function as two functions: forward, which also returns what backward needs, and backward.
 *
 *   forward:   arguments                              -> outputs, residuals
 *   backward:  residuals, cotangents of float outputs -> gradients of float arguments
 *
 * Pipeline schedules and kernels place the two where they like. Calls of a function differentiate through the same
 * pair.
 */
#ifndef CT_AUTODIFF_VJP_H
#define CT_AUTODIFF_VJP_H

#include "graph/function.h"
#include "graph/remat.h"

typedef struct ct_vjp_pair {
    ct_function *forward, *backward;
    int num_outputs;    /* of the function; forward's further results are residuals */
    int num_residuals;  /* backward's first arguments */
    int num_cotangents; /* its further arguments: float outputs in order */
    int num_gradients;  /* its results: float arguments in order */
} ct_vjp_pair;

/* policy: what is a residual and what backward computes again; NULL: nothing but cheap moves of data is computed again.
 * Errors: an op without a derivative; the graph's own first error. */
CT_MUST_USE ct_status *ct_vjp(ct_function *function, const ct_remat_policy *policy, ct_vjp_pair *out_pair);

#endif
