/* stablehlo.gather and stablehlo.scatter with every dim but one a batching dim. */
#include "graph/along.h"

#include "graph/compare.h"
#include "graph/constant.h"
#include "graph/elementwise.h"
#include "graph/factor.h"
#include "graph/shape.h"

/* "0, 2": all dims but one */
static void print_other_dims(ct_printer *p, int rank, int dim)
{
    ct_str_append_char(p->out, '[');
    for (int i = 0, first = 1; i < rank; i++) {
        if (i == dim) continue;
        ct__print(p, "%s%d", first ? "" : ", ", i);
        first = 0;
    }
    ct_str_append_char(p->out, ']');
}

static void print_take_along_attrs(ct_printer *p, const ct_node *node)
{
    int rank = node->operands[0]->rank, dim = (int)*(const int64_t *)node->attrs;
    ct__print(p, "dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [%d]", dim);
    if (rank > 1) {
        ct_str_append(p->out, ", operand_batching_dims = ");
        print_other_dims(p, rank, dim);
        ct_str_append(p->out, ", start_indices_batching_dims = ");
        print_other_dims(p, rank, dim);
    }
    ct__print(p, ", start_index_map = [%d], index_vector_dim = %d>, ", dim, rank);
    int64_t ones[CT_MAX_RANK];
    for (int i = 0; i < rank; i++) ones[i] = 1;
    ct__print_dims(p, "slice_sizes", ones, rank);
    ct_str_append(p->out, ", indices_are_sorted = false");
}

static void print_scatter_along(ct_printer *p, const ct_node *node)
{
    int rank = node->operands[0]->rank, dim = (int)*(const int64_t *)node->attrs;
    const char *type = ct_dtype_mlir(node->operands[0]->dtype);
    ct__print_line(p);
    ct__print_results(p, node);
    ct_str_append(p->out, "\"stablehlo.scatter\"");
    ct__print_operands(p, node->operands, 3);
    ct__print(p, " <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [%d]", dim);
    if (rank > 1) {
        ct_str_append(p->out, ", input_batching_dims = ");
        print_other_dims(p, rank, dim);
        ct_str_append(p->out, ", scatter_indices_batching_dims = ");
        print_other_dims(p, rank, dim);
    }
    ct__print(p, ", scatter_dims_to_operand_dims = [%d], index_vector_dim = %d>, ", dim, rank);
    ct_str_append(p->out, "indices_are_sorted = false, unique_indices = false}> ");
    int a = ct__print_new_name(p), b = ct__print_new_name(p), r = ct__print_new_name(p);
    ct__print(p, "({ ^bb0(%%%d: tensor<%s>, %%%d: tensor<%s>): ", a, type, b, type);
    ct__print(p, "%%%d = \"stablehlo.add\"(%%%d, %%%d) : (tensor<%s>, tensor<%s>) -> tensor<%s> ", r, a, b, type, type,
              type);
    ct__print(p, "\"stablehlo.return\"(%%%d) : (tensor<%s>) -> () })", r, type);
    ct__print_signature(p, node);
}

static const char *axis_of(const ct_node *node)
{
    return node->operands[0]->axes[*(const int64_t *)node->attrs].name;
}

static void vjp_take_along(ct_node *node, ct_tensor *const *cotangents, ct_tensor **gradients)
{
    ct_tensor *x = node->operands[0];
    const char *axis = axis_of(node);
    /* the forward op clamps indices, the scatter would drop them */
    ct_tensor *indices = ct_clamp(node->operands[1], 0, (double)(ct_tensor_axis_size(x, axis) - 1));
    gradients[0] = ct_scatter_add_along(ct_full_like(x, 0), indices, cotangents[0], axis);
}

static void vjp_scatter_add_along(ct_node *node, ct_tensor *const *cotangents, ct_tensor **gradients)
{
    gradients[0] = cotangents[0];
    if (!ct__wants_gradient(node->operands[2])) return;
    ct_tensor *x = node->operands[0], *indices = node->operands[1];
    const char *axis = axis_of(node);
    ct_tensor *taken = ct_take_along(cotangents[0], indices, axis);
    /* updates that were dropped have no gradient */
    ct_tensor *size = ct_scalar_like(indices, (double)ct_tensor_axis_size(x, axis));
    ct_tensor *kept = ct_and(ct_ge(indices, ct_scalar_like(indices, 0)), ct_lt(indices, size));
    gradients[2] = ct_select(kept, taken, ct_scalar_like(taken, 0));
}

/* ---- placement, as that of take and scatter_add in gather.c; the other dims pass ---- */

static int dim_of(const ct_node *node)
{
    return (int)*(const int64_t *)node->attrs;
}

/* Of x's dims, and of those of the indices, which the last of the operands and results has as well. */
static void rule_along(const ct_node *node, ct_factor_kind of_x, ct_factor_kind of_indices, ct_factors *factors)
{
    int dim = dim_of(node);
    for (int i = 0; i < node->operands[0]->rank; i++) {
        int factor =
            ct__factor_add(factors, i == dim ? of_indices : CT_FACTOR_PARALLEL, node->operands[1]->axes[i].size);
        ct__factor_operand(factors, 1, i, factor);
        if (node->num_operands == 3)
            ct__factor_operand(factors, 2, i, factor);
        else
            ct__factor_result(factors, 0, i, factor);
        if (i == dim) factor = ct__factor_add(factors, of_x, node->operands[0]->axes[i].size);
        ct__factor_operand(factors, 0, i, factor);
        if (node->num_operands == 3) ct__factor_result(factors, 0, i, factor);
    }
}

static void rule_take_along(const ct_node *node, ct_factors *factors)
{
    bool is_bool = node->results[0]->dtype == CT_DTYPE_BOOL;
    rule_along(node, is_bool ? CT_FACTOR_WHOLE : CT_FACTOR_SUM, CT_FACTOR_PARALLEL, factors);
    ct__factors_linear(node, CT_LINEAR_JOINTLY, 1, factors);
}

static void local_take_along(const ct_local *local)
{
    int dim = dim_of(local->node);
    ct__local_lookup(local, ct__factor_of(&local->factors->operands[0][dim]), local->node->operands[0]->axes[dim].size);
}

static void rule_scatter_add_along(const ct_node *node, ct_factors *factors)
{
    rule_along(node, CT_FACTOR_PARALLEL, CT_FACTOR_SUM, factors);
    ct__factors_linear(node, CT_LINEAR_JOINTLY, 1u << 0 | 1u << 2, factors);
}

static void local_scatter_add_along(const ct_local *local)
{
    ct__local_scatter(local, ct__factor_of(&local->factors->operands[0][dim_of(local->node)]));
}

static const ct_op op_take_along = {.name = "stablehlo.gather",
                                    .print_attrs = print_take_along_attrs,
                                    .vjp = vjp_take_along,
                                    .factors = rule_take_along,
                                    .local = local_take_along};
static const ct_op op_scatter_add_along = {.name = "stablehlo.scatter",
                                           .print = print_scatter_along,
                                           .vjp = vjp_scatter_add_along,
                                           .factors = rule_scatter_add_along,
                                           .local = local_scatter_add_along};

/* The dim of axis when indices fit x; -1: an error was kept. */
static int64_t along_dim(const char *loc, const char *op, const ct_tensor *x, const ct_tensor *indices,
                         const char *axis)
{
    int dim = ct__parse_dim(x, loc, op, axis);
    if (dim < 0) return -1;
    bool fits = x->rank == indices->rank && (indices->dtype == CT_DTYPE_S32 || indices->dtype == CT_DTYPE_S64);
    for (int i = 0; fits && i < x->rank; i++)
        fits = x->axes[i].name == indices->axes[i].name && (i == dim || x->axes[i].size == indices->axes[i].size);
    if (fits) return dim;
    ct__fail(x->graph, loc, op, "indices must be s32 or s64 with the axes of %s, %s of any size, found %s",
             ct_tensor_describe(x), axis, ct_tensor_describe(indices));
    return -1;
}

ct_tensor *ct__take_along(const char *loc, ct_tensor *x, ct_tensor *indices, const char *axis)
{
    ct_tensor *operands[2] = {x, indices};
    if (ct__any_poison(2, operands)) return x->graph->poison;
    int64_t dim = along_dim(loc, "take_along", x, indices, axis);
    if (dim < 0) return x->graph->poison;
    ct_node *node = ct__node_new(x->graph, &op_take_along, loc, 2, operands);
    node->attrs = ct_arena_dup(&x->graph->arena, &dim, sizeof(dim));
    return ct__result(node, x->dtype, indices->rank, indices->axes);
}

ct_tensor *ct__scatter_add_along(const char *loc, ct_tensor *x, ct_tensor *indices, ct_tensor *updates,
                                 const char *axis)
{
    ct_tensor *operands[3] = {x, indices, updates};
    if (ct__any_poison(3, operands)) return x->graph->poison;
    int64_t dim = along_dim(loc, "scatter_add_along", x, indices, axis);
    if (dim < 0) return x->graph->poison;
    bool fits = updates->dtype == x->dtype && updates->rank == indices->rank && x->dtype != CT_DTYPE_BOOL;
    for (int i = 0; fits && i < x->rank; i++)
        fits = updates->axes[i].name == indices->axes[i].name && updates->axes[i].size == indices->axes[i].size;
    if (!fits)
        return ct__fail(x->graph, loc, "scatter_add_along", "updates must have dtype %s and the axes of %s, found %s",
                        ct_dtype_name(x->dtype), ct_tensor_describe(indices), ct_tensor_describe(updates));
    ct_node *node = ct__node_new(x->graph, &op_scatter_add_along, loc, 3, operands);
    node->attrs = ct_arena_dup(&x->graph->arena, &dim, sizeof(dim));
    return ct__result_like(node, x);
}
