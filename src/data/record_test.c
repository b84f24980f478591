#include "base/testing.h"

#include "data/json_lines_fuzz.c" /* its corpus is replayed below */
#include "data/record.h"

/* Blank lines are no records, the last line needs no end, offsets lead back; lines may be longer than what is read at
 * once. */
static void test_json_lines(void **state)
{
    (void)state;
    ct_str text;
    ct_str_init(&text);
    ct_str_append(&text, "\n  \r\n{\"a\":1}\r\n");
    size_t begin = text.length;
    for (int i = 0; i < 700000; i++) ct_str_append_char(&text, 'x');
    ct_str_append(&text, "\nlast");
    static const ct__columns columns = {{0}};
    ct__record_reader *reader;
    expect_ok(ct__record_reader_from_memory(CT_DATA_JSON, &columns, "m", text.data, text.length, &reader));
    ct_arena arena;
    ct_arena_init(&arena);
    ct__record record;
    bool ended;
    expect_ok(ct__record_reader_next(reader, &arena, &record, &ended));
    assert_int_equal(record.offset, 5);
    assert_int_equal(record.json.length, 8); /* with the carriage return, which JSON takes for a blank */
    expect_ok(ct__record_reader_next(reader, &arena, &record, &ended));
    assert_int_equal(record.offset, begin);
    assert_int_equal(record.json.length, 700000);
    assert_int_equal(record.end, begin + 700001);
    expect_ok(ct__record_reader_next(reader, &arena, &record, &ended));
    assert_int_equal(record.json.length, 4);
    assert_memory_equal(record.json.bytes, "last", 4);
    expect_ok(ct__record_reader_next(reader, &arena, &record, &ended));
    assert_true(ended);
    ct__record_reader_close(reader);
    ct_arena_deinit(&arena);
    ct_str_deinit(&text);
}

/* One array: its elements are the records, whatever stands in their strings; a cut one ends with a broken record. */
static void test_array(void **state)
{
    (void)state;
    static const char text[] = " [ {\"a\": \"],}\\\"\\\\\"} ,\n{\"b\":[1,{\"c\":2}]},7, {\"d\":3}\n]\n";
    static const char *const wanted[] = {"{\"a\": \"],}\\\"\\\\\"} ", "{\"b\":[1,{\"c\":2}]}", "7", "{\"d\":3}\n"};
    static const ct__columns columns = {{0}};
    for (size_t cut = 0; cut < 2; cut++) {
        size_t size = cut ? strlen(text) - 5 : strlen(text);
        ct__record_reader *reader, *again;
        expect_ok(ct__record_reader_from_memory(CT_DATA_JSON, &columns, "m", text, size, &reader));
        ct_arena arena;
        ct_arena_init(&arena);
        ct__record record, same;
        bool ended;
        for (size_t i = 0; i < CT_COUNT(wanted); i++) {
            size_t length = strlen(wanted[i]) - (cut && i == 3 ? 3 : 0);
            expect_ok(ct__record_reader_next(reader, &arena, &record, &ended));
            assert_false(ended);
            assert_int_equal(record.json.length, length);
            assert_memory_equal(record.json.bytes, wanted[i], length);
            expect_ok(ct__record_reader_from_memory(CT_DATA_JSON, &columns, "m", text, size, &again));
            expect_ok(ct__record_reader_skip_to(again, record.offset));
            expect_ok(ct__record_reader_next(again, &arena, &same, &ended));
            assert_int_equal(same.json.length, length);
            assert_int_equal(same.offset, record.offset);
            ct__record_reader_close(again);
        }
        expect_ok(ct__record_reader_next(reader, &arena, &record, &ended));
        assert_true(ended);
        ct__record_reader_close(reader);
        ct_arena_deinit(&arena);
    }
}

static void test_corpus(void **state)
{
    (void)state;
    ct_test_replay(CT_TEST_CORPORA, "json_lines", LLVMFuzzerTestOneInput);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_json_lines), cmocka_unit_test(test_array),
                                       cmocka_unit_test(test_corpus)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
