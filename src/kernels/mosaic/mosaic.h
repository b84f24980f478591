/* A TPU kernel as text: generic `stable_mosaic` operations, version 15, written op by op from C, and the
 * tpu_custom_call that carries it. About forty ops; the interpreter of tests/mosaic runs the same text on the host.
 *
 *   ct_mosaic *k = ct_mosaic_new("double");
 *   ct_mosaic_value i = ct_mosaic_grid(k, 4, true);                               grid, outermost first
 *   ct_mosaic_value table = ct_mosaic_prefetch(k, 4);                             i32 scalars, in SMEM before all else
 *   ct_mosaic_value x = ct_mosaic_input(k, CT_MOSAIC_F32, 2, (int64_t[]){8, 128}, block_of, &context);
 *   ct_mosaic_value y = ct_mosaic_output(k, CT_MOSAIC_F32, 2, (int64_t[]){8, 128}, block_of, &context);
 *   ct_mosaic_value sum = ct_mosaic_scratch(k, CT_MOSAIC_F32, 2, (int64_t[]){8, 128});
 *   ct_mosaic_value v = ct_mosaic_load(k, x, NULL, 0, 8, 0, 128);                 from here on: the body, once per step
 *   ct_mosaic_store(k, ct_mosaic_mul(k, v, ct_mosaic_float(k, 2)), y, NULL, 0, 0);
 *   ct_mosaic_call(k, 2, (ct_tensor *[]){table, x}, 1, (ct_tensor *[]){x}, out);  frees k
 *
 * Declarations stand in that order, then the body. The grid runs with its last index fastest; for every step the
 * windows hold the blocks of their arrays that their transforms name (in blocks, not elements), fetched ahead. An
 * output's block goes back to memory when its window moves on, and must not be visited again afterwards. The last block
 * of a dim may reach beyond its array: there a window reads anything (NaN too) and writes nothing. Scratch keeps its
 * contents from step to step, but not across a parallel index.
 *
 * Values are SSA names with types. Two-dimensional vectors and scalars do; builders infer types, and bring a scalar, a
 * row or a column to the shape of the other operand. Mistakes in a kernel are bugs and abort. A kernel belongs to one
 * thread.
 */
#ifndef CT_KERNELS_MOSAIC_H
#define CT_KERNELS_MOSAIC_H

#include "graph/graph.h"

typedef struct ct_mosaic ct_mosaic;

typedef enum ct_mosaic_element {
    CT_MOSAIC_I1,
    CT_MOSAIC_I32,
    CT_MOSAIC_INDEX,
    CT_MOSAIC_BF16,
    CT_MOSAIC_F32,
} ct_mosaic_element;

typedef enum ct_mosaic_kind { CT_MOSAIC_SCALAR, CT_MOSAIC_VECTOR, CT_MOSAIC_VMEM, CT_MOSAIC_SMEM } ct_mosaic_kind;

enum { CT_MOSAIC_MAX_RANK = 4, CT_MOSAIC_LANES = 128 };

typedef struct ct_mosaic_value {
    int id;
    ct_mosaic_kind kind;
    ct_mosaic_element element;
    int rank;
    int64_t sizes[CT_MOSAIC_MAX_RANK];
} ct_mosaic_value;

ct_mosaic *ct_mosaic_new(const char *name);
void ct_mosaic_free(ct_mosaic *k);

/* ---- declarations ---- */

/* An index of the grid, i32. parallel: its steps may run on several cores. */
ct_mosaic_value ct_mosaic_grid(ct_mosaic *k, int64_t size, bool parallel);
ct_mosaic_value ct_mosaic_prefetch(ct_mosaic *k, int64_t count);

/* Which block of its array a window shows: sets one i32 per dim, from grid indices and prefetched scalars alone. */
typedef void ct_mosaic_transform(ct_mosaic *k, const void *context, ct_mosaic_value *out_blocks);
/* The transform is called at once. */
ct_mosaic_value ct_mosaic_input(ct_mosaic *k, ct_mosaic_element element, int rank, const int64_t *sizes,
                                ct_mosaic_transform *transform, const void *context);
ct_mosaic_value ct_mosaic_output(ct_mosaic *k, ct_mosaic_element element, int rank, const int64_t *sizes,
                                 ct_mosaic_transform *transform, const void *context);
ct_mosaic_value ct_mosaic_scratch(ct_mosaic *k, ct_mosaic_element element, int rank, const int64_t *sizes);

/* Vector memory of windows (two buffers each) and scratch, in the tiles that a TPU keeps them in. */
int64_t ct_mosaic_buffer_bytes(const ct_mosaic *k);

/* ---- the body: scalars and constants ---- */
ct_mosaic_value ct_mosaic_int(ct_mosaic *k, int64_t value);  /* i32 */
ct_mosaic_value ct_mosaic_float(ct_mosaic *k, double value); /* f32 */
ct_mosaic_value ct_mosaic_full(ct_mosaic *k, ct_mosaic_element element, int64_t rows, int64_t columns, double value);
ct_mosaic_value ct_mosaic_scalar(ct_mosaic *k, ct_mosaic_value prefetched, ct_mosaic_value index); /* i32 */

/* ---- element by element ---- */
ct_mosaic_value ct_mosaic_add(ct_mosaic *k, ct_mosaic_value a, ct_mosaic_value b);
ct_mosaic_value ct_mosaic_sub(ct_mosaic *k, ct_mosaic_value a, ct_mosaic_value b);
ct_mosaic_value ct_mosaic_mul(ct_mosaic *k, ct_mosaic_value a, ct_mosaic_value b);
ct_mosaic_value ct_mosaic_div(ct_mosaic *k, ct_mosaic_value a, ct_mosaic_value b); /* of i32: towards zero */
ct_mosaic_value ct_mosaic_max(ct_mosaic *k, ct_mosaic_value a, ct_mosaic_value b);
ct_mosaic_value ct_mosaic_min(ct_mosaic *k, ct_mosaic_value a, ct_mosaic_value b); /* i32 */
ct_mosaic_value ct_mosaic_and(ct_mosaic *k, ct_mosaic_value a, ct_mosaic_value b); /* i1; one may be {0}: the other */

typedef enum ct_mosaic_order { CT_MOSAIC_EQ, CT_MOSAIC_NE, CT_MOSAIC_LT, CT_MOSAIC_LE } ct_mosaic_order;
ct_mosaic_value ct_mosaic_compare(ct_mosaic *k, ct_mosaic_order order, ct_mosaic_value a, ct_mosaic_value b); /* i1 */
ct_mosaic_value ct_mosaic_select(ct_mosaic *k, ct_mosaic_value which, ct_mosaic_value a, ct_mosaic_value b);

ct_mosaic_value ct_mosaic_exp2(ct_mosaic *k, ct_mosaic_value x);
ct_mosaic_value ct_mosaic_log(ct_mosaic *k, ct_mosaic_value x);
ct_mosaic_value ct_mosaic_tanh(ct_mosaic *k, ct_mosaic_value x);
/* bf16 and f32 into each other; i1 to i32, i32 to index. x itself when it is of that element. */
ct_mosaic_value ct_mosaic_convert(ct_mosaic *k, ct_mosaic_value x, ct_mosaic_element element);

/* ---- shapes ---- */
/* A scalar, a row [1 columns] or a column [rows 1] in all rows and columns. */
ct_mosaic_value ct_mosaic_broadcast(ct_mosaic *k, ct_mosaic_value x, int64_t rows, int64_t columns);
/* The same where all columns of x [rows 128] are equal: [rows columns], made of whole tiles. */
ct_mosaic_value ct_mosaic_widen(ct_mosaic *k, ct_mosaic_value x, int64_t columns);
ct_mosaic_value ct_mosaic_slice(ct_mosaic *k, ct_mosaic_value x, int64_t rows, int64_t columns); /* the first ones */
ct_mosaic_value ct_mosaic_transpose(ct_mosaic *k, ct_mosaic_value x);
ct_mosaic_value ct_mosaic_iota(ct_mosaic *k, int64_t rows, int64_t columns, int dim); /* i32 */
ct_mosaic_value ct_mosaic_row_max(ct_mosaic *k, ct_mosaic_value x);                   /* [rows 1] */
ct_mosaic_value ct_mosaic_row_sum(ct_mosaic *k, ct_mosaic_value x);                   /* [rows 1] */
ct_mosaic_value ct_mosaic_column_max(ct_mosaic *k, ct_mosaic_value x);                /* [1 columns] */
ct_mosaic_value ct_mosaic_column_sum(ct_mosaic *k, ct_mosaic_value x);                /* [1 columns] */

/* f32 product that sums over dim_a of a and dim_b of b (0 or 1); operands of f32 are multiplied in full precision. */
ct_mosaic_value ct_mosaic_matmul(ct_mosaic *k, ct_mosaic_value a, int dim_a, ct_mosaic_value b, int dim_b);

/* ---- memory ---- */
/* The tile of a window or of scratch that begins at (row, column) of the last two dims; leading: i32 indices of the
 * dims before them, NULL for zeros. */
ct_mosaic_value ct_mosaic_load(ct_mosaic *k, ct_mosaic_value memory, const ct_mosaic_value *leading, int64_t row,
                               int64_t num_rows, int64_t column, int64_t num_columns);
void ct_mosaic_store(ct_mosaic *k, ct_mosaic_value x, ct_mosaic_value memory, const ct_mosaic_value *leading,
                     int64_t row, int64_t column);

/* What stands between runs only where condition (scalar i1) holds. Results leave through memory. */
void ct_mosaic_if(ct_mosaic *k, ct_mosaic_value condition);
void ct_mosaic_end(ct_mosaic *k);

/* ---- the call ---- */

/* For XLA's schedule. */
void ct_mosaic_cost(ct_mosaic *k, double flops, double transcendentals, double bytes);
/* The vector memory that the kernel may take; 0: libtpu's default (16 MiB and more). */
void ct_mosaic_limit(ct_mosaic *k, int64_t bytes);

/* The module; lives as long as k, which takes no further ops. */
const char *ct_mosaic_text(ct_mosaic *k);

/* Calls k on arrays of the device at hand: inside a manual region over all mesh axes, or in a program of one device.
 * operands: prefetched scalars s32[count], then inputs; results_like: the outputs' types. Frees k. */
void ct__mosaic_call(const char *loc, ct_mosaic *k, int num_operands, ct_tensor *const *operands, int num_results,
                     ct_tensor *const *results_like, ct_tensor **out_results);
#define ct_mosaic_call(k, num_operands, operands, num_results, results_like, out_results)                              \
    ct__mosaic_call(CT_LOC, k, num_operands, operands, num_results, results_like, out_results)

/* ---- sizes of blocks ---- */

int64_t ct_mosaic_round_up(int64_t value, int64_t to);
/* A block of a dim of len elements, in whole lanes: asked (cut to the dim), or where that is 0 one of as many blocks as
 * tuned gives, but of equal sizes, so that little is padding. */
int64_t ct_mosaic_fit_block(int64_t asked, int64_t tuned, int64_t len);
/* The greatest divisor of size, in lanes, that is no greater than wanted (one lane group at least); size itself where
 * it is not made of lanes. */
int64_t ct_mosaic_divide_block(int64_t size, int64_t wanted);

/* The vector memory of a core that a kernel may take, in bytes; an unknown chip (NULL) has the least of them. */
int64_t ct_mosaic_chip_bytes(const char *chip);

#endif
