/* What the tests of this folder share: places as texts. For _test.c files only. */
#ifndef CT_DATA_TESTING_H
#define CT_DATA_TESTING_H

#include "base/testing.h"
#include "data/dataset.h"
#include "formats/json.h"

static inline char *ct_test_state_text(const ct_data_state *state)
{
    ct_json_writer *writer = ct_json_writer_new();
    ct_data_state_write(state, writer, NULL);
    char *text = ct_json_writer_text(writer, false);
    ct_json_writer_free(writer);
    return text;
}

static inline ct_status *ct_test_restore(ct_dataset *dataset, const char *text)
{
    ct_json *json;
    expect_ok(ct_json_parse(text, strlen(text), "state", &json));
    ct_status *status = ct_dataset_restore(dataset, ct_json_root(json));
    ct_json_free(json);
    return status;
}

static inline ct_dataset *ct_test_dataset_open(const ct_dataset_opts *opts)
{
    ct_dataset *dataset;
    expect_ok(ct_dataset_open(opts, &dataset));
    return dataset;
}

static inline void ct_test_expect_row(const ct_array *array, int64_t row, const int32_t *wanted)
{
    assert_memory_equal((const int32_t *)array->data + row * array->sizes[1], wanted,
                        (size_t)array->sizes[1] * sizeof(int32_t));
}

#endif
