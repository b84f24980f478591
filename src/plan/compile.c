/* One compilation, in a process of its own. */
#include "plan/compile.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/alloc.h"
#include "base/child.h"
#include "base/clock.h"
#include "pjrt/topology.h"
#include "train/chip.h"
#include "train/saved_step.h"
#include "train/setup.h"

/* Where the program is compiled for. */
typedef struct {
    ct_session_opts opts;
    ct_plugin *plugin;
    ct_topology *topology; /* or */
    ct_session *session;
    ct_torus torus;
    const char *kind; /* of the devices */
    int *device_ids;
    ct_compile_opts compile;
} target;

static ct_status *open_topology(const ct_recipe *recipe, ct_arena *arena, target *t)
{
    CT_TRY_NOTE(ct_plugin_load(&t->opts.plugin, &t->plugin),
                "compiling for %s needs libtpu: pip install libtpu==0.0.52 (Google's own licence)",
                recipe->device.topology);
    ct_named_value slices = {.name = "num_slices", .type = CT_VALUE_INT, .integer = recipe->device.num_slices};
    CT_TRY(ct_topology_new(t->plugin, recipe->device.topology, &slices, recipe->device.num_slices > 1, &t->topology));
    size_t num_devices = ct_topology_num_devices(t->topology);
    if ((int64_t)num_devices != recipe->device.count)
        return ct_error(CT_CODE_INTERNAL, "device.topology = \"%s\" should have %lld devices, but libtpu gives it %zu",
                        recipe->device.topology, (long long)recipe->device.count, num_devices);
    t->kind = ct_topology_device_kind(t->topology, 0);
    t->device_ids = ct_alloc_zeroed(num_devices, sizeof(*t->device_ids));
    t->compile = (ct_compile_opts){.num_partitions = (int)num_devices, .device_ids = t->device_ids};
    t->compile.flags = ct_chip_flags(arena, t->kind, t->opts.xla_flags, t->opts.num_xla_flags, &t->compile.num_flags);
    return ct_topology_torus(t->topology, t->opts.innermost, &t->torus, t->device_ids);
}

static ct_status *open_target(const ct_recipe *recipe, const ct_plan_host *host, ct_arena *arena, target *t)
{
    t->opts = host->session(host->context, arena, recipe, recipe->device.topology != NULL);
    if (recipe->device.topology) return open_topology(recipe, arena, t);
    CT_TRY(ct_session_open(&t->opts, &t->session));
    CT_ASSERT(t->session);
    t->plugin = t->session->plugin;
    t->torus = t->session->torus;
    t->kind = ct_device_kind(ct_session_device(t->session, 0));
    t->compile = t->session->compile;
    t->compile.cache_folder = NULL;
    return NULL;
}

static void close_target(target *t)
{
    ct_topology_free(t->topology);
    ct_session_close(t->session);
    free(t->device_ids);
}

static ct_status *print_program(const ct_recipe *recipe, const target *t, ct_str *text)
{
    ct_model *model = NULL;
    ct_graph *graph = NULL;
    ct_status *status = NULL;
    CT_TRY_OUT(ct_recipe_model(recipe, &model));
    ct_parallel parallel;
    CT_TRY_OUT(ct_recipe_parallel(recipe, model, t->torus.num_axes, t->torus.sizes, t->kind, &parallel));
    ct_step_opts step = ct_recipe_step(recipe, &parallel, t->kind);
    CT_TRY_OUT(ct_train_step_build(model, &step, &graph));
    status = ct_graph_print(graph, text);
out:
    ct_graph_free(graph);
    ct_model_free(model);
    return status;
}

static ct_status *program_key(const target *t, const ct_str *text, char out_key[33])
{
    CT_ASSERT(t->topology || t->session);
    return t->topology ? ct_topology_program_key(t->topology, text->data, text->length, &t->compile, out_key)
                       : ct_client_program_key(t->session->client, text->data, text->length, &t->compile, out_key);
}

static double cpu_seconds(void)
{
    struct rusage usage = {0};
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static const char *compiler_text(ct_arena *arena, const target *t)
{
    const char *version =
        t->topology ? ct_topology_platform_version(t->topology) : ct_client_platform_version(t->session->client);
    char *text = ct_arena_strdup(arena, version);
    for (char *at = text; *at; at++)
        if (*at == '\n') *at = ' ';
    return text;
}

/* What is known before anything is compiled. */
static void describe(const ct_recipe *recipe, const target *t, ct_arena *arena, ct_plan_entry *out)
{
    out->topology = recipe->device.topology;
    out->kind = t->kind;
    out->compiler = compiler_text(arena, t);
    out->num_devices = recipe->device.count;
    out->num_slices = (int)recipe->device.num_slices;
    out->torus = t->torus;
    out->flags = CT_ARENA_ARRAY(arena, const char *, t->compile.num_flags + 1);
    for (size_t i = 0; i < t->compile.num_flags; i++)
        out->flags[out->num_flags++] =
            ct_arena_printf(arena, "%s=%s", t->compile.flags[i].name, ct_named_value_text(arena, &t->compile.flags[i]));
    out->init_args = t->opts.plugin.libtpu_init_args ? t->opts.plugin.libtpu_init_args : "";
}

/* Compiles; a program that is too large is no error, but an entry that says so. */
static ct_status *compile(const target *t, const ct_str *text, ct_arena *arena, ct_executable **out_executable,
                          ct_plan_entry *entry)
{
    double start = ct_clock_seconds(), cpu_start = cpu_seconds();
    ct_status *status =
        t->topology ? ct_topology_compile(t->topology, text->data, text->length, &t->compile, out_executable)
                    : ct_client_compile(t->session->client, text->data, text->length, &t->compile, out_executable);
    entry->program_bytes = (int64_t)text->length;
    entry->compile_seconds = ct_clock_seconds() - start;
    entry->cpu_seconds = cpu_seconds() - cpu_start;
    struct rusage usage = {0};
    getrusage(RUSAGE_SELF, &usage);
    entry->host_peak_bytes = (int64_t)usage.ru_maxrss * 1024;
    if (status && ct_status_code(status) == CT_CODE_RESOURCE_EXHAUSTED) {
        entry->refusal = ct_arena_strdup(arena, ct_status_message(status));
        ct_status_free(status);
        return NULL;
    }
    CT_TRY(status);
    return ct_executable_memory_stats(*out_executable, &entry->memory);
}

typedef struct {
    const ct_recipe *recipe;
    const ct_plan_opts *opts;
} job;

static ct_status *save(const job *j, const target *t, const ct_str *text, ct_executable *executable)
{
    ct_saved_step step = {.recipe = j->recipe,
                          .text = text,
                          .build = ct_plugin_build(t->plugin),
                          .kind = t->kind,
                          .torus = &t->torus,
                          .compile = &t->compile};
    return ct_saved_step_write(&step, executable, j->opts->save_path);
}

/* The child's part: replies with the entry's key, and whether it was there. */
static ct_status *work(void *context, ct_str *reply)
{
    const job *j = context;
    target t = {0};
    ct_executable *executable = NULL;
    char *program = NULL, key[33];
    ct_str text;
    ct_arena arena;
    ct_arena_init(&arena);
    ct_str_init(&text);
    ct_status *status = NULL;
    CT_TRY_OUT(open_target(j->recipe, &j->opts->host, &arena, &t));
    CT_TRY_OUT(print_program(j->recipe, &t, &text));
    CT_TRY_OUT(program_key(&t, &text, key));
    bool is_there = !j->opts->recompile && !j->opts->save_path && ct__plan_entry_read(&arena, j->opts->folder, key);
    if (!is_there) {
        ct_plan_entry entry = {0};
        memcpy(entry.key, key, sizeof(key));
        describe(j->recipe, &t, &arena, &entry);
        CT_TRY_OUT(compile(&t, &text, &arena, &executable, &entry));
        if (executable) {
            char format[32];
            CT_TRY_OUT(ct_executable_optimized(executable, format, &program, &entry.num_program_bytes));
            entry.program = program;
        }
        CT_TRY_OUT(ct__plan_entry_write(j->opts->folder, &entry));
        if (executable && j->opts->save_path) CT_TRY_OUT(save(j, &t, &text, executable));
    }
    ct_str_printf(reply, "%d%s", is_there, key);
out:
    free(program);
    ct_executable_free(executable);
    close_target(&t);
    ct_str_deinit(&text);
    ct_arena_deinit(&arena);
    return status;
}

typedef struct {
    const ct_plan_host *host;
    const char *what;
} progress;

static void tick(void *context, double seconds)
{
    const progress *p = context;
    p->host->progress(p->host->context, p->what, seconds);
}

ct_status *ct__plan_compile(const ct_recipe *recipe, const ct_plan_opts *opts, ct_arena *arena,
                            ct_plan_entry **out_entry)
{
    *out_entry = NULL;
    CT_ASSERT(opts->folder);
    job j = {recipe, opts};
    progress p = {&opts->host, recipe->device.topology ? recipe->device.topology : recipe->device.platform};
    ct_child_opts child = {.tick = opts->host.progress ? tick : NULL, .tick_context = &p};
    ct_str reply;
    ct_str_init(&reply);
    ct_status *status = ct_child_run(work, &j, &child, &reply, NULL);
    if (!status) {
        *out_entry = ct__plan_entry_read(arena, opts->folder, reply.data + 1);
        if (*out_entry)
            (*out_entry)->was_there = reply.data[0] == '1';
        else
            status =
                ct_error(CT_CODE_DATA_LOSS, "the compiled program %s in %s went away", reply.data + 1, opts->folder);
    }
    ct_str_deinit(&reply);
    return status;
}
