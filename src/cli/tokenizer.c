/* ctitan tokenizer train: learns a byte-level BPE from text files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cli/args.h"
#include "cli/verb.h"
#include "tokenizer/train.h"

static ct_status *train(const char *const *paths, size_t num_paths, int64_t vocab_size, const char *output)
{
    ct_tokenizer_trainer *trainer = ct_tokenizer_trainer_new();
    ct_status *status = NULL;
    for (size_t i = 0; i < num_paths && !status; i++) {
        char *text;
        size_t length;
        status = ct_file_read(paths[i], &text, &length);
        if (status) break;
        status = ct_tokenizer_trainer_add(trainer, text, length);
        free(text);
    }
    int64_t made = 0;
    if (!status) status = ct_tokenizer_trainer_write(trainer, vocab_size, output, &made);
    ct_tokenizer_trainer_free(trainer);
    CT_TRY(status);
    printf("%lld tokens, written to %s\n", (long long)made, output);
    if (made < vocab_size)
        fprintf(stderr,
                "ctitan tokenizer: the text has no more pairs to merge, so there are fewer than the %lld asked for\n",
                (long long)vocab_size);
    return NULL;
}

int ct_verb_tokenizer(int argc, char **argv)
{
    int64_t vocab_size = 0;
    const char *output = NULL;
    const ct_flag flags[] = {
        {"vocab-size", CT_FLAG_INT, &vocab_size,
         "N  tokens to end with: 2 special ones, 256 bytes, the rest is learned"},
        {"output", CT_FLAG_TEXT, &output, "DIR  where tokenizer.json and tokenizer_config.json go"},
    };
    ct_args args = {.usage = "ctitan tokenizer train --vocab-size=N --output=DIR FILE...",
                    .about = "Learns a byte-level BPE from text files. Hugging Face loads what it writes.",
                    .flags = flags,
                    .num_flags = CT_COUNT(flags),
                    .max_positional = (size_t)argc};
    int code = CT_EXIT_OK;
    ct_status *status = ct_args_parse(&args, argc, argv);
    if (!status && !args.wants_help) {
        if (!args.num_positional || strcmp(args.positional[0], "train") != 0)
            status = ct_error(CT_CODE_INVALID_ARGUMENT,
                              "what to do must be train, found %s%s%s; see ctitan tokenizer --help",
                              args.num_positional ? "\"" : "nothing", args.num_positional ? args.positional[0] : "",
                              args.num_positional ? "\"" : "");
        else if (!vocab_size || !output || args.num_positional < 2)
            status = ct_error(CT_CODE_INVALID_ARGUMENT,
                              "--vocab-size, --output and at least one file are required; see ctitan tokenizer --help");
    }
    if (status) {
        ct_verb_fail("tokenizer", status);
        code = CT_EXIT_USAGE;
    } else if (!args.wants_help) {
        code = ct_verb_fail("tokenizer", train(args.positional + 1, args.num_positional - 1, vocab_size, output));
    }
    ct_args_deinit(&args);
    return code;
}
