/* Fuzz target: any bytes either are refused or give a document whose every value can be named, read and written back to
 * a text that parses again. */
#include <stdlib.h>
#include <string.h>

#include "formats/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { MAX_DEPTH = 32 };

static void visit(ct_json_value value, int depth)
{
    int64_t integer;
    double real;
    bool boolean;
    const char *text;
    free(ct_json_where(value));
    ct_status_free(ct_json_as_int(value, &integer));
    ct_status_free(ct_json_as_double(value, &real));
    ct_status_free(ct_json_as_bool(value, &boolean));
    ct_status_free(ct_json_as_string(value, &text));
    ct_status_free(ct_json_need_int(value, "x", &integer));
    size_t count = 0;
    ct_json_iter iter = ct_json_iterate(value);
    while (ct_json_next(&iter)) {
        count++;
        if (depth < MAX_DEPTH && count < 32) visit(iter.value, depth + 1);
    }
    if (count != ct_json_size(value)) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    ct_json *json, *again;
    ct_status *status = ct_json_parse((const char *)bytes, size, "fuzz", &json);
    if (status) {
        ct_status_free(status);
        return 0;
    }
    visit(ct_json_root(json), 0);
    ct_json_writer *writer = ct_json_writer_new();
    ct_json_put_value(writer, NULL, ct_json_root(json));
    char *text = ct_json_writer_text(writer, true);
    status = ct_json_parse(text, strlen(text), "again", &again);
    if (status) abort();
    ct_json_free(again);
    free(text);
    ct_json_writer_free(writer);
    ct_json_free(json);
    return 0;
}
