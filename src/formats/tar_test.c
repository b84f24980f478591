#include "base/testing.h"

#include "formats/tar.h"
#include "formats/tar_fuzz.c"

#define DATA CT_SOURCE_DIR "/tests/data/"

static ct_tar *open_tar(const char *name)
{
    ct_byte_stream *stream;
    char *path = ct_path_join(DATA, name);
    expect_ok(ct_byte_stream_open(path, &stream));
    free(path);
    return ct_tar_new(stream);
}

/* Python's archives in three dialects, with names of more than 100 characters in each. */
static void test_dialects(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t longest;
    } files[] = {{"texts_ustar.tar.gz", 128}, {"texts_gnu.tar.gz", 158}, {"texts_pax.tar.gz", 158}};
    for (size_t i = 0; i < CT_COUNT(files); i++) {
        ct_tar *tar = open_tar(files[i].name);
        ct_tar_member member;
        ct_str contents;
        ct_str_init(&contents);
        int num_files = 0, num_others = 0;
        size_t longest = 0;
        for (;;) {
            expect_ok(ct_tar_next(tar, &member));
            if (!member.name) break;
            longest = CT_MAX(longest, strlen(member.name));
            num_files += member.is_file;
            num_others += !member.is_file;
            ct_str_reset(&contents);
            if (!strcmp(member.name, "shard/007.txt")) {
                expect_ok(ct_tar_read(tar, &contents));
                assert_string_equal(contents.data, "a");
            } else if (strstr(member.name, "/008.cls")) {
                expect_ok(ct_tar_read(tar, &contents));
                assert_string_equal(contents.data, "1");
            }
        }
        assert_int_equal(num_files, 120);
        assert_int_equal(num_others, 1);
        assert_int_equal(longest, files[i].longest);
        ct_str_deinit(&contents);
        ct_tar_free(tar);
    }
}

static void test_damage(void **state)
{
    (void)state;
    ct_byte_stream *stream;
    expect_ok(ct_byte_stream_open(DATA "texts_ustar.tar.gz", &stream));
    char *bytes = ct_alloc(1 << 20);
    size_t size;
    expect_ok(ct_byte_stream_read(stream, bytes, 1 << 20, &size));
    ct_byte_stream_close(stream);
    ct_tar_member member;

    bytes[512 + 10] ^= 1; /* in the name of the second member */
    ct_tar *tar = ct_tar_new(ct_byte_stream_from_memory("bad", bytes, size));
    expect_ok(ct_tar_next(tar, &member));
    assert_string_equal(member.name, "shard/");
    expect_error(ct_tar_next(tar, &member), CT_CODE_DATA_LOSS,
                 "bad: the tar archive is damaged at byte 512: there is no tar header");
    ct_tar_free(tar);
    bytes[512 + 10] ^= 1;

    tar = ct_tar_new(ct_byte_stream_from_memory("cut", bytes, 1024));
    ct_str contents;
    ct_str_init(&contents);
    expect_ok(ct_tar_next(tar, &member));
    expect_ok(ct_tar_next(tar, &member));
    expect_error(ct_tar_read(tar, &contents), CT_CODE_DATA_LOSS, "ends in the middle of a member");
    ct_tar_free(tar);
    tar = ct_tar_new(ct_byte_stream_from_memory("cut", bytes, 700));
    expect_ok(ct_tar_next(tar, &member));
    expect_error(ct_tar_next(tar, &member), CT_CODE_DATA_LOSS, "ends in the middle of a header");
    ct_tar_free(tar);
    /* without the blocks of zeros at the end it is whole */
    tar = ct_tar_new(ct_byte_stream_from_memory("short", bytes, 512));
    expect_ok(ct_tar_next(tar, &member));
    expect_ok(ct_tar_next(tar, &member));
    assert_null(member.name);
    ct_tar_free(tar);
    ct_str_deinit(&contents);
    free(bytes);
}

static void test_corpus(void **state)
{
    (void)state;
    ct_test_replay(CT_TEST_CORPORA, "tar", LLVMFuzzerTestOneInput);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_dialects), cmocka_unit_test(test_damage),
                                       cmocka_unit_test(test_corpus)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
