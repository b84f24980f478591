/* Transposing, padding, tables. */
#include <string.h>

#include "graph/custom_call.h"
#include "graph/node.h"
#include "graph/ops.h"
#include "kernels/attention/definition.h"
#include "kernels/attention/mosaic_arrays.h"

static const char *length_axis(const ct_tensor *x)
{
    return ct_tensor_find_axis(x, "kv_seq") >= 0 ? "kv_seq" : "seq";
}

static ct_tensor *pad_to(ct_tensor *x, const char *axis, int64_t len, double value)
{
    int64_t size = ct_tensor_axis_size(x, axis);
    return size < len ? ct_pad(x, axis, 0, len - size, value) : x;
}

static ct_tensor *cut_to(ct_tensor *x, const char *axis, int64_t len)
{
    return ct_tensor_axis_size(x, axis) > len ? ct_slice(x, axis, 0, len) : x;
}

ct_tensor *ct__splash_by_heads(ct_tensor *x)
{
    ct_tensor *result, *by_heads = ct_transpose(x, "batch heads seq head_dim");
    ct_custom_call_opts opts = {.api_version = 1, .row_major = true};
    ct_custom_call(x->graph, "LayoutConstraint", 1, &by_heads, 1, &by_heads, &opts, &result);
    return result;
}

ct_tensor *ct__splash_rows(ct_tensor *x, int64_t len)
{
    bool is_key = ct_tensor_find_axis(x, "kv_seq") >= 0;
    x = ct_transpose(x, is_key ? "batch kv_heads kv_seq head_dim" : "batch heads seq head_dim");
    return pad_to(ct_merge(x, is_key ? "batch kv_heads" : "batch heads", "rows"), length_axis(x), len, 0);
}

static ct_tensor *split_rows(ct_tensor *rows, const ct_tensor *like, const char *heads)
{
    const char *parts =
        ct_arena_printf(&rows->graph->arena, "batch=%lld %s=%lld", (long long)ct_tensor_axis_size(like, "batch"), heads,
                        (long long)ct_tensor_axis_size(like, heads));
    return ct_split(rows, "rows", parts);
}

ct_tensor *ct__splash_unrows(ct_tensor *rows, const ct_tensor *like)
{
    const char *axis = length_axis(like);
    bool is_key = !strcmp(axis, "kv_seq");
    rows = cut_to(rows, axis, ct_tensor_axis_size(like, axis));
    rows = split_rows(rows, like, is_key ? "kv_heads" : "heads");
    return ct_transpose(rows, is_key ? "batch kv_seq kv_heads head_dim" : "batch seq heads head_dim");
}

ct_tensor *ct__splash_numbers(ct_tensor *numbers, int64_t len)
{
    numbers = ct_merge(ct_transpose(numbers, "batch heads seq"), "batch heads", "rows");
    return ct_unsqueeze(pad_to(numbers, "seq", len, 0), "one", 1);
}

ct_tensor *ct__splash_unnumbers(ct_tensor *rows, const ct_tensor *q)
{
    rows = cut_to(ct_squeeze(rows, "one"), "seq", ct_tensor_axis_size(q, "seq"));
    return split_rows(rows, q, "heads");
}

/* ---- masks ---- */

/* A number per query or key, [len] or [batch len], as [mask_batch len]. */
static ct_tensor *with_batch(const ct__splash_arrays *a, ct_tensor *x)
{
    if (x->rank == 2) return ct_rename(x, "batch", "mask_batch");
    x = ct_unsqueeze(x, "mask_batch", 0);
    if (a->splash.mask_batch == 1) return x;
    const ct_axis axes[2] = {{ct__intern_z(x->graph, "mask_batch"), a->splash.mask_batch}, x->axes[1]};
    return ct__broadcast_to(CT_LOC, ct_squeeze(x, "mask_batch"), 2, axes);
}

/* Its greatest or least in each block: [mask_batch name]; what pads plays no part. */
static ct_tensor *extreme(ct_tensor *x, int64_t len, int64_t block, bool greatest, const char *name)
{
    const char *axis = length_axis(x);
    x = pad_to(x, axis, len, greatest ? INT32_MIN : INT32_MAX);
    x = ct_split(x, axis, ct_arena_printf(&x->graph->arena, "%s within=%lld", name, (long long)block));
    return greatest ? ct_max(x, "within") : ct_min(x, "within");
}

/* a op b + number, over [mask_batch q_block kv_block]; a and b are of one side each */
static ct_tensor *compare(const ct__splash_arrays *a, const char *direction, ct_tensor *x, ct_tensor *y, double number)
{
    const ct_tensor *q = ct_tensor_find_axis(x, "q_block") >= 0 ? x : y, *kv = q == x ? y : x;
    const ct_axis axes[3] = {{q->axes[0].name, a->splash.mask_batch}, q->axes[1], kv->axes[1]};
    if (number > 0 || number < 0) y = ct_add_scalar(y, number);
    return ct__compare(CT_LOC, direction, ct__broadcast_to(CT_LOC, x, 3, axes), ct__broadcast_to(CT_LOC, y, 3, axes));
}

typedef struct side {
    ct_tensor *fields[CT__SPLASH_FIELDS]; /* [mask_batch blocks] */
} side;

/* Which pairs of blocks are seen at all, as ct__splash_visit finds it; NULL: all. */
static ct_tensor *seen_blocks(const ct__splash_arrays *a, const side *q, const side *kv)
{
    const ct__splash *s = &a->splash;
    ct_tensor *seen[5];
    int count = 0;
    ct_tensor *const *of_q = q->fields, *const *of_kv = kv->fields;
    double window = (double)s->window;
    if (s->causal) seen[count++] = compare(a, "LE", of_kv[CT__LEAST_POSITION], of_q[CT__GREATEST_POSITION], 0);
    if (s->window > 0) seen[count++] = compare(a, "LT", of_q[CT__LEAST_POSITION], of_kv[CT__GREATEST_POSITION], window);
    if (s->window > 0 && !s->causal)
        seen[count++] = compare(a, "LT", of_kv[CT__LEAST_POSITION], of_q[CT__GREATEST_POSITION], window);
    if (s->segments) {
        seen[count++] = compare(a, "LE", of_q[CT__LEAST_SEGMENT], of_kv[CT__GREATEST_SEGMENT], 0);
        seen[count++] = compare(a, "LE", of_kv[CT__LEAST_SEGMENT], of_q[CT__GREATEST_SEGMENT], 0);
    }
    for (int i = 1; i < count; i++) seen[0] = ct_and(seen[0], seen[i]);
    return count ? seen[0] : NULL;
}

/* The first and the last block along axis that are seen; 0 and 0 where none is. Where all are: NULL for seen. */
static void add_range(side *of, ct_tensor *seen, const char *axis, int64_t num_blocks)
{
    ct_tensor *like = of->fields[0], *zero = ct_full_like(like, 0);
    of->fields[CT__FIRST] = zero;
    of->fields[CT__LAST] = ct_full_like(like, (double)(num_blocks - 1));
    if (!seen) return;
    ct_graph *graph = like->graph;
    ct_tensor *index =
        ct_iota(graph, CT_DTYPE_S32, ct_arena_printf(&graph->arena, "%s=%lld", axis, (long long)num_blocks), axis);
    index = ct_broadcast_like(index, seen);
    ct_tensor *last = ct_max(ct_select(seen, index, ct_full_like(index, -1)), axis);
    ct_tensor *first = ct_min(ct_select(seen, index, ct_full_like(index, INT32_MAX)), axis);
    of->fields[CT__LAST] = ct_maximum(last, zero);
    of->fields[CT__FIRST] = ct_minimum(first, of->fields[CT__LAST]);
}

static side side_of(const ct__splash_arrays *a, ct_tensor *positions, ct_tensor *segments, int64_t len, int64_t block,
                    const char *name)
{
    side s;
    positions = with_batch(a, positions);
    s.fields[CT__LEAST_POSITION] = extreme(positions, len, block, false, name);
    s.fields[CT__GREATEST_POSITION] = extreme(positions, len, block, true, name);
    segments = segments ? with_batch(a, segments) : NULL;
    ct_tensor *zero = ct_full_like(s.fields[0], 0);
    s.fields[CT__LEAST_SEGMENT] = segments ? extreme(segments, len, block, false, name) : zero;
    s.fields[CT__GREATEST_SEGMENT] = segments ? extreme(segments, len, block, true, name) : zero;
    return s;
}

/* [mask_batch blocks fields], as one row */
static ct_tensor *table_of(const side *s, const char *name)
{
    ct_tensor *fields[CT__SPLASH_FIELDS];
    for (int i = 0; i < CT__SPLASH_FIELDS; i++) fields[i] = ct_unsqueeze(s->fields[i], "field", 2);
    ct_tensor *table = ct_concat(fields, CT__SPLASH_FIELDS, "field");
    return ct_merge(table, ct_arena_printf(&table->graph->arena, "mask_batch %s field", name), "table");
}

void ct__splash_tables(const ct__splash_arrays *a, int64_t q_block, int64_t kv_block, ct_tensor *out_tables[2])
{
    const ct__splash *s = &a->splash;
    ct_tensor *positions = ct__attention_positions(a->opts.positions, a->q, "seq");
    ct_tensor *kv_positions = ct__attention_positions(a->opts.kv_positions, a->k, "kv_seq");
    side q = side_of(a, positions, a->opts.segments, s->q_len, q_block, "q_block");
    side kv = side_of(a, kv_positions, a->opts.kv_segments, s->kv_len, kv_block, "kv_block");
    ct_tensor *seen = seen_blocks(a, &q, &kv);
    add_range(&q, seen, "kv_block", s->kv_len / kv_block);
    add_range(&kv, seen, "q_block", s->q_len / q_block);
    out_tables[0] = table_of(&q, "q_block");
    out_tables[1] = table_of(&kv, "kv_block");
}

/* [mask_batch len 128] or [mask_batch 1 len] */
static ct_tensor *mask_array(const ct__splash_arrays *a, ct_tensor *x, int64_t len, bool along_rows)
{
    const char *axis = length_axis(x);
    x = pad_to(with_batch(a, x), axis, len, 0);
    if (!along_rows) return ct_unsqueeze(x, "one", 1);
    const ct_axis axes[3] = {x->axes[0], x->axes[1], {ct__intern_z(x->graph, "lanes"), CT_MOSAIC_LANES}};
    return ct__broadcast_to(CT_LOC, x, 3, axes);
}

int ct__splash_masks(const ct__splash_arrays *a, bool q_along_rows, ct_tensor *out_masks[CT__SPLASH_MAX_MASKS])
{
    const ct__splash *s = &a->splash;
    int count = 0;
    if (s->q_positions) out_masks[count++] = mask_array(a, a->opts.positions, s->q_len, q_along_rows);
    if (s->kv_positions) out_masks[count++] = mask_array(a, a->opts.kv_positions, s->kv_len, !q_along_rows);
    if (s->segments) {
        out_masks[count++] = mask_array(a, a->opts.segments, s->q_len, q_along_rows);
        out_masks[count++] = mask_array(a, a->opts.kv_segments, s->kv_len, !q_along_rows);
    }
    return count;
}
