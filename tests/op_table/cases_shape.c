/* Ops that move data: broadcast, reshape, transpose, slices, pads. */
#include "op_table.h"

/* x[a=2 b=3 c=4] */
#define AT(a, b, c) (((a)*3 + (b)) * 4 + (c))
#define EACH(a, b, c)                                                                                                  \
    for (int a = 0; a < 2; a++)                                                                                        \
        for (int b = 0; b < 3; b++)                                                                                    \
            for (int c = 0; c < 4; c++)
#define ABC "a=2 b=3 c=4"

BUILD(build_broadcast)
{
    UNUSED4;
    out[0] = ct_broadcast_like(in[0], in[1]); /* [c a] into [a b c] */
}
REFERENCE(ref_broadcast)
{
    EACH(a, b, c) out[0][AT(a, b, c)] = in[0][c * 2 + a];
}

/* every axis order of the result */
BUILD(build_transpose)
{
    UNUSED4;
    static const char *const orders[6] = {"a b c", "a c b", "b a c", "b c a", "c a b", "c b a"};
    for (int i = 0; i < 6; i++) out[i] = ct_transpose(in[0], orders[i]);
}
REFERENCE(ref_transpose)
{
    EACH(a, b, c)
    {
        double x = in[0][AT(a, b, c)];
        out[0][(a * 3 + b) * 4 + c] = x;
        out[1][(a * 4 + c) * 3 + b] = x;
        out[2][(b * 2 + a) * 4 + c] = x;
        out[3][(b * 4 + c) * 2 + a] = x;
        out[4][(c * 2 + a) * 3 + b] = x;
        out[5][(c * 3 + b) * 2 + a] = x;
    }
}

BUILD(build_reshape)
{
    UNUSED4;
    out[0] = ct_split(in[0], "c", "c_high=2 c_low");
    out[1] = ct_merge(in[0], "a b", "ab");
    out[2] = ct_rename(in[0], "b", "renamed");
    out[3] = ct_unsqueeze(in[0], "one", 1);
    out[4] = ct_squeeze(ct_slice(in[0], "a", 1, 2), "a");
}
REFERENCE(ref_reshape)
{
    EACH(a, b, c)
    {
        for (int k = 0; k < 4; k++) out[k][AT(a, b, c)] = in[0][AT(a, b, c)];
        if (a == 1) out[4][b * 4 + c] = in[0][AT(a, b, c)];
    }
}

/* a rename makes a tensor meet itself under other names: scores of positions with positions */
BUILD(build_rename_outer)
{
    UNUSED4;
    out[0] = ct_mul(ct_broadcast_like(in[0], in[1]), ct_broadcast_like(ct_rename(in[0], "a", "b"), in[1]));
}
REFERENCE(ref_rename_outer)
{
    for (int a = 0; a < 3; a++)
        for (int b = 0; b < 3; b++) out[0][a * 3 + b] = in[0][a] * in[0][b];
}

BUILD(build_slice)
{
    UNUSED4;
    out[0] = ct_slice(in[0], "b", 1, 3);
    out[1] = ct_slice_strided(in[0], "c", 1, 4, 2);
    out[2] = ct_slice_strided(in[0], "b", 0, 2, 2);
    out[3] = ct_slice(in[0], "a", 1, 1); /* nothing */
    out[4] = ct_slice(in[0], "a", 0, 2); /* all */
}
REFERENCE(ref_slice)
{
    EACH(a, b, c)
    {
        double x = in[0][AT(a, b, c)];
        if (b >= 1) out[0][(a * 2 + b - 1) * 4 + c] = x;
        if (c % 2) out[1][(a * 3 + b) * 2 + c / 2] = x;
        if (b == 0) out[2][a * 4 + c] = x;
        out[4][AT(a, b, c)] = x;
    }
}

/* starts within, and one that is clamped (C5) */
BUILD(build_dynamic_slice)
{
    UNUSED4;
    out[0] = ct_dynamic_slice(in[0], "b", in[1], 2);
    out[1] = ct_dynamic_slice(in[0], "c", in[2], 2);
    out[2] = ct_dynamic_update_slice(in[0], in[3], "b", in[1]);
    out[3] = ct_dynamic_update_slice(in[0], in[3], "b", in[2]);
}
REFERENCE(ref_dynamic_slice)
{
    int start = (int)in[1][0];
    EACH(a, b, c)
    {
        double x = in[0][AT(a, b, c)];
        if (b >= start && b < start + 2) out[0][(a * 2 + b - start) * 4 + c] = x;
        if (c >= 2) out[1][(a * 3 + b) * 2 + c - 2] = x;
        out[2][AT(a, b, c)] = b >= start && b < start + 2 ? in[3][(a * 2 + b - start) * 4 + c] : x;
        out[3][AT(a, b, c)] = b >= 1 ? in[3][(a * 2 + b - 1) * 4 + c] : x;
    }
}

BUILD(build_pad)
{
    UNUSED4;
    out[0] = ct_pad(in[0], "b", 1, 2, 5);
    out[1] = ct_pad(in[0], "c", -1, -2, 0);
    out[2] = ct_pad(in[0], "b", -1, 1, 0);
}
REFERENCE(ref_pad)
{
    for (int i = 0; i < 2 * 6 * 4; i++) out[0][i] = 5;
    EACH(a, b, c)
    {
        double x = in[0][AT(a, b, c)];
        out[0][(a * 6 + b + 1) * 4 + c] = x;
        if (c == 1) out[1][a * 3 + b] = x;
        if (b >= 1) out[2][AT(a, b - 1, c)] = x;
    }
}

BUILD(build_concat)
{
    UNUSED4;
    out[0] = ct_concat((ct_tensor *[]){in[0], in[1], in[0]}, 3, "b");
    out[1] = ct_concat((ct_tensor *[]){in[0]}, 1, "b");
}
REFERENCE(ref_concat)
{
    for (int a = 0; a < 2; a++)
        for (int b = 0; b < 7; b++)
            for (int c = 0; c < 4; c++)
                out[0][(a * 7 + b) * 4 + c] = b < 3    ? in[0][AT(a, b, c)]
                                              : b == 3 ? in[1][a * 4 + c]
                                                       : in[0][AT(a, b - 4, c)];
    EACH(a, b, c) out[1][AT(a, b, c)] = in[0][AT(a, b, c)];
}

BUILD(build_reverse)
{
    UNUSED4;
    out[0] = ct_reverse(in[0], "b");
}
REFERENCE(ref_reverse)
{
    EACH(a, b, c) out[0][AT(a, b, c)] = in[0][AT(a, 2 - b, c)];
}

/* tensors without elements go through, forward and back */
BUILD(build_empty)
{
    UNUSED4;
    ct_tensor *x = ct_mul(in[0], in[1]);
    out[0] = ct_sum(x, "a");
    out[1] = ct_concat((ct_tensor *[]){x, ct_broadcast_like(in[1], x)}, 2, "a");
    out[2] = ct_pad(x, "a", 1, 0, 2);
    out[3] = ct_dot(x, in[0], "a");
}
REFERENCE(ref_empty)
{
    (void)in;
    for (int b = 0; b < 3; b++) {
        out[0][b] = 0;
        out[2][b] = 2;
        out[3][b] = 0;
    }
}

static const op_case cases[] = {
    {.name = "broadcast",
     .dtypes = FLOATS | INTS | D(BOOL),
     .grad = true,
     .inputs = {{"c=4 a=2", 0, 0, 0}, {ABC, 0, 0, 0}},
     .num_outputs = 1,
     .build = build_broadcast,
     .reference = ref_broadcast,
     .print = true,
     .is_movement = true},
    {.name = "transpose",
     .dtypes = WIDE | D(S8),
     .grad = true,
     .inputs = {{ABC, 0, 0, 0}},
     .num_outputs = 6,
     .build = build_transpose,
     .reference = ref_transpose,
     .print = true,
     .is_movement = true},
    {.name = "split, merge, rename, unsqueeze, squeeze",
     .dtypes = WIDE | D(U8),
     .grad = true,
     .inputs = {{ABC, 0, 0, 0}},
     .num_outputs = 5,
     .build = build_reshape,
     .reference = ref_reshape,
     .print = true,
     .is_movement = true},
    {.name = "rename, outer product",
     .dtypes = WIDE,
     .grad = true,
     .inputs = {{"a=3", 0, 0, 0}, {"a=3 b=3", 0, 0, 0}},
     .num_outputs = 1,
     .build = build_rename_outer,
     .reference = ref_rename_outer},
    {.name = "slice",
     .dtypes = WIDE | D(BF16) | D(S32),
     .grad = true,
     .inputs = {{ABC, 0, 0, 0}},
     .num_outputs = 5,
     .build = build_slice,
     .reference = ref_slice,
     .print = true,
     .is_movement = true},
    {.name = "dynamic_slice, dynamic_update_slice",
     .dtypes = WIDE | D(BF16) | D(S32),
     .grad = true,
     .inputs = {{ABC, 0, 0, 0}, {"", 0, 1, CT_DTYPE_S32}, {"", 7, 7, CT_DTYPE_S32}, {"a=2 b=2 c=4", 0, 0, 0}},
     .num_outputs = 4,
     .build = build_dynamic_slice,
     .reference = ref_dynamic_slice,
     .print = true,
     .is_movement = true},
    {.name = "pad",
     .dtypes = WIDE | D(BF16) | D(S32),
     .grad = true,
     .inputs = {{ABC, 0, 0, 0}},
     .num_outputs = 3,
     .build = build_pad,
     .reference = ref_pad,
     .print = true,
     .is_movement = true},
    {.name = "concat",
     .dtypes = WIDE | D(BF16) | D(S32),
     .grad = true,
     .inputs = {{ABC, 0, 0, 0}, {"a=2 b=1 c=4", 0, 0, 0}},
     .num_outputs = 2,
     .build = build_concat,
     .reference = ref_concat,
     .print = true,
     .is_movement = true},
    {.name = "reverse",
     .dtypes = WIDE | D(S32),
     .grad = true,
     .inputs = {{ABC, 0, 0, 0}},
     .num_outputs = 1,
     .build = build_reverse,
     .reference = ref_reverse,
     .print = true,
     .is_movement = true},
    {.name = "no elements",
     .dtypes = WIDE,
     .grad = true,
     .inputs = {{"a=0 b=3", 0, 0, 0}, {"b=3", 0, 0, 0}},
     .num_outputs = 4,
     .build = build_empty,
     .reference = ref_empty,
     .is_movement = true},
};
const op_family shape_cases = {"shape", cases, CT_COUNT(cases)};
