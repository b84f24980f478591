/* The ops: what each accepts, and what it does to numbers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/half.h"
#include "module.h"

#define EXPECT(condition, ...)                                                                                         \
    do {                                                                                                               \
        if (!(condition)) return ct_error(CT_CODE_INVALID_ARGUMENT, __VA_ARGS__);                                      \
    } while (0)

static const char *attribute(const mosaic_op *op, const char *name)
{
    return mosaic_attribute_find(op->attributes, op->num_attributes, name);
}

static bool has_shape_of(const mosaic_value *a, const mosaic_value *b)
{
    mosaic_type type = a->type;
    type.element = b->type.element;
    return mosaic_same_type(&type, &b->type);
}

static float round_to(mosaic_element element, float value)
{
    return element == ELEMENT_BF16 ? ct_bf16_to_f32(ct_f32_to_bf16(value)) : value;
}

/* ---- constants ---- */

static ct_status *execute_nothing(mosaic_module *module, const mosaic_op *op)
{
    (void)module, (void)op;
    return NULL;
}

static ct_status *check_constant(mosaic_op *op)
{
    const char *text = attribute(op, "value");
    mosaic_value *result = op->result;
    EXPECT(text && result && op->num_operands == 0, "takes a value");
    bool is_dense = !strncmp(text, "dense<", 6);
    EXPECT(is_dense == (result->type.kind == KIND_VECTOR), "a value that does not fit its type");
    if (is_dense) text += 6;
    uint32_t bits = 0;
    float number = 0;
    bool is_hex = !strncmp(text, "0x", 2);
    if (is_hex) {
        bits = (uint32_t)strtoul(text, NULL, 16);
        memcpy(&number, &bits, sizeof(number));
    } else {
        number = strtof(text, NULL);
    }
    EXPECT(!mosaic_is_float(result->type.element) || is_hex || strpbrk(text, ".e"), "a float needs a point");
    for (int64_t i = 0; i < result->count; i++) {
        if (result->floats)
            result->floats[i] = round_to(result->type.element, number);
        else
            result->integers[i] = (int32_t)strtol(text, NULL, 10);
    }
    return NULL;
}

/* ---- element by element ---- */

typedef enum element_op { ADD, SUB, MUL, DIV, MAX, MIN, AND } element_op;

static float of_floats(element_op op, float a, float b)
{
    switch (op) {
    case ADD: return a + b;
    case SUB: return a - b;
    case MUL: return a * b;
    case DIV: return a / b;
    case MAX: return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
    default: return NAN;
    }
}

static int32_t of_integers(element_op op, int32_t a, int32_t b)
{
    switch (op) {
    case ADD: return (int32_t)((uint32_t)a + (uint32_t)b);
    case SUB: return (int32_t)((uint32_t)a - (uint32_t)b);
    case MUL: return (int32_t)((uint32_t)a * (uint32_t)b);
    case DIV: return a / b;
    case MAX: return a > b ? a : b;
    case MIN: return a < b ? a : b;
    case AND: return a & b;
    }
    return 0;
}

static ct_status *execute_binary(mosaic_module *module, const mosaic_op *op)
{
    (void)module;
    const mosaic_value *a = op->operands[0], *b = op->operands[1];
    element_op which = (element_op)op->numbers[0];
    for (int64_t i = 0; i < op->result->count; i++) {
        if (a->floats) {
            op->result->floats[i] = of_floats(which, a->floats[i], b->floats[i]);
            continue;
        }
        EXPECT(which != DIV || b->integers[i] > 0, "line %d: division by %d", op->line, b->integers[i]);
        op->result->integers[i] = of_integers(which, a->integers[i], b->integers[i]);
    }
    return NULL;
}

static bool is_computed(mosaic_element element)
{
    return element == ELEMENT_F32 || element == ELEMENT_I32;
}

static ct_status *check_binary(mosaic_op *op)
{
    EXPECT(op->num_operands == 2 && op->result, "takes two operands");
    const mosaic_type *type = &op->result->type;
    EXPECT(mosaic_same_type(&op->operands[0]->type, type) && mosaic_same_type(&op->operands[1]->type, type),
           "operands and result are not of one type");
    bool is_and = op->numbers[0] == AND;
    EXPECT(is_and ? type->element == ELEMENT_I1 : is_computed(type->element), "no such arithmetic on a TPU");
    size_t length = strlen(op->name);
    bool says_float = op->name[length - 1] == 'f';
    EXPECT(says_float == (type->element == ELEMENT_F32), "the op of another element type");
    return NULL;
}

static ct_status *execute_compare(mosaic_module *module, const mosaic_op *op)
{
    (void)module;
    const mosaic_value *a = op->operands[0], *b = op->operands[1];
    for (int64_t i = 0; i < op->result->count; i++) {
        double x = a->floats ? (double)a->floats[i] : a->integers[i],
               y = b->floats ? (double)b->floats[i] : b->integers[i];
        bool holds[] = {x == y, !(x == y), x < y, x <= y};
        op->result->integers[i] = holds[op->numbers[1]];
    }
    return NULL;
}

static ct_status *check_compare(mosaic_op *op)
{
    static const int64_t of_integers_[] = {0, 1, 2, 3}, of_floats_[] = {1, 13, 4, 5};
    EXPECT(op->num_operands == 2 && op->result, "takes two operands");
    const mosaic_value *a = op->operands[0];
    EXPECT(mosaic_same_type(&a->type, &op->operands[1]->type) && is_computed(a->type.element),
           "operands are not of one type of numbers");
    EXPECT(has_shape_of(a, op->result) && op->result->type.element == ELEMENT_I1, "the result must be i1");
    bool of_f32 = a->type.element == ELEMENT_F32;
    EXPECT(of_f32 == !strcmp(op->name, "arith.cmpf"), "the op of another element type");
    int64_t predicate;
    const char *text = attribute(op, "predicate");
    EXPECT(text && mosaic_attribute_numbers(text, &predicate, 1) == 1, "without a predicate");
    for (int64_t i = 0; i < 4; i++)
        if (predicate == (of_f32 ? of_floats_ : of_integers_)[i]) {
            op->numbers[1] = i;
            return NULL;
        }
    return ct_error(CT_CODE_INVALID_ARGUMENT, "an unknown predicate");
}

static ct_status *execute_select(mosaic_module *module, const mosaic_op *op)
{
    (void)module;
    const mosaic_value *which = op->operands[0], *a = op->operands[1], *b = op->operands[2];
    for (int64_t i = 0; i < op->result->count; i++) {
        bool first = which->integers[which->count == 1 ? 0 : i];
        if (a->floats)
            op->result->floats[i] = first ? a->floats[i] : b->floats[i];
        else
            op->result->integers[i] = first ? a->integers[i] : b->integers[i];
    }
    return NULL;
}

static ct_status *check_select(mosaic_op *op)
{
    EXPECT(op->num_operands == 3 && op->result && op->operands[0]->type.element == ELEMENT_I1,
           "takes i1 and two values");
    EXPECT(mosaic_same_type(&op->operands[1]->type, &op->result->type) &&
               mosaic_same_type(&op->operands[2]->type, &op->result->type),
           "values and result are not of one type");
    EXPECT(op->operands[0]->count == 1 || has_shape_of(op->operands[0], op->result), "i1 of another shape");
    return NULL;
}

typedef enum function_op { EXP2, LOG, TANH } function_op;

static ct_status *execute_function(mosaic_module *module, const mosaic_op *op)
{
    (void)module;
    for (int64_t i = 0; i < op->result->count; i++) {
        float x = op->operands[0]->floats[i];
        op->result->floats[i] = op->numbers[0] == EXP2 ? exp2f(x) : op->numbers[0] == LOG ? logf(x) : tanhf(x);
    }
    return NULL;
}

static ct_status *check_function(mosaic_op *op)
{
    EXPECT(op->num_operands == 1 && op->result && op->result->type.element == ELEMENT_F32 &&
               mosaic_same_type(&op->operands[0]->type, &op->result->type),
           "takes f32 and gives the same type");
    return NULL;
}

static ct_status *execute_convert(mosaic_module *module, const mosaic_op *op)
{
    (void)module;
    for (int64_t i = 0; i < op->result->count; i++) {
        if (op->result->floats)
            op->result->floats[i] = round_to(op->result->type.element, op->operands[0]->floats[i]);
        else
            op->result->integers[i] = op->operands[0]->integers[i];
    }
    return NULL;
}

static ct_status *check_convert(mosaic_op *op)
{
    static const struct {
        const char *name;
        mosaic_element from, to;
    } rows[] = {{"arith.extf", ELEMENT_BF16, ELEMENT_F32},
                {"arith.truncf", ELEMENT_F32, ELEMENT_BF16},
                {"arith.extui", ELEMENT_I1, ELEMENT_I32},
                {"arith.index_cast", ELEMENT_I32, ELEMENT_INDEX}};
    EXPECT(op->num_operands == 1 && op->result && has_shape_of(op->operands[0], op->result),
           "takes a value of its shape");
    for (size_t i = 0; i < CT_COUNT(rows); i++)
        if (!strcmp(rows[i].name, op->name) && op->operands[0]->type.element == rows[i].from &&
            op->result->type.element == rows[i].to)
            return NULL;
    return ct_error(CT_CODE_INVALID_ARGUMENT, "from or to another element type");
}

/* ---- shapes ---- */

/* Copies element `from` of operand to element `to` of the result. */
static void copy_element(const mosaic_op *op, const mosaic_value *operand, int64_t from, int64_t to)
{
    if (operand->floats)
        op->result->floats[to] = operand->floats[from];
    else
        op->result->integers[to] = operand->integers[from];
}

static ct_status *execute_broadcast(mosaic_module *module, const mosaic_op *op)
{
    (void)module;
    const mosaic_type *from = &op->operands[0]->type, *to = &op->result->type;
    int64_t rows = to->sizes[0], columns = to->sizes[1];
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            int64_t at = 0;
            if (from->kind == KIND_VECTOR)
                at = (from->sizes[0] == 1 ? 0 : i) * from->sizes[1] + (from->sizes[1] == 1 ? 0 : j);
            copy_element(op, op->operands[0], at, i * columns + j);
        }
    return NULL;
}

static ct_status *check_broadcast(mosaic_op *op)
{
    EXPECT(op->num_operands == 1 && op->result && op->result->type.rank == 2, "gives a matrix");
    const mosaic_type *from = &op->operands[0]->type, *to = &op->result->type;
    EXPECT(from->element == to->element && from->element != ELEMENT_I1, "of another element type, or of i1");
    if (from->kind == KIND_SCALAR) return NULL;
    EXPECT(from->rank == 2, "takes a scalar or a matrix");
    for (int i = 0; i < 2; i++)
        EXPECT(from->sizes[i] == 1 || from->sizes[i] == to->sizes[i], "dim %d cannot be repeated", i);
    return NULL;
}

static ct_status *execute_copy(mosaic_module *module, const mosaic_op *op)
{
    (void)module;
    for (int64_t i = 0; i < op->result->count; i++) copy_element(op, op->operands[0], i, i);
    return NULL;
}

static ct_status *check_reshape(mosaic_op *op)
{
    EXPECT(op->num_operands == 1 && op->result && op->operands[0]->type.kind == KIND_VECTOR &&
               op->operands[0]->type.element == op->result->type.element && op->operands[0]->count == op->result->count,
           "takes as many elements");
    return NULL;
}

static ct_status *execute_slice(mosaic_module *module, const mosaic_op *op)
{
    (void)module;
    int64_t columns = op->result->type.sizes[1], width = op->operands[0]->type.sizes[1];
    for (int64_t i = 0; i < op->result->count; i++)
        copy_element(op, op->operands[0], i / columns * width + i % columns, i);
    return NULL;
}

static ct_status *check_slice(mosaic_op *op)
{
    EXPECT(op->num_operands == 1 && op->result && op->operands[0]->type.rank == 2 && op->result->type.rank == 2 &&
               op->operands[0]->type.element == op->result->type.element,
           "takes a matrix");
    const char *names[] = {"offsets", "sizes", "strides"};
    int64_t numbers[3][2];
    for (int i = 0; i < 3; i++) {
        const char *text = attribute(op, names[i]);
        EXPECT(text && mosaic_attribute_numbers(text, numbers[i], 2) == 2, "without %s", names[i]);
    }
    for (int i = 0; i < 2; i++)
        EXPECT(numbers[0][i] == 0 && numbers[2][i] == 1 && numbers[1][i] == op->result->type.sizes[i] &&
                   numbers[1][i] <= op->operands[0]->type.sizes[i],
               "the slice does not fit");
    return NULL;
}

static ct_status *execute_concatenate(mosaic_module *module, const mosaic_op *op)
{
    (void)module;
    int64_t rows = op->result->type.sizes[0], columns = op->result->type.sizes[1], at = 0;
    for (int n = 0; n < op->num_operands; n++) {
        int64_t width = op->operands[n]->type.sizes[1];
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < width; j++) copy_element(op, op->operands[n], i * width + j, i * columns + at + j);
        at += width;
    }
    return NULL;
}

static ct_status *check_concatenate(mosaic_op *op)
{
    const char *text = attribute(op, "dimension");
    int64_t dim, columns = 0;
    EXPECT(text && mosaic_attribute_numbers(text, &dim, 1) == 1 && dim == 1 && op->result, "along columns only");
    for (int i = 0; i < op->num_operands; i++) {
        const mosaic_type *type = &op->operands[i]->type;
        EXPECT(type->rank == 2 && type->element == op->result->type.element && type->element != ELEMENT_I1 &&
                   type->sizes[0] == op->result->type.sizes[0] && type->sizes[1] % 128 == 0,
               "operand %d does not fit", i);
        columns += type->sizes[1];
    }
    EXPECT(columns == op->result->type.sizes[1], "the result has another width");
    return NULL;
}

static ct_status *execute_transpose(mosaic_module *module, const mosaic_op *op)
{
    (void)module;
    int64_t rows = op->result->type.sizes[0], columns = op->result->type.sizes[1];
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) copy_element(op, op->operands[0], j * rows + i, i * columns + j);
    return NULL;
}

static ct_status *check_transpose(mosaic_op *op)
{
    EXPECT(op->num_operands == 1 && op->result && op->result->type.rank == 2 && op->operands[0]->type.rank == 2 &&
               op->result->type.element == op->operands[0]->type.element &&
               op->result->type.sizes[0] == op->operands[0]->type.sizes[1] &&
               op->result->type.sizes[1] == op->operands[0]->type.sizes[0],
           "takes a matrix and turns it");
    return NULL;
}

static ct_status *check_iota(mosaic_op *op)
{
    const char *text = attribute(op, "dimensions");
    int64_t dim;
    EXPECT(text && mosaic_attribute_numbers(text, &dim, 1) == 1 && (dim == 0 || dim == 1), "along dim 0 or 1");
    EXPECT(op->num_operands == 0 && op->result && op->result->type.rank == 2 && op->result->type.element == ELEMENT_I32,
           "gives a matrix of i32");
    int64_t columns = op->result->type.sizes[1];
    for (int64_t i = 0; i < op->result->count; i++)
        op->result->integers[i] = (int32_t)(dim ? i % columns : i / columns);
    return NULL;
}

static ct_status *execute_reduce(mosaic_module *module, const mosaic_op *op)
{
    (void)module;
    const mosaic_value *x = op->operands[0];
    int64_t columns = x->type.sizes[1], dim = op->numbers[1];
    memcpy(op->result->floats, op->operands[1]->floats, (size_t)op->result->count * sizeof(float));
    for (int64_t i = 0; i < x->count; i++) {
        float *at = &op->result->floats[dim ? i / columns : i % columns];
        *at = of_floats(op->numbers[2] ? MAX : ADD, *at, x->floats[i]);
    }
    return NULL;
}

static ct_status *check_reduce(mosaic_op *op)
{
    const char *kind = attribute(op, "kind"), *dims = attribute(op, "reduction_dims");
    EXPECT(kind && dims && mosaic_attribute_numbers(dims, &op->numbers[1], 1) == 1, "without kind or dims");
    bool is_max = !strcmp(kind, "#vector.kind<maximumf>");
    EXPECT(is_max || !strcmp(kind, "#vector.kind<add>"), "sums and greatest values only");
    op->numbers[2] = is_max;
    EXPECT(op->num_operands == 2 && op->result && op->operands[0]->type.rank == 2 &&
               op->operands[0]->type.element == ELEMENT_F32 && op->result->type.rank == 1 &&
               mosaic_same_type(&op->operands[1]->type, &op->result->type) && op->result->type.element == ELEMENT_F32 &&
               (op->numbers[1] == 0 || op->numbers[1] == 1) &&
               op->result->count == op->operands[0]->type.sizes[1 - op->numbers[1]],
           "takes a matrix and what to begin with");
    return NULL;
}

/* ---- matmul ---- */

static ct_status *execute_matmul(mosaic_module *module, const mosaic_op *op)
{
    module->is_busy = true;
    const mosaic_value *a = op->operands[0], *b = op->operands[1];
    bool a_last = op->numbers[1], b_last = op->numbers[2]; /* the summed dim is the last one */
    int64_t rows = op->result->type.sizes[0], columns = op->result->type.sizes[1];
    int64_t terms = a->type.sizes[a_last ? 1 : 0];
    module->num_flops += 2.0 * (double)rows * (double)columns * (double)terms;
    int64_t a_row = a_last ? terms : 1, a_term = a_last ? 1 : rows;
    float *out = op->result->floats;
    memcpy(out, op->operands[2]->floats, (size_t)op->result->count * sizeof(float));
    float *turned = NULL; /* [terms columns] */
    if (b_last) {
        turned = ct_alloc((size_t)(terms * columns) * sizeof(float));
        for (int64_t j = 0; j < columns; j++)
            for (int64_t t = 0; t < terms; t++) turned[t * columns + j] = b->floats[j * terms + t];
    }
    const float *with = turned ? turned : b->floats;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t t = 0; t < terms; t++) {
            float factor = a->floats[i * a_row + t * a_term];
            for (int64_t j = 0; j < columns; j++) out[i * columns + j] += factor * with[t * columns + j];
        }
    free(turned);
    return NULL;
}

static ct_status *check_matmul(mosaic_op *op)
{
    EXPECT(op->num_operands == 3 && op->result, "takes two matrices and what to add to");
    const mosaic_type *a = &op->operands[0]->type, *b = &op->operands[1]->type, *to = &op->result->type;
    EXPECT(a->rank == 2 && b->rank == 2 && to->rank == 2 && a->element == b->element && mosaic_is_float(a->element) &&
               to->element == ELEMENT_F32 && mosaic_same_type(&op->operands[2]->type, to),
           "types that a matrix unit does not take");
    const char *text = attribute(op, "dimension_numbers");
    int64_t n[9];
    EXPECT(text && mosaic_attribute_numbers(text, n, 9) == 8, "without dimension numbers");
    EXPECT((n[0] | n[1]) <= 1 && n[2] == 1 - n[0] && n[3] == 1 - n[1] && n[4] == 0 && n[5] == n[2] && n[6] == 1 &&
               n[7] == n[3],
           "dimension numbers that contradict themselves");
    EXPECT(a->sizes[n[0]] == b->sizes[n[1]] && a->sizes[n[2]] == to->sizes[0] && b->sizes[n[3]] == to->sizes[1],
           "sizes that do not fit");
    const char *precision = attribute(op, "precision");
    EXPECT(!precision || !strcmp(precision, "#tpu.contract_precision<fp32>"), "an unknown precision");
    EXPECT((a->element == ELEMENT_F32) == !!precision, "f32 is multiplied in full precision, bf16 as it is");
    op->numbers[1] = n[0];
    op->numbers[2] = n[1];
    return NULL;
}

/* ---- memory ---- */

/* Where the tile [sizes] at the indices operands[first..] of memory begins; the last two dims may be walked. */
static ct_status *locate(const mosaic_op *op, int first, const mosaic_value *memory, const mosaic_type *tile,
                         int64_t *out_start)
{
    *out_start = 0;
    for (int i = 0; i < memory->type.rank; i++) {
        int64_t at = op->operands[first + i]->integers[0];
        int64_t size = tile->kind == KIND_VECTOR ? tile->sizes[i] : 1;
        EXPECT(at >= 0 && at + size <= memory->type.sizes[i], "line %d, %s: [%lld, %lld) leaves dim %d of size %lld",
               op->line, op->name, (long long)at, (long long)(at + size), i, (long long)memory->type.sizes[i]);
        *out_start = *out_start * memory->type.sizes[i] + at;
    }
    return NULL;
}

static ct_status *execute_load(mosaic_module *module, const mosaic_op *op)
{
    (void)module;
    const mosaic_value *memory = op->operands[0];
    const mosaic_type *tile = &op->result->type;
    int64_t start, width = memory->type.sizes[memory->type.rank - 1], columns = tile->sizes[tile->rank - 1];
    CT_TRY(locate(op, 1, memory, tile, &start));
    for (int64_t i = 0; i < op->result->count; i++) {
        int64_t at = start + i / columns * width + i % columns;
        EXPECT(memory->written[at], "line %d: element %lld is read and was never written", op->line, (long long)at);
        copy_element(op, memory, at, i);
    }
    return NULL;
}

static ct_status *execute_store(mosaic_module *module, const mosaic_op *op)
{
    (void)module;
    const mosaic_value *x = op->operands[0];
    mosaic_value *memory = op->operands[1];
    const mosaic_type *tile = &x->type;
    int64_t start, width = memory->type.sizes[memory->type.rank - 1], columns = tile->sizes[tile->rank - 1];
    CT_TRY(locate(op, 2, memory, tile, &start));
    for (int64_t i = 0; i < x->count; i++) {
        int64_t at = start + i / columns * width + i % columns;
        memory->written[at] = true;
        if (memory->floats)
            memory->floats[at] = x->floats[i];
        else
            memory->integers[at] = x->integers[i];
    }
    return NULL;
}

static ct_status *check_address(const mosaic_op *op, int first, const mosaic_value *memory, const mosaic_type *tile)
{
    EXPECT(memory->type.kind == KIND_VMEM && tile->kind == KIND_VECTOR && tile->rank == memory->type.rank &&
               tile->element == memory->type.element,
           "the tile does not fit the memory");
    for (int i = 0; i < tile->rank - 2; i++) EXPECT(tile->sizes[i] == 1, "a tile over more than two dims");
    EXPECT(op->num_operands == first + tile->rank, "%d indices are wanted", tile->rank);
    for (int i = first; i < op->num_operands; i++)
        EXPECT(op->operands[i]->type.kind == KIND_SCALAR && op->operands[i]->type.element == ELEMENT_INDEX,
               "an index of another type");
    return NULL;
}

static ct_status *check_load(mosaic_op *op)
{
    EXPECT(op->num_operands > 1 && op->result, "takes memory and indices");
    return check_address(op, 1, op->operands[0], &op->result->type);
}

static ct_status *check_store(mosaic_op *op)
{
    EXPECT(op->num_operands > 2 && !op->result, "takes a value, memory and indices");
    const char *add = attribute(op, "add"), *segments = attribute(op, "operandSegmentSizes");
    int64_t sizes[4];
    EXPECT(add && !strcmp(add, "false") && segments && mosaic_attribute_numbers(segments, sizes, 4) == 4 &&
               sizes[0] == 1 && sizes[1] == 1 && sizes[2] == op->num_operands - 2 && sizes[3] == 0,
           "attributes that do not fit");
    return check_address(op, 2, op->operands[1], &op->operands[0]->type);
}

static ct_status *execute_scalar(mosaic_module *module, const mosaic_op *op)
{
    (void)module;
    int64_t start;
    CT_TRY(locate(op, 1, op->operands[0], &op->result->type, &start));
    copy_element(op, op->operands[0], start, 0);
    return NULL;
}

static ct_status *check_scalar(mosaic_op *op)
{
    EXPECT(op->num_operands == 2 && op->result && op->result->type.kind == KIND_SCALAR &&
               op->operands[0]->type.kind == KIND_SMEM && op->operands[0]->type.rank == 1 &&
               op->operands[0]->type.element == op->result->type.element &&
               op->operands[1]->type.element == ELEMENT_INDEX,
           "takes scalar memory and an index");
    return NULL;
}

/* ---- control ---- */

ct_status *mosaic_execute_all(mosaic_module *module, const mosaic_op *first)
{
    for (const mosaic_op *op = first; op; op = op->next) CT_TRY(op->execute(module, op));
    return NULL;
}

static ct_status *execute_if(mosaic_module *module, const mosaic_op *op)
{
    return op->operands[0]->integers[0] ? mosaic_execute_all(module, op->body) : NULL;
}

static ct_status *check_if(mosaic_op *op)
{
    EXPECT(op->num_operands == 1 && !op->result && op->operands[0]->count == 1 &&
               op->operands[0]->type.kind == KIND_SCALAR && op->operands[0]->type.element == ELEMENT_I1,
           "takes one scalar i1");
    return NULL;
}

static ct_status *check_end(mosaic_op *op)
{
    for (int i = 0; i < op->num_operands; i++)
        EXPECT(op->operands[i]->type.kind == KIND_SCALAR && op->operands[i]->type.element == ELEMENT_I32,
               "returns i32 only");
    return NULL;
}

static const struct {
    const char *name;
    ct_status *(*check)(mosaic_op *op);
    mosaic_execute *execute;
    int64_t number;
    const char *attributes; /* that it may have */
} OPS[] = {
    {"arith.constant", check_constant, execute_nothing, 0, "value"},
    {"arith.addf", check_binary, execute_binary, ADD, "fastmath"},
    {"arith.subf", check_binary, execute_binary, SUB, "fastmath"},
    {"arith.mulf", check_binary, execute_binary, MUL, "fastmath"},
    {"arith.divf", check_binary, execute_binary, DIV, "fastmath"},
    {"arith.maximumf", check_binary, execute_binary, MAX, "fastmath"},
    {"arith.addi", check_binary, execute_binary, ADD, "overflowFlags"},
    {"arith.subi", check_binary, execute_binary, SUB, "overflowFlags"},
    {"arith.muli", check_binary, execute_binary, MUL, "overflowFlags"},
    {"arith.divsi", check_binary, execute_binary, DIV, ""},
    {"arith.maxsi", check_binary, execute_binary, MAX, ""},
    {"arith.minsi", check_binary, execute_binary, MIN, ""},
    {"arith.andi", check_binary, execute_binary, AND, ""},
    {"arith.cmpi", check_compare, execute_compare, 0, "predicate"},
    {"arith.cmpf", check_compare, execute_compare, 0, "fastmath predicate"},
    {"arith.select", check_select, execute_select, 0, ""},
    {"math.exp2", check_function, execute_function, EXP2, "fastmath"},
    {"math.log", check_function, execute_function, LOG, "fastmath"},
    {"math.tanh", check_function, execute_function, TANH, "fastmath"},
    {"arith.extf", check_convert, execute_convert, 0, ""},
    {"arith.truncf", check_convert, execute_convert, 0, ""},
    {"arith.extui", check_convert, execute_convert, 0, ""},
    {"arith.index_cast", check_convert, execute_convert, 0, ""},
    {"vector.broadcast", check_broadcast, execute_broadcast, 0, ""},
    {"vector.shape_cast", check_reshape, execute_copy, 0, ""},
    {"vector.extract_strided_slice", check_slice, execute_slice, 0, "offsets sizes strides"},
    {"vector.multi_reduction", check_reduce, execute_reduce, 0, "kind reduction_dims"},
    {"vector.load", check_load, execute_load, 0, ""},
    {"tpu.vector_store", check_store, execute_store, 0, "add operandSegmentSizes strides"},
    {"tpu.concatenate", check_concatenate, execute_concatenate, 0, "dimension"},
    {"tpu.transpose", check_transpose, execute_transpose, 0, "permutation"},
    {"tpu.iota", check_iota, execute_nothing, 0, "dimensions"},
    {"tpu.matmul", check_matmul, execute_matmul, 0,
     "dimension_numbers precision transpose_lhs transpose_lhs_hint transpose_rhs"},
    {"memref.load", check_scalar, execute_scalar, 0, ""},
    {"scf.if", check_if, execute_if, 0, ""},
    {"scf.yield", check_end, execute_nothing, 0, ""},
    {"func.return", check_end, execute_nothing, 0, ""},
};

ct_status *mosaic_check(mosaic_op *op)
{
    for (size_t i = 0; i < CT_COUNT(OPS); i++) {
        if (strcmp(OPS[i].name, op->name) != 0) continue;
        for (int j = 0; j < op->num_attributes; j++)
            EXPECT(strstr(OPS[i].attributes, op->attributes[j].name), "has no attribute %s", op->attributes[j].name);
        op->execute = OPS[i].execute;
        op->numbers[0] = OPS[i].number;
        return OPS[i].check(op);
    }
    return ct_error(CT_CODE_INVALID_ARGUMENT, "an op that kernels have not");
}
