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

static void test_corpus(void **state)
{
    (void)state;
    ct_test_replay(CT_TEST_CORPORA, "json_lines", LLVMFuzzerTestOneInput);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_json_lines), cmocka_unit_test(test_corpus)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
