/* The vocabularies that are no tokenizer.json. The first byte chooses: 's' SentencePiece's tokenizer.model, 't'
 * tiktoken's ranks, 'k' Mistral's tekken.json. The next two are the file's length, the lower first; the rest of the
 * bytes are text. A rank file loads only with as many ranks as
 * a known model has, so of small ones the reading alone is tried.
 */
#include "tokenizer/fuzzing.h"
#include "tokenizer/readers.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static ct_status *read_tekken(const char *text, size_t length, ct_tokenizer **out_tokenizer)
{
    ct_json *json;
    CT_TRY(ct_json_parse(text, length, "fuzz", &json));
    ct_status *status = ct__read_tekken(json, "fuzz", out_tokenizer);
    ct_json_free(json);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size < 3) return 0;
    size_t length = bytes[1] + 256U * bytes[2];
    length = CT_MIN(length, size - 3);
    const char *file = (const char *)bytes + 3;
    ct_tokenizer *tokenizer = NULL;
    ct_status *status;
    switch (bytes[0]) {
    case 's': status = ct__read_sentencepiece(file, length, "fuzz", &tokenizer); break;
    case 't': status = ct__read_tiktoken(file, length, "fuzz", &tokenizer); break;
    case 'k': status = read_tekken(file, length, &tokenizer); break;
    default: return 0;
    }
    if (status) {
        ct_status_free(status);
        return 0;
    }
    ct_fuzz_tokenizer(tokenizer, file + length, size - 3 - length);
    ct_tokenizer_free(tokenizer);
    return 0;
}
