/* Element-wise unary and binary ops: two tables of ops, each entry with its derivative. */
#include "graph/elementwise.h"

#include "graph/compare.h"
#include "graph/constant.h"
#include "graph/factor.h"
#include "graph/shape.h"

enum { FLOATS = 1, INTEGERS = 2, BOOLS = 4, NUMBERS = FLOATS | INTEGERS };

static bool dtype_allowed(ct_dtype dtype, int allowed)
{
    if (ct_dtype_is_float(dtype)) return allowed & FLOATS;
    if (ct_dtype_is_integer(dtype)) return allowed & INTEGERS;
    return (allowed & BOOLS) != 0;
}

/* "stablehlo.add" -> "add", for messages */
static const char *short_name(const ct_op *op)
{
    return op->name + sizeof("stablehlo.") - 1;
}

static ct_tensor *unary(const char *loc, const ct_op *op, int allowed, ct_dtype result_dtype, ct_tensor *x)
{
    if (ct__any_poison(1, &x)) return x->graph->poison;
    if (!dtype_allowed(x->dtype, allowed))
        return ct__fail(x->graph, loc, short_name(op), "dtype %s is not supported (%s)", ct_dtype_name(x->dtype),
                        ct_tensor_describe(x));
    ct_node *node = ct__node_new(x->graph, op, loc, 1, &x);
    return ct__result(node, result_dtype ? result_dtype : x->dtype, x->rank, x->axes);
}

static ct_tensor *binary(const char *loc, const ct_op *op, int allowed, ct_tensor *a, ct_tensor *b)
{
    ct_tensor *operands[2] = {a, b};
    if (ct__any_poison(2, operands)) return a->graph->poison;
    if (a->dtype != b->dtype || !dtype_allowed(a->dtype, allowed)) /* (C1) of the StableHLO ops: same element type */
        return ct__fail(a->graph, loc, short_name(op), "dtypes must be equal and supported, found %s and %s",
                        ct_tensor_describe(a), ct_tensor_describe(b));
    if (!ct__broadcast_together(loc, short_name(op), 2, operands)) return a->graph->poison;
    ct_node *node = ct__node_new(a->graph, op, loc, 2, operands);
    return ct__result_like(node, operands[0]);
}

/* ---- derivatives: x, y are operands, r the result, c its cotangent ---- */
#define VJP(name) static void name(ct_node *node, ct_tensor *const *cotangents, ct_tensor **gradients)
#define X         node->operands[0]
#define Y         node->operands[1]
#define R         node->results[0]
#define C         cotangents[0]

VJP(vjp_add)
{
    gradients[0] = C;
    gradients[1] = C;
    (void)node;
}
VJP(vjp_sub)
{
    gradients[0] = C;
    gradients[1] = ct_neg(C);
    (void)node;
}
VJP(vjp_mul)
{
    if (ct__wants_gradient(X)) gradients[0] = ct_mul(C, Y);
    if (ct__wants_gradient(Y)) gradients[1] = ct_mul(C, X);
}
VJP(vjp_div)
{
    ct_tensor *scaled = ct_div(C, Y);
    gradients[0] = scaled;
    if (ct__wants_gradient(Y)) gradients[1] = ct_neg(ct_mul(scaled, R));
}
/* 1 where x wins, 1/2 on a tie */
static ct_tensor *share(ct_tensor *x, ct_tensor *other, ct_tensor *r)
{
    ct_tensor *one = ct_scalar_like(x, 1), *half = ct_scalar_like(x, 0.5), *zero = ct_scalar_like(x, 0);
    return ct_select(ct_eq(x, r), ct_select(ct_eq(other, r), half, one), zero);
}
VJP(vjp_extremum)
{
    if (ct__wants_gradient(X)) gradients[0] = ct_mul(C, share(X, Y, R));
    if (ct__wants_gradient(Y)) gradients[1] = ct_mul(C, share(Y, X, R));
}
VJP(vjp_pow)
{
    if (ct__wants_gradient(X)) gradients[0] = ct_mul(C, ct_mul(Y, ct_pow(X, ct_add_scalar(Y, -1))));
    if (ct__wants_gradient(Y)) gradients[1] = ct_mul(C, ct_mul(ct_log(X), R));
}
VJP(vjp_remainder)
{
    gradients[0] = C;
    if (!ct__wants_gradient(Y)) return;
    ct_tensor *q = ct_div(ct_sub(X, R), Y); /* the truncated quotient */
    gradients[1] = ct_neg(ct_mul(C, q));
}
VJP(vjp_neg)
{
    gradients[0] = ct_neg(C);
    (void)node;
}
VJP(vjp_abs)
{
    gradients[0] = ct_mul(C, ct_sign(X));
}
VJP(vjp_exp)
{
    gradients[0] = ct_mul(C, R);
}
VJP(vjp_expm1)
{
    gradients[0] = ct_mul(C, ct_add_scalar(R, 1));
}
VJP(vjp_log)
{
    gradients[0] = ct_div(C, X);
}
VJP(vjp_log1p)
{
    gradients[0] = ct_div(C, ct_add_scalar(X, 1));
}
VJP(vjp_sqrt)
{
    gradients[0] = ct_div(ct_mul_scalar(C, 0.5), R);
}
VJP(vjp_rsqrt)
{
    gradients[0] = ct_mul(ct_mul_scalar(C, -0.5), ct_mul(R, ct_mul(R, R)));
}
VJP(vjp_tanh)
{
    gradients[0] = ct_mul(C, ct_sub(ct_scalar_like(R, 1), ct_mul(R, R)));
}
VJP(vjp_sigmoid)
{
    gradients[0] = ct_mul(C, ct_mul(R, ct_sub(ct_scalar_like(R, 1), R)));
}
VJP(vjp_sin)
{
    gradients[0] = ct_mul(C, ct_cos(X));
}
VJP(vjp_cos)
{
    gradients[0] = ct_neg(ct_mul(C, ct_sin(X)));
}
#undef X
#undef Y
#undef R
#undef C

/* ---- placement: every element by itself; in what the results are linear ---- */
static void rule_add(const ct_node *node, ct_factors *factors)
{
    ct__factors_elementwise(node, factors);
    ct__factors_linear(node, CT_LINEAR_JOINTLY, ct__all_operands(node), factors);
}
static void rule_mul(const ct_node *node, ct_factors *factors)
{
    ct__factors_elementwise(node, factors);
    ct__factors_linear(node, CT_LINEAR_EACH, ct__all_operands(node), factors);
}
static void rule_div(const ct_node *node, ct_factors *factors)
{
    ct__factors_elementwise(node, factors);
    /* integers are rounded */
    if (ct_dtype_is_float(node->results[0]->dtype)) ct__factors_linear(node, CT_LINEAR_EACH, 1, factors);
}

#define BINARY(fn, hlo, allowed, ...)                                                                                  \
    static const ct_op op_##fn = {.name = "stablehlo." hlo, __VA_ARGS__};                                              \
    ct_tensor *ct__##fn(const char *loc, ct_tensor *a, ct_tensor *b)                                                   \
    {                                                                                                                  \
        return binary(loc, &op_##fn, allowed, a, b);                                                                   \
    }
BINARY(add, "add", NUMBERS | BOOLS, .vjp = vjp_add, .factors = rule_add)
BINARY(sub, "subtract", NUMBERS, .vjp = vjp_sub, .factors = rule_add)
BINARY(mul, "multiply", NUMBERS | BOOLS, .vjp = vjp_mul, .factors = rule_mul)
BINARY(div, "divide", NUMBERS, .vjp = vjp_div, .factors = rule_div)
BINARY(maximum, "maximum", NUMBERS | BOOLS, .vjp = vjp_extremum, .factors = ct__factors_elementwise)
BINARY(minimum, "minimum", NUMBERS | BOOLS, .vjp = vjp_extremum, .factors = ct__factors_elementwise)
BINARY(pow, "power", NUMBERS, .vjp = vjp_pow, .factors = ct__factors_elementwise)
BINARY(remainder, "remainder", NUMBERS, .vjp = vjp_remainder, .factors = ct__factors_elementwise)
BINARY(and, "and", INTEGERS | BOOLS, .zero_gradient = true, .factors = ct__factors_elementwise)
BINARY(or, "or", INTEGERS | BOOLS, .zero_gradient = true, .factors = ct__factors_elementwise)
BINARY(xor, "xor", INTEGERS | BOOLS, .zero_gradient = true, .factors = ct__factors_elementwise)
BINARY(shift_left, "shift_left", INTEGERS, .zero_gradient = true, .factors = ct__factors_elementwise)
BINARY(shift_right, "shift_right_logical", INTEGERS, .zero_gradient = true, .factors = ct__factors_elementwise)
BINARY(shift_right_arithmetic, "shift_right_arithmetic", INTEGERS, .zero_gradient = true,
       .factors = ct__factors_elementwise)

#define UNARY(fn, hlo, allowed, result_dtype, ...)                                                                     \
    static const ct_op op_##fn = {.name = "stablehlo." hlo, __VA_ARGS__};                                              \
    ct_tensor *ct__##fn(const char *loc, ct_tensor *x)                                                                 \
    {                                                                                                                  \
        return unary(loc, &op_##fn, allowed, result_dtype, x);                                                         \
    }
UNARY(neg, "negate", NUMBERS, 0, .vjp = vjp_neg, .factors = rule_add)
UNARY(abs, "abs", NUMBERS, 0, .vjp = vjp_abs, .factors = ct__factors_elementwise)
UNARY(sign, "sign", NUMBERS, 0, .zero_gradient = true, .factors = ct__factors_elementwise)
UNARY(exp, "exponential", FLOATS, 0, .vjp = vjp_exp, .factors = ct__factors_elementwise)
UNARY(expm1, "exponential_minus_one", FLOATS, 0, .vjp = vjp_expm1, .factors = ct__factors_elementwise)
UNARY(log, "log", FLOATS, 0, .vjp = vjp_log, .factors = ct__factors_elementwise)
UNARY(log1p, "log_plus_one", FLOATS, 0, .vjp = vjp_log1p, .factors = ct__factors_elementwise)
UNARY(sqrt, "sqrt", FLOATS, 0, .vjp = vjp_sqrt, .factors = ct__factors_elementwise)
UNARY(rsqrt, "rsqrt", FLOATS, 0, .vjp = vjp_rsqrt, .factors = ct__factors_elementwise)
UNARY(tanh, "tanh", FLOATS, 0, .vjp = vjp_tanh, .factors = ct__factors_elementwise)
UNARY(sigmoid, "logistic", FLOATS, 0, .vjp = vjp_sigmoid, .factors = ct__factors_elementwise)
UNARY(sin, "sine", FLOATS, 0, .vjp = vjp_sin, .factors = ct__factors_elementwise)
UNARY(cos, "cosine", FLOATS, 0, .vjp = vjp_cos, .factors = ct__factors_elementwise)
UNARY(floor, "floor", FLOATS, 0, .zero_gradient = true, .factors = ct__factors_elementwise)
UNARY(ceil, "ceil", FLOATS, 0, .zero_gradient = true, .factors = ct__factors_elementwise)
UNARY(round, "round_nearest_even", FLOATS, 0, .zero_gradient = true, .factors = ct__factors_elementwise)
UNARY(not, "not", INTEGERS | BOOLS, 0, .zero_gradient = true, .factors = ct__factors_elementwise)
UNARY(is_finite, "is_finite", FLOATS, CT_DTYPE_BOOL, .zero_gradient = true, .factors = ct__factors_elementwise)
UNARY(count_leading_zeros, "count_leading_zeros", INTEGERS, 0, .zero_gradient = true,
      .factors = ct__factors_elementwise)

ct_tensor *ct__silu(const char *loc, ct_tensor *x)
{
    return ct__mul(loc, x, ct__sigmoid(loc, x));
}

ct_tensor *ct__add_scalar(const char *loc, ct_tensor *x, double value)
{
    return ct__add(loc, x, ct__scalar_like(loc, x, value));
}

ct_tensor *ct__mul_scalar(const char *loc, ct_tensor *x, double value)
{
    return ct__mul(loc, x, ct__scalar_like(loc, x, value));
}
