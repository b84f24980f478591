/* What the collectives of a sharded training step may be, and what is wrong with those that are not. */
#ifndef TESTS_COLLECTIVES_RULES_H
#define TESTS_COLLECTIVES_RULES_H

#include "pjrt/collectives.h"

typedef struct traffic_rules {
    int num_axes; /* of the mesh, row-major; the leading num_fsdp_axes are those that weights are sharded over */
    const int64_t *sizes;
    int num_fsdp_axes;
    /* Elements of each weight matrix that one device computes with (tensor parallel parts where there are any), and how
     * often it is gathered whole, and its gradient scattered, in one step over all layers. */
    const int64_t *weights, *gathers, *scatters;
    size_t num_weights;
    /* Along the other axes: elements of the activations that may be gathered and scattered, and how often in all. */
    int64_t activation_elements, num_activation_gathers, num_activation_scatters, num_activation_reduces;
    int64_t small_elements; /* what may be all-reduced: scalars, norm-sized gradients */
} traffic_rules;

/* Appends a line per problem; gives how many. */
size_t traffic_check(const ct_hlo_traffic *traffic, const traffic_rules *rules, ct_str *out_problems);

#endif
