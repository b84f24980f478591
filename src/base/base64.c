#include "base/base64.h"

#include <string.h>

#include "base/alloc.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void ct_base64_append(ct_str *out, const void *bytes, size_t size_bytes)
{
    const unsigned char *from = bytes;
    for (size_t i = 0; i < size_bytes; i += 3) {
        size_t left = CT_MIN(size_bytes - i, (size_t)3);
        uint32_t word = 0;
        for (size_t j = 0; j < 3; j++) word = word << 8 | (j < left ? from[i + j] : 0u);
        for (size_t j = 0; j < 4; j++) ct_str_append_char(out, j <= left ? digits[word >> (18 - 6 * j) & 63] : '=');
    }
}

char *ct_base64_decode(const char *text, size_t length, size_t *out_size_bytes)
{
    char *bytes = ct_alloc(length / 4 * 3 + 4);
    size_t count = 0;
    uint32_t word = 0;
    for (size_t i = 0; i < length; i++) {
        const char *digit = text[i] ? memchr(digits, text[i], 64) : NULL;
        if (!digit) break;
        word = word << 6 | (uint32_t)(digit - digits);
        if (i % 4) bytes[count++] = (char)(word >> (6 - 2 * (i % 4)) & 255);
    }
    bytes[count] = 0;
    *out_size_bytes = count;
    return bytes;
}
