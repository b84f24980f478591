/* stablehlo.slice, dynamic_slice, dynamic_update_slice, pad, concatenate, reverse. */
#include "graph/slice.h"

#include <string.h>

#include "graph/constant.h"
#include "graph/elementwise.h"
#include "graph/factor.h"

static ct_tensor *resized(ct_node *node, const ct_tensor *x, int dim, int64_t size)
{
    ct_axis axes[CT_MAX_RANK];
    memcpy(axes, x->axes, sizeof(axes));
    axes[dim].size = size;
    return ct__result(node, x->dtype, x->rank, axes);
}

/* The axis that an op works along is whole, the others pass. */
static void rule_along(const ct_node *node, int64_t dim, uint32_t linear_operands, ct_factors *factors)
{
    ct__factors_beside(node, (int)dim, factors);
    ct__factors_linear(node, CT_LINEAR_JOINTLY, linear_operands, factors);
}

/* low and high numbers per dim, for slice (start, limit, stride) and pad (low, high, interior) */
typedef struct bounds_attrs {
    int64_t low[CT_MAX_RANK], high[CT_MAX_RANK], step[CT_MAX_RANK];
    int dim; /* the axis meant; the others are whole */
} bounds_attrs;

/* ---- pad ---- */

static void print_pad_attrs(ct_printer *p, const ct_node *node)
{
    const bounds_attrs *attrs = node->attrs;
    int rank = node->operands[0]->rank;
    ct__print_dims(p, "edge_padding_low", attrs->low, rank);
    ct__print_dims(p, ", edge_padding_high", attrs->high, rank);
    ct__print_dims(p, ", interior_padding", attrs->step, rank);
}

static void vjp_pad(ct_node *node, ct_tensor *const *cotangents, ct_tensor **gradients);

static void rule_pad(const ct_node *node, ct_factors *factors)
{
    const ct_node *value = node->operands[1]->node;
    rule_along(node, ((const bounds_attrs *)node->attrs)->dim, value && ct__is_zero_constant(value) ? 1 : 3, factors);
    factors->repeatable = true;
}

static const ct_op op_pad = {
    .name = "stablehlo.pad", .print_attrs = print_pad_attrs, .vjp = vjp_pad, .factors = rule_pad};

static ct_tensor *pad(const char *loc, ct_tensor *x, int dim, int64_t low, int64_t high, int64_t interior, double value)
{
    bounds_attrs attrs = {.dim = dim};
    attrs.low[dim] = low;
    attrs.high[dim] = high;
    attrs.step[dim] = interior;
    int64_t size = x->axes[dim].size;
    int64_t padded = low + high + size + (size > 0 ? (size - 1) * interior : 0); /* (C4) */
    if (padded < 0)
        return ct__fail(x->graph, loc, "pad", "axis %s of %s would get %lld positions", x->axes[dim].name,
                        ct_tensor_describe(x), (long long)padded);
    ct_tensor *operands[2] = {x, ct__scalar(loc, x->graph, x->dtype, value)};
    ct_node *node = ct__node_new(x->graph, &op_pad, loc, 2, operands);
    node->attrs = ct_arena_dup(&x->graph->arena, &attrs, sizeof(attrs));
    return resized(node, x, dim, padded);
}

static void vjp_pad(ct_node *node, ct_tensor *const *cotangents, ct_tensor **gradients)
{
    const bounds_attrs *attrs = node->attrs;
    int dim = attrs->dim;
    ct_tensor *x = node->operands[0], *c = cotangents[0];
    int64_t low = attrs->low[dim], high = attrs->high[dim], stride = attrs->step[dim] + 1;
    /* cut what was added, add zeros where x was cut */
    ct_tensor *trimmed = pad(CT_LOC, c, dim, -low, -high, 0, 0);
    gradients[0] =
        stride == 1 ? trimmed : ct_slice_strided(trimmed, x->axes[dim].name, 0, trimmed->axes[dim].size, stride);
}

ct_tensor *ct__pad(const char *loc, ct_tensor *x, const char *axis, int64_t low, int64_t high, double value)
{
    if (ct__any_poison(1, &x)) return x->graph->poison;
    int dim = ct__parse_dim(x, loc, "pad", axis);
    if (dim < 0) return x->graph->poison;
    return low || high ? pad(loc, x, dim, low, high, 0, value) : x;
}

/* ---- slice ---- */

static void print_slice_attrs(ct_printer *p, const ct_node *node)
{
    const bounds_attrs *attrs = node->attrs;
    int rank = node->operands[0]->rank;
    ct__print_dims(p, "start_indices", attrs->low, rank);
    ct__print_dims(p, ", limit_indices", attrs->high, rank);
    ct__print_dims(p, ", strides", attrs->step, rank);
}

static void vjp_slice(ct_node *node, ct_tensor *const *cotangents, ct_tensor **gradients)
{
    const bounds_attrs *attrs = node->attrs;
    int dim = attrs->dim;
    ct_tensor *x = node->operands[0], *c = cotangents[0];
    int64_t stride = attrs->step[dim], low = attrs->low[dim];
    int64_t spread = c->axes[dim].size ? (c->axes[dim].size - 1) * stride + 1 : 0;
    gradients[0] = pad(CT_LOC, c, dim, low, x->axes[dim].size - low - spread, stride - 1, 0);
}

static void rule_slice(const ct_node *node, ct_factors *factors)
{
    rule_along(node, ((const bounds_attrs *)node->attrs)->dim, 1, factors);
    factors->repeatable = true;
}

static void local_slice(const ct_local *local)
{
    const ct_tensor *x = local->operands[0];
    bounds_attrs attrs = *(const bounds_attrs *)local->node->attrs;
    for (int i = 0; i < x->rank; i++)
        if (i != attrs.dim) attrs.high[i] = x->axes[i].size;
    ct__local_clone(local, ct_arena_dup(&x->graph->arena, &attrs, sizeof(attrs)));
}

static const ct_op op_slice = {.name = "stablehlo.slice",
                               .print_attrs = print_slice_attrs,
                               .vjp = vjp_slice,
                               .factors = rule_slice,
                               .local = local_slice};

ct_tensor *ct__slice_strided(const char *loc, ct_tensor *x, const char *axis, int64_t start, int64_t stop,
                             int64_t stride)
{
    if (ct__any_poison(1, &x)) return x->graph->poison;
    int dim = ct__parse_dim(x, loc, "slice", axis);
    if (dim < 0) return x->graph->poison;
    if (start < 0 || stop < start || stop > x->axes[dim].size || stride < 1) /* (C3), (C4) */
        return ct__fail(x->graph, loc, "slice",
                        "needs 0 <= start <= stop <= %lld and stride > 0 along %s, found [%lld, %lld) by %lld",
                        (long long)x->axes[dim].size, axis, (long long)start, (long long)stop, (long long)stride);
    if (start == 0 && stop == x->axes[dim].size && stride == 1) return x;
    bounds_attrs attrs = {.dim = dim};
    for (int i = 0; i < x->rank; i++) {
        attrs.low[i] = i == dim ? start : 0;
        attrs.high[i] = i == dim ? stop : x->axes[i].size;
        attrs.step[i] = i == dim ? stride : 1;
    }
    ct_node *node = ct__node_new(x->graph, &op_slice, loc, 1, &x);
    node->attrs = ct_arena_dup(&x->graph->arena, &attrs, sizeof(attrs));
    return resized(node, x, dim, (stop - start + stride - 1) / stride);
}

ct_tensor *ct__slice(const char *loc, ct_tensor *x, const char *axis, int64_t start, int64_t stop)
{
    return ct__slice_strided(loc, x, axis, start, stop, 1);
}

/* ---- dynamic slices: starts are one scalar per dim; all but one are zero ---- */

typedef struct dynamic_attrs {
    int dim;
    int64_t sizes[CT_MAX_RANK];
} dynamic_attrs;

static ct_tensor *start_of(const char *loc, const char *op, const ct_tensor *x, ct_tensor *start)
{
    if (start->rank == 0 && ct_dtype_is_integer(start->dtype)) return start;
    return ct__fail(x->graph, loc, op, "start must be an integer without axes, found %s", ct_tensor_describe(start));
}

static int starts_of(const char *loc, const ct_tensor *x, int dim, ct_tensor *start, ct_tensor **out_starts)
{
    ct_tensor *zero = x->rank > 1 ? ct__scalar_like(loc, start, 0) : NULL;
    for (int i = 0; i < x->rank; i++) out_starts[i] = i == dim ? start : zero;
    return x->rank;
}

static void print_dynamic_slice_attrs(ct_printer *p, const ct_node *node)
{
    const dynamic_attrs *attrs = node->attrs;
    ct__print_dims(p, "slice_sizes", attrs->sizes, node->operands[0]->rank);
}

static void vjp_dynamic_slice(ct_node *node, ct_tensor *const *cotangents, ct_tensor **gradients)
{
    const dynamic_attrs *attrs = node->attrs;
    ct_tensor *x = node->operands[0];
    gradients[0] = ct_dynamic_update_slice(ct_full_like(x, 0), cotangents[0], x->axes[attrs->dim].name,
                                           node->operands[1 + attrs->dim]);
}

static void rule_dynamic_slice(const ct_node *node, ct_factors *factors)
{
    rule_along(node, ((const dynamic_attrs *)node->attrs)->dim, 1, factors);
}

static void local_dynamic_slice(const ct_local *local)
{
    const ct_tensor *x = local->operands[0];
    dynamic_attrs attrs = *(const dynamic_attrs *)local->node->attrs;
    for (int i = 0; i < x->rank; i++)
        if (i != attrs.dim) attrs.sizes[i] = x->axes[i].size;
    ct__local_clone(local, ct_arena_dup(&x->graph->arena, &attrs, sizeof(attrs)));
}

static const ct_op op_dynamic_slice = {.name = "stablehlo.dynamic_slice",
                                       .print_attrs = print_dynamic_slice_attrs,
                                       .vjp = vjp_dynamic_slice,
                                       .factors = rule_dynamic_slice,
                                       .local = local_dynamic_slice};

ct_tensor *ct__dynamic_slice(const char *loc, ct_tensor *x, const char *axis, ct_tensor *start, int64_t size)
{
    if (ct__any_poison(2, (ct_tensor *[]){x, start})) return x->graph->poison;
    int dim = ct__parse_dim(x, loc, "dynamic_slice", axis);
    if (dim < 0) return x->graph->poison;
    if (size < 0 || size > x->axes[dim].size) /* (C4) */
        return ct__fail(x->graph, loc, "dynamic_slice", "size %lld is not within axis %s of %s", (long long)size, axis,
                        ct_tensor_describe(x));
    start = start_of(loc, "dynamic_slice", x, start);
    if (ct_tensor_is_poison(start)) return start;
    ct_tensor *operands[1 + CT_MAX_RANK] = {x};
    int num_starts = starts_of(loc, x, dim, start, operands + 1);
    dynamic_attrs attrs = {.dim = dim};
    for (int i = 0; i < x->rank; i++) attrs.sizes[i] = i == dim ? size : x->axes[i].size;
    ct_node *node = ct__node_new(x->graph, &op_dynamic_slice, loc, 1 + num_starts, operands);
    node->attrs = ct_arena_dup(&x->graph->arena, &attrs, sizeof(attrs));
    return resized(node, x, dim, size);
}

static void vjp_dynamic_update_slice(ct_node *node, ct_tensor *const *cotangents, ct_tensor **gradients)
{
    const dynamic_attrs *attrs = node->attrs;
    ct_tensor *x = node->operands[0], *update = node->operands[1], *start = node->operands[2 + attrs->dim];
    const char *axis = x->axes[attrs->dim].name;
    if (ct__wants_gradient(x))
        gradients[0] = ct_dynamic_update_slice(cotangents[0], ct_full_like(update, 0), axis, start);
    if (ct__wants_gradient(update))
        gradients[1] = ct_dynamic_slice(cotangents[0], axis, start, update->axes[attrs->dim].size);
}

static void rule_dynamic_update_slice(const ct_node *node, ct_factors *factors)
{
    rule_along(node, ((const dynamic_attrs *)node->attrs)->dim, 3, factors);
}

static const ct_op op_dynamic_update_slice = {
    .name = "stablehlo.dynamic_update_slice", .vjp = vjp_dynamic_update_slice, .factors = rule_dynamic_update_slice};

ct_tensor *ct__dynamic_update_slice(const char *loc, ct_tensor *x, ct_tensor *update, const char *axis,
                                    ct_tensor *start)
{
    if (ct__any_poison(3, (ct_tensor *[]){x, update, start})) return x->graph->poison;
    int dim = ct__parse_dim(x, loc, "dynamic_update_slice", axis);
    if (dim < 0) return x->graph->poison;
    bool fits = x->dtype == update->dtype && x->rank == update->rank; /* (C2), (C3) */
    for (int i = 0; fits && i < x->rank; i++)
        fits =
            x->axes[i].name == update->axes[i].name &&
            (i == dim ? update->axes[i].size <= x->axes[i].size : update->axes[i].size == x->axes[i].size); /* (C6) */
    if (!fits)
        return ct__fail(x->graph, loc, "dynamic_update_slice", "the update %s does not fit into %s along %s",
                        ct_tensor_describe(update), ct_tensor_describe(x), axis);
    start = start_of(loc, "dynamic_update_slice", x, start);
    if (ct_tensor_is_poison(start)) return start;
    ct_tensor *operands[2 + CT_MAX_RANK] = {x, update};
    int num_starts = starts_of(loc, x, dim, start, operands + 2);
    dynamic_attrs attrs = {.dim = dim};
    ct_node *node = ct__node_new(x->graph, &op_dynamic_update_slice, loc, 2 + num_starts, operands);
    node->attrs = ct_arena_dup(&x->graph->arena, &attrs, sizeof(attrs));
    return ct__result_like(node, x);
}

/* ---- concatenate ---- */

static void print_dim_attr(ct_printer *p, const ct_node *node)
{
    ct__print(p, "dimension = %lld : i64", (long long)*(const int64_t *)node->attrs);
}

static void vjp_concat(ct_node *node, ct_tensor *const *cotangents, ct_tensor **gradients)
{
    int64_t dim = *(const int64_t *)node->attrs, start = 0;
    for (int i = 0; i < node->num_operands; i++) {
        int64_t size = node->operands[i]->axes[dim].size;
        if (ct__wants_gradient(node->operands[i]))
            gradients[i] = ct_slice(cotangents[0], node->operands[i]->axes[dim].name, start, start + size);
        start += size;
    }
}

static void rule_concat(const ct_node *node, ct_factors *factors)
{
    rule_along(node, *(const int64_t *)node->attrs, ct__all_operands(node), factors);
}

static const ct_op op_concat = {
    .name = "stablehlo.concatenate", .print_attrs = print_dim_attr, .vjp = vjp_concat, .factors = rule_concat};

ct_tensor *ct__concat(const char *loc, ct_tensor *const *tensors, int num_tensors, const char *axis)
{
    if (ct__any_poison(num_tensors, tensors)) return tensors[0]->graph->poison;
    ct_tensor *first = tensors[0];
    int64_t dim = ct__parse_dim(first, loc, "concat", axis);
    if (dim < 0) return first->graph->poison;
    if (num_tensors == 1) return first;
    int64_t total = 0;
    for (int i = 0; i < num_tensors; i++) {
        const ct_tensor *x = tensors[i];
        bool fits = x->dtype == first->dtype && x->rank == first->rank; /* (C1), (C2) */
        for (int j = 0; fits && j < x->rank; j++)
            fits = x->axes[j].name == first->axes[j].name && (j == dim || x->axes[j].size == first->axes[j].size);
        if (!fits)
            return ct__fail(first->graph, loc, "concat", "%s and %s differ elsewhere than along %s",
                            ct_tensor_describe(first), ct_tensor_describe(x), axis);
        total += x->axes[dim].size;
    }
    ct_node *node = ct__node_new(first->graph, &op_concat, loc, num_tensors, tensors);
    node->attrs = ct_arena_dup(&first->graph->arena, &dim, sizeof(dim));
    return resized(node, first, (int)dim, total);
}

/* ---- reverse ---- */

static void print_reverse_attrs(ct_printer *p, const ct_node *node)
{
    ct__print_dims(p, "dimensions", node->attrs, 1);
}

static void vjp_reverse(ct_node *node, ct_tensor *const *cotangents, ct_tensor **gradients)
{
    int64_t dim = *(const int64_t *)node->attrs;
    gradients[0] = ct_reverse(cotangents[0], node->operands[0]->axes[dim].name);
}

static void rule_reverse(const ct_node *node, ct_factors *factors)
{
    rule_along(node, *(const int64_t *)node->attrs, 1, factors);
    factors->repeatable = true;
}

static const ct_op op_reverse = {
    .name = "stablehlo.reverse", .print_attrs = print_reverse_attrs, .vjp = vjp_reverse, .factors = rule_reverse};

ct_tensor *ct__reverse(const char *loc, ct_tensor *x, const char *axis)
{
    if (ct__any_poison(1, &x)) return x->graph->poison;
    int64_t dim = ct__parse_dim(x, loc, "reverse", axis);
    if (dim < 0) return x->graph->poison;
    ct_node *node = ct__node_new(x->graph, &op_reverse, loc, 1, &x);
    node->attrs = ct_arena_dup(&x->graph->arena, &dim, sizeof(dim));
    return ct__result_like(node, x);
}
