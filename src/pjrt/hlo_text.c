/* A recursive-descent reader of HLO text. One pass makes computations and instructions, with operands by name within
 * their computation; names of called computations are kept and resolved at the end. */
#include "pjrt/hlo_text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/map.h"
#include "pjrt/internal_hlo.h"

/* A call that is not resolved yet. */
typedef struct {
    ct_hlo_instruction *from;
    const char *callee;
    size_t line;
} call_record;

typedef struct {
    ct_arena *arena;
    const char *path, *text, *at, *end;
    ct_hlo_module *module;
    size_t capacity;
    ct_map computations;
    call_record *calls;
    size_t num_calls, call_capacity;
    ct_str scratch;
} parser;

/* ---- places and errors ---- */

static size_t line_of(const parser *p)
{
    size_t line = 1;
    for (const char *c = p->text; c < p->at; c++) line += *c == '\n';
    return line;
}

static ct_status *wrong(const parser *p, const char *wanted)
{
    int length = 0;
    while (p->at + length < p->end && length < 24 && p->at[length] != '\n') length++;
    return ct_error(CT_CODE_INVALID_ARGUMENT, "%s:%zu: HLO text: wanted %s, found \"%.*s\"", p->path, line_of(p),
                    wanted, length, p->at);
}

static bool at_text(const parser *p, const char *text)
{
    size_t length = strlen(text);
    return (size_t)(p->end - p->at) >= length && !memcmp(p->at, text, length);
}

static bool take(parser *p, const char *text)
{
    if (!at_text(p, text)) return false;
    p->at += strlen(text);
    return true;
}

static void skip_comment(parser *p)
{
    while (at_text(p, "/*")) {
        while (p->at < p->end && !at_text(p, "*/")) p->at++;
        take(p, "*/");
    }
}

static void skip_space(parser *p)
{
    do {
        while (p->at < p->end && isspace((unsigned char)*p->at)) p->at++;
        skip_comment(p);
    } while (p->at < p->end && isspace((unsigned char)*p->at));
}

static void skip_line(parser *p)
{
    while (p->at < p->end && *p->at != '\n') p->at++;
}

/* Beyond a string's closing quote. */
static void skip_string(parser *p)
{
    for (p->at++; p->at < p->end && *p->at != '"'; p->at++)
        if (*p->at == '\\' && p->at + 1 < p->end) p->at++;
    if (p->at < p->end) p->at++;
}

/* strchr alone would find a zero byte, too. */
static bool is_one_of(char c, const char *set)
{
    return c && strchr(set, c);
}

/* Beyond what stands in brackets, or one character. */
static void skip_nested(parser *p)
{
    size_t depth = 0;
    do {
        if (*p->at == '"') {
            skip_string(p);
            continue;
        }
        if (is_one_of(*p->at, "([{")) depth++;
        if (is_one_of(*p->at, ")]}") && depth) depth--;
        p->at++;
    } while (p->at < p->end && depth);
}

static bool is_name_char(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.' || c == '-' || c == '/' || c == '~' || c == '$';
}

/* A name without its percent sign, in arena; NULL: none. */
static const char *take_name(parser *p)
{
    take(p, "%");
    const char *start = p->at;
    while (p->at < p->end && is_name_char(*p->at)) p->at++;
    return p->at == start ? NULL : ct_arena_strndup(p->arena, start, (size_t)(p->at - start));
}

static const char *unescaped(parser *p, const char *start, const char *end)
{
    ct_str_reset(&p->scratch);
    for (const char *c = start; c < end; c++) {
        if (*c == '\\' && c + 1 < end) {
            c++;
            ct_str_append_char(&p->scratch, *c == 'n' ? '\n' : *c == 't' ? '\t' : *c);
        } else {
            ct_str_append_char(&p->scratch, *c);
        }
    }
    return ct_arena_strndup(p->arena, p->scratch.data, p->scratch.length);
}

/* ---- shapes: without comments and tiles, of a layout its order and memory space ---- */

static void append_layout(parser *p, const char *start, const char *end)
{
    const char *colon = memchr(start, ':', (size_t)(end - start)), *order_end = colon ? colon : end, *space = NULL;
    for (const char *c = order_end; c + 2 < end && !space; c++)
        if (c[0] == 'S' && c[1] == '(') space = c;
    const char *close = space ? memchr(space, ')', (size_t)(end - space)) : NULL;
    if (order_end == start && !close) return;
    ct_str_append_char(&p->scratch, '{');
    ct_str_append_n(&p->scratch, start, (size_t)(order_end - start));
    if (close) {
        ct_str_append_char(&p->scratch, ':');
        ct_str_append_n(&p->scratch, space, (size_t)(close + 1 - space));
    }
    ct_str_append_char(&p->scratch, '}');
}

static ct_status *parse_shape(parser *p, const char **out_shape)
{
    size_t depth = 0;
    ct_str_reset(&p->scratch);
    while (p->at < p->end) {
        skip_comment(p);
        if (p->at >= p->end || *p->at == '\n') break;
        char c = *p->at;
        if (c == ' ' && !depth) break;
        if (c == '{') {
            const char *start = p->at + 1;
            skip_nested(p);
            if (p->at[-1] != '}' || p->at == start) return wrong(p, "the end of a layout");
            append_layout(p, start, p->at - 1);
            continue;
        }
        if (c == '(') depth++;
        if (c == ')') {
            if (!depth) break;
            depth--;
        }
        if (c == '"') return wrong(p, "a shape");
        if (take(p, "<=")) continue; /* the bound of a dynamic size */
        ct_str_append_char(&p->scratch, c);
        p->at++;
    }
    if (!p->scratch.length || depth) return wrong(p, "a shape");
    *out_shape = ct_arena_strndup(p->arena, p->scratch.data, p->scratch.length);
    return NULL;
}

/* ---- operands ---- */

typedef struct {
    ct_hlo_computation *computation;
    size_t capacity;
    ct_hlo_instruction *to; /* that is being read, not in the computation yet */
    ct_map names;           /* of the computation's instructions so far */
} scope;

/* The shape of a tuple's part. NULL: it has not so many. */
static const char *part_of(ct_arena *arena, const char *shape, int64_t index)
{
    size_t depth = 0;
    const char *start = shape + 1;
    if (*shape != '(') return NULL;
    for (const char *c = start; *c; c++) {
        bool is_end = (*c == ',' || *c == ')') && !depth;
        if (is_end && !index--) return ct_arena_strndup(arena, start, (size_t)(c - start));
        if (is_one_of(*c, "([{")) depth++;
        if (is_one_of(*c, ")]}") && depth) depth--;
        if (is_end) start = c + 1 + (c[1] == ' ');
    }
    return NULL;
}

/* "tuple#2" is short for a get-tuple-element of its own, which is put in. NULL: there is no such part. */
static const ct_hlo_instruction *add_part(parser *p, scope *s, const ct_hlo_instruction *tuple, int64_t index)
{
    const char *shape = part_of(p->arena, tuple->shape, index);
    if (!shape || s->computation->num_instructions >= s->capacity) return NULL;
    ct_hlo_instruction *part = &s->computation->instructions[s->computation->num_instructions++];
    *part = (ct_hlo_instruction){.name = ct_arena_printf(p->arena, "%s#%lld", tuple->name, (long long)index),
                                 .opcode = "get-tuple-element",
                                 .shape = shape,
                                 .details = ct_arena_printf(p->arena, "index=%lld", (long long)index),
                                 .op_name = "",
                                 .backend_config = "",
                                 .direction = "",
                                 .num_operands = 1,
                                 .index = index};
    part->operands = CT_ARENA_ARRAY(p->arena, const ct_hlo_instruction *, 1);
    part->operands[0] = tuple;
    return part;
}

static ct_status *parse_operands(parser *p, scope *s, const char *close)
{
    size_t capacity = 0;
    while (p->at < close) {
        const char *start = p->at;
        while (p->at < close && *p->at != ',') {
            if (at_text(p, "/*")) {
                skip_comment(p);
                start = p->at;
            } else {
                skip_nested(p);
            }
        }
        const char *last = CT_MIN(p->at, close);
        p->at = last;
        while (last > start && isspace((unsigned char)last[-1])) last--;
        const char *hash = last;
        while (hash > start && isdigit((unsigned char)hash[-1])) hash--;
        hash = hash > start && hash < last && hash[-1] == '#' ? hash - 1 : NULL;
        int64_t part = hash ? strtoll(hash + 1, NULL, 10) : 0;
        if (hash) last = hash;
        const char *name = last; /* behind its shape, if that is written */
        while (name > start && is_name_char(name[-1])) name--;
        if (name == last) {
            if (last == start && p->at == close && !s->to->num_operands) break;
            return wrong(p, "an operand");
        }
        const char *text = ct_arena_strndup(p->arena, name, (size_t)(last - name));
        const ct_hlo_instruction *operand = ct_map_get(&s->names, text);
        if (!operand)
            return ct_error(CT_CODE_INVALID_ARGUMENT, "%s:%zu: HLO text: %s uses %s, which does not stand above it",
                            p->path, line_of(p), s->to->name, text);
        if (hash && !(operand = add_part(p, s, operand, part)))
            return ct_error(CT_CODE_INVALID_ARGUMENT, "%s:%zu: HLO text: %s uses a part %lld of %s, which has none",
                            p->path, line_of(p), s->to->name, (long long)part, text);
        s->to->operands = ct__hlo_grow(p->arena, s->to->operands, s->to->num_operands, &capacity, sizeof(void *));
        s->to->operands[s->to->num_operands++] = operand;
        if (p->at < close) p->at++;
    }
    return NULL;
}

static void parse_constant(scope *s, const char *start, const char *close)
{
    char *end, text[32];
    size_t length = (size_t)(close - start);
    const char *shape = s->to->shape;
    if ((shape[0] != 's' && shape[0] != 'u') || length >= sizeof(text)) return;
    memcpy(text, start, length);
    text[length] = 0;
    const char *digits = text + strspn(text, "{ ");
    int64_t value = strtoll(digits, &end, 10);
    if (end == digits || end[strspn(end, "} ")]) return; /* an array, or nothing */
    s->to->is_integer = true;
    s->to->integer = value;
}

/* ---- attributes ---- */

static void append_detail(parser *p, ct_hlo_instruction *to, const char *text)
{
    to->details = to->details[0] ? ct_arena_printf(p->arena, "%s, %s", to->details, text) : text;
}

static void add_call(parser *p, ct_hlo_instruction *from, const char *name)
{
    p->calls = ct__hlo_grow(p->arena, p->calls, p->num_calls, &p->call_capacity, sizeof(*p->calls));
    p->calls[p->num_calls++] = (call_record){.from = from, .callee = name, .line = line_of(p)};
    from->num_calls++;
}

/* "%a" or "{%a, %b}" */
static void parse_calls(parser *p, ct_hlo_instruction *to, const char *end)
{
    while (p->at < end) {
        const char *name = is_one_of(*p->at, "{},% ") ? NULL : take_name(p);
        if (name)
            add_call(p, to, name);
        else
            p->at++;
    }
}

static size_t parse_numbers(const char *at, const char *end, int64_t *out, size_t most)
{
    size_t count = 0;
    while (at < end && count < most) {
        if (!isdigit((unsigned char)*at)) {
            at++;
            continue;
        }
        char *next;
        out[count++] = strtoll(at, &next, 10);
        at = next;
    }
    return count;
}

/* "{{0,1},{2,3}}": as many groups as there are inner braces, all of one size. */
static ct_status *parse_lists(parser *p, const char *start, const char *end, ct_hlo_instruction *to)
{
    size_t num_groups = 0, num_commas = 0;
    for (const char *c = start + 1; c < end; c++) {
        num_groups += *c == '{';
        num_commas += *c == ',';
    }
    int64_t *numbers = CT_ARENA_ARRAY(p->arena, int64_t, num_commas + 1);
    size_t count = parse_numbers(start, end, numbers, num_commas + 1);
    if (!count) return NULL;
    if (!num_groups) num_groups = 1;
    if (count % num_groups) {
        p->at = start;
        return wrong(p, "groups of equal sizes");
    }
    to->groups = numbers;
    to->num_groups = num_groups;
    to->group_size = count / num_groups;
    return NULL;
}

/* "[2,4]<=[8]" or "[2,4]<=[4,2]T(1,0)" */
static ct_status *parse_iota(parser *p, const char *start, const char *end, ct_hlo_instruction *to)
{
    enum { MOST = 16 };
    const char *arrow = memmem(start, (size_t)(end - start), "<=", 2);
    const char *transpose = arrow ? memchr(arrow, 'T', (size_t)(end - arrow)) : NULL;
    int64_t sizes[2], dims[MOST], order[MOST];
    size_t num_dims = arrow ? parse_numbers(arrow, transpose ? transpose : end, dims, MOST) : 0;
    size_t num_order = transpose ? parse_numbers(transpose, end, order, MOST) : 0;
    if (num_dims && parse_numbers(start, arrow, sizes, 2) == 2)
        return ct__hlo_iota_groups(p->arena, sizes[0], sizes[1], dims, num_dims, order, num_order, to);
    p->at = start;
    return wrong(p, "groups as [groups,size]<=[sizes]T(order)");
}

static ct_status *parse_groups(parser *p, const char *start, const char *end, ct_hlo_instruction *to)
{
    if (*start == '{') return parse_lists(p, start, end, to);
    if (*start == '[') return parse_iota(p, start, end, to);
    return ct__hlo_mesh_axes_text(p->arena, start, (size_t)(end - start), to);
}

static void parse_metadata(parser *p, const char *start, const char *end, ct_hlo_instruction *to)
{
    static const char key[] = "op_name=\"";
    const char *at = memmem(start, (size_t)(end - start), key, sizeof(key) - 1);
    if (!at) return;
    at += sizeof(key) - 1;
    const char *close = at;
    while (close < end && *close != '"') close += *close == '\\' ? 2 : 1;
    to->op_name = unescaped(p, at, CT_MIN(close, end));
}

static ct_status *set_attribute(parser *p, ct_hlo_instruction *to, const char *key, const char *start, const char *end)
{
    static const char *const calling[] = {"calls",
                                          "to_apply",
                                          "body",
                                          "branch_computations",
                                          "called_computations",
                                          "true_computation",
                                          "false_computation"};
    static const char *const listed[] = {"dimensions",     "lhs_batch_dims",       "lhs_contracting_dims",
                                         "rhs_batch_dims", "rhs_contracting_dims", "kind"};
    bool is_quoted = *start == '"' && end - start >= 2;
    for (size_t i = 0; i < CT_COUNT(calling); i++)
        if (!strcmp(key, calling[i])) {
            p->at = start;
            parse_calls(p, to, end);
        }
    p->at = end;
    if (!strcmp(key, "metadata")) parse_metadata(p, start, end, to);
    if (!strcmp(key, "backend_config"))
        to->backend_config =
            is_quoted ? unescaped(p, start + 1, end - 1) : ct_arena_strndup(p->arena, start, (size_t)(end - start));
    if (!strcmp(key, "replica_groups") || !strcmp(key, "source_target_pairs"))
        CT_TRY_NOTE(parse_groups(p, start, end, to), "reading the devices of %s", to->name);
    if (!strcmp(key, "index")) to->index = strtoll(start, NULL, 10);
    if (!strcmp(key, "direction")) to->direction = ct_arena_strndup(p->arena, start, (size_t)(end - start));
    int length = (int)(end - start);
    if (!strcmp(key, "custom_call_target"))
        append_detail(p, to,
                      ct_arena_printf(p->arena, "target=%s",
                                      is_quoted ? unescaped(p, start + 1, end - 1)
                                                : ct_arena_strndup(p->arena, start, (size_t)length)));
    if (!strcmp(key, "index") || !strcmp(key, "direction"))
        append_detail(p, to, ct_arena_printf(p->arena, "%s=%.*s", key, length, start));
    for (size_t i = 0; i < CT_COUNT(listed); i++)
        if (!strcmp(key, listed[i])) append_detail(p, to, ct_arena_printf(p->arena, "%s=%.*s", key, length, start));
    return NULL;
}

/* ", key=value" as often as it comes; a value ends at a comma or a line's end outside of brackets and quotes. */
static ct_status *parse_attributes(parser *p, ct_hlo_instruction *to)
{
    const char *condition = NULL;
    for (;;) {
        const char *before = p->at;
        skip_space(p);
        if (!take(p, ",")) {
            p->at = before;
            break;
        }
        skip_space(p);
        const char *key = take_name(p);
        if (!key || !take(p, "=")) return wrong(p, "an attribute, key=value");
        const char *start = p->at;
        while (p->at < p->end && *p->at != ',' && *p->at != '\n' && *p->at != '}') skip_nested(p);
        const char *end = p->at;
        if (end == start) return wrong(p, "an attribute's value");
        if (!strcmp(key, "condition")) {
            p->at = start;
            condition = take_name(p);
            p->at = end;
        }
        CT_TRY(set_attribute(p, to, key, start, end));
    }
    if (condition) add_call(p, to, condition); /* a loop's calls are its body, then its condition */
    return NULL;
}

/* ---- instructions and computations ---- */

static ct_status *parse_instruction(parser *p, scope *s, bool *out_is_root)
{
    ct_hlo_instruction *to = s->to;
    *out_is_root = take(p, "ROOT ");
    *to = (ct_hlo_instruction){.details = "", .op_name = "", .backend_config = "", .direction = ""};
    if (!(to->name = take_name(p)) || !take(p, " = ")) return wrong(p, "an instruction, name = shape opcode(...)");
    CT_TRY(parse_shape(p, &to->shape));
    skip_space(p);
    if (!(to->opcode = take_name(p)) || p->at >= p->end || *p->at != '(') return wrong(p, "an opcode and its operands");
    const char *open = p->at;
    skip_nested(p);
    if (p->at[-1] != ')') return wrong(p, "the end of the operands");
    const char *close = p->at - 1;
    if (!strcmp(to->opcode, "parameter")) {
        to->index = strtoll(open + 1, NULL, 10);
        append_detail(p, to, ct_arena_printf(p->arena, "parameter=%lld", (long long)to->index));
    } else if (!strcmp(to->opcode, "constant")) {
        parse_constant(s, open + 1, close);
    } else {
        p->at = open + 1;
        CT_TRY(parse_operands(p, s, close));
    }
    p->at = close + 1;
    return parse_attributes(p, to);
}

/* The instructions, and parts of tuples that may be put in, are counted first: pointers to them must stay. */
static size_t count_instructions(parser *p)
{
    const char *start = p->at;
    size_t count = 0;
    for (skip_space(p); p->at < p->end && *p->at != '}'; count++) {
        const char *first = p->at;
        while (p->at < p->end && *p->at != '\n') skip_nested(p);
        for (const char *c = first; c < p->at; c++) count += *c == '#';
        skip_space(p);
    }
    p->at = start;
    return count;
}

static ct_status *parse_computation(parser *p, bool is_entry)
{
    ct_hlo_module *module = p->module;
    const char *name = take_name(p);
    if (!name) return wrong(p, "a computation's name");
    while (p->at < p->end && !at_text(p, " {\n") && !at_text(p, " {\r")) { /* parameters -> shape */
        if (*p->at == '\n') return wrong(p, "a computation's opening brace");
        if (is_one_of(*p->at, "(["))
            skip_nested(p);
        else
            p->at++;
    }
    if (!take(p, " {")) return wrong(p, "a computation's opening brace");
    size_t count = count_instructions(p);
    ct_hlo_computation *to = CT_ARENA_NEW(p->arena, ct_hlo_computation);
    *to = (ct_hlo_computation){.name = name,
                               .instructions = CT_ARENA_ARRAY(p->arena, ct_hlo_instruction, CT_MAX(count, (size_t)1))};
    scope s = {.computation = to, .capacity = count};
    ct_map_init(&s.names);
    ct_status *status = NULL;
    for (skip_space(p); p->at < p->end && *p->at != '}'; skip_space(p)) {
        bool is_root;
        ct_hlo_instruction now;
        size_t first_call = p->num_calls;
        s.to = &now;
        CT_TRY_OUT(parse_instruction(p, &s, &is_root));
        if (to->num_instructions >= count) { /* lines that the count took for one */
            status = wrong(p, "the end of an instruction");
            goto out;
        }
        ct_hlo_instruction *place = &to->instructions[to->num_instructions++];
        *place = now;
        for (size_t i = first_call; i < p->num_calls; i++) p->calls[i].from = place;
        ct_map_set(&s.names, place->name, place);
        if (is_root) to->root = place;
    }
    if (!take(p, "}")) {
        status = wrong(p, "a computation's closing brace");
        goto out;
    }
    skip_line(p); /* ", execution_thread=..." */
    if (!to->num_instructions) {
        status = wrong(p, "an instruction");
        goto out;
    }
    if (!to->root) to->root = &to->instructions[to->num_instructions - 1];
    /* Kept by name until all are there: the array may move. */
    ct_map_set(&p->computations, name, to);
    module->num_computations++;
    if (is_entry) module->entry = to;
out:
    ct_map_deinit(&s.names);
    return status;
}

static ct_status *parse_header(parser *p)
{
    skip_space(p);
    if (!take(p, "HloModule ")) return wrong(p, "HloModule");
    if (!(p->module->name = take_name(p))) return wrong(p, "the module's name");
    const char *start = p->at;
    while (p->at < p->end && *p->at != '\n') skip_nested(p);
    p->module->is_scheduled = memmem(start, (size_t)(p->at - start), "is_scheduled=true", 17) != NULL;
    return NULL;
}

/* Beside computations the text may have tables of source places, whose lines are words or begin with numbers. */
static bool at_computation(const parser *p)
{
    if (at_text(p, "ENTRY ")) return true;
    if (isdigit((unsigned char)*p->at)) return false;
    const char *newline = memchr(p->at, '\n', (size_t)(p->end - p->at));
    const char *end = newline ? newline : p->end;
    while (end > p->at && isspace((unsigned char)end[-1])) end--;
    return end > p->at && end[-1] == '{';
}

static ct_status *resolve(parser *p)
{
    ct_hlo_module *module = p->module;
    if (!module->num_computations)
        return ct_error(CT_CODE_INVALID_ARGUMENT, "%s: HLO text without a computation", p->path);
    module->computations = CT_ARENA_ARRAY(p->arena, ct_hlo_computation, module->num_computations);
    module->num_computations = p->computations.num_entries; /* the last of one name counts */
    for (size_t i = 0; i < module->num_computations; i++) {
        ct_hlo_computation *from = p->computations.entries[i].value;
        module->computations[i] = *from;
        if (module->entry == from) module->entry = &module->computations[i];
        p->computations.entries[i].value = &module->computations[i];
    }
    if (!module->entry) module->entry = &module->computations[module->num_computations - 1];
    for (size_t i = 0; i < p->num_calls; i++) {
        ct_hlo_instruction *from = p->calls[i].from;
        if (!from->calls) {
            from->calls = CT_ARENA_ARRAY(p->arena, const ct_hlo_computation *, from->num_calls);
            from->num_calls = 0;
        }
        const ct_hlo_computation *callee = ct_map_get(&p->computations, p->calls[i].callee);
        if (!callee)
            return ct_error(CT_CODE_INVALID_ARGUMENT, "%s:%zu: HLO text: %s calls %s, which is not there", p->path,
                            p->calls[i].line, from->name, p->calls[i].callee);
        from->calls[from->num_calls++] = callee;
    }
    return ct__hlo_check(module);
}

static ct_status *parse_text(ct_arena *arena, const char *text, size_t length, const char *path,
                             ct_hlo_module **out_module)
{
    parser p = {.arena = arena, .path = path, .text = text, .at = text, .end = text + length};
    p.module = CT_ARENA_NEW(arena, ct_hlo_module);
    ct_map_init(&p.computations);
    ct_str_init(&p.scratch);
    ct_status *status = NULL;
    CT_TRY_OUT(parse_header(&p));
    for (skip_space(&p); p.at < p.end; skip_space(&p)) {
        if (!at_computation(&p)) {
            skip_line(&p);
            continue;
        }
        bool is_entry = take(&p, "ENTRY ");
        CT_TRY_OUT(parse_computation(&p, is_entry));
    }
    CT_TRY_OUT(resolve(&p));
    *out_module = p.module;
out:
    ct_str_deinit(&p.scratch);
    ct_map_deinit(&p.computations);
    return status;
}

/* ---- which kind ---- */

ct_status *ct_hlo_parse(ct_arena *arena, const void *bytes, size_t size_bytes, const char *path,
                        ct_hlo_module **out_module)
{
    *out_module = NULL;
    const char *text = bytes, *at = text, *end = text + size_bytes;
    while (at < end && isspace((unsigned char)*at)) at++;
    size_t left = (size_t)(end - at);
    if (left >= 10 && !memcmp(at, "HloModule ", 10)) { /* numbers are read up to what ends them: a zero must follow */
        char *copy = ct_alloc(left + 1);
        memcpy(copy, at, left);
        copy[left] = 0;
        ct_status *status = parse_text(arena, copy, left, path, out_module);
        free(copy);
        return status;
    }
    bool is_stablehlo = (left >= 6 && (!memcmp(at, "module", 6))) || (left >= 4 && !memcmp(at, "ML\xefR", 4)) ||
                        (left && memmem(at, CT_MIN(left, (size_t)4096), "stablehlo", 9));
    if (is_stablehlo)
        return ct_error(CT_CODE_INVALID_ARGUMENT,
                        "%s is StableHLO, which a compiler takes; give the program that it made (JAX: "
                        "compiled.as_text(), or --xla_dump_to)",
                        path);
    return ct_status_note(ct__hlo_read(arena, bytes, size_bytes, out_module),
                          "%s is neither HLO text nor an HLO module", path);
}

ct_status *ct_hlo_read_file(ct_arena *arena, const char *path, ct_hlo_module **out_module)
{
    *out_module = NULL;
    ct_file_map map;
    CT_TRY(ct_file_map_open(path, &map));
    ct_status *status = ct_hlo_parse(arena, map.data, map.size_bytes, path, out_module);
    ct_file_map_close(&map);
    return status;
}
