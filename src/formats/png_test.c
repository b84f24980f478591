/* The picture is read back by hand: chunks with their sums, rows unpacked. */
#include "formats/png.h"

#include <zlib.h>

#include "base/testing.h"

static uint32_t big_endian(const char *bytes)
{
    const unsigned char *b = (const unsigned char *)bytes;
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* The content of the chunk at *at, which must be of this type. */
static const char *take_chunk(const ct_str *png, size_t *at, const char *type, uint32_t *out_length)
{
    const char *chunk = png->data + *at;
    assert_true(*at + 12 <= png->length);
    *out_length = big_endian(chunk);
    assert_true(*at + 12 + *out_length <= png->length);
    assert_memory_equal(chunk + 4, type, 4);
    uint32_t crc = (uint32_t)crc32(0, (const Bytef *)chunk + 4, *out_length + 4);
    assert_int_equal(big_endian(chunk + 8 + *out_length), crc);
    *at += 12 + *out_length;
    return chunk + 8;
}

static void test_read_back(void **state)
{
    (void)state;
    enum { WIDTH = 37, HEIGHT = 5 };
    unsigned char rgb[HEIGHT][WIDTH][3];
    for (size_t i = 0; i < sizeof(rgb); i++) ((unsigned char *)rgb)[i] = (unsigned char)(i * 73 % 251);
    ct_str png;
    ct_str_init(&png);
    ct_png_append(&png, (unsigned char *)rgb, WIDTH, HEIGHT);
    assert_memory_equal(png.data, "\x89PNG\r\n\x1a\n", 8);
    size_t at = 8;
    uint32_t length;
    const char *header = take_chunk(&png, &at, "IHDR", &length);
    assert_int_equal(length, 13);
    assert_int_equal(big_endian(header), WIDTH);
    assert_int_equal(big_endian(header + 4), HEIGHT);
    assert_memory_equal(header + 8, "\x08\x02\0\0\0", 5);
    const char *packed = take_chunk(&png, &at, "IDAT", &length);
    unsigned char rows[HEIGHT * (1 + 3 * WIDTH)];
    uLongf num_bytes = sizeof(rows);
    assert_int_equal(uncompress(rows, &num_bytes, (const Bytef *)packed, length), Z_OK);
    assert_int_equal(num_bytes, sizeof(rows));
    for (size_t y = 0; y < HEIGHT; y++) {
        assert_int_equal(rows[y * (1 + 3 * WIDTH)], 0);
        assert_memory_equal(rows + y * (1 + 3 * WIDTH) + 1, rgb[y], 3 * WIDTH);
    }
    take_chunk(&png, &at, "IEND", &length);
    assert_int_equal(length, 0);
    assert_int_equal(at, png.length);
    ct_str_deinit(&png);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_read_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
