/* Methods of strings and dicts, and functions. Upper and lower case are those of ASCII and of single characters; what
 * Python does beyond that (one letter becoming two) no template asks for.
 */
#include <string.h>
#include <time.h>

#include <utf8proc.h>

#include "base/alloc.h"
#include "tokenizer/jinja.h"
#include "tokenizer/unicode.h"

typedef struct call {
    ct__jrender *render;
    int line;
    const char *name;
    ct__jvalue self;
    const ct__jarguments *arguments;
} call;

#define bad_call(call, ...) ct__jerror((call)->render, (call)->line, CT_CODE_INVALID_ARGUMENT, __VA_ARGS__)

typedef ct_status *method_function(const call *c, ct__jvalue *out);

static ct__jvalue kept(const call *c, ct_str *text)
{
    ct__jvalue result = ct__jstring(ct_arena_strndup(c->render->arena, text->data, text->length), text->length);
    ct_str_deinit(text);
    return result;
}

static ct_status *need_string(const call *c, size_t index, const char *name, ct__jvalue *out)
{
    *out = ct__jargument(c->arguments, index, name);
    if (out->kind == CT__J_STRING) return NULL;
    return bad_call(c, "%s needs a string, found %s", c->name, ct__jkind_name(*out));
}

/* The character at text[at], as a string. */
static ct__jvalue character(ct__jvalue text, size_t at)
{
    size_t size = ct__utf8_size((unsigned char)text.string.data[at]);
    return ct__jstring(text.string.data + at, CT_MIN(size, text.string.length - at));
}

static bool is_stripped(ct__jvalue one, ct__jvalue set)
{
    if (set.kind == CT__J_STRING) return memmem(set.string.data, set.string.length, one.string.data, one.string.length);
    size_t size;
    uint32_t point = ct__utf8_decode((const unsigned char *)one.string.data, &size);
    /* Python's white space is Unicode's and four controls. */
    return (ct__unicode_class(ct__unicode_get(), point) & CT__SPACE) || (point >= 0x1c && point <= 0x1f);
}

static ct_status *method_strip(const call *c, ct__jvalue *out)
{
    ct__jvalue set = ct__jargument(c->arguments, 0, "chars"), text = c->self;
    if (set.kind != CT__J_STRING && set.kind != CT__J_UNDEFINED && set.kind != CT__J_NONE)
        return bad_call(c, "%s needs a string, found %s", c->name, ct__jkind_name(set));
    size_t begin = 0, end = text.string.length;
    while (c->name[0] != 'r' && begin < end) {
        ct__jvalue one = character(text, begin);
        if (!is_stripped(one, set)) break;
        begin += one.string.length;
    }
    while (c->name[0] != 'l' && begin < end) {
        const unsigned char *last = ct__utf8_back((const unsigned char *)text.string.data + end);
        size_t at = (size_t)(last - (const unsigned char *)text.string.data);
        if (!is_stripped(ct__jstring(text.string.data + at, end - at), set)) break;
        end = at;
    }
    *out = ct__jstring(text.string.data + begin, end - begin);
    return NULL;
}

static ct_status *method_case(const call *c, ct__jvalue *out)
{
    ct_str text;
    ct_str_init(&text);
    bool begin = true; /* of a word (title), of the text (capitalize) */
    size_t size;
    const unsigned char *data = (const unsigned char *)c->self.string.data;
    for (size_t at = 0; at < c->self.string.length; at += size) {
        utf8proc_int32_t point = (utf8proc_int32_t)ct__utf8_decode(data + at, &size);
        bool upper = c->name[0] == 'u' || (c->name[0] != 'l' && begin);
        utf8proc_int32_t changed = upper ? utf8proc_toupper(point) : utf8proc_tolower(point);
        if (c->name[0] == 'c')
            begin = false;
        else
            begin = !(ct__unicode_class(ct__unicode_get(), (uint32_t)point) & CT__LETTER);
        char bytes[4];
        ct_str_append_n(&text, bytes, ct__utf8_encode((uint32_t)changed, bytes));
    }
    *out = kept(c, &text);
    return NULL;
}

static void add_part(const call *c, ct__jvalue list, const char *data, size_t length)
{
    ct__jlist_add(c->render->arena, list.list, ct__jstring(data, length));
}

/* split() without a separator: at runs of white space, none at the ends. */
static void split_words(const call *c, int64_t limit, ct__jvalue list)
{
    ct__jvalue text = c->self;
    for (size_t at = 0; at < text.string.length;) {
        ct__jvalue one = character(text, at);
        if (is_stripped(one, CT__JNONE)) {
            at += one.string.length;
            continue;
        }
        size_t end = at;
        if (limit >= 0 && (int64_t)list.list->count == limit) { /* the rest, without spaces at its end */
            end = text.string.length;
        } else {
            while (end < text.string.length && !is_stripped(character(text, end), CT__JNONE))
                end += character(text, end).string.length;
        }
        add_part(c, list, text.string.data + at, end - at);
        at = end;
    }
}

static ct_status *method_split(const call *c, ct__jvalue *out)
{
    ct__jvalue separator = ct__jargument(c->arguments, 0, "sep"), most = ct__jargument(c->arguments, 1, "maxsplit");
    int64_t limit = most.kind == CT__J_INT ? most.integer : -1;
    *out = ct__jlist_new(c->render->arena);
    bool from_right = c->name[0] == 'r';
    if (separator.kind == CT__J_UNDEFINED || separator.kind == CT__J_NONE) {
        if (from_right && limit >= 0)
            return ct__jerror(c->render, c->line, CT_CODE_UNIMPLEMENTED, "rsplit without a separator is not supported");
        split_words(c, limit, *out);
        return NULL;
    }
    if (separator.kind != CT__J_STRING || !separator.string.length)
        return bad_call(c, "%s needs a separator that is not empty", c->name);
    const char *data = c->self.string.data, *end = data + c->self.string.length, *found;
    size_t size = separator.string.length;
    int64_t num_found = 0;
    for (const char *at = data; (found = memmem(at, (size_t)(end - at), separator.string.data, size));
         at = found + size)
        num_found++;
    int64_t skip = from_right && limit >= 0 ? CT_MAX(0, num_found - limit) : 0;
    if (from_right) limit = -1;
    const char *from = data;
    for (const char *at = data; limit && (found = memmem(at, (size_t)(end - at), separator.string.data, size));
         at = found + size) {
        if (skip-- > 0) continue;
        add_part(c, *out, from, (size_t)(found - from));
        from = found + size;
        limit--;
    }
    add_part(c, *out, from, (size_t)(end - from));
    return NULL;
}

static ct_status *method_splitlines(const call *c, ct__jvalue *out)
{
    *out = ct__jlist_new(c->render->arena);
    const char *at = c->self.string.data, *end = at + c->self.string.length;
    while (at < end) {
        size_t size = 0;
        while (at + size < end && at[size] != '\n' && at[size] != '\r') size++;
        add_part(c, *out, at, size);
        at += size;
        if (at < end) at += at[0] == '\r' && at + 1 < end && at[1] == '\n' ? 2 : 1;
    }
    return NULL;
}

static bool affix_fits(ct__jvalue text, ct__jvalue affix, bool at_end)
{
    size_t length = text.string.length, size = affix.string.length;
    return affix.kind == CT__J_STRING && size <= length &&
           !memcmp(text.string.data + (at_end ? length - size : 0), affix.string.data, size);
}

static ct_status *method_affix(const call *c, ct__jvalue *out)
{
    ct__jvalue affix = ct__jargument(c->arguments, 0, "prefix");
    bool at_end = c->name[0] == 'e', fits = false;
    if (affix.kind == CT__J_TUPLE)
        for (size_t i = 0; i < affix.list->count; i++) fits = fits || affix_fits(c->self, affix.list->items[i], at_end);
    else
        CT_TRY(need_string(c, 0, "prefix", &affix));
    *out = ct__jbool(fits || affix_fits(c->self, affix, at_end));
    return NULL;
}

static ct_status *method_remove(const call *c, ct__jvalue *out)
{
    ct__jvalue affix;
    bool at_end = !strcmp(c->name, "removesuffix");
    CT_TRY(need_string(c, 0, "prefix", &affix));
    *out = c->self;
    if (!affix_fits(c->self, affix, at_end)) return NULL;
    size_t size = affix.string.length;
    *out = ct__jstring(c->self.string.data + (at_end ? 0 : size), c->self.string.length - size);
    return NULL;
}

static ct_status *method_replace(const call *c, ct__jvalue *out)
{
    ct__jvalue old, new;
    CT_TRY(need_string(c, 0, "old", &old));
    CT_TRY(need_string(c, 1, "new", &new));
    ct__jvalue most = ct__jargument(c->arguments, 2, "count");
    int64_t limit = most.kind == CT__J_INT ? most.integer : -1;
    if (!old.string.length)
        return ct__jerror(c->render, c->line, CT_CODE_UNIMPLEMENTED, "replacing the empty string is not supported");
    ct_str text;
    ct_str_init(&text);
    const char *at = c->self.string.data, *end = at + c->self.string.length, *found;
    while (limit && (found = memmem(at, (size_t)(end - at), old.string.data, old.string.length))) {
        ct_str_append_n(&text, at, (size_t)(found - at));
        ct_str_append_n(&text, new.string.data, new.string.length);
        at = found + old.string.length;
        limit--;
    }
    ct_str_append_n(&text, at, (size_t)(end - at));
    *out = kept(c, &text);
    return ct__jinja_check_size(c->render, c->line, (int64_t)out->string.length);
}

static ct_status *method_find(const call *c, ct__jvalue *out)
{
    ct__jvalue needle;
    CT_TRY(need_string(c, 0, "sub", &needle));
    const char *data = c->self.string.data, *end = data + c->self.string.length, *found = NULL, *next = data;
    size_t size = needle.string.length;
    int64_t count = 0;
    while ((next = memmem(next, (size_t)(end - next), needle.string.data, size))) {
        if (!found || c->name[0] == 'r') found = next;
        count++;
        if (next == end) break;
        next += c->name[0] == 'c' && size ? size : 1;
    }
    if (c->name[0] == 'c')
        *out = ct__jint(count);
    else
        *out = ct__jint(found ? (int64_t)ct__jlength_utf8(ct__jstring(data, (size_t)(found - data))) : -1);
    return NULL;
}

static ct_status *method_join(const call *c, ct__jvalue *out)
{
    ct__jlist *items;
    CT_TRY(ct__jinja_items(c->render, c->line, ct__jargument(c->arguments, 0, "iterable"), &items));
    ct_str text;
    ct_str_init(&text);
    for (size_t i = 0; i < items->count; i++) {
        if (i) ct__jprint(c->self, &text);
        ct__jprint(items->items[i], &text);
    }
    *out = kept(c, &text);
    return ct__jinja_check_size(c->render, c->line, (int64_t)out->string.length);
}

static ct_status *method_is_digits(const call *c, ct__jvalue *out)
{
    bool all = c->self.string.length > 0;
    for (size_t i = 0; i < c->self.string.length; i++)
        all = all && c->self.string.data[i] >= '0' && c->self.string.data[i] <= '9';
    *out = ct__jbool(all);
    return NULL;
}

/* keys, values, items */
static ct_status *method_view(const call *c, ct__jvalue *out)
{
    *out = ct__jlist_new(c->render->arena);
    for (size_t i = 0; i < c->self.dict->count; i++) {
        const ct__jpair *pair = &c->self.dict->pairs[i];
        ct__jvalue item = c->name[0] == 'v' ? pair->value : pair->key;
        if (c->name[0] == 'i') {
            item = ct__jlist_new(c->render->arena);
            item.kind = CT__J_TUPLE;
            ct__jlist_add(c->render->arena, item.list, pair->key);
            ct__jlist_add(c->render->arena, item.list, pair->value);
        }
        ct__jlist_add(c->render->arena, out->list, item);
    }
    return NULL;
}

static ct_status *method_get(const call *c, ct__jvalue *out)
{
    const ct__jvalue *found = ct__jdict_find(c->self.dict, ct__jargument(c->arguments, 0, "key"));
    *out = found ? *found : ct__jargument(c->arguments, 1, "default");
    if (out->kind == CT__J_UNDEFINED && !found) *out = CT__JNONE;
    return NULL;
}

static const struct {
    const char *name;
    ct__jkind kind;
    method_function *run;
} methods[] = {
    {"capitalize", CT__J_STRING, method_case},
    {"count", CT__J_STRING, method_find},
    {"endswith", CT__J_STRING, method_affix},
    {"find", CT__J_STRING, method_find},
    {"isdigit", CT__J_STRING, method_is_digits},
    {"join", CT__J_STRING, method_join},
    {"lower", CT__J_STRING, method_case},
    {"lstrip", CT__J_STRING, method_strip},
    {"removeprefix", CT__J_STRING, method_remove},
    {"removesuffix", CT__J_STRING, method_remove},
    {"replace", CT__J_STRING, method_replace},
    {"rfind", CT__J_STRING, method_find},
    {"rsplit", CT__J_STRING, method_split},
    {"rstrip", CT__J_STRING, method_strip},
    {"split", CT__J_STRING, method_split},
    {"splitlines", CT__J_STRING, method_splitlines},
    {"startswith", CT__J_STRING, method_affix},
    {"strip", CT__J_STRING, method_strip},
    {"title", CT__J_STRING, method_case},
    {"upper", CT__J_STRING, method_case},
    {"get", CT__J_DICT, method_get},
    {"items", CT__J_DICT, method_view},
    {"keys", CT__J_DICT, method_view},
    {"values", CT__J_DICT, method_view},
};

static size_t find_method(ct__jkind kind, const char *name, size_t length)
{
    for (size_t i = 0; i < CT_COUNT(methods); i++)
        if (methods[i].kind == kind && strlen(methods[i].name) == length && !memcmp(methods[i].name, name, length))
            return i;
    return SIZE_MAX;
}

bool ct__jinja_has_method(ct__jvalue value, const char *name, size_t length)
{
    return find_method(value.kind, name, length) != SIZE_MAX;
}

ct_status *ct__jinja_method(ct__jrender *render, int line, const ct__jvalue *self, const char *name, size_t length,
                            const ct__jarguments *arguments, ct__jvalue *out)
{
    *out = CT__JNONE;
    size_t index = find_method(self->kind, name, length);
    if (index == SIZE_MAX)
        return ct__jerror(render, line, CT_CODE_UNIMPLEMENTED, "the method \"%.*s\" of %s is not supported",
                          (int)length, name, ct__jkind_name(*self));
    const call c = {render, line, methods[index].name, *self, arguments};
    return methods[index].run(&c, out);
}

/* ---- Functions ---- */

static ct_status *function_raise(const call *c, ct__jvalue *out)
{
    (void)out;
    ct__jvalue message = ct__jargument(c->arguments, 0, "message");
    ct_str text;
    ct_str_init(&text);
    ct__jprint(message, &text);
    ct_status *status = bad_call(c, "the template refuses the conversation: %s", text.data);
    ct_str_deinit(&text);
    return status;
}

static ct_status *function_now(const call *c, ct__jvalue *out)
{
    ct__jvalue format;
    CT_TRY(need_string(c, 0, "format", &format));
    time_t now = c->render->now_seconds ? (time_t)c->render->now_seconds : time(NULL);
    struct tm parts;
    gmtime_r(&now, &parts);
    char text[256];
    char *format_text = ct_arena_strndup(c->render->arena, format.string.data, format.string.length);
    size_t size = strftime(text, sizeof(text), format_text, &parts);
    *out = ct__jstring(ct_arena_strndup(c->render->arena, text, size), size);
    return NULL;
}

static ct_status *function_range(const call *c, ct__jvalue *out)
{
    int64_t parts[3] = {0, 0, 1};
    if (!c->arguments->count || c->arguments->count > 3) return bad_call(c, "range takes one to three integers");
    for (size_t i = 0; i < c->arguments->count; i++) {
        if (c->arguments->values[i].kind != CT__J_INT)
            return bad_call(c, "range needs integers, found %s", ct__jkind_name(c->arguments->values[i]));
        parts[c->arguments->count == 1 ? 1 : i] = c->arguments->values[i].integer;
    }
    int64_t begin = parts[0], end = parts[1], step = parts[2];
    if (!step) return bad_call(c, "range needs a step that is not 0");
    double count = ((double)end - (double)begin) / (double)step;
    if (count > 1e6) /* Jinja's sandbox has a limit, too */
        return ct__jerror(c->render, c->line, CT_CODE_RESOURCE_EXHAUSTED,
                          "a range of more than a million is too large");
    *out = ct__jlist_new(c->render->arena);
    for (int64_t i = begin; step > 0 ? i < end : i > end;) {
        ct__jlist_add(c->render->arena, out->list, ct__jint(i));
        if (__builtin_add_overflow(i, step, &i)) break;
    }
    return NULL;
}

static ct_status *function_dict(const call *c, ct__jvalue *out)
{
    *out = ct__jdict_new(c->render->arena);
    if (c->arguments->count) {
        ct__jvalue from = c->arguments->values[0];
        if (c->arguments->count > 1 || (from.kind != CT__J_DICT && from.kind != CT__J_NAMESPACE))
            return ct__jerror(c->render, c->line, CT_CODE_UNIMPLEMENTED,
                              "%s() of anything but one dict is not supported", c->name);
        for (size_t i = 0; i < from.dict->count; i++)
            ct__jdict_set(c->render->arena, out->dict, from.dict->pairs[i].key, from.dict->pairs[i].value);
    }
    for (size_t i = 0; i < c->arguments->num_keywords; i++)
        ct__jdict_set(c->render->arena, out->dict, c->arguments->keywords[i].key, c->arguments->keywords[i].value);
    if (c->name[0] == 'n') out->kind = CT__J_NAMESPACE;
    return NULL;
}

static const struct {
    const char *name;
    method_function *run;
} functions[] = {
    {"dict", function_dict},   {"namespace", function_dict},   {"raise_exception", function_raise},
    {"range", function_range}, {"strftime_now", function_now},
};

static size_t find_function(const char *name, size_t length)
{
    for (size_t i = 0; i < CT_COUNT(functions); i++)
        if (strlen(functions[i].name) == length && !memcmp(functions[i].name, name, length)) return i;
    return SIZE_MAX;
}

bool ct__jinja_has_function(const char *name, size_t length)
{
    return find_function(name, length) != SIZE_MAX;
}

ct_status *ct__jinja_function(ct__jrender *render, int line, const char *name, size_t length,
                              const ct__jarguments *arguments, ct__jvalue *out)
{
    *out = CT__JNONE;
    size_t index = find_function(name, length);
    CT_ASSERT(index != SIZE_MAX);
    const call c = {render, line, functions[index].name, CT__JNONE, arguments};
    return functions[index].run(&c, out);
}
