/* stablehlo.reduce with one combining op in its body. */
#include "graph/reduce.h"

#include <math.h>
#include <string.h>

#include "graph/compare.h"
#include "graph/constant.h"
#include "graph/convert.h"
#include "graph/elementwise.h"
#include "graph/factor.h"
#include "graph/shape.h"
#include "graph/slice.h"

typedef struct reduce_attrs {
    const char *combine; /* StableHLO op of two scalars */
    int count;
    int64_t dims[CT_MAX_RANK];
} reduce_attrs;

static void print_reduce(ct_printer *p, const ct_node *node)
{
    const reduce_attrs *attrs = node->attrs;
    const char *type = ct_dtype_mlir(node->results[0]->dtype);
    ct__print_line(p);
    ct__print_results(p, node);
    ct_str_append(p->out, "\"stablehlo.reduce\"");
    ct__print_operands(p, node->operands, node->num_operands);
    ct_str_append(p->out, " <{");
    ct__print_dims(p, "dimensions", attrs->dims, attrs->count);
    int a = ct__print_new_name(p), b = ct__print_new_name(p), r = ct__print_new_name(p);
    ct__print(p, "}> ({ ^bb0(%%%d: tensor<%s>, %%%d: tensor<%s>): ", a, type, b, type);
    ct__print(p, "%%%d = \"stablehlo.%s\"(%%%d, %%%d) : (tensor<%s>, tensor<%s>) -> tensor<%s> ", r, attrs->combine, a,
              b, type, type, type);
    ct__print(p, "\"stablehlo.return\"(%%%d) : (tensor<%s>) -> () })", r, type);
    ct__print_signature(p, node);
}

static void vjp_sum(ct_node *node, ct_tensor *const *cotangents, ct_tensor **gradients)
{
    gradients[0] = ct_broadcast_like(cotangents[0], node->operands[0]);
}

static void vjp_extremum(ct_node *node, ct_tensor *const *cotangents, ct_tensor **gradients)
{
    ct_tensor *x = node->operands[0];
    ct_tensor *hit = ct_convert(ct_eq(x, node->results[0]), x->dtype);
    const reduce_attrs *attrs = node->attrs;
    ct_axis reduced[CT_MAX_RANK];
    for (int i = 0; i < attrs->count; i++) reduced[i] = x->axes[attrs->dims[i]];
    ct_tensor *ties = ct_sum(hit, ct__axes_text(x->graph, reduced, attrs->count));
    gradients[0] = ct_mul(hit, ct_div(cotangents[0], ties));
}

static void vjp_prod(ct_node *node, ct_tensor *const *cotangents, ct_tensor **gradients)
{
    gradients[0] =
        ct_div(ct_broadcast_like(ct_mul(cotangents[0], node->results[0]), node->operands[0]), node->operands[0]);
}

/* ---- placement ---- */

static void rule_reduce(const ct_node *node, ct_factor_kind kind, ct_factors *factors)
{
    const reduce_attrs *attrs = node->attrs;
    const ct_tensor *x = node->operands[0];
    int num_reduced = 0;
    for (int dim = 0; dim < x->rank; dim++) {
        bool reduced = num_reduced < attrs->count && attrs->dims[num_reduced] == dim; /* they ascend */
        int factor = ct__factor_add(factors, reduced ? kind : CT_FACTOR_PARALLEL, x->axes[dim].size);
        ct__factor_operand(factors, 0, dim, factor);
        if (reduced)
            num_reduced++;
        else
            ct__factor_result(factors, 0, dim - num_reduced, factor);
    }
}

static void rule_sum(const ct_node *node, ct_factors *factors)
{
    rule_reduce(node, CT_FACTOR_SUM, factors);
    ct__factors_linear(node, CT_LINEAR_JOINTLY, 1, factors);
}

/* Parts of bools are not combined: plugins differ in what they all-reduce. */
static void rule_extremum(const ct_node *node, ct_factors *factors)
{
    bool is_max = !strcmp(((const reduce_attrs *)node->attrs)->combine, "maximum");
    bool is_bool = node->results[0]->dtype == CT_DTYPE_BOOL;
    rule_reduce(node, is_bool ? CT_FACTOR_WHOLE : is_max ? CT_FACTOR_MAX : CT_FACTOR_MIN, factors);
}

static void rule_whole(const ct_node *node, ct_factors *factors)
{
    rule_reduce(node, CT_FACTOR_WHOLE, factors);
}

static const ct_op op_sum = {.name = "stablehlo.reduce", .print = print_reduce, .vjp = vjp_sum, .factors = rule_sum};
static const ct_op op_extremum = {
    .name = "stablehlo.reduce", .print = print_reduce, .vjp = vjp_extremum, .factors = rule_extremum};
static const ct_op op_prod = {
    .name = "stablehlo.reduce", .print = print_reduce, .vjp = vjp_prod, .factors = rule_whole};
static const ct_op op_logical = {
    .name = "stablehlo.reduce", .print = print_reduce, .zero_gradient = true, .factors = rule_whole};

double ct__greatest_of(ct_dtype dtype)
{
    switch (dtype) {
    case CT_DTYPE_BOOL: return 1;
    case CT_DTYPE_S8: return INT8_MAX;
    case CT_DTYPE_S32: return INT32_MAX;
    case CT_DTYPE_S64: return (double)INT64_MAX;
    case CT_DTYPE_U8: return UINT8_MAX;
    case CT_DTYPE_U32: return UINT32_MAX;
    default: return INFINITY;
    }
}

double ct__least_of(ct_dtype dtype)
{
    switch (dtype) {
    case CT_DTYPE_S8: return INT8_MIN;
    case CT_DTYPE_S32: return INT32_MIN;
    case CT_DTYPE_S64: return (double)INT64_MIN;
    case CT_DTYPE_BOOL:
    case CT_DTYPE_U8:
    case CT_DTYPE_U32: return 0;
    default: return -INFINITY;
    }
}

static ct_tensor *reduce(const char *loc, const char *name, const ct_op *op, const char *combine, double identity,
                         ct_tensor *x, const char *axes)
{
    if (ct__any_poison(1, &x)) return x->graph->poison;
    int dims[CT_MAX_RANK], count;
    if (!ct__parse_dims(x, loc, name, axes, dims, &count)) return x->graph->poison;
    if (!count) return x;
    reduce_attrs attrs = {.combine = combine};
    ct_axis kept[CT_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < x->rank; i++) {
        bool reduced = false;
        for (int j = 0; j < count; j++) reduced |= dims[j] == i;
        if (reduced)
            attrs.dims[attrs.count++] = i;
        else
            kept[rank++] = x->axes[i];
    }
    ct_tensor *operands[2] = {x, ct__scalar(loc, x->graph, x->dtype, identity)};
    ct_node *node = ct__node_new(x->graph, op, loc, 2, operands);
    node->attrs = ct_arena_dup(&x->graph->arena, &attrs, sizeof(attrs));
    return ct__result(node, x->dtype, rank, kept);
}

static ct_tensor *require(const char *loc, const char *name, ct_tensor *x, bool fits, const char *what)
{
    if (ct__any_poison(1, &x)) return x->graph->poison;
    return fits ? x : ct__fail(x->graph, loc, name, "needs %s, found %s", what, ct_tensor_describe(x));
}

ct_tensor *ct__sum(const char *loc, ct_tensor *x, const char *axes)
{
    x = require(loc, "sum", x, x->dtype != CT_DTYPE_BOOL, "numbers");
    return reduce(loc, "sum", &op_sum, "add", 0, x, axes);
}

ct_tensor *ct__mean(const char *loc, ct_tensor *x, const char *axes)
{
    x = require(loc, "mean", x, ct_dtype_is_float(x->dtype), "floats");
    ct_tensor *sum = reduce(loc, "mean", &op_sum, "add", 0, x, axes);
    if (ct_tensor_is_poison(sum)) return sum;
    return ct__mul_scalar(loc, sum, (double)ct__num_elements(sum) / (double)ct__num_elements(x));
}

ct_tensor *ct__max(const char *loc, ct_tensor *x, const char *axes)
{
    return reduce(loc, "max", &op_extremum, "maximum", ct__least_of(x->dtype), x, axes);
}

ct_tensor *ct__min(const char *loc, ct_tensor *x, const char *axes)
{
    return reduce(loc, "min", &op_extremum, "minimum", ct__greatest_of(x->dtype), x, axes);
}

ct_tensor *ct__prod(const char *loc, ct_tensor *x, const char *axes)
{
    x = require(loc, "prod", x, x->dtype != CT_DTYPE_BOOL, "numbers");
    return reduce(loc, "prod", &op_prod, "multiply", 1, x, axes);
}

ct_tensor *ct__any(const char *loc, ct_tensor *x, const char *axes)
{
    x = require(loc, "any", x, x->dtype == CT_DTYPE_BOOL, "bool");
    return reduce(loc, "any", &op_logical, "or", 0, x, axes);
}

ct_tensor *ct__all(const char *loc, ct_tensor *x, const char *axes)
{
    x = require(loc, "all", x, x->dtype == CT_DTYPE_BOOL, "bool");
    return reduce(loc, "all", &op_logical, "and", 1, x, axes);
}

ct_tensor *ct__argmax(const char *loc, ct_tensor *x, const char *axis)
{
    if (ct__any_poison(1, &x)) return x->graph->poison;
    int dim = ct__parse_dim(x, loc, "argmax", axis);
    if (dim < 0) return x->graph->poison;
    /* the smallest position that holds the largest value */
    ct_tensor *hit = ct__compare(loc, "EQ", x, ct__max(loc, x, axis));
    const char *one_axis =
        ct_arena_printf(&x->graph->arena, "%s=%lld", x->axes[dim].name, (long long)x->axes[dim].size);
    ct_tensor *position = ct__iota(loc, x->graph, CT_DTYPE_S32, one_axis, x->axes[dim].name);
    ct_tensor *beyond = ct__scalar(loc, x->graph, CT_DTYPE_S32, (double)x->axes[dim].size);
    return ct__min(loc, ct__select(loc, hit, position, beyond), axis);
}

ct_tensor *ct__cumsum(const char *loc, ct_tensor *x, const char *axis)
{
    if (ct__any_poison(1, &x)) return x->graph->poison;
    int dim = ct__parse_dim(x, loc, "cumsum", axis);
    if (dim < 0) return x->graph->poison;
    int64_t size = x->axes[dim].size;
    /* Hillis and Steele 1986: after the step of distance d every element holds the sum of the last 2d. */
    for (int64_t distance = 1; distance < size; distance *= 2) {
        ct_tensor *shifted = ct__pad(loc, ct__slice(loc, x, axis, 0, size - distance), axis, distance, 0, 0);
        x = ct__add(loc, x, shifted);
    }
    return x;
}
