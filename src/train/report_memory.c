/* The report of ctitan check --memory. */
#include "train/report_memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "pjrt/collectives.h"
#include "spmd/links.h"
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

/* Seconds of one collective as it is emitted, by the link model. */
static double link_seconds(const ct_hlo_collective *item, const ct_links *links)
{
    static const ct_links_kind kinds[] = {CT_LINKS_GATHER, CT_LINKS_GATHER, CT_LINKS_REDUCE, CT_LINKS_EXCHANGE,
                                          CT_LINKS_SHIFT};
    int mask = ct_hlo_collective_axes(item, links->num_axes, links->sizes), axes[CT_MAX_MESH_AXES], num_axes = 0;
    if (mask < 0) mask = (1 << links->num_axes) - 1; /* groups that are no axes: as if they were all */
    for (int a = 0; a < links->num_axes; a++)
        if (mask >> a & 1) axes[num_axes++] = a;
    ct_links_kind kind = kinds[item->kind];
    return item->is_nd ? ct_links_all_time(links, kind, num_axes, axes, (double)item->payload_bytes)
                       : ct_links_ring_time(links, kind, num_axes, axes, (double)item->payload_bytes);
}

static void report_traffic(const ct_recipe *recipe, const ct_memory_report_opts *opts, const target *t,
                           const ct_mesh *mesh, const ct_hlo_module *module, ct_arena *arena, ct_str *out)
{
    ct_hlo_traffic traffic;
    ct_hlo_traffic_find(arena, module, recipe->device.count, &traffic);
    int64_t wire_bytes[CT_HLO_COLLECTIVE_NUM_KINDS], sizes[CT_MAX_MESH_AXES] = {0}, total = 0;
    double seconds[CT_HLO_COLLECTIVE_NUM_KINDS] = {0}, total_seconds = 0, async_seconds = 0;
    for (int a = 0; a < mesh->num_axes; a++) sizes[a] = mesh->axes[a].size;
    ct_links links;
    ct_status *status = ct_links_init(t->kind, mesh, t->torus.wraps, t->torus.names, &links);
    bool has_links = !status;
    ct_status_free(status);
    ct_hlo_traffic_sum(&traffic, wire_bytes);
    for (size_t i = 0; i < traffic.num_items && has_links; i++) {
        double time = link_seconds(&traffic.items[i], &links) * (double)traffic.items[i].times;
        seconds[traffic.items[i].kind] += time;
        total_seconds += time;
        if (traffic.items[i].is_async) async_seconds += time;
    }
    ct_str_append(out, "Sent by one device in a step, as compiled\n");
    for (int k = 0; k < CT_HLO_COLLECTIVE_NUM_KINDS; k++) {
        total += wire_bytes[k];
        if (!wire_bytes[k]) continue;
        ct_str_printf(out, "  %-26s %16lld bytes", ct_hlo_collective_kind_name((ct_hlo_collective_kind)k),
                      (long long)wire_bytes[k]);
        if (has_links) ct_str_printf(out, " %10.3f ms by the links", 1e3 * seconds[k]);
        ct_str_append_char(out, '\n');
    }
    ct_str_printf(out, "  %-26s %16lld bytes", "all", (long long)total);
    if (has_links)
        ct_str_printf(out, " %10.3f ms by the links (predicted), %.3f of them beside computation", 1e3 * total_seconds,
                      1e3 * async_seconds);
    ct_str_append_char(out, '\n');
    if (traffic.num_unknown_loops)
        ct_str_printf(out, "  the turns of %zu loops are not known: they are counted once\n",
                      traffic.num_unknown_loops);
    if (traffic.estimated_cycles > 0)
        ct_str_printf(out, "Computation, by the compiler's estimates: %.0f cycles\n", traffic.estimated_cycles);
    if (opts->list) ct_hlo_traffic_print(&traffic, mesh->num_axes, sizes, out);
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
    report_traffic(recipe, opts, &t, &parallel.mesh, module, &arena, out);
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
