/* What the fuzz targets of tokenizers share: a tokenizer that loaded, whatever its file was, holds these promises for
 * any text, or the target aborts.
 */
#ifndef CT_TOKENIZER_FUZZING_H
#define CT_TOKENIZER_FUZZING_H

#include <stdlib.h>
#include <string.h>

#include "tokenizer/tokenizer.h"

static inline void ct_fuzz__encode(const ct_tokenizer *tokenizer, const char *text, size_t length,
                                   ct_tokenizer_encode_opts opts)
{
    int32_t *ids, *again;
    size_t num_ids, num_again;
    ct_token_range *ranges;
    ct_status *status = ct_tokenizer_encode(tokenizer, text, length, &opts, &ids, &num_ids);
    opts.out_ranges = &ranges;
    ct_status *second = ct_tokenizer_encode(tokenizer, text, length, &opts, &again, &num_again);
    if (ct_status_code(status) != ct_status_code(second)) abort();
    if (status) { /* a character that has no token, a regular expression without an end */
        ct_status_free(status);
        ct_status_free(second);
        return;
    }
    if (num_ids != num_again || memcmp(ids, again, num_ids * sizeof(*ids)) != 0) abort();
    ct_str decoded;
    ct_str_init(&decoded);
    for (size_t i = 0; i < num_ids; i++)
        if (ids[i] < 0 || ranges[i].begin > ranges[i].end || ranges[i].end > length) abort();
    ct_status_free(ct_tokenizer_decode(tokenizer, ids, num_ids, &decoded)); /* a template's id may be beyond */
    ct_str_deinit(&decoded);
    free(ids);
    free(again);
    free(ranges);
}

static inline void ct_fuzz_tokenizer(const ct_tokenizer *tokenizer, const char *text, size_t length)
{
    ct_fuzz__encode(tokenizer, text, length, (ct_tokenizer_encode_opts){0});
    ct_fuzz__encode(tokenizer, text, length,
                    (ct_tokenizer_encode_opts){.add_special_tokens = true, .special_as_text = true});
}

#endif
