/* What a compiled program really sends: its collectives, as executed, with how often and how much.
 *
 *   entry -> while body (x turns) -> fusion -> all-reduce        every instruction is reached over what calls it
 *
 * Opcodes do not tell. A fusion that libtpu emits as a reduce-scatter holds an all-reduce of the whole array; a
 * reduce-scatter that it cannot do becomes an all-reduce with a slice behind it; an all-gather may become an all-reduce
 * of a buffer that is zero elsewhere; one on SparseCores hides in an asynchronous custom call. The kind here is what
 * runs.
 */
#ifndef CT_PJRT_COLLECTIVES_H
#define CT_PJRT_COLLECTIVES_H

#include "pjrt/hlo.h"

typedef enum ct_hlo_collective_kind {
    CT_HLO_COLLECTIVE_ALL_GATHER,
    CT_HLO_COLLECTIVE_REDUCE_SCATTER,
    CT_HLO_COLLECTIVE_ALL_REDUCE,
    CT_HLO_COLLECTIVE_ALL_TO_ALL,
    CT_HLO_COLLECTIVE_PERMUTE,
    CT_HLO_COLLECTIVE_NUM_KINDS
} ct_hlo_collective_kind;

typedef struct ct_hlo_collective {
    ct_hlo_collective_kind kind;
    const char *name;    /* of the instruction */
    const char *op_name; /* where our text has it from; that of its fusion or call if it has none */
    const char *emitter; /* the compiler's name for how it is done ("RotatedPincerEmitter"), "sparse core", or "" */
    bool is_nd;        /* parts of the array use the links of all its axes at once; else one ring through all devices */
    const char *waste; /* what a cheaper collective would have done: "all-gather", "reduce-scatter"; NULL: nothing */
    char dtype[16];
    bool is_async;         /* may run beside computation: a start and a done, or on SparseCores */
    const int64_t *groups; /* as in ct_hlo_instruction; pairs for a permute */
    size_t num_groups, group_size;
    int64_t num_elements;  /* of the larger of operand and result on one device */
    int64_t payload_bytes; /* the same in bytes */
    int64_t wire_bytes;    /* that one device sends, ring algorithm */
    int64_t times;         /* in one execution: the product of the enclosing loops' turns */
} ct_hlo_collective;

typedef struct ct_hlo_traffic {
    ct_hlo_collective *items; /* in the order met; an instruction of several operands gives one each */
    size_t num_items, capacity;
    size_t num_unknown_loops;   /* whose turns could not be found, taken as 1; with collectives or estimates inside */
    size_t num_unknown_senders; /* of them, those with collectives */
    double estimated_cycles;    /* the compiler's estimates of all fusions, turns counted */
} ct_hlo_traffic;

/* Fills out_traffic, in arena. Collectives over groups of one device are left out. num_devices is that of the program.
 */
void ct_hlo_traffic_find(ct_arena *arena, const ct_hlo_module *module, int64_t num_devices,
                         ct_hlo_traffic *out_traffic);

/* Appends the collectives of one instruction, times 1: what it does itself, starts or calls, but not what a loop turns.
 * An instruction that only waits has none. */
void ct_hlo_traffic_add(ct_arena *arena, const ct_hlo_computation *computation, const ct_hlo_instruction *instruction,
                        int64_t num_devices, ct_hlo_traffic *traffic);

/* The compiler's estimate of one execution, 0 where there is none. libtpu writes the largest integer where it has none
 * (for gathers and scatters, for example); that, a negative number and one beyond ten minutes are none either.
 * out_stated: what it says, whatever that is; may be NULL. */
double ct_hlo_estimated_cycles(const ct_hlo_instruction *instruction, double *out_stated);

const char *ct_hlo_collective_kind_name(ct_hlo_collective_kind kind); /* "all_gather" */

/* Along which axes of a row-major mesh the groups run: bit i for axis i. -1 if they are not the groups of any axes.
 * A permute's: the axes along which a source and its target differ. */
int ct_hlo_collective_axes(const ct_hlo_collective *collective, int num_axes, const int64_t *sizes);

/* The wire bytes of one execution by kind. */
void ct_hlo_traffic_sum(const ct_hlo_traffic *traffic, int64_t out_wire_bytes[CT_HLO_COLLECTIVE_NUM_KINDS]);

/* A line per collective: kind, dtype, bytes, times, mesh axes, emitter, source. */
void ct_hlo_traffic_print(const ct_hlo_traffic *traffic, int num_axes, const int64_t *sizes, ct_str *out);

/* How often a loop turns: from the compiler's own count, or from its condition (compare of a counter with a bound), the
 * counter's first value and its step. -1: not found. */
int64_t ct_hlo_loop_turns(const ct_hlo_instruction *loop);

#endif
