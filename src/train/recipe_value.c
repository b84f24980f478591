/* One key's value: from TOML or from text into the recipe's field, and back to TOML. Text is first turned into a TOML
 * value of the key's type, so there is one check for both ways in.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "train/recipe_schema.h"

#define FIELD(recipe, key, type)       ((type *)(void *)((char *)(recipe) + (key)->offset))
#define CONST_FIELD(recipe, key, type) ((const type *)(const void *)((const char *)(recipe) + (key)->offset))

/* Index of text in "a|b|c", or -1. */
static int choice_index(const char *allowed, const char *text)
{
    size_t length = strlen(text);
    for (int index = 0;; index++) {
        size_t end = strcspn(allowed, "|");
        if (end == length && memcmp(allowed, text, end) == 0) return index;
        if (!allowed[end]) return -1;
        allowed += end + 1;
    }
}

static void format_choice(const char *allowed, int index, ct_str *out)
{
    for (; index > 0; index--) allowed += strcspn(allowed, "|") + 1;
    ct_str_append_char(out, '"');
    ct_str_append_n(out, allowed, strcspn(allowed, "|"));
    ct_str_append_char(out, '"');
}

static void append_nearest_choice(const char *allowed, const char *text, ct_str *out)
{
    char *copy = ct_strdup(allowed), *rest = NULL;
    const char *names[16];
    size_t count = 0;
    for (char *name = strtok_r(copy, "|", &rest); name && count < CT_COUNT(names); name = strtok_r(NULL, "|", &rest))
        names[count++] = name;
    const char *nearest = ct_nearest_name(text, names, count);
    if (nearest) ct_str_printf(out, "; did you mean \"%s\"?", nearest);
    free(copy);
}

static void append_number(ct_str *out, double value)
{
    ct_str_printf(out, value == floor(value) && fabs(value) < 1e15 ? "%.0f" : "%g", value);
}

void ct__recipe_requirement(const ct__recipe_key *key, ct_str *out)
{
    if (key->allowed) {
        int count = 1;
        for (const char *at = key->allowed; *at; at++) count += *at == '|';
        if (count > 1) ct_str_append(out, "one of ");
        for (int i = 0; i < count; i++) {
            if (i) ct_str_append(out, ", ");
            format_choice(key->allowed, i, out);
        }
        return;
    }
    switch (key->type) {
    case CT__RECIPE_BOOL: ct_str_append(out, "true or false"); return;
    case CT__RECIPE_LIST:
        ct_str_append(out,
                      key->may_be_one ? "a non-empty string or an array of them" : "an array of non-empty strings");
        return;
    case CT__RECIPE_NUMBERS: ct_str_append(out, "an array of numbers above 0"); return;
    case CT__RECIPE_FLAGS: ct_str_append(out, "a table of flags, each true or false, a number or a string"); return;
    case CT__RECIPE_INT: ct_str_append(out, "a whole number"); break;
    case CT__RECIPE_FLOAT: ct_str_append(out, "a number"); break;
    case CT__RECIPE_STRING:
    case CT__RECIPE_CHOICE:
    case CT__RECIPE_DTYPE: ct_str_append(out, key->may_be_empty ? "a string" : "a non-empty string"); return;
    }
    ct_str_append(out, key->above_min ? " above " : key->max > 0 && key->max < 1e9 ? " from " : " of at least ");
    append_number(out, key->min);
    if (key->max > 0 && (key->max < 1e9 || key->above_min)) {
        ct_str_append(out, key->under_max ? " to below " : " to ");
        append_number(out, key->max);
    } else if (key->max > 0) {
        ct_str_append(out, " and at most ");
        append_number(out, key->max);
    }
}

static void append_found(ct_str *out, const ct_toml *value)
{
    switch (value->type) {
    case CT_TOML_STRING: ct_toml_quote(out, value->string.data); break;
    case CT_TOML_INTEGER: ct_str_printf(out, "%lld", (long long)value->integer); break;
    case CT_TOML_FLOAT: ct_toml_format_float(out, value->number); break;
    case CT_TOML_BOOLEAN: ct_str_append(out, value->boolean ? "true" : "false"); break;
    case CT_TOML_TABLE:
    case CT_TOML_ARRAY: ct_str_append(out, ct_toml_type_name(value->type)); break;
    case CT_TOML_DATE: ct_str_printf(out, "the date %s", value->string.data); break;
    }
}

static bool is_in_range(const ct__recipe_key *key, double value)
{
    if (isnan(value)) return false;
    if (isinf(value) && !key->may_be_infinite) return false;
    if (value < key->min || (key->above_min && value == key->min)) return false;
    return key->max <= 0 || value < key->max || (value == key->max && !key->under_max);
}

static bool is_text(const ct_toml *value, bool may_be_empty)
{
    if (value->type != CT_TOML_STRING || strlen(value->string.data) != value->string.length) return false;
    return may_be_empty || value->string.length > 0;
}

static bool set_list(ct_recipe *recipe, ct_recipe_list *list, const ct_toml *value, bool may_be_one)
{
    ct_toml one = {.type = CT_TOML_ARRAY, .array = {(ct_toml *)(uintptr_t)value, 1}};
    if (may_be_one && value->type == CT_TOML_STRING) value = &one;
    if (value->type != CT_TOML_ARRAY) return false;
    const char **items = CT_ARENA_ARRAY(&recipe->arena, const char *, value->array.num_items);
    for (size_t i = 0; i < value->array.num_items; i++) {
        if (!is_text(&value->array.items[i], false)) return false;
        items[i] = ct_arena_strdup(&recipe->arena, value->array.items[i].string.data);
    }
    *list = (ct_recipe_list){items, value->array.num_items};
    return true;
}

static double number_of(const ct_toml *value)
{
    return value->type == CT_TOML_FLOAT ? value->number : value->type == CT_TOML_INTEGER ? (double)value->integer : NAN;
}

static bool set_numbers(ct_recipe *recipe, ct_recipe_numbers *numbers, const ct_toml *value)
{
    if (value->type != CT_TOML_ARRAY) return false;
    double *items = CT_ARENA_ARRAY(&recipe->arena, double, value->array.num_items);
    for (size_t i = 0; i < value->array.num_items; i++) {
        items[i] = number_of(&value->array.items[i]);
        if (!(items[i] > 0) || isinf(items[i])) return false;
    }
    *numbers = (ct_recipe_numbers){items, value->array.num_items};
    return true;
}

/* Adds a flag, or replaces the one of the same name. */
static bool add_flag(ct_recipe *recipe, ct_recipe_flags *flags, const char *name, const ct_toml *value)
{
    ct_named_value flag = {.name = ct_arena_strdup(&recipe->arena, name)};
    if (value->type == CT_TOML_BOOLEAN) {
        flag.type = CT_VALUE_BOOL;
        flag.boolean = value->boolean;
    } else if (value->type == CT_TOML_INTEGER) {
        flag.type = CT_VALUE_INT;
        flag.integer = value->integer;
    } else if (value->type == CT_TOML_FLOAT) {
        flag.type = CT_VALUE_FLOAT;
        flag.number = value->number;
    } else if (is_text(value, true)) {
        flag.type = CT_VALUE_TEXT;
        flag.text = ct_arena_strdup(&recipe->arena, value->string.data);
    } else {
        return false;
    }
    ct_named_value *items = CT_ARENA_ARRAY(&recipe->arena, ct_named_value, flags->num_items + 1);
    size_t count = 0;
    for (size_t i = 0; i < flags->num_items; i++)
        if (strcmp(flags->items[i].name, name) != 0) items[count++] = flags->items[i];
    items[count++] = flag;
    *flags = (ct_recipe_flags){items, count};
    return true;
}

static bool set_flags(ct_recipe *recipe, ct_recipe_flags *flags, const ct_toml *value)
{
    if (value->type != CT_TOML_TABLE) return false;
    ct_recipe_flags all = {0};
    for (size_t i = 0; i < value->table.num_entries; i++) {
        const ct_toml_entry *entry = &value->table.entries[i];
        if (!entry->key_length || strlen(entry->key) != entry->key_length) return false;
        if (!add_flag(recipe, &all, entry->key, &entry->value)) return false;
    }
    *flags = all;
    return true;
}

bool ct__recipe_set(ct_recipe *recipe, const ct__recipe_key *key, const ct_toml *value, ct_str *problem)
{
    bool is_fine = false;
    int choice = -1;
    if (key->allowed && value->type == CT_TOML_STRING) choice = choice_index(key->allowed, value->string.data);
    switch (key->type) {
    case CT__RECIPE_BOOL:
        if ((is_fine = value->type == CT_TOML_BOOLEAN)) *FIELD(recipe, key, bool) = value->boolean;
        break;
    case CT__RECIPE_INT:
        is_fine = value->type == CT_TOML_INTEGER && is_in_range(key, (double)value->integer);
        if (is_fine) *FIELD(recipe, key, int64_t) = value->integer;
        break;
    case CT__RECIPE_FLOAT: {
        double number = number_of(value);
        if ((is_fine = is_in_range(key, number))) *FIELD(recipe, key, double) = number;
        break;
    }
    case CT__RECIPE_STRING:
        is_fine = is_text(value, key->may_be_empty) && (!key->allowed || choice >= 0);
        if (is_fine) *FIELD(recipe, key, const char *) = ct_arena_strdup(&recipe->arena, value->string.data);
        break;
    case CT__RECIPE_CHOICE:
        if ((is_fine = choice >= 0)) *FIELD(recipe, key, unsigned) = (unsigned)choice;
        break;
    case CT__RECIPE_DTYPE:
        if ((is_fine = choice >= 0)) *FIELD(recipe, key, ct_dtype) = ct_dtype_from_name(value->string.data);
        break;
    case CT__RECIPE_LIST: is_fine = set_list(recipe, FIELD(recipe, key, ct_recipe_list), value, key->may_be_one); break;
    case CT__RECIPE_NUMBERS: is_fine = set_numbers(recipe, FIELD(recipe, key, ct_recipe_numbers), value); break;
    case CT__RECIPE_FLAGS: is_fine = set_flags(recipe, FIELD(recipe, key, ct_recipe_flags), value); break;
    }
    if (is_fine) return true;
    ct_str_append(problem, "must be ");
    ct__recipe_requirement(key, problem);
    ct_str_append(problem, ", found ");
    append_found(problem, value);
    if (key->allowed && value->type == CT_TOML_STRING) append_nearest_choice(key->allowed, value->string.data, problem);
    return false;
}

static ct_toml string_value(ct_arena *arena, const char *text, size_t length)
{
    return (ct_toml){.type = CT_TOML_STRING, .string = {ct_arena_strndup(arena, text, length), length}};
}

static bool parse_bool(const char *text, ct_toml *out_value)
{
    bool is_true = strcasecmp(text, "true") == 0;
    if (!is_true && strcasecmp(text, "false") != 0) return false;
    *out_value = (ct_toml){.type = CT_TOML_BOOLEAN, .boolean = is_true};
    return true;
}

/* Numbers as TOML writes them: digits may be grouped, "1_000". */
static char *without_groups(const char *text)
{
    char *plain = ct_alloc(strlen(text) + 1), *to = plain;
    for (const char *at = text; *at; at++) {
        bool is_group = *at == '_' && at > text && at[-1] >= '0' && at[-1] <= '9' && at[1] >= '0' && at[1] <= '9';
        if (!is_group) *to++ = *at;
    }
    *to = 0;
    return plain;
}

static bool parse_int(const char *text, ct_toml *out_value)
{
    char *plain = without_groups(text), *end;
    errno = 0;
    long long integer = strtoll(plain, &end, 10);
    bool is_fine = end != plain && !*end && !errno && plain[0] != ' ';
    if (is_fine) *out_value = (ct_toml){.type = CT_TOML_INTEGER, .integer = integer};
    free(plain);
    return is_fine;
}

static bool parse_float(const char *text, ct_toml *out_value)
{
    char *plain = without_groups(text), *end;
    double number = strtod(plain, &end);
    bool is_fine = end != plain && !*end && plain[0] != ' ';
    if (is_fine) *out_value = (ct_toml){.type = CT_TOML_FLOAT, .number = number};
    free(plain);
    return is_fine;
}

/* What stands between commas: strings, or numbers where they are some. */
static ct_toml list_value(ct_arena *arena, const char *text, bool of_numbers)
{
    size_t count = *text ? 1 : 0, at = 0;
    for (const char *c = text; *c; c++) count += *c == ',';
    ct_toml *items = CT_ARENA_ARRAY(arena, ct_toml, count);
    for (size_t i = 0; i < count; i++) {
        size_t length = strcspn(text + at, ",");
        items[i] = string_value(arena, text + at, length);
        if (of_numbers) (void)parse_float(items[i].string.data, &items[i]);
        at += length + 1;
    }
    return (ct_toml){.type = CT_TOML_ARRAY, .array = {items, count}};
}

bool ct__recipe_set_text(ct_recipe *recipe, const ct__recipe_key *key, const char *text, ct_str *problem)
{
    if (ct__recipe_can_unset(key) && strcasecmp(text, "none") == 0) {
        if (key->type == CT__RECIPE_STRING)
            *FIELD(recipe, key, const char *) = NULL;
        else if (key->type == CT__RECIPE_INT)
            *FIELD(recipe, key, int64_t) = -1;
        else if (key->type == CT__RECIPE_FLOAT)
            *FIELD(recipe, key, double) = -1;
        else
            CT_BUG("%s.%s cannot be unset", key->section, key->name);
        return true;
    }
    ct_toml value = string_value(&recipe->arena, text, strlen(text)); /* what stays a string is not of the key's type */
    switch (key->type) {
    case CT__RECIPE_BOOL: (void)parse_bool(text, &value); break;
    case CT__RECIPE_INT: (void)parse_int(text, &value); break;
    case CT__RECIPE_FLOAT: (void)parse_float(text, &value); break;
    case CT__RECIPE_LIST: value = list_value(&recipe->arena, text, false); break;
    case CT__RECIPE_NUMBERS: value = list_value(&recipe->arena, text, true); break;
    case CT__RECIPE_STRING:
    case CT__RECIPE_CHOICE:
    case CT__RECIPE_DTYPE:
    case CT__RECIPE_FLAGS: break;
    }
    return ct__recipe_set(recipe, key, &value, problem);
}

bool ct__recipe_set_flag(ct_recipe *recipe, const ct__recipe_key *key, const char *flag, const char *text,
                         ct_str *problem)
{
    ct_toml value = string_value(&recipe->arena, text, strlen(text));
    if (!parse_bool(text, &value) && !parse_int(text, &value)) (void)parse_float(text, &value);
    if (add_flag(recipe, FIELD(recipe, key, ct_recipe_flags), flag, &value)) return true;
    ct_str_append(problem, "must be true or false, a number or a string");
    return false;
}

bool ct__recipe_is_unset(const ct_recipe *recipe, const ct__recipe_key *key)
{
    if (key->type == CT__RECIPE_STRING) return !*CONST_FIELD(recipe, key, char *);
    if (!ct__recipe_can_unset(key)) return false;
    if (key->type == CT__RECIPE_INT) return *CONST_FIELD(recipe, key, int64_t) < 0;
    return key->type == CT__RECIPE_FLOAT && *CONST_FIELD(recipe, key, double) < 0;
}

static void format_flag(const ct_named_value *flag, ct_str *out)
{
    ct_toml_quote(out, flag->name);
    ct_str_append(out, " = ");
    switch (flag->type) {
    case CT_VALUE_BOOL: ct_str_append(out, flag->boolean ? "true" : "false"); break;
    case CT_VALUE_INT: ct_str_printf(out, "%lld", (long long)flag->integer); break;
    case CT_VALUE_FLOAT: ct_toml_format_float(out, flag->number); break;
    case CT_VALUE_TEXT: ct_toml_quote(out, flag->text); break;
    case CT_VALUE_INT_LIST: CT_BUG("an XLA flag that is a list"); /* TOML gives none, see add_flag */
    }
}

void ct__recipe_format(const ct_recipe *recipe, const ct__recipe_key *key, ct_str *out)
{
    switch (key->type) {
    case CT__RECIPE_BOOL: ct_str_append(out, *CONST_FIELD(recipe, key, bool) ? "true" : "false"); break;
    case CT__RECIPE_INT: ct_str_printf(out, "%lld", (long long)*CONST_FIELD(recipe, key, int64_t)); break;
    case CT__RECIPE_FLOAT: ct_toml_format_float(out, *CONST_FIELD(recipe, key, double)); break;
    case CT__RECIPE_STRING: ct_toml_quote(out, *CONST_FIELD(recipe, key, char *)); break;
    case CT__RECIPE_CHOICE: format_choice(key->allowed, (int)*CONST_FIELD(recipe, key, unsigned), out); break;
    case CT__RECIPE_DTYPE: ct_toml_quote(out, ct_dtype_torch(*CONST_FIELD(recipe, key, ct_dtype))); break;
    case CT__RECIPE_LIST: {
        const ct_recipe_list *list = CONST_FIELD(recipe, key, ct_recipe_list);
        ct_str_append_char(out, '[');
        for (size_t i = 0; i < list->num_items; i++) {
            if (i) ct_str_append(out, ", ");
            ct_toml_quote(out, list->items[i]);
        }
        ct_str_append_char(out, ']');
        break;
    }
    case CT__RECIPE_NUMBERS: {
        const ct_recipe_numbers *numbers = CONST_FIELD(recipe, key, ct_recipe_numbers);
        ct_str_append_char(out, '[');
        for (size_t i = 0; i < numbers->num_items; i++) {
            if (i) ct_str_append(out, ", ");
            ct_toml_format_float(out, numbers->items[i]);
        }
        ct_str_append_char(out, ']');
        break;
    }
    case CT__RECIPE_FLAGS: {
        const ct_recipe_flags *flags = CONST_FIELD(recipe, key, ct_recipe_flags);
        ct_str_append(out, flags->num_items ? "{ " : "{");
        for (size_t i = 0; i < flags->num_items; i++) {
            if (i) ct_str_append(out, ", ");
            format_flag(&flags->items[i], out);
        }
        ct_str_append(out, flags->num_items ? " }" : "}");
        break;
    }
    }
}
