/* Named values: from people's text, and from and to PJRT's struct, whose strings carry a length and no NUL. */
#include "pjrt/value.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "pjrt/internal.h"

ct_status *ct_named_value_parse(ct_arena *arena, const char *text, ct_named_value *out_value)
{
    *out_value = (ct_named_value){0};
    const char *start = strncmp(text, "--", 2) ? text : text + 2;
    const char *equals = strchr(start, '=');
    size_t name_length = equals ? (size_t)(equals - start) : strlen(start);
    if (!name_length) return ct_error(CT_CODE_INVALID_ARGUMENT, "a flag must read name=value, found \"%s\"", text);
    out_value->name = ct_arena_strndup(arena, start, name_length);
    const char *value = equals ? equals + 1 : "true";
    if (!strcmp(value, "true") || !strcmp(value, "false")) {
        out_value->type = CT_VALUE_BOOL;
        out_value->boolean = value[0] == 't';
        return NULL;
    }
    char *end;
    errno = 0;
    out_value->integer = strtoll(value, &end, 10);
    if (*value && !*end && !errno) {
        out_value->type = CT_VALUE_INT;
        return NULL;
    }
    errno = 0;
    out_value->number = strtod(value, &end);
    if (*value && !*end && !errno) {
        out_value->type = CT_VALUE_FLOAT;
        return NULL;
    }
    out_value->type = CT_VALUE_TEXT;
    out_value->text = ct_arena_strdup(arena, value);
    return NULL;
}

const char *ct_named_value_text(ct_arena *arena, const ct_named_value *value)
{
    switch (value->type) {
    case CT_VALUE_TEXT: return value->text;
    case CT_VALUE_INT: return ct_arena_printf(arena, "%lld", (long long)value->integer);
    case CT_VALUE_FLOAT: return ct_arena_printf(arena, "%g", value->number);
    case CT_VALUE_BOOL: return value->boolean ? "true" : "false";
    case CT_VALUE_INT_LIST: break;
    }
    ct_str text;
    ct_str_init(&text);
    for (size_t i = 0; i < value->num_list; i++)
        ct_str_printf(&text, "%s%lld", i ? "." : "", (long long)value->list[i]);
    const char *copy = ct_arena_strndup(arena, text.data, text.length);
    ct_str_deinit(&text);
    return copy;
}

PJRT_NamedValue ct__value_to_pjrt(const ct_named_value *value)
{
    PJRT_NamedValue out = {.struct_size = PJRT_NamedValue_STRUCT_SIZE,
                           .name = value->name,
                           .name_size = strlen(value->name),
                           .value_size = 1};
    switch (value->type) {
    case CT_VALUE_TEXT:
        out.type = PJRT_NamedValue_kString;
        out.string_value = value->text;
        out.value_size = strlen(value->text);
        break;
    case CT_VALUE_INT:
        out.type = PJRT_NamedValue_kInt64;
        out.int64_value = value->integer;
        break;
    case CT_VALUE_INT_LIST:
        out.type = PJRT_NamedValue_kInt64List;
        out.int64_array_value = value->list;
        out.value_size = value->num_list;
        break;
    case CT_VALUE_FLOAT:
        out.type = PJRT_NamedValue_kFloat;
        out.float_value = (float)value->number;
        break;
    case CT_VALUE_BOOL:
        out.type = PJRT_NamedValue_kBool;
        out.bool_value = value->boolean;
        break;
    }
    return out;
}

ct_named_value ct__value_from_pjrt(ct_arena *arena, const PJRT_NamedValue *value)
{
    ct_named_value out = {.name = ct_arena_strndup(arena, value->name, value->name_size)};
    switch (value->type) {
    case PJRT_NamedValue_kString:
        out.type = CT_VALUE_TEXT;
        out.text = ct_arena_strndup(arena, value->string_value, value->value_size);
        break;
    case PJRT_NamedValue_kInt64:
        out.type = CT_VALUE_INT;
        out.integer = value->int64_value;
        break;
    case PJRT_NamedValue_kInt64List:
        out.type = CT_VALUE_INT_LIST;
        out.num_list = value->value_size;
        out.list = ct_arena_dup(arena, value->int64_array_value, value->value_size * sizeof(int64_t));
        break;
    case PJRT_NamedValue_kFloat:
        out.type = CT_VALUE_FLOAT;
        out.number = (double)value->float_value;
        break;
    case PJRT_NamedValue_kBool:
        out.type = CT_VALUE_BOOL;
        out.boolean = value->bool_value;
        break;
    default: /* a type newer than the header */
        out.type = CT_VALUE_TEXT;
        out.text = "(a type this version does not know)";
    }
    return out;
}

const ct_named_value *ct_named_value_find(const ct_named_value *values, size_t num_values, const char *name)
{
    for (size_t i = 0; i < num_values; i++)
        if (!strcmp(values[i].name, name)) return &values[i];
    return NULL;
}
