/* Base64 (RFC 4648, with padding). */
#ifndef CT_BASE_BASE64_H
#define CT_BASE_BASE64_H

#include "base/str.h"

void ct_base64_append(ct_str *out, const void *bytes, size_t size_bytes);

/* The bytes of text, up to its padding or the first character that is no digit; heap, a zero follows them. */
char *ct_base64_decode(const char *text, size_t length, size_t *out_size_bytes);

#endif
