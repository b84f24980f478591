/* Lifetimes over the schedule.
 *
 *   value of an instruction: a list of leaves, one per array of its (tuple) shape; a leaf is a buffer, shared by all
 *   instructions that only pass it on
 *
 *   position     0    1    2 (loop)    3
 *   buffer a     +----+----+-----------+          made at 0, last used at 3
 *   buffer b          +----+                      and within the loop, on top, what lives at its body's fullest point
 */
#include "plan/arrays.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/map.h"

typedef struct buffer {
    const ct_hlo_instruction *maker;
    const char *shape;
    size_t shape_length;
    int64_t bytes; /* 0: not in this memory, or in the place of another */
    size_t first, last;
    bool is_argument;
} buffer;

typedef struct value {
    buffer **leaves;
    size_t num_leaves;
} value;

/* What lives at the fullest point of a computation. */
typedef struct peak {
    int64_t bytes;
    buffer **live;
    size_t num_live;
} peak;

static bool is(const ct_hlo_instruction *at, const char *opcode)
{
    return !strcmp(at->opcode, opcode);
}

static bool ends(const char *text, const char *ending)
{
    size_t length = strlen(text), ending_length = strlen(ending);
    return length >= ending_length && !strcmp(text + length - ending_length, ending);
}

/* The end of one part of a tuple's text. */
static const char *part_end(const char *at)
{
    int depth = 0;
    for (; *at; at++) {
        if (strchr("([{", *at)) depth++;
        if (strchr(")]}", *at) && depth-- == 0) break;
        if (*at == ',' && depth == 0) break;
    }
    return at;
}

static size_t count_leaves(const char *shape)
{
    if (*shape != '(') return 1;
    size_t count = 0;
    for (const char *at = shape + 1; *at && *at != ')';) {
        at += strspn(at, " ,");
        if (!*at || *at == ')') break;
        count += count_leaves(at);
        at = part_end(at);
    }
    return count;
}

/* Bytes in the device's own memory: others are marked by a memory space. */
static int64_t device_bytes(const char *shape, size_t length)
{
    char text[512], type[16];
    if (length >= sizeof(text)) return 0; /* no array is named so; a tuple has been taken apart */
    memcpy(text, shape, length);
    text[length] = 0;
    return strstr(text, "S(") ? 0 : ct_hlo_shape_bytes(text, type);
}

/* Makes a buffer per leaf of a shape from *next on. */
static void make_leaves(ct_arena *arena, const ct_hlo_instruction *maker, const char *shape, size_t position, value *v,
                        size_t *next)
{
    if (*shape == '(') {
        for (const char *at = shape + 1; *at && *at != ')';) {
            at += strspn(at, " ,");
            if (!*at || *at == ')') break;
            make_leaves(arena, maker, at, position, v, next);
            at = part_end(at);
        }
        return;
    }
    buffer *made = CT_ARENA_NEW(arena, buffer);
    size_t length = (size_t)(part_end(shape) - shape);
    *made = (buffer){.maker = maker, .shape = shape, .shape_length = length, .first = position, .last = position};
    made->bytes = device_bytes(shape, length);
    v->leaves[(*next)++] = made;
}

static value make(ct_arena *arena, const ct_hlo_instruction *at, size_t position)
{
    value v = {.num_leaves = count_leaves(at->shape)};
    v.leaves = CT_ARENA_ARRAY(arena, buffer *, v.num_leaves + 1);
    size_t next = 0;
    make_leaves(arena, at, at->shape, position, &v, &next);
    return v;
}

static bool same_shape(const buffer *a, const buffer *b)
{
    return a->shape_length == b->shape_length && !memcmp(a->shape, b->shape, a->shape_length);
}

static value *value_of(const ct_hlo_computation *computation, value *values, const ct_hlo_instruction *at)
{
    return &values[at - computation->instructions];
}

/* All operands' leaves, one after another. */
static value operands_of(ct_arena *arena, const ct_hlo_computation *computation, value *values,
                         const ct_hlo_instruction *at)
{
    value v = {0};
    for (size_t i = 0; i < at->num_operands; i++)
        v.num_leaves += value_of(computation, values, at->operands[i])->num_leaves;
    v.leaves = CT_ARENA_ARRAY(arena, buffer *, v.num_leaves + 1);
    size_t next = 0;
    for (size_t i = 0; i < at->num_operands; i++) {
        const value *operand = value_of(computation, values, at->operands[i]);
        for (size_t j = 0; j < operand->num_leaves; j++) v.leaves[next++] = operand->leaves[j];
    }
    return v;
}

/* One part of a tuple. */
static value part_of(const value *tuple, const char *shape, int64_t index)
{
    size_t skipped = 0;
    const char *at = shape + 1;
    for (int64_t i = 0; *at && *at != ')'; i++) {
        at += strspn(at, " ,");
        size_t count = count_leaves(at);
        if (skipped + count > tuple->num_leaves) break;
        if (i == index) return (value){tuple->leaves + skipped, count};
        skipped += count;
        at = part_end(at);
    }
    return (value){0};
}

/* Does the instruction write its result into an operand of the same shape? */
static bool updates_in_place(const ct_hlo_instruction *at)
{
    if (is(at, "dynamic-update-slice") || is(at, "scatter")) return true;
    if (!is(at, "fusion") || !at->num_calls) return false;
    const ct_hlo_instruction *root = at->calls[0]->root;
    while (is(root, "bitcast") && root->num_operands) root = root->operands[0];
    if (is(root, "dynamic-update-slice")) return true;
    for (size_t i = 0; is(root, "tuple") && i < root->num_operands; i++)
        if (is(root->operands[i], "dynamic-update-slice")) return true;
    return false;
}

/* In place of leaves of v that are shaped as leaves of from: those. */
static void share(value *v, const value *from)
{
    bool used[64] = {false};
    for (size_t i = 0; i < v->num_leaves; i++)
        for (size_t j = 0; j < from->num_leaves && j < CT_COUNT(used); j++) {
            if (used[j] || !same_shape(v->leaves[i], from->leaves[j])) continue;
            v->leaves[i] = from->leaves[j];
            used[j] = true;
            break;
        }
}

/* Positions are those of the computation that made it. */
static bool is_made_in(const ct_hlo_computation *computation, const buffer *b)
{
    return b->maker >= computation->instructions &&
           b->maker < computation->instructions + computation->num_instructions;
}

static value evaluate(ct_arena *arena, const ct_hlo_computation *computation, value *values,
                      const ct_hlo_instruction *at, const value *parameters, size_t position)
{
    if (is(at, "parameter")) {
        if (parameters && at->index == 0) return *parameters; /* of a loop's body */
        value v = make(arena, at, position);
        for (size_t i = 0; i < v.num_leaves; i++) v.leaves[i]->is_argument = !parameters;
        return v;
    }
    value from = operands_of(arena, computation, values, at);
    if (is(at, "tuple") || is(at, "bitcast") || is(at, "while") || is(at, "optimization-barrier") ||
        is(at, "opt-barrier"))
        return from;
    if (is(at, "get-tuple-element")) return part_of(&from, at->operands[0]->shape, at->index);
    value v = make(arena, at, position);
    if (ends(at->opcode, "-start") || ends(at->opcode, "-done") || ends(at->opcode, "-update") || updates_in_place(at))
        share(&v, &from);
    return v;
}

static peak find_peak(ct_arena *arena, const ct_hlo_computation *computation, const value *parameters);

/* The fullest point of what an instruction calls while it runs. */
static peak peak_within(ct_arena *arena, const ct_hlo_computation *computation, value *values,
                        const ct_hlo_instruction *at)
{
    peak most = {0};
    bool is_loop = is(at, "while");
    if (!is_loop && !is(at, "conditional") && !is(at, "call")) return most;
    for (size_t i = 0; i < at->num_calls; i++) {
        value given = {0};
        if (is_loop && at->num_operands) given = *value_of(computation, values, at->operands[0]);
        if (!is_loop && i + 1 < at->num_operands) given = *value_of(computation, values, at->operands[i + 1]);
        peak within = find_peak(arena, at->calls[i], &given);
        if (within.bytes > most.bytes) most = within;
    }
    return most;
}

/* What the step gives back lies in the arguments that it replaces, as ours and JAX's steps do: the same number, the
 * same shape. */
static void place_results(const ct_hlo_computation *entry, value *values)
{
    const value *results = value_of(entry, values, entry->root);
    for (size_t i = 0; i < entry->num_instructions; i++) {
        const ct_hlo_instruction *at = &entry->instructions[i];
        if (!is(at, "parameter") || at->index < 0 || (size_t)at->index >= results->num_leaves) continue;
        buffer *result = results->leaves[at->index];
        if (!result->is_argument && values[i].num_leaves == 1 && same_shape(result, values[i].leaves[0]))
            result->bytes = 0;
    }
}

/* parameters: what the computation is given, NULL for the entry. */
static peak find_peak(ct_arena *arena, const ct_hlo_computation *computation, const value *parameters)
{
    size_t count = computation->num_instructions, num_made = 0;
    value *values = ct_alloc_zeroed(count + 1, sizeof(*values));
    for (size_t i = 0; i < count; i++) {
        const ct_hlo_instruction *at = &computation->instructions[i];
        values[i] = evaluate(arena, computation, values, at, parameters, i);
        for (size_t o = 0; o < at->num_operands; o++) {
            const value *operand = value_of(computation, values, at->operands[o]);
            for (size_t l = 0; l < operand->num_leaves; l++)
                if (is_made_in(computation, operand->leaves[l]))
                    operand->leaves[l]->last = CT_MAX(operand->leaves[l]->last, i);
        }
        num_made += values[i].num_leaves;
    }
    const value *root = value_of(computation, values, computation->root);
    for (size_t l = 0; l < root->num_leaves; l++)
        if (is_made_in(computation, root->leaves[l])) root->leaves[l]->last = count;
    if (!parameters) place_results(computation, values);

    buffer **live = ct_alloc_zeroed(num_made + 1, sizeof(*live));
    size_t num_live = 0;
    peak most = {0};
    for (size_t i = 0; i < count; i++) {
        for (size_t l = 0; l < values[i].num_leaves; l++) {
            buffer *leaf = values[i].leaves[l];
            if (leaf->maker == &computation->instructions[i] && leaf->bytes) live[num_live++] = leaf;
        }
        peak now = peak_within(arena, computation, values, &computation->instructions[i]);
        for (size_t l = 0; l < num_live; l++) now.bytes += live[l]->bytes;
        if (now.bytes > most.bytes) {
            most.bytes = now.bytes;
            most.live = CT_ARENA_ARRAY(arena, buffer *, num_live + now.num_live + 1);
            most.num_live = num_live + now.num_live;
            memcpy(most.live, live, num_live * sizeof(*live));
            if (now.num_live) memcpy(most.live + num_live, now.live, now.num_live * sizeof(*live));
        }
        size_t kept = 0;
        for (size_t l = 0; l < num_live; l++)
            if (live[l]->last > i || live[l]->is_argument) live[kept++] = live[l];
        num_live = kept;
    }
    free(live);
    free(values);
    return most;
}

static int by_bytes(const void *a, const void *b)
{
    const ct_plan_array *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    int names = strcmp(x->name, y->name);
    return names ? names : strcmp(x->shape, y->shape);
}

static bool passes_on(const ct_hlo_instruction *at)
{
    return at->num_operands && (is(at, "copy") || is(at, "bitcast") || is(at, "get-tuple-element") ||
                                ends(at->opcode, "-start") || ends(at->opcode, "-update") || ends(at->opcode, "-done"));
}

/* Where the program's text has it from; copies that the compiler put in are called as what they copy. */
static const char *name_of(const ct_hlo_instruction *at)
{
    const ct_hlo_instruction *from = at;
    for (int steps = 0; !from->op_name[0] && passes_on(from) && steps < 16; steps++) from = from->operands[0];
    return from->op_name[0] ? from->op_name : at->name;
}

ct_plan_array *ct__plan_arrays(ct_arena *arena, const ct_hlo_module *module, size_t *out_num_arrays)
{
    ct_arena scratch;
    ct_arena_init(&scratch);
    peak most = find_peak(&scratch, module->entry, NULL);
    ct_plan_array *arrays = CT_ARENA_ARRAY(arena, ct_plan_array, most.num_live + 1);
    ct_map seen;
    ct_map_init(&seen);
    size_t count = 0;
    for (size_t i = 0; i < most.num_live; i++) {
        const buffer *b = most.live[i];
        const char *name = name_of(b->maker);
        /* the layout is the compiler's own affair */
        size_t length = strcspn(b->shape, "{");
        const char *shape = ct_arena_strndup(arena, b->shape, CT_MIN(length, b->shape_length));
        char *key = ct_asprintf("%s %s", name, shape);
        ct_plan_array *array = ct_map_get(&seen, key);
        if (!array) {
            array = &arrays[count++];
            *array = (ct_plan_array){.name = name, .shape = shape, .is_argument = b->is_argument};
            ct_map_set(&seen, key, array);
        }
        array->bytes += b->bytes;
        array->count++;
        free(key);
    }
    ct_map_deinit(&seen);
    ct_arena_deinit(&scratch);
    qsort(arrays, count, sizeof(*arrays), by_bytes);
    *out_num_arrays = count;
    return arrays;
}
