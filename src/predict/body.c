/* Counts a Mosaic module that is text, as kernels/mosaic prints it: one operation per line.
 *
 * The grid is walked step by step. Of the body only what decides is kept: scalars, branches and matrix products. A
 * scalar that comes out of memory is not known; a condition that rests on one may go either way, so the dearer way
 * counts, and a branch on its negation goes the other way.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "predict/internal.h"

enum { MAX_VALUES = 1 << 16, MAX_GRID = 8, MAX_ARGS = 48, MAX_OPERANDS = 4, MAX_DEPTH = 16, MAX_RANK = 4 };
static const double max_work = 2e8; /* operations over all steps */

typedef enum {
    OP_CONSTANT,
    OP_ADD,
    OP_SUB,
    OP_MUL,
    OP_DIV,
    OP_MIN,
    OP_MAX,
    OP_AND,
    OP_CAST,
    OP_COMPARE,
    OP_SELECT,
    OP_UNKNOWN,
    OP_IF,
    OP_ELSE,
    OP_END,
    OP_MATMUL,
    OP_RETURN,
} op_kind;

typedef struct {
    op_kind kind;
    int result, operands[MAX_OPERANDS], num_operands;
    int64_t number; /* of a constant; a comparison's predicate */
    double flops;
    bool is_f32;
} op;

/* A scalar: a number, or what stands for one that is not known, or for its negation. */
typedef struct {
    int64_t number;
    int unknown; /* the value that it is; 0: known */
    bool negated;
} scalar;

typedef struct {
    op *ops;
    size_t count, capacity;
    int args[MAX_ARGS], num_args;
} function;

typedef struct {
    int transform;
    double bytes;
    bool is_shown;
    int64_t blocks[MAX_OPERANDS];
} window;

typedef struct {
    function kernel, transforms[MAX_ARGS];
    int num_transforms, num_grid, num_windows;
    int64_t bounds[MAX_GRID];
    int num_prefetched;
    double arg_bytes[MAX_ARGS]; /* of the kernel's arguments, each one element's */
    window windows[MAX_ARGS];
    scalar *values;
    ct__body_count *count;
} module;

/* ---- lines ---- */

static const struct {
    const char *name;
    op_kind kind;
} names[] = {
    {"arith.constant", OP_CONSTANT}, {"arith.addi", OP_ADD},
    {"arith.subi", OP_SUB},          {"arith.muli", OP_MUL},
    {"arith.divsi", OP_DIV},         {"arith.minsi", OP_MIN},
    {"arith.maxsi", OP_MAX},         {"arith.andi", OP_AND},
    {"arith.extui", OP_CAST},        {"arith.extsi", OP_CAST},
    {"arith.index_cast", OP_CAST},   {"arith.cmpi", OP_COMPARE},
    {"arith.select", OP_SELECT},     {"tpu.matmul", OP_MATMUL},
    {"func.return", OP_RETURN},      {"scf.if", OP_IF},
};

static bool starts_with(const char *text, const char *start)
{
    return !strncmp(text, start, strlen(start));
}

static op *push(function *f, op_kind kind)
{
    if (f->count == f->capacity) {
        f->capacity = CT_MAX(2 * f->capacity, (size_t)64);
        f->ops = ct_realloc(f->ops, f->capacity * sizeof(*f->ops));
    }
    f->ops[f->count] = (op){.kind = kind};
    return &f->ops[f->count++];
}

static bool parse_value(const char **at, int *out)
{
    if (**at != '%') return false;
    char *end;
    long number = strtol(*at + 1, &end, 10);
    *at = end;
    *out = (int)number;
    return number > 0 && number < MAX_VALUES;
}

/* The sizes of "vector<4x8xbf16>" or "memref<4xf32, ..."; the rank, -1 if it is none. */
static int parse_sizes(const char *at, int64_t sizes[MAX_RANK], bool *out_f32)
{
    const char *open = strchr(at, '<');
    int rank = 0;
    if (!open) return -1;
    for (at = open + 1; *at >= '0' && *at <= '9' && rank < MAX_RANK;) {
        char *end;
        sizes[rank++] = strtoll(at, &end, 10);
        if (*end != 'x') return -1;
        at = end + 1;
    }
    *out_f32 = starts_with(at, "f32");
    return rank;
}

/* 2 x result's elements x the summed dim of the left operand. */
static bool parse_matmul(const char *line, op *to)
{
    static const char key[] = "dot_dimension_numbers<[";
    const char *numbers = strstr(line, key), *types = strstr(line, "} : ("),
               *arrow = types ? strstr(types, "-> ") : NULL;
    int64_t left[MAX_RANK], result[MAX_RANK];
    bool is_f32, result_f32;
    if (!numbers || !arrow) return false;
    int rank = parse_sizes(types, left, &is_f32), result_rank = parse_sizes(arrow, result, &result_f32);
    long summed = strtol(numbers + sizeof(key) - 1, NULL, 10);
    if (rank < 1 || result_rank < 1 || summed < 0 || summed >= rank) return false;
    to->flops = 2 * (double)left[summed];
    for (int i = 0; i < result_rank; i++) to->flops *= (double)result[i];
    to->is_f32 = is_f32;
    return true;
}

static bool is_scalar_type(const char *line)
{
    const char *arrow = NULL;
    for (const char *at = line; (at = strstr(at, "-> ")); at++) arrow = at + 3;
    return arrow && (!strcmp(arrow, "i32") || !strcmp(arrow, "i1") || !strcmp(arrow, "index"));
}

static int64_t attribute(const char *line, const char *name)
{
    const char *at = strstr(line, name);
    if (!at) return 0;
    at += strlen(name);
    return starts_with(at, "true") ? 1 : starts_with(at, "false") ? 0 : strtoll(at, NULL, 10);
}

static bool parse_op(const char *line, function *f)
{
    static const char dialect[] = "\"stable_mosaic.";
    int result = 0;
    const char *at = line;
    if (*at == '%' && (!parse_value(&at, &result) || !starts_with(at, " = "))) return false;
    if (result) at += 3;
    if (!starts_with(at, dialect)) return false;
    at += sizeof(dialect) - 1;
    const char *quote = strchr(at, '"');
    if (!quote || quote[1] != '(') return false;
    op_kind kind = OP_UNKNOWN;
    for (size_t i = 0; i < CT_COUNT(names); i++)
        if ((size_t)(quote - at) == strlen(names[i].name) && starts_with(at, names[i].name)) kind = names[i].kind;
    bool loops = starts_with(at, "scf.for") || starts_with(at, "scf.while");
    bool decides = kind == OP_MATMUL || kind == OP_RETURN || kind == OP_IF || (result && is_scalar_type(line));
    if (loops) return false;
    if (!decides) return true;
    op *to = push(f, kind);
    to->result = result;
    for (at = quote + 2; *at == '%';) {
        int value;
        if (!parse_value(&at, &value)) return false;
        if (to->num_operands < MAX_OPERANDS) to->operands[to->num_operands++] = value;
        if (starts_with(at, ", ")) at += 2;
    }
    if (kind == OP_CONSTANT) to->number = attribute(line, "value = ");
    if (kind == OP_COMPARE) to->number = attribute(line, "predicate = ");
    return kind != OP_MATMUL || parse_matmul(line, to);
}

static bool parse_arguments(const char *line, function *f, double *bytes)
{
    const char *at = line;
    f->num_args = 0;
    while ((at = strchr(at, '%'))) {
        if (f->num_args == MAX_ARGS || !parse_value(&at, &f->args[f->num_args])) return false;
        if (bytes) {
            const char *end = at, *close = strchr(at, '%');
            char type[96];
            snprintf(type, sizeof(type), "%.*s",
                     (int)CT_MIN(close ? (size_t)(close - end) : strlen(end), sizeof(type) - 1), end);
            bytes[f->num_args] = strstr(type, "xbf16") ? 2 : 4;
        }
        f->num_args++;
    }
    return true;
}

static int parse_list(const char *line, const char *key, int64_t *out, int most)
{
    const char *at = strstr(line, key);
    int count = 0;
    if (!at) return 0;
    at += strlen(key);
    while (count < most) {
        char *end;
        out[count++] = strtoll(at, &end, 10);
        if (!starts_with(end, ", ")) break;
        at = end + 2;
    }
    return count;
}

/* The attributes behind the kernel's function. */
static bool parse_kernel_attributes(const char *line, module *m)
{
    static const char name_key[] = "sym_name = \"", window_key[] = "{transform_indices = @transform_";
    m->num_grid = parse_list(line, "iteration_bounds = array<i64: ", m->bounds, MAX_GRID);
    m->num_prefetched = (int)attribute(line, "scalar_prefetch = ");
    const char *name = strstr(line, name_key);
    if (!m->num_grid || !name) return false;
    name += sizeof(name_key) - 1;
    snprintf(m->count->name, sizeof(m->count->name), "%.*s", (int)strcspn(name, "\""), name);
    for (int i = 0; i < m->num_grid; i++)
        if (m->bounds[i] < 1) return false; /* a dynamic one */
    for (const char *at = line; (at = strstr(at, window_key)); at++) {
        int64_t sizes[MAX_RANK];
        int arg = m->num_grid + m->num_prefetched + m->num_windows;
        if (m->num_windows == MAX_ARGS || arg < 0 || arg >= m->kernel.num_args) return false;
        window *w = &m->windows[m->num_windows++];
        *w = (window){.transform = (int)strtol(at + sizeof(window_key) - 1, NULL, 10), .bytes = m->arg_bytes[arg]};
        int rank = parse_list(at, "window_bounds = array<i64: ", sizes, MAX_RANK);
        for (int i = 0; i < rank; i++) w->bytes *= (double)sizes[i];
    }
    return true;
}

static bool parse_line(const char *line, module *m, function **current, int *depth)
{
    if (starts_with(line, "\"builtin.module\"")) return true;
    if (starts_with(line, "\"stable_mosaic.func.func\"")) {
        if (*current || m->num_transforms == MAX_ARGS) return false;
        *current = m->count->name[0] ? &m->transforms[m->num_transforms++] : &m->kernel;
        return true;
    }
    if (!*current) return true; /* the module's end */
    if (starts_with(line, "^bb0("))
        return parse_arguments(line, *current, *current == &m->kernel ? m->arg_bytes : NULL);
    if (starts_with(line, "}, {")) {
        push(*current, OP_ELSE);
        return *depth > 0;
    }
    if (starts_with(line, "})")) {
        if (*depth) {
            --*depth;
            push(*current, OP_END);
            return true;
        }
        bool is_kernel = *current == &m->kernel;
        *current = NULL;
        return !is_kernel || parse_kernel_attributes(line, m);
    }
    if (!parse_op(line, *current)) return false;
    if (strstr(line, "\"stable_mosaic.scf.if\"") && ++*depth > MAX_DEPTH) return false;
    return true;
}

static bool parse(const char *text, size_t length, module *m)
{
    function *current = NULL;
    int depth = 0;
    char *line = ct_alloc(length + 1);
    bool is_good = true;
    for (const char *at = text, *end = text + length; at < end && is_good;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t size = newline ? (size_t)(newline - at) : (size_t)(end - at);
        memcpy(line, at, size);
        line[size] = 0;
        is_good = parse_line(line, m, &current, &depth);
        at += size + 1;
    }
    free(line);
    return is_good && !current && m->count->name[0];
}

/* ---- one step ---- */

static scalar compare(const op *at, scalar a, scalar b, int result)
{
    bool is_zero_test = at->number == 0 && a.unknown && !b.unknown && b.number == 0;
    if (is_zero_test) return (scalar){.unknown = a.unknown, .negated = !a.negated};
    if (a.unknown || b.unknown) return (scalar){.unknown = result};
    bool holds = at->number == 0   ? a.number == b.number
                 : at->number == 1 ? a.number != b.number
                 : at->number == 2 ? a.number < b.number
                 : at->number == 3 ? a.number <= b.number
                 : at->number == 4 ? a.number > b.number
                                   : a.number >= b.number;
    return (scalar){.number = holds};
}

static scalar evaluate(const module *m, const op *at)
{
    scalar in[3] = {{0}};
    for (int i = 0; i < at->num_operands && i < 3; i++) in[i] = m->values[at->operands[i]];
    scalar unknown = {.unknown = at->result};
    bool any = in[0].unknown || in[1].unknown;
    int64_t a = in[0].number, b = in[1].number;
    switch (at->kind) {
    case OP_CONSTANT: return (scalar){.number = at->number};
    case OP_CAST: return in[0];
    case OP_COMPARE: return compare(at, in[0], in[1], at->result);
    case OP_AND:
        for (int i = 0; i < 2; i++)
            if (!in[i].unknown) return in[i].number ? in[1 - i] : in[i];
        return unknown;
    case OP_SELECT: return in[0].unknown ? unknown : in[a ? 1 : 2];
    case OP_ADD: return any ? unknown : (scalar){.number = (int64_t)((uint64_t)a + (uint64_t)b)};
    case OP_SUB: return any ? unknown : (scalar){.number = (int64_t)((uint64_t)a - (uint64_t)b)};
    case OP_MUL: return any ? unknown : (scalar){.number = (int64_t)((uint64_t)a * (uint64_t)b)};
    case OP_DIV: return any || b < 1 ? unknown : (scalar){.number = a / b};
    case OP_MIN: return any ? unknown : (scalar){.number = CT_MIN(a, b)};
    case OP_MAX: return any ? unknown : (scalar){.number = CT_MAX(a, b)};
    default: return unknown;
    }
}

typedef struct {
    double flops, f32_flops;
} work;

enum { MAX_CONDITIONS = 64 };

static work larger(work a, work b)
{
    return a.flops > b.flops ? a : b;
}

/* Runs from *at to the end of its region; counts if `runs`. */
static work run_region(module *m, const function *f, size_t *at, bool runs)
{
    work total = {0};
    struct {
        int unknown;
        work ways[2];
    } conditions[MAX_CONDITIONS];
    int num_conditions = 0;
    for (; *at < f->count; ++*at) {
        const op *current = &f->ops[*at];
        if (current->kind == OP_END || current->kind == OP_ELSE) break;
        if (current->kind == OP_RETURN) continue;
        if (current->kind == OP_MATMUL) {
            total.flops += runs ? current->flops : 0;
            total.f32_flops += runs && current->is_f32 ? current->flops : 0;
        } else if (current->kind == OP_IF) {
            scalar condition = current->num_operands ? m->values[current->operands[0]] : (scalar){0};
            bool is_open = condition.unknown != 0;
            work ways[2] = {{0}};
            for (int i = 0; i < 2; i++) { /* then, else */
                ++*at;
                ways[i] = run_region(m, f, at, runs && (is_open || (condition.number != 0) == (i == 0)));
                if (*at >= f->count || f->ops[*at].kind == OP_END) break;
            }
            if (!is_open) {
                total.flops += ways[0].flops + ways[1].flops;
                total.f32_flops += ways[0].f32_flops + ways[1].f32_flops;
                continue;
            }
            if (ways[0].flops + ways[1].flops > 0) m->count->is_exact = false;
            int c = 0;
            while (c < num_conditions && conditions[c].unknown != condition.unknown) c++;
            if (c == MAX_CONDITIONS) c--;
            if (c == num_conditions) {
                memset(&conditions[num_conditions], 0, sizeof(conditions[0]));
                conditions[num_conditions++].unknown = condition.unknown;
            }
            for (int i = 0; i < 2; i++) {
                work *way = &conditions[c].ways[i ^ condition.negated];
                way->flops += ways[i].flops;
                way->f32_flops += ways[i].f32_flops;
            }
        } else {
            m->values[current->result] = evaluate(m, current);
        }
    }
    for (int c = 0; c < num_conditions; c++) {
        work way = larger(conditions[c].ways[0], conditions[c].ways[1]);
        total.flops += way.flops;
        total.f32_flops += way.f32_flops;
    }
    return total;
}

static void set_arguments(module *m, const function *f, const int64_t *step)
{
    for (int i = 0; i < f->num_args; i++)
        m->values[f->args[i]] = i < m->num_grid ? (scalar){.number = step[i]} : (scalar){.unknown = f->args[i]};
}

/* Adds a window's bytes if it has moved. False: it cannot be said where to. */
static bool move_window(module *m, window *w, const int64_t *step)
{
    if (w->transform < 0 || w->transform >= m->num_transforms) return false;
    const function *f = &m->transforms[w->transform];
    set_arguments(m, f, step);
    size_t at = 0;
    run_region(m, f, &at, false);
    for (size_t i = 0; i < f->count; i++) {
        const op *last = &f->ops[i];
        if (last->kind != OP_RETURN) continue;
        bool moves = !w->is_shown;
        for (int d = 0; d < last->num_operands; d++) {
            scalar block = m->values[last->operands[d]];
            if (block.unknown) return false;
            moves = moves || block.number != w->blocks[d];
            w->blocks[d] = block.number;
        }
        w->is_shown = true;
        if (moves) m->count->window_bytes += w->bytes;
        return true;
    }
    return false;
}

static bool count_all(module *m)
{
    double steps = 1, ops = (double)m->kernel.count;
    for (int i = 0; i < m->num_grid; i++) steps *= (double)m->bounds[i];
    for (int i = 0; i < m->num_transforms; i++) ops += (double)m->transforms[i].count;
    if (steps * (ops + m->num_windows + 1) > max_work) return false;
    int64_t step[MAX_GRID] = {0};
    bool windows_known = true;
    m->count->is_exact = true;
    for (int64_t n = (int64_t)steps; n--;) {
        set_arguments(m, &m->kernel, step);
        size_t at = 0;
        work done = run_region(m, &m->kernel, &at, true);
        m->count->flops += done.flops;
        m->count->f32_flops += done.f32_flops;
        for (int w = 0; w < m->num_windows && windows_known; w++) windows_known = move_window(m, &m->windows[w], step);
        for (int i = m->num_grid; i-- && ++step[i] == m->bounds[i];) step[i] = 0;
    }
    if (!windows_known) m->count->window_bytes = 0;
    return true;
}

bool ct__body_count_of(const char *text, size_t length, ct__body_count *out_count)
{
    *out_count = (ct__body_count){0};
    if (length < 16 || !starts_with(text, "\"builtin.module\"")) return false;
    module *m = ct_alloc_zeroed(1, sizeof(*m));
    m->values = ct_alloc_zeroed(MAX_VALUES, sizeof(*m->values));
    m->count = out_count;
    bool is_good = parse(text, length, m) && count_all(m);
    free(m->kernel.ops);
    for (int i = 0; i < m->num_transforms; i++) free(m->transforms[i].ops);
    free(m->values);
    free(m);
    return is_good;
}
