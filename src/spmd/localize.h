/* From the logical graph to the program of one device: every tensor gets a sharding, every op runs on its parts, and
 * what must move moves by collectives that stand in the program.
 *
 *   main:  inputs (whole) -> sdy.manual_computation over all mesh axes { local ops, collectives } -> outputs (whole)
 */
#ifndef CT_SPMD_LOCALIZE_H
#define CT_SPMD_LOCALIZE_H

#include "spmd/parallel.h"

typedef struct ct_collective_record {
    const char *kind;      /* "all_gather", "reduce_scatter", "all_reduce", "all_to_all", "collective_permute" */
    const char *mesh_axes; /* "dp_shard_0" */
    const char *what;      /* the logical tensor: "bf16[heads=32 head_dim=128 dim=4096]" */
    const char *why;       /* "use", "gradient", "point residual", "operand of stablehlo.dot_general", ... */
    const char *loc, *scope;
    ct_dtype dtype;
    int64_t bytes;      /* of the larger of operand and result on one device */
    int64_t wire_bytes; /* that one device sends, ring algorithm */
    int64_t times;      /* per step: turns of the enclosing scans */
} ct_collective_record;

typedef struct ct_localize_report {
    ct_arena arena;
    ct_collective_record *collectives;
    int num_collectives, capacity;
} ct_localize_report;

void ct_localize_report_deinit(ct_localize_report *report);

/* Rewrites the graph in place; inputs and outputs have been given shardings (ct_parallel_set_input, _output), those
 * without are replicated. report may be NULL. Errors: the graph's own. */
CT_MUST_USE ct_status *ct_localize(ct_graph *graph, ct_localize_report *out_report);

#endif
