/* Plugin options from the environment. */
#include "cli/environment.h"

#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "pjrt/torus.h"

enum { MAX_FOLDERS = 8 };

static void add_folder(ct_plugin_opts *opts, const char **folders, const char *folder)
{
    if (opts->num_folders < MAX_FOLDERS) folders[opts->num_folders++] = folder;
}

/* Read by plugins when they are first used. What goes wrong comes back as a status, so only fatal messages are left. */
static void quiet_plugins(void)
{
    static const char *const names[] = {"TF_CPP_MIN_LOG_LEVEL", "TPU_MIN_LOG_LEVEL", "TPU_STDERR_LOG_LEVEL"};
    for (size_t i = 0; i < CT_COUNT(names); i++) setenv(names[i], "3", 0);
}

/* Every chip is a PCI device of Google's. */
bool ct_environment_has_tpu(const char *pci_folder)
{
    bool found = false;
    glob_t vendors = {0};
    char *pattern = ct_asprintf("%s/*/vendor", pci_folder), *text;
    if (glob(pattern, 0, NULL, &vendors) == 0)
        for (size_t i = 0; i < vendors.gl_pathc && !found; i++) {
            size_t size_bytes;
            ct_status *status = ct_file_read(vendors.gl_pathv[i], &text, &size_bytes);
            if (!status) {
                found = !strncmp(text, "0x1ae0", 6);
                free(text);
            }
            ct_status_free(status); /* a device that went is none */
        }
    globfree(&vendors);
    free(pattern);
    return found;
}

static ct_plugin_opts plugin_opts(ct_arena *arena, const char *platform, const char *path)
{
    ct_plugin_opts opts = {.platform = platform && platform[0] ? platform : "cpu", .path = path};
    if (strchr(opts.platform, '/')) {
        if (!path || !path[0]) opts.path = opts.platform;
        opts.platform = NULL;
    }
    if (!opts.path || !opts.path[0]) opts.path = getenv("CTITAN_PLUGIN_PATH");
    const char *log = getenv("CTITAN_PLUGIN_LOG");
    if (!log || !log[0] || !strcmp(log, "0")) quiet_plugins();
    opts.xla_flags = getenv("XLA_FLAGS");

    const char **folders = CT_ARENA_ARRAY(arena, const char *, MAX_FOLDERS);
    opts.folders = folders;
    char self[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (length > 0) {
        self[length] = 0;
        char *parent = ct_path_parent(self);
        add_folder(&opts, folders, ct_arena_printf(arena, "%s/../.deps/pjrt", parent));
        add_folder(&opts, folders, ct_arena_printf(arena, "%s/../lib/ctitan", parent));
        free(parent);
    }
    const char *python = getenv("VIRTUAL_ENV");
    if (python && python[0]) {
        glob_t found = {0};
        if (glob(ct_arena_printf(arena, "%s/lib/python3*/site-packages", python), 0, NULL, &found) == 0)
            for (size_t i = found.gl_pathc; i--;) add_folder(&opts, folders, ct_arena_strdup(arena, found.gl_pathv[i]));
        globfree(&found);
    }
    return opts;
}

ct_plugin_opts ct_environment_plugin_opts(ct_arena *arena, const char *platform, const char *path)
{
    ct_plugin_opts opts = plugin_opts(arena, platform, path);
    bool is_libtpu = opts.platform && !strcmp(opts.platform, "tpu") && !(opts.path && opts.path[0]);
    if (is_libtpu && !ct_environment_has_tpu("/sys/bus/pci/devices"))
        ct_warning(
            "this machine seems to have no TPU (no PCI device of vendor 0x1ae0); libtpu goes on looking for one, "
            "which can take minutes. ctitan plan and ctitan check need none");
    return opts;
}

ct_plugin_opts ct_environment_compiler_opts(ct_arena *arena)
{
    ct_plugin_opts opts = plugin_opts(arena, "tpu", NULL);
    opts.path = NULL;
    for (const char *const *pair = ct_tpu_offline_environment; *pair; pair += 2) setenv(pair[0], pair[1], 0);
    return opts;
}

#define INIT_ARGS "LIBTPU_INIT_ARGS"

/* Where the flags stand that libtpu is reading just now. */
static const char *args_being_read;

static void explain_exit(void)
{
    if (args_being_read)
        fprintf(stderr,
                "ctitan: libtpu ended the process over its " INIT_ARGS " = \"%s\", of compile.libtpu_init_args "
                "(%s) and the environment; take the flag out or correct it\n",
                getenv(INIT_ARGS), args_being_read);
}

/* The value of a flag in "--name=value --other", in arena; NULL: it is not there. */
static const char *find_argument(ct_arena *arena, const char *args, const char *name)
{
    const char *found = NULL; /* the last one counts, as for libtpu */
    for (const char *at = args + strspn(args, " \t\n"); *at;) {
        size_t length = strcspn(at, " \t\n");
        ct_named_value value;
        const char *dashes = at[0] == '-' && at[1] != '-' ? "-" : ""; /* one dash is as good as two */
        ct_status *status =
            ct_named_value_parse(arena, ct_arena_printf(arena, "%s%.*s", dashes, (int)length, at), &value);
        if (!status && !strcmp(value.name, name)) found = ct_named_value_text(arena, &value);
        ct_status_free(status);
        at += length;
        at += strspn(at, " \t\n");
    }
    return found;
}

void ct_environment_libtpu_args(ct_arena *arena, const ct_named_value *flags, size_t num_flags, const char *where,
                                ct_plugin_opts *opts)
{
    const char *given = getenv(INIT_ARGS);
    if (!given) given = "";
    ct_str all;
    ct_str_init(&all);
    ct_str_append(&all, given);
    for (size_t i = 0; i < num_flags; i++) {
        const char *value = ct_named_value_text(arena, &flags[i]), *theirs = find_argument(arena, given, flags[i].name);
        if (!theirs)
            ct_str_printf(&all, "%s--%s=%s", all.length ? " " : "", flags[i].name, value);
        else if (strcmp(theirs, value) != 0)
            ct_warning("--%s=%s of " INIT_ARGS " stays, in place of compile.libtpu_init_args' %s (%s)", flags[i].name,
                       theirs, value, where);
    }
    if (all.length) setenv(INIT_ARGS, all.data, 1);
    opts->libtpu_init_args = ct_arena_strdup(arena, all.data);
    ct_str_deinit(&all);
    if (!num_flags) return;
    static bool is_registered;
    if (!is_registered) is_registered = !atexit(explain_exit);
    args_being_read = where;
    ct_plugin *plugin;
    ct_status_free(ct_plugin_load(opts, &plugin)); /* whoever needs the plugin loads it again, and sees what failed */
    args_being_read = NULL;
}
