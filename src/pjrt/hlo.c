/* From HloModuleProtoWithConfig to ct_hlo_module: ids become pointers, shapes become text. */
#include "pjrt/internal_hlo.h"

#include <stdlib.h>
#include <string.h>
#include <xla.pb-c.h>

#include "base/alloc.h"

static const char *element_name(int type)
{
    static const char *const names[] = {
        "?",   "pred",  "s8",     "s16", "s32",  "s64",   "u8",   "u16",    "u32",      "u64", "f16", "f32",
        "f64", "tuple", "opaque", "c64", "bf16", "token", "c128", "f8e5m2", "f8e4m3fn", "s4",  "u4",
    };
    return type > 0 && (size_t)type < CT_COUNT(names) ? names[type] : "?";
}

static void append_list(ct_str *out, const int64_t *values, size_t count)
{
    for (size_t i = 0; i < count; i++) ct_str_printf(out, "%s%lld", i ? "," : "", (long long)values[i]);
}

static void append_shape(ct_str *out, const Xla__ShapeProto *shape)
{
    if (!shape) return;
    if (shape->n_tuple_shapes) {
        ct_str_append_char(out, '(');
        for (size_t i = 0; i < shape->n_tuple_shapes; i++) {
            if (i) ct_str_append(out, ", ");
            append_shape(out, shape->tuple_shapes[i]);
        }
        ct_str_append_char(out, ')');
        return;
    }
    ct_str_printf(out, "%s[", element_name(shape->element_type));
    append_list(out, shape->dimensions, shape->n_dimensions);
    ct_str_append_char(out, ']');
    if (!shape->layout || !shape->n_dimensions) return;
    ct_str_append_char(out, '{');
    append_list(out, shape->layout->minor_to_major, shape->layout->n_minor_to_major);
    if (shape->layout->memory_space) ct_str_printf(out, ":S(%lld)", (long long)shape->layout->memory_space);
    ct_str_append_char(out, '}');
}

static void append_field(ct_str *out, const char *name, const int64_t *values, size_t count)
{
    if (!count) return;
    ct_str_printf(out, "%s%s={", out->length ? ", " : "", name);
    append_list(out, values, count);
    ct_str_append_char(out, '}');
}

static void append_details(ct_str *out, const Xla__HloInstructionProto *from)
{
    if (!strcmp(from->opcode, "parameter")) ct_str_printf(out, "parameter=%lld", (long long)from->parameter_number);
    if (!strcmp(from->opcode, "get-tuple-element")) ct_str_printf(out, "index=%lld", (long long)from->tuple_index);
    if (from->fusion_kind[0]) ct_str_printf(out, "kind=%s", from->fusion_kind);
    if (from->custom_call_target[0]) ct_str_printf(out, "target=%s", from->custom_call_target);
    append_field(out, "dimensions", from->dimensions, from->n_dimensions);
    if (from->comparison_direction[0]) ct_str_printf(out, "direction=%s", from->comparison_direction);
    const Xla__DotDimensionNumbers *dot = from->dot_dimension_numbers;
    if (!dot) return;
    append_field(out, "lhs_batch", dot->lhs_batch_dimensions, dot->n_lhs_batch_dimensions);
    append_field(out, "lhs_contracting", dot->lhs_contracting_dimensions, dot->n_lhs_contracting_dimensions);
    append_field(out, "rhs_batch", dot->rhs_batch_dimensions, dot->n_rhs_batch_dimensions);
    append_field(out, "rhs_contracting", dot->rhs_contracting_dimensions, dot->n_rhs_contracting_dimensions);
}

/* Ids are unique in their space and in no order; a sorted table finds them. */
typedef struct {
    int64_t id;
    void *object;
} id_entry;

typedef struct {
    id_entry *entries;
    size_t count;
} id_table;

static int compare_ids(const void *a, const void *b)
{
    int64_t x = ((const id_entry *)a)->id, y = ((const id_entry *)b)->id;
    return (x > y) - (x < y);
}

static void *find_id(const id_table *table, int64_t id)
{
    id_entry key = {.id = id};
    if (!table->count) return NULL;
    const id_entry *found = bsearch(&key, table->entries, table->count, sizeof(key), compare_ids);
    return found ? found->object : NULL;
}

static void read_integer(const Xla__LiteralProto *literal, ct_hlo_instruction *to)
{
    if (!literal || literal->n_s32s + literal->n_s64s + literal->n_u32s + literal->n_u64s != 1) return;
    to->is_integer = true;
    to->integer = literal->n_s32s   ? literal->s32s[0]
                  : literal->n_s64s ? literal->s64s[0]
                  : literal->n_u32s ? literal->u32s[0]
                                    : (int64_t)literal->u64s[0];
}

static ct_status *read_instruction(ct_arena *arena, const Xla__HloInstructionProto *from, const id_table *instructions,
                                   const id_table *computations, ct_str *text, ct_hlo_instruction *to)
{
    to->name = ct_arena_strdup(arena, from->name);
    to->opcode = ct_arena_strdup(arena, from->opcode);
    to->op_name = from->metadata ? ct_arena_strdup(arena, from->metadata->op_name) : "";
    to->backend_config = ct_arena_strndup(arena, (const char *)from->backend_config.data, from->backend_config.len);
    ct_str_reset(text);
    append_shape(text, from->shape);
    to->shape = ct_arena_strdup(arena, text->data);
    ct_str_reset(text);
    append_details(text, from);
    to->details = ct_arena_strdup(arena, text->data);
    to->operands = CT_ARENA_ARRAY(arena, const ct_hlo_instruction *, from->n_operand_ids);
    to->num_operands = from->n_operand_ids;
    to->direction = ct_arena_strdup(arena, from->comparison_direction);
    to->index = !strcmp(from->opcode, "parameter") ? from->parameter_number : from->tuple_index;
    if (!strcmp(from->opcode, "constant")) read_integer(from->literal, to);
    CT_TRY_NOTE(ct__hlo_read_groups(arena, from, to), "reading the devices of %s", from->name);
    to->calls = CT_ARENA_ARRAY(arena, const ct_hlo_computation *, from->n_called_computation_ids);
    to->num_calls = from->n_called_computation_ids;
    for (size_t i = 0; i < to->num_operands; i++)
        if (!(to->operands[i] = find_id(instructions, from->operand_ids[i])))
            return ct_error(CT_CODE_DATA_LOSS, "operand %zu of the instruction %s is not in its computation", i,
                            from->name);
    for (size_t i = 0; i < to->num_calls; i++)
        if (!(to->calls[i] = find_id(computations, from->called_computation_ids[i])))
            return ct_error(CT_CODE_DATA_LOSS, "the instruction %s calls a computation that is not there", from->name);
    return NULL;
}

/* The instructions of from in the order of the schedule, if it has all of them once; else as they stand. */
static void sort_by_schedule(const Xla__HloScheduleProto *schedule, const Xla__HloComputationProto *from)
{
    const Xla__HloScheduleProto__InstructionSequence *sequence = NULL;
    for (size_t i = 0; schedule && i < schedule->n_sequences && !sequence; i++)
        if (schedule->sequences[i]->key == from->id) sequence = schedule->sequences[i]->value;
    if (!sequence || sequence->n_instruction_ids != from->n_instructions) return;
    size_t count = from->n_instructions;
    id_table table = {.entries = ct_alloc_zeroed(count, sizeof(*table.entries)), .count = count};
    Xla__HloInstructionProto **sorted = ct_alloc_zeroed(count, sizeof(*sorted));
    for (size_t i = 0; i < count; i++)
        table.entries[i] = (id_entry){.id = from->instructions[i]->id, .object = from->instructions[i]};
    qsort(table.entries, count, sizeof(*table.entries), compare_ids);
    size_t num_found = 0;
    for (; num_found < count; num_found++)
        if (!(sorted[num_found] = find_id(&table, sequence->instruction_ids[num_found]))) break;
    for (size_t i = 1; i < count && num_found == count; i++) /* ids that occur twice leave another out */
        if (table.entries[i].id == table.entries[i - 1].id) num_found = 0;
    if (num_found == count) memcpy(from->instructions, sorted, count * sizeof(*sorted));
    free(sorted);
    free(table.entries);
}

static ct_status *read_computation(ct_arena *arena, const Xla__HloComputationProto *from, const id_table *computations,
                                   const Xla__HloScheduleProto *schedule, ct_str *text, ct_hlo_computation *to)
{
    sort_by_schedule(schedule, from);
    to->name = ct_arena_strdup(arena, from->name);
    to->num_instructions = from->n_instructions;
    to->instructions = CT_ARENA_ARRAY(arena, ct_hlo_instruction, from->n_instructions);
    id_table table = {.entries = CT_ARENA_ARRAY(arena, id_entry, from->n_instructions), .count = from->n_instructions};
    for (size_t i = 0; i < table.count; i++)
        table.entries[i] = (id_entry){.id = from->instructions[i]->id, .object = &to->instructions[i]};
    qsort(table.entries, table.count, sizeof(*table.entries), compare_ids);
    for (size_t i = 0; i < table.count; i++)
        CT_TRY(read_instruction(arena, from->instructions[i], &table, computations, text, &to->instructions[i]));
    to->root = find_id(&table, from->root_id);
    if (!to->root) return ct_error(CT_CODE_DATA_LOSS, "the computation %s has no root", from->name);
    return NULL;
}

/* ---- what every module must be, however it was read ---- */

enum { MAX_CALL_DEPTH = 256 };

static const int64_t max_device = 1 << 20;
static const double max_runs = 1e7;

/* runs: of each computation, how many it and what it calls are, in all; 0 not seen, below 0 being walked. */
static ct_status *check_calls(const ct_hlo_module *module, const ct_hlo_computation *from, double *runs, int depth)
{
    size_t index = (size_t)(from - module->computations);
    if (runs[index] > 0) return NULL;
    if (runs[index] < 0 || depth == MAX_CALL_DEPTH)
        return ct_error(CT_CODE_DATA_LOSS, "the computation %s calls itself, or calls go deeper than %d", from->name,
                        MAX_CALL_DEPTH);
    double total = 1;
    runs[index] = -1;
    for (size_t i = 0; i < from->num_instructions; i++) {
        const ct_hlo_instruction *at = &from->instructions[i];
        for (size_t j = 0; j < at->num_groups * at->group_size; j++)
            if (at->groups[j] < 0 || at->groups[j] >= max_device)
                return ct_error(CT_CODE_DATA_LOSS, "%s runs on the device %lld", at->name, (long long)at->groups[j]);
        for (size_t j = 0; j < at->num_calls; j++) {
            CT_TRY(check_calls(module, at->calls[j], runs, depth + 1));
            total += runs[at->calls[j] - module->computations];
        }
    }
    if (total > max_runs)
        return ct_error(CT_CODE_DATA_LOSS, "what %s calls calls others, in all over %.0f times", from->name, max_runs);
    runs[index] = total;
    return NULL;
}

ct_status *ct__hlo_check(const ct_hlo_module *module)
{
    double *runs = ct_alloc_zeroed(module->num_computations + 1, sizeof(*runs));
    ct_status *status = NULL;
    for (size_t i = 0; i < module->num_computations && !status; i++)
        status = check_calls(module, &module->computations[i], runs, 0);
    free(runs);
    return status;
}

void *ct__hlo_grow(ct_arena *arena, void *array, size_t count, size_t *capacity, size_t element_bytes)
{
    if (count < *capacity) return array;
    *capacity = CT_MAX(2 * *capacity, (size_t)8);
    void *grown = ct_arena_alloc(arena, *capacity * element_bytes);
    if (count) memcpy(grown, array, count * element_bytes);
    return grown;
}

static ct_status *read_module(ct_arena *arena, const Xla__HloModuleProto *from, ct_str *text, ct_hlo_module *to)
{
    to->name = ct_arena_strdup(arena, from->name);
    to->num_computations = from->n_computations;
    to->computations = CT_ARENA_ARRAY(arena, ct_hlo_computation, from->n_computations);
    id_table table = {.entries = CT_ARENA_ARRAY(arena, id_entry, from->n_computations), .count = from->n_computations};
    for (size_t i = 0; i < table.count; i++)
        table.entries[i] = (id_entry){.id = from->computations[i]->id, .object = &to->computations[i]};
    qsort(table.entries, table.count, sizeof(*table.entries), compare_ids);
    for (size_t i = 0; i < table.count; i++)
        CT_TRY(read_computation(arena, from->computations[i], &table, from->schedule, text, &to->computations[i]));
    to->entry = find_id(&table, from->entry_computation_id);
    if (!to->entry) return ct_error(CT_CODE_DATA_LOSS, "the optimized program %s has no entry", from->name);
    to->is_scheduled = from->schedule && from->schedule->n_sequences;
    return ct__hlo_check(to);
}

ct_status *ct__hlo_read(ct_arena *arena, const void *bytes, size_t size_bytes, ct_hlo_module **out_module)
{
    *out_module = NULL;
    Xla__HloModuleProtoWithConfig *holder = xla__hlo_module_proto_with_config__unpack(NULL, size_bytes, bytes);
    Xla__HloModuleProto *proto = holder ? holder->hlo_module : NULL, *alone = NULL;
    if (!proto || !proto->n_computations) proto = alone = xla__hlo_module_proto__unpack(NULL, size_bytes, bytes);
    ct_status *status = NULL;
    ct_hlo_module *module = CT_ARENA_NEW(arena, ct_hlo_module);
    if (!proto || !proto->n_computations) {
        status = ct_error(CT_CODE_DATA_LOSS, "the %zu bytes of an optimized program cannot be decoded", size_bytes);
    } else {
        ct_str text;
        ct_str_init(&text);
        status = read_module(arena, proto, &text, module);
        ct_str_deinit(&text);
    }
    if (holder) xla__hlo_module_proto_with_config__free_unpacked(holder, NULL);
    if (alone) xla__hlo_module_proto__free_unpacked(alone, NULL);
    if (!status) *out_module = module;
    return status;
}

ct_status *ct_executable_hlo(const ct_executable *executable, ct_arena *arena, ct_hlo_module **out_module)
{
    *out_module = NULL;
    char format[32], *bytes;
    size_t size_bytes;
    CT_TRY(ct_executable_optimized(executable, format, &bytes, &size_bytes));
    ct_status *status = NULL;
    if (strcmp(format, "hlo_with_config"))
        status =
            ct_error(CT_CODE_UNIMPLEMENTED,
                     "the plugin gives optimized programs as \"%s\"; only \"hlo_with_config\" can be read", format);
    else
        status = ct__hlo_read(arena, bytes, size_bytes, out_module);
    free(bytes);
    return status;
}

static void print_instruction(const ct_hlo_instruction *instruction, bool is_root, ct_str *out)
{
    ct_str_printf(out, "  %s%s = %s %s(", is_root ? "ROOT " : "", instruction->name, instruction->shape,
                  instruction->opcode);
    for (size_t i = 0; i < instruction->num_operands; i++)
        ct_str_printf(out, "%s%s", i ? ", " : "", instruction->operands[i]->name);
    ct_str_append_char(out, ')');
    if (instruction->details[0]) ct_str_printf(out, ", %s", instruction->details);
    if (instruction->is_integer) ct_str_printf(out, ", value=%lld", (long long)instruction->integer);
    for (size_t g = 0; g < instruction->num_groups; g++) {
        ct_str_append(out, g ? ",{" : ", groups={{");
        append_list(out, instruction->groups + g * instruction->group_size, instruction->group_size);
        ct_str_append(out, g + 1 < instruction->num_groups ? "}" : "}}");
    }
    for (size_t i = 0; i < instruction->num_calls; i++)
        ct_str_printf(out, "%s%s", i ? "," : ", calls=", instruction->calls[i]->name);
    if (instruction->op_name[0]) ct_str_printf(out, ", op_name=\"%s\"", instruction->op_name);
    if (instruction->backend_config[0]) ct_str_printf(out, ", backend_config=%s", instruction->backend_config);
    ct_str_append_char(out, '\n');
}

void ct_hlo_print(const ct_hlo_module *module, ct_str *out)
{
    ct_str_printf(out, "HloModule %s\n", module->name);
    for (size_t i = 0; i < module->num_computations; i++) {
        const ct_hlo_computation *computation = &module->computations[i];
        ct_str_printf(out, "\n%s%s {\n", computation == module->entry ? "ENTRY " : "", computation->name);
        for (size_t j = 0; j < computation->num_instructions; j++)
            print_instruction(&computation->instructions[j], &computation->instructions[j] == computation->root, out);
        ct_str_append(out, "}\n");
    }
}

int64_t ct_hlo_shape_bytes(const char *shape, char out_type[16])
{
    static const int64_t max_bytes = (int64_t)1 << 42; /* nothing on a device is larger, and sums cannot overflow */
    int64_t total = 0;
    out_type[0] = 0;
    for (const char *p = shape; *p;) {
        size_t length = strspn(p, "abcdefghijklmnopqrstuvwxyz0123456789");
        if (!length || p[length] != '[') {
            p += length ? length : 1;
            continue;
        }
        /* The width is the number after the type's letters: f32, bf16, f8e4m3fn, s4; pred has none. */
        const char *digits = p + strcspn(p, "0123456789[");
        int64_t bits = *digits == '[' ? 8 : strtoll(digits, NULL, 10), bytes = CT_MAX(bits / 8, 1);
        if (bits > 128) bytes = 1;
        if (!out_type[0] && length < 16) {
            memcpy(out_type, p, length);
            out_type[length] = 0;
        }
        for (p += length; *p == '[' || *p == ',';) {
            char *end;
            int64_t size = strtoll(p + 1, &end, 10);
            if (end != p + 1 && (size < 0 || !ct_checked_mul(bytes, size, &bytes) || bytes > max_bytes))
                bytes = max_bytes;
            p = end;
        }
        total = CT_MIN(total + bytes, max_bytes);
        if (*p == ']') p++;
        if (*p == '{') p += strcspn(p, "}"); /* a layout holds no types, but may hold numbers */
    }
    return total;
}

size_t ct_hlo_count(const ct_hlo_module *module, const char *opcode)
{
    size_t count = 0;
    for (size_t i = 0; i < module->num_computations; i++)
        for (size_t j = 0; j < module->computations[i].num_instructions; j++)
            count += !strcmp(module->computations[i].instructions[j].opcode, opcode);
    return count;
}
