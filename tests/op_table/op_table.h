/* One table of ops: a case lists its op, shapes and dtypes once and runs in four modes.
 *
 *   FORWARD  for each dtype: the program on the CPU plugin against plain C in double
 *   GRAD     f64: reverse mode with random cotangents against central differences
 *   SHARD    on eight devices, inputs (and gradients) split in several ways, against one device: localized, and by
 *            XLA's partitioner
 *   PRINT    the program's text against golden.mlir (CT_UPDATE_GOLDEN=1 writes it anew)
 */
#ifndef CT_TESTS_OP_TABLE_H
#define CT_TESTS_OP_TABLE_H

#include <math.h>

#include "autodiff/grad.h"
#include "base/testing.h"
#include "graph/ops.h"

enum { OP_MAX_INPUTS = 6, OP_MAX_OUTPUTS = 8 };

/* Sets of dtypes. */
#define D(name) (1u << CT_DTYPE_##name)
enum {
    FLOATS = D(F64) | D(F32) | D(BF16) | D(F16),
    WIDE = D(F64) | D(F32),
    INTS = D(S32) | D(S64) | D(U32) | D(S8) | D(U8),
    SIGNED = D(S32) | D(S64) | D(S8),
};

typedef struct op_input {
    const char *axes; /* with sizes; NULL ends the list */
    double low, high; /* values are uniform within; both 0: [-1, 1]; integers are whole and include high */
    ct_dtype dtype;   /* 0: that of the run */
} op_input;

typedef struct op_case {
    const char *name;
    unsigned dtypes; /* FORWARD; 0: none, for cases that are about gradients only */
    bool grad;
    op_input inputs[OP_MAX_INPUTS];
    int num_outputs;
    void (*build)(ct_graph *graph, ct_tensor *const *in, ct_tensor **out, int variant);
    int variant;                                                    /* passed to build */
    void (*reference)(const double *const *in, double *const *out); /* with dtypes */
    double tolerance;                                               /* times the dtype's own; 0 is 1 */
    const char *mesh;                                               /* runs on that many devices */
    bool print;                                                     /* has a golden text */
    bool no_shard;    /* too much like the case before, or an annotation of the partitioner itself */
    bool is_movement; /* moves data alone: SHARD is exact */
} op_case;

#define BUILD(fn)     static void fn(ct_graph *graph, ct_tensor *const *in, ct_tensor **out, int variant)
#define REFERENCE(fn) static void fn(const double *const *in, double *const *out)
#define UNUSED4       ((void)graph, (void)in, (void)out, (void)variant)

typedef struct op_family {
    const char *name;
    const op_case *cases;
    size_t count;
} op_family;

extern const op_family elementwise_cases, shape_cases, lookup_cases, contraction_cases, random_cases, control_cases,
    remat_cases, collective_cases, function_cases;

/* ---- a case's graph ---- */
int op_num_inputs(const op_case *c);
/* Inputs "x0", "x1", ... of dtype where the case has no other. */
ct_graph *op_build(const op_case *c, ct_dtype dtype, ct_tensor **in, ct_tensor **out);
void op_build_into(const op_case *c, ct_graph *graph, ct_dtype dtype, ct_tensor **in, ct_tensor **out);
void op_output_all(const op_case *c, ct_graph *graph, const char *prefix, int count, ct_tensor **tensors);
/* All f64 outputs times random numbers, summed; and its gradients with respect to the float inputs. */
ct_tensor *op_loss(const op_case *c, ct_graph *graph, ct_tensor *const *out);
CT_MUST_USE ct_status *op_gradients(const op_case *c, ct_graph *graph, ct_tensor *loss, ct_tensor *const *in,
                                    ct_tensor **out_gradients, int *out_count);
ct_array op_fill(const ct_tensor *type, const op_input *input, uint32_t stream);
double op_tolerance(ct_dtype dtype);

/* ---- SHARD (shard.c) ---- */
void op_check_sharded(const op_case *c, ct_dtype dtype);
/* Localized, inputs and results split at random in `count` ways; first numbers them. */
void op_check_sharded_at_random(const op_case *c, ct_dtype dtype, int first, int count);

/* ---- the device side ---- */
typedef struct op_program op_program;
void op_open(void);
void op_close(void);
/* Prints, compiles and keeps the graph's program; frees the graph. */
op_program *op_compile(ct_graph *graph, const char *what);
/* outputs are made; the caller frees them. Every device must give the same. */
void op_run(op_program *program, const ct_array *inputs, ct_array *outputs);
/* inputs[device * num_inputs + input], outputs[device * num_outputs + output]: each device's parts. */
void op_run_parts(op_program *program, const ct_array *inputs, ct_array *outputs);
int op_num_outputs(const op_program *program);
void op_program_free(op_program *program);

/* Numbers for tests: uniform in [0, 1) from a stream and an index. */
/* |a - b| <= tolerance (1 + |b|); NaNs and infinities are equal to themselves. */
bool op_near(double a, double b, double tolerance);
double op_uniform(uint32_t stream, uint32_t index);

/* Gradients of a scalar program's first output against central differences: graph has `num_inputs` inputs, all f64 ones
 * are perturbed; outputs are the loss, then one gradient per f64 input. Frees the graph. */
void op_check_gradients(ct_graph *graph, const ct_array *inputs, int num_inputs, double tolerance, const char *what);

#endif
