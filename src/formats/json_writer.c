/* JSON writing over yyjson's mutable documents: a stack of open containers, the innermost on top. */
#include "formats/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <yyjson.h>

#include "base/alloc.h"
#include "base/str.h"
#include "base/utf8.h"

enum { MAX_DEPTH = 64 };

struct ct_json_writer {
    yyjson_mut_doc *doc;
    yyjson_mut_val *open[MAX_DEPTH];
    int depth;
};

ct_json_writer *ct_json_writer_new(void)
{
    ct_json_writer *writer = ct_alloc_zeroed(1, sizeof(*writer));
    writer->doc = yyjson_mut_doc_new(NULL);
    if (!writer->doc) CT_BUG("out of host memory: a JSON document wanted");
    return writer;
}

void ct_json_writer_free(ct_json_writer *writer)
{
    if (!writer) return;
    yyjson_mut_doc_free(writer->doc);
    free(writer);
}

static yyjson_mut_val *string_value(ct_json_writer *writer, const char *text)
{
    ct_str clean;
    ct_str_init(&clean);
    ct_utf8_append(&clean, text, strlen(text));
    yyjson_mut_val *value = yyjson_mut_strncpy(writer->doc, clean.data, clean.length);
    ct_str_deinit(&clean);
    return value;
}

static void put(ct_json_writer *writer, const char *key, yyjson_mut_val *value)
{
    if (!value) CT_BUG("out of host memory: a JSON value wanted");
    if (writer->depth == 0) {
        if (key || yyjson_mut_doc_get_root(writer->doc)) CT_BUG("JSON: one value without a key stands at the top");
        yyjson_mut_doc_set_root(writer->doc, value);
        return;
    }
    yyjson_mut_val *parent = writer->open[writer->depth - 1];
    if (yyjson_mut_is_obj(parent) != (key != NULL)) CT_BUG("JSON: a key belongs inside an object and only there");
    bool added =
        key ? yyjson_mut_obj_add(parent, string_value(writer, key), value) : yyjson_mut_arr_append(parent, value);
    if (!added) CT_BUG("out of host memory: a JSON value wanted");
}

static void begin(ct_json_writer *writer, const char *key, yyjson_mut_val *container)
{
    if (writer->depth == MAX_DEPTH) CT_BUG("JSON: deeper than %d", MAX_DEPTH);
    put(writer, key, container);
    writer->open[writer->depth++] = container;
}

void ct_json_begin_object(ct_json_writer *writer, const char *key)
{
    begin(writer, key, yyjson_mut_obj(writer->doc));
}

void ct_json_begin_array(ct_json_writer *writer, const char *key)
{
    begin(writer, key, yyjson_mut_arr(writer->doc));
}

void ct_json_end(ct_json_writer *writer)
{
    if (!writer->depth) CT_BUG("JSON: nothing is open");
    writer->depth--;
}

void ct_json_put_null(ct_json_writer *writer, const char *key)
{
    put(writer, key, yyjson_mut_null(writer->doc));
}

void ct_json_put_bool(ct_json_writer *writer, const char *key, bool value)
{
    put(writer, key, yyjson_mut_bool(writer->doc, value));
}

void ct_json_put_int(ct_json_writer *writer, const char *key, int64_t value)
{
    put(writer, key, yyjson_mut_sint(writer->doc, value));
}

void ct_json_put_double(ct_json_writer *writer, const char *key, double value)
{
    put(writer, key, isfinite(value) ? yyjson_mut_real(writer->doc, value) : yyjson_mut_null(writer->doc));
}

void ct_json_put_string(ct_json_writer *writer, const char *key, const char *value)
{
    put(writer, key, string_value(writer, value));
}

void ct_json_put_value(ct_json_writer *writer, const char *key, ct_json_value value)
{
    yyjson_val *node = (yyjson_val *)(uintptr_t)value.node;
    put(writer, key, node ? yyjson_val_mut_copy(writer->doc, node) : yyjson_mut_null(writer->doc));
}

char *ct_json_writer_text(ct_json_writer *writer, bool pretty)
{
    if (writer->depth || !yyjson_mut_doc_get_root(writer->doc)) CT_BUG("JSON: the text is not finished");
    yyjson_write_flag flags = pretty ? YYJSON_WRITE_PRETTY_TWO_SPACES | YYJSON_WRITE_NEWLINE_AT_END : 0;
    yyjson_write_err error;
    size_t length;
    char *text = yyjson_mut_write_opts(writer->doc, flags, NULL, &length, &error);
    if (!text) CT_BUG("JSON: %s", error.msg);
    yyjson_mut_doc_free(writer->doc);
    *writer = (ct_json_writer){.doc = yyjson_mut_doc_new(NULL)};
    if (!writer->doc) CT_BUG("out of host memory: a JSON document wanted");
    return text;
}
