#include "base/testing.h"

#include "formats/json.h"
#include "formats/parquet/parquet.h"
#include "formats/parquet/parquet_fuzz.c"

#define DATA CT_SOURCE_DIR "/tests/data/"

/* The lines of a file of JSON lines. */
typedef struct lines {
    ct_json *json[128];
    size_t count;
} lines;

static lines read_lines(const char *path)
{
    lines all = {0};
    char *text, *rest = NULL;
    size_t size;
    expect_ok(ct_file_read(path, &text, &size));
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        expect_ok(ct_json_parse(line, strlen(line), path, &all.json[all.count++]));
    free(text);
    return all;
}

static void free_lines(lines *all)
{
    for (size_t i = 0; i < all->count; i++) ct_json_free(all->json[i]);
}

static size_t leaf_of(const ct_parquet *file, const char *path)
{
    for (size_t i = 0; i < ct_parquet_num_leaves(file); i++)
        if (!strcmp(ct_parquet_leaf_at(file, i)->path, path)) return i;
    fail_msg("no leaf %s", path);
    return 0;
}

static ct_parquet_cursor *cursor_at(const ct_parquet *file, const char *path)
{
    ct_parquet_cursor *cursor;
    expect_ok(ct_parquet_cursor_new(file, leaf_of(file, path), &cursor));
    return cursor;
}

static void expect_text(const ct_parquet_row *row, const char *wanted)
{
    assert_int_equal(row->num_values, 1);
    assert_int_equal(row->values[0].is_null, wanted == NULL);
    if (!wanted) return;
    assert_int_equal(row->values[0].size, strlen(wanted));
    assert_memory_equal(row->bytes.data, wanted, strlen(wanted));
}

static const char *const FILES[] = {"texts_snappy",     "texts_gzip_dictionary",
                                    "texts_zstd_v2",    "texts_lz4_v2_dictionary",
                                    "texts_none_delta", "texts_fastparquet"};

static ct_parquet *open_file(const char *name)
{
    char *path = ct_asprintf(DATA "%s.parquet", name);
    ct_parquet *file;
    expect_ok(ct_parquet_open(path, &file));
    free(path);
    return file;
}

/* Each compression, encoding and page version gives what pyarrow was given, from the begin and from any row. */
static void test_texts(void **state)
{
    (void)state;
    lines all = read_lines(DATA "texts.jsonl");
    ct_parquet_row row;
    ct_parquet_row_init(&row);
    for (size_t f = 0; f < CT_COUNT(FILES); f++) {
        ct_parquet *file = open_file(FILES[f]);
        assert_int_equal(ct_parquet_num_rows(file), 60);
        for (int64_t first = 0; first < 60; first++) {
            ct_parquet_cursor *text = cursor_at(file, "text"), *maybe = cursor_at(file, "maybe");
            bool has_kind = strcmp(FILES[f], "texts_fastparquet") != 0; /* it has no structs */
            ct_parquet_cursor *kind = has_kind ? cursor_at(file, "meta.kind") : NULL;
            expect_ok(ct_parquet_cursor_seek(text, first / 2)); /* in two steps */
            expect_ok(ct_parquet_cursor_seek(text, first));
            expect_ok(ct_parquet_cursor_seek(maybe, first));
            if (kind) expect_ok(ct_parquet_cursor_seek(kind, first));
            for (int64_t i = first; i < 60; i++) {
                const char *wanted;
                expect_ok(ct_json_need_string(ct_json_root(all.json[i]), "text", &wanted));
                assert_int_equal(ct_parquet_cursor_row(text), i);
                expect_ok(ct_parquet_next_row(text, &row));
                expect_text(&row, wanted);
                expect_ok(ct_parquet_next_row(maybe, &row));
                expect_text(&row, i % 3 ? wanted : NULL);
                if (!kind) continue;
                expect_ok(ct_parquet_next_row(kind, &row));
                expect_text(&row, i % 2 ? "odd" : "even");
            }
            ct_parquet_cursor_free(text);
            ct_parquet_cursor_free(maybe);
            ct_parquet_cursor_free(kind);
        }
        ct_parquet_close(file);
    }
    ct_parquet_row_deinit(&row);
    free_lines(&all);
}

/* Lists of structs: a value per message, rows that pages cut. */
static void test_lists(void **state)
{
    (void)state;
    lines all = read_lines(DATA "chat.jsonl");
    static const char *const names[] = {"chat", "chat_v2"};
    ct_parquet_row row;
    ct_parquet_row_init(&row);
    for (size_t f = 0; f < CT_COUNT(names); f++) {
        ct_parquet *file = open_file(names[f]);
        for (int64_t first = 0; first < (int64_t)all.count; first++)
            for (int is_role = 0; is_role < 2; is_role++) {
                ct_parquet_cursor *cursor =
                    cursor_at(file, is_role ? "messages.list.element.role" : "messages.list.element.content");
                expect_ok(ct_parquet_cursor_seek(cursor, first));
                for (size_t i = (size_t)first; i < all.count; i++) {
                    ct_json_value messages = ct_json_get(ct_json_root(all.json[i]), "messages");
                    expect_ok(ct_parquet_next_row(cursor, &row));
                    assert_int_equal(row.num_values, ct_json_size(messages));
                    for (size_t m = 0; m < row.num_values; m++) {
                        const char *wanted;
                        expect_ok(ct_json_need_string(ct_json_at(messages, m), is_role ? "role" : "content", &wanted));
                        assert_int_equal(row.values[m].size, strlen(wanted));
                        assert_memory_equal(row.bytes.data + row.values[m].offset, wanted, strlen(wanted));
                        assert_int_equal(row.values[m].repetition, m > 0);
                    }
                }
                ct_parquet_cursor_free(cursor);
            }
        ct_parquet_cursor *empty = cursor_at(file, "empty.list.element");
        for (size_t i = 0; i < all.count; i++) {
            expect_ok(ct_parquet_next_row(empty, &row));
            assert_int_equal(row.num_values, 1);
            assert_true(row.values[0].is_null);
            assert_int_equal(row.values[0].definition, i % 2);
        }
        ct_parquet_cursor_free(empty);
        ct_parquet_close(file);
    }
    ct_parquet_row_deinit(&row);
    free_lines(&all);
}

static void test_refused(void **state)
{
    (void)state;
    ct_parquet *file = open_file("texts_brotli");
    ct_parquet_cursor *cursor = cursor_at(file, "text");
    ct_parquet_row row;
    ct_parquet_row_init(&row);
    expect_error(ct_parquet_next_row(cursor, &row), CT_CODE_UNIMPLEMENTED, "column text has compression brotli");
    ct_parquet_row_deinit(&row);
    ct_parquet_cursor_free(cursor);
    ct_parquet_close(file);
    file = open_file("texts_snappy");
    expect_error(ct_parquet_cursor_new(file, leaf_of(file, "id"), &cursor), CT_CODE_UNIMPLEMENTED,
                 "column id must be of strings");
    ct_parquet_close(file);
    expect_error(ct_parquet_open(DATA "texts.jsonl", &file), CT_CODE_DATA_LOSS, "does not begin with PAR1");
    assert_null(file);
    expect_error(ct_parquet_from_memory("cut", "PAR1........", 12, &file), CT_CODE_DATA_LOSS, "is it cut short?");
    expect_error(ct_parquet_from_memory("long", "PAR1\377\377\0\0PAR1", 12, &file), CT_CODE_DATA_LOSS,
                 "longer than the file");
}

/* A changed byte may be seen or not, but harms nothing. */
static void test_damage(void **state)
{
    (void)state;
    for (size_t f = 0; f < CT_COUNT(FILES); f++) {
        char *path = ct_asprintf(DATA "%s.parquet", FILES[f]), *bytes;
        size_t size;
        expect_ok(ct_file_read(path, &bytes, &size));
        free(path);
        for (size_t i = 0; i < size; i += 11) {
            bytes[i] ^= (char)(1 << i % 8);
            LLVMFuzzerTestOneInput((const uint8_t *)bytes, size);
            bytes[i] ^= (char)(1 << i % 8);
        }
        free(bytes);
    }
}

static void test_corpus(void **state)
{
    (void)state;
    ct_test_replay(CT_TEST_CORPORA, "parquet", LLVMFuzzerTestOneInput);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_texts), cmocka_unit_test(test_lists),
                                       cmocka_unit_test(test_refused), cmocka_unit_test(test_damage),
                                       cmocka_unit_test(test_corpus)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
