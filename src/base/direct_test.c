#include "base/testing.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/direct.h"

typedef struct seen {
    const unsigned char *wanted; /* the next bytes */
    size_t size_bytes;
} seen;

static void compare(void *context, const void *bytes, size_t size_bytes)
{
    seen *s = context;
    assert_memory_equal(bytes, s->wanted, size_bytes);
    s->wanted += size_bytes;
    s->size_bytes += size_bytes;
}

/* Ranges of a file above and below what counts as large, at and around blocks, pieces and the end. */
static void test_ranges(void **state)
{
    (void)state;
    const int64_t sizes[] = {CT_DIRECT_SMALLEST + 12345, 5000};
    char *folder = ct_test_folder_new(), *path = ct_path_join(folder, "file");
    void *piece = ct_direct_piece_new();
    for (size_t i = 0; i < CT_COUNT(sizes); i++) {
        unsigned char *data = ct_alloc((size_t)sizes[i]);
        for (int64_t j = 0; j < sizes[i]; j++) data[j] = (unsigned char)(j * 2654435761u >> 13);
        expect_ok(ct_file_write(path, data, (size_t)sizes[i]));
        for (int is_cached = 0; is_cached < 2; is_cached++) {
            ct_direct_file file;
            expect_ok(ct_direct_open(path, is_cached, &file));
            assert_int_equal(file.size_bytes, sizes[i]);
            const int64_t places[] = {0, 1, 511, 4095, 4096, 4097, CT_DIRECT_PIECE - 1, CT_DIRECT_PIECE, sizes[i] - 1};
            const int64_t lengths[] = {0, 1, 4096, 5000, CT_DIRECT_PIECE + 3, 3 * CT_DIRECT_PIECE, sizes[i]};
            for (size_t a = 0; a < CT_COUNT(places); a++)
                for (size_t b = 0; b < CT_COUNT(lengths); b++) {
                    if (places[a] < 0 || places[a] > sizes[i]) continue;
                    int64_t length = CT_MIN(lengths[b], sizes[i] - places[a]);
                    seen s = {.wanted = data + places[a]};
                    expect_ok(ct_direct_read(&file, path, places[a], length, piece, compare, &s));
                    assert_int_equal(s.size_bytes, length);
                }
            seen s = {.wanted = data + 100};
            expect_error(ct_direct_read(&file, path, 100, sizes[i], piece, compare, &s), CT_CODE_DATA_LOSS, "ends at");
            ct_direct_close(&file);
        }
        free(data);
    }
    ct_direct_file file;
    expect_error(ct_direct_open(folder, false, &file), CT_CODE_INVALID_ARGUMENT, "must be a regular file");
    expect_error(ct_direct_open("/nowhere", false, &file), CT_CODE_NOT_FOUND, "cannot open");
    ct_direct_close(&file);
    free(piece);
    free(path);
    ct_test_folder_free(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ranges)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
