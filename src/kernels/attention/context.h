/* Attention on a mesh, and forms with a derivative of their own. The logical arrays go into manual regions, in which a
 * form (portable, ring, ...) works on a device's parts and nothing needs a placement rule:
 *
 *   q                     batch=dp seq=cp heads=tp
 *   k, v                  batch=dp kv_seq=cp kv_heads=tp_kv
 *   positions, segments   likewise; masks compare positions, so a device's columns may be any of the sequence
 *
 * Without a mesh, or inside a manual region, the arrays at hand are the parts. Under context parallel
 *
 *   all-gather   every device gathers k and v; their gradients are reduce-scattered
 *   ring         k and v go round (ring.c)
 *
 * A form's backward runs in a region of its own, from what forward saved: the result and the log-sum-exp. The
 * definition has no form; gathered, it is differentiated by autodiff.
 * Source: Liu, Zaharia, Abbeel 2023, "Ring Attention with Blockwise Transformers"; TorchTitan's context parallel
 * rotate methods "allgather" and "alltoall".
 */
#ifndef CT_KERNELS_ATTENTION_CONTEXT_H
#define CT_KERNELS_ATTENTION_CONTEXT_H

#include "graph/node.h"
#include "kernels/attention/attention.h"
#include "kernels/kernel.h"

/* q k v positions kv_positions segments kv_segments */
enum { CT__CONTEXT_MAX_INPUTS = 7 };

struct ct__attention_form;

typedef struct ct__context {
    ct_attention_opts opts; /* which tensors there are and are wanted; they themselves are of outside */
    const struct ct__attention_form *form;
    const ct_kernels *kernels;
    bool is_blockwise; /* no whole matrix of scores */
    bool is_region;    /* on a mesh */
    int64_t degree;
    const char *cp;     /* "cp_0 cp_1" */
    const char *shared; /* the mesh axes over which heads are split but kv heads are not; "" */
    int num_inputs;
    const char *placements[CT__CONTEXT_MAX_INPUTS]; /* of the inputs */
    const char *rows_placement;                     /* of [batch heads seq] */
} ct__context;

/* A device's parts of the inputs. */
typedef struct ct__context_parts {
    ct_tensor *q, *k, *v;
    ct_attention_opts opts;
} ct__context_parts;

/* What forward left for backward. */
typedef struct ct__attention_saved {
    ct_tensor *result, *lse;     /* [batch seq heads head_dim]; [batch heads seq] in the dtype of scores */
    ct_tensor *d_result, *d_lse; /* their cotangents; d_lse may be NULL */
} ct__attention_saved;

/* An implementation on a device's parts. */
typedef struct ct__attention_form {
    /* out_outputs: result and lse */
    void (*forward)(const ct__context *context, const ct__context_parts *parts, ct_tensor *out_outputs[2]);
    /* out_gradients: of q, k and v, in their types */
    void (*backward)(const ct__context *context, const ct__context_parts *parts, const ct__attention_saved *saved,
                     ct_tensor *out_gradients[3]);
    bool gathers; /* parts hold all of k and v; what is returned as their gradients is summed over cp */
} ct__attention_form;

extern const ct__attention_form ct__attention_ring, ct__attention_portable, ct__attention_mosaic,
    ct__attention_mosaic_ring;

/* Are arrays split over the cp axes of a mesh, and are we outside of manual regions? */
bool ct__context_wanted(const ct_graph *graph);
/* form: not AUTO; DEFINITION where ct__context_wanted. */
ct_tensor *ct__context_attention(const char *loc, ct_tensor *q, ct_tensor *k, ct_tensor *v,
                                 const ct_attention_opts *opts, ct_kernel_form form);

ct__context_parts ct__context_parts_of(const ct__context *context, ct_tensor *const *args);

/* x to the next device of the ring along cp; what the one before had. */
ct_tensor *ct__context_pass_on(const ct__context *context, ct_tensor *x);

/* Blocks of the portable form on this platform: of queries and of keys. */
void ct__portable_blocks(const ct__context *context, bool is_backward, int64_t *out_q, int64_t *out_kv);

#endif
