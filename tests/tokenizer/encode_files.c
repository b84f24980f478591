/* encode_files TOKENIZER FILE...: writes FILE.ids (int32) for every file, after checking what must hold of any text:
 *
 *   - encoding with ranges gives the same ids, and ranges that do not run backwards
 *   - decoding id by id (a stream) shows what decoding at once does
 *   - a second encoding, from warm caches, gives the same ids
 *
 * Ids of the template are included with --special-tokens as first argument; with --special-as-text, special tokens in
 * the text are none. For the tests, which hold the ids against other libraries.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/utf8.h"
#include "tokenizer/tokenizer.h"

static bool add_special_tokens, special_as_text;

static ct_status *check_ranges(const ct_token_range *ranges, size_t num_ids, size_t length)
{
    for (size_t i = 0; i < num_ids; i++) {
        if (ranges[i].begin > ranges[i].end || ranges[i].end > length)
            return ct_error(CT_CODE_INTERNAL, "id %zu of %zu has range [%zu, %zu) of %zu", i, num_ids, ranges[i].begin,
                            ranges[i].end, length);
        if (i && ranges[i].begin < ranges[i - 1].begin)
            return ct_error(CT_CODE_INTERNAL, "id %zu begins at %zu, before the one in front of it at %zu", i,
                            ranges[i].begin, ranges[i - 1].begin);
    }
    return NULL;
}

static ct_status *check_stream(const ct_tokenizer *tokenizer, const int32_t *ids, size_t num_ids)
{
    ct_str whole, shown, streamed;
    ct_str_init(&whole);
    ct_str_init(&shown);
    ct_str_init(&streamed);
    ct_token_stream stream;
    ct_token_stream_init(&stream, tokenizer);
    ct_status *status = NULL;
    /* A special id ends the text before it, so compare between them. */
    size_t begin = 0;
    for (size_t i = 0; i <= num_ids && !status; i++) {
        if (i < num_ids && !ct_tokenizer_is_special(tokenizer, ids[i])) {
            status = ct_token_stream_push(&stream, ids[i], &streamed);
            continue;
        }
        if (begin == 0) {
            status = ct_tokenizer_decode(tokenizer, ids, i, &whole);
            ct_utf8_append(&shown, whole.data, whole.length);
            ct_token_stream_finish(&stream, &streamed);
            if (!status && strcmp(shown.data, streamed.data) != 0)
                status = ct_error(CT_CODE_INTERNAL, "decoding id by id differs from decoding at once");
        }
        begin = i + 1;
    }
    ct_token_stream_deinit(&stream);
    ct_str_deinit(&whole);
    ct_str_deinit(&shown);
    ct_str_deinit(&streamed);
    return status;
}

static ct_status *encode_file(const ct_tokenizer *tokenizer, const char *path)
{
    char *text = NULL, *output = ct_asprintf("%s.ids", path);
    size_t length, num_ids, num_again;
    int32_t *ids = NULL, *again = NULL;
    ct_token_range *ranges = NULL;
    ct_tokenizer_encode_opts opts = {.add_special_tokens = add_special_tokens, .special_as_text = special_as_text};
    ct_status *status = ct_file_read(path, &text, &length);
    if (!status) status = ct_tokenizer_encode(tokenizer, text, length, &opts, &ids, &num_ids);
    opts.out_ranges = &ranges;
    if (!status) status = ct_tokenizer_encode(tokenizer, text, length, &opts, &again, &num_again);
    if (!status && (num_ids != num_again || memcmp(ids, again, num_ids * sizeof(*ids)) != 0))
        status = ct_error(CT_CODE_INTERNAL, "encoding with ranges gives other ids than without");
    if (!status) status = check_ranges(ranges, num_ids, length);
    free(again);
    again = NULL;
    opts.out_ranges = NULL;
    if (!status) status = ct_tokenizer_encode(tokenizer, text, length, &opts, &again, &num_again);
    if (!status && (num_ids != num_again || memcmp(ids, again, num_ids * sizeof(*ids)) != 0))
        status = ct_error(CT_CODE_INTERNAL, "a second encoding gives other ids");
    if (!status) status = check_stream(tokenizer, ids, num_ids);
    if (!status) status = ct_file_write(output, ids, num_ids * sizeof(*ids));
    ct_str decoded;
    ct_str_init(&decoded);
    if (!status) status = ct_tokenizer_decode(tokenizer, ids, num_ids, &decoded);
    free(output);
    output = ct_asprintf("%s.txt", path);
    if (!status) status = ct_file_write(output, decoded.data, decoded.length);
    ct_str_deinit(&decoded);
    free(text);
    free(output);
    free(ids);
    free(again);
    free(ranges);
    return ct_status_note(status, "%s", path);
}

int main(int argc, char **argv)
{
    int at = 1;
    for (; at < argc && argv[at][0] == '-'; at++) {
        add_special_tokens = add_special_tokens || !strcmp(argv[at], "--special-tokens");
        special_as_text = special_as_text || !strcmp(argv[at], "--special-as-text");
    }
    if (argc <= at) {
        fprintf(stderr, "usage: encode_files [--special-tokens] [--special-as-text] TOKENIZER FILE...\n");
        return 2;
    }
    ct_tokenizer *tokenizer;
    ct_status *status = ct_tokenizer_open(argv[at], &tokenizer);
    for (int i = at + 1; i < argc && !status; i++) status = encode_file(tokenizer, argv[i]);
    if (status) fprintf(stderr, "%s\n", ct_status_message(status));
    int code = status ? 1 : 0;
    ct_status_free(status);
    ct_tokenizer_free(tokenizer);
    return code;
}
