/* A parsed Mosaic module: what the parser makes and the runner walks. */
#ifndef CT_TESTS_MOSAIC_MODULE_H
#define CT_TESTS_MOSAIC_MODULE_H

#include <stdbool.h>

#include "interpreter.h"

typedef enum mosaic_element { ELEMENT_I1, ELEMENT_I32, ELEMENT_INDEX, ELEMENT_BF16, ELEMENT_F32 } mosaic_element;
typedef enum mosaic_kind { KIND_SCALAR, KIND_VECTOR, KIND_VMEM, KIND_SMEM } mosaic_kind;

enum { MAX_RANK = 4, MAX_ATTRIBUTES = 8, MAX_NUMBERS = 8 };

typedef struct mosaic_type {
    mosaic_kind kind;
    mosaic_element element;
    int rank;
    int64_t sizes[MAX_RANK];
} mosaic_type;

/* Numbers of a value: floats (bf16 ones are rounded) or integers; of memory, which of them have been written. */
typedef struct mosaic_value {
    mosaic_type type;
    int64_t count;
    float *floats;
    int32_t *integers;
    bool *written;
} mosaic_value;

typedef struct mosaic_attribute {
    const char *name, *text; /* text as it stands */
} mosaic_attribute;

typedef struct mosaic_op mosaic_op;
typedef ct_status *mosaic_execute(mosaic_module *module, const mosaic_op *op);

struct mosaic_op {
    const char *name; /* without "stable_mosaic." */
    int line;
    int num_operands;
    mosaic_value **operands;
    mosaic_value *result; /* NULL: none */
    int num_attributes;
    mosaic_attribute attributes[MAX_ATTRIBUTES];
    int64_t numbers[MAX_NUMBERS]; /* of the attributes, as the op's check has understood them */
    mosaic_execute *execute;
    mosaic_op *body, *next; /* scf.if: the ops of its first region */
};

typedef struct mosaic_function {
    const char *name;
    int num_args, num_results;
    mosaic_value **args;
    mosaic_value **results; /* of func.return */
    mosaic_op *body;
    int num_attributes;
    mosaic_attribute attributes[MAX_ATTRIBUTES];
    struct mosaic_function *next;
} mosaic_function;

typedef struct mosaic_window {
    const mosaic_function *transform;
    int64_t sizes[MAX_RANK];
    bool is_shown;
    int64_t blocks[MAX_RANK]; /* shown, when is_shown */
    bool *visited;            /* per block of the array */
    int64_t num_fetches;
} mosaic_window;

enum { MAX_GRID = 6, MAX_WINDOWS = 24 };

struct mosaic_module {
    ct_arena *arena;
    mosaic_function *functions; /* the kernel first */
    int num_grid, num_prefetched, num_windows, num_scratch;
    int64_t bounds[MAX_GRID];
    bool parallel[MAX_GRID];
    mosaic_window windows[MAX_WINDOWS];
    int64_t num_steps, num_busy_steps;
    double num_flops;
    bool is_busy;
};

/* The attribute's text; NULL: there is none. */
const char *mosaic_attribute_find(const mosaic_attribute *attributes, int count, const char *name);
/* "array<i64: 1, 2>", "[1, 2]", "3 : i64": the integers in it, at most max; their count. */
int mosaic_attribute_numbers(const char *text, int64_t *out_numbers, int max);

bool mosaic_same_type(const mosaic_type *a, const mosaic_type *b);
bool mosaic_is_float(mosaic_element element);
int64_t mosaic_count(const mosaic_type *type);

/* Checks an op's types and attributes, sets execute and numbers. Errors without the line, which the caller adds. */
CT_MUST_USE ct_status *mosaic_check(mosaic_op *op);

CT_MUST_USE ct_status *mosaic_execute_all(mosaic_module *module, const mosaic_op *first);

#endif
