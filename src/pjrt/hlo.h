/* The optimized program, read: what the compiler made of our text, instruction by instruction.
 *
 *   module -> computations -> instructions, each with operands and called computations by pointer
 *
 * Everything lives in the arena given to ct_executable_hlo and is read-only.
 */
#ifndef CT_PJRT_HLO_H
#define CT_PJRT_HLO_H

#include <stdbool.h>

#include "base/str.h"
#include "pjrt/executable.h"

typedef struct ct_hlo_computation ct_hlo_computation;
typedef struct ct_hlo_instruction ct_hlo_instruction;

struct ct_hlo_instruction {
    const char *name;
    const char *opcode; /* "dot", "fusion", "all-reduce" */
    const char *shape;  /* "f32[4,512]{1,0}", tuples in parentheses; ":S(5)" after a layout is a memory space */
    const char
        *details; /* what matters of the opcode's own fields: "parameter=0", "target=name", "lhs_contracting={1}" */
    const char *op_name;        /* the name from our text's location; "" if none */
    const char *backend_config; /* JSON on most backends; "" if none */
    const ct_hlo_instruction **operands;
    size_t num_operands;
    const ct_hlo_computation **calls; /* of fusions and reductions; a loop's are its body, then its condition */
    size_t num_calls;
    /* The devices that a collective runs over, by their numbers in the program: group g is groups[g * group_size ...].
     * A permute's are pairs of source and target. No groups where there are none, or where all devices are meant. */
    const int64_t *groups;
    size_t num_groups, group_size;
    const char *direction; /* of a compare: "LT"; else "" */
    bool is_integer;       /* a constant: one integer */
    int64_t integer;
    int64_t index; /* a parameter's number, or which element get-tuple-element takes */
};

struct ct_hlo_computation {
    const char *name;
    ct_hlo_instruction *instructions; /* in the schedule's order where the compiler has one */
    size_t num_instructions;
    const ct_hlo_instruction *root;
};

typedef struct ct_hlo_module {
    const char *name;
    ct_hlo_computation *computations;
    size_t num_computations;
    const ct_hlo_computation *entry;
    bool is_scheduled; /* the instructions' order is the one in which they run */
} ct_hlo_module;

/* Errors: UNIMPLEMENTED for a plugin whose programs have another format; DATA_LOSS for one that cannot be read. */
CT_MUST_USE ct_status *ct_executable_hlo(const ct_executable *executable, ct_arena *arena, ct_hlo_module **out_module);

/* Appends the module as text, in the manner of XLA's own dumps. Not meant to be read back. */
void ct_hlo_print(const ct_hlo_module *module, ct_str *out);

/* Bytes and element type ("bf16") of a shape's text; a tuple's bytes are the sum of its parts', its type is its first
 * part's. Types of less than a byte count as one. */
int64_t ct_hlo_shape_bytes(const char *shape, char out_type[16]);

/* How many instructions have the opcode, fused ones included. */
size_t ct_hlo_count(const ct_hlo_module *module, const char *opcode);

/* Fills groups of to from a collective's message (an Xla__HloInstructionProto). Internal. */
CT_MUST_USE ct_status *ct__hlo_read_groups(ct_arena *arena, const void *message, ct_hlo_instruction *to);

/* Reads bytes of an HloModuleProtoWithConfig, an HloProto (which has the module in the same field) or an
 * HloModuleProto. Internal. */
CT_MUST_USE ct_status *ct__hlo_read(ct_arena *arena, const void *bytes, size_t size_bytes, ct_hlo_module **out_module);

#endif
