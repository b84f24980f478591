/* Bytes up to the first NUL are a tokenizer.json, the rest is text. What loads must encode any text to ids of its
 * vocabulary, the same with and without ranges and when special tokens are text, and decode them.
 */
#include <string.h>

#include "tokenizer/fuzzing.h"
#include "tokenizer/readers.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    size_t json_length = strnlen((const char *)bytes, size);
    ct_tokenizer *tokenizer;
    ct_status *status = ct__read_tokenizer_json((const char *)bytes, json_length, "fuzz", &tokenizer);
    if (status) {
        ct_status_free(status);
        return 0;
    }
    const char *text = (const char *)bytes + json_length;
    size_t length = size - json_length;
    ct_fuzz_tokenizer(tokenizer, text, length);
    ct_tokenizer_free(tokenizer);
    return 0;
}
