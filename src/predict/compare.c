/* Where two predictions differ. Instructions of two programs have different names and numbers; what they share is the
 * op_name, which says where in the source they come from. */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "predict/internal.h"

typedef struct {
    const char *op_name;
    ct_predict_group group;
    double seconds[2];
} row;

static void put_difference(const char *name, double a, double b, ct_str *out)
{
    ct_str_printf(out, "  %-26s %10.3f %10.3f %+10.3f", name, 1e3 * a, 1e3 * b, 1e3 * (b - a));
    if (a > 0) ct_str_printf(out, "  %+6.1f%%", 100 * (b - a) / a);
    ct_str_append_char(out, '\n');
}

static int larger_first(const void *a, const void *b)
{
    const row *x = a, *y = b;
    double dx = x->seconds[1] - x->seconds[0], dy = y->seconds[1] - y->seconds[0];
    if (dx < 0) dx = -dx;
    if (dy < 0) dy = -dy;
    if (dx == dy) return strcmp(x->op_name, y->op_name);
    return dx < dy ? 1 : -1;
}

/* Sums by group and op_name; items without one by their opcode. */
static size_t align(ct_arena *arena, const ct_prediction *const sides[2], row **out_rows)
{
    ct_map map;
    ct_map_init(&map);
    size_t num_rows = 0;
    row *rows = CT_ARENA_ARRAY(arena, row, sides[0]->num_items + sides[1]->num_items + 1);
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < sides[side]->num_items; i++) {
            const ct_predict_item *item = &sides[side]->items[i];
            const char *name = item->op_name[0] ? item->op_name : ct_arena_printf(arena, "(%s)", item->opcode);
            const char *key = ct_arena_printf(arena, "%d %s", (int)item->group, name);
            row *at = ct_map_get(&map, key);
            if (!at) {
                at = &rows[num_rows++];
                *at = (row){.op_name = name, .group = item->group};
                ct_map_set(&map, key, at);
            }
            at->seconds[side] += item->waited.at[CT_CHIP_MID];
        }
    ct_map_deinit(&map);
    qsort(rows, num_rows, sizeof(*rows), larger_first);
    *out_rows = rows;
    return num_rows;
}

ct_status *ct_prediction_compare(const ct_prediction *a, const ct_prediction *b, size_t num_items, ct_str *out)
{
    if (a->chip != b->chip)
        return ct_error(CT_CODE_INVALID_ARGUMENT,
                        "a prediction for %s and one for %s: the compiler's estimates have other biases on each chip, "
                        "so programs are compared on one chip only; plan both for the same one",
                        a->chip->name, b->chip->name);
    ct_str_printf(out, "  %-26s %10s %10s %10s\n", "ms of a step, mid", "A", "B", "B - A");
    put_difference("all", a->step.at[CT_CHIP_MID], b->step.at[CT_CHIP_MID], out);
    for (int g = 0; g < CT_PREDICT_NUM_GROUPS; g++)
        put_difference(ct_predict_group_name((ct_predict_group)g), a->groups[g].at[CT_CHIP_MID],
                       b->groups[g].at[CT_CHIP_MID], out);
    for (int k = 0; k < CT_HLO_COLLECTIVE_NUM_KINDS; k++)
        if (a->wire_bytes[k] > 0 || b->wire_bytes[k] > 0)
            ct_str_printf(out, "  %-14s MB sent   %10.3f %10.3f %+10.3f\n",
                          ct_hlo_collective_kind_name((ct_hlo_collective_kind)k), 1e-6 * a->wire_bytes[k],
                          1e-6 * b->wire_bytes[k], 1e-6 * (b->wire_bytes[k] - a->wire_bytes[k]));
    ct_arena arena;
    ct_arena_init(&arena);
    row *rows;
    size_t num_rows = align(&arena, (const ct_prediction *const[]){a, b}, &rows);
    ct_str_append(out, "Largest differences, by what the program's text calls it\n");
    for (size_t i = 0; i < num_rows && i < num_items; i++) {
        if (rows[i].seconds[0] == rows[i].seconds[1]) break;
        ct_str_printf(out, "  %10.3f %10.3f %+10.3f  %-22s %s\n", 1e3 * rows[i].seconds[0], 1e3 * rows[i].seconds[1],
                      1e3 * (rows[i].seconds[1] - rows[i].seconds[0]), ct_predict_group_name(rows[i].group),
                      rows[i].op_name);
    }
    ct_arena_deinit(&arena);
    return NULL;
}
