/* The parser: MLIR's generic form, as far as kernels need it.
 *
 *   op      ["%" id "="] '"' name '"' "(" ids ")" ["({" ops "}" {", {" ops "}"} ")"] ["{" attributes "}"] ":" types
 *   types   "(" types ")" "->" type | "(" types ")"
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "module.h"

enum { MAX_IDS = 1 << 16, MAX_OPERANDS = 80 };

typedef struct parser {
    mosaic_module *module;
    const char *at, *end;
    int line;
    mosaic_value **values; /* by id; NULL: not in scope */
    int num_values;
    int *scope; /* ids in scope, in order */
    int num_scope;
} parser;

#define EXPECT(condition, ...)                                                                                         \
    do {                                                                                                               \
        if (!(condition)) return ct_error(CT_CODE_INVALID_ARGUMENT, __VA_ARGS__);                                      \
    } while (0)

static void skip_space(parser *p)
{
    for (; p->at < p->end && isspace((unsigned char)*p->at); p->at++) p->line += *p->at == '\n';
}

static bool accept(parser *p, const char *word)
{
    skip_space(p);
    size_t length = strlen(word);
    if ((size_t)(p->end - p->at) < length || strncmp(p->at, word, length) != 0) return false;
    p->at += length;
    return true;
}

static ct_status *expect(parser *p, const char *word)
{
    EXPECT(accept(p, word), "line %d: wanted %s, found \"%.20s\"", p->line, word, p->at);
    return NULL;
}

static ct_status *parse_id(parser *p, int *out_id)
{
    CT_TRY(expect(p, "%"));
    char *end;
    long id = strtol(p->at, &end, 10);
    EXPECT(end > p->at && id >= 0 && id < MAX_IDS, "line %d: no number of a value", p->line);
    p->at = end;
    *out_id = (int)id;
    return NULL;
}

/* ---- types ---- */

static ct_status *parse_element(parser *p, mosaic_element *out_element)
{
    static const struct {
        const char *name;
        mosaic_element element;
    } rows[] = {{"i1", ELEMENT_I1},
                {"index", ELEMENT_INDEX},
                {"i32", ELEMENT_I32},
                {"bf16", ELEMENT_BF16},
                {"f32", ELEMENT_F32}};
    for (size_t i = 0; i < CT_COUNT(rows); i++) {
        if (!accept(p, rows[i].name)) continue;
        *out_element = rows[i].element;
        return NULL;
    }
    return ct_error(CT_CODE_INVALID_ARGUMENT, "line %d: an element type that kernels have not: %.12s", p->line, p->at);
}

static ct_status *parse_type(parser *p, mosaic_type *out_type)
{
    *out_type = (mosaic_type){0};
    bool is_vector = accept(p, "vector<"), is_memory = !is_vector && accept(p, "memref<");
    if (!is_vector && !is_memory) return parse_element(p, &out_type->element);
    out_type->kind = KIND_VECTOR;
    while (p->at < p->end && isdigit((unsigned char)*p->at)) {
        char *end;
        int64_t size = strtoll(p->at, &end, 10);
        EXPECT(size > 0 && out_type->rank < MAX_RANK && *end == 'x', "line %d: a bad shape", p->line);
        out_type->sizes[out_type->rank++] = size;
        p->at = end + 1;
    }
    EXPECT(out_type->rank > 0, "line %d: a shape without dims", p->line);
    CT_TRY(parse_element(p, &out_type->element));
    if (is_memory) {
        CT_TRY(expect(p, ", #tpu.memory_space<"));
        out_type->kind = accept(p, "vmem>") ? KIND_VMEM : KIND_SMEM;
        if (out_type->kind == KIND_SMEM) CT_TRY(expect(p, "smem>"));
    }
    return expect(p, ">");
}

int64_t mosaic_count(const mosaic_type *type)
{
    int64_t count = 1;
    for (int i = 0; i < type->rank; i++) count *= type->sizes[i];
    return count;
}

bool mosaic_is_float(mosaic_element element)
{
    return element == ELEMENT_BF16 || element == ELEMENT_F32;
}

bool mosaic_same_type(const mosaic_type *a, const mosaic_type *b)
{
    bool same = a->kind == b->kind && a->element == b->element && a->rank == b->rank;
    for (int i = 0; same && i < a->rank; i++) same = a->sizes[i] == b->sizes[i];
    return same;
}

/* ---- values ---- */

static ct_status *define(parser *p, int id, const mosaic_type *type, mosaic_value **out_value)
{
    EXPECT(!p->values[id], "line %d: %%%d is made twice", p->line, id);
    mosaic_value *value = CT_ARENA_NEW(p->module->arena, mosaic_value);
    value->type = *type;
    value->count = mosaic_count(type);
    if (mosaic_is_float(type->element))
        value->floats = CT_ARENA_ARRAY(p->module->arena, float, value->count);
    else
        value->integers = CT_ARENA_ARRAY(p->module->arena, int32_t, value->count);
    if (type->kind >= KIND_VMEM) value->written = CT_ARENA_ARRAY(p->module->arena, bool, value->count);
    p->values[id] = *out_value = value;
    p->scope[p->num_scope++] = id;
    return NULL;
}

static void leave_scope(parser *p, int num_scope)
{
    while (p->num_scope > num_scope) p->values[p->scope[--p->num_scope]] = NULL;
}

/* ---- attributes ---- */

/* {a = text, b = text}; a text goes to the comma or brace that is not within brackets. */
static ct_status *parse_attributes(parser *p, mosaic_attribute *attributes, int *out_count)
{
    *out_count = 0;
    if (!accept(p, "{")) return NULL;
    do {
        skip_space(p);
        const char *name = p->at;
        while (p->at < p->end && (isalnum((unsigned char)*p->at) || *p->at == '_' || *p->at == '.')) p->at++;
        EXPECT(p->at > name && *out_count < MAX_ATTRIBUTES, "line %d: bad attributes", p->line);
        mosaic_attribute *attribute = &attributes[(*out_count)++];
        attribute->name = ct_arena_strndup(p->module->arena, name, (size_t)(p->at - name));
        CT_TRY(expect(p, "="));
        skip_space(p);
        const char *text = p->at;
        for (int depth = 0; p->at < p->end; p->at++) {
            char c = *p->at;
            if (!depth && (c == ',' || c == '}')) break;
            depth += (c == '<' || c == '[' || c == '(' || c == '{');
            depth -= ((c == '>' && p->at[-1] != '-') || c == ']' || c == ')' || c == '}');
        }
        attribute->text = ct_arena_strndup(p->module->arena, text, (size_t)(p->at - text));
    } while (accept(p, ","));
    return expect(p, "}");
}

const char *mosaic_attribute_find(const mosaic_attribute *attributes, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(attributes[i].name, name)) return attributes[i].text;
    return NULL;
}

int mosaic_attribute_numbers(const char *text, int64_t *out_numbers, int max)
{
    int count = 0;
    if (!strncmp(text, "array<i", 7)) text = strpbrk(text, ":>");
    for (; *text; text++) {
        if (*text == ':' && text[1] == ' ' && text[2] == 'i') break; /* the type */
        if (!isdigit((unsigned char)*text) && !(*text == '-' && isdigit((unsigned char)text[1]))) continue;
        char *end;
        int64_t number = strtoll(text, &end, 10);
        if (count < max) out_numbers[count] = number;
        count++;
        text = end - 1;
    }
    return CT_MIN(count, max);
}

/* ---- ops ---- */

static ct_status *parse_ops(parser *p, mosaic_op **out_first, mosaic_op **out_last);

static ct_status *parse_operands(parser *p, mosaic_op *op)
{
    mosaic_value *operands[MAX_OPERANDS];
    CT_TRY(expect(p, "("));
    if (!accept(p, ")")) {
        do {
            int id;
            CT_TRY(parse_id(p, &id));
            EXPECT(p->values[id], "line %d: %%%d is not in scope", p->line, id);
            EXPECT(op->num_operands < MAX_OPERANDS, "line %d: too many operands", p->line);
            operands[op->num_operands++] = p->values[id];
        } while (accept(p, ","));
        CT_TRY(expect(p, ")"));
    }
    op->operands = ct_arena_dup(p->module->arena, operands, (size_t)op->num_operands * sizeof(*operands));
    return NULL;
}

/* The types of operands must be those they have; out_type: of the result, when has_result. */
static ct_status *parse_signature(parser *p, const mosaic_op *op, bool has_result, mosaic_type *out_type)
{
    CT_TRY(expect(p, ":"));
    CT_TRY(expect(p, "("));
    for (int i = 0; i < op->num_operands; i++) {
        mosaic_type type;
        if (i) CT_TRY(expect(p, ","));
        CT_TRY(parse_type(p, &type));
        EXPECT(mosaic_same_type(&type, &op->operands[i]->type), "line %d: operand %d of %s is of another type", p->line,
               i, op->name);
    }
    CT_TRY(expect(p, ")"));
    CT_TRY(expect(p, "->"));
    return has_result ? parse_type(p, out_type) : expect(p, "()");
}

/* ({ then }, { else }): the second holds a yield alone. */
static ct_status *parse_branches(parser *p, mosaic_op *op)
{
    int num_scope = p->num_scope;
    mosaic_op *last, *otherwise;
    CT_TRY(expect(p, "({"));
    CT_TRY(parse_ops(p, &op->body, &last));
    EXPECT(last && !strcmp(last->name, "scf.yield"), "line %d: a branch without yield", p->line);
    leave_scope(p, num_scope);
    CT_TRY(expect(p, "}"));
    CT_TRY(expect(p, ","));
    CT_TRY(expect(p, "{"));
    CT_TRY(parse_ops(p, &otherwise, &last));
    EXPECT(last && last == otherwise && !strcmp(last->name, "scf.yield"), "line %d: an else branch", p->line);
    return expect(p, "})");
}

static ct_status *parse_op(parser *p, mosaic_op **out_op)
{
    mosaic_op *op = *out_op = CT_ARENA_NEW(p->module->arena, mosaic_op);
    int id = -1;
    if (p->at[0] == '%') {
        CT_TRY(parse_id(p, &id));
        CT_TRY(expect(p, "="));
    }
    CT_TRY(expect(p, "\"stable_mosaic."));
    op->line = p->line;
    const char *name = p->at;
    while (p->at < p->end && *p->at != '"') p->at++;
    op->name = ct_arena_strndup(p->module->arena, name, (size_t)(p->at - name));
    CT_TRY(expect(p, "\""));
    CT_TRY(parse_operands(p, op));
    bool is_if = !strcmp(op->name, "scf.if");
    if (is_if) CT_TRY(parse_branches(p, op));
    CT_TRY(parse_attributes(p, op->attributes, &op->num_attributes));
    mosaic_type type;
    CT_TRY(parse_signature(p, op, id >= 0, &type));
    if (id >= 0) CT_TRY(define(p, id, &type, &op->result));
    CT_TRY_NOTE(mosaic_check(op), "line %d, %s", op->line, op->name);
    return NULL;
}

static ct_status *parse_ops(parser *p, mosaic_op **out_first, mosaic_op **out_last)
{
    *out_first = *out_last = NULL;
    for (skip_space(p); p->at < p->end && (*p->at == '%' || *p->at == '"'); skip_space(p)) {
        mosaic_op *op;
        CT_TRY(parse_op(p, &op));
        if (*out_last)
            (*out_last)->next = op;
        else
            *out_first = op;
        *out_last = op;
    }
    return NULL;
}

/* ---- functions ---- */

static ct_status *parse_function(parser *p, mosaic_function *function)
{
    CT_TRY(expect(p, "() ({"));
    CT_TRY(expect(p, "^bb0("));
    mosaic_value *args[MAX_OPERANDS];
    do {
        int id;
        mosaic_type type;
        CT_TRY(parse_id(p, &id));
        CT_TRY(expect(p, ":"));
        CT_TRY(parse_type(p, &type));
        EXPECT(function->num_args < MAX_OPERANDS, "line %d: too many arguments", p->line);
        CT_TRY(define(p, id, &type, &args[function->num_args++]));
    } while (accept(p, ","));
    CT_TRY(expect(p, "):"));
    function->args = ct_arena_dup(p->module->arena, args, (size_t)function->num_args * sizeof(*args));
    mosaic_op *last;
    CT_TRY(parse_ops(p, &function->body, &last));
    EXPECT(last && !strcmp(last->name, "func.return"), "line %d: a function without return", p->line);
    function->results = last->operands;
    function->num_results = last->num_operands;
    CT_TRY(expect(p, "})"));
    CT_TRY(parse_attributes(p, function->attributes, &function->num_attributes));
    CT_TRY(expect(p, ": () -> ()"));
    leave_scope(p, 0);
    const char *name = mosaic_attribute_find(function->attributes, function->num_attributes, "sym_name");
    EXPECT(name && name[0] == '"', "line %d: a function without a name", p->line);
    function->name = ct_arena_strndup(p->module->arena, name + 1, strlen(name) - 2);
    return NULL;
}

static ct_status *find_transform(mosaic_module *module, const char *window, mosaic_window *out_window)
{
    const char *at = strstr(window, "transform_indices = @");
    EXPECT(at, "a window without a transform");
    at += strlen("transform_indices = @");
    size_t length = strcspn(at, ",}");
    for (const mosaic_function *f = module->functions->next; f; f = f->next)
        if (strlen(f->name) == length && !strncmp(f->name, at, length)) out_window->transform = f;
    EXPECT(out_window->transform, "no transform %.*s", (int)length, at);
    return NULL;
}

static ct_status *read_windows(mosaic_module *module, const char *text)
{
    const mosaic_function *kernel = module->functions;
    for (text = strchr(text, '{'); text; text = strchr(text + 1, '{')) {
        EXPECT(module->num_windows < MAX_WINDOWS, "too many windows");
        int index = module->num_grid + module->num_prefetched + module->num_windows;
        mosaic_window *window = &module->windows[module->num_windows++];
        const char *bounds = strstr(text, "window_bounds = ");
        EXPECT(bounds && index < kernel->num_args, "windows that are no arguments");
        char *only = ct_arena_strndup(module->arena, bounds + strlen("window_bounds = "),
                                      strcspn(bounds, "}") - strlen("window_bounds = "));
        const mosaic_type *type = &kernel->args[index]->type;
        int rank = mosaic_attribute_numbers(only, window->sizes, MAX_RANK);
        EXPECT(type->kind == KIND_VMEM && rank == type->rank, "window %d has %d dims", module->num_windows - 1, rank);
        for (int i = 0; i < rank; i++)
            EXPECT(window->sizes[i] == type->sizes[i], "window %d is of another size", module->num_windows - 1);
        CT_TRY(find_transform(module, text, window));
        EXPECT(window->transform->num_results == rank &&
                   window->transform->num_args == module->num_grid + module->num_prefetched,
               "the transform %s has wrong arguments or results", window->transform->name);
        for (int i = 0; i < window->transform->num_args; i++)
            EXPECT(mosaic_same_type(&window->transform->args[i]->type, &kernel->args[i]->type),
                   "the transform %s takes other types", window->transform->name);
    }
    return NULL;
}

static ct_status *read_kernel(mosaic_module *module)
{
    const mosaic_function *kernel = module->functions;
    EXPECT(kernel, "no kernel");
    static const char *const names[] = {"iteration_bounds", "dimension_semantics", "scalar_prefetch",
                                        "scratch_operands", "window_params",       "tpu.core_type"};
    const char *text[6];
    for (int i = 0; i < 6; i++) {
        text[i] = mosaic_attribute_find(kernel->attributes, kernel->num_attributes, names[i]);
        EXPECT(text[i], "the kernel lacks %s", names[i]);
    }
    module->num_grid = mosaic_attribute_numbers(text[0], module->bounds, MAX_GRID);
    const char *semantics = text[1];
    for (int i = 0; i < module->num_grid; i++) {
        semantics = strchr(semantics + 1, '#');
        EXPECT(semantics, "fewer semantics than bounds");
        module->parallel[i] = !strncmp(semantics, "#tpu.dimension_semantics<parallel>", 34);
        const mosaic_type index = {.element = ELEMENT_I32};
        EXPECT(i < kernel->num_args && mosaic_same_type(&kernel->args[i]->type, &index), "index %d is no i32", i);
    }
    int64_t number = 0;
    mosaic_attribute_numbers(text[2], &number, 1);
    module->num_prefetched = (int)number;
    number = 0;
    mosaic_attribute_numbers(text[3], &number, 1);
    module->num_scratch = (int)number;
    CT_TRY(read_windows(module, text[4]));
    EXPECT(kernel->num_args == module->num_grid + module->num_prefetched + module->num_windows + module->num_scratch,
           "%d arguments for %d indices, %d tables, %d windows, %d scratch", kernel->num_args, module->num_grid,
           module->num_prefetched, module->num_windows, module->num_scratch);
    return NULL;
}

static ct_status *parse_module(parser *p)
{
    CT_TRY(expect(p, "\"builtin.module\"() ({"));
    mosaic_function **next = &p->module->functions;
    while (accept(p, "\"stable_mosaic.func.func\"")) {
        mosaic_function *function = *next = CT_ARENA_NEW(p->module->arena, mosaic_function);
        CT_TRY(parse_function(p, function));
        next = &function->next;
    }
    CT_TRY(expect(p, "}) {stable_mosaic.version = 15 : i64} : () -> ()"));
    skip_space(p);
    EXPECT(p->at == p->end, "line %d: text after the module", p->line);
    return read_kernel(p->module);
}

ct_status *mosaic_parse(ct_arena *arena, const char *text, size_t length, mosaic_module **out_module)
{
    mosaic_module *module = *out_module = CT_ARENA_NEW(arena, mosaic_module);
    module->arena = arena;
    parser p = {.module = module, .at = ct_arena_strndup(arena, text, length), .line = 1};
    p.end = p.at + length;
    p.values = CT_ARENA_ARRAY(arena, mosaic_value *, MAX_IDS);
    p.scope = CT_ARENA_ARRAY(arena, int, MAX_IDS);
    return parse_module(&p);
}
