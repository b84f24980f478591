/* The search for a plugin: every folder with every name of the platform's wheels, nearest folder first.
 *
 *   folders: those of the caller, the one that the build was set up with, Python's package folders of the system
 *   names:   <wheel>/<library> as setup unpacks them, then the path inside the wheel, as pip installs it
 */
#include "pjrt/plugin_search.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"

typedef struct {
    const char *platform;
    const char *names[8]; /* best first; docs/adr/0001-cpu-plugin.md says why */
} platform_names;

static const platform_names platforms[] = {
    {"cpu",
     {"lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so", "xla_cpu_pjrt/xla_cpu_pjrt.so",
      "xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so", "fastatomstruct_xla_cpu/libpjrt_cpu.so"}},
    {"cuda",
     {"jax_plugins/xla_cuda13/xla_cuda_plugin.so", "xla_cuda13/xla_cuda_plugin.so",
      "jax_plugins/xla_cuda12/xla_cuda_plugin.so", "xla_cuda12/xla_cuda_plugin.so"}},
    {"tpu", {"libtpu/libtpu.so"}},
};

static const char *const package_folders[] = {
    "/usr/local/lib/python3*/site-packages",
    "/usr/local/lib/python3*/dist-packages",
    "/usr/lib/python3*/site-packages",
    "/usr/lib/python3/dist-packages",
};

/* The first name under folder that exists, heap, or NULL; searched gets the folder. */
static char *find_in(const char *folder, const platform_names *platform, ct_str *searched)
{
    ct_str_printf(searched, "\n  %s", folder);
    for (size_t i = 0; i < CT_COUNT(platform->names) && platform->names[i]; i++) {
        char *path = ct_path_join(folder, platform->names[i]);
        if (ct_path_exists(path)) return path;
        free(path);
    }
    return NULL;
}

ct_status *ct__plugin_find(const ct_plugin_opts *opts, char **out_path)
{
    *out_path = NULL;
    const char *name = opts->platform ? opts->platform : "cpu";
    const platform_names *platform = NULL;
    for (size_t i = 0; i < CT_COUNT(platforms); i++)
        if (!strcmp(platforms[i].platform, name)) platform = &platforms[i];
    if (!platform)
        return ct_error(CT_CODE_INVALID_ARGUMENT,
                        "the platform must be \"cpu\", \"cuda\" or \"tpu\", found \"%s\"; any other plugin is named by "
                        "its path",
                        name);
    ct_str searched;
    ct_str_init(&searched);
    char *path = NULL;
    for (size_t i = 0; i < opts->num_folders && !path; i++) path = find_in(opts->folders[i], platform, &searched);
    if (!path) path = find_in(CT_PJRT_DEFAULT_FOLDER, platform, &searched);
    for (size_t i = 0; i < CT_COUNT(package_folders) && !path; i++) {
        glob_t found = {0};
        if (glob(package_folders[i], 0, NULL, &found) == 0)
            for (size_t j = found.gl_pathc; j-- && !path;) path = find_in(found.gl_pathv[j], platform, &searched);
        globfree(&found);
    }
    ct_status *status = NULL;
    if (!path) {
        ct_str names;
        ct_str_init(&names);
        for (size_t i = 0; i < CT_COUNT(platform->names) && platform->names[i]; i++)
            ct_str_printf(&names, "\n  %s", platform->names[i]);
        status = ct_error(CT_CODE_NOT_FOUND,
                          "no PJRT plugin for the platform \"%s\" was found; searched the folders%s\nfor%s\nname one "
                          "with CTITAN_PLUGIN_PATH=/path/to/plugin.so or --device.plugin_path=/path/to/plugin.so",
                          name, searched.data, names.data);
        ct_str_deinit(&names);
    }
    ct_str_deinit(&searched);
    *out_path = path;
    return status;
}
