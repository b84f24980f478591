/* XXH3-128 of files, as 32 lower-case hex digits (the canonical, big-endian form). Only for files in this folder. */
#ifndef CT_CHECKPOINT_HASH_H
#define CT_CHECKPOINT_HASH_H

#include "base/macros.h"

enum { CT__HASH_DIGITS = 32 };

typedef struct ct__hash ct__hash; /* of bytes that come in pieces */

ct__hash *ct__hash_new(void);
void ct__hash_update(ct__hash *hash, const void *bytes, size_t size_bytes);
void ct__hash_finish(ct__hash *hash, char out_digits[CT__HASH_DIGITS + 1]); /* frees hash */

void ct__hash_bytes(const void *bytes, size_t size_bytes, char out_digits[CT__HASH_DIGITS + 1]);

#endif
