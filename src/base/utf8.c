/* UTF-8 by the table of well-formed byte sequences (Unicode standard, table 3-7): the first byte gives the length and
 * the range of the second, all others are 80..BF. */
#include "base/utf8.h"

int ct_utf8_next(const char *bytes, size_t length)
{
    const unsigned char *p = (const unsigned char *)bytes;
    unsigned char first = p[0], low = 0x80, high = 0xbf;
    if (first < 0x80) return 1;
    size_t size;
    if (first >= 0xc2 && first <= 0xdf)
        size = 2;
    else if (first >= 0xe0 && first <= 0xef)
        size = 3;
    else if (first >= 0xf0 && first <= 0xf4)
        size = 4;
    else
        return 0;
    if (first == 0xe0) low = 0xa0;
    if (first == 0xed) high = 0x9f;
    if (first == 0xf0) low = 0x90;
    if (first == 0xf4) high = 0x8f;
    for (size_t i = 1; i < size; i++) {
        if (i == length) return -1;
        if (p[i] < low || p[i] > high) return 0;
        low = 0x80;
        high = 0xbf;
    }
    return (int)size;
}

size_t ct_utf8_bad(const char *bytes, size_t length)
{
    size_t size = 1;
    while (size < length && size < 3 && ct_utf8_next(bytes, size + 1) < 0) size++;
    return size;
}

void ct_utf8_append(ct_str *str, const char *bytes, size_t length)
{
    while (length) {
        int size = ct_utf8_next(bytes, length);
        if (size > 0)
            ct_str_append_n(str, bytes, (size_t)size);
        else
            ct_str_append(str, "\xef\xbf\xbd");
        size_t used = size > 0 ? (size_t)size : ct_utf8_bad(bytes, length);
        bytes += used;
        length -= used;
    }
}
