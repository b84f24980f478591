/* Context parallel attention: the sequence is split over the cp devices of a mesh. The logical arrays go into manual
 * regions, whose bodies see
 *
 *   q                     batch=dp seq=cp heads=tp
 *   k, v                  batch=dp kv_seq=cp kv_heads=tp_kv
 *   positions, segments   likewise; masks compare positions, so a device's columns may be any of the sequence
 *
 *   all-gather   every device gathers k and v, then the plain definition; autodiff reduce-scatters their gradients
 *   ring         k and v go round (ring.c)
 *
 * Source: Liu, Zaharia, Abbeel 2023, "Ring Attention with Blockwise Transformers"; TorchTitan's context parallel
 * rotate methods "allgather" and "alltoall".
 */
#ifndef CT_KERNELS_ATTENTION_CONTEXT_H
#define CT_KERNELS_ATTENTION_CONTEXT_H

#include "graph/node.h"
#include "kernels/attention/attention.h"

/* q k v positions kv_positions segments kv_segments */
enum { CT__CONTEXT_MAX_INPUTS = 7 };

typedef struct ct__context {
    ct_attention_opts opts; /* which tensors there are and are wanted; they themselves are of outside */
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

/* Is the sequence split, and are we outside of manual regions? */
bool ct__context_wanted(const ct_graph *graph);
ct_tensor *ct__context_attention(const char *loc, ct_tensor *q, ct_tensor *k, ct_tensor *v,
                                 const ct_attention_opts *opts);

ct__context_parts ct__context_parts_of(const ct__context *context, ct_tensor *const *args);

/* out_outputs: the result, the log-sum-exp [batch heads seq] in the dtype of scores. context must live as long as the
 * graph. */
void ct__context_ring(const char *loc, ct_graph *graph, ct__context *context, ct_tensor *const *inputs,
                      ct_tensor *out_outputs[2]);

#endif
