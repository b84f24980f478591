/* stablehlo.convert, bitcast_convert, reduce_precision. */
#include "graph/convert.h"

#include "graph/factor.h"

static void vjp_convert(ct_node *node, ct_tensor *const *cotangents, ct_tensor **gradients)
{
    gradients[0] = ct_convert(cotangents[0], node->operands[0]->dtype);
}

static void rule_convert(const ct_node *node, ct_factors *factors)
{
    ct__factors_elementwise(node, factors);
    ct__factors_linear(node, CT_LINEAR_JOINTLY, 1, factors); /* up to rounding */
}

/* A convert between floats passes gradients; one from or to integers or bool is piecewise constant. */
static const ct_op op_convert = {
    .name = "stablehlo.convert", .vjp = vjp_convert, .cheap = true, .factors = rule_convert};
static const ct_op op_convert_discrete = {
    .name = "stablehlo.convert", .zero_gradient = true, .cheap = true, .factors = ct__factors_elementwise};

ct_tensor *ct__convert(const char *loc, ct_tensor *x, ct_dtype dtype)
{
    if (ct__any_poison(1, &x)) return x->graph->poison;
    if (x->dtype == dtype) return x;
    bool smooth = ct_dtype_is_float(x->dtype) && ct_dtype_is_float(dtype);
    ct_node *node = ct__node_new(x->graph, smooth ? &op_convert : &op_convert_discrete, loc, 1, &x);
    return ct__result(node, dtype, x->rank, x->axes);
}

static const ct_op op_bitcast = {
    .name = "stablehlo.bitcast_convert", .zero_gradient = true, .cheap = true, .factors = ct__factors_elementwise};

ct_tensor *ct__bitcast(const char *loc, ct_tensor *x, ct_dtype dtype)
{
    if (ct__any_poison(1, &x)) return x->graph->poison;
    if (ct_dtype_bytes(x->dtype) != ct_dtype_bytes(dtype)) /* (C1) restricted to equal sizes */
        return ct__fail(x->graph, loc, "bitcast", "%s and %s differ in size", ct_tensor_describe(x),
                        ct_dtype_name(dtype));
    ct_node *node = ct__node_new(x->graph, &op_bitcast, loc, 1, &x);
    return ct__result(node, dtype, x->rank, x->axes);
}

static void print_precision_attrs(ct_printer *p, const ct_node *node)
{
    bool bf16 = node->attrs != NULL;
    ct__print(p, "exponent_bits = %d : i32, mantissa_bits = %d : i32", bf16 ? 8 : 5, bf16 ? 7 : 10);
}

static void vjp_precision(ct_node *node, ct_tensor *const *cotangents, ct_tensor **gradients)
{
    (void)node;
    gradients[0] = cotangents[0]; /* straight through, as for a conversion there and back */
}

static const ct_op op_reduce_precision = {.name = "stablehlo.reduce_precision",
                                          .print_attrs = print_precision_attrs,
                                          .vjp = vjp_precision,
                                          .cheap = true,
                                          .factors = ct__factors_elementwise};

ct_tensor *ct__reduce_precision(const char *loc, ct_tensor *x, ct_dtype dtype)
{
    if (ct__any_poison(1, &x)) return x->graph->poison;
    if (!ct_dtype_is_float(x->dtype) || (dtype != CT_DTYPE_BF16 && dtype != CT_DTYPE_F16))
        return ct__fail(x->graph, loc, "reduce_precision", "needs a float and bf16 or f16, found %s and %s",
                        ct_tensor_describe(x), ct_dtype_name(dtype));
    ct_node *node = ct__node_new(x->graph, &op_reduce_precision, loc, 1, &x);
    node->attrs = dtype == CT_DTYPE_BF16 ? (void *)(uintptr_t) "bf16" : NULL;
    return ct__result_like(node, x);
}
