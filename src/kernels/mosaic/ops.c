/* The ops of a kernel's body: what they print, and what they infer. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/mosaic/internal.h"

static bool is_float(ct_mosaic_value x)
{
    return x.element == CT_MOSAIC_F32 || x.element == CT_MOSAIC_BF16;
}

static ct_mosaic_value vector_type(ct_mosaic_element element, int64_t rows, int64_t columns)
{
    return (ct_mosaic_value){.kind = CT_MOSAIC_VECTOR, .element = element, .rank = 2, .sizes = {rows, columns}};
}

static ct_mosaic_value with_element(ct_mosaic_value type, ct_mosaic_element element)
{
    type.element = element;
    return type;
}

static void print_operands(ct_str *out, int count, const ct_mosaic_value *operands)
{
    ct_str_append_char(out, '(');
    for (int i = 0; i < count; i++) {
        CT_ASSERT(operands[i].id > 0);
        ct_str_printf(out, "%s%%%d", i ? ", " : "", operands[i].id);
    }
    ct_str_append_char(out, ')');
}

static void print_types(ct_str *out, int count, const ct_mosaic_value *operands)
{
    ct_str_append(out, " : (");
    for (int i = 0; i < count; i++) {
        if (i) ct_str_append(out, ", ");
        ct__mosaic_print_type(out, &operands[i]);
    }
    ct_str_append_char(out, ')');
}

ct_mosaic_value ct__mosaic_op(ct_mosaic *k, const char *name, int num_operands, const ct_mosaic_value *operands,
                              const char *attributes, ct_mosaic_value type)
{
    CT_ASSERT(!k->text.length); /* the text has been given out */
    if (k->out == &k->body) k->stage = CT__BODY;
    ct_mosaic_value result = ct__mosaic_new_value(k, type.kind, type.element, type.rank, type.sizes);
    ct_str_printf(k->out, "%%%d = \"stable_mosaic.%s\"", result.id, name);
    print_operands(k->out, num_operands, operands);
    if (attributes[0]) ct_str_printf(k->out, " {%s}", attributes);
    print_types(k->out, num_operands, operands);
    ct_str_append(k->out, " -> ");
    ct__mosaic_print_type(k->out, &result);
    ct_str_append_char(k->out, '\n');
    return result;
}

/* ---- constants ---- */

static void format_number(char out_text[40], ct_mosaic_element element, double value)
{
    if (element == CT_MOSAIC_F32 && isinf(value))
        snprintf(out_text, 40, "%s", value < 0 ? "0xFF800000" : "0x7F800000");
    else if (element == CT_MOSAIC_F32)
        snprintf(out_text, 40, "%.9e", value);
    else
        snprintf(out_text, 40, "%lld", (long long)value);
}

static ct_mosaic_value constant(ct_mosaic *k, ct_mosaic_value type, double value)
{
    char number[40];
    format_number(number, type.element, value);
    ct_str attributes, name;
    ct_str_init(&attributes);
    ct_str_init(&name);
    ct__mosaic_print_type(&name, &type);
    bool is_scalar = type.kind == CT_MOSAIC_SCALAR;
    ct_str_printf(&attributes, "value = %s%s%s : %s", is_scalar ? "" : "dense<", number, is_scalar ? "" : ">",
                  name.data);
    ct_mosaic_value result = ct__mosaic_op(k, "arith.constant", 0, NULL, attributes.data, type);
    ct_str_deinit(&attributes);
    ct_str_deinit(&name);
    return result;
}

ct_mosaic_value ct_mosaic_int(ct_mosaic *k, int64_t value)
{
    CT_ASSERT(value >= INT32_MIN && value <= INT32_MAX);
    return constant(k, (ct_mosaic_value){.element = CT_MOSAIC_I32}, (double)value);
}

ct_mosaic_value ct_mosaic_float(ct_mosaic *k, double value)
{
    return constant(k, (ct_mosaic_value){.element = CT_MOSAIC_F32}, value);
}

static ct_mosaic_value index_constant(ct_mosaic *k, int64_t value)
{
    return constant(k, (ct_mosaic_value){.element = CT_MOSAIC_INDEX}, (double)value);
}

ct_mosaic_value ct_mosaic_full(ct_mosaic *k, ct_mosaic_element element, int64_t rows, int64_t columns, double value)
{
    CT_ASSERT(element == CT_MOSAIC_F32 || element == CT_MOSAIC_I32);
    return constant(k, vector_type(element, rows, columns), value);
}

ct_mosaic_value ct_mosaic_scalar(ct_mosaic *k, ct_mosaic_value prefetched, ct_mosaic_value index)
{
    CT_ASSERT(prefetched.kind == CT_MOSAIC_SMEM);
    ct_mosaic_value at = ct_mosaic_convert(k, index, CT_MOSAIC_INDEX);
    return ct__mosaic_op(k, "memref.load", 2, (ct_mosaic_value[]){prefetched, at}, "",
                         (ct_mosaic_value){.element = CT_MOSAIC_I32});
}

/* ---- element by element ---- */

ct_mosaic_value ct_mosaic_broadcast(ct_mosaic *k, ct_mosaic_value x, int64_t rows, int64_t columns)
{
    bool is_vector = x.kind == CT_MOSAIC_VECTOR;
    if (is_vector && x.sizes[0] == rows && x.sizes[1] == columns) return x;
    if (is_vector && ((x.sizes[0] != 1 && x.sizes[0] != rows) || (x.sizes[1] != 1 && x.sizes[1] != columns)))
        CT_BUG("%s: [%lld %lld] cannot be broadcast to [%lld %lld]", k->name, (long long)x.sizes[0],
               (long long)x.sizes[1], (long long)rows, (long long)columns);
    return ct__mosaic_op(k, "vector.broadcast", 1, &x, "", vector_type(x.element, rows, columns));
}

static void match(ct_mosaic *k, ct_mosaic_value *a, ct_mosaic_value *b)
{
    if (a->element != b->element) CT_BUG("%s: operands of two element types", k->name);
    if (a->kind == CT_MOSAIC_SCALAR && b->kind == CT_MOSAIC_SCALAR) return;
    CT_ASSERT(a->kind <= CT_MOSAIC_VECTOR && b->kind <= CT_MOSAIC_VECTOR);
    int64_t rows = CT_MAX(a->sizes[0], b->sizes[0]), columns = CT_MAX(a->sizes[1], b->sizes[1]);
    *a = ct_mosaic_broadcast(k, *a, rows, columns);
    *b = ct_mosaic_broadcast(k, *b, rows, columns);
}

static const char FASTMATH[] = "fastmath = #arith.fastmath<none>",
                  OVERFLOW_FLAGS[] = "overflowFlags = #arith.overflow<none>";

/* of_float or of_int may be NULL: there is no such op here. */
static ct_mosaic_value binary(ct_mosaic *k, const char *of_float, const char *of_int, const char *int_attributes,
                              ct_mosaic_value a, ct_mosaic_value b)
{
    match(k, &a, &b);
    const char *name = is_float(a) ? of_float : of_int;
    CT_ASSERT(name);
    return ct__mosaic_op(k, name, 2, (ct_mosaic_value[]){a, b}, is_float(a) ? FASTMATH : int_attributes, a);
}

ct_mosaic_value ct_mosaic_add(ct_mosaic *k, ct_mosaic_value a, ct_mosaic_value b)
{
    return binary(k, "arith.addf", "arith.addi", OVERFLOW_FLAGS, a, b);
}

ct_mosaic_value ct_mosaic_sub(ct_mosaic *k, ct_mosaic_value a, ct_mosaic_value b)
{
    return binary(k, "arith.subf", "arith.subi", OVERFLOW_FLAGS, a, b);
}

ct_mosaic_value ct_mosaic_mul(ct_mosaic *k, ct_mosaic_value a, ct_mosaic_value b)
{
    return binary(k, "arith.mulf", "arith.muli", OVERFLOW_FLAGS, a, b);
}

ct_mosaic_value ct_mosaic_div(ct_mosaic *k, ct_mosaic_value a, ct_mosaic_value b)
{
    return binary(k, "arith.divf", "arith.divsi", "", a, b);
}

ct_mosaic_value ct_mosaic_max(ct_mosaic *k, ct_mosaic_value a, ct_mosaic_value b)
{
    return binary(k, "arith.maximumf", "arith.maxsi", "", a, b);
}

ct_mosaic_value ct_mosaic_min(ct_mosaic *k, ct_mosaic_value a, ct_mosaic_value b)
{
    return binary(k, NULL, "arith.minsi", "", a, b);
}

ct_mosaic_value ct_mosaic_and(ct_mosaic *k, ct_mosaic_value a, ct_mosaic_value b)
{
    if (!a.id) return b;
    if (!b.id) return a;
    CT_ASSERT(a.element == CT_MOSAIC_I1);
    return binary(k, NULL, "arith.andi", "", a, b);
}

ct_mosaic_value ct_mosaic_compare(ct_mosaic *k, ct_mosaic_order order, ct_mosaic_value a, ct_mosaic_value b)
{
    /* MLIR's numbers: signed integers, then ordered floats (not equal: unordered, true of NaN) */
    static const int of_int[] = {0, 1, 2, 3}, of_float[] = {1, 13, 4, 5};
    match(k, &a, &b);
    char attributes[96];
    if (is_float(a))
        snprintf(attributes, sizeof(attributes), "%s, predicate = %d : i64", FASTMATH, of_float[order]);
    else
        snprintf(attributes, sizeof(attributes), "predicate = %d : i64", of_int[order]);
    return ct__mosaic_op(k, is_float(a) ? "arith.cmpf" : "arith.cmpi", 2, (ct_mosaic_value[]){a, b}, attributes,
                         with_element(a, CT_MOSAIC_I1));
}

ct_mosaic_value ct_mosaic_select(ct_mosaic *k, ct_mosaic_value which, ct_mosaic_value a, ct_mosaic_value b)
{
    CT_ASSERT(which.element == CT_MOSAIC_I1);
    match(k, &a, &b);
    if (which.kind == CT_MOSAIC_VECTOR) {
        a = ct_mosaic_broadcast(k, a, which.sizes[0], which.sizes[1]);
        b = ct_mosaic_broadcast(k, b, which.sizes[0], which.sizes[1]);
    }
    return ct__mosaic_op(k, "arith.select", 3, (ct_mosaic_value[]){which, a, b}, "", a);
}

static ct_mosaic_value unary(ct_mosaic *k, const char *name, ct_mosaic_value x)
{
    CT_ASSERT(x.element == CT_MOSAIC_F32);
    return ct__mosaic_op(k, name, 1, &x, FASTMATH, x);
}

ct_mosaic_value ct_mosaic_exp2(ct_mosaic *k, ct_mosaic_value x)
{
    return unary(k, "math.exp2", x);
}

ct_mosaic_value ct_mosaic_log(ct_mosaic *k, ct_mosaic_value x)
{
    return unary(k, "math.log", x);
}

ct_mosaic_value ct_mosaic_tanh(ct_mosaic *k, ct_mosaic_value x)
{
    return unary(k, "math.tanh", x);
}

ct_mosaic_value ct_mosaic_convert(ct_mosaic *k, ct_mosaic_value x, ct_mosaic_element element)
{
    if (x.element == element) return x;
    const char *name = x.element == CT_MOSAIC_BF16 && element == CT_MOSAIC_F32    ? "arith.extf"
                       : x.element == CT_MOSAIC_F32 && element == CT_MOSAIC_BF16  ? "arith.truncf"
                       : x.element == CT_MOSAIC_I1 && element == CT_MOSAIC_I32    ? "arith.extui"
                       : x.element == CT_MOSAIC_I32 && element == CT_MOSAIC_INDEX ? "arith.index_cast"
                                                                                  : NULL;
    CT_ASSERT(name);
    return ct__mosaic_op(k, name, 1, &x, "", with_element(x, element));
}

/* ---- shapes ---- */

static ct_mosaic_value reshape(ct_mosaic *k, ct_mosaic_value x, int rank, const int64_t *sizes)
{
    ct_mosaic_value type = {.kind = CT_MOSAIC_VECTOR, .element = x.element, .rank = rank};
    memcpy(type.sizes, sizes, (size_t)rank * sizeof(*sizes));
    return ct__mosaic_op(k, "vector.shape_cast", 1, &x, "", type);
}

ct_mosaic_value ct_mosaic_slice(ct_mosaic *k, ct_mosaic_value x, int64_t rows, int64_t columns)
{
    CT_ASSERT(rows <= x.sizes[0] && columns <= x.sizes[1]);
    if (rows == x.sizes[0] && columns == x.sizes[1]) return x;
    char attributes[128];
    snprintf(attributes, sizeof(attributes), "offsets = [0, 0], sizes = [%lld, %lld], strides = [1, 1]",
             (long long)rows, (long long)columns);
    return ct__mosaic_op(k, "vector.extract_strided_slice", 1, &x, attributes, vector_type(x.element, rows, columns));
}

ct_mosaic_value ct_mosaic_widen(ct_mosaic *k, ct_mosaic_value x, int64_t columns)
{
    CT_ASSERT(x.sizes[1] == CT_MOSAIC_LANES);
    ct_mosaic_value copies[64];
    int64_t count = (columns + CT_MOSAIC_LANES - 1) / CT_MOSAIC_LANES;
    CT_ASSERT(count <= (int64_t)CT_COUNT(copies));
    for (int64_t i = 0; i < count; i++) copies[i] = x;
    if (count > 1)
        x = ct__mosaic_op(k, "tpu.concatenate", (int)count, copies, "dimension = 1 : i32",
                          vector_type(x.element, x.sizes[0], count * CT_MOSAIC_LANES));
    return ct_mosaic_slice(k, x, x.sizes[0], columns);
}

ct_mosaic_value ct_mosaic_transpose(ct_mosaic *k, ct_mosaic_value x)
{
    return ct__mosaic_op(k, "tpu.transpose", 1, &x, "permutation = array<i64: 1, 0>",
                         vector_type(x.element, x.sizes[1], x.sizes[0]));
}

ct_mosaic_value ct_mosaic_iota(ct_mosaic *k, int64_t rows, int64_t columns, int dim)
{
    return ct__mosaic_op(k, "tpu.iota", 0, NULL, dim ? "dimensions = array<i32: 1>" : "dimensions = array<i32: 0>",
                         vector_type(CT_MOSAIC_I32, rows, columns));
}

static ct_mosaic_value reduce(ct_mosaic *k, const char *kind, double first, ct_mosaic_value x, int dim)
{
    CT_ASSERT(x.element == CT_MOSAIC_F32);
    ct_mosaic_value type = {.kind = CT_MOSAIC_VECTOR, .element = x.element, .rank = 1, .sizes = {x.sizes[1 - dim]}};
    ct_mosaic_value start = constant(k, type, first);
    char attributes[96];
    snprintf(attributes, sizeof(attributes), "kind = #vector.kind<%s>, reduction_dims = array<i64: %d>", kind, dim);
    ct_mosaic_value reduced =
        ct__mosaic_op(k, "vector.multi_reduction", 2, (ct_mosaic_value[]){x, start}, attributes, type);
    return reshape(k, reduced, 2, dim ? (int64_t[]){x.sizes[0], 1} : (int64_t[]){1, x.sizes[1]});
}

ct_mosaic_value ct_mosaic_row_max(ct_mosaic *k, ct_mosaic_value x)
{
    return reduce(k, "maximumf", -INFINITY, x, 1);
}

ct_mosaic_value ct_mosaic_row_sum(ct_mosaic *k, ct_mosaic_value x)
{
    return reduce(k, "add", 0, x, 1);
}

ct_mosaic_value ct_mosaic_column_max(ct_mosaic *k, ct_mosaic_value x)
{
    return reduce(k, "maximumf", -INFINITY, x, 0);
}

ct_mosaic_value ct_mosaic_column_sum(ct_mosaic *k, ct_mosaic_value x)
{
    return reduce(k, "add", 0, x, 0);
}

ct_mosaic_value ct_mosaic_matmul(ct_mosaic *k, ct_mosaic_value a, int dim_a, ct_mosaic_value b, int dim_b)
{
    if (a.element != b.element || a.sizes[dim_a] != b.sizes[dim_b])
        CT_BUG("%s: a matmul over %lld and %lld", k->name, (long long)a.sizes[dim_a], (long long)b.sizes[dim_b]);
    int64_t rows = a.sizes[1 - dim_a], columns = b.sizes[1 - dim_b];
    ct_mosaic_value zero = ct_mosaic_full(k, CT_MOSAIC_F32, rows, columns, 0);
    char attributes[256];
    snprintf(attributes, sizeof(attributes),
             "dimension_numbers = #tpu.dot_dimension_numbers<[%d], [%d], [%d], [%d], [0, %d, 1, %d], [], []>, "
             "%stranspose_lhs = false, transpose_lhs_hint = false, transpose_rhs = false",
             dim_a, dim_b, 1 - dim_a, 1 - dim_b, 1 - dim_a, 1 - dim_b,
             a.element == CT_MOSAIC_F32 ? "precision = #tpu.contract_precision<fp32>, " : "");
    return ct__mosaic_op(k, "tpu.matmul", 3, (ct_mosaic_value[]){a, b, zero}, attributes, zero);
}

/* ---- memory ---- */

/* memory and the indices of a tile; how many operands that are. */
static int address(ct_mosaic *k, ct_mosaic_value memory, const ct_mosaic_value *leading, int64_t row, int64_t column,
                   ct_mosaic_value *out_operands)
{
    CT_ASSERT(memory.kind == CT_MOSAIC_VMEM && memory.rank >= 2);
    int count = 0;
    out_operands[count++] = memory;
    for (int i = 0; i < memory.rank - 2; i++)
        out_operands[count++] = leading ? ct_mosaic_convert(k, leading[i], CT_MOSAIC_INDEX) : index_constant(k, 0);
    out_operands[count++] = index_constant(k, row);
    out_operands[count++] = index_constant(k, column);
    return count;
}

/* [1 .. 1 rows columns], as memory has dims */
static ct_mosaic_value tile_type(ct_mosaic_value memory, int64_t rows, int64_t columns)
{
    ct_mosaic_value type = {.kind = CT_MOSAIC_VECTOR, .element = memory.element, .rank = memory.rank};
    for (int i = 0; i < memory.rank - 2; i++) type.sizes[i] = 1;
    type.sizes[memory.rank - 2] = rows;
    type.sizes[memory.rank - 1] = columns;
    return type;
}

static void check_tile(const ct_mosaic *k, ct_mosaic_value memory, int64_t row, int64_t rows, int64_t column,
                       int64_t columns)
{
    if (row < 0 || column < 0 || row + rows > memory.sizes[memory.rank - 2] ||
        column + columns > memory.sizes[memory.rank - 1])
        CT_BUG("%s: a tile outside of its window", k->name);
}

ct_mosaic_value ct_mosaic_load(ct_mosaic *k, ct_mosaic_value memory, const ct_mosaic_value *leading, int64_t row,
                               int64_t num_rows, int64_t column, int64_t num_columns)
{
    check_tile(k, memory, row, num_rows, column, num_columns);
    ct_mosaic_value operands[1 + CT_MOSAIC_MAX_RANK];
    int count = address(k, memory, leading, row, column, operands);
    ct_mosaic_value tile =
        ct__mosaic_op(k, "vector.load", count, operands, "", tile_type(memory, num_rows, num_columns));
    return memory.rank == 2 ? tile : reshape(k, tile, 2, (int64_t[]){num_rows, num_columns});
}

void ct_mosaic_store(ct_mosaic *k, ct_mosaic_value x, ct_mosaic_value memory, const ct_mosaic_value *leading,
                     int64_t row, int64_t column)
{
    CT_ASSERT(x.kind == CT_MOSAIC_VECTOR && x.element == memory.element);
    check_tile(k, memory, row, x.sizes[0], column, x.sizes[1]);
    ct_mosaic_value operands[2 + CT_MOSAIC_MAX_RANK];
    int count = 1 + address(k, memory, leading, row, column, operands + 1);
    ct_mosaic_value type = tile_type(memory, x.sizes[0], x.sizes[1]);
    operands[0] = memory.rank == 2 ? x : reshape(k, x, type.rank, type.sizes);
    ct_str_append(k->out, "\"stable_mosaic.tpu.vector_store\"");
    print_operands(k->out, count, operands);
    ct_str_printf(k->out, " {add = false, operandSegmentSizes = array<i32: 1, 1, %d, 0>, strides = array<i32>}",
                  memory.rank);
    print_types(k->out, count, operands);
    ct_str_append(k->out, " -> ()\n");
}

void ct_mosaic_if(ct_mosaic *k, ct_mosaic_value condition)
{
    CT_ASSERT(condition.kind == CT_MOSAIC_SCALAR && condition.element == CT_MOSAIC_I1);
    ct_str_printf(k->out, "\"stable_mosaic.scf.if\"(%%%d) ({\n", condition.id);
    k->depth++;
}

void ct_mosaic_end(ct_mosaic *k)
{
    CT_ASSERT(k->depth > 0);
    k->depth--;
    ct_str_append(k->out, "\"stable_mosaic.scf.yield\"() : () -> ()\n}, {\n"
                          "\"stable_mosaic.scf.yield\"() : () -> ()\n}) : (i1) -> ()\n");
}
