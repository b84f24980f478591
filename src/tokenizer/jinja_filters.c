/* Filters and tests, a row each in the tables at the end of their halves of this file. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "tokenizer/jinja.h"

/* What a filter gets beside its input. */
typedef struct call {
    ct__jrender *render;
    int line;
    const char *name;
    const ct__jarguments *arguments;
} call;

#define bad_call(call, ...) ct__jerror((call)->render, (call)->line, CT_CODE_INVALID_ARGUMENT, __VA_ARGS__)

typedef ct_status *filter_function(const call *c, ct__jvalue input, ct__jvalue *out);

static ct__jvalue kept(const call *c, ct_str *text)
{
    ct__jvalue result = ct__jstring(ct_arena_strndup(c->render->arena, text->data, text->length), text->length);
    ct_str_deinit(text);
    return result;
}

static ct__jvalue printed(const call *c, ct__jvalue value)
{
    if (value.kind == CT__J_STRING) return value;
    ct_str text;
    ct_str_init(&text);
    ct__jprint(value, &text);
    return kept(c, &text);
}

static ct_status *need_items(const call *c, ct__jvalue input, ct__jlist **out)
{
    return ct__jinja_items(c->render, c->line, input, out);
}

/* A string filter is the method of the same name on str(input). */
static ct_status *by_method(const call *c, ct__jvalue input, ct__jvalue *out)
{
    ct__jvalue *text = CT_ARENA_NEW(c->render->arena, ct__jvalue);
    *text = printed(c, input);
    const char *name = !strcmp(c->name, "trim") ? "strip" : c->name;
    return ct__jinja_method(c->render, c->line, text, name, strlen(name), c->arguments, out);
}

static ct_status *filter_length(const call *c, ct__jvalue input, ct__jvalue *out)
{
    if (input.kind == CT__J_STRING) {
        *out = ct__jint((int64_t)ct__jlength_utf8(input));
        return NULL;
    }
    if (input.kind == CT__J_DICT) {
        *out = ct__jint((int64_t)input.dict->count);
        return NULL;
    }
    ct__jlist *items;
    CT_TRY(need_items(c, input, &items));
    *out = ct__jint((int64_t)items->count);
    return NULL;
}

/* transformers' own: tojson(ensure_ascii, indent, separators, sort_keys) */
static ct_status *filter_tojson(const call *c, ct__jvalue input, ct__jvalue *out)
{
    ct__jjson_opts opts = {.indent = -1};
    ct__jvalue indent = ct__jargument(c->arguments, 1, "indent"),
               separators = ct__jargument(c->arguments, 2, "separators");
    ct__jvalue ascii = ct__jargument(c->arguments, 0, "ensure_ascii");
    opts.ensure_ascii = ct__jis_true(ascii);
    opts.sort_keys = ct__jis_true(ct__jargument(c->arguments, 3, "sort_keys"));
    opts.item_separator = opts.key_separator = ct__jundefined("", 0);
    if (indent.kind == CT__J_INT) opts.indent = CT_MAX(0, CT_MIN(indent.integer, 64));
    if (ct__jis_list(separators) && separators.list->count == 2) {
        opts.item_separator = separators.list->items[0];
        opts.key_separator = separators.list->items[1];
    }
    ct_str text;
    ct_str_init(&text);
    ct__jvalue bad;
    bool good = ct__jjson(input, &opts, &text, &bad);
    *out = kept(c, &text);
    return good ? NULL : bad_call(c, "a value of type %s cannot be written as JSON", ct__jkind_name(bad));
}

static ct_status *filter_string(const call *c, ct__jvalue input, ct__jvalue *out)
{
    *out = printed(c, input);
    return NULL;
}

static ct_status *filter_same(const call *c, ct__jvalue input, ct__jvalue *out)
{
    (void)c;
    *out = input;
    return NULL;
}

static ct_status *filter_list(const call *c, ct__jvalue input, ct__jvalue *out)
{
    ct__jlist *items;
    CT_TRY(need_items(c, input, &items));
    *out = (ct__jvalue){.kind = CT__J_LIST, .list = items};
    return NULL;
}

static ct_status *filter_edge(const call *c, ct__jvalue input, ct__jvalue *out)
{
    ct__jlist *items;
    CT_TRY(need_items(c, input, &items));
    bool first = !strcmp(c->name, "first");
    *out = items->count ? items->items[first ? 0 : items->count - 1] : ct__jundefined(c->name, strlen(c->name));
    return NULL;
}

static ct_status *filter_reverse(const call *c, ct__jvalue input, ct__jvalue *out)
{
    ct__jlist *items;
    CT_TRY(need_items(c, input, &items));
    *out = ct__jlist_new(c->render->arena);
    for (size_t i = items->count; i-- > 0;) ct__jlist_add(c->render->arena, out->list, items->items[i]);
    if (input.kind != CT__J_STRING) return NULL;
    ct_str text;
    ct_str_init(&text);
    for (size_t i = 0; i < out->list->count; i++) ct__jprint(out->list->items[i], &text);
    *out = kept(c, &text);
    return NULL;
}

/* attribute "a.b" of a value; integers index. */
static ct__jvalue attribute_of(const call *c, ct__jvalue value, ct__jvalue attribute)
{
    if (attribute.kind == CT__J_INT) {
        bool inside = ct__jis_list(value) && attribute.integer >= 0 && (size_t)attribute.integer < value.list->count;
        return inside ? value.list->items[attribute.integer] : ct__jundefined("item", 4);
    }
    const char *at = attribute.string.data, *end = at + attribute.string.length;
    while (at < end) {
        const char *dot = memchr(at, '.', (size_t)(end - at));
        size_t size = (size_t)((dot ? dot : end) - at);
        value = ct__jinja_attribute(c->render, value, at, size);
        at += size + (dot != NULL);
    }
    return value;
}

static ct_status *filter_join(const call *c, ct__jvalue input, ct__jvalue *out)
{
    ct__jvalue separator = ct__jargument(c->arguments, 0, "d"), attribute = ct__jargument(c->arguments, 1, "attribute");
    ct__jlist *items;
    CT_TRY(need_items(c, input, &items));
    ct_str text;
    ct_str_init(&text);
    for (size_t i = 0; i < items->count; i++) {
        if (i) ct__jprint(separator, &text);
        bool whole = attribute.kind != CT__J_STRING && attribute.kind != CT__J_INT;
        ct__jprint(whole ? items->items[i] : attribute_of(c, items->items[i], attribute), &text);
    }
    *out = kept(c, &text);
    return ct__jinja_check_size(c->render, c->line, (int64_t)out->string.length);
}

static ct_status *filter_default(const call *c, ct__jvalue input, ct__jvalue *out)
{
    ct__jvalue value = ct__jargument(c->arguments, 0, "default_value");
    bool also_false = ct__jis_true(ct__jargument(c->arguments, 1, "boolean"));
    *out = input;
    if (input.kind == CT__J_UNDEFINED || (also_false && !ct__jis_true(input)))
        *out = value.kind == CT__J_UNDEFINED ? ct__jstring("", 0) : value;
    return NULL;
}

static ct_status *filter_items(const call *c, ct__jvalue input, ct__jvalue *out)
{
    *out = ct__jlist_new(c->render->arena);
    if (input.kind == CT__J_UNDEFINED) return NULL;
    if (input.kind != CT__J_DICT) return bad_call(c, "items needs a dict, found %s", ct__jkind_name(input));
    for (size_t i = 0; i < input.dict->count; i++) {
        ct__jvalue pair = ct__jlist_new(c->render->arena);
        pair.kind = CT__J_TUPLE;
        ct__jlist_add(c->render->arena, pair.list, input.dict->pairs[i].key);
        ct__jlist_add(c->render->arena, pair.list, input.dict->pairs[i].value);
        ct__jlist_add(c->render->arena, out->list, pair);
    }
    return NULL;
}

static int compare_pairs(const void *a, const void *b)
{
    const ct__jvalue x = ((const ct__jvalue *)a)->list->items[0], y = ((const ct__jvalue *)b)->list->items[0];
    if (x.kind != CT__J_STRING || y.kind != CT__J_STRING) return 0;
    for (size_t i = 0; i < x.string.length && i < y.string.length; i++) { /* without regard to case, as Jinja */
        int order = tolower((unsigned char)x.string.data[i]) - tolower((unsigned char)y.string.data[i]);
        if (order) return order;
    }
    return (x.string.length > y.string.length) - (x.string.length < y.string.length);
}

static ct_status *filter_dictsort(const call *c, ct__jvalue input, ct__jvalue *out)
{
    CT_TRY(filter_items(c, input, out));
    if (c->arguments->count || c->arguments->num_keywords)
        return ct__jerror(c->render, c->line, CT_CODE_UNIMPLEMENTED, "arguments of dictsort are not supported");
    if (out->list->count) qsort(out->list->items, out->list->count, sizeof(*out->list->items), compare_pairs);
    return NULL;
}

static ct_status *filter_number(const call *c, ct__jvalue input, ct__jvalue *out)
{
    bool to_int = !strcmp(c->name, "int");
    ct__jvalue fallback = ct__jargument(c->arguments, 0, "default");
    *out = fallback.kind != CT__J_UNDEFINED ? fallback
           : to_int                         ? ct__jint(0)
                                            : (ct__jvalue){.kind = CT__J_FLOAT, .real = 0};
    double number;
    if (ct__jis_number(input)) {
        if (to_int && input.kind != CT__J_FLOAT) {
            *out = ct__jint(input.kind == CT__J_BOOL ? input.boolean : input.integer);
            return NULL;
        }
        number = ct__jas_double(input);
    } else if (input.kind == CT__J_STRING && input.string.length && input.string.length < 64) {
        char *text = ct_arena_strndup(c->render->arena, input.string.data, input.string.length), *end;
        number = strtod(text, &end);
        while (*end == ' ' || *end == '\n') end++;
        if (*end || end == text) return NULL;
    } else {
        return NULL;
    }
    if (!to_int)
        *out = (ct__jvalue){.kind = CT__J_FLOAT, .real = number};
    else if (fabs(number) < 9e18)
        *out = ct__jint((int64_t)number);
    return NULL;
}

static ct_status *filter_round(const call *c, ct__jvalue input, ct__jvalue *out)
{
    ct__jvalue digits = ct__jargument(c->arguments, 0, "precision");
    if (!ct__jis_number(input)) return bad_call(c, "round needs a number, found %s", ct__jkind_name(input));
    if (c->arguments->count > 1 || c->arguments->num_keywords)
        return ct__jerror(c->render, c->line, CT_CODE_UNIMPLEMENTED, "a method of round is not supported");
    double scale = pow(10, digits.kind == CT__J_INT ? (double)CT_MAX(-15, CT_MIN(digits.integer, 15)) : 0);
    *out = (ct__jvalue){.kind = CT__J_FLOAT, .real = nearbyint(ct__jas_double(input) * scale) / scale};
    return NULL;
}

static ct_status *filter_abs(const call *c, ct__jvalue input, ct__jvalue *out)
{
    if (!ct__jis_number(input)) return bad_call(c, "abs needs a number, found %s", ct__jkind_name(input));
    *out = input;
    if (input.kind == CT__J_FLOAT)
        out->real = fabs(input.real);
    else
        *out = ct__jint(llabs(CT_MAX(input.kind == CT__J_BOOL ? input.boolean : input.integer, -INT64_MAX)));
    return NULL;
}

/* indent(width=4, first=False, blank=False) */
static ct_status *filter_indent(const call *c, ct__jvalue input, ct__jvalue *out)
{
    ct__jvalue width = ct__jargument(c->arguments, 0, "width"), text = printed(c, input);
    bool first = ct__jis_true(ct__jargument(c->arguments, 1, "first"));
    bool blank = ct__jis_true(ct__jargument(c->arguments, 2, "blank"));
    ct_str indent, result;
    ct_str_init(&indent);
    ct_str_init(&result);
    if (width.kind == CT__J_STRING)
        ct__jprint(width, &indent);
    else
        for (int64_t i = 0; i < (width.kind == CT__J_INT ? CT_MIN(width.integer, 1000) : 4); i++)
            ct_str_append_char(&indent, ' ');
    const char *at = text.string.data, *end = at + text.string.length;
    for (bool is_first = true; at < end || is_first; is_first = false) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t size = (size_t)((newline ? newline + 1 : end) - at);
        bool is_blank = size == 0 || (size == 1 && newline);
        if (is_first ? first : blank || !is_blank) ct_str_append_n(&result, indent.data, indent.length);
        ct_str_append_n(&result, at, size);
        at += size;
    }
    ct_str_deinit(&indent);
    *out = kept(c, &result);
    return ct__jinja_check_size(c->render, c->line, (int64_t)out->string.length);
}

static ct__jarguments rest_of(const ct__jarguments *arguments, size_t count)
{
    ct__jarguments rest = *arguments;
    count = CT_MIN(count, rest.count);
    rest.values += count;
    rest.count -= count;
    return rest;
}

static bool name_of(ct__jvalue value, const char **name, size_t *length)
{
    *name = value.string.data;
    *length = value.string.length;
    return value.kind == CT__J_STRING;
}

/* map(attribute="x", default=y) or map("filter", arguments...) */
static ct_status *filter_map(const call *c, ct__jvalue input, ct__jvalue *out)
{
    ct__jvalue attribute = ct__jargument(c->arguments, SIZE_MAX, "attribute");
    ct__jvalue fallback = ct__jargument(c->arguments, SIZE_MAX, "default");
    ct__jvalue filter = ct__jargument(c->arguments, 0, "filter");
    ct__jlist *items;
    CT_TRY(need_items(c, ct__jis_true(input) ? input : ct__jlist_new(c->render->arena), &items));
    const char *name;
    size_t length;
    bool by_attribute = attribute.kind == CT__J_STRING || attribute.kind == CT__J_INT;
    if (!by_attribute && !name_of(filter, &name, &length)) return bad_call(c, "map needs an attribute or a filter");
    ct__jarguments rest = rest_of(c->arguments, 1);
    *out = ct__jlist_new(c->render->arena);
    for (size_t i = 0; i < items->count; i++) {
        ct__jvalue item;
        if (by_attribute) {
            item = attribute_of(c, items->items[i], attribute);
            if (item.kind == CT__J_UNDEFINED && fallback.kind != CT__J_UNDEFINED) item = fallback;
        } else {
            CT_TRY(ct__jinja_filter(c->render, c->line, name, length, items->items[i], &rest, &item));
        }
        ct__jlist_add(c->render->arena, out->list, item);
    }
    return NULL;
}

/* select(test...), reject, selectattr(attribute, test...), rejectattr */
static ct_status *filter_select(const call *c, ct__jvalue input, ct__jvalue *out)
{
    bool wanted = c->name[0] == 's', by_attribute = strlen(c->name) > 6;
    ct__jvalue attribute = ct__jargument(c->arguments, 0, "attribute");
    ct__jvalue test = ct__jargument(c->arguments, by_attribute ? 1 : 0, "test");
    if (by_attribute && attribute.kind != CT__J_STRING && attribute.kind != CT__J_INT)
        return bad_call(c, "%s needs an attribute", c->name);
    ct__jarguments rest = rest_of(c->arguments, by_attribute ? 2 : 1);
    ct__jlist *items;
    CT_TRY(need_items(c, ct__jis_true(input) ? input : ct__jlist_new(c->render->arena), &items));
    *out = ct__jlist_new(c->render->arena);
    for (size_t i = 0; i < items->count; i++) {
        ct__jvalue value = by_attribute ? attribute_of(c, items->items[i], attribute) : items->items[i];
        const char *name;
        size_t length;
        bool holds = ct__jis_true(value);
        if (name_of(test, &name, &length))
            CT_TRY(ct__jinja_test(c->render, c->line, name, length, value, &rest, &holds));
        if (holds == wanted) ct__jlist_add(c->render->arena, out->list, items->items[i]);
    }
    return NULL;
}

static ct_status *filter_unique(const call *c, ct__jvalue input, ct__jvalue *out)
{
    ct__jlist *items;
    CT_TRY(need_items(c, input, &items));
    if (c->arguments->count || c->arguments->num_keywords)
        return ct__jerror(c->render, c->line, CT_CODE_UNIMPLEMENTED, "arguments of unique are not supported");
    *out = ct__jlist_new(c->render->arena);
    for (size_t i = 0; i < items->count; i++) {
        bool known = false;
        for (size_t j = 0; j < out->list->count && !known; j++)
            known = ct__jequal(out->list->items[j], items->items[i]);
        if (!known) ct__jlist_add(c->render->arena, out->list, items->items[i]);
    }
    return NULL;
}

ct_status *ct__jinja_filter(ct__jrender *render, int line, const char *name, size_t length, ct__jvalue input,
                            const ct__jarguments *arguments, ct__jvalue *out)
{
    static const struct {
        const char *name;
        filter_function *run;
    } filters[] = {
        {"abs", filter_abs},           {"capitalize", by_method},   {"count", filter_length},
        {"d", filter_default},         {"default", filter_default}, {"dictsort", filter_dictsort},
        {"first", filter_edge},        {"float", filter_number},    {"indent", filter_indent},
        {"int", filter_number},        {"items", filter_items},     {"join", filter_join},
        {"last", filter_edge},         {"length", filter_length},   {"list", filter_list},
        {"lower", by_method},          {"map", filter_map},         {"reject", filter_select},
        {"rejectattr", filter_select}, {"replace", by_method},      {"reverse", filter_reverse},
        {"round", filter_round},       {"safe", filter_same},       {"select", filter_select},
        {"selectattr", filter_select}, {"string", filter_string},   {"title", by_method},
        {"tojson", filter_tojson},     {"trim", by_method},         {"unique", filter_unique},
        {"upper", by_method},
    };
    *out = CT__JNONE;
    for (size_t i = 0; i < CT_COUNT(filters); i++) {
        if (strlen(filters[i].name) != length || memcmp(filters[i].name, name, length) != 0) continue;
        const call c = {render, line, filters[i].name, arguments};
        return filters[i].run(&c, input, out);
    }
    return ct__jerror(render, line, CT_CODE_UNIMPLEMENTED, "the filter \"%.*s\" is not supported", (int)length, name);
}

/* ---- Tests ---- */

static bool is_any(const char *name, size_t length, const char *const *names)
{
    for (; *names; names++)
        if (strlen(*names) == length && !memcmp(*names, name, length)) return true;
    return false;
}
#define IS(...) is_any(name, length, (const char *const[]){__VA_ARGS__, NULL})

static ct_status *test_number(ct__jrender *render, int line, const char *name, size_t length, ct__jvalue input,
                              ct__jvalue argument, bool *out)
{
    int64_t by = name[0] == 'd' ? (argument.kind == CT__J_INT ? argument.integer : 0) : 2;
    if (input.kind != CT__J_INT || !by)
        return ct__jerror(render, line, CT_CODE_INVALID_ARGUMENT, "the test \"%.*s\" needs integers, found %s",
                          (int)length, name, ct__jkind_name(input));
    bool divides = by == -1 || input.integer % by == 0;
    *out = name[0] == 'o' ? !divides : divides;
    return NULL;
}

static bool test_kind(const char *name, size_t length, ct__jvalue input, bool *out)
{
    bool is_text = input.kind == CT__J_STRING, is_list = ct__jis_list(input), is_dict = input.kind == CT__J_DICT;
    if (IS("defined"))
        *out = input.kind != CT__J_UNDEFINED;
    else if (IS("undefined"))
        *out = input.kind == CT__J_UNDEFINED;
    else if (IS("none"))
        *out = input.kind == CT__J_NONE;
    else if (IS("string"))
        *out = is_text;
    else if (IS("number"))
        *out = ct__jis_number(input);
    else if (IS("integer"))
        *out = input.kind == CT__J_INT;
    else if (IS("float"))
        *out = input.kind == CT__J_FLOAT;
    else if (IS("boolean"))
        *out = input.kind == CT__J_BOOL;
    else if (IS("true", "false"))
        *out = input.kind == CT__J_BOOL && input.boolean == (name[0] == 't');
    else if (IS("mapping"))
        *out = is_dict;
    else if (IS("iterable", "sequence")) /* Jinja's undefined can be walked over and has a length */
        *out = is_text || is_list || is_dict || input.kind == CT__J_UNDEFINED;
    else if (IS("callable"))
        *out = input.kind >= CT__J_FUNCTION;
    else
        return false;
    return true;
}

ct_status *ct__jinja_test(ct__jrender *render, int line, const char *name, size_t length, ct__jvalue input,
                          const ct__jarguments *arguments, bool *out)
{
    static const struct {
        const char *const names[4];
        const char *operator;
    } compares[] = {
        {{"eq", "equalto", "==", NULL}, "=="},   {{"ne", "!=", NULL, NULL}, "!="},
        {{"lt", "lessthan", "<", NULL}, "<"},    {{"le", "<=", NULL, NULL}, "<="},
        {{"gt", "greaterthan", ">", NULL}, ">"}, {{"ge", ">=", NULL, NULL}, ">="},
        {{"in", NULL, NULL, NULL}, "in"},        {{"sameas", NULL, NULL, NULL}, "=="},
    };
    *out = false;
    if (test_kind(name, length, input, out)) return NULL;
    ct__jvalue argument = ct__jargument(arguments, 0, "");
    for (size_t i = 0; i < CT_COUNT(compares); i++) {
        if (!is_any(name, length, compares[i].names)) continue;
        if (!arguments->count)
            return ct__jerror(render, line, CT_CODE_INVALID_ARGUMENT, "the test \"%.*s\" needs an argument",
                              (int)length, name);
        return ct__jinja_compare(render, line, compares[i].operator, strlen(compares[i].operator), input, argument,
                                 out);
    }
    if (IS("even", "odd", "divisibleby")) return test_number(render, line, name, length, input, argument, out);
    if (IS("lower", "upper") && input.kind == CT__J_STRING) {
        for (size_t i = 0; i < input.string.length; i++) {
            int c = (unsigned char)input.string.data[i];
            if (name[0] == 'l' ? isupper(c) : islower(c)) return NULL;
            *out = *out || isalpha(c);
        }
        return NULL;
    }
    return ct__jerror(render, line, CT_CODE_UNIMPLEMENTED, "the test \"%.*s\" is not supported", (int)length, name);
}
