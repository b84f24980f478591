/* Command-line arguments of a verb: flags (--name=value, --name value, --name for booleans), what other modules take
 * (overrides of a recipe), and positional arguments. After "--" all are positional. Not thread-safe.
 */
#ifndef CT_CLI_ARGS_H
#define CT_CLI_ARGS_H

#include <stdbool.h>

#include "base/status.h"

typedef enum ct_flag_type {
    CT_FLAG_TEXT,   /* const char * */
    CT_FLAG_INT,    /* int64_t */
    CT_FLAG_NUMBER, /* double */
    CT_FLAG_BOOL,   /* bool; --name, --name=true, --name=false */
    CT_FLAG_LIST,   /* ct_flag_list; may be given again and again */
} ct_flag_type;

typedef struct ct_flag_list {
    const char *items[16];
    size_t num_items;
} ct_flag_list;

typedef struct ct_flag {
    const char *name; /* without dashes */
    ct_flag_type type;
    void *value;      /* where to put it; keeps its default when the flag is absent */
    const char *help; /* one line; "PATH  the plugin" prints as --name=PATH  the plugin */
} ct_flag;

typedef struct ct_args {
    const char *usage; /* "ctitan devices [flags]" */
    const char *about; /* a sentence or two for --help */
    const ct_flag *flags;
    size_t num_flags;
    size_t min_positional, max_positional;
    /* How many arguments at args[0] on another module takes, 0 for none; NULL when there is no such module. */
    size_t (*other_length)(const char *const *args, size_t num_args);

    /* Results; freed by ct_args_deinit. */
    const char **positional;
    size_t num_positional;
    const char **others; /* what other_length claimed, in order */
    size_t num_others;
    bool wants_help; /* --help was given and printed: the verb is done */
} ct_args;

/* Reads argv[1] on. Errors: INVALID_ARGUMENT names the argument, what is allowed and the nearest name. */
CT_MUST_USE ct_status *ct_args_parse(ct_args *args, int argc, char **argv);
void ct_args_deinit(ct_args *args);

#endif
