/* ctitan score: log-likelihoods, logits and gradients of a Hugging Face folder's model. */
#include "train/score.h"

#include <stdio.h>
#include <string.h>

#include "cli/args.h"
#include "cli/environment.h"
#include "cli/run.h"
#include "cli/verb.h"

static ct_status *parse_form(const char *flag, const char *name, ct_kernel_form *out_form)
{
    *out_form = CT_KERNEL_AUTO;
    for (ct_kernel_form form = CT_KERNEL_AUTO; name && form <= CT_KERNEL_MOSAIC; form++) {
        *out_form = form;
        if (!strcmp(name, ct_kernel_form_name(form))) return NULL;
    }
    if (!name) return NULL;
    return ct_error(CT_CODE_INVALID_ARGUMENT, "--%s must be auto, definition, portable or mosaic, found \"%s\"", flag,
                    name);
}

int ct_verb_score(int argc, char **argv)
{
    ct_score_run_opts opts = {0};
    const char *platform = NULL, *plugin = NULL, *attention = NULL, *loss_form = NULL;
    const ct_flag flags[] = {
        {"model", CT_FLAG_TEXT, &opts.model_folder, "DIR  a Hugging Face folder: config.json and safetensors"},
        {"tokens", CT_FLAG_TEXT, &opts.tokens_path, "FILE  safetensors with tensor tokens and, optionally, labels"},
        {"output", CT_FLAG_TEXT, &opts.output_path, "FILE  safetensors to write"},
        {"logits", CT_FLAG_BOOL, &opts.logits, "write the logits, too"},
        {"gradients", CT_FLAG_BOOL, &opts.gradients, "write the gradient of the loss for each parameter, too"},
        {"kernels.attention", CT_FLAG_TEXT, &attention, "FORM  auto (default), definition, portable, mosaic"},
        {"kernels.loss", CT_FLAG_TEXT, &loss_form, "FORM  the same of head and loss"},
        {"device.platform", CT_FLAG_TEXT, &platform, "NAME  cpu (default), cuda, tpu, or the path of a plugin"},
        {"device.plugin_path", CT_FLAG_TEXT, &plugin, "PATH  the plugin's library"},
    };
    ct_args args = {.usage = "ctitan score --model=DIR --tokens=FILE --output=FILE [--logits] [--gradients]",
                    .about = "Evaluates a checkpoint on given tokens, in float32.",
                    .flags = flags,
                    .num_flags = CT_COUNT(flags)};
    ct_arena arena;
    ct_arena_init(&arena);
    int code = CT_EXIT_OK;
    ct_status *status = ct_args_parse(&args, argc, argv);
    if (!status && !args.wants_help && (!opts.model_folder || !opts.tokens_path || !opts.output_path))
        status =
            ct_error(CT_CODE_INVALID_ARGUMENT, "--model, --tokens and --output are required; see ctitan score --help");
    if (!status) status = parse_form("kernels.attention", attention, &opts.kernels.attention);
    if (!status) status = parse_form("kernels.loss", loss_form, &opts.kernels.loss);
    if (status) {
        ct_verb_fail("score", status);
        code = CT_EXIT_USAGE;
    } else if (!args.wants_help) {
        opts.session.plugin = ct_environment_plugin_opts(&arena, platform, plugin);
        opts.session.cache_folder = ct_run_cache_folder(&arena);
        double loss;
        status = ct_score(&opts, &loss);
        if (!status) printf("loss %.6f, written to %s\n", loss, opts.output_path);
        code = ct_verb_fail("score", status);
    }
    ct_args_deinit(&args);
    ct_arena_deinit(&arena);
    return code;
}
