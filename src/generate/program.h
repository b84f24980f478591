/* The two programs of generation, over a cache of keys and values (models/model.h).
 *
 * Rows are padded on the left, so that all of them write the same column:
 *
 *   column     0 ...          prompt_len - 1 | prompt_len ...        capacity - 1
 *   row 0      -  -  -  a  b  c              | d  e ...
 *   row 1      p  q  r  s  t  u              | v  w ...              position = column - pads[row]
 */
#ifndef CT_GENERATE_PROGRAM_H
#define CT_GENERATE_PROGRAM_H

#include "generate/sampling.h"
#include "kernels/kernel.h"
#include "models/model.h"

typedef struct ct_generate_shape {
    int64_t batch, prompt_len, capacity;
    int64_t steps; /* tokens per launch of decode */
} ct_generate_shape;

typedef struct ct_generate_opts {
    ct_dtype dtype; /* of parameters, cache and activations */
    ct_sampling sampling;
    const int32_t *stop_ids; /* a row is finished behind one of them */
    size_t num_stop_ids;
    ct_kernels kernels;
} ct_generate_opts;

/* The model's layers are unrolled; model and opts must outlive the graph.
 *
 *   inputs   parameters, tokens s32 [batch prompt_len], pads s32 [batch], sampling's
 *   outputs  keys and values of each layer, next s32 [batch]: the token behind each prompt */
CT_MUST_USE ct_status *ct_prefill_build(const ct_model *model, const ct_generate_shape *shape,
                                        const ct_generate_opts *opts, ct_graph **out_graph);

/* A loop that ends after shape->steps tokens, or when all rows are finished.
 *
 *   inputs   parameters, keys and values (donated), next s32 [batch], pads s32 [batch], column s32: that of next,
 *            finished s32 [batch]: not 0 where no more is wanted, sampling's
 *   outputs  keys and values, next s32 [batch], chosen s32 [batch steps]: tokens behind the given one, -1 where the
 * loop has ended before */
CT_MUST_USE ct_status *ct_decode_build(const ct_model *model, const ct_generate_shape *shape,
                                       const ct_generate_opts *opts, ct_graph **out_graph);

#endif
