/* Contractions, reductions, softmax. */
#include "op_table.h"

#define X3(a, b, c) in[0][((a)*3 + (b)) * 4 + (c)]
#define ABC         "a=2 b=3 c=4"

/* Batch axis n, free axes i and j, contracted k, in every order of both operands: variant = 6 * order(a) + order(b). */
static const char *const orders_a[6] = {"n i k", "n k i", "i n k", "i k n", "k n i", "k i n"};
static const char *const orders_b[6] = {"n j k", "n k j", "j n k", "j k n", "k n j", "k j n"};
BUILD(build_dot_orders)
{
    UNUSED4;
    for (int b = 0; b < 6; b++)
        out[b] = ct_transpose(ct_dot(ct_transpose(in[0], orders_a[variant]), ct_transpose(in[1], orders_b[b]), "k"),
                              "n i j");
}
REFERENCE(ref_dot_orders)
{
    for (int n = 0; n < 2; n++)
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 2; j++) {
                double sum = 0;
                for (int k = 0; k < 4; k++) sum += in[0][(n * 3 + i) * 4 + k] * in[1][(n * 2 + j) * 4 + k];
                for (int b = 0; b < 6; b++) out[b][(n * 3 + i) * 2 + j] = sum;
            }
}

/* two batch axes in opposite orders, two contracted ones; an outer product; a full contraction */
BUILD(build_dot_shapes)
{
    UNUSED4;
    out[0] = ct_dot(in[0], in[1], "k l");
    out[1] = ct_dot(in[2], in[3], "");
    out[2] = ct_dot(in[2], in[2], "p");
}
REFERENCE(ref_dot_shapes)
{
    /* in[0]: m=2 k=3 n=2 l=2; in[1]: l=2 n=2 k=3 m=2; the result is [m n] */
    for (int m = 0; m < 2; m++)
        for (int n = 0; n < 2; n++) {
            double sum = 0;
            for (int k = 0; k < 3; k++)
                for (int l = 0; l < 2; l++)
                    sum += in[0][((m * 3 + k) * 2 + n) * 2 + l] * in[1][((l * 2 + n) * 3 + k) * 2 + m];
            out[0][m * 2 + n] = sum;
        }
    for (int p = 0; p < 3; p++)
        for (int q = 0; q < 2; q++) out[1][p * 2 + q] = in[2][p] * in[3][q];
    out[2][0] = in[2][0] * in[2][0] + in[2][1] * in[2][1] + in[2][2] * in[2][2];
}

BUILD(build_linear)
{
    UNUSED4;
    out[0] = ct_linear(in[0], in[1]);  /* [batch seq dim] [heads head_dim dim] */
    out[1] = ct_linear(out[0], in[2]); /* contracts heads and head_dim */
}
REFERENCE(ref_linear)
{
    double h[2][3][2][2];
    for (int b = 0; b < 2; b++)
        for (int s = 0; s < 3; s++) {
            for (int n = 0; n < 2; n++)
                for (int d = 0; d < 2; d++) {
                    double sum = 0;
                    for (int i = 0; i < 4; i++) sum += in[0][(b * 3 + s) * 4 + i] * in[1][(n * 2 + d) * 4 + i];
                    out[0][((b * 3 + s) * 2 + n) * 2 + d] = h[b][s][n][d] = sum;
                }
            for (int i = 0; i < 4; i++) {
                double sum = 0;
                for (int n = 0; n < 2; n++)
                    for (int d = 0; d < 2; d++) sum += h[b][s][n][d] * in[2][(i * 2 + n) * 2 + d];
                out[1][(b * 3 + s) * 4 + i] = sum;
            }
        }
}

/* 16-bit operands, f32 result; the derivative in f64 is that of the plain dot */
BUILD(build_dot_as)
{
    UNUSED4;
    out[0] =
        ct_dot_as(in[0], in[1], "k", in[0] && ct_tensor_dtype(in[0]) == CT_DTYPE_F64 ? CT_DTYPE_F64 : CT_DTYPE_F32);
}
REFERENCE(ref_dot_as)
{
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++) {
            double sum = 0;
            for (int k = 0; k < 4; k++) sum += in[0][i * 4 + k] * in[1][j * 4 + k];
            out[0][i * 3 + j] = sum;
        }
}

BUILD(build_reduce)
{
    UNUSED4;
    out[0] = ct_sum(in[0], "b");
    out[1] = ct_sum(in[0], "c a"); /* any order of names */
    out[2] = ct_sum(in[0], "a b c");
    out[3] = ct_max(in[0], "c");
    out[4] = ct_min(in[0], "a c");
    out[5] = ct_sum(in[0], "");
}
REFERENCE(ref_reduce)
{
    for (int i = 0; i < 6; i++) out[3][i] = -INFINITY;
    for (int i = 0; i < 3; i++) out[4][i] = INFINITY;
    for (int a = 0; a < 2; a++)
        for (int b = 0; b < 3; b++)
            for (int c = 0; c < 4; c++) {
                double x = X3(a, b, c);
                out[0][a * 4 + c] += x;
                out[1][b] += x;
                out[2][0] += x;
                out[3][a * 3 + b] = fmax(out[3][a * 3 + b], x);
                out[4][b] = fmin(out[4][b], x);
                out[5][(a * 3 + b) * 4 + c] = x;
            }
}

BUILD(build_mean_prod)
{
    UNUSED4;
    out[0] = ct_mean(in[0], "b c");
    out[1] = ct_prod(in[0], "b");
}
REFERENCE(ref_mean_prod)
{
    for (int i = 0; i < 8; i++) out[1][i] = 1;
    for (int a = 0; a < 2; a++)
        for (int b = 0; b < 3; b++)
            for (int c = 0; c < 4; c++) {
                out[0][a] += X3(a, b, c) / 12;
                out[1][a * 4 + c] *= X3(a, b, c);
            }
}

BUILD(build_any_all)
{
    UNUSED4;
    out[0] = ct_any(in[0], "c");
    out[1] = ct_all(in[0], "c");
    out[2] = ct_max(in[0], "c");
}
REFERENCE(ref_any_all)
{
    for (int i = 0; i < 6; i++) {
        int count = 0;
        for (int c = 0; c < 4; c++) count += in[0][i * 4 + c] != 0;
        out[0][i] = out[2][i] = count > 0;
        out[1][i] = count == 4;
    }
}

/* few distinct values, so that the first of equals is asked for */
BUILD(build_argmax)
{
    UNUSED4;
    out[0] = ct_argmax(in[0], "b");
    out[1] = ct_argmax(in[0], "c");
}
REFERENCE(ref_argmax)
{
    for (int a = 0; a < 2; a++) {
        for (int c = 0; c < 4; c++)
            for (int b = 1; b < 3; b++)
                if (X3(a, b, c) > X3(a, (int)out[0][a * 4 + c], c)) out[0][a * 4 + c] = b;
        for (int b = 0; b < 3; b++)
            for (int c = 1; c < 4; c++)
                if (X3(a, b, c) > X3(a, b, (int)out[1][a * 3 + b])) out[1][a * 3 + b] = c;
    }
}

BUILD(build_cumsum)
{
    UNUSED4;
    out[0] = ct_cumsum(in[0], "b");
    out[1] = ct_cumsum(in[0], "c");
}
REFERENCE(ref_cumsum)
{
    for (int a = 0; a < 2; a++)
        for (int b = 0; b < 3; b++)
            for (int c = 0; c < 4; c++) {
                int i = (a * 3 + b) * 4 + c;
                out[0][i] = X3(a, b, c) + (b ? out[0][i - 4] : 0);
                out[1][i] = X3(a, b, c) + (c ? out[1][i - 1] : 0);
            }
}

/* in[1] masks: 0 hides; the first row is hidden whole */
static ct_tensor *masked(ct_tensor *x, ct_tensor *mask)
{
    ct_graph *graph = ct_graph_of(x);
    ct_tensor *row = ct_iota(graph, CT_DTYPE_S32, "a=3", "a");
    ct_tensor *shown = ct_and(mask, ct_broadcast_like(ct_gt(row, ct_scalar_like(row, 0)), mask));
    return ct_select(shown, x, ct_scalar_like(x, -INFINITY));
}
BUILD(build_softmax)
{
    UNUSED4;
    ct_tensor *x = masked(in[0], in[1]);
    out[0] = ct_softmax(x, "b");
    ct_tensor *lse = ct_logsumexp(x, "b");
    /* a row of -inf alone has no finite number to compare */
    out[1] = ct_select(ct_is_finite(lse), lse, ct_scalar_like(lse, -7));
    out[2] = ct_log_softmax(in[0], "b");
}
REFERENCE(ref_softmax)
{
    for (int a = 0; a < 3; a++) {
        double sum = 0, whole = 0;
        for (int b = 0; b < 5; b++) {
            double e = exp(in[0][a * 5 + b]);
            whole += e;
            if (a && in[1][a * 5 + b] != 0) sum += e;
        }
        for (int b = 0; b < 5; b++) {
            bool shown = a && in[1][a * 5 + b] != 0;
            out[0][a * 5 + b] = shown ? exp(in[0][a * 5 + b]) / sum : 0;
            out[2][a * 5 + b] = in[0][a * 5 + b] - log(whole);
        }
        out[1][a] = sum > 0 ? log(sum) : -7;
    }
}

/* far from zero nothing overflows */
BUILD(build_softmax_large)
{
    UNUSED4;
    ct_tensor *x = ct_add_scalar(in[0], 10000);
    out[0] = ct_softmax(x, "b");
    out[1] = ct_sub(ct_logsumexp(x, "b"), ct_scalar_like(x, 10000));
}
REFERENCE(ref_softmax_large)
{
    for (int a = 0; a < 3; a++) {
        double sum = 0;
        for (int b = 0; b < 5; b++) sum += exp(in[0][a * 5 + b]);
        for (int b = 0; b < 5; b++) out[0][a * 5 + b] = exp(in[0][a * 5 + b]) / sum;
        out[1][a] = log(sum);
    }
}

#define ORDERS(order)                                                                                                  \
    {                                                                                                                  \
        .name = "dot, axis orders " #order, .dtypes = WIDE, .grad = true,                                              \
        .inputs = {{"n=2 i=3 k=4", 0, 0, 0}, {"n=2 j=2 k=4", 0, 0, 0}}, .num_outputs = 6, .build = build_dot_orders,   \
        .variant = order, .reference = ref_dot_orders                                                                  \
    }
#define MASKED                                                                                                         \
    {"a=3 b=5", -3, 3, 0},                                                                                             \
    {                                                                                                                  \
        "a=3 b=5", 0, 1, CT_DTYPE_BOOL                                                                                 \
    }

static const op_case cases[] = {
    ORDERS(0),
    ORDERS(1),
    ORDERS(2),
    ORDERS(3),
    ORDERS(4),
    ORDERS(5),
    {.name = "dot, several axes",
     .dtypes = FLOATS | SIGNED,
     .grad = true,
     .inputs = {{"m=2 k=3 n=2 l=2", -2, 2, 0}, {"l=2 n=2 k=3 m=2", -2, 2, 0}, {"p=3", -2, 2, 0}, {"q=2", -2, 2, 0}},
     .num_outputs = 3,
     .build = build_dot_shapes,
     .reference = ref_dot_shapes,
     .print = true},
    {.name = "linear",
     .dtypes = WIDE,
     .grad = true,
     .inputs = {{"batch=2 seq=3 dim=4", 0, 0, 0},
                {"heads=2 head_dim=2 dim=4", 0, 0, 0},
                {"dim=4 heads=2 head_dim=2", 0, 0, 0}},
     .num_outputs = 2,
     .build = build_linear,
     .reference = ref_linear,
     .print = true},
    {.name = "dot_as",
     .dtypes = D(BF16) | D(F16),
     .grad = true,
     .inputs = {{"i=2 k=4", 0, 0, 0}, {"j=3 k=4", 0, 0, 0}},
     .num_outputs = 1,
     .build = build_dot_as,
     .reference = ref_dot_as,
     .tolerance = 1e-3,
     .print = true},
    {.name = "sum, max, min",
     .dtypes = FLOATS | SIGNED,
     .grad = true,
     .inputs = {{ABC, -3, 3, 0}},
     .num_outputs = 6,
     .build = build_reduce,
     .reference = ref_reduce,
     .print = true},
    {.name = "mean, prod",
     .dtypes = WIDE,
     .grad = true,
     .inputs = {{ABC, 0.5, 1.5, 0}},
     .num_outputs = 2,
     .build = build_mean_prod,
     .reference = ref_mean_prod},
    {.name = "any, all",
     .dtypes = D(BOOL),
     .inputs = {{ABC, 0, 0, 0}},
     .num_outputs = 3,
     .build = build_any_all,
     .reference = ref_any_all,
     .print = true},
    {.name = "argmax",
     .dtypes = D(S32) | D(U8) | WIDE,
     .inputs = {{ABC, 0, 2, 0}},
     .num_outputs = 2,
     .build = build_argmax,
     .reference = ref_argmax,
     .print = true},
    {.name = "cumsum",
     .dtypes = WIDE | D(S32) | D(U8),
     .grad = true,
     .inputs = {{ABC, 0, 3, 0}},
     .num_outputs = 2,
     .build = build_cumsum,
     .reference = ref_cumsum},
    {.name = "softmax, logsumexp, log_softmax",
     .dtypes = FLOATS,
     .grad = true,
     .inputs = {MASKED},
     .num_outputs = 3,
     .build = build_softmax,
     .reference = ref_softmax,
     .print = true},
    {.name = "softmax of large numbers",
     .dtypes = WIDE,
     .grad = true,
     .inputs = {{"a=3 b=5", 0, 0, 0}},
     .num_outputs = 2,
     .build = build_softmax_large,
     .reference = ref_softmax_large,
     .tolerance = 1e3},
};
const op_family contraction_cases = {"contraction", cases, CT_COUNT(cases)};
