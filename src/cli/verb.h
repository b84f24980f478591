/* A verb of the command: ctitan VERB ARGUMENTS. Each verb is a file of this folder and a row of main.c's table. */
#ifndef CT_CLI_VERB_H
#define CT_CLI_VERB_H

#include "base/status.h"

/* Exit codes. */
enum { CT_EXIT_OK = 0, CT_EXIT_FAILED = 1, CT_EXIT_USAGE = 2 };

/* argv[0] is the verb; argv[argc] is NULL. Returns the exit code; what went wrong has been printed. */
typedef int ct_verb_function(int argc, char **argv);

typedef struct ct_verb {
    const char *name;
    const char *help; /* one line */
    ct_verb_function *run;
} ct_verb;

ct_verb_function ct_verb_check, ct_verb_convert, ct_verb_devices, ct_verb_generate, ct_verb_plan, ct_verb_plot,
    ct_verb_score, ct_verb_tokenize, ct_verb_tokenizer, ct_verb_train;

/* Prints "ctitan VERB: message" to stderr, frees the status, returns CT_EXIT_FAILED; OK for NULL. */
int ct_verb_fail(const char *verb, ct_status *status);

#endif
