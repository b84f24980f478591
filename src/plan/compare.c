/* Both sides as JSON, walked together. */
#include "plan/compare.h"

#include <stdlib.h>
#include <string.h>

/* A leaf as people read it. */
static void put_leaf(ct_json_value value, ct_str *out)
{
    double number;
    bool flag;
    const char *text;
    switch (ct_json_type_of(value)) {
    case CT_JSON_NUMBER:
        if (!ct_json_as_double(value, &number)) ct_str_printf(out, "%.6g", number);
        return;
    case CT_JSON_BOOL:
        if (!ct_json_as_bool(value, &flag)) ct_str_append(out, flag ? "true" : "false");
        return;
    case CT_JSON_STRING:
        if (!ct_json_as_string(value, &text)) ct_str_append(out, text);
        return;
    case CT_JSON_ABSENT:
    case CT_JSON_NULL:
    case CT_JSON_ARRAY:
    case CT_JSON_OBJECT: break;
    }
    ct_str_append_char(out, '-');
}

/* What a line says of itself: who compiled when is no difference of programs. */
static bool is_told(const char *path)
{
    static const char *const left_out[] = {"name", "was_there", "entry", "prediction.program"};
    for (size_t i = 0; i < CT_COUNT(left_out); i++)
        if (!strcmp(path, left_out[i])) return false;
    return true;
}

static void put_line(const char *path, ct_json_value a, ct_json_value b, ct_str *out)
{
    ct_str left, right;
    ct_str_init(&left);
    ct_str_init(&right);
    put_leaf(a, &left);
    put_leaf(b, &right);
    if (strcmp(left.data, right.data) && is_told(path)) {
        ct_str_printf(out, "  %-40s %16s %16s", path, left.data, right.data);
        double x, y;
        if (ct_json_type_of(a) == CT_JSON_NUMBER && ct_json_type_of(b) == CT_JSON_NUMBER && !ct_json_as_double(a, &x) &&
            !ct_json_as_double(b, &y) && x > 0)
            ct_str_printf(out, "  x %.3f", y / x);
        ct_str_append_char(out, '\n');
    }
    ct_str_deinit(&left);
    ct_str_deinit(&right);
}

/* Flags are lists of text: what one has and the other has not. */
static bool has_text(ct_json_value array, const char *text)
{
    for (ct_json_iter iter = ct_json_iterate(array); ct_json_next(&iter);) {
        const char *item = "";
        ct_status_free(ct_json_as_string(iter.value, &item));
        if (!strcmp(item, text)) return true;
    }
    return false;
}

static void put_flags(ct_json_value a, ct_json_value b, ct_str *out)
{
    for (int side = 0; side < 2; side++)
        for (ct_json_iter iter = ct_json_iterate(side ? b : a); ct_json_next(&iter);) {
            const char *flag = "";
            ct_status_free(ct_json_as_string(iter.value, &flag));
            if (!has_text(side ? a : b, flag))
                ct_str_printf(out, "  only %s: %s\n", side ? "the second" : "the first", flag);
        }
}

/* is_half: one side is a program without a recipe, of which less is known. */
static void walk(const char *prefix, ct_json_value a, ct_json_value b, bool is_half, ct_str *out)
{
    for (int side = 0; side < 2; side++)
        for (ct_json_iter iter = ct_json_iterate(side ? b : a); ct_json_next(&iter);) {
            ct_json_value other = ct_json_get(side ? a : b, iter.key);
            ct_json_type type = ct_json_type_of(iter.value);
            if (side && !ct_json_is_absent(other)) continue;
            if (is_half && ct_json_is_absent(other)) continue;
            ct_str path;
            ct_str_init(&path);
            ct_str_printf(&path, "%s%s%s", prefix, prefix[0] ? "." : "", iter.key);
            ct_json_value left = side ? other : iter.value, right = side ? iter.value : other;
            if (type == CT_JSON_OBJECT)
                walk(path.data, left, right, is_half, out);
            else if (!strcmp(path.data, "flags"))
                put_flags(left, right, out);
            else if (type != CT_JSON_ARRAY)
                put_line(path.data, left, right, out);
            ct_str_deinit(&path);
        }
}

ct_status *ct_plan_compare(const ct_plan_side *a, const ct_plan_side *b, int num_lines, ct_str *out)
{
    ct_str_printf(out, "The first:  %s\nThe second: %s\n", a->name, b->name);
    ct_str_printf(out, "  %-40s %16s %16s\n", "", "first", "second");
    size_t before = out->length;
    bool is_half = ct_json_is_absent(ct_json_get(a->json, "model")) || ct_json_is_absent(ct_json_get(b->json, "model"));
    walk("", a->json, b->json, is_half, out);
    if (out->length == before) ct_str_append(out, "  they do not differ\n");
    if (!a->plan || !b->plan || !a->plan->prediction || !b->plan->prediction) return NULL;
    ct_str_append_char(out, '\n');
    return ct_prediction_compare(a->plan->prediction, b->plan->prediction, num_lines ? (size_t)num_lines : 10, out);
}
