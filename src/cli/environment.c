/* Plugin options from the environment. */
#include "cli/environment.h"

#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
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

ct_plugin_opts ct_environment_plugin_opts(ct_arena *arena, const char *platform, const char *path)
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

ct_plugin_opts ct_environment_compiler_opts(ct_arena *arena)
{
    ct_plugin_opts opts = ct_environment_plugin_opts(arena, "tpu", NULL);
    opts.path = NULL;
    for (const char *const *pair = ct_tpu_offline_environment; *pair; pair += 2) setenv(pair[0], pair[1], 0);
    return opts;
}
