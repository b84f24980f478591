/* Element-wise ops, comparisons, selection, conversion, constants. Ranges stay clear of points without a derivative. */
#include "op_table.h"

enum { N = 12 };
#define X in[0][i]
#define Y in[1][i]

#define UNARY(op, expression)                                                                                          \
    BUILD(build_##op)                                                                                                  \
    {                                                                                                                  \
        UNUSED4;                                                                                                       \
        out[0] = ct_##op(in[0]);                                                                                       \
    }                                                                                                                  \
    REFERENCE(ref_##op)                                                                                                \
    {                                                                                                                  \
        for (int i = 0; i < N; i++) out[0][i] = (expression);                                                          \
    }
#define BINARY(op, expression)                                                                                         \
    BUILD(build_##op)                                                                                                  \
    {                                                                                                                  \
        UNUSED4;                                                                                                       \
        out[0] = ct_##op(in[0], in[1]);                                                                                \
    }                                                                                                                  \
    REFERENCE(ref_##op)                                                                                                \
    {                                                                                                                  \
        for (int i = 0; i < N; i++) out[0][i] = (expression);                                                          \
    }

UNARY(neg, -X)
UNARY(abs, fabs(X))
UNARY(sign, (X > 0) - (X < 0))
UNARY(exp, exp(X))
UNARY(expm1, expm1(X))
UNARY(log, log(X))
UNARY(log1p, log1p(X))
UNARY(sqrt, sqrt(X))
UNARY(rsqrt, 1 / sqrt(X))
UNARY(tanh, tanh(X))
UNARY(sigmoid, 1 / (1 + exp(-X)))
UNARY(sin, sin(X))
UNARY(cos, cos(X))
UNARY(floor, floor(X))
UNARY(ceil, ceil(X))
UNARY(round, nearbyint(X))
UNARY(silu, X / (1 + exp(-X)))
UNARY(not, X == 0)
UNARY(count_leading_zeros, X < 1 ? 32 : 31 - floor(log2(X)))
BINARY(add, X + Y)
BINARY(sub, X - Y)
BINARY(mul, X *Y)
BINARY(div, X / Y)
BINARY(maximum, fmax(X, Y))
BINARY(minimum, fmin(X, Y))
BINARY(pow, pow(X, Y))
BINARY(remainder, fmod(X, Y))
BINARY(and, (double)((int64_t)X &(int64_t)Y))
BINARY(or, (double)((int64_t)X | (int64_t)Y))
BINARY(xor, (double)((int64_t)X ^ (int64_t)Y))
BINARY(shift_left, (double)((int64_t)X << (int64_t)Y))
BINARY(shift_right, (double)((int64_t)X >> (int64_t)Y))
BINARY(shift_right_arithmetic, floor(X / (double)(1 << (int)Y)))
BINARY(eq, X == Y)
BINARY(ne, X != Y)
BINARY(lt, X < Y)
BINARY(le, X <= Y)
BINARY(gt, X > Y)
BINARY(ge, X >= Y)

BUILD(build_div_int)
{
    UNUSED4;
    out[0] = ct_div(in[0], in[1]);
}
REFERENCE(ref_div_int)
{
    for (int i = 0; i < N; i++) out[0][i] = trunc(X / Y);
}

/* b lacks an axis of a and has the others in another order */
BUILD(build_broadcast_binary)
{
    UNUSED4;
    out[0] = ct_mul(in[0], in[1]);
    out[1] = ct_sub(in[1], in[0]);
}
REFERENCE(ref_broadcast_binary)
{
    for (int a = 0; a < 2; a++)
        for (int b = 0; b < 3; b++)
            for (int c = 0; c < 4; c++) {
                double x = in[0][(a * 3 + b) * 4 + c], y = in[1][c * 2 + a];
                out[0][(a * 3 + b) * 4 + c] = x * y;
                out[1][(a * 3 + b) * 4 + c] = y - x;
            }
}

BUILD(build_same_operand_twice)
{
    UNUSED4;
    out[0] = ct_mul(in[0], in[0]);
    out[1] = ct_sub(in[0], in[0]);
}
REFERENCE(ref_same_operand_twice)
{
    for (int i = 0; i < N; i++) {
        out[0][i] = X * X;
        out[1][i] = 0;
    }
}

BUILD(build_scalars)
{
    UNUSED4;
    out[0] = ct_mul_scalar(ct_add_scalar(in[0], 2), 3);
}
REFERENCE(ref_scalars)
{
    for (int i = 0; i < N; i++) out[0][i] = (X + 2) * 3;
}

BUILD(build_select)
{
    UNUSED4;
    out[0] = ct_select(in[2], in[0], in[1]);
}
REFERENCE(ref_select)
{
    for (int i = 0; i < N; i++) out[0][i] = in[2][i / 4] != 0 ? X : in[1][i % 4];
}

BUILD(build_clamp)
{
    UNUSED4;
    out[0] = ct_clamp(in[0], -0.5, 0.25);
}
REFERENCE(ref_clamp)
{
    for (int i = 0; i < N; i++) out[0][i] = fmin(fmax(X, -0.5), 0.25);
}

BUILD(build_is_finite)
{
    UNUSED4;
    /* 1 / 0 and 0 / 0 from zeros among the input */
    out[0] = ct_is_finite(ct_div(ct_full_like(in[0], 1), ct_floor(in[0])));
}
REFERENCE(ref_is_finite)
{
    for (int i = 0; i < N; i++) out[0][i] = floor(X) != 0;
}

BUILD(build_convert)
{
    UNUSED4;
    out[0] = ct_convert(ct_convert(in[0], CT_DTYPE_S32), CT_DTYPE_F32);
    out[1] = ct_convert(in[0], CT_DTYPE_BOOL);
}
REFERENCE(ref_convert)
{
    for (int i = 0; i < N; i++) {
        out[0][i] = trunc(X);
        out[1][i] = X != 0;
    }
}

/* f32 on the way costs precision that the tolerance allows for */
BUILD(build_convert_grad)
{
    UNUSED4;
    out[0] = ct_convert(ct_mul(in[0], in[0]), CT_DTYPE_F64);
    out[1] = ct_mul(ct_convert(ct_convert(in[0], CT_DTYPE_S32), CT_DTYPE_F64), in[0]);
}

BUILD(build_bitcast)
{
    UNUSED4;
    out[0] = ct_bitcast(ct_bitcast(in[0], CT_DTYPE_U32), CT_DTYPE_F32);
    out[1] = ct_shift_right(ct_bitcast(ct_abs(in[0]), CT_DTYPE_U32), ct_scalar(graph, CT_DTYPE_U32, 23));
}
REFERENCE(ref_bitcast)
{
    for (int i = 0; i < N; i++) {
        out[0][i] = X;
        out[1][i] = floor(log2(fabs(X))) + 127;
    }
}

BUILD(build_reduce_precision)
{
    UNUSED4;
    out[0] = ct_reduce_precision(in[0], CT_DTYPE_BF16);
    out[1] = ct_reduce_precision(in[0], CT_DTYPE_F16);
}
static double rounded(double x, int bits)
{
    int exponent;
    double mantissa = frexp(x, &exponent);
    return ldexp(nearbyint(ldexp(mantissa, bits)), exponent - bits);
}
REFERENCE(ref_reduce_precision)
{
    for (int i = 0; i < N; i++) {
        out[0][i] = rounded(X, 8);
        out[1][i] = rounded(X, 11);
    }
}

BUILD(build_constants)
{
    UNUSED4;
    static const float values[6] = {1, -2, 3.5f, INFINITY, -INFINITY, 1e-3f};
    static const uint8_t bools[6] = {1, 0, 0, 1, 1, 0};
    static const int32_t integers[4] = {7, -8, INT32_MAX, INT32_MIN};
    ct_array floats_array = {.dtype = CT_DTYPE_F32, .rank = 2, .sizes = {2, 3}, .data = (void *)(uintptr_t)values};
    ct_array bools_array = {.dtype = CT_DTYPE_BOOL, .rank = 3, .sizes = {1, 2, 3}, .data = (void *)(uintptr_t)bools};
    ct_array integers_array = {.dtype = CT_DTYPE_S32, .rank = 1, .sizes = {4}, .data = (void *)(uintptr_t)integers};
    out[0] = ct_constant(graph, &floats_array, "a b");
    out[1] = ct_constant(graph, &bools_array, "a b c");
    out[2] = ct_constant(graph, &integers_array, "a");
    out[3] = ct_full(graph, CT_DTYPE_F32, "a=2", NAN);
    out[4] = ct_iota(graph, CT_DTYPE_U8, "a=2 b=3", "b");
    out[5] = ct_iota(graph, CT_DTYPE_BF16, "a=2 b=3", "a");
    out[6] = ct_full_like(in[0], -1.5);
}
REFERENCE(ref_constants)
{
    (void)in;
    static const double expected[7][6] = {{1, -2, 3.5, INFINITY, -INFINITY, 1e-3f},
                                          {1, 0, 0, 1, 1, 0},
                                          {7, -8, INT32_MAX, INT32_MIN},
                                          {NAN, NAN},
                                          {0, 1, 2, 0, 1, 2},
                                          {0, 0, 0, 1, 1, 1},
                                          {-1.5, -1.5}};
    static const int counts[7] = {6, 6, 4, 2, 6, 6, 2};
    for (int k = 0; k < 7; k++)
        for (int i = 0; i < counts[k]; i++) out[k][i] = expected[k][i];
}

/* a tie shares the gradient: checked against the average of the one-sided differences, which central ones are */
BUILD(build_ties)
{
    UNUSED4;
    ct_tensor *same = ct_mul_scalar(in[0], 1);
    out[0] = ct_maximum(in[0], same);
    out[1] = ct_minimum(in[0], same);
}

#define PLAIN "a=3 b=4"
#define U(op, types, differentiable, low, high)                                                                        \
    {                                                                                                                  \
        .name = #op, .dtypes = types, .grad = differentiable, .inputs = {{PLAIN, low, high, 0}}, .num_outputs = 1,     \
        .build = build_##op, .reference = ref_##op, .print = true                                                      \
    }
#define B(op, types, differentiable, low, high)                                                                        \
    {                                                                                                                  \
        .name = #op, .dtypes = types, .grad = differentiable,                                                          \
        .inputs = {{PLAIN, low, high, 0}, {PLAIN, low, high, 0}}, .num_outputs = 1, .build = build_##op,               \
        .reference = ref_##op, .print = true                                                                           \
    }

static const op_case cases[] = {
    U(neg, FLOATS | SIGNED, true, -2, 2),
    U(abs, FLOATS | SIGNED, true, -2, 2),
    U(sign, FLOATS | SIGNED, true, -2, 2),
    U(exp, FLOATS, true, -2, 2),
    U(expm1, FLOATS, true, -2, 2),
    U(log, FLOATS, true, 0.1, 4),
    U(log1p, FLOATS, true, -0.5, 4),
    U(sqrt, FLOATS, true, 0.1, 4),
    U(rsqrt, FLOATS, true, 0.1, 4),
    U(tanh, FLOATS, true, -2, 2),
    U(sigmoid, FLOATS, true, -4, 4),
    U(sin, FLOATS, true, -3, 3),
    U(cos, FLOATS, true, -3, 3),
    U(floor, WIDE, true, -3, 3),
    U(ceil, WIDE, true, -3, 3),
    U(round, WIDE, true, -3, 3),
    U(silu, FLOATS, true, -3, 3),
    U(not, D(BOOL), false, 0, 1),
    {.name = "count_leading_zeros",
     .dtypes = D(U32) | D(S32),
     .inputs = {{PLAIN, 0, 70000, 0}},
     .num_outputs = 1,
     .build = build_count_leading_zeros,
     .reference = ref_count_leading_zeros},
    B(add, FLOATS | INTS, true, 0, 9),
    B(sub, FLOATS | SIGNED, true, -2, 2),
    B(mul, FLOATS | INTS, true, 0, 9),
    B(div, FLOATS, true, 0.5, 2),
    {.name = "div of integers",
     .dtypes = SIGNED,
     .inputs = {{PLAIN, -90, 90, 0}, {PLAIN, 1, 9, 0}},
     .num_outputs = 1,
     .build = build_div_int,
     .reference = ref_div_int},
    B(maximum, FLOATS | INTS, true, 0, 9),
    B(minimum, FLOATS | INTS, true, 0, 9),
    B(pow, WIDE, true, 0.5, 2),
    B(remainder, WIDE, true, 1, 5),
    {.name = "remainder of integers",
     .dtypes = SIGNED,
     .inputs = {{PLAIN, -90, 90, 0}, {PLAIN, 1, 9, 0}},
     .num_outputs = 1,
     .build = build_remainder,
     .reference = ref_remainder},
    B(and, INTS | D(BOOL), false, 0, 1),
    B(or, INTS, false, 0, 99),
    B(xor, INTS | D(BOOL), false, 0, 1),
    B(shift_left, INTS, false, 0, 3),
    {.name = "shift_right",
     .dtypes = INTS,
     .inputs = {{PLAIN, 0, 99, 0}, {PLAIN, 0, 5, 0}},
     .num_outputs = 1,
     .build = build_shift_right,
     .reference = ref_shift_right},
    {.name = "shift_right_arithmetic",
     .dtypes = SIGNED,
     .inputs = {{PLAIN, -99, 99, 0}, {PLAIN, 0, 5, 0}},
     .num_outputs = 1,
     .build = build_shift_right_arithmetic,
     .reference = ref_shift_right_arithmetic,
     .print = true},
    B(eq, FLOATS | INTS | D(BOOL), false, 0, 1),
    B(ne, INTS, false, 0, 1),
    B(lt, FLOATS | INTS, false, 0, 2),
    B(le, INTS, false, 0, 2),
    B(gt, INTS, false, 0, 2),
    B(ge, INTS, false, 0, 2),
    {.name = "broadcast by name",
     .dtypes = WIDE | D(S32),
     .grad = true,
     .inputs = {{"a=2 b=3 c=4", -3, 3, 0}, {"c=4 a=2", -3, 3, 0}},
     .num_outputs = 2,
     .build = build_broadcast_binary,
     .reference = ref_broadcast_binary,
     .print = true},
    {.name = "same operand twice",
     .dtypes = WIDE,
     .grad = true,
     .inputs = {{PLAIN, 0, 0, 0}},
     .num_outputs = 2,
     .build = build_same_operand_twice,
     .reference = ref_same_operand_twice},
    {.name = "scalars",
     .dtypes = FLOATS | SIGNED,
     .grad = true,
     .inputs = {{PLAIN, -3, 3, 0}},
     .num_outputs = 1,
     .build = build_scalars,
     .reference = ref_scalars,
     .tolerance = 2},
    {.name = "select",
     .dtypes = FLOATS | INTS,
     .grad = true,
     .inputs = {{"a=3 b=4", 0, 3, 0}, {"b=4", 0, 3, 0}, {"a=3", 0, 0, CT_DTYPE_BOOL}},
     .num_outputs = 1,
     .build = build_select,
     .reference = ref_select,
     .print = true},
    {.name = "clamp",
     .dtypes = WIDE,
     .grad = true,
     .inputs = {{PLAIN, 0, 0, 0}},
     .num_outputs = 1,
     .build = build_clamp,
     .reference = ref_clamp},
    {.name = "is_finite",
     .dtypes = FLOATS,
     .inputs = {{PLAIN, 0, 2, 0}},
     .num_outputs = 1,
     .build = build_is_finite,
     .reference = ref_is_finite},
    {.name = "convert",
     .dtypes = FLOATS | SIGNED,
     .inputs = {{PLAIN, -3, 3, 0}},
     .num_outputs = 2,
     .build = build_convert,
     .reference = ref_convert,
     .print = true},
    {.name = "convert, gradient",
     .grad = true,
     .inputs = {{PLAIN, 1.1, 1.9, 0}},
     .num_outputs = 2,
     .build = build_convert_grad},
    {.name = "bitcast",
     .dtypes = D(F32),
     .inputs = {{PLAIN, 0, 0, 0}},
     .num_outputs = 2,
     .build = build_bitcast,
     .reference = ref_bitcast,
     .print = true},
    {.name = "reduce_precision",
     .dtypes = D(F32),
     .inputs = {{PLAIN, 0, 0, 0}},
     .num_outputs = 2,
     .build = build_reduce_precision,
     .reference = ref_reduce_precision,
     .tolerance = 1e-6,
     .print = true},
    {.name = "constants",
     .dtypes = D(F32),
     .inputs = {{"a=2", 0, 0, 0}},
     .num_outputs = 7,
     .build = build_constants,
     .reference = ref_constants,
     .print = true},
    {.name = "ties", .grad = true, .inputs = {{PLAIN, 0, 0, 0}}, .num_outputs = 2, .build = build_ties},
};
const op_family elementwise_cases = {"elementwise", cases, CT_COUNT(cases)};
