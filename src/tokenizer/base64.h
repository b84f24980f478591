/* Base64 as RFC 4648 has it, for rank files and character maps. Only for files in this folder. */
#ifndef CT_TOKENIZER_BASE64_H
#define CT_TOKENIZER_BASE64_H

#include "base/status.h"

/* Heap, the caller's to free(), with a zero byte behind. Errors: INVALID_ARGUMENT names the first wrong character. */
CT_MUST_USE ct_status *ct__base64_decode(const char *text, size_t length, char **out_bytes, size_t *out_length);

/* Into room for length / 4 * 3 bytes. */
CT_MUST_USE ct_status *ct__base64_decode_into(const char *text, size_t length, char *out_bytes, size_t *out_length);

#endif
