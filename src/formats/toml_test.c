#include "formats/toml.h"

#include <math.h>

#include "base/testing.h"
#include "formats/toml_fuzz.c" /* its corpus is replayed below */

static ct_arena arena;

static int setup(void **state)
{
    (void)state;
    ct_arena_init(&arena);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    ct_arena_deinit(&arena);
    return 0;
}

static const ct_toml *parse(const char *text)
{
    const ct_toml *root;
    ct_status *status = ct_toml_parse(&arena, "x.toml", text, strlen(text), &root);
    if (status) fail_msg("%s", ct_status_message(status));
    return root;
}

static void expect_mistake(const char *text, const char *start)
{
    const ct_toml *root;
    ct_status *status = ct_toml_parse(&arena, "x.toml", text, strlen(text), &root);
    assert_int_equal(ct_status_code(status), CT_CODE_INVALID_ARGUMENT);
    assert_null(root);
    if (strncmp(ct_status_message(status), start, strlen(start)) != 0)
        fail_msg("'%s' does not start with '%s'", ct_status_message(status), start);
    ct_status_free(status);
}

static void test_types_and_places(void **state)
{
    (void)state;
    const ct_toml *root = parse("dump_folder = \"./out\"\n"
                                "\n"
                                "[training]\n"
                                "steps = 1_000\n"
                                "  lr = 8e-4\n"
                                "shuffle = false\n"
                                "when = 2026-08-21T10:00:00Z\n"
                                "names = [\"a\",\n"
                                "         \"b\"]\n"
                                "flags = { deep = -inf }\n");
    assert_int_equal(root->table.num_entries, 2);
    assert_string_equal(root->table.entries[0].key, "dump_folder");
    assert_string_equal(root->table.entries[0].value.string.data, "./out");
    const ct_toml *training = ct_toml_get(root, "training");
    assert_int_equal(training->type, CT_TOML_TABLE);
    assert_int_equal(training->line, 3);
    const char *const order[] = {"steps", "lr", "shuffle", "when", "names", "flags"};
    assert_int_equal(training->table.num_entries, CT_COUNT(order));
    for (size_t i = 0; i < CT_COUNT(order); i++) assert_string_equal(training->table.entries[i].key, order[i]);

    const ct_toml *steps = ct_toml_get(training, "steps");
    assert_int_equal(steps->type, CT_TOML_INTEGER);
    assert_int_equal(steps->integer, 1000);
    const ct_toml_entry *lr = &training->table.entries[1];
    assert_int_equal(lr->line, 5);
    assert_int_equal(lr->column, 3);
    assert_int_equal(lr->value.column, 8);
    assert_int_equal(lr->value.type, CT_TOML_FLOAT);
    assert_true(lr->value.number == 8e-4);
    assert_int_equal(ct_toml_get(training, "shuffle")->type, CT_TOML_BOOLEAN);
    assert_false(ct_toml_get(training, "shuffle")->boolean);
    assert_int_equal(ct_toml_get(training, "when")->type, CT_TOML_DATE);
    assert_string_equal(ct_toml_get(training, "when")->string.data, "2026-08-21T10:00:00Z");
    const ct_toml *names = ct_toml_get(training, "names");
    assert_int_equal(names->array.num_items, 2);
    assert_string_equal(names->array.items[1].string.data, "b");
    assert_int_equal(names->array.items[1].line, 9);
    assert_true(ct_toml_get(ct_toml_get(training, "flags"), "deep")->number == -INFINITY);
    assert_null(ct_toml_get(training, "seq_len"));
}

static void test_nul_bytes_and_empty(void **state)
{
    (void)state;
    const ct_toml *root = parse("\"a\\u0000b\" = \"c\\u0000\"\n");
    assert_int_equal(root->table.entries[0].key_length, 3);
    assert_int_equal(root->table.entries[0].value.string.length, 2);
    assert_null(ct_toml_get(root, "a"));
    assert_int_equal(parse("")->table.num_entries, 0);
}

static void test_errors_name_the_place(void **state)
{
    (void)state;
    expect_mistake("a = 1\nb = \n", "x.toml:2:5: not valid TOML: ");
    expect_mistake("a = 1\na = 2\n", "x.toml:2:5: not valid TOML: ");
    expect_mistake("a = [1, 2\nb = 3\n", "x.toml:2:1: not valid TOML: ");
    expect_mistake("a = 99999999999999999999\n", "x.toml:1:");
    expect_mistake("a = \"\xff\"\n", "x.toml:1:");
    expect_mistake("[.a]\n", "x.toml:1:2: not valid TOML: ");
    expect_mistake("[\n", "x.toml:1:2: not valid TOML: ");
    char *deep = ct_alloc(4096);
    memset(deep, '[', 4095);
    memcpy(deep, "a = ", 4);
    deep[4095] = 0;
    expect_mistake(deep, "x.toml:1:");
    free(deep);

    const ct_toml *root;
    expect_error(ct_toml_read(&arena, "/nonexistent/x.toml", &root), CT_CODE_NOT_FOUND, "/nonexistent/x.toml");
}

static void test_written_values_read_back(void **state)
{
    (void)state;
    const double numbers[] = {1.0, 8e-4, 0.1, 1e-8, 1.0 / 3.0, -2.5e300, 5e-324, 1e15, 123456789.0, INFINITY};
    const char *const strings[] = {"plain", "a \"b\" \\c", "tab\tnew\nline\x01\x7f", "\xc3\xa9"};
    for (size_t i = 0; i < CT_COUNT(numbers); i++) {
        ct_str text;
        ct_str_init(&text);
        ct_str_append(&text, "a = ");
        ct_toml_format_float(&text, numbers[i]);
        const ct_toml *value = ct_toml_get(parse(text.data), "a");
        assert_int_equal(value->type, CT_TOML_FLOAT);
        assert_true(value->number == numbers[i]);
        ct_str_deinit(&text);
    }
    for (size_t i = 0; i < CT_COUNT(strings); i++) {
        ct_str text;
        ct_str_init(&text);
        ct_str_append(&text, "a = ");
        ct_toml_quote(&text, strings[i]);
        assert_string_equal(ct_toml_get(parse(text.data), "a")->string.data, strings[i]);
        ct_str_deinit(&text);
    }
}

static void test_fuzz_corpus(void **state)
{
    (void)state;
    assert_true(ct_test_replay(CT_TEST_CORPORA, "toml", LLVMFuzzerTestOneInput) >= 17);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_types_and_places, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nul_bytes_and_empty, setup, teardown),
        cmocka_unit_test_setup_teardown(test_errors_name_the_place, setup, teardown),
        cmocka_unit_test_setup_teardown(test_written_values_read_back, setup, teardown),
        cmocka_unit_test(test_fuzz_corpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
