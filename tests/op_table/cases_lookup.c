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

static const op_case cases[] = {
    {.name = "take",
     .dtypes = FLOATS | SIGNED,
     .grad = true,
     .inputs = {{"vocab=5 dim=2", -3, 3, 0}, {"a=2 b=3", -2, 6, CT_DTYPE_S32}},
     .num_outputs = 2,
     .build = build_take,
     .reference = ref_take,
     .print = true},
    {.name = "take, s64 indices",
     .dtypes = WIDE,
     .grad = true,
     .inputs = {{"vocab=5 dim=2", -3, 3, 0}, {"a=2 b=3", -2, 6, CT_DTYPE_S64}},
     .num_outputs = 2,
     .build = build_take,
     .reference = ref_take},
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
     .print = true},
};
const op_family lookup_cases = {"lookup", cases, CT_COUNT(cases)};
