/* ctitan tokenize: text to ids, a line of numbers, or the reverse. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "cli/args.h"
#include "cli/verb.h"
#include "tokenizer/tokenizer.h"

typedef struct wishes {
    const char *tokenizer;
    bool decode, special_tokens, offsets;
} wishes;

static ct_status *read_input(const char *path, ct_str *text)
{
    if (path) {
        char *data;
        size_t length;
        CT_TRY(ct_file_read(path, &data, &length));
        ct_str_append_n(text, data, length);
        free(data);
        return NULL;
    }
    char buffer[1 << 16];
    ssize_t count;
    while ((count = read(STDIN_FILENO, buffer, sizeof(buffer))) > 0) ct_str_append_n(text, buffer, (size_t)count);
    return count < 0 ? ct_errno_error("reading the standard input") : NULL;
}

static ct_status *write_output(const ct_str *text)
{
    return ct_file_write_all(STDOUT_FILENO, "the standard output", text->data, text->length);
}

static ct_status *encode(const ct_tokenizer *tokenizer, const wishes *w, const ct_str *text, ct_str *out)
{
    int32_t *ids;
    size_t num_ids;
    ct_token_range *ranges = NULL;
    ct_tokenizer_encode_opts opts = {.add_special_tokens = w->special_tokens,
                                     .out_ranges = w->offsets ? &ranges : NULL};
    CT_TRY(ct_tokenizer_encode(tokenizer, text->data, text->length, &opts, &ids, &num_ids));
    for (size_t i = 0; i < num_ids; i++) {
        if (w->offsets)
            ct_str_printf(out, "%d %zu %zu\n", ids[i], ranges[i].begin, ranges[i].end);
        else
            ct_str_printf(out, "%s%d", i ? " " : "", ids[i]);
    }
    if (!w->offsets) ct_str_append_char(out, '\n');
    free(ids);
    free(ranges);
    return NULL;
}

/* Numbers with anything of space between. */
static ct_status *parse_ids(const ct_str *text, int32_t **out_ids, size_t *out_num_ids)
{
    *out_ids = ct_alloc((text->length / 2 + 1) * sizeof(**out_ids));
    *out_num_ids = 0;
    const char *at = text->data, *end = at + text->length;
    for (;;) {
        at += strspn(at, " \t\r\n");
        if (at == end) return NULL;
        char *behind;
        long id = strtol(at, &behind, 10);
        if (behind == at || id < INT32_MIN || id > INT32_MAX || !strchr(" \t\r\n", *behind)) {
            free(*out_ids);
            *out_ids = NULL;
            return ct_error(CT_CODE_INVALID_ARGUMENT, "--decode reads token ids with spaces between, found \"%.20s\"",
                            at);
        }
        (*out_ids)[(*out_num_ids)++] = (int32_t)id;
        at = behind;
    }
}

static ct_status *decode(const ct_tokenizer *tokenizer, const wishes *w, const ct_str *text, ct_str *out)
{
    int32_t *ids;
    size_t num_ids;
    CT_TRY(parse_ids(text, &ids, &num_ids));
    ct_status *status = w->special_tokens ? ct_tokenizer_decode_all(tokenizer, ids, num_ids, out)
                                          : ct_tokenizer_decode(tokenizer, ids, num_ids, out);
    free(ids);
    return status;
}

static ct_status *run(const wishes *w, const char *path)
{
    ct_tokenizer *tokenizer;
    CT_TRY(ct_tokenizer_open(w->tokenizer, &tokenizer));
    ct_str text, out;
    ct_str_init(&text);
    ct_str_init(&out);
    ct_status *status = read_input(path, &text);
    if (!status) status = w->decode ? decode(tokenizer, w, &text, &out) : encode(tokenizer, w, &text, &out);
    if (!status) status = write_output(&out);
    ct_str_deinit(&text);
    ct_str_deinit(&out);
    ct_tokenizer_free(tokenizer);
    return status;
}

int ct_verb_tokenize(int argc, char **argv)
{
    wishes w = {0};
    const ct_flag flags[] = {
        {"tokenizer", CT_FLAG_TEXT, &w.tokenizer, "DIR  a folder or file that holds a tokenizer, or \"bytes\""},
        {"decode", CT_FLAG_BOOL, &w.decode, "read ids, write text"},
        {"special-tokens", CT_FLAG_BOOL, &w.special_tokens,
         "add what the tokenizer puts around a text; with --decode, show special tokens"},
        {"offsets", CT_FLAG_BOOL, &w.offsets, "a line per id, with the bytes of the text that it stands for"},
    };
    ct_args args = {.usage = "ctitan tokenize --tokenizer=DIR [--decode] [--special-tokens] [--offsets] [FILE]",
                    .about = "Writes the token ids of a text, or the text of ids; of the standard input without FILE.",
                    .flags = flags,
                    .num_flags = CT_COUNT(flags),
                    .max_positional = 1};
    int code = CT_EXIT_OK;
    ct_status *status = ct_args_parse(&args, argc, argv);
    if (!status && !args.wants_help && !w.tokenizer)
        status = ct_error(CT_CODE_INVALID_ARGUMENT, "--tokenizer is required; see ctitan tokenize --help");
    if (!status && w.decode && w.offsets)
        status = ct_error(CT_CODE_INVALID_ARGUMENT, "--offsets are those of a text; they do not go with --decode");
    if (status) {
        ct_verb_fail("tokenize", status);
        code = CT_EXIT_USAGE;
    } else if (!args.wants_help) {
        code = ct_verb_fail("tokenize", run(&w, args.num_positional ? args.positional[0] : NULL));
    }
    ct_args_deinit(&args);
    return code;
}
