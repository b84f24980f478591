#include "base/testing.h"

#include "base/str.h"
#include "formats/byte_stream.h"

#define DATA CT_SOURCE_DIR "/tests/data/"

static char *read_in_pieces(ct_byte_stream *stream, size_t piece, size_t *out_size)
{
    ct_str all;
    ct_str_init(&all);
    char *buffer = ct_alloc(piece);
    size_t count;
    do {
        expect_ok(ct_byte_stream_read(stream, buffer, piece, &count));
        ct_str_append_n(&all, buffer, count);
        assert_int_equal(ct_byte_stream_offset(stream), all.length);
    } while (count == piece);
    expect_ok(ct_byte_stream_read(stream, buffer, piece, &count));
    assert_int_equal(count, 0);
    free(buffer);
    *out_size = all.length;
    return ct_str_release(&all);
}

static const char *const PATHS[] = {DATA "texts.jsonl", DATA "texts.jsonl.gz", DATA "texts.jsonl.zst"};

/* Members and frames behind one another are one stream, however it is read, from a file or from memory. */
static void test_same_bytes(void **state)
{
    (void)state;
    char *wanted;
    size_t size;
    expect_ok(ct_file_read(PATHS[0], &wanted, &size));
    static const size_t pieces[] = {1, 7, 512, 1 << 20};
    for (size_t i = 0; i < CT_COUNT(PATHS); i++) {
        char *raw;
        size_t raw_size;
        expect_ok(ct_file_read(PATHS[i], &raw, &raw_size));
        for (size_t p = 0; p < CT_COUNT(pieces); p++)
            for (int from_memory = 0; from_memory < 2; from_memory++) {
                ct_byte_stream *stream = NULL;
                if (from_memory)
                    stream = ct_byte_stream_from_memory("memory", raw, raw_size);
                else
                    expect_ok(ct_byte_stream_open(PATHS[i], &stream));
                size_t found_size;
                char *found = read_in_pieces(stream, pieces[p], &found_size);
                assert_int_equal(found_size, size);
                assert_memory_equal(found, wanted, size);
                free(found);
                ct_byte_stream_close(stream);
            }
        free(raw);
    }
    free(wanted);
}

static void test_skip(void **state)
{
    (void)state;
    char *wanted;
    size_t size;
    expect_ok(ct_file_read(PATHS[0], &wanted, &size));
    for (size_t i = 0; i < CT_COUNT(PATHS); i++)
        for (int64_t step = 1; step < 3000; step = step * 3 + 1) {
            ct_byte_stream *stream;
            expect_ok(ct_byte_stream_open(PATHS[i], &stream));
            for (int64_t at = 0; at < (int64_t)size; at += step + 1) {
                int64_t offset;
                char byte;
                size_t count;
                expect_ok(ct_byte_stream_skip_to(stream, at, &offset));
                assert_int_equal(offset, at);
                expect_ok(ct_byte_stream_read(stream, &byte, 1, &count));
                assert_int_equal(count, 1);
                assert_int_equal(byte, wanted[at]);
            }
            int64_t offset;
            expect_ok(ct_byte_stream_skip_to(stream, (int64_t)size + 100, &offset));
            assert_int_equal(offset, size);
            ct_byte_stream_close(stream);
        }
    free(wanted);
}

/* What is damaged gives the same bytes before the error, however it is read, and the error ever after. */
static void test_damage(void **state)
{
    (void)state;
    for (size_t i = 1; i < CT_COUNT(PATHS); i++) {
        char *raw;
        size_t raw_size;
        expect_ok(ct_file_read(PATHS[i], &raw, &raw_size));
        for (int is_cut = 0; is_cut < 2; is_cut++) {
            size_t given = is_cut ? raw_size - 5 : raw_size, lengths[3];
            if (!is_cut) memset(raw + raw_size * 3 / 4, 0xff, 20);
            static const size_t pieces[3] = {1, 100, 1 << 20};
            for (size_t p = 0; p < 3; p++) {
                ct_byte_stream *stream = ct_byte_stream_from_memory("bad", raw, given);
                char *buffer = ct_alloc(pieces[p]);
                size_t count;
                ct_status *status;
                lengths[p] = 0;
                do {
                    status = ct_byte_stream_read(stream, buffer, pieces[p], &count);
                    lengths[p] += count;
                } while (!status && count);
                expect_error(status, CT_CODE_DATA_LOSS, "bad: the ");
                expect_error(ct_byte_stream_read(stream, buffer, 1, &count), CT_CODE_DATA_LOSS, "is damaged");
                ct_byte_stream_close(stream);
                free(buffer);
                assert_int_equal(lengths[p], lengths[0]);
            }
        }
        free(raw);
    }
    ct_byte_stream *stream;
    expect_error(ct_byte_stream_open("/nowhere/x.gz", &stream), CT_CODE_NOT_FOUND, "/nowhere/x.gz");
    assert_null(stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_bytes), cmocka_unit_test(test_skip),
                                       cmocka_unit_test(test_damage)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
