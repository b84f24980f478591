/* ctitan convert: saved steps and Hugging Face folders, one into the other. */
#include "train/convert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/args.h"
#include "cli/verb.h"

static ct_status *parse_dtype(const char *text, ct_dtype *out_dtype)
{
    static const ct_dtype allowed[] = {CT_DTYPE_F32, CT_DTYPE_BF16, CT_DTYPE_F16};
    *out_dtype = CT_DTYPE_INVALID;
    if (!text) return NULL;
    ct_dtype dtype = ct_dtype_from_name(text);
    for (size_t i = 0; i < CT_COUNT(allowed); i++)
        if (dtype == allowed[i]) *out_dtype = dtype;
    if (*out_dtype) return NULL;
    return ct_error(CT_CODE_INVALID_ARGUMENT, "--dtype must be float32, bfloat16 or float16, found \"%s\"", text);
}

/* "5GB", "500MB", "2GiB", "1000000" */
static ct_status *parse_size(const char *text, int64_t *out_bytes)
{
    static const struct {
        const char *suffix;
        int64_t bytes;
    } units[] = {{"", 1},          {"B", 1},         {"KB", 1000},    {"MB", 1000000}, {"GB", 1000000000},
                 {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}};
    *out_bytes = 0;
    if (!text) return NULL;
    char *suffix;
    int64_t number = text[0] >= '0' && text[0] <= '9' ? strtoll(text, &suffix, 10) : 0;
    for (size_t i = 0; number > 0 && i < CT_COUNT(units); i++)
        if (!strcmp(suffix, units[i].suffix) && number <= INT64_MAX / units[i].bytes)
            *out_bytes = number * units[i].bytes;
    if (*out_bytes) return NULL;
    return ct_error(CT_CODE_INVALID_ARGUMENT,
                    "--max-shard-size must be a number of bytes above 0, with or without KB, MB, GB, KiB, MiB or GiB "
                    "behind it, found \"%s\"",
                    text);
}

int ct_verb_convert(int argc, char **argv)
{
    const char *dtype = NULL, *shard = NULL, *base = NULL;
    const ct_flag flags[] = {
        {"dtype", CT_FLAG_TEXT, &dtype,
         "NAME  type of the weights: float32, bfloat16, float16; as they are by default"},
        {"max-shard-size", CT_FLAG_TEXT, &shard, "SIZE  most bytes of a file, as 5GB, which is the default"},
        {"base", CT_FLAG_TEXT, &base,
         "DIR  of a step of adapters: where the weights are now that they were trained on, if not where they were"},
    };
    ct_args args = {.usage = "ctitan convert SOURCE TARGET [--dtype=NAME] [--max-shard-size=SIZE] "
                             "[--base=DIR]",
                    .about =
                        "Writes the weights of SOURCE, a saved step, a folder of steps or a Hugging Face folder, as "
                        "a Hugging Face\nfolder TARGET; as a step when TARGET is named step-N. A run whose folder "
                        "has only step-0 starts with it.\nAdapters are merged into the weights that they were trained "
                        "on.",
                    .flags = flags,
                    .num_flags = CT_COUNT(flags),
                    .min_positional = 2,
                    .max_positional = 2};
    ct_convert_opts opts = {0};
    int code = CT_EXIT_OK;
    ct_status *status = ct_args_parse(&args, argc, argv);
    if (!status) status = parse_dtype(dtype, &opts.dtype);
    if (!status) status = parse_size(shard, &opts.max_shard_bytes);
    if (status) {
        ct_verb_fail("convert", status);
        code = CT_EXIT_USAGE;
    } else if (!args.wants_help) {
        opts.source = args.positional[0];
        opts.target = args.positional[1];
        opts.base = base;
        ct_convert_result result;
        status = ct_convert(&opts, &result);
        if (!status)
            printf("%zu tensors, %.1f MB, written to %s, a %s\n", result.num_tensors, (double)result.size_bytes / 1e6,
                   opts.target, result.is_step ? "step" : "Hugging Face folder");
        code = ct_verb_fail("convert", status);
    }
    ct_args_deinit(&args);
    return code;
}
