/* toml++ behind a C header: the one C++ file, since no TOML library in C is packaged. The parsed tree is copied into
 * the caller's arena, so nothing of C++ leaves this file. Built without exceptions and run-time type information.
 */
/* toml++ 3.3 asserts (or, under NDEBUG, lets the compiler assume) what text such as "[.a]" breaks, in front of code
 * that reports that very mistake; so its assertions are taken out, and the fuzz target watches what is left. */
#undef NDEBUG
#define TOML_ASSERT(expression) static_cast<void>(0)
#define TOML_EXCEPTIONS         0
#define TOML_ENABLE_FORMATTERS  1 /* dates are kept as text */
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>

extern "C" {
#include "base/file.h"
#include "base/str.h"
#include "formats/toml.h"
}

static char *copy_text(ct_arena *arena, std::string_view text)
{
    return ct_arena_strndup(arena, text.data(), text.size());
}

static int to_int(toml::source_index index)
{
    return static_cast<int>(index);
}

static void convert(ct_arena *arena, const toml::node &node, ct_toml *out);

/* toml++ keeps a table sorted by key; the source's order is what a reader of messages expects. */
static void convert_table(ct_arena *arena, const toml::table &table, ct_toml *out)
{
    auto *entries = static_cast<ct_toml_entry *>(ct_arena_alloc(arena, sizeof(ct_toml_entry) * table.size()));
    size_t count = 0;
    for (auto &&[key, value] : table) {
        ct_toml_entry *entry = &entries[count++];
        entry->key = copy_text(arena, key.str());
        entry->key_length = key.str().size();
        entry->line = to_int(key.source().begin.line);
        entry->column = to_int(key.source().begin.column);
        convert(arena, value, &entry->value);
    }
    std::sort(entries, entries + count, [](const ct_toml_entry &a, const ct_toml_entry &b) {
        return a.line != b.line ? a.line < b.line : a.column < b.column;
    });
    out->type = CT_TOML_TABLE;
    out->table.entries = entries;
    out->table.num_entries = count;
}

static void convert(ct_arena *arena, const toml::node &node, ct_toml *out)
{
    out->line = to_int(node.source().begin.line);
    out->column = to_int(node.source().begin.column);
    if (const toml::table *table = node.as_table()) {
        convert_table(arena, *table, out);
    } else if (const toml::array *array = node.as_array()) {
        auto *items = static_cast<ct_toml *>(ct_arena_alloc(arena, sizeof(ct_toml) * array->size()));
        for (size_t i = 0; i < array->size(); i++) convert(arena, *array->get(i), &items[i]);
        out->type = CT_TOML_ARRAY;
        out->array.items = items;
        out->array.num_items = array->size();
    } else if (const auto *text = node.as_string()) {
        out->type = CT_TOML_STRING;
        out->string.data = copy_text(arena, text->get());
        out->string.length = text->get().size();
    } else if (const auto *integer = node.as_integer()) {
        out->type = CT_TOML_INTEGER;
        out->integer = integer->get();
    } else if (const auto *number = node.as_floating_point()) {
        out->type = CT_TOML_FLOAT;
        out->number = number->get();
    } else if (const auto *boolean = node.as_boolean()) {
        out->type = CT_TOML_BOOLEAN;
        out->boolean = boolean->get();
    } else {
        std::ostringstream stream;
        if (const auto *date = node.as_date()) stream << date->get();
        if (const auto *time = node.as_time()) stream << time->get();
        if (const auto *date_time = node.as_date_time()) stream << date_time->get();
        std::string written = stream.str();
        out->type = CT_TOML_DATE;
        out->string.data = copy_text(arena, written);
        out->string.length = written.size();
    }
}

extern "C" ct_status *ct_toml_parse(ct_arena *arena, const char *name, const char *text, size_t size_bytes,
                                    const ct_toml **out_root)
{
    *out_root = nullptr;
    toml::parse_result result = toml::parse(std::string_view(text, size_bytes));
    if (!result) {
        const toml::parse_error &error = result.error();
        std::string description(error.description());
        return ct_error(CT_CODE_INVALID_ARGUMENT, "%s:%d:%d: not valid TOML: %s", name,
                        to_int(error.source().begin.line), to_int(error.source().begin.column), description.c_str());
    }
    auto *root = static_cast<ct_toml *>(ct_arena_alloc(arena, sizeof(ct_toml)));
    convert(arena, result.table(), root);
    *out_root = root;
    return nullptr;
}

extern "C" ct_status *ct_toml_read(ct_arena *arena, const char *path, const ct_toml **out_root)
{
    *out_root = nullptr;
    char *text;
    size_t size_bytes;
    CT_TRY(ct_file_read(path, &text, &size_bytes));
    ct_status *status = ct_toml_parse(arena, path, text, size_bytes, out_root);
    free(text);
    return status;
}

extern "C" const ct_toml *ct_toml_get(const ct_toml *table, const char *key)
{
    CT_ASSERT(table->type == CT_TOML_TABLE);
    size_t length = strlen(key);
    for (size_t i = 0; i < table->table.num_entries; i++) {
        const ct_toml_entry *entry = &table->table.entries[i];
        if (entry->key_length == length && memcmp(entry->key, key, length) == 0) return &entry->value;
    }
    return nullptr;
}

extern "C" const char *ct_toml_type_name(ct_toml_type type)
{
    static const char *const names[] = {"a table",  "an array",      "a string", "a whole number",
                                        "a number", "true or false", "a date"};
    return names[type];
}

extern "C" void ct_toml_quote(ct_str *out, const char *text)
{
    ct_str_append_char(out, '"');
    for (const char *at = text; *at; at++) {
        unsigned char c = static_cast<unsigned char>(*at);
        if (c == '"' || c == '\\')
            ct_str_printf(out, "\\%c", c);
        else if (c == '\n')
            ct_str_append(out, "\\n");
        else if (c < 0x20 || c == 0x7f)
            ct_str_printf(out, "\\u%04X", c);
        else
            ct_str_append_char(out, *at);
    }
    ct_str_append_char(out, '"');
}

extern "C" void ct_toml_format_float(ct_str *out, double value)
{
    char text[40];
    if (std::isnan(value) || std::isinf(value)) {
        ct_str_append(out, std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
        return;
    }
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, value);
        if (strtod(text, nullptr) == value) break;
    }
    ct_str_append(out, text);
    if (!strpbrk(text, ".e")) ct_str_append(out, ".0"); /* TOML's floats have a point or an exponent */
}
