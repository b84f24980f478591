/* Arguments: one pass, first match wins: help, "--", the verb's flags, the other module's, positional. */
#include "cli/args.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"

static void print_help(const ct_args *args)
{
    printf("usage: %s\n", args->usage);
    if (args->about) printf("\n%s\n", args->about);
    if (args->num_flags) printf("\nflags:\n");
    for (size_t i = 0; i < args->num_flags; i++) {
        const ct_flag *flag = &args->flags[i];
        const char *help = flag->help ? flag->help : "";
        const char *gap = strstr(help, "  ");
        ct_str left;
        ct_str_init(&left);
        ct_str_printf(&left, "--%s", flag->name);
        if (gap) {
            ct_str_append_char(&left, '=');
            ct_str_append_n(&left, help, (size_t)(gap - help));
        }
        printf("  %-28s %s\n", left.data, gap ? gap + 2 : help);
        ct_str_deinit(&left);
    }
}

static const ct_flag *find_flag(const ct_args *args, const char *name, size_t length)
{
    for (size_t i = 0; i < args->num_flags; i++)
        if (strlen(args->flags[i].name) == length && !strncmp(args->flags[i].name, name, length))
            return &args->flags[i];
    return NULL;
}

static ct_status *set_flag(const ct_flag *flag, const char *text)
{
    if (flag->type == CT_FLAG_TEXT) {
        *(const char **)flag->value = text;
        return NULL;
    }
    if (flag->type == CT_FLAG_LIST) {
        ct_flag_list *list = flag->value;
        if (list->num_items == CT_COUNT(list->items))
            return ct_error(CT_CODE_INVALID_ARGUMENT, "--%s can be given %zu times at most", flag->name,
                            CT_COUNT(list->items));
        list->items[list->num_items++] = text;
        return NULL;
    }
    if (flag->type == CT_FLAG_BOOL) {
        if (strcmp(text, "true") && strcmp(text, "false"))
            return ct_error(CT_CODE_INVALID_ARGUMENT, "--%s must be true or false, found \"%s\"", flag->name, text);
        *(bool *)flag->value = !strcmp(text, "true");
        return NULL;
    }
    char *end;
    errno = 0;
    if (flag->type == CT_FLAG_NUMBER) {
        double value = strtod(text, &end);
        if (!*text || *end || errno || !isfinite(value))
            return ct_error(CT_CODE_INVALID_ARGUMENT, "--%s must be a number, found \"%s\"", flag->name, text);
        *(double *)flag->value = value;
        return NULL;
    }
    long long value = strtoll(text, &end, 10);
    if (!*text || *end || errno)
        return ct_error(CT_CODE_INVALID_ARGUMENT, "--%s must be a whole number, found \"%s\"", flag->name, text);
    *(int64_t *)flag->value = value;
    return NULL;
}

static ct_status *unknown_flag(const ct_args *args, const char *name, size_t length)
{
    const char **names = ct_alloc(args->num_flags * sizeof(*names));
    for (size_t i = 0; i < args->num_flags; i++) names[i] = args->flags[i].name;
    char *copy = ct_asprintf("%.*s", (int)length, name);
    const char *near = ct_nearest_name(copy, names, args->num_flags);
    ct_status *status =
        near ? ct_error(CT_CODE_INVALID_ARGUMENT, "there is no flag --%s; did you mean --%s?", copy, near)
             : ct_error(CT_CODE_INVALID_ARGUMENT, "there is no flag --%s", copy);
    free(copy);
    free(names);
    return status;
}

/* One flag at argv[0]; out_used is how many arguments it took, 0 when it is not a flag of the verb's own. */
static ct_status *take_flag(const ct_args *args, int argc, char **argv, int *out_used)
{
    *out_used = 0;
    const char *name = argv[0] + 2;
    size_t length = strcspn(name, "=");
    const ct_flag *flag = find_flag(args, name, length);
    if (!flag) return NULL;
    *out_used = 1;
    if (name[length] == '=') return set_flag(flag, name + length + 1);
    if (flag->type == CT_FLAG_BOOL) return set_flag(flag, "true");
    if (argc < 2)
        return ct_error(CT_CODE_INVALID_ARGUMENT, "--%s needs a value: --%s=%s", flag->name, flag->name,
                        flag->type == CT_FLAG_INT      ? "8"
                        : flag->type == CT_FLAG_NUMBER ? "0.5"
                                                       : "TEXT");
    *out_used = 2;
    return set_flag(flag, argv[1]);
}

static ct_status *parse(ct_args *args, int argc, char **argv)
{
    bool all_positional = false;
    for (int i = 1; i < argc;) {
        const char *text = argv[i];
        bool is_flag = !all_positional && !strncmp(text, "--", 2);
        if (is_flag && !strcmp(text, "--help")) {
            print_help(args);
            args->wants_help = true;
            return NULL;
        }
        if (is_flag && !text[2]) {
            all_positional = true;
            i++;
            continue;
        }
        if (!is_flag) {
            if (args->num_positional == args->max_positional)
                return ct_error(CT_CODE_INVALID_ARGUMENT, "unexpected argument \"%s\"", text);
            args->positional[args->num_positional++] = text;
            i++;
            continue;
        }
        int used;
        CT_TRY(take_flag(args, argc - i, argv + i, &used));
        if (!used && args->other_length) {
            used = (int)args->other_length((const char *const *)argv + i, (size_t)(argc - i));
            for (int j = 0; j < used; j++) args->others[args->num_others++] = argv[i + j];
        }
        if (!used) return unknown_flag(args, text + 2, strcspn(text + 2, "="));
        i += used;
    }
    if (args->num_positional < args->min_positional)
        return ct_error(CT_CODE_INVALID_ARGUMENT, "%zu argument%s needed, found %zu", args->min_positional,
                        args->min_positional == 1 ? " is" : "s are", args->num_positional);
    return NULL;
}

ct_status *ct_args_parse(ct_args *args, int argc, char **argv)
{
    args->positional = ct_alloc_zeroed((size_t)argc + 1, sizeof(*args->positional));
    args->others = ct_alloc_zeroed((size_t)argc + 1, sizeof(*args->others));
    args->num_positional = args->num_others = 0;
    args->wants_help = false;
    return ct_status_note(parse(args, argc, argv), "usage: %s (--help says more)", args->usage);
}

void ct_args_deinit(ct_args *args)
{
    free(args->positional);
    free(args->others);
    args->positional = args->others = NULL;
}
