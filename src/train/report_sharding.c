/* The report of ctitan check --sharding.
 *
 * Points are found in the program as it is before it is localized, collectives in what comes out.
 */
#include "train/report_sharding.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "graph/node.h"
#include "spmd/localize.h"
#include "train/setup.h"
#include "train/step.h"

/* "bf16[batch=8 dim=64]" */
static void append_type(ct_str *out, ct_dtype dtype, int rank, const ct_axis *axes)
{
    ct_str_printf(out, "%s[", ct_dtype_name(dtype));
    for (int i = 0; i < rank; i++) ct_str_printf(out, "%s%s=%lld", i ? " " : "", axes[i].name, (long long)axes[i].size);
    ct_str_append_char(out, ']');
}

/* "batch=dp_shard  [2 64]  1024 bytes" */
static void append_placement(ct_str *out, const ct_mesh *mesh, const ct_sharding *sharding, ct_dtype dtype, int rank,
                             const ct_axis *axes)
{
    char *text = ct_sharding_text(mesh, sharding, rank, axes);
    int64_t bytes = (int64_t)ct_dtype_bytes(dtype);
    ct_str_printf(out, "%-34s [", text[0] ? text : "whole");
    for (int i = 0; i < rank; i++) {
        int64_t size = ct_sharding_local_size(mesh, sharding, i, axes[i].size);
        bytes *= size;
        ct_str_printf(out, "%s%lld", i ? " " : "", (long long)size);
    }
    ct_str_printf(out, "] %lld bytes\n", (long long)bytes);
    free(text);
}

static void report_params(const ct_model *model, const ct_step_opts *step, ct_str *out)
{
    const ct_parallel *parallel = step->parallel;
    ct_str_append(out, "\nParameters: as stored, as used, moments; on one device\n");
    for (int i = 0; i < model->num_params; i++) {
        const ct_model_param *param = &model->params[i];
        ct_sharding stored = ct_parallel_stored(parallel, param->rank, param->dims);
        ct_sharding used = ct_parallel_used(parallel, param->rank, param->dims);
        ct_sharding moment = ct_parallel_moment(parallel, param->rank, param->dims);
        ct_dtype dtype = ct_model_param_dtype(model, i, step->param_dtype);
        ct_str_printf(out, "  %s ", param->name);
        append_type(out, dtype, param->rank, param->dims);
        if (i < model->num_frozen) ct_str_append(out, ", frozen");
        ct_str_append(out, "\n    stored ");
        append_placement(out, &parallel->mesh, &stored, dtype, param->rank, param->dims);
        /* of the layers of a stacked parameter, one is in use at a time */
        int first = param->stacked ? 1 : 0, rank = param->rank - first;
        if (param->stacked) used = ct_parallel_used(parallel, rank, param->dims + 1);
        ct_str_append(out, "    used   ");
        append_placement(out, &parallel->mesh, &used, step->compute_dtype, rank, param->dims + first);
        if (i < model->num_frozen) continue;
        ct_str_append(out, "    moment ");
        append_placement(out, &parallel->mesh, &moment, step->moment_dtype, param->rank, param->dims);
    }
}

/* Placement points of a region, each kind of tensor once. */
static void find_points(const ct_region *region, const ct_parallel *parallel, ct_map *seen, ct_str *out)
{
    for (const ct_node *node = region->first; node; node = node->next) {
        for (int i = 0; i < node->num_regions; i++) find_points(node->regions[i], parallel, seen, out);
        if (strcmp(node->op->name, "ctitan.shard") != 0) continue;
        const ct_tensor *x = node->results[0];
        const char *name = node->attrs;
        ct_sharding sharding;
        if (!ct_parallel_point(parallel, name, x->rank, x->axes, &sharding)) continue;
        ct_str line;
        ct_str_init(&line);
        ct_str_printf(&line, "  %s ", name);
        append_type(&line, x->dtype, x->rank, x->axes);
        ct_str_append(&line, "\n    ");
        append_placement(&line, &parallel->mesh, &sharding, x->dtype, x->rank, x->axes);
        if (!ct_map_has(seen, line.data)) ct_str_append(out, line.data);
        ct_map_set(seen, line.data, NULL);
        ct_str_deinit(&line);
    }
}

static ct_status *report_points(const ct_model *model, const ct_step_opts *step, ct_str *out)
{
    ct_parallel constraints = *step->parallel; /* the program that is not localized */
    constraints.partition = CT_PARTITION_SHARDY;
    ct_step_opts opts = *step;
    opts.parallel = &constraints;
    ct_graph *graph;
    CT_TRY(ct_train_step_build(model, &opts, &graph));
    ct_str_append(out, "\nPlacement points, of one microbatch; on one device\n");
    ct_map seen;
    ct_map_init(&seen);
    find_points(graph->main, step->parallel, &seen, out);
    ct_map_deinit(&seen);
    ct_graph_free(graph);
    return NULL;
}

static void report_sums(const ct_localize_report *report, ct_str *out)
{
    static const char *const kinds[] = {"all_gather", "reduce_scatter", "all_reduce", "all_to_all",
                                        "collective_permute"};
    ct_str_append(out, "\nPer step and device             times            bytes       bytes sent\n");
    for (size_t k = 0; k < CT_COUNT(kinds); k++) {
        int64_t times = 0, bytes = 0, sent = 0;
        for (int i = 0; i < report->num_collectives; i++) {
            const ct_collective_record *record = &report->collectives[i];
            if (strcmp(record->kind, kinds[k]) != 0) continue;
            times += record->times;
            bytes += record->times * record->bytes;
            sent += record->times * record->wire_bytes;
        }
        ct_str_printf(out, "  %-20s %14lld %16lld %16lld\n", kinds[k], (long long)times, (long long)bytes,
                      (long long)sent);
    }
}

static void report_collectives(const ct_localize_report *report, ct_str *out)
{
    ct_str_append(out, "\nCollectives: kind, mesh axes, dtype, bytes x times; what moves on one device, why, where\n");
    for (int i = 0; i < report->num_collectives; i++) {
        const ct_collective_record *record = &report->collectives[i];
        ct_str_printf(out, "  %-18s %-24s %-4s %12lld x %-4lld %s, %s; %s (%s)\n", record->kind, record->mesh_axes,
                      ct_dtype_name(record->dtype), (long long)record->bytes, (long long)record->times, record->what,
                      record->why, record->scope, record->loc);
    }
    report_sums(report, out);
}

ct_status *ct_sharding_report(const ct_recipe *recipe, int num_torus, const int64_t *torus, const char *device_kind,
                              ct_str *out)
{
    ct_model *model = NULL;
    ct_graph *graph = NULL;
    ct_localize_report report = {0};
    ct_parallel parallel;
    ct_status *status = NULL;
    if (recipe->parallelism.partitioner == CT_PARTITION_SHARDY)
        return ct_error(CT_CODE_FAILED_PRECONDITION,
                        "the collectives of parallelism.partitioner = \"shardy\" are chosen by XLA when it compiles, "
                        "so there are none to report; set it to \"manual\" (%s)",
                        ct_recipe_where(recipe, "parallelism.partitioner"));
    CT_TRY_OUT(ct_recipe_model(recipe, &model));
    CT_TRY_OUT(ct_recipe_parallel(recipe, model, num_torus, torus, device_kind, &parallel));
    ct_step_opts step = ct_recipe_step(recipe, &parallel, device_kind);
    char *mesh = ct_mesh_text(&parallel.mesh);
    ct_str_printf(out, "Mesh: %s, %lld device%s\n", mesh[0] ? mesh : "none", (long long)parallel.mesh.num_devices,
                  parallel.mesh.num_devices == 1 ? "" : "s");
    free(mesh);
    report_params(model, &step, out);
    if (parallel.mesh.num_devices == 1) goto out; /* nothing is placed, nothing moves */
    CT_TRY_OUT(report_points(model, &step, out));
    step.report = &report;
    CT_TRY_OUT(ct_train_step_build(model, &step, &graph));
    report_collectives(&report, out);
out:
    ct_localize_report_deinit(&report);
    ct_graph_free(graph);
    ct_model_free(model);
    return status;
}
