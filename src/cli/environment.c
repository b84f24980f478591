/* Plugin options from the environment. */
#include "cli/environment.h"

#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

enum { MAX_FOLDERS = 8 };

static void add_folder(ct_plugin_opts *opts, const char **folders, const char *folder)
{
    if (opts->num_folders < MAX_FOLDERS) folders[opts->num_folders++] = folder;
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
    opts.show_log = log && log[0] && strcmp(log, "0") != 0;
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
