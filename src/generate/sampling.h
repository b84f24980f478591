/* The choice of a token from logits, in the program. Filters are those of transformers' generate(), in its order:
 * temperature, top-k, top-p, min-p. Tokens as likely as the last one that a filter keeps are kept, too. */
#ifndef CT_GENERATE_SAMPLING_H
#define CT_GENERATE_SAMPLING_H

#include "base/status.h"
#include "graph/graph.h"

typedef struct ct_sampling {
    double temperature; /* logits are divided by it; 0: the likeliest token each time, and nothing below counts */
    int64_t top_k;      /* the k likeliest; 0: all */
    double top_p;       /* the likeliest that together reach this probability; 1: all */
    double min_p;       /* those at least this part as likely as the likeliest; 0: all */
    uint64_t seed;
} ct_sampling;

/* Errors: INVALID_ARGUMENT naming the setting, what it may be and what it is. */
CT_MUST_USE ct_status *ct_sampling_check(const ct_sampling *sampling);

/* The settings and keys as a program takes them. One key per row; all NULL when tokens are the likeliest ones. */
typedef struct ct_sampling_inputs {
    ct_tensor *key0, *key1;                 /* u32 [batch] */
    ct_tensor *temperature, *top_p, *min_p; /* f32 scalars */
} ct_sampling_inputs;
enum { CT_SAMPLING_INPUTS = 5 };

/* Declares them, in this order. batch is a declared axis. */
ct_sampling_inputs ct_sampling_declare(ct_graph *graph, const ct_sampling *sampling);

/* logits [batch vocab], positions s32 [batch] of the tokens to choose -> s32 [batch]. What is drawn hangs on key,
 * position and logits alone. */
ct_tensor *ct_sampling_choose(const ct_sampling *sampling, const ct_sampling_inputs *inputs, ct_tensor *logits,
                              ct_tensor *positions);

/* The logits [batch vocab], f32, as the filters leave them: divided by the temperature, -inf where left out. */
ct_tensor *ct_sampling_filter(const ct_sampling *sampling, const ct_sampling_inputs *inputs, ct_tensor *logits);

#endif
