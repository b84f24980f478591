/* ctitan generate: texts continued or answered by a Hugging Face folder's model. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "cli/args.h"
#include "cli/environment.h"
#include "cli/run.h"
#include "cli/verb.h"
#include "generate/text.h"

/* The row whose turn it is is shown as it comes; what others have is kept until theirs. */
typedef struct console {
    size_t num_rows, current;
    bool ids; /* numbers in place of text */
    struct {
        ct_str text;
        bool is_done;
    } rows[CT_COUNT(((ct_flag_list *)0)->items)];
} console;

static ct_status *flush(void)
{
    return fflush(stdout) ? ct_errno_error("writing to the standard output") : NULL;
}

static ct_status *show(console *c)
{
    while (c->current < c->num_rows) {
        ct_str *text = &c->rows[c->current].text;
        fwrite(text->data, 1, text->length, stdout);
        ct_str_reset(text);
        if (!c->rows[c->current].is_done) break;
        putchar('\n');
        if (++c->current < c->num_rows && !c->ids) printf("\n--- %zu\n", c->current + 1);
    }
    return flush();
}

static ct_status *on_text(void *context, size_t row, const char *text, size_t length, bool is_last)
{
    console *c = context;
    if (!c->ids) ct_str_append_n(&c->rows[row].text, text, length);
    c->rows[row].is_done = is_last;
    return row == c->current ? show(c) : NULL;
}

static ct_status *on_id(void *context, size_t row, int32_t id)
{
    console *c = context;
    ct_str_printf(&c->rows[row].text, "%" PRId32 " ", id);
    return row == c->current ? show(c) : NULL;
}

static ct_status *generate(ct_generate_text_opts *opts, bool ids)
{
    console c = {.num_rows = opts->num_prompts, .ids = ids};
    for (size_t i = 0; i < c.num_rows; i++) ct_str_init(&c.rows[i].text);
    opts->on_text = on_text;
    opts->on_id = ids ? on_id : NULL;
    opts->context = &c;
    if (c.num_rows > 1 && !ids) printf("--- 1\n");
    ct_status *status = ct_generate_text(opts);
    for (size_t i = 0; i < c.num_rows; i++) ct_str_deinit(&c.rows[i].text);
    return status;
}

static ct_status *parse_dtype(const char *name, ct_dtype *out_dtype)
{
    *out_dtype = CT_DTYPE_F32;
    if (!name || !strcmp(name, "float32")) return NULL;
    *out_dtype = CT_DTYPE_BF16;
    if (!strcmp(name, "bfloat16")) return NULL;
    return ct_error(CT_CODE_INVALID_ARGUMENT, "--dtype must be float32 or bfloat16, found \"%s\"", name);
}

/* A setting that would do nothing is a mistake. */
static ct_status *check(const ct_generate_text_opts *opts, int64_t seed)
{
    const ct_sampling *s = &opts->sampling;
    if (!opts->model_folder || !opts->num_prompts)
        return ct_error(CT_CODE_INVALID_ARGUMENT, "--model and --prompt are required; see ctitan generate --help");
    CT_TRY(ct_sampling_check(s));
    if (s->temperature == 0 && (s->top_k || s->top_p < 1 || s->min_p > 0 || seed))
        return ct_error(CT_CODE_INVALID_ARGUMENT,
                        "--top-k, --top-p, --min-p and --seed want --temperature above 0; without it the likeliest "
                        "token is taken each time");
    if (opts->system && !opts->chat)
        return ct_error(CT_CODE_INVALID_ARGUMENT, "--system is a message of a chat; it wants --chat");
    return NULL;
}

int ct_verb_generate(int argc, char **argv)
{
    ct_generate_text_opts opts = {.max_tokens = 128, .sampling = {.top_p = 1}};
    ct_flag_list prompts = {0}, stops = {0};
    const char *platform = NULL, *plugin = NULL, *dtype = NULL;
    int64_t seed = 0;
    bool ids = false;
    const ct_flag flags[] = {
        {"model", CT_FLAG_TEXT, &opts.model_folder,
         "DIR  a Hugging Face folder: config.json, safetensors, a tokenizer"},
        {"prompt", CT_FLAG_LIST, &prompts, "TEXT  what to go on from; several are done together"},
        {"chat", CT_FLAG_BOOL, &opts.chat, "prompts are a user's messages, put into the tokenizer's chat template"},
        {"system", CT_FLAG_TEXT, &opts.system, "TEXT  with --chat: the system's message before them"},
        {"max-tokens", CT_FLAG_INT, &opts.max_tokens, "N  new tokens per prompt at most (128)"},
        {"temperature", CT_FLAG_NUMBER, &opts.sampling.temperature,
         "T  0 (default) takes the likeliest token each time"},
        {"top-k", CT_FLAG_INT, &opts.sampling.top_k, "K  draw from the K likeliest tokens (all)"},
        {"top-p", CT_FLAG_NUMBER, &opts.sampling.top_p, "P  then from the likeliest that together reach P (1: all)"},
        {"min-p", CT_FLAG_NUMBER, &opts.sampling.min_p,
         "P  then from those at least P times as likely as the likeliest"},
        {"seed", CT_FLAG_INT, &seed, "N  of what is drawn (0)"},
        {"stop", CT_FLAG_LIST, &stops, "TEXT  ends the output before it; may be given several times"},
        {"tokenizer", CT_FLAG_TEXT, &opts.tokenizer, "DIR  a folder or file, or \"bytes\" (the model's folder)"},
        {"ids", CT_FLAG_BOOL, &ids, "print token ids, a line per prompt, in place of text"},
        {"dtype", CT_FLAG_TEXT, &dtype, "NAME  float32 (default) or bfloat16, of weights and computation"},
        {"device.platform", CT_FLAG_TEXT, &platform, "NAME  cpu (default), cuda, tpu, or the path of a plugin"},
        {"device.plugin_path", CT_FLAG_TEXT, &plugin, "PATH  the plugin's library"},
    };
    ct_args args = {.usage = "ctitan generate --model=DIR --prompt=TEXT [--prompt=TEXT ...] [--chat] [flags]",
                    .about = "Writes what a model goes on with behind a text, as it comes.",
                    .flags = flags,
                    .num_flags = CT_COUNT(flags)};
    ct_arena arena;
    ct_arena_init(&arena);
    int code = CT_EXIT_OK;
    ct_status *status = ct_args_parse(&args, argc, argv);
    opts.prompts = prompts.items;
    opts.num_prompts = prompts.num_items;
    opts.stops = stops.items;
    opts.num_stops = stops.num_items;
    opts.sampling.seed = (uint64_t)seed;
    if (!status) status = parse_dtype(dtype, &opts.dtype);
    if (!status && !args.wants_help) status = check(&opts, seed);
    if (status) {
        ct_verb_fail("generate", status);
        code = CT_EXIT_USAGE;
    } else if (!args.wants_help) {
        opts.session.plugin = ct_environment_plugin_opts(&arena, platform, plugin);
        opts.session.cache_folder = ct_run_cache_folder(&arena);
        code = ct_verb_fail("generate", generate(&opts, ids));
    }
    ct_args_deinit(&args);
    ct_arena_deinit(&arena);
    return code;
}
