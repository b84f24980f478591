/* The walk over the tree: expressions give values, statements write text. Undefined values behave as Jinja's default:
 * they print as nothing and are false, but have no attributes and do not compute.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "tokenizer/jinja.h"

enum {
    MAX_DEPTH = 400,              /* of nested evaluations, macros included */
    MAX_STEPS = 20 * 1000 * 1000, /* nodes visited by one rendering */
    MAX_OUTPUT = 256 << 20,
    MAX_NESTING = 500, /* of lists in lists */
};

static ct_status *evaluate(ct__jrender *r, const ct__jnode *node, ct__jframe *frame, ct__jvalue *out);

static const ct__jvalue *find_variable(const ct__jframe *frame, const char *name, size_t length)
{
    for (; frame; frame = frame->outer) {
        const ct__jvalue *value = ct__jdict_find_text(&frame->variables, name, length);
        if (value) return value;
    }
    return NULL;
}

static void set_variable(ct__jrender *r, ct__jframe *frame, const ct__jnode *name, ct__jvalue value)
{
    ct__jdict_set(r->arena, &frame->variables, ct__jstring(name->text, name->length), value);
}

ct__jvalue ct__jinja_attribute(ct__jrender *render, ct__jvalue value, const char *name, size_t length)
{
    if (value.kind == CT__J_DICT || value.kind == CT__J_NAMESPACE) {
        const ct__jvalue *found = ct__jdict_find_text(value.dict, name, length);
        if (found) return *found;
    }
    (void)render;
    return ct__jundefined(name, length);
}

static ct_status *need_defined(ct__jrender *r, const ct__jnode *node, ct__jvalue value)
{
    if (value.kind != CT__J_UNDEFINED) return NULL;
    return ct__jerror(r, node->line, CT_CODE_INVALID_ARGUMENT, "\"%.*s\" is undefined", (int)value.string.length,
                      value.string.data);
}

static ct_status *evaluate_attribute(ct__jrender *r, const ct__jnode *node, ct__jframe *frame, ct__jvalue *out)
{
    ct__jvalue value;
    CT_TRY(evaluate(r, node->a, frame, &value));
    CT_TRY(need_defined(r, node, value));
    if (!ct__jinja_has_method(value, node->text, node->length)) {
        *out = ct__jinja_attribute(r, value, node->text, node->length);
        return NULL;
    }
    ct__jvalue *self = CT_ARENA_NEW(r->arena, ct__jvalue);
    *self = value;
    *out = (ct__jvalue){.kind = CT__J_METHOD, .string = {node->text, node->length}, .self = self};
    return NULL;
}

static ct_status *evaluate_item(ct__jrender *r, const ct__jnode *node, ct__jframe *frame, ct__jvalue *out)
{
    ct__jvalue value, key;
    CT_TRY(evaluate(r, node->a, frame, &value));
    CT_TRY(evaluate(r, node->b, frame, &key));
    CT_TRY(need_defined(r, node, value));
    *out = ct__jundefined("item", 4);
    if (key.kind == CT__J_STRING) *out = ct__jundefined(key.string.data, key.string.length);
    if (value.kind == CT__J_DICT) {
        const ct__jvalue *found = ct__jdict_find(value.dict, key);
        if (found) *out = *found;
        return NULL;
    }
    if ((ct__jis_list(value) || value.kind == CT__J_STRING) && (key.kind == CT__J_INT || key.kind == CT__J_BOOL)) {
        int64_t count = (int64_t)(value.kind == CT__J_STRING ? ct__jlength_utf8(value) : value.list->count);
        int64_t index = key.kind == CT__J_BOOL ? key.boolean : key.integer;
        if (index < 0) index += count;
        if (index < 0 || index >= count) return NULL;
        *out = value.kind == CT__J_STRING ? ct__jslice_utf8(value, (size_t)index, (size_t)index + 1)
                                          : value.list->items[index];
        return NULL;
    }
    if (value.kind == CT__J_NAMESPACE && key.kind == CT__J_STRING)
        *out = ct__jinja_attribute(r, value, key.string.data, key.string.length);
    return NULL;
}

static ct_status *evaluate_slice(ct__jrender *r, const ct__jnode *node, ct__jframe *frame, ct__jvalue *out)
{
    ct__jvalue value;
    CT_TRY(evaluate(r, node->a, frame, &value));
    CT_TRY(need_defined(r, node, value));
    if (!ct__jis_list(value) && value.kind != CT__J_STRING)
        return ct__jerror(r, node->line, CT_CODE_INVALID_ARGUMENT, "a slice needs a list or a string, found %s",
                          ct__jkind_name(value));
    int64_t count = (int64_t)(value.kind == CT__J_STRING ? ct__jlength_utf8(value) : value.list->count);
    int64_t parts[3];
    bool given[3];
    for (size_t i = 0; i < 3; i++) {
        ct__jvalue part = CT__JNONE;
        if (node->items.items[i]) CT_TRY(evaluate(r, node->items.items[i], frame, &part));
        given[i] = part.kind != CT__J_NONE;
        if (given[i] && part.kind != CT__J_INT)
            return ct__jerror(r, node->line, CT_CODE_INVALID_ARGUMENT, "a slice needs integers, found %s",
                              ct__jkind_name(part));
        parts[i] = given[i] ? part.integer : 0;
    }
    int64_t step = given[2] ? parts[2] : 1;
    if (!step) return ct__jerror(r, node->line, CT_CODE_INVALID_ARGUMENT, "a slice's step must not be 0");
    int64_t low = step > 0 ? 0 : -1, high = step > 0 ? count : count - 1; /* as Python clips */
    int64_t begin = step > 0 ? low : high, end = step > 0 ? high : low;
    if (given[0]) begin = CT_MAX(low, CT_MIN(high, parts[0] < 0 ? parts[0] + count : parts[0]));
    if (given[1]) end = CT_MAX(low, CT_MIN(high, parts[1] < 0 ? parts[1] + count : parts[1]));
    step = CT_MAX(-count - 1, CT_MIN(count + 1, step));
    if (value.kind == CT__J_STRING && step == 1) {
        *out = ct__jslice_utf8(value, (size_t)begin, (size_t)CT_MAX(begin, end));
        return NULL;
    }
    ct__jvalue result = ct__jlist_new(r->arena);
    result.kind = value.kind == CT__J_TUPLE ? CT__J_TUPLE : CT__J_LIST;
    ct_str text;
    ct_str_init(&text);
    for (int64_t i = begin; step > 0 ? i < end : i > end; i += step) {
        if (value.kind == CT__J_STRING)
            ct__jprint(ct__jslice_utf8(value, (size_t)i, (size_t)i + 1), &text);
        else
            ct__jlist_add(r->arena, result.list, value.list->items[i]);
    }
    *out = value.kind != CT__J_STRING ? result
                                      : ct__jstring(ct_arena_strndup(r->arena, text.data, text.length), text.length);
    ct_str_deinit(&text);
    return NULL;
}

static ct_status *evaluate_arguments(ct__jrender *r, const ct__jnodes *nodes, ct__jframe *frame, ct__jarguments *out)
{
    *out = (ct__jarguments){.values = CT_ARENA_ARRAY(r->arena, ct__jvalue, nodes->count),
                            .keywords = CT_ARENA_ARRAY(r->arena, ct__jpair, nodes->count)};
    for (size_t i = 0; i < nodes->count; i++) {
        const ct__jnode *node = nodes->items[i];
        ct__jvalue value;
        CT_TRY(evaluate(r, node->kind == CT__JN_KEYWORD ? node->a : node, frame, &value));
        if (node->kind == CT__JN_KEYWORD)
            out->keywords[out->num_keywords++] = (ct__jpair){ct__jstring(node->text, node->length), value};
        else
            out->values[out->count++] = value;
    }
    return NULL;
}

ct__jvalue ct__jargument(const ct__jarguments *arguments, size_t index, const char *name)
{
    if (index < arguments->count) return arguments->values[index];
    for (size_t i = 0; i < arguments->num_keywords; i++)
        if (ct__jis_text(arguments->keywords[i].key, name)) return arguments->keywords[i].value;
    return ct__jundefined(name, strlen(name));
}

/* Runs a macro's body into a string. */
static ct_status *call_macro(ct__jrender *r, int line, const ct__jmacro *macro, const ct__jarguments *arguments,
                             ct__jvalue *out)
{
    const ct__jnode *node = macro->node;
    ct__jframe *frame = CT_ARENA_NEW(r->arena, ct__jframe);
    frame->outer = macro->frame;
    if (arguments->count > node->items.count)
        return ct__jerror(r, line, CT_CODE_INVALID_ARGUMENT, "macro %.*s takes %zu arguments, found %zu",
                          (int)node->length, node->text, node->items.count, arguments->count);
    for (size_t i = 0; i < node->items.count; i++) {
        const ct__jnode *parameter = node->items.items[i];
        char *name = ct_arena_strndup(r->arena, parameter->text, parameter->length);
        ct__jvalue value = ct__jargument(arguments, i, name);
        if (value.kind == CT__J_UNDEFINED && parameter->b) CT_TRY(evaluate(r, parameter->b, frame, &value));
        set_variable(r, frame, parameter, value);
    }
    ct_str text, *outer = r->out;
    ct_str_init(&text);
    r->out = &text;
    ct_status *status = ct__jinja_run(r, &node->body, frame);
    r->out = outer;
    if (!status) *out = ct__jstring(ct_arena_strndup(r->arena, text.data, text.length), text.length);
    ct_str_deinit(&text);
    return status;
}

/* A name that nothing is known of, or a method that the value does not have here. */
static ct_status *unknown_function(ct__jrender *r, const ct__jnode *node, ct__jframe *frame, ct__jvalue function)
{
    ct__jvalue self = ct__jundefined("", 0);
    if (node->a->kind == CT__JN_ATTRIBUTE) CT_TRY(evaluate(r, node->a->a, frame, &self));
    if (self.kind == CT__J_UNDEFINED)
        return ct__jerror(r, node->line, CT_CODE_UNIMPLEMENTED, "the function \"%.*s\" is not supported",
                          (int)function.string.length, function.string.data);
    if (self.kind == CT__J_STRING || self.kind == CT__J_DICT || ct__jis_list(self))
        return ct__jerror(r, node->line, CT_CODE_UNIMPLEMENTED, "the method \"%.*s\" of %s is not supported",
                          (int)function.string.length, function.string.data, ct__jkind_name(self));
    return ct__jerror(r, node->line, CT_CODE_INVALID_ARGUMENT, "%s has no method \"%.*s\"", ct__jkind_name(self),
                      (int)function.string.length, function.string.data);
}

static ct_status *evaluate_call(ct__jrender *r, const ct__jnode *node, ct__jframe *frame, ct__jvalue *out)
{
    ct__jvalue function;
    ct__jarguments arguments;
    CT_TRY(evaluate(r, node->a, frame, &function));
    CT_TRY(evaluate_arguments(r, &node->items, frame, &arguments));
    if (function.kind == CT__J_METHOD)
        return ct__jinja_method(r, node->line, function.self, function.string.data, function.string.length, &arguments,
                                out);
    if (function.kind == CT__J_FUNCTION)
        return ct__jinja_function(r, node->line, function.string.data, function.string.length, &arguments, out);
    if (function.kind == CT__J_MACRO) return call_macro(r, node->line, function.macro, &arguments, out);
    if (function.kind == CT__J_UNDEFINED) return unknown_function(r, node, frame, function);
    return ct__jerror(r, node->line, CT_CODE_INVALID_ARGUMENT, "a value of type %s cannot be called",
                      ct__jkind_name(function));
}

/* ---- Operators ---- */

ct_status *ct__jinja_check_size(ct__jrender *render, int line, int64_t size)
{
    if (size <= MAX_OUTPUT) return NULL;
    return ct__jerror(render, line, CT_CODE_RESOURCE_EXHAUSTED, "a value of %lld bytes or items is too large",
                      (long long)size);
}

static ct__jvalue joined(ct__jrender *r, ct__jvalue a, ct__jvalue b)
{
    ct_str text;
    ct_str_init(&text);
    ct__jprint(a, &text);
    ct__jprint(b, &text);
    ct__jvalue result = ct__jstring(ct_arena_strndup(r->arena, text.data, text.length), text.length);
    ct_str_deinit(&text);
    return result;
}

static ct_status *repeat(ct__jrender *r, const ct__jnode *node, ct__jvalue value, int64_t times, ct__jvalue *out)
{
    size_t size = value.kind == CT__J_STRING ? value.string.length : value.list->count;
    times = CT_MAX(times, 0);
    int64_t total;
    if (!ct_checked_mul((int64_t)size, times, &total)) total = INT64_MAX;
    CT_TRY(ct__jinja_check_size(r, node->line, total));
    if (value.kind == CT__J_STRING) {
        char *data = ct_arena_alloc(r->arena, (size_t)total + 1);
        for (int64_t i = 0; i < times && size; i++) memcpy(data + (size_t)i * size, value.string.data, size);
        *out = ct__jstring(data, (size_t)total);
        return NULL;
    }
    *out = ct__jlist_new(r->arena);
    for (int64_t i = 0; i < times && size; i++)
        for (size_t j = 0; j < size; j++) ct__jlist_add(r->arena, out->list, value.list->items[j]);
    return NULL;
}

static int64_t as_int(ct__jvalue value)
{
    return value.kind == CT__J_BOOL ? value.boolean : value.integer;
}

/* Of two integers; false when the result is none (or does not fit), and reals are to be taken. */
static bool compute_int(char op, bool is_double, int64_t a, int64_t b, int64_t *out)
{
    switch (op) {
    case '+': return !__builtin_add_overflow(a, b, out);
    case '-': return !__builtin_sub_overflow(a, b, out);
    case '*':
        if (!is_double) return !__builtin_mul_overflow(a, b, out);
        if (b < 0) return false;
        *out = 1;
        for (int64_t i = 0; i < b; i++) {
            if (__builtin_mul_overflow(*out, a, out)) return false;
            if (a == 0 || a == 1) return true;
            if (a == -1) {
                *out = b % 2 ? -1 : 1;
                return true;
            }
        }
        return true;
    case '/':
    case '%': {
        if ((op == '/' && !is_double) || (a == INT64_MIN && b == -1)) return false;
        int64_t quotient = a / b, rest = a % b;
        bool adjust = rest && ((rest < 0) != (b < 0)); /* Python rounds down */
        *out = op == '/' ? quotient - adjust : rest + (adjust ? b : 0);
        return true;
    }
    default: return false;
    }
}

static double compute_double(char op, bool is_double, double a, double b)
{
    switch (op) {
    case '+': return a + b;
    case '-': return a - b;
    case '*': return is_double ? pow(a, b) : a * b;
    case '/': return is_double ? floor(a / b) : a / b;
    default: {
        double rest = fmod(a, b);
        return rest != 0 && ((rest < 0) != (b < 0)) ? rest + b : rest;
    }
    }
}

static ct_status *compute(ct__jrender *r, const ct__jnode *node, ct__jvalue a, ct__jvalue b, ct__jvalue *out)
{
    char op = node->text[0];
    bool is_double = node->length == 2;
    if (op == '~') {
        *out = joined(r, a, b);
        return ct__jinja_check_size(r, node->line, (int64_t)out->string.length);
    }
    CT_TRY(need_defined(r, node, a));
    CT_TRY(need_defined(r, node, b));
    if (op == '+' && a.kind == CT__J_STRING && b.kind == CT__J_STRING) {
        *out = joined(r, a, b);
        return ct__jinja_check_size(r, node->line, (int64_t)out->string.length);
    }
    if (op == '+' && a.kind == b.kind && ct__jis_list(a)) {
        CT_TRY(ct__jinja_check_size(r, node->line, (int64_t)(a.list->count + b.list->count)));
        *out = ct__jlist_new(r->arena);
        out->kind = a.kind;
        for (size_t i = 0; i < a.list->count; i++) ct__jlist_add(r->arena, out->list, a.list->items[i]);
        for (size_t i = 0; i < b.list->count; i++) ct__jlist_add(r->arena, out->list, b.list->items[i]);
        return NULL;
    }
    if (op == '*' && !is_double && (a.kind == CT__J_STRING || ct__jis_list(a)) && b.kind == CT__J_INT)
        return repeat(r, node, a, b.integer, out);
    if (op == '*' && !is_double && (b.kind == CT__J_STRING || ct__jis_list(b)) && a.kind == CT__J_INT)
        return repeat(r, node, b, a.integer, out);
    if (!ct__jis_number(a) || !ct__jis_number(b))
        return ct__jerror(r, node->line, CT_CODE_INVALID_ARGUMENT, "%.*s does not work between %s and %s",
                          (int)node->length, node->text, ct__jkind_name(a), ct__jkind_name(b));
    if ((op == '/' || op == '%') && ct__jas_double(b) == 0)
        return ct__jerror(r, node->line, CT_CODE_INVALID_ARGUMENT, "division by zero");
    int64_t integer;
    if (a.kind != CT__J_FLOAT && b.kind != CT__J_FLOAT && compute_int(op, is_double, as_int(a), as_int(b), &integer)) {
        *out = ct__jint(integer);
        return NULL;
    }
    *out =
        (ct__jvalue){.kind = CT__J_FLOAT, .real = compute_double(op, is_double, ct__jas_double(a), ct__jas_double(b))};
    return NULL;
}

static ct_status *contains(ct__jrender *r, int line, ct__jvalue item, ct__jvalue container, bool *out)
{
    *out = false;
    if (container.kind == CT__J_STRING) {
        if (item.kind != CT__J_STRING)
            return ct__jerror(r, line, CT_CODE_INVALID_ARGUMENT, "only a string can be in a string, found %s",
                              ct__jkind_name(item));
        *out = !item.string.length ||
               memmem(container.string.data, container.string.length, item.string.data, item.string.length) != NULL;
        return NULL;
    }
    if (container.kind == CT__J_DICT || container.kind == CT__J_NAMESPACE) {
        *out = ct__jdict_find(container.dict, item) != NULL;
        return NULL;
    }
    ct__jlist *items;
    CT_TRY(ct__jinja_items(r, line, container, &items));
    for (size_t i = 0; i < items->count && !*out; i++) *out = ct__jequal(items->items[i], item);
    return NULL;
}

static ct_status *compare_order(ct__jrender *r, int line, const char *operator, size_t length, ct__jvalue a,
                                ct__jvalue b, bool *out)
{
    double order;
    if (ct__jis_number(a) && ct__jis_number(b)) {
        order = ct__jas_double(a) - ct__jas_double(b);
    } else if (a.kind == CT__J_STRING && b.kind == CT__J_STRING) {
        size_t size = CT_MIN(a.string.length, b.string.length);
        order = memcmp(a.string.data, b.string.data, size);
        if (order == 0) order = (double)a.string.length - (double)b.string.length;
    } else {
        return ct__jerror(r, line, CT_CODE_INVALID_ARGUMENT, "%.*s does not work between %s and %s",
                          (int)length, operator, ct__jkind_name(a), ct__jkind_name(b));
    }
    bool or_equal = length == 2;
    *out = operator[0] == '<' ? (or_equal ? order <= 0 : order < 0) : (or_equal ? order >= 0 : order > 0);
    return NULL;
}

ct_status *ct__jinja_compare(ct__jrender *render, int line, const char *operator, size_t length, ct__jvalue a,
                             ct__jvalue b, bool *out)
{
    *out = false;
    switch (operator[0]) {
    case '=':
    case '!': *out = ct__jequal(a, b) == (operator[0] == '='); return NULL;
    case 'i': return contains(render, line, a, b, out);
    case 'n':
        CT_TRY(contains(render, line, a, b, out));
        *out = !*out;
        return NULL;
    default: return compare_order(render, line, operator, length, a, b, out);
    }
}

static ct_status *evaluate_compare(ct__jrender *r, const ct__jnode *node, ct__jframe *frame, ct__jvalue *out)
{
    ct__jvalue left, right;
    CT_TRY(evaluate(r, node->a, frame, &left));
    bool holds = true;
    for (size_t i = 0; i < node->items.count && holds; i += 2) {
        const ct__jnode *operator= node->items.items[i];
        CT_TRY(evaluate(r, node->items.items[i + 1], frame, &right));
        CT_TRY(ct__jinja_compare(r, node->line, operator->text, operator->length, left, right, &holds));
        left = right;
    }
    *out = ct__jbool(holds);
    return NULL;
}

static ct_status *evaluate_sign(ct__jrender *r, const ct__jnode *node, ct__jframe *frame, ct__jvalue *out)
{
    ct__jvalue value;
    CT_TRY(evaluate(r, node->a, frame, &value));
    CT_TRY(need_defined(r, node, value));
    if (!ct__jis_number(value))
        return ct__jerror(r, node->line, CT_CODE_INVALID_ARGUMENT, "a sign needs a number, found %s",
                          ct__jkind_name(value));
    int64_t sign = node->kind == CT__JN_NEGATE ? -1 : 1, integer;
    if (value.kind != CT__J_FLOAT && !__builtin_mul_overflow(as_int(value), sign, &integer))
        *out = ct__jint(integer);
    else
        *out = (ct__jvalue){.kind = CT__J_FLOAT, .real = ct__jas_double(value) * (double)sign};
    return NULL;
}

static ct_status *make_items(ct__jrender *r, const ct__jnode *node, ct__jframe *frame, ct__jvalue *out)
{
    if (node->kind == CT__JN_DICT) {
        *out = ct__jdict_new(r->arena);
        for (size_t i = 0; i < node->items.count; i += 2) {
            ct__jvalue key, value;
            CT_TRY(evaluate(r, node->items.items[i], frame, &key));
            CT_TRY(evaluate(r, node->items.items[i + 1], frame, &value));
            ct__jdict_set(r->arena, out->dict, key, value);
        }
        return NULL;
    }
    *out = ct__jlist_new(r->arena);
    if (node->kind == CT__JN_TUPLE) out->kind = CT__J_TUPLE;
    for (size_t i = 0; i < node->items.count; i++) {
        ct__jvalue item;
        CT_TRY(evaluate(r, node->items.items[i], frame, &item));
        ct__jlist_add(r->arena, out->list, item);
    }
    return NULL;
}

static ct_status *evaluate_items(ct__jrender *r, const ct__jnode *node, ct__jframe *frame, ct__jvalue *out)
{
    CT_TRY(make_items(r, node, frame, out));
    if (ct__jnesting(*out) <= MAX_NESTING) return NULL;
    return ct__jerror(r, node->line, CT_CODE_RESOURCE_EXHAUSTED, "lists are nested deeper than %d", MAX_NESTING);
}

static ct_status *evaluate_name(const ct__jnode *node, const ct__jframe *frame, ct__jvalue *out)
{
    const ct__jvalue *found = find_variable(frame, node->text, node->length);
    if (found)
        *out = *found;
    else if (ct__jinja_has_function(node->text, node->length))
        *out = (ct__jvalue){.kind = CT__J_FUNCTION, .string = {node->text, node->length}};
    else
        *out = ct__jundefined(node->text, node->length);
    return NULL;
}

static ct_status *evaluate_call_like(ct__jrender *r, const ct__jnode *node, ct__jframe *frame, ct__jvalue *out)
{
    ct__jvalue input;
    ct__jarguments arguments;
    bool holds = false;
    CT_TRY(evaluate(r, node->a, frame, &input));
    CT_TRY(evaluate_arguments(r, &node->items, frame, &arguments));
    if (node->kind == CT__JN_FILTER)
        return ct__jinja_filter(r, node->line, node->text, node->length, input, &arguments, out);
    CT_TRY(ct__jinja_test(r, node->line, node->text, node->length, input, &arguments, &holds));
    *out = ct__jbool(holds);
    return NULL;
}

static ct_status *evaluate_kind(ct__jrender *r, const ct__jnode *node, ct__jframe *frame, ct__jvalue *out)
{
    ct__jvalue value;
    switch (node->kind) {
    case CT__JN_CONST: *out = node->value; return NULL;
    case CT__JN_NAME: return evaluate_name(node, frame, out);
    case CT__JN_LIST:
    case CT__JN_TUPLE:
    case CT__JN_DICT: return evaluate_items(r, node, frame, out);
    case CT__JN_ATTRIBUTE: return evaluate_attribute(r, node, frame, out);
    case CT__JN_ITEM: return evaluate_item(r, node, frame, out);
    case CT__JN_SLICE: return evaluate_slice(r, node, frame, out);
    case CT__JN_CALL: return evaluate_call(r, node, frame, out);
    case CT__JN_FILTER:
    case CT__JN_TEST: return evaluate_call_like(r, node, frame, out);
    case CT__JN_NOT:
        CT_TRY(evaluate(r, node->a, frame, &value));
        *out = ct__jbool(!ct__jis_true(value));
        return NULL;
    case CT__JN_NEGATE:
    case CT__JN_POSITIVE: return evaluate_sign(r, node, frame, out);
    case CT__JN_AND:
    case CT__JN_OR:
        CT_TRY(evaluate(r, node->a, frame, out));
        if (ct__jis_true(*out) == (node->kind == CT__JN_OR)) return NULL;
        return evaluate(r, node->b, frame, out);
    case CT__JN_BINARY: {
        ct__jvalue right;
        CT_TRY(evaluate(r, node->a, frame, &value));
        CT_TRY(evaluate(r, node->b, frame, &right));
        return compute(r, node, value, right, out);
    }
    case CT__JN_COMPARE: return evaluate_compare(r, node, frame, out);
    case CT__JN_CONDITION:
        CT_TRY(evaluate(r, node->b, frame, &value));
        if (ct__jis_true(value)) return evaluate(r, node->a, frame, out);
        if (node->items.items[0]) return evaluate(r, node->items.items[0], frame, out);
        *out = ct__jundefined("the else of an inline if", 24);
        return NULL;
    default: CT_BUG("node %d is no expression", node->kind);
    }
}

static ct_status *step(ct__jrender *r, const ct__jnode *node)
{
    if (++r->steps > MAX_STEPS)
        return ct__jerror(r, node->line, CT_CODE_RESOURCE_EXHAUSTED, "the template does not come to an end");
    if (r->depth > MAX_DEPTH)
        return ct__jerror(r, node->line, CT_CODE_RESOURCE_EXHAUSTED, "nesting is deeper than %d", MAX_DEPTH);
    if (r->arena->total_bytes > 2 * (size_t)MAX_OUTPUT)
        return ct__jerror(r, node->line, CT_CODE_RESOURCE_EXHAUSTED, "the template takes more than %d MiB",
                          2 * (MAX_OUTPUT >> 20));
    return NULL;
}

static ct_status *evaluate(ct__jrender *r, const ct__jnode *node, ct__jframe *frame, ct__jvalue *out)
{
    *out = CT__JNONE;
    CT_TRY(step(r, node));
    r->depth++;
    ct_status *status = evaluate_kind(r, node, frame, out);
    r->depth--;
    return status;
}

/* ---- Statements ---- */

ct_status *ct__jinja_items(ct__jrender *render, int line, ct__jvalue value, ct__jlist **out_items)
{
    *out_items = ct__jlist_new(render->arena).list;
    switch (value.kind) {
    case CT__J_UNDEFINED: return NULL;
    case CT__J_LIST:
    case CT__J_TUPLE: *out_items = value.list; return NULL;
    case CT__J_DICT:
        for (size_t i = 0; i < value.dict->count; i++)
            ct__jlist_add(render->arena, *out_items, value.dict->pairs[i].key);
        return NULL;
    case CT__J_STRING: {
        size_t count = ct__jlength_utf8(value);
        const char *at = value.string.data, *end = at + value.string.length;
        for (size_t i = 0; i < count; i++) {
            ct__jvalue one = ct__jslice_utf8(ct__jstring(at, (size_t)(end - at)), 0, 1);
            ct__jlist_add(render->arena, *out_items, one);
            at += one.string.length;
        }
        return NULL;
    }
    default:
        return ct__jerror(render, line, CT_CODE_INVALID_ARGUMENT, "a value of type %s cannot be walked over",
                          ct__jkind_name(value));
    }
}

/* One name takes the value; several take its items. */
static ct_status *assign(ct__jrender *r, const ct__jnode *node, const ct__jnodes *targets, ct__jvalue value,
                         ct__jframe *frame)
{
    ct__jlist *items = NULL;
    if (targets->count > 1) {
        CT_TRY(ct__jinja_items(r, node->line, value, &items));
        if (items->count != targets->count)
            return ct__jerror(r, node->line, CT_CODE_INVALID_ARGUMENT, "%zu names cannot take %zu values",
                              targets->count, items->count);
    }
    for (size_t i = 0; i < targets->count; i++) {
        const ct__jnode *target = targets->items[i];
        ct__jvalue item = items ? items->items[i] : value, space;
        if (target->kind == CT__JN_NAME) {
            set_variable(r, frame, target, item);
            continue;
        }
        CT_TRY(evaluate(r, target->a, frame, &space));
        if (space.kind != CT__J_NAMESPACE)
            return ct__jerror(r, node->line, CT_CODE_INVALID_ARGUMENT,
                              "only attributes of a namespace can be set, but %.*s is %s", (int)target->a->length,
                              target->a->text, ct__jkind_name(space));
        ct__jdict_set(r->arena, space.dict, ct__jstring(target->text, target->length), item);
    }
    return NULL;
}

static void set_loop(ct__jrender *r, ct__jframe *frame, const ct__jlist *items, size_t index)
{
    ct__jvalue loop = ct__jdict_new(r->arena);
    const struct {
        const char *name;
        ct__jvalue value;
    } members[] = {
        {"index", ct__jint((int64_t)index + 1)},
        {"index0", ct__jint((int64_t)index)},
        {"revindex", ct__jint((int64_t)(items->count - index))},
        {"revindex0", ct__jint((int64_t)(items->count - index - 1))},
        {"first", ct__jbool(index == 0)},
        {"last", ct__jbool(index + 1 == items->count)},
        {"length", ct__jint((int64_t)items->count)},
        {"previtem", index ? items->items[index - 1] : ct__jundefined("previtem", 8)},
        {"nextitem", index + 1 < items->count ? items->items[index + 1] : ct__jundefined("nextitem", 8)},
    };
    for (size_t i = 0; i < CT_COUNT(members); i++)
        ct__jdict_set(r->arena, loop.dict, ct__jtext(members[i].name), members[i].value);
    loop.kind = CT__J_NAMESPACE; /* no methods, but attributes */
    ct__jdict_set(r->arena, &frame->variables, ct__jtext("loop"), loop);
}

static ct_status *run_for(ct__jrender *r, const ct__jnode *node, ct__jframe *frame)
{
    ct__jvalue over;
    ct__jlist *items;
    CT_TRY(evaluate(r, node->a, frame, &over));
    CT_TRY(ct__jinja_items(r, node->line, over, &items));
    if (node->b) { /* the loop counts only what passes */
        ct__jlist *passing = ct__jlist_new(r->arena).list;
        for (size_t i = 0; i < items->count; i++) {
            ct__jframe inner = {.outer = frame};
            ct__jvalue passes;
            CT_TRY(assign(r, node, &node->items, items->items[i], &inner));
            CT_TRY(evaluate(r, node->b, &inner, &passes));
            if (ct__jis_true(passes)) ct__jlist_add(r->arena, passing, items->items[i]);
        }
        items = passing;
    }
    for (size_t i = 0; i < items->count; i++) {
        ct__jframe *inner = CT_ARENA_NEW(r->arena, ct__jframe); /* a macro may keep it */
        inner->outer = frame;
        set_loop(r, inner, items, i);
        CT_TRY(assign(r, node, &node->items, items->items[i], inner));
        CT_TRY(ct__jinja_run(r, &node->body, inner));
        bool leave = r->flow == CT__JFLOW_BREAK;
        r->flow = CT__JFLOW_ON;
        if (leave) break;
    }
    return items->count ? NULL : ct__jinja_run(r, &node->otherwise, frame);
}

static ct_status *run_set(ct__jrender *r, const ct__jnode *node, ct__jframe *frame)
{
    ct__jvalue value;
    if (node->a) {
        CT_TRY(evaluate(r, node->a, frame, &value));
        return assign(r, node, &node->items, value, frame);
    }
    ct_str text, *outer = r->out;
    ct_str_init(&text);
    r->out = &text;
    ct__jframe *inner = CT_ARENA_NEW(r->arena, ct__jframe);
    inner->outer = frame;
    ct_status *status = ct__jinja_run(r, &node->body, inner);
    r->out = outer;
    value = ct__jstring(ct_arena_strndup(r->arena, text.data, text.length), text.length);
    ct_str_deinit(&text);
    return status ? status : assign(r, node, &node->items, value, frame);
}

/* What is inside is the assistant's; only text that goes straight to the output has a place there. */
static ct_status *run_generation(ct__jrender *r, const ct__jnode *node, ct__jframe *frame)
{
    ct_str *out = r->out;
    size_t begin = out->length;
    CT_TRY(ct__jinja_run(r, &node->body, frame));
    r->generated = ct_realloc(r->generated, (r->num_generated + 1) * sizeof(*r->generated));
    r->generated[r->num_generated++] = (ct_token_range){begin - r->out_begin, out->length - r->out_begin};
    return NULL;
}

static ct_status *run_node(ct__jrender *r, const ct__jnode *node, ct__jframe *frame)
{
    ct__jvalue value;
    switch (node->kind) {
    case CT__JN_TEXT: ct_str_append_n(r->out, node->text, node->length); return NULL;
    case CT__JN_OUTPUT:
        CT_TRY(evaluate(r, node->a, frame, &value));
        ct__jprint(value, r->out);
        return ct__jinja_check_size(r, node->line, (int64_t)r->out->length);
    case CT__JN_IF:
        CT_TRY(evaluate(r, node->a, frame, &value));
        return ct__jinja_run(r, ct__jis_true(value) ? &node->body : &node->otherwise, frame);
    case CT__JN_FOR: return run_for(r, node, frame);
    case CT__JN_SET: return run_set(r, node, frame);
    case CT__JN_MACRO: {
        ct__jmacro *macro = CT_ARENA_NEW(r->arena, ct__jmacro);
        *macro = (ct__jmacro){node, frame};
        set_variable(r, frame, node, (ct__jvalue){.kind = CT__J_MACRO, .macro = macro});
        return NULL;
    }
    case CT__JN_BREAK: r->flow = CT__JFLOW_BREAK; return NULL;
    case CT__JN_CONTINUE: r->flow = CT__JFLOW_CONTINUE; return NULL;
    case CT__JN_GENERATION: return run_generation(r, node, frame);
    default: CT_BUG("node %d is no statement", node->kind);
    }
}

ct_status *ct__jinja_run(ct__jrender *render, const ct__jnodes *nodes, ct__jframe *frame)
{
    render->depth++;
    for (size_t i = 0; i < nodes->count && render->flow == CT__JFLOW_ON; i++) {
        CT_TRY(step(render, nodes->items[i]));
        CT_TRY(run_node(render, nodes->items[i], frame));
    }
    render->depth--;
    return NULL;
}
