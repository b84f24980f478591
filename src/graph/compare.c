/* stablehlo.compare and stablehlo.select. */
#include "graph/compare.h"

#include "graph/constant.h"
#include "graph/elementwise.h"
#include "graph/factor.h"
#include "graph/shape.h"

static void print_compare_attrs(ct_printer *p, const ct_node *node)
{
    ct__print(p, "comparison_direction = #stablehlo<comparison_direction %s>", (const char *)node->attrs);
}

static const ct_op op_compare = {.name = "stablehlo.compare",
                                 .print_attrs = print_compare_attrs,
                                 .zero_gradient = true,
                                 .cheap = true,
                                 .factors = ct__factors_elementwise};

ct_tensor *ct__compare(const char *loc, const char *direction, ct_tensor *a, ct_tensor *b)
{
    ct_tensor *operands[2] = {a, b};
    if (ct__any_poison(2, operands)) return a->graph->poison;
    if (a->dtype != b->dtype) /* (C1) */
        return ct__fail(a->graph, loc, "compare", "dtypes must be equal, found %s and %s", ct_tensor_describe(a),
                        ct_tensor_describe(b));
    if (!ct__broadcast_together(loc, "compare", 2, operands)) return a->graph->poison;
    ct_node *node = ct__node_new(a->graph, &op_compare, loc, 2, operands);
    node->attrs = (void *)(uintptr_t)direction;
    return ct__result(node, CT_DTYPE_BOOL, operands[0]->rank, operands[0]->axes);
}

static void vjp_select(ct_node *node, ct_tensor *const *cotangents, ct_tensor **gradients)
{
    ct_tensor *zero = ct_scalar_like(cotangents[0], 0);
    if (ct__wants_gradient(node->operands[1])) gradients[1] = ct_select(node->operands[0], cotangents[0], zero);
    if (ct__wants_gradient(node->operands[2])) gradients[2] = ct_select(node->operands[0], zero, cotangents[0]);
}

static void rule_select(const ct_node *node, ct_factors *factors)
{
    ct__factors_elementwise(node, factors);
    ct__factors_linear(node, CT_LINEAR_JOINTLY, 1u << 1 | 1u << 2, factors);
}

static const ct_op op_select = {.name = "stablehlo.select", .vjp = vjp_select, .factors = rule_select};

ct_tensor *ct__select(const char *loc, ct_tensor *condition, ct_tensor *if_true, ct_tensor *if_false)
{
    ct_tensor *operands[3] = {condition, if_true, if_false};
    if (ct__any_poison(3, operands)) return condition->graph->poison;
    if (condition->dtype != CT_DTYPE_BOOL || if_true->dtype != if_false->dtype) /* (C1), (C2) */
        return ct__fail(condition->graph, loc, "select", "needs a bool condition and equal dtypes, found %s, %s and %s",
                        ct_tensor_describe(condition), ct_tensor_describe(if_true), ct_tensor_describe(if_false));
    if (!ct__broadcast_together(loc, "select", 3, operands)) return condition->graph->poison;
    ct_node *node = ct__node_new(condition->graph, &op_select, loc, 3, operands);
    return ct__result_like(node, operands[1]);
}

ct_tensor *ct__clamp(const char *loc, ct_tensor *x, double low, double high)
{
    return ct__minimum(loc, ct__maximum(loc, x, ct__scalar_like(loc, x, low)), ct__scalar_like(loc, x, high));
}
