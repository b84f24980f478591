#include "tokenizer/base64.h"

#include <stdlib.h>

#include "base/alloc.h"

static int value_of(char c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

ct_status *ct__base64_decode_into(const char *text, size_t length, char *out_bytes, size_t *out_length)
{
    *out_length = 0;
    if (length % 4)
        return ct_error(CT_CODE_INVALID_ARGUMENT, "base64 comes in groups of four characters, found %zu", length);
    size_t padding = 0;
    while (padding < 2 && padding < length && text[length - 1 - padding] == '=') padding++;
    for (size_t i = 0; i < length; i += 4) {
        uint32_t group = 0;
        for (size_t j = 0; j < 4; j++) {
            int value = i + j >= length - padding ? 0 : value_of(text[i + j]);
            if (value < 0)
                return ct_error(CT_CODE_INVALID_ARGUMENT, "character %zu of base64 text is '%c'", i + j + 1,
                                text[i + j] >= ' ' ? text[i + j] : '?');
            group = group << 6 | (uint32_t)value;
        }
        for (int shift = 16; shift >= 0; shift -= 8)
            if (*out_length < length / 4 * 3 - padding) out_bytes[(*out_length)++] = (char)(group >> shift & 0xff);
    }
    return NULL;
}

ct_status *ct__base64_decode(const char *text, size_t length, char **out_bytes, size_t *out_length)
{
    *out_bytes = ct_alloc(length / 4 * 3 + 1);
    ct_status *status = ct__base64_decode_into(text, length, *out_bytes, out_length);
    (*out_bytes)[*out_length] = 0;
    if (!status) return NULL;
    free(*out_bytes);
    *out_bytes = NULL;
    return status;
}
