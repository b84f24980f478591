/* Threefry over linear indices, and distributions by integer arithmetic alone: floating point enters with one correctly
 * rounded conversion at the very end, so no library's exp or log can make two machines differ. */
#include "graph/random.h"

#include <string.h>

#include "graph/compare.h"
#include "graph/constant.h"
#include "graph/convert.h"
#include "graph/elementwise.h"
#include "graph/gather.h"
#include "graph/node.h"
#include "graph/quantile.h"
#include "graph/shape.h"

/* Element-wise with a number; all ops here are on integers. */
#define WITH(op, x, value) op(loc, x, ct__scalar_like(loc, x, (double)(value)))

static ct_tensor *rotate(const char *loc, ct_tensor *x, unsigned bits)
{
    return ct__or(loc, WITH(ct__shift_left, x, bits), WITH(ct__shift_right, x, 32 - bits));
}

void ct__threefry_bits(const char *loc, ct_tensor *const key[2], ct_tensor *const counter[2], ct_tensor *out_bits[2])
{
    static const unsigned rotations[8] = {13, 15, 26, 6, 17, 29, 16, 24};
    ct_tensor *operands[4] = {key[0], key[1], counter[0], counter[1]};
    ct_graph *graph = ct__common_graph(4, operands);
    out_bits[0] = out_bits[1] = graph->poison; /* may be key or counter */
    if (ct__any_poison(4, operands)) return;
    for (int i = 0; i < 4; i++)
        if (operands[i]->dtype != CT_DTYPE_U32) {
            ct__fail(graph, loc, "threefry_bits", "keys and counters must be u32, found %s",
                     ct_tensor_describe(operands[i]));
            return;
        }
    ct_tensor *schedule[3] = {operands[0], operands[1],
                              WITH(ct__xor, ct__xor(loc, operands[0], operands[1]), 0x1bd11bdau)};
    ct_tensor *x0 = ct__add(loc, operands[2], schedule[0]), *x1 = ct__add(loc, operands[3], schedule[1]);
    for (unsigned round = 0; round < 20; round++) {
        x0 = ct__add(loc, x0, x1);
        x1 = ct__xor(loc, rotate(loc, x1, rotations[round % 8]), x0);
        if (round % 4 == 3) {
            unsigned group = round / 4 + 1;
            x0 = ct__add(loc, x0, schedule[group % 3]);
            x1 = ct__add(loc, x1, WITH(ct__add, schedule[(group + 1) % 3], group));
        }
    }
    out_bits[0] = x0;
    out_bits[1] = x1;
}

/* ---- linear indices in two u32 words ---- */

static const char *sized_text(ct_graph *graph, const ct_axis *axes, int rank)
{
    const char *text = "";
    for (int i = 0; i < rank; i++)
        text = ct_arena_printf(&graph->arena, "%s%s%s=%lld", text, i ? " " : "", axes[i].name, (long long)axes[i].size);
    return text;
}

/* Row-major index over dims [first, stop) of axes, at every element; NULL when there are none. */
static ct_tensor *index_over(const char *loc, ct_graph *graph, const ct_axis *axes, int rank, int first, int stop)
{
    const char *text = sized_text(graph, axes, rank);
    ct_tensor *index = NULL;
    int64_t stride = 1;
    for (int i = stop - 1; i >= first; i--) {
        ct_tensor *step = ct__iota(loc, graph, CT_DTYPE_U32, text, axes[i].name);
        if (stride != 1) step = WITH(ct__mul, step, stride);
        index = index ? ct__add(loc, index, step) : step;
        stride *= axes[i].size;
    }
    return index;
}

/* The upper word of x times factor, by 16-bit halves. */
static ct_tensor *multiply_high(const char *loc, ct_tensor *x, uint32_t factor)
{
    ct_tensor *high = WITH(ct__shift_right, x, 16), *low = WITH(ct__and, x, 0xffff);
    uint32_t factor_high = factor >> 16, factor_low = factor & 0xffff;
    ct_tensor *hl = WITH(ct__mul, high, factor_low), *lh = WITH(ct__mul, low, factor_high);
    ct_tensor *middle = WITH(ct__shift_right, WITH(ct__mul, low, factor_low), 16);
    middle = ct__add(loc, middle, ct__add(loc, WITH(ct__and, hl, 0xffff), WITH(ct__and, lh, 0xffff)));
    ct_tensor *sum = ct__add(loc, WITH(ct__shift_right, hl, 16), WITH(ct__shift_right, lh, 16));
    sum = ct__add(loc, sum, WITH(ct__shift_right, middle, 16));
    return ct__add(loc, sum, WITH(ct__mul, high, factor_high));
}

/* The index over dims [first, rank) as low and high word; false: an error was kept. */
static bool linear_index(const char *loc, ct_graph *graph, const ct_axis *axes, int rank, int first,
                         ct_tensor *out_words[2])
{
    static const int64_t limit = (int64_t)1 << 32;
    int split = rank; /* dims [split, rank) have fewer than 2^32 elements together */
    int64_t inner = 1, outer = 1;
    while (split > first && axes[split - 1].size < limit && inner * axes[split - 1].size < limit)
        inner *= axes[--split].size;
    for (int i = first; i < split; i++) {
        if (axes[i].size >= limit || outer * axes[i].size >= limit) {
            ct__fail(graph, loc, "random_bits", "axes \"%s\" are too large", sized_text(graph, axes, rank));
            return false;
        }
        outer *= axes[i].size;
    }
    ct_tensor *zero = ct__scalar(loc, graph, CT_DTYPE_U32, 0);
    ct_tensor *low = index_over(loc, graph, axes, rank, split, rank);
    if (!low) low = ct__broadcast_to(loc, zero, rank, axes);
    ct_tensor *rows = index_over(loc, graph, axes, rank, first, split);
    out_words[0] = low;
    out_words[1] = zero;
    if (!rows) return true;
    out_words[0] = ct__add(loc, WITH(ct__mul, rows, inner), low);
    ct_tensor *carry = ct__convert(loc, ct__compare(loc, "LT", out_words[0], low), CT_DTYPE_U32);
    out_words[1] = ct__add(loc, multiply_high(loc, rows, (uint32_t)inner), carry);
    return true;
}

static bool parse_sized(const char *loc, ct_graph *graph, const char *text, ct_axis *axes, int *rank)
{
    if (graph->error || !ct__parse_axes(graph, loc, "random_bits", text, axes, rank)) return false;
    for (int i = 0; i < *rank; i++)
        if (axes[i].size < 0) {
            ct__fail(graph, loc, "random_bits", "axis %s has no size: declare it or write %s=SIZE", axes[i].name,
                     axes[i].name);
            return false;
        }
    return true;
}

ct_tensor *ct__random_bits_from(const char *loc, ct_tensor *key0, ct_tensor *key1, const char *text)
{
    ct_tensor *key[2] = {key0, key1}, *counter[2], *bits[2];
    if (ct__any_poison(2, key)) return key0->graph->poison;
    ct_graph *graph = key0->graph;
    ct_axis axes[CT_MAX_RANK];
    int rank;
    if (!parse_sized(loc, graph, text, axes, &rank)) return graph->poison;
    bool per_row = key0->rank == 1;
    for (int i = 0; i < 2; i++)
        if (key[i]->dtype != CT_DTYPE_U32 || key[i]->rank != (per_row ? 1 : 0) ||
            (per_row && (rank == 0 || key[i]->axes[0].name != axes[0].name || key[i]->axes[0].size != axes[0].size)))
            return ct__fail(graph, loc, "random_bits",
                            "keys must be u32 without axes or with the first axis of \"%s\", found %s",
                            sized_text(graph, axes, rank), ct_tensor_describe(key[i]));
    if (!linear_index(loc, graph, axes, rank, per_row, counter)) return graph->poison;
    ct__threefry_bits(loc, key, counter, bits);
    return bits[0];
}

ct_tensor *ct__random_bits(const char *loc, ct_graph *graph, const char *text, const ct_random_keys *keys)
{
    ct_axis axes[CT_MAX_RANK];
    int rank;
    if (!parse_sized(loc, graph, text, axes, &rank)) return graph->poison;
    if (keys->count != 1 && (rank == 0 || keys->count != axes[0].size))
        return ct__fail(graph, loc, "random_bits", "%d keys for \"%s\": give 1 or one per position of its first axis",
                        keys->count, sized_text(graph, axes, rank));
    ct_tensor *key[2];
    for (int i = 0; i < 2; i++) {
        if (keys->count == 1) {
            key[i] = ct__scalar(loc, graph, CT_DTYPE_U32, keys->words[0][i]);
            continue;
        }
        uint32_t *column = CT_ARENA_ARRAY(&graph->arena, uint32_t, keys->count);
        for (int j = 0; j < keys->count; j++) column[j] = keys->words[j][i];
        ct_array array = {.dtype = CT_DTYPE_U32, .rank = 1, .sizes = {keys->count}, .data = column};
        key[i] = ct__constant(loc, graph, &array, axes[0].name);
    }
    return ct__random_bits_from(loc, key[0], key[1], sized_text(graph, axes, rank));
}

/* ---- distributions ---- */

static ct_tensor *require_bits(const char *loc, const char *op, ct_tensor *bits)
{
    if (ct__any_poison(1, &bits)) return bits->graph->poison;
    if (bits->dtype == CT_DTYPE_U32) return bits;
    return ct__fail(bits->graph, loc, op, "needs u32 bits, found %s", ct_tensor_describe(bits));
}

ct_tensor *ct__uniform_from_bits(const char *loc, ct_tensor *bits)
{
    bits = require_bits(loc, "uniform_from_bits", bits);
    if (ct_tensor_is_poison(bits)) return bits;
    ct_tensor *top = ct__convert(loc, WITH(ct__shift_right, bits, 8), CT_DTYPE_F32);
    return ct__mul_scalar(loc, top, 0x1p-24);
}

/* Column k of the table, a constant of the region at hand. */
static ct_tensor *table_column(const char *loc, ct_graph *graph, int32_t *column)
{
    ct_array array = {.dtype = CT_DTYPE_S32, .rank = 1, .sizes = {CT__QUANTILE_ROWS}, .data = column};
    return ct__constant(loc, graph, &array, "quantile_row");
}

/* Quantile of (bits + 1/2) / 2^32 in units of 2^-28, s32. See quantile.h for the drawing. */
static ct_tensor *quantile(const char *loc, ct_tensor *bits)
{
    ct_graph *graph = bits->graph;
    int32_t table[4][CT__QUANTILE_ROWS];
    ct__quantile_table(table);
    ct_tensor *upper = ct__compare(loc, "GE", bits, ct__scalar_like(loc, bits, 0x80000000u));
    ct_tensor *mirrored = ct__select(loc, upper, ct__not(loc, bits), bits);
    ct_tensor *w = WITH(ct__or, WITH(ct__shift_left, mirrored, 1), 1);
    ct_tensor *zeros = ct__count_leading_zeros(loc, w);
    ct_tensor *t = ct__shift_left(loc, w, zeros);
    ct_tensor *segment = WITH(ct__and, WITH(ct__shift_right, t, CT__QUANTILE_R_BITS), 15);
    ct_tensor *row = ct__convert(loc, ct__or(loc, WITH(ct__shift_left, zeros, 4), segment), CT_DTYPE_S32);
    ct_tensor *r = ct__convert(loc, WITH(ct__and, t, (1 << CT__QUANTILE_R_BITS) - 1), CT_DTYPE_S64);
    ct_tensor *sum = NULL;
    for (int k = 3; k > 0; k--) {
        ct_tensor *a = ct__take(loc, table_column(loc, graph, table[k]), row, "quantile_row");
        a = ct__convert(loc, a, CT_DTYPE_S64);
        sum = ct__mul(loc, sum ? ct__add(loc, sum, a) : a, r);
        sum = WITH(ct__shift_right_arithmetic, sum, CT__QUANTILE_R_BITS);
    }
    sum = WITH(ct__shift_right_arithmetic, sum, CT__QUANTILE_SLOPE_BITS - CT__QUANTILE_Z_BITS);
    ct_tensor *a0 = ct__take(loc, table_column(loc, graph, table[0]), row, "quantile_row");
    ct_tensor *z = ct__add(loc, ct__convert(loc, sum, CT_DTYPE_S32), a0);
    return ct__select(loc, upper, z, ct__neg(loc, z));
}

static ct_tensor *float_of_z(const char *loc, ct_tensor *z)
{
    return ct__mul_scalar(loc, ct__convert(loc, z, CT_DTYPE_F32), 0x1p-28);
}

ct_tensor *ct__normal_from_bits(const char *loc, ct_tensor *bits)
{
    bits = require_bits(loc, "normal_from_bits", bits);
    if (ct_tensor_is_poison(bits)) return bits;
    return float_of_z(loc, quantile(loc, bits));
}

/* What truncation means in integers: bits go to [first, first + count) of 2^32, z to [low, high]. */
typedef struct truncation {
    int64_t first, count;
    int32_t low, high;
} truncation;

static int32_t z_of_bound(double bound)
{
    return (int32_t)(CT_MAX(-7.5, CT_MIN(7.5, bound)) * (1 << CT__QUANTILE_Z_BITS));
}

static truncation truncation_of(double low, double high)
{
    int64_t first = ct__normal_cdf_fixed(low), last = ct__normal_cdf_fixed(high);
    if (last <= first) { /* both bounds in one step of 2^-32 */
        first = CT_MIN(first, ((int64_t)1 << 32) - 1);
        last = first + 1;
    }
    return (truncation){.first = first, .count = last - first, .low = z_of_bound(low), .high = z_of_bound(high)};
}

ct_tensor *ct__truncated_normal_from_bits(const char *loc, ct_tensor *bits, double low, double high)
{
    bits = require_bits(loc, "truncated_normal_from_bits", bits);
    if (ct_tensor_is_poison(bits)) return bits;
    if (!(low < high))
        return ct__fail(bits->graph, loc, "truncated_normal_from_bits", "needs low < high, found %g and %g", low, high);
    truncation cut = truncation_of(low, high);
    /* 31 bits times at most 2^32 stay within s64 */
    ct_tensor *wide = ct__convert(loc, WITH(ct__shift_right, bits, 1), CT_DTYPE_S64);
    wide = WITH(ct__add, WITH(ct__shift_right, WITH(ct__mul, wide, cut.count), 31), cut.first);
    ct_tensor *z = quantile(loc, ct__convert(loc, wide, CT_DTYPE_U32));
    return float_of_z(loc, WITH(ct__minimum, WITH(ct__maximum, z, cut.low), cut.high));
}

/* ---- the same on the host ---- */

/* Rounds down, as an arithmetic shift does, without relying on the compiler's. */
static int64_t shift_down(int64_t value, int bits)
{
    int64_t unit = (int64_t)1 << bits, quotient = value / unit;
    return value % unit < 0 ? quotient - 1 : quotient;
}

static int32_t quantile_of(uint32_t bits)
{
    static _Thread_local int32_t table[4][CT__QUANTILE_ROWS];
    static _Thread_local bool made;
    if (!made) ct__quantile_table(table);
    made = true;
    bool upper = bits >= 0x80000000u;
    uint32_t w = (upper ? ~bits : bits) << 1 | 1, zeros = 0;
    while (!(w >> (31 - zeros) & 1)) zeros++;
    uint32_t t = w << zeros, row = zeros << 4 | (t >> CT__QUANTILE_R_BITS & 15);
    int64_t r = t & ((1u << CT__QUANTILE_R_BITS) - 1), sum = 0;
    for (int k = 3; k > 0; k--) sum = shift_down((sum + table[k][row]) * r, CT__QUANTILE_R_BITS);
    sum = shift_down(sum, CT__QUANTILE_SLOPE_BITS - CT__QUANTILE_Z_BITS);
    int32_t z = (int32_t)sum + table[0][row];
    return upper ? z : -z;
}

float ct_normal_of_bits(uint32_t bits)
{
    return (float)quantile_of(bits) * 0x1p-28f;
}

float ct_truncated_normal_of_bits(uint32_t bits, double low, double high)
{
    CT_ASSERT(low < high);
    truncation cut = truncation_of(low, high);
    int64_t wide = ((int64_t)(bits >> 1) * cut.count >> 31) + cut.first;
    int32_t z = quantile_of((uint32_t)wide);
    return (float)CT_MIN(CT_MAX(z, cut.low), cut.high) * 0x1p-28f;
}
