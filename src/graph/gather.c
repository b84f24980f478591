/* stablehlo.gather and stablehlo.scatter over the first dim, and one-hot. */
#include "graph/gather.h"

#include <string.h>

#include "graph/compare.h"
#include "graph/constant.h"
#include "graph/convert.h"
#include "graph/elementwise.h"
#include "graph/factor.h"
#include "graph/shape.h"

static void print_gather_attrs(ct_printer *p, const ct_node *node)
{
    const ct_tensor *table = node->operands[0], *indices = node->operands[1];
    ct_str_append(p->out, "dimension_numbers = #stablehlo.gather<offset_dims = [");
    for (int i = 1; i < table->rank; i++) ct__print(p, "%s%d", i > 1 ? ", " : "", indices->rank + i - 1);
    ct__print(p, "], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = %d>, ", indices->rank);
    int64_t sizes[CT_MAX_RANK] = {1};
    for (int i = 1; i < table->rank; i++) sizes[i] = table->axes[i].size;
    ct__print_dims(p, "slice_sizes", sizes, table->rank);
    ct_str_append(p->out, ", indices_are_sorted = false");
}

static void vjp_take(ct_node *node, ct_tensor *const *cotangents, ct_tensor **gradients)
{
    ct_tensor *table = node->operands[0];
    /* the forward op clamps indices, the scatter would drop them */
    ct_tensor *indices = ct_clamp(node->operands[1], 0, (double)(table->axes[0].size - 1));
    gradients[0] = ct_scatter_add(ct__zeros_beside(CT_LOC, table), indices, cotangents[0], table->axes[0].name);
}

/* The dims [indices... rest...] of tensor, the last operand or the result, and those that they are of. */
static void factors_of_rows(const ct_node *node, ct_factor_kind of_indices, ct_dim_factors *rows, ct_dim_factors *also,
                            ct_factors *factors)
{
    const ct_tensor *table = node->operands[0], *indices = node->operands[1];
    for (int i = 0; i < indices->rank + table->rank - 1; i++) {
        bool is_index = i < indices->rank;
        int dim = is_index ? i : i - indices->rank + 1;
        int factor = ct__factor_add(factors, is_index ? of_indices : CT_FACTOR_PARALLEL,
                                    (is_index ? indices : table)->axes[dim].size);
        if (factor < 0) continue;
        ct_dim_factors one = {.count = 1, .factors = {(signed char)factor}};
        rows[i] = one;
        factors->operands[is_index][dim] = one;
        if (also && !is_index) also[dim] = one;
    }
}

/* Split rows of the table: each index is found on one device, the others give zero. */
static void rule_take(const ct_node *node, ct_factors *factors)
{
    const ct_tensor *table = node->operands[0];
    bool is_bool = table->dtype == CT_DTYPE_BOOL;
    int row = ct__factor_add(factors, is_bool ? CT_FACTOR_WHOLE : CT_FACTOR_SUM, table->axes[0].size);
    ct__factor_operand(factors, 0, 0, row);
    factors_of_rows(node, CT_FACTOR_PARALLEL, factors->results[0], NULL, factors);
    ct__factors_linear(node, CT_LINEAR_JOINTLY, 1, factors);
}

static void local_take(const ct_local *local)
{
    ct__local_lookup(local, ct__factor_of(&local->factors->operands[0][0]), local->node->operands[0]->axes[0].size);
}

static const ct_op op_take = {.name = "stablehlo.gather",
                              .print_attrs = print_gather_attrs,
                              .vjp = vjp_take,
                              .factors = rule_take,
                              .local = local_take};

/* Checks table and indices; fills the axes of [indices... rest...]. */
static bool lookup_axes(const char *loc, const char *op, const ct_tensor *table, const ct_tensor *indices,
                        const char *axis, ct_axis *out_axes, int *out_rank)
{
    ct_graph *graph = table->graph;
    if (!table->rank || table->axes[0].name != ct__intern_z(graph, axis)) {
        ct__fail(graph, loc, op, "%s must be the first axis of %s", axis, ct_tensor_describe(table));
        return false;
    }
    if (indices->dtype != CT_DTYPE_S32 && indices->dtype != CT_DTYPE_S64) {
        ct__fail(graph, loc, op, "indices must be s32 or s64, found %s", ct_tensor_describe(indices));
        return false;
    }
    if (indices->rank + table->rank - 1 > CT_MAX_RANK) {
        ct__fail(graph, loc, op, "%s by %s would have more than %d axes", ct_tensor_describe(table),
                 ct_tensor_describe(indices), CT_MAX_RANK);
        return false;
    }
    int rank = 0;
    for (int i = 0; i < indices->rank; i++) out_axes[rank++] = indices->axes[i];
    for (int i = 1; i < table->rank; i++) {
        if (ct__find_axis(indices->axes, indices->rank, table->axes[i].name) >= 0) {
            ct__fail(graph, loc, op, "axis %s occurs in both %s and %s", table->axes[i].name, ct_tensor_describe(table),
                     ct_tensor_describe(indices));
            return false;
        }
        out_axes[rank++] = table->axes[i];
    }
    *out_rank = rank;
    return true;
}

ct_tensor *ct__take(const char *loc, ct_tensor *table, ct_tensor *indices, const char *axis)
{
    ct_tensor *operands[2] = {table, indices};
    if (ct__any_poison(2, operands)) return table->graph->poison;
    ct_axis axes[CT_MAX_RANK];
    int rank;
    if (!lookup_axes(loc, "take", table, indices, axis, axes, &rank)) return table->graph->poison;
    return ct__result(ct__node_new(table->graph, &op_take, loc, 2, operands), table->dtype, rank, axes);
}

static void print_scatter(ct_printer *p, const ct_node *node)
{
    const ct_tensor *x = node->operands[0], *indices = node->operands[1];
    const char *type = ct_dtype_mlir(x->dtype);
    ct__print_line(p);
    ct__print_results(p, node);
    ct_str_append(p->out, "\"stablehlo.scatter\"");
    ct__print_operands(p, node->operands, 3);
    ct_str_append(p->out, " <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [");
    for (int i = 1; i < x->rank; i++) ct__print(p, "%s%d", i > 1 ? ", " : "", indices->rank + i - 1);
    ct__print(p,
              "], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = %d>, "
              "indices_are_sorted = false, unique_indices = false}> ",
              indices->rank);
    int a = ct__print_new_name(p), b = ct__print_new_name(p), r = ct__print_new_name(p);
    ct__print(p, "({ ^bb0(%%%d: tensor<%s>, %%%d: tensor<%s>): ", a, type, b, type);
    ct__print(p, "%%%d = \"stablehlo.add\"(%%%d, %%%d) : (tensor<%s>, tensor<%s>) -> tensor<%s> ", r, a, b, type, type,
              type);
    ct__print(p, "\"stablehlo.return\"(%%%d) : (tensor<%s>) -> () })", r, type);
    ct__print_signature(p, node);
}

static void vjp_scatter_add(ct_node *node, ct_tensor *const *cotangents, ct_tensor **gradients)
{
    gradients[0] = cotangents[0];
    if (!ct__wants_gradient(node->operands[2])) return;
    ct_tensor *x = node->operands[0], *indices = node->operands[1];
    ct_tensor *taken = ct_take(cotangents[0], indices, x->axes[0].name);
    /* updates that were dropped have no gradient */
    ct_tensor *kept = ct_and(ct_ge(indices, ct_scalar_like(indices, 0)),
                             ct_lt(indices, ct_scalar_like(indices, (double)x->axes[0].size)));
    gradients[2] = ct_select(kept, taken, ct_scalar_like(taken, 0));
}

/* Split rows of x: each device takes its own updates, a scatter drops the others. Split updates: x counts once. */
static void rule_scatter_add(const ct_node *node, ct_factors *factors)
{
    const ct_tensor *x = node->operands[0];
    int row = ct__factor_add(factors, CT_FACTOR_PARALLEL, x->axes[0].size);
    ct__factor_operand(factors, 0, 0, row);
    ct__factor_result(factors, 0, 0, row);
    factors_of_rows(node, x->dtype == CT_DTYPE_BOOL ? CT_FACTOR_WHOLE : CT_FACTOR_SUM, factors->operands[2],
                    factors->results[0], factors);
    ct__factors_linear(node, CT_LINEAR_JOINTLY, 1u << 0 | 1u << 2, factors);
}

static void local_scatter_add(const ct_local *local)
{
    ct__local_scatter(local, ct__factor_of(&local->factors->operands[0][0]));
}

static const ct_op op_scatter_add = {.name = "stablehlo.scatter",
                                     .print = print_scatter,
                                     .vjp = vjp_scatter_add,
                                     .factors = rule_scatter_add,
                                     .local = local_scatter_add};

ct_tensor *ct__scatter_add(const char *loc, ct_tensor *x, ct_tensor *indices, ct_tensor *updates, const char *axis)
{
    ct_tensor *operands[3] = {x, indices, updates};
    if (ct__any_poison(3, operands)) return x->graph->poison;
    ct_axis axes[CT_MAX_RANK];
    int rank;
    if (!lookup_axes(loc, "scatter_add", x, indices, axis, axes, &rank)) return x->graph->poison;
    bool fits = updates->dtype == x->dtype && updates->rank == rank;
    for (int i = 0; fits && i < rank; i++)
        fits = updates->axes[i].name == axes[i].name && updates->axes[i].size == axes[i].size;
    if (!fits)
        return ct__fail(x->graph, loc, "scatter_add", "updates must have dtype %s and the axes \"%s\", found %s",
                        ct_dtype_name(x->dtype), ct__axes_text(x->graph, axes, rank), ct_tensor_describe(updates));
    return ct__result_like(ct__node_new(x->graph, &op_scatter_add, loc, 3, operands), x);
}

ct_tensor *ct__one_hot(const char *loc, ct_tensor *indices, const char *axis, int64_t size, ct_dtype dtype)
{
    if (ct__any_poison(1, &indices)) return indices->graph->poison;
    ct_axis axes[CT_MAX_RANK + 1];
    memcpy(axes, indices->axes, sizeof(indices->axes));
    if (indices->rank == CT_MAX_RANK || ct_tensor_find_axis(indices, axis) >= 0 || !ct_dtype_is_integer(indices->dtype))
        return ct__fail(indices->graph, loc, "one_hot", "cannot add axis %s to %s", axis, ct_tensor_describe(indices));
    axes[indices->rank] = (ct_axis){ct__intern_z(indices->graph, axis), size};
    const char *one_axis = ct_arena_printf(&indices->graph->arena, "%s=%lld", axis, (long long)size);
    ct_tensor *ramp = ct__iota(loc, indices->graph, indices->dtype, one_axis, axis);
    ct_tensor *wide = ct__broadcast_to(loc, indices, indices->rank + 1, axes);
    return ct__convert(loc, ct__compare(loc, "EQ", wide, ramp), dtype);
}
