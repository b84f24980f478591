#include "base/testing.h"

#include <math.h>

#include "formats/json.h"

#include "formats/json_fuzz.c" /* its corpus is replayed below */

static ct_json *parse(const char *text)
{
    ct_json *json;
    expect_ok(ct_json_parse(text, strlen(text), "config.json", &json));
    return json;
}

static void test_typed_members(void **state)
{
    (void)state;
    ct_json *json = parse("{\"vocab_size\": 256, \"theta\": 1e6, \"tied\": true, \"name\": \"qwen3\", \"eps\": 1e-06,"
                          " \"sliding_window\": null, \"rope\": {\"factor\": 8}, \"layers\": [1, [2, \"x\"]]}");
    ct_json_value root = ct_json_root(json);
    int64_t integer = -1;
    double real = 0;
    bool flag = false;
    const char *text = NULL;
    expect_ok(ct_json_need_int(root, "vocab_size", &integer));
    assert_int_equal(integer, 256);
    expect_ok(ct_json_need_int(root, "theta", &integer)); /* a real without fraction */
    assert_int_equal(integer, 1000000);
    expect_ok(ct_json_need_double(root, "eps", &real));
    assert_true(real == 1e-6);
    expect_ok(ct_json_need_double(root, "vocab_size", &real));
    assert_true(real == 256);
    expect_ok(ct_json_need_bool(root, "tied", &flag));
    assert_true(flag);
    expect_ok(ct_json_need_string(root, "name", &text));
    assert_string_equal(text, "qwen3");

    integer = 77; /* missing and null leave the default */
    expect_ok(ct_json_get_int(root, "head_dim", &integer));
    expect_ok(ct_json_get_int(root, "sliding_window", &integer));
    assert_int_equal(integer, 77);
    expect_ok(ct_json_get_int(ct_json_get(root, "rope"), "factor", &integer));
    assert_int_equal(integer, 8);
    expect_ok(ct_json_get_int(ct_json_get(ct_json_get(root, "no"), "where"), "factor", &integer));
    assert_int_equal(integer, 8);
    ct_json_free(json);
}

static void test_errors_name_the_place(void **state)
{
    (void)state;
    ct_json *json = parse("{\"a\": {\"b\": [0, {\"c\": \"32k\"}, 1.5]}, \"big\": 9223372036854775808}");
    ct_json_value root = ct_json_root(json), list = ct_json_get(ct_json_get(root, "a"), "b");
    int64_t integer;
    bool flag;
    const char *text;
    expect_error(ct_json_need_int(ct_json_at(list, 1), "c", &integer), CT_CODE_INVALID_ARGUMENT,
                 "config.json: a.b[1].c must be an integer of 64 bits, but is the string \"32k\"");
    expect_error(ct_json_as_int(ct_json_at(list, 2), &integer), CT_CODE_INVALID_ARGUMENT,
                 "a.b[2] must be an integer of 64 bits, but is 1.5");
    expect_error(ct_json_need_int(root, "big", &integer), CT_CODE_INVALID_ARGUMENT, "but is 9223372036854775808");
    expect_error(ct_json_need_string(ct_json_at(list, 1), "d", &text), CT_CODE_NOT_FOUND,
                 "config.json: a.b[1].d is required, but missing");
    expect_error(ct_json_need_string(root, "d", &text), CT_CODE_NOT_FOUND, "config.json: d is required");
    expect_error(ct_json_need_bool(list, "d", &flag), CT_CODE_INVALID_ARGUMENT,
                 "a.b must be an object, but is an array");
    expect_error(ct_json_get_bool(root, "a", &flag), CT_CODE_INVALID_ARGUMENT, "a must be true or false");
    expect_error(ct_json_as_int(root, &integer), CT_CODE_INVALID_ARGUMENT, "config.json: the document must be");
    ct_json_free(json);

    json = parse("[\"a\\u0000b\"]");
    expect_error(ct_json_as_string(ct_json_at(ct_json_root(json), 0), &text), CT_CODE_INVALID_ARGUMENT,
                 "config.json: [0] must be a string without zero characters");
    ct_json_free(json);
}

static void test_syntax_errors(void **state)
{
    (void)state;
    ct_json *json;
    const char *text = "{\n  \"a\": 1,\n  \"b\": nope\n}";
    expect_error(ct_json_parse(text, strlen(text), "c.json", &json), CT_CODE_INVALID_ARGUMENT, "c.json:3:8: not valid");
    assert_null(json);
    expect_error(ct_json_parse("", 0, "c.json", &json), CT_CODE_INVALID_ARGUMENT, "c.json:1:1: not valid JSON");
    expect_error(ct_json_parse("{\"a\": 1}}", 9, "c.json", &json), CT_CODE_INVALID_ARGUMENT, "c.json:1:9");
    expect_error(ct_json_parse("[NaN]", 5, "c.json", &json), CT_CODE_INVALID_ARGUMENT, "c.json:1:2");
    expect_error(ct_json_read("/nowhere/c.json", &json), CT_CODE_NOT_FOUND, "/nowhere/c.json");
}

static void test_iteration(void **state)
{
    (void)state;
    ct_json *json = parse("{\"a\": [10, [0, 0], 20], \"b\": {}, \"c\": 3}");
    const char *const keys[] = {"a", "b", "c"};
    ct_json_iter iter = ct_json_iterate(ct_json_root(json));
    for (size_t i = 0; i < 3; i++) {
        assert_true(ct_json_next(&iter));
        assert_int_equal(iter.index, i);
        assert_string_equal(iter.key, keys[i]);
    }
    assert_false(ct_json_next(&iter));
    iter = ct_json_iterate(ct_json_get(ct_json_root(json), "a"));
    int64_t value = 0;
    while (ct_json_next(&iter))
        if (iter.index != 1) expect_ok(ct_json_as_int(iter.value, &value));
    assert_int_equal(value, 20);
    assert_int_equal(iter.index, 2);
    iter = ct_json_iterate(ct_json_get(ct_json_root(json), "c"));
    assert_false(ct_json_next(&iter));
    ct_json_free(json);
}

static void test_writer(void **state)
{
    (void)state;
    ct_json *json = parse("{\"kept\": [1, \"two\", null]}");
    ct_json_writer *writer = ct_json_writer_new();
    for (int round = 0; round < 2; round++) { /* it is empty again after its text is taken */
        ct_json_begin_object(writer, NULL);
        ct_json_put_int(writer, "step", INT64_MIN);
        ct_json_put_double(writer, "loss", 0.1);
        ct_json_put_double(writer, "norm", (double)NAN);
        ct_json_begin_array(writer, "list");
        ct_json_put_bool(writer, NULL, true);
        ct_json_put_null(writer, NULL);
        ct_json_put_string(writer, NULL, "a\"\n\xff\xc3\xa9\xed\xa0\x80");
        ct_json_end(writer);
        ct_json_put_value(writer, "copy", ct_json_get(ct_json_root(json), "kept"));
        ct_json_end(writer);
        char *text = ct_json_writer_text(writer, false);
        assert_string_equal(text, "{\"step\":-9223372036854775808,\"loss\":0.1,\"norm\":null,\"list\":[true,null,"
                                  "\"a\\\"\\n\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"],"
                                  "\"copy\":[1,\"two\",null]}");
        free(text);
    }
    ct_json_writer_free(writer);
    ct_json_free(json);
}

static void test_doubles_read_back_equal(void **state)
{
    (void)state;
    const double values[] = {1.0 / 3, 5e-324, 1.7976931348623157e308, -0.0, 123456789.125, 1e21, 3};
    for (size_t i = 0; i < CT_COUNT(values); i++) {
        ct_json_writer *writer = ct_json_writer_new();
        ct_json_put_double(writer, NULL, values[i]);
        char *text = ct_json_writer_text(writer, false);
        ct_json *json = parse(text);
        double value;
        expect_ok(ct_json_as_double(ct_json_root(json), &value));
        assert_memory_equal(&value, &values[i], sizeof(value));
        ct_json_free(json);
        free(text);
        ct_json_writer_free(writer);
    }
}

static void test_corpus(void **state)
{
    (void)state;
    ct_test_replay(CT_TEST_CORPORA, "json", LLVMFuzzerTestOneInput);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_typed_members), cmocka_unit_test(test_errors_name_the_place),
        cmocka_unit_test(test_syntax_errors), cmocka_unit_test(test_iteration),
        cmocka_unit_test(test_writer),        cmocka_unit_test(test_doubles_read_back_equal),
        cmocka_unit_test(test_corpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
