/* take, scatter_add, one_hot, sort, top-k. */
#include "op_table.h"

/* table[vocab=5 dim=2], indices [a=2 b=3], some out of range and some equal */
BUILD(build_take)
{
    UNUSED4;
    out[0] = ct_take(in[0], in[1], "vocab");
    out[1] = ct_take(ct_sum(in[0], "dim"), ct_sum(in[1], "a"), "vocab"); /* a table without further axes */
}
static int clamped(double index, int size)
{
    return index < 0 ? 0 : index >= size ? size - 1 : (int)index;
}
REFERENCE(ref_take)
{
    for (int i = 0; i < 6; i++)
        for (int d = 0; d < 2; d++) out[0][i * 2 + d] = in[0][clamped(in[1][i], 5) * 2 + d];
    for (int b = 0; b < 3; b++) {
        int row = clamped(in[1][b] + in[1][3 + b], 5);
        out[1][b] = in[0][row * 2] + in[0][row * 2 + 1];
    }
}

BUILD(build_scatter_add)
{
    UNUSED4;
    out[0] = ct_scatter_add(in[0], in[1], in[2], "vocab");
}
REFERENCE(ref_scatter_add)
{
    for (int i = 0; i < 10; i++) out[0][i] = in[0][i];
    for (int i = 0; i < 6; i++)
        for (int d = 0; d < 2; d++)
            if (in[1][i] >= 0 && in[1][i] < 5) out[0][(int)in[1][i] * 2 + d] += in[2][i * 2 + d];
}

BUILD(build_one_hot)
{
    UNUSED4;
    out[0] = ct_one_hot(in[0], "class", 4, CT_DTYPE_F32);
    out[1] = ct_one_hot(in[0], "class", 4, CT_DTYPE_BOOL);
}
REFERENCE(ref_one_hot)
{
    for (int i = 0; i < 6; i++)
        for (int k = 0; k < 4; k++) out[0][i * 4 + k] = out[1][i * 4 + k] = in[0][i] == k;
}

/* x[a=3 b=4 c=2] sorted along b; few distinct values, so that stability shows */
static void stable_sort(const double *x, int stride, bool descending, double *values, double *positions)
{
    double v[4];
    int p[4];
    for (int i = 0; i < 4; i++) {
        int j = i;
        for (; j > 0 && (descending ? v[j - 1] < x[i * stride] : v[j - 1] > x[i * stride]); j--) {
            v[j] = v[j - 1];
            p[j] = p[j - 1];
        }
        v[j] = x[i * stride];
        p[j] = i;
    }
    for (int i = 0; i < 4; i++) {
        values[i * stride] = v[i];
        positions[i * stride] = p[i];
    }
}
BUILD(build_sort)
{
    UNUSED4;
    out[0] = ct_sort(in[0], "b", false);
    out[1] = ct_argsort(in[0], "b", false);
    out[2] = ct_sort(in[0], "b", true);
    out[3] = ct_argsort(in[0], "b", true);
    ct_tensor *payload[3] = {in[0], in[1], ct_mul(in[0], in[0])};
    ct_sort_with(3, payload, "b", true, out + 4);
}
REFERENCE(ref_sort)
{
    for (int a = 0; a < 3; a++)
        for (int c = 0; c < 2; c++) {
            int at = a * 8 + c;
            stable_sort(in[0] + at, 2, false, out[0] + at, out[1] + at);
            stable_sort(in[0] + at, 2, true, out[2] + at, out[3] + at);
            for (int b = 0; b < 4; b++) {
                int from = at + 2 * (int)out[3][at + 2 * b];
                out[4][at + 2 * b] = in[0][from];
                out[5][at + 2 * b] = in[1][from];
                out[6][at + 2 * b] = in[0][from] * in[0][from];
            }
        }
}

BUILD(build_top_k)
{
    UNUSED4;
    out[0] = ct_top_k(in[0], "b", 2, &out[1]);
}
REFERENCE(ref_top_k)
{
    for (int a = 0; a < 3; a++) {
        double values[8], positions[8];
        for (int c = 0; c < 2; c++) {
            stable_sort(in[0] + a * 8 + c, 2, true, values + c, positions + c);
            for (int b = 0; b < 2; b++) {
                out[0][(a * 2 + b) * 2 + c] = values[2 * b + c];
                out[1][(a * 2 + b) * 2 + c] = positions[2 * b + c];
            }
        }
    }
}

/* x[a=2 b=4 c=3], indices [a=2 b=5 c=3] with some out of range */
BUILD(build_take_along)
{
    UNUSED4;
    out[0] = ct_take_along(in[0], in[1], "b");
    ct_tensor *x = ct_squeeze(ct_slice(ct_squeeze(ct_slice(in[0], "c", 0, 1), "c"), "a", 0, 1), "a");
    ct_tensor *i = ct_squeeze(ct_slice(ct_squeeze(ct_slice(in[1], "c", 0, 1), "c"), "a", 0, 1), "a");
    out[1] = ct_take_along(x, i, "b"); /* no other axes */
}
REFERENCE(ref_take_along)
{
    for (int a = 0; a < 2; a++)
        for (int b = 0; b < 5; b++)
            for (int c = 0; c < 3; c++) {
                int i = (a * 5 + b) * 3 + c;
                out[0][i] = in[0][(a * 4 + clamped(in[1][i], 4)) * 3 + c];
                if (a == 0 && c == 0) out[1][b] = out[0][i];
            }
}

BUILD(build_scatter_add_along)
{
    UNUSED4;
    out[0] = ct_scatter_add_along(in[0], in[1], in[2], "b");
}
REFERENCE(ref_scatter_add_along)
{
    for (int i = 0; i < 24; i++) out[0][i] = in[0][i];
    for (int a = 0; a < 2; a++)
        for (int b = 0; b < 5; b++)
            for (int c = 0; c < 3; c++) {
                int i = (a * 5 + b) * 3 + c;
                if (in[1][i] >= 0 && in[1][i] < 4) out[0][(a * 4 + (int)in[1][i]) * 3 + c] += in[2][i];
            }
}

static const op_case cases[] = {
    {.name = "take",
     .dtypes = FLOATS | SIGNED,
     .grad = true,
     .inputs = {{"vocab=5 dim=2", -3, 3, 0}, {"a=2 b=3", -2, 6, CT_DTYPE_S32}},
     .num_outputs = 2,
     .build = build_take,
     .reference = ref_take,
     .print = true,
     .is_movement = true},
    {.name = "take, s64 indices",
     .dtypes = WIDE,
     .grad = true,
     .inputs = {{"vocab=5 dim=2", -3, 3, 0}, {"a=2 b=3", -2, 6, CT_DTYPE_S64}},
     .num_outputs = 2,
     .build = build_take,
     .reference = ref_take,
     .is_movement = true},
    {.name = "scatter_add",
     .dtypes = WIDE | D(S32),
     .grad = true,
     .inputs = {{"vocab=5 dim=2", -3, 3, 0}, {"a=2 b=3", -2, 6, CT_DTYPE_S32}, {"a=2 b=3 dim=2", -3, 3, 0}},
     .num_outputs = 1,
     .build = build_scatter_add,
     .reference = ref_scatter_add,
     .print = true},
    {.name = "one_hot",
     .dtypes = D(S32) | D(S64) | D(U8),
     .inputs = {{"a=2 b=3", 0, 5, 0}},
     .num_outputs = 2,
     .build = build_one_hot,
     .reference = ref_one_hot,
     .print = true,
     .is_movement = true},
    {.name = "sort, argsort, sort_with",
     .dtypes = WIDE | D(BF16) | SIGNED,
     .grad = true,
     .inputs = {{"a=3 b=4 c=2", -2, 2, 0}, {"a=3 b=4 c=2", -2, 2, 0}},
     .num_outputs = 7,
     .build = build_sort,
     .reference = ref_sort,
     .print = true,
     .is_movement = true},
    {.name = "top_k",
     .dtypes = WIDE | D(S32) | D(U8),
     .grad = true,
     .inputs = {{"a=3 b=4 c=2", 0, 3, 0}},
     .num_outputs = 2,
     .build = build_top_k,
     .reference = ref_top_k,
     .print = true,
     .is_movement = true},
    {.name = "take_along",
     .dtypes = WIDE | D(S32),
     .grad = true,
     .inputs = {{"a=2 b=4 c=3", -3, 3, 0}, {"a=2 b=5 c=3", -1, 4, CT_DTYPE_S32}},
     .num_outputs = 2,
     .build = build_take_along,
     .reference = ref_take_along,
     .print = true,
     .is_movement = true},
    {.name = "scatter_add_along",
     .dtypes = WIDE | D(S32),
     .grad = true,
     .inputs = {{"a=2 b=4 c=3", -3, 3, 0}, {"a=2 b=5 c=3", -1, 4, CT_DTYPE_S32}, {"a=2 b=5 c=3", -3, 3, 0}},
     .num_outputs = 1,
     .build = build_scatter_add_along,
     .reference = ref_scatter_add_along,
     .print = true},
};
const op_family lookup_cases = {"lookup", cases, CT_COUNT(cases)};
