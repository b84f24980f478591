/* ctitan: a table of verbs. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cli/verb.h"

static const ct_verb verbs[] = {
    {"train", "train a model as a recipe says", ct_verb_train},
    {"check", "check a recipe and build its program, without a device", ct_verb_check},
    {"plan", "compile a recipe for TPUs that need not be here: does it fit, how long will a step take", ct_verb_plan},
    {"score", "log-likelihoods, logits and gradients of a Hugging Face folder on given tokens", ct_verb_score},
    {"generate", "continue or answer a text with a Hugging Face folder's model", ct_verb_generate},
    {"convert", "weights from saved steps to Hugging Face folders, and back", ct_verb_convert},
    {"tokenize", "text to token ids, or back", ct_verb_tokenize},
    {"tokenizer", "learn a tokenizer from text", ct_verb_tokenizer},
    {"plot", "draw the curves of runs, in the terminal or as a picture", ct_verb_plot},
    {"devices", "show the plugin, its versions, devices and memories", ct_verb_devices},
};

static int print_help(FILE *out)
{
    fprintf(out, "usage: ctitan VERB [arguments]\n\n");
    for (size_t i = 0; i < CT_COUNT(verbs); i++) fprintf(out, "  %-10s %s\n", verbs[i].name, verbs[i].help);
    fprintf(out, "  %-10s %s\n", "help", "this list; ctitan VERB --help says more of a verb");
    return out == stdout ? CT_EXIT_OK : CT_EXIT_USAGE;
}

static int unknown_verb(const char *name)
{
    const char *names[CT_COUNT(verbs) + 1];
    for (size_t i = 0; i < CT_COUNT(verbs); i++) names[i] = verbs[i].name;
    names[CT_COUNT(verbs)] = "help";
    const char *near = ct_nearest_name(name, names, CT_COUNT(names));
    fprintf(stderr, "ctitan: there is no verb \"%s\"", name);
    if (near) fprintf(stderr, "; did you mean \"%s\"?", near);
    fprintf(stderr, "\n\n");
    return print_help(stderr);
}

int main(int argc, char **argv)
{
    if (argc < 2) return print_help(stderr);
    const char *name = argv[1];
    if (!strcmp(name, "--version")) {
        printf("ctitan " CT_VERSION "\n");
        return CT_EXIT_OK;
    }
    if (!strcmp(name, "help") && argc > 2) {
        char *help[] = {argv[2], (char[]){"--help"}, NULL};
        for (size_t i = 0; i < CT_COUNT(verbs); i++)
            if (!strcmp(argv[2], verbs[i].name)) return verbs[i].run(2, help);
        return unknown_verb(argv[2]);
    }
    if (!strcmp(name, "help") || !strcmp(name, "--help") || !strcmp(name, "-h")) return print_help(stdout);
    for (size_t i = 0; i < CT_COUNT(verbs); i++)
        if (!strcmp(name, verbs[i].name)) return verbs[i].run(argc - 1, argv + 1);
    return unknown_verb(name);
}
