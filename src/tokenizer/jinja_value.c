/* Values, and how Python prints them: str(), repr(), json.dumps(). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "tokenizer/jinja.h"
#include "tokenizer/unicode.h"

ct__jvalue ct__jbool(bool value)
{
    return (ct__jvalue){.kind = CT__J_BOOL, .boolean = value};
}

ct__jvalue ct__jint(int64_t value)
{
    return (ct__jvalue){.kind = CT__J_INT, .integer = value};
}

ct__jvalue ct__jstring(const char *data, size_t length)
{
    return (ct__jvalue){.kind = CT__J_STRING, .string = {data, length}};
}

ct__jvalue ct__jtext(const char *text)
{
    return ct__jstring(text, strlen(text));
}

ct__jvalue ct__jundefined(const char *name, size_t length)
{
    return (ct__jvalue){.kind = CT__J_UNDEFINED, .string = {name, length}};
}

ct__jvalue ct__jlist_new(ct_arena *arena)
{
    return (ct__jvalue){.kind = CT__J_LIST, .list = CT_ARENA_NEW(arena, ct__jlist)};
}

ct__jvalue ct__jdict_new(ct_arena *arena)
{
    return (ct__jvalue){.kind = CT__J_DICT, .dict = CT_ARENA_NEW(arena, ct__jdict)};
}

void ct__jlist_add(ct_arena *arena, ct__jlist *list, ct__jvalue item)
{
    if (list->count == list->capacity) {
        list->capacity = CT_MAX(list->capacity * 2, (size_t)4);
        ct__jvalue *items = CT_ARENA_ARRAY(arena, ct__jvalue, list->capacity);
        if (list->count) memcpy(items, list->items, list->count * sizeof(*items));
        list->items = items;
    }
    list->items[list->count++] = item;
    list->nesting = CT_MAX(list->nesting, ct__jnesting(item) + 1);
}

const ct__jvalue *ct__jdict_find(const ct__jdict *dict, ct__jvalue key)
{
    for (size_t i = 0; i < dict->count; i++)
        if (ct__jequal(dict->pairs[i].key, key)) return &dict->pairs[i].value;
    return NULL;
}

const ct__jvalue *ct__jdict_find_text(const ct__jdict *dict, const char *key, size_t length)
{
    return ct__jdict_find(dict, ct__jstring(key, length));
}

int ct__jnesting(ct__jvalue value)
{
    return ct__jis_list(value) ? value.list->nesting : value.kind == CT__J_DICT ? value.dict->nesting : 0;
}

void ct__jdict_set(ct_arena *arena, ct__jdict *dict, ct__jvalue key, ct__jvalue value)
{
    dict->nesting = CT_MAX(dict->nesting, CT_MAX(ct__jnesting(key), ct__jnesting(value)) + 1);
    for (size_t i = 0; i < dict->count; i++) {
        if (!ct__jequal(dict->pairs[i].key, key)) continue;
        dict->pairs[i].value = value;
        return;
    }
    if (dict->count == dict->capacity) {
        dict->capacity = CT_MAX(dict->capacity * 2, (size_t)4);
        ct__jpair *pairs = CT_ARENA_ARRAY(arena, ct__jpair, dict->capacity);
        if (dict->count) memcpy(pairs, dict->pairs, dict->count * sizeof(*pairs));
        dict->pairs = pairs;
    }
    dict->pairs[dict->count++] = (ct__jpair){key, value};
}

bool ct__jis_list(ct__jvalue value)
{
    return value.kind == CT__J_LIST || value.kind == CT__J_TUPLE;
}

bool ct__jis_number(ct__jvalue value)
{
    return value.kind == CT__J_BOOL || value.kind == CT__J_INT || value.kind == CT__J_FLOAT;
}

double ct__jas_double(ct__jvalue value)
{
    return value.kind == CT__J_FLOAT ? value.real : value.kind == CT__J_BOOL ? value.boolean : (double)value.integer;
}

bool ct__jis_true(ct__jvalue value)
{
    switch (value.kind) {
    case CT__J_UNDEFINED:
    case CT__J_NONE: return false;
    case CT__J_BOOL: return value.boolean;
    case CT__J_INT: return value.integer != 0;
    case CT__J_FLOAT: return value.real != 0;
    case CT__J_STRING: return value.string.length > 0;
    case CT__J_LIST:
    case CT__J_TUPLE: return value.list->count > 0;
    case CT__J_DICT: return value.dict->count > 0;
    default: return true;
    }
}

static bool lists_equal(const ct__jlist *a, const ct__jlist *b)
{
    if (a->count != b->count) return false;
    for (size_t i = 0; i < a->count; i++)
        if (!ct__jequal(a->items[i], b->items[i])) return false;
    return true;
}

static bool dicts_equal(const ct__jdict *a, const ct__jdict *b)
{
    if (a->count != b->count) return false;
    for (size_t i = 0; i < a->count; i++) {
        const ct__jvalue *other = ct__jdict_find(b, a->pairs[i].key);
        if (!other || !ct__jequal(a->pairs[i].value, *other)) return false;
    }
    return true;
}

bool ct__jequal(ct__jvalue a, ct__jvalue b)
{
    if (ct__jis_number(a) && ct__jis_number(b)) {
        if (a.kind == CT__J_INT && b.kind == CT__J_INT) return a.integer == b.integer;
        return ct__jas_double(a) == ct__jas_double(b);
    }
    if (a.kind != b.kind) return false;
    switch (a.kind) {
    case CT__J_UNDEFINED:
    case CT__J_NONE: return true;
    case CT__J_STRING:
        return a.string.length == b.string.length && !memcmp(a.string.data, b.string.data, a.string.length);
    case CT__J_LIST:
    case CT__J_TUPLE: return a.list == b.list || lists_equal(a.list, b.list);
    case CT__J_DICT: return a.dict == b.dict || dicts_equal(a.dict, b.dict);
    case CT__J_NAMESPACE: return a.dict == b.dict;
    default: return false;
    }
}

bool ct__jis_text(ct__jvalue value, const char *text)
{
    return value.kind == CT__J_STRING && value.string.length == strlen(text) &&
           !memcmp(value.string.data, text, value.string.length);
}

const char *ct__jkind_name(ct__jvalue value)
{
    static const char *const names[] = {"undefined", "None", "bool",      "int",      "float",  "str",  "list",
                                        "tuple",     "dict", "namespace", "function", "method", "macro"};
    return names[value.kind];
}

size_t ct__jlength_utf8(ct__jvalue string)
{
    size_t count = 0;
    for (size_t i = 0; i < string.string.length; i++) count += ((unsigned char)string.string.data[i] & 0xc0) != 0x80;
    return count;
}

ct__jvalue ct__jslice_utf8(ct__jvalue string, size_t begin, size_t end)
{
    const char *at = string.string.data, *limit = at + string.string.length, *first = at;
    for (size_t i = 0; i < end && at < limit; i++) {
        if (i == begin) first = at;
        at += CT_MIN(ct__utf8_size((unsigned char)*at), (size_t)(limit - at));
    }
    return begin >= end ? ct__jstring("", 0) : ct__jstring(first, (size_t)(at - first));
}

/* The shortest digits that read back equal, as Python writes them. */
static void print_double(double value, ct_str *str)
{
    if (isnan(value) || isinf(value)) {
        ct_str_append(str, isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
        return;
    }
    char text[40];
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*e", digits - 1, value);
        if (strtod(text, NULL) == value) break;
    }
    char *exponent_text = strchr(text, 'e');
    int exponent = atoi(exponent_text + 1);
    int digits = (int)(exponent_text - text) - (text[0] == '-') - (strchr(text, '.') != NULL);
    if (exponent < -4 || exponent >= 16) {
        *exponent_text = 0;
        ct_str_printf(str, "%se%c%02d", text, exponent < 0 ? '-' : '+', abs(exponent));
    } else if (exponent >= digits - 1) {
        ct_str_printf(str, "%.1f", value);
    } else {
        ct_str_printf(str, "%.*f", digits - 1 - exponent, value);
    }
}

static void repr_string(ct__jvalue value, ct_str *str)
{
    const char *data = value.string.data;
    size_t length = value.string.length;
    char quote = length && memchr(data, '\'', length) && !memchr(data, '"', length) ? '"' : '\'';
    ct_str_append_char(str, quote);
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)data[i];
        if (c == '\n' || c == '\r' || c == '\t')
            ct_str_append(str, c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t");
        else if (c == '\\' || c == quote)
            ct_str_printf(str, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            ct_str_printf(str, "\\x%02x", c);
        else
            ct_str_append_char(str, data[i]);
    }
    ct_str_append_char(str, quote);
}

static void repr_list(const ct__jvalue *value, ct_str *str)
{
    bool is_tuple = value->kind == CT__J_TUPLE;
    ct_str_append_char(str, is_tuple ? '(' : '[');
    for (size_t i = 0; i < value->list->count; i++) {
        if (i) ct_str_append(str, ", ");
        ct__jrepr(value->list->items[i], str);
    }
    if (is_tuple && value->list->count == 1) ct_str_append_char(str, ',');
    ct_str_append_char(str, is_tuple ? ')' : ']');
}

static void repr_dict(const ct__jdict *dict, ct_str *str)
{
    ct_str_append_char(str, '{');
    for (size_t i = 0; i < dict->count; i++) {
        if (i) ct_str_append(str, ", ");
        ct__jrepr(dict->pairs[i].key, str);
        ct_str_append(str, ": ");
        ct__jrepr(dict->pairs[i].value, str);
    }
    ct_str_append_char(str, '}');
}

void ct__jrepr(ct__jvalue value, ct_str *str)
{
    switch (value.kind) {
    case CT__J_UNDEFINED: ct_str_append(str, "Undefined"); break;
    case CT__J_NONE: ct_str_append(str, "None"); break;
    case CT__J_BOOL: ct_str_append(str, value.boolean ? "True" : "False"); break;
    case CT__J_INT: ct_str_printf(str, "%lld", (long long)value.integer); break;
    case CT__J_FLOAT: print_double(value.real, str); break;
    case CT__J_STRING: repr_string(value, str); break;
    case CT__J_LIST:
    case CT__J_TUPLE: repr_list(&value, str); break;
    case CT__J_DICT: repr_dict(value.dict, str); break;
    default: ct_str_printf(str, "<%s>", ct__jkind_name(value)); break;
    }
}

void ct__jprint(ct__jvalue value, ct_str *str)
{
    if (value.kind == CT__J_UNDEFINED) return;
    if (value.kind == CT__J_STRING)
        ct_str_append_n(str, value.string.data, value.string.length);
    else
        ct__jrepr(value, str);
}

/* ---- JSON ---- */

static void json_string(ct__jvalue value, bool ensure_ascii, ct_str *str)
{
    const unsigned char *p = (const unsigned char *)value.string.data, *end = p + value.string.length;
    ct_str_append_char(str, '"');
    while (p < end) {
        size_t size = 1;
        uint32_t point = *p < 0x80 || !ensure_ascii ? *p : ct__utf8_decode(p, &size);
        static const char letters[] = "\"\\\n\r\t\b\f", meanings[] = "\"\\nrtbf";
        const char *known = point < 0x80 && point ? strchr(letters, (int)point) : NULL;
        if (known)
            ct_str_printf(str, "\\%c", meanings[known - letters]);
        else if (point > 0xffff)
            ct_str_printf(str, "\\u%04x\\u%04x", 0xd800 + ((point - 0x10000) >> 10),
                          0xdc00 + ((point - 0x10000) & 0x3ff));
        else if (point < 0x20 || (ensure_ascii && point >= 0x7f))
            ct_str_printf(str, point == 0x7f ? "\x7f" : "\\u%04x", point);
        else
            ct_str_append_char(str, (char)*p);
        p += size;
    }
    ct_str_append_char(str, '"');
}

typedef struct json_printer {
    const ct__jjson_opts *opts;
    ct_str *str;
    ct__jvalue *bad;
} json_printer;

static void json_separator(const json_printer *printer, int depth, bool is_first, bool is_last)
{
    const ct__jjson_opts *opts = printer->opts;
    if (!is_first && !is_last) {
        if (opts->item_separator.kind == CT__J_STRING)
            ct__jprint(opts->item_separator, printer->str);
        else
            ct_str_append(printer->str, opts->indent >= 0 ? "," : ", ");
    }
    if (opts->indent < 0) return;
    ct_str_append_char(printer->str, '\n');
    for (int64_t i = 0; i < opts->indent * (is_last ? depth - 1 : depth); i++) ct_str_append_char(printer->str, ' ');
}

static int compare_keys(const void *a, const void *b)
{
    const ct__jpair *x = a, *y = b;
    size_t size = CT_MIN(x->key.string.length, y->key.string.length);
    int order = memcmp(x->key.string.data, y->key.string.data, size);
    if (order) return order;
    return (x->key.string.length > y->key.string.length) - (x->key.string.length < y->key.string.length);
}

static bool json_value(const json_printer *printer, ct__jvalue value, int depth);

static bool json_dict(const json_printer *printer, const ct__jdict *dict, int depth)
{
    ct__jpair *pairs = ct_alloc((dict->count + 1) * sizeof(*pairs));
    if (dict->count) memcpy(pairs, dict->pairs, dict->count * sizeof(*pairs));
    bool good = true;
    for (size_t i = 0; i < dict->count && good; i++)
        if (!(good = pairs[i].key.kind == CT__J_STRING)) *printer->bad = pairs[i].key;
    if (good && printer->opts->sort_keys) qsort(pairs, dict->count, sizeof(*pairs), compare_keys);
    ct_str_append_char(printer->str, '{');
    for (size_t i = 0; i < dict->count && good; i++) {
        json_separator(printer, depth + 1, i == 0, false);
        json_string(pairs[i].key, printer->opts->ensure_ascii, printer->str);
        if (printer->opts->key_separator.kind == CT__J_STRING)
            ct__jprint(printer->opts->key_separator, printer->str);
        else
            ct_str_append(printer->str, ": ");
        good = json_value(printer, pairs[i].value, depth + 1);
    }
    if (dict->count) json_separator(printer, depth + 1, false, true);
    ct_str_append_char(printer->str, '}');
    free(pairs);
    return good;
}

static bool json_value(const json_printer *printer, ct__jvalue value, int depth)
{
    ct_str *str = printer->str;
    switch (value.kind) {
    case CT__J_NONE: ct_str_append(str, "null"); return true;
    case CT__J_BOOL: ct_str_append(str, value.boolean ? "true" : "false"); return true;
    case CT__J_INT: ct__jrepr(value, str); return true;
    case CT__J_FLOAT:
        if (isnan(value.real))
            ct_str_append(str, "NaN");
        else if (isinf(value.real))
            ct_str_append(str, value.real < 0 ? "-Infinity" : "Infinity");
        else
            ct__jrepr(value, str);
        return true;
    case CT__J_STRING: json_string(value, printer->opts->ensure_ascii, str); return true;
    case CT__J_LIST:
    case CT__J_TUPLE:
        ct_str_append_char(str, '[');
        for (size_t i = 0; i < value.list->count; i++) {
            json_separator(printer, depth + 1, i == 0, false);
            if (!json_value(printer, value.list->items[i], depth + 1)) return false;
        }
        if (value.list->count) json_separator(printer, depth + 1, false, true);
        ct_str_append_char(str, ']');
        return true;
    case CT__J_DICT: return json_dict(printer, value.dict, depth);
    default: *printer->bad = value; return false;
    }
}

bool ct__jjson(ct__jvalue value, const ct__jjson_opts *opts, ct_str *str, ct__jvalue *out_bad)
{
    json_printer printer = {opts, str, out_bad};
    return json_value(&printer, value, 0);
}
