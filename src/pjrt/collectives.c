/* A walk over the program as it runs: calls are followed, loops multiply, and a collective is named by what it does. */
#include "pjrt/collectives.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

typedef struct {
    ct_arena *arena;
    ct_hlo_traffic *traffic;
    int64_t num_devices;
} walker;

/* What the callers of a computation say about it. */
typedef struct {
    int64_t times;
    const char *op_name, *emitter;
    bool is_async, is_fused;
} context;

static bool is(const ct_hlo_instruction *instruction, const char *opcode)
{
    return !strcmp(instruction->opcode, opcode);
}

static const struct {
    const char *opcode;
    ct_hlo_collective_kind kind;
    bool is_async;
} opcodes[] = {
    {"all-gather", CT_HLO_COLLECTIVE_ALL_GATHER, false},
    {"all-gather-start", CT_HLO_COLLECTIVE_ALL_GATHER, true},
    {"reduce-scatter", CT_HLO_COLLECTIVE_REDUCE_SCATTER, false},
    {"reduce-scatter-start", CT_HLO_COLLECTIVE_REDUCE_SCATTER, true},
    {"all-reduce", CT_HLO_COLLECTIVE_ALL_REDUCE, false},
    {"all-reduce-start", CT_HLO_COLLECTIVE_ALL_REDUCE, true},
    {"all-to-all", CT_HLO_COLLECTIVE_ALL_TO_ALL, false},
    {"all-to-all-start", CT_HLO_COLLECTIVE_ALL_TO_ALL, true},
    {"ragged-all-to-all-start", CT_HLO_COLLECTIVE_ALL_TO_ALL, true},
    {"ragged-all-to-all", CT_HLO_COLLECTIVE_ALL_TO_ALL, false},
    {"collective-permute", CT_HLO_COLLECTIVE_PERMUTE, false},
    {"collective-permute-start", CT_HLO_COLLECTIVE_PERMUTE, true},
    {"collective-broadcast", CT_HLO_COLLECTIVE_PERMUTE, false},
};

static int find_opcode(const ct_hlo_instruction *instruction)
{
    for (size_t i = 0; i < CT_COUNT(opcodes); i++)
        if (is(instruction, opcodes[i].opcode)) return (int)i;
    return -1;
}

/* The text of a string member of the backend's JSON, in arena; "" if there is none. */
static const char *config_text(ct_arena *arena, const char *config, const char *name)
{
    const char *at = strstr(config, ct_arena_printf(arena, "\"%s\":\"", name));
    if (!at) return "";
    at = strchr(at + 1, ':') + 2;
    return ct_arena_strndup(arena, at, strcspn(at, "\""));
}

double ct_hlo_estimated_cycles(const ct_hlo_instruction *instruction, double *out_stated)
{
    static const char key[] = "\"estimated_cycles\":\"";
    const char *at = strstr(instruction->backend_config, key);
    double cycles = at ? strtod(at + sizeof(key) - 1, NULL) : 0;
    if (out_stated) *out_stated = cycles;
    return cycles > 0 && cycles < 1e12 ? cycles : 0;
}

/* ---- what an all-reduce is wasted on ---- */

static bool only_sliced(const ct_hlo_computation *computation, const ct_hlo_instruction *value, int depth)
{
    static const char *const passing[] = {"bitcast", "copy", "convert", "reshape", "get-tuple-element"};
    bool any = false;
    if (value == computation->root || depth > 8) return false;
    for (size_t i = 0; i < computation->num_instructions; i++) {
        const ct_hlo_instruction *user = &computation->instructions[i];
        for (size_t j = 0; j < user->num_operands; j++) {
            if (user->operands[j] != value) continue;
            bool sliced = is(user, "dynamic-slice") && j == 0, passes = false;
            for (size_t k = 0; k < CT_COUNT(passing); k++) passes = passes || is(user, passing[k]);
            if (passes) {
                sliced = only_sliced(computation, user, depth + 1);
            } else if (is(user, "fusion") && user->num_calls) {
                const ct_hlo_computation *fused = user->calls[0];
                for (size_t k = 0; k < fused->num_instructions && !sliced; k++)
                    sliced = is(&fused->instructions[k], "parameter") && fused->instructions[k].index == (int64_t)j &&
                             only_sliced(fused, &fused->instructions[k], depth + 1);
            }
            if (!sliced) return false;
            any = true;
        }
    }
    return any;
}

/* Whether only slices are taken of result i of an all-reduce; one of several operands gives a tuple. */
static bool is_sliced(const ct_hlo_computation *computation, const ct_hlo_instruction *reduce, size_t i)
{
    if (reduce->num_operands == 1) return only_sliced(computation, reduce, 0);
    bool any = false;
    for (size_t k = 0; k < computation->num_instructions; k++) {
        const ct_hlo_instruction *user = &computation->instructions[k];
        if (!is(user, "get-tuple-element") || user->operands[0] != reduce || user->index != (int64_t)i) continue;
        if (!only_sliced(computation, user, 0)) return false;
        any = true;
    }
    return any;
}

/* Whether value is a buffer of one constant with something written into it. */
static bool is_filled_in(const ct_hlo_instruction *value)
{
    const ct_hlo_instruction *caller = NULL; /* the fusion that value stands in */
    bool is_written = false;
    for (int depth = 0; depth < 16; depth++) {
        bool passes = value->num_operands == 1 && (is(value, "bitcast") || is(value, "copy") || is(value, "convert"));
        if (is(value, "broadcast") || is(value, "constant")) return is_written;
        if (is(value, "dynamic-update-slice") && value->num_operands && !is_written) {
            is_written = true;
            value = value->operands[0];
        } else if (is(value, "parameter") && caller && (size_t)value->index < caller->num_operands) {
            value = caller->operands[value->index];
            caller = NULL;
        } else if (is(value, "fusion") && value->num_calls && !caller) {
            caller = value;
            value = value->calls[0]->root;
        } else if (passes) {
            value = value->operands[0];
        } else {
            return false;
        }
    }
    return false;
}

/* ---- one collective ---- */

static void set_bytes(ct_hlo_collective *item, const ct_hlo_instruction *operand, int64_t num_devices)
{
    int64_t bytes = ct_hlo_shape_bytes(operand->shape, item->dtype), n = (int64_t)item->group_size, num_moves = 0;
    item->payload_bytes = item->kind == CT_HLO_COLLECTIVE_ALL_GATHER ? bytes * n : bytes;
    switch (item->kind) {
    case CT_HLO_COLLECTIVE_ALL_GATHER: item->wire_bytes = bytes * (n - 1); break;
    case CT_HLO_COLLECTIVE_ALL_REDUCE:
        item->wire_bytes = (int64_t)(2 * (double)bytes / (double)n * (double)(n - 1));
        break;
    case CT_HLO_COLLECTIVE_REDUCE_SCATTER:
    case CT_HLO_COLLECTIVE_ALL_TO_ALL: item->wire_bytes = (int64_t)((double)bytes / (double)n * (double)(n - 1)); break;
    default: /* a permute, of which some devices may have no part */
        for (size_t i = 0; i < item->num_groups; i++) num_moves += item->groups[2 * i] != item->groups[2 * i + 1];
        item->wire_bytes = (int64_t)((double)bytes * (double)num_moves / (double)num_devices);
    }
    char element[32], type[16];
    snprintf(element, sizeof(element), "%s[]", item->dtype);
    item->num_elements = item->payload_bytes / CT_MAX(ct_hlo_shape_bytes(element, type), 1);
}

static void append(walker *w, const ct_hlo_collective *item)
{
    ct_hlo_traffic *traffic = w->traffic;
    if (traffic->num_items == traffic->capacity) {
        size_t capacity = CT_MAX(2 * traffic->capacity, (size_t)16);
        ct_hlo_collective *items = CT_ARENA_ARRAY(w->arena, ct_hlo_collective, capacity);
        if (traffic->num_items) memcpy(items, traffic->items, traffic->num_items * sizeof(*items));
        traffic->items = items;
        traffic->capacity = capacity;
    }
    traffic->items[traffic->num_items++] = *item;
}

static void add(walker *w, const ct_hlo_computation *computation, const ct_hlo_instruction *from,
                ct_hlo_collective_kind kind, bool is_async, const context *c)
{
    ct_hlo_collective item = {.kind = kind,
                              .name = from->name,
                              .groups = from->groups,
                              .num_groups = from->num_groups,
                              .group_size = from->group_size,
                              .times = c->times,
                              .is_async = is_async};
    if (!item.num_groups) { /* all devices */
        int64_t *all = CT_ARENA_ARRAY(w->arena, int64_t, w->num_devices);
        for (int64_t i = 0; i < w->num_devices; i++) all[i] = i;
        item.groups = all;
        item.num_groups = 1;
        item.group_size = (size_t)w->num_devices;
    }
    if (item.group_size < 2) return;
    /* Fused into the computation beside it, a collective stands in every fusion that moves it on; the first starts it.
     */
    if (strstr(from->backend_config, "\"async_collective_fusion_config\"")) {
        if (strcmp(config_text(w->arena, from->backend_config, "flag_start"), "-1")) return;
        item.is_async = true;
    }
    item.op_name = from->op_name[0] ? from->op_name : c->op_name;
    item.emitter = config_text(w->arena, from->backend_config, "emitter");
    if (!item.emitter[0]) item.emitter = c->emitter;
    if (strstr(from->backend_config, "DEVICE_TYPE_SPARSECORE")) item.emitter = "sparse core";
    item.is_nd = strstr(config_text(w->arena, from->backend_config, "strategy"), "ND") ||
                 strstr(from->backend_config, "\"use_n_dimension_strategy\":true") ||
                 (item.emitter[0] >= '2' && item.emitter[0] <= '9' && item.emitter[1] == 'D');
    for (size_t i = 0; i < from->num_operands; i++) {
        item.waste = NULL;
        if (kind == CT_HLO_COLLECTIVE_ALL_REDUCE && is_sliced(computation, from, i)) item.waste = "reduce-scatter";
        if (kind == CT_HLO_COLLECTIVE_ALL_REDUCE && is_filled_in(from->operands[i])) item.waste = "all-gather";
        set_bytes(&item, from->operands[i], w->num_devices);
        if (kind != CT_HLO_COLLECTIVE_PERMUTE || item.wire_bytes) append(w, &item);
    }
}

/* ---- the walk ---- */

static void walk(walker *w, const ct_hlo_computation *computation, const context *c);

static void walk_loop(walker *w, const ct_hlo_instruction *loop, const context *c)
{
    int64_t turns = ct_hlo_loop_turns(loop);
    size_t num_items = w->traffic->num_items;
    double cycles = w->traffic->estimated_cycles;
    context inner = *c;
    if (turns >= 0 && !ct_checked_mul(c->times, turns, &inner.times)) turns = -1;
    if (turns < 0) inner.times = c->times;
    inner.op_name = loop->op_name[0] ? loop->op_name : c->op_name;
    for (size_t i = 0; i < loop->num_calls && turns; i++) walk(w, loop->calls[i], &inner);
    w->traffic->num_unknown_senders += turns < 0 && w->traffic->num_items > num_items;
    w->traffic->num_unknown_loops +=
        turns < 0 && (w->traffic->num_items > num_items || w->traffic->estimated_cycles > cycles);
}

/* A fusion that is a reduce-scatter in one piece: the whole array reduced, of which each device keeps its part. */
static bool walk_reduce_scatter(walker *w, const ct_hlo_instruction *fusion, const context *c)
{
    if (!is(fusion, "fusion") || !strstr(c->emitter, "AllReduceScatter")) return false;
    const ct_hlo_computation *fused = fusion->calls[0];
    for (size_t i = 0; i < fused->num_instructions; i++) {
        const ct_hlo_instruction *inner = &fused->instructions[i];
        if (!is(inner, "all-reduce") && !is(inner, "reduce-scatter")) continue;
        add(w, fused, inner, CT_HLO_COLLECTIVE_REDUCE_SCATTER, c->is_async, c);
        return true;
    }
    return false;
}

/* Of an instruction that is neither a loop nor a branch: what it runs itself or through what it calls. */
static void walk_instruction(walker *w, const ct_hlo_computation *computation, const ct_hlo_instruction *instruction,
                             const context *c)
{
    static const char *const calling[] = {"fusion",      "call",       "conditional",      "async-start",
                                          "custom-call", "call-start", "custom-call-start"};
    int opcode = find_opcode(instruction);
    if (opcode >= 0) {
        add(w, computation, instruction, opcodes[opcode].kind, opcodes[opcode].is_async || c->is_async, c);
        return;
    }
    bool calls = false;
    for (size_t k = 0; k < CT_COUNT(calling); k++) calls = calls || is(instruction, calling[k]);
    if (!calls || !instruction->num_calls) return;
    context inner = *c;
    if (instruction->op_name[0]) inner.op_name = instruction->op_name;
    inner.is_async |= strstr(instruction->opcode, "-start") != NULL;
    if (is(instruction, "fusion")) {
        inner.is_fused = true;
        inner.emitter = config_text(w->arena, instruction->backend_config, "emitter");
        if (walk_reduce_scatter(w, instruction, &inner)) return;
    }
    for (size_t k = 0; k < instruction->num_calls; k++) walk(w, instruction->calls[k], &inner);
}

static void walk(walker *w, const ct_hlo_computation *computation, const context *c)
{
    for (size_t i = 0; i < computation->num_instructions; i++) {
        const ct_hlo_instruction *instruction = &computation->instructions[i];
        if (!c->is_fused) w->traffic->estimated_cycles += (double)c->times * ct_hlo_estimated_cycles(instruction, NULL);
        if (is(instruction, "while"))
            walk_loop(w, instruction, c);
        else
            walk_instruction(w, computation, instruction, c);
    }
}

void ct_hlo_traffic_add(ct_arena *arena, const ct_hlo_computation *computation, const ct_hlo_instruction *instruction,
                        int64_t num_devices, ct_hlo_traffic *traffic)
{
    walker w = {.arena = arena, .traffic = traffic, .num_devices = num_devices};
    walk_instruction(&w, computation, instruction, &(context){.times = 1, .op_name = "", .emitter = ""});
}

void ct_hlo_traffic_find(ct_arena *arena, const ct_hlo_module *module, int64_t num_devices, ct_hlo_traffic *out_traffic)
{
    *out_traffic = (ct_hlo_traffic){0};
    walker w = {.arena = arena, .traffic = out_traffic, .num_devices = num_devices};
    walk(&w, module->entry, &(context){.times = 1, .op_name = "", .emitter = ""});
}

/* ---- reading the result ---- */

const char *ct_hlo_collective_kind_name(ct_hlo_collective_kind kind)
{
    static const char *const names[] = {"all_gather", "reduce_scatter", "all_reduce", "all_to_all", "permute"};
    return names[kind];
}

int ct_hlo_collective_axes(const ct_hlo_collective *collective, int num_axes, const int64_t *sizes)
{
    int used = 0;
    int64_t total = 1;
    for (int a = num_axes; a--;) {
        int64_t stride = total;
        total *= sizes[a];
        for (size_t i = 0; i < collective->num_groups * collective->group_size; i++) {
            int64_t first = collective->groups[i - i % collective->group_size], other = collective->groups[i];
            if (first / stride % sizes[a] != other / stride % sizes[a]) used |= 1 << a;
        }
    }
    int64_t size = 1;
    for (int a = 0; a < num_axes; a++)
        if (used >> a & 1) size *= sizes[a];
    if (collective->kind != CT_HLO_COLLECTIVE_PERMUTE && size != (int64_t)collective->group_size) return -1;
    for (size_t i = 0; i < collective->num_groups * collective->group_size; i++)
        if (collective->groups[i] < 0 || collective->groups[i] >= total) return -1;
    return used;
}

void ct_hlo_traffic_sum(const ct_hlo_traffic *traffic, int64_t out_wire_bytes[CT_HLO_COLLECTIVE_NUM_KINDS])
{
    memset(out_wire_bytes, 0, CT_HLO_COLLECTIVE_NUM_KINDS * sizeof(*out_wire_bytes));
    for (size_t i = 0; i < traffic->num_items; i++)
        out_wire_bytes[traffic->items[i].kind] += traffic->items[i].wire_bytes * traffic->items[i].times;
}

void ct_hlo_traffic_print(const ct_hlo_traffic *traffic, int num_axes, const int64_t *sizes, ct_str *out)
{
    for (size_t i = 0; i < traffic->num_items; i++) {
        const ct_hlo_collective *item = &traffic->items[i];
        int axes = ct_hlo_collective_axes(item, num_axes, sizes);
        ct_str_printf(out, "%-14s %-5s %12lld bytes x %-4lld along ", ct_hlo_collective_kind_name(item->kind),
                      item->dtype, (long long)item->payload_bytes, (long long)item->times);
        if (axes < 0) ct_str_printf(out, "%zu groups of %zu", item->num_groups, item->group_size);
        for (int a = 0, first = 1; axes > 0 && a < num_axes; a++)
            if (axes >> a & 1) {
                ct_str_printf(out, "%s%d", first ? "" : "+", a);
                first = 0;
            }
        ct_str_printf(out, "%s%s%s%s%s%s%s  %s %s\n", item->is_async ? "  async" : "", item->emitter[0] ? "  " : "",
                      item->emitter, item->is_nd ? " ND" : "", item->waste ? "  (wasted: " : "",
                      item->waste ? item->waste : "", item->waste ? " would do)" : "", item->name, item->op_name);
    }
}
