/* The report of ctitan check --memory. */
#include "train/report_memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "predict/predict.h"
#include "train/chip.h"
#include "train/setup.h"
#include "train/step.h"

/* Where the program is compiled for, and what is known of it. */
typedef struct {
    ct_topology *topology;
    ct_session *session;
    ct_torus torus;
    int *device_ids;
    const char *kind; /* of the devices */
} target;

static ct_status *open_target(const ct_recipe *recipe, const ct_memory_report_opts *opts, target *t)
{
    t->topology = opts->topology;
    if (!opts->topology) {
        CT_TRY(ct_session_open(opts->session, &t->session));
        t->torus = t->session->torus;
        t->kind = ct_device_kind(ct_session_device(t->session, 0));
        return NULL;
    }
    size_t num_devices = ct_topology_num_devices(opts->topology);
    if ((int64_t)num_devices != recipe->device.count)
        return ct_error(CT_CODE_INVALID_ARGUMENT, "device.count = %lld, but the topology has %zu devices",
                        (long long)recipe->device.count, num_devices);
    t->device_ids = ct_alloc_zeroed(num_devices, sizeof(*t->device_ids));
    t->kind = ct_topology_device_kind(opts->topology, 0);
    return ct_topology_torus(opts->topology, opts->session->innermost, &t->torus, t->device_ids);
}

static ct_status *compile(const ct_recipe *recipe, const ct_memory_report_opts *opts, const target *t, ct_graph *graph,
                          ct_arena *arena, ct_executable **out_executable)
{
    if (!t->topology) return ct_session_compile(t->session, graph, NULL, out_executable);
    ct_compile_opts compile = {.num_partitions = (int)recipe->device.count, .device_ids = t->device_ids};
    compile.flags =
        ct_chip_flags(arena, t->kind, opts->session->xla_flags, opts->session->num_xla_flags, &compile.num_flags);
    ct_str text;
    ct_str_init(&text);
    ct_status *status = ct_graph_print(graph, &text);
    if (!status) status = ct_topology_compile(t->topology, text.data, text.length, &compile, out_executable);
    ct_str_deinit(&text);
    return status;
}

static void report_bytes(const ct_executable_memory *memory, ct_str *out)
{
    const struct {
        const char *what;
        int64_t bytes;
    } rows[] = {
        {"arguments", memory->argument_bytes},          {"outputs", memory->output_bytes},
        {"  in arguments' place", memory->alias_bytes}, {"temporaries", memory->temp_bytes},
        {"generated code", memory->code_bytes},         {"host arguments", memory->host_argument_bytes},
        {"host outputs", memory->host_output_bytes},    {"  in arguments' place", memory->host_alias_bytes},
        {"host temporaries", memory->host_temp_bytes},  {"peak, as the compiler says", memory->peak_bytes},
    };
    ct_str_append(out, "Memory of one device\n");
    for (size_t i = 0; i < CT_COUNT(rows); i++)
        ct_str_printf(out, "  %-26s %16lld bytes (%.3f GiB)\n", rows[i].what, (long long)rows[i].bytes,
                      (double)rows[i].bytes / (1 << 30));
}

/* What is sent and how long the step takes. Of chips that are not known there is what is sent alone. */
static ct_status *report_traffic(const ct_recipe *recipe, const ct_memory_report_opts *opts, const target *t,
                                 const ct_mesh *mesh, const ct_hlo_module *module, ct_arena *arena, ct_str *out)
{
    const ct_chip *chip = ct_chip_find(t->kind);
    if (chip) {
        ct_predict_opts predict = {.chip = chip, .torus = &t->torus, .mesh = mesh, .num_devices = recipe->device.count};
        ct_prediction *prediction;
        CT_TRY(ct_predict(arena, module, &predict, &prediction));
        ct_prediction_print(prediction, opts->list ? 30 : 0, out);
        return NULL;
    }
    ct_hlo_traffic traffic;
    ct_hlo_traffic_find(arena, module, recipe->device.count, &traffic);
    int64_t wire_bytes[CT_HLO_COLLECTIVE_NUM_KINDS], sizes[CT_MAX_MESH_AXES] = {0}, total = 0;
    for (int a = 0; a < mesh->num_axes; a++) sizes[a] = mesh->axes[a].size;
    ct_hlo_traffic_sum(&traffic, wire_bytes);
    ct_str_append(out, "Sent by one device in a step, as compiled\n");
    for (int k = 0; k < CT_HLO_COLLECTIVE_NUM_KINDS; k++) {
        total += wire_bytes[k];
        if (wire_bytes[k])
            ct_str_printf(out, "  %-26s %16lld bytes\n", ct_hlo_collective_kind_name((ct_hlo_collective_kind)k),
                          (long long)wire_bytes[k]);
    }
    ct_str_printf(out, "  %-26s %16lld bytes\n", "all", (long long)total);
    if (traffic.num_unknown_loops)
        ct_str_printf(out, "  the turns of %zu loops are not known: they are counted once\n",
                      traffic.num_unknown_loops);
    if (opts->list) ct_hlo_traffic_print(&traffic, mesh->num_axes, sizes, out);
    return NULL;
}

ct_status *ct_memory_report(const ct_recipe *recipe, const ct_memory_report_opts *opts, ct_str *out)
{
    target t = {0};
    ct_model *model = NULL;
    ct_graph *graph = NULL;
    ct_executable *executable = NULL;
    ct_arena arena;
    ct_arena_init(&arena);
    ct_status *status = NULL;
    ct_parallel parallel;
    CT_TRY_OUT(open_target(recipe, opts, &t));
    CT_TRY_OUT(ct_recipe_model(recipe, &model));
    CT_TRY_OUT(ct_recipe_parallel(recipe, model, t.torus.num_axes, t.torus.sizes, t.kind, &parallel));
    ct_step_opts step = ct_recipe_step(recipe, &parallel, t.kind);
    CT_TRY_OUT(ct_train_step_build(model, &step, &graph));
    double start = ct_clock_seconds();
    CT_TRY_OUT(compile(recipe, opts, &t, graph, &arena, &executable));
    double compile_seconds = ct_clock_seconds() - start;
    ct_executable_memory memory;
    CT_TRY_OUT(ct_executable_memory_stats(executable, &memory));
    report_bytes(&memory, out);
    ct_hlo_module *module;
    CT_TRY_OUT(ct_executable_hlo(executable, &arena, &module));
    CT_TRY_OUT(report_traffic(recipe, opts, &t, &parallel.mesh, module, &arena, out));
    ct_str_printf(out, "Compiled in %.1f s for %lld devices of the kind %s\n", compile_seconds,
                  (long long)recipe->device.count, t.kind);
out:
    ct_executable_free(executable);
    ct_graph_free(graph);
    ct_model_free(model);
    ct_session_close(t.session);
    free(t.device_ids);
    ct_arena_deinit(&arena);
    return status;
}
