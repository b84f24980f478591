/* The inside of a Mosaic kernel under construction. */
#ifndef CT_KERNELS_MOSAIC_INTERNAL_H
#define CT_KERNELS_MOSAIC_INTERNAL_H

#include "base/macros.h"
#include "base/str.h"
#include "kernels/mosaic/mosaic.h"

enum { CT__MOSAIC_MAX_ARGS = 32 };

typedef enum ct__mosaic_stage { CT__GRID, CT__PREFETCH, CT__INPUT, CT__OUTPUT, CT__SCRATCH, CT__BODY } ct__mosaic_stage;

struct ct_mosaic {
    char *name;
    ct__mosaic_stage stage;
    ct_mosaic_value args[CT__MOSAIC_MAX_ARGS]; /* of all stages, in order */
    int num_args, counts[CT__BODY];            /* per stage */
    int64_t bounds[CT__MOSAIC_MAX_ARGS];       /* of the grid */
    bool parallel[CT__MOSAIC_MAX_ARGS];
    int next_id, depth; /* of ifs */
    ct_str *out;        /* where ops go: body, or a transform's own text */
    ct_str body, transforms, text;
    int64_t buffer_bytes, limit_bytes;
    double flops, transcendentals, bytes;
};

ct_mosaic_value ct__mosaic_new_value(ct_mosaic *k, ct_mosaic_kind kind, ct_mosaic_element element, int rank,
                                     const int64_t *sizes);
void ct__mosaic_print_type(ct_str *out, const ct_mosaic_value *value);
/* An op that has one result: name without the dialect's prefix, "arith.addf"; attributes "{..}" or "". */
ct_mosaic_value ct__mosaic_op(ct_mosaic *k, const char *name, int num_operands, const ct_mosaic_value *operands,
                              const char *attributes, ct_mosaic_value result_like);
int64_t ct__mosaic_element_bytes(ct_mosaic_element element);

#endif
