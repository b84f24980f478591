/* JSON reading over yyjson. A value is a pointer to its node; where a value is, is found only when an error needs it,
 * by walking down from the root, since nodes lie in the document in the order of the text.
 */
#include "formats/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yyjson.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"

struct ct_json {
    yyjson_doc *doc;
    char *path;
};

static yyjson_val *node_of(ct_json_value value)
{
    return (yyjson_val *)(uintptr_t)value.node;
}

static ct_json_value value_of(const ct_json *json, const yyjson_val *node)
{
    return (ct_json_value){.json = json, .node = node};
}

ct_status *ct_json_parse(const char *text, size_t length, const char *path, ct_json **out_json)
{
    *out_json = NULL;
    yyjson_read_err error;
    yyjson_doc *doc =
        yyjson_read_opts((char *)(uintptr_t)(length ? text : ""), length, YYJSON_READ_NOFLAG, NULL, &error);
    if (!doc) {
        size_t line = 1, column = 1, character = 0;
        if (length) yyjson_locate_pos(text, length, error.pos, &line, &column, &character);
        return ct_error(CT_CODE_INVALID_ARGUMENT, "%s:%zu:%zu: not valid JSON: %s", path, line, column, error.msg);
    }
    ct_json *json = ct_alloc_zeroed(1, sizeof(*json));
    json->doc = doc;
    json->path = ct_strdup(path);
    *out_json = json;
    return NULL;
}

ct_status *ct_json_read(const char *path, ct_json **out_json)
{
    *out_json = NULL;
    char *text;
    size_t length;
    CT_TRY(ct_file_read(path, &text, &length));
    ct_status *status = ct_json_parse(text, length, path, out_json);
    free(text);
    return status;
}

void ct_json_free(ct_json *json)
{
    if (!json) return;
    yyjson_doc_free(json->doc);
    free(json->path);
    free(json);
}

ct_json_value ct_json_root(const ct_json *json)
{
    return value_of(json, yyjson_doc_get_root(json->doc));
}

ct_json_type ct_json_type_of(ct_json_value value)
{
    switch (yyjson_get_type(node_of(value))) {
    case YYJSON_TYPE_NULL: return CT_JSON_NULL;
    case YYJSON_TYPE_BOOL: return CT_JSON_BOOL;
    case YYJSON_TYPE_NUM: return CT_JSON_NUMBER;
    case YYJSON_TYPE_STR: return CT_JSON_STRING;
    case YYJSON_TYPE_ARR: return CT_JSON_ARRAY;
    case YYJSON_TYPE_OBJ: return CT_JSON_OBJECT;
    default: return CT_JSON_ABSENT;
    }
}

const char *ct_json_type_name(ct_json_type type)
{
    static const char *const names[] = {"absent", "null", "bool", "number", "string", "array", "object"};
    CT_ASSERT((size_t)type < CT_COUNT(names));
    return names[type];
}

bool ct_json_is_absent(ct_json_value value)
{
    return !value.node;
}

bool ct_json_is_null(ct_json_value value)
{
    return !value.node || yyjson_is_null(node_of(value));
}

ct_json_value ct_json_get(ct_json_value object, const char *key)
{
    return value_of(object.json, yyjson_obj_get(node_of(object), key));
}

ct_json_value ct_json_at(ct_json_value array, size_t index)
{
    return value_of(array.json, yyjson_arr_get(node_of(array), index));
}

size_t ct_json_size(ct_json_value value)
{
    return yyjson_is_ctn(node_of(value)) ? yyjson_get_len(node_of(value)) : 0;
}

/* ---- Iteration. ---- */

ct_json_iter ct_json_iterate(ct_json_value value)
{
    yyjson_val *node = node_of(value);
    ct_json_iter iter = {.parent = value, .num_left = ct_json_size(value)};
    if (iter.num_left) iter.next = unsafe_yyjson_get_first(node);
    return iter;
}

bool ct_json_next(ct_json_iter *iter)
{
    if (!iter->num_left) return false;
    iter->index = iter->started ? iter->index + 1 : 0;
    iter->started = true;
    iter->num_left--;
    yyjson_val *node = (yyjson_val *)(uintptr_t)iter->next;
    if (yyjson_is_obj(node_of(iter->parent))) {
        iter->key = unsafe_yyjson_get_str(node);
        iter->key_length = unsafe_yyjson_get_len(node);
        node++; /* a pair's value follows its key */
    }
    iter->value = value_of(iter->parent.json, node);
    iter->next = unsafe_yyjson_get_next(node);
    return true;
}

/* ---- Errors. ---- */

/* Appends the way from the root to node, "a.b[2]"; the document's nodes are in order, so each container's child that
 * holds node is the one that node lies before the end of. */
static void append_place(ct_str *text, const ct_json *json, const yyjson_val *target)
{
    ct_json_value at = ct_json_root(json);
    while (at.node != target) {
        bool found = false;
        for (ct_json_iter iter = ct_json_iterate(at); !found && ct_json_next(&iter);) {
            if ((uintptr_t)target >= (uintptr_t)iter.next) continue;
            if (iter.key)
                ct_str_printf(text, "%s%s", at.node == yyjson_doc_get_root(json->doc) ? "" : ".", iter.key);
            else
                ct_str_printf(text, "[%zu]", iter.index);
            at = iter.value;
            found = true;
        }
        CT_ASSERT(found);
    }
}

static ct_str place_of(ct_json_value value, const char *key)
{
    ct_str text;
    ct_str_init(&text);
    ct_str_printf(&text, "%s: ", value.json->path);
    size_t prefix = text.length;
    if (value.node) append_place(&text, value.json, value.node);
    if (key) ct_str_printf(&text, "%s%s", text.length > prefix ? "." : "", key);
    if (text.length == prefix) ct_str_append(&text, value.node ? "the document" : "a value");
    return text;
}

char *ct_json_where(ct_json_value value)
{
    ct_str text = place_of(value, NULL);
    return ct_str_release(&text);
}

static void describe(ct_str *text, ct_json_value value)
{
    yyjson_val *node = node_of(value);
    switch (ct_json_type_of(value)) {
    case CT_JSON_ABSENT: ct_str_append(text, "absent"); break;
    case CT_JSON_NULL: ct_str_append(text, "null"); break;
    case CT_JSON_BOOL: ct_str_append(text, yyjson_get_bool(node) ? "true" : "false"); break;
    case CT_JSON_STRING: ct_str_printf(text, "the string \"%.60s\"", yyjson_get_str(node)); break;
    case CT_JSON_ARRAY: ct_str_printf(text, "an array of %zu", yyjson_get_len(node)); break;
    case CT_JSON_OBJECT: ct_str_append(text, "an object"); break;
    case CT_JSON_NUMBER:
        if (yyjson_is_uint(node))
            ct_str_printf(text, "%llu", (unsigned long long)yyjson_get_uint(node));
        else if (yyjson_is_sint(node))
            ct_str_printf(text, "%lld", (long long)yyjson_get_sint(node));
        else
            ct_str_printf(text, "%.17g", yyjson_get_real(node));
        break;
    }
}

static ct_status *wrong_type(ct_json_value value, const char *wanted)
{
    ct_str text = place_of(value, NULL);
    ct_str_printf(&text, " must be %s, but is ", wanted);
    describe(&text, value);
    ct_status *status = ct_error(CT_CODE_INVALID_ARGUMENT, "%s", text.data);
    ct_str_deinit(&text);
    return status;
}

static ct_status *missing(ct_json_value object, const char *key)
{
    if (object.node && ct_json_type_of(object) != CT_JSON_OBJECT) return wrong_type(object, "an object");
    ct_str text = place_of(object, key);
    ct_status *status = ct_error(CT_CODE_NOT_FOUND, "%s is required, but missing", text.data);
    ct_str_deinit(&text);
    return status;
}

/* ---- Typed values. ---- */

ct_status *ct_json_as_bool(ct_json_value value, bool *out_value)
{
    if (!yyjson_is_bool(node_of(value))) return wrong_type(value, "true or false");
    *out_value = yyjson_get_bool(node_of(value));
    return NULL;
}

ct_status *ct_json_as_int(ct_json_value value, int64_t *out_value)
{
    yyjson_val *node = node_of(value);
    if (yyjson_is_sint(node) || (yyjson_is_uint(node) && yyjson_get_uint(node) <= INT64_MAX)) {
        *out_value = yyjson_get_sint(node);
        return NULL;
    }
    if (yyjson_is_real(node)) {
        double real = yyjson_get_real(node);
        if (fabs(real) <= 9007199254740992.0 && floor(real) == real) { /* 2^53: beyond it a double skips integers */
            *out_value = (int64_t)real;
            return NULL;
        }
    }
    return wrong_type(value, "an integer of 64 bits");
}

ct_status *ct_json_as_double(ct_json_value value, double *out_value)
{
    if (!yyjson_is_num(node_of(value))) return wrong_type(value, "a number");
    *out_value = yyjson_get_num(node_of(value));
    return NULL;
}

bool ct_json_is_integer(ct_json_value value)
{
    yyjson_val *node = node_of(value);
    return yyjson_is_sint(node) || (yyjson_is_uint(node) && yyjson_get_uint(node) <= INT64_MAX);
}

ct_status *ct_json_as_string(ct_json_value value, const char **out_value)
{
    yyjson_val *node = node_of(value);
    if (!yyjson_is_str(node)) return wrong_type(value, "a string");
    if (strlen(yyjson_get_str(node)) != yyjson_get_len(node))
        return wrong_type(value, "a string without zero characters");
    *out_value = yyjson_get_str(node);
    return NULL;
}

ct_status *ct_json_as_text(ct_json_value value, const char **out_text, size_t *out_length)
{
    yyjson_val *node = node_of(value);
    if (!yyjson_is_str(node)) return wrong_type(value, "a string");
    *out_text = yyjson_get_str(node);
    *out_length = yyjson_get_len(node);
    return NULL;
}

ct_status *ct_json_as_object(ct_json_value value, ct_json_value *out_value)
{
    if (!yyjson_is_obj(node_of(value))) return wrong_type(value, "an object");
    *out_value = value;
    return NULL;
}

ct_status *ct_json_as_array(ct_json_value value, ct_json_value *out_value)
{
    if (!yyjson_is_arr(node_of(value))) return wrong_type(value, "an array");
    *out_value = value;
    return NULL;
}

/* The optional and the required member of each type: one rule, six types. */
#define MEMBER_OPTIONAL(name, type)                                                                                    \
    ct_status *ct_json_get_##name(ct_json_value object, const char *key, type *value)                                  \
    {                                                                                                                  \
        ct_json_value member = ct_json_get(object, key);                                                               \
        return ct_json_is_null(member) ? NULL : ct_json_as_##name(member, value);                                      \
    }
#define MEMBER_REQUIRED(name, type)                                                                                    \
    ct_status *ct_json_need_##name(ct_json_value object, const char *key, type *out_value)                             \
    {                                                                                                                  \
        ct_json_value member = ct_json_get(object, key);                                                               \
        if (ct_json_is_absent(member)) return missing(object, key);                                                    \
        return ct_json_as_##name(member, out_value);                                                                   \
    }

MEMBER_OPTIONAL(bool, bool)
MEMBER_OPTIONAL(int, int64_t)
MEMBER_OPTIONAL(double, double)
MEMBER_OPTIONAL(string, const char *)
MEMBER_REQUIRED(bool, bool)
MEMBER_REQUIRED(int, int64_t)
MEMBER_REQUIRED(double, double)
MEMBER_REQUIRED(string, const char *)
MEMBER_REQUIRED(object, ct_json_value)
MEMBER_REQUIRED(array, ct_json_value)
