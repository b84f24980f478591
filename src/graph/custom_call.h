/* Calls of what a plugin knows by name: FFI handlers, Mosaic kernels, placement annotations. No derivative of their
 * own: stand them in a ct_custom_vjp.
 */
#ifndef CT_GRAPH_CUSTOM_CALL_H
#define CT_GRAPH_CUSTOM_CALL_H

#include <stdbool.h>

#include "graph/graph.h"

typedef enum ct_attribute_kind {
    CT_ATTRIBUTE_INT,    /* i64 */
    CT_ATTRIBUTE_FLOAT,  /* f32 */
    CT_ATTRIBUTE_DOUBLE, /* f64 */
    CT_ATTRIBUTE_BOOL,
    CT_ATTRIBUTE_STRING,
    CT_ATTRIBUTE_INTS, /* array<i64> */
    CT_ATTRIBUTE_RAW,  /* MLIR text as it is, in string: "dense<[[0, 1]]> : tensor<1x2xi64>" */
} ct_attribute_kind;

typedef struct ct_attribute {
    const char *name;
    ct_attribute_kind kind;
    int64_t integer; /* INT, BOOL; INTS: their count */
    double number;   /* FLOAT, DOUBLE */
    const char *string;
    const int64_t *integers;
} ct_attribute;

typedef struct ct_custom_call_opts {
    int api_version; /* 4: typed attributes (FFI); 1 or 2: config is a string; 0 means 4 */
    int num_attributes;
    const ct_attribute *attributes; /* api_version 4: the backend_config dictionary */
    const char *config;             /* api_version 1, 2 */
    int num_frontend_attributes;    /* mhlo.frontend_attributes: strings */
    const ct_attribute *frontend_attributes;
    bool has_side_effect; /* kept even when nothing uses its results */
    bool row_major;       /* operands and results lie in memory in the order of their axes */
} ct_custom_call_opts;

/* results_like: tensors whose types the results have (their values play no part). opts may be NULL; all is copied. */
void ct__custom_call(const char *loc, ct_graph *graph, const char *target, int num_operands, ct_tensor *const *operands,
                     int num_results, ct_tensor *const *results_like, const ct_custom_call_opts *opts,
                     ct_tensor **out_results);
#define ct_custom_call(graph, target, num_operands, operands, num_results, results_like, opts, out_results)            \
    ct__custom_call(CT_LOC, graph, target, num_operands, operands, num_results, results_like, opts, out_results)

#endif
