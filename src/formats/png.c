/* Three chunks: header, the rows packed with zlib, end. Each row begins with its filter, of which only "none" is used:
 * a plot is mostly one color.
 *
 *   89 "PNG" 0d 0a 1a 0a | chunk: u32 length, type, bytes, u32 CRC-32 of type and bytes      all big-endian
 */
#include "formats/png.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/alloc.h"

static void append_big_endian(ct_str *out, uint32_t value)
{
    for (int shift = 24; shift >= 0; shift -= 8) ct_str_append_char(out, (char)(value >> shift & 0xff));
}

static void append_chunk(ct_str *out, const char *type, const void *bytes, size_t length)
{
    append_big_endian(out, (uint32_t)length);
    size_t start = out->length;
    ct_str_append_n(out, type, 4);
    ct_str_append_n(out, bytes, length);
    append_big_endian(out, (uint32_t)crc32(0, (const Bytef *)out->data + start, (uInt)(out->length - start)));
}

void ct_png_append(ct_str *out, const unsigned char *rgb, uint32_t width, uint32_t height)
{
    CT_ASSERT(width && height && width < 1 << 15 && height < 1 << 15);
    ct_str header;
    ct_str_init(&header);
    append_big_endian(&header, width);
    append_big_endian(&header, height);
    ct_str_append_n(&header, "\x08\x02\0\0\0", 5); /* 8 bits, RGB, the usual packing and filters, not interlaced */

    size_t row_bytes = 3 * (size_t)width, num_bytes = (row_bytes + 1) * height;
    unsigned char *rows = ct_alloc(num_bytes);
    for (size_t y = 0; y < height; y++) {
        rows[y * (row_bytes + 1)] = 0;
        memcpy(rows + y * (row_bytes + 1) + 1, rgb + y * row_bytes, row_bytes);
    }
    uLongf packed_bytes = compressBound(num_bytes);
    unsigned char *packed = ct_alloc(packed_bytes);
    if (compress2(packed, &packed_bytes, rows, num_bytes, 9) != Z_OK) CT_BUG("zlib has room for all, and fails");

    ct_str_append_n(out, "\x89PNG\r\n\x1a\n", 8);
    append_chunk(out, "IHDR", header.data, header.length);
    append_chunk(out, "IDAT", packed, packed_bytes);
    append_chunk(out, "IEND", "", 0);
    ct_str_deinit(&header);
    free(packed);
    free(rows);
}
