/* The collectives of a local program, found in it. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/collectives.h"
#include "graph/scan.h"
#include "spmd/localizer.h"

static void push(ct_localize_report *report, const ct_collective_record *record)
{
    if (report->num_collectives == report->capacity) {
        report->capacity = report->capacity ? report->capacity * 2 : 64;
        report->collectives = ct_realloc(report->collectives, (size_t)report->capacity * sizeof(*report->collectives));
    }
    report->collectives[report->num_collectives++] = *record;
}

static int64_t bytes_of(const ct_tensor *tensor)
{
    return ct__num_elements(tensor) * (int64_t)ct_dtype_bytes(tensor->dtype);
}

/* What one device sends under the ring algorithms, in bytes. */
static int64_t wire_bytes(ct_collective_kind kind, int64_t operand, int64_t result, int64_t group)
{
    switch (kind) {
    case CT_COLLECTIVE_ALL_GATHER: return result / group * (group - 1);
    case CT_COLLECTIVE_REDUCE_SCATTER:
    case CT_COLLECTIVE_ALL_TO_ALL: return operand / group * (group - 1);
    case CT_COLLECTIVE_ALL_REDUCE: return 2 * operand * (group - 1) / group;
    case CT_COLLECTIVE_PERMUTE: return operand;
    }
    return 0;
}

static bool is_live(const ct_node *node, const bool *live)
{
    for (int i = 0; i < node->num_results; i++)
        if (live[node->results[i]->id]) return true;
    return false;
}

static void walk(ct_localizer *l, const ct_region *region, const bool *live, int64_t times, ct_localize_report *report)
{
    static const char *const kinds[] = {"all_gather", "reduce_scatter", "all_reduce", "all_to_all",
                                        "collective_permute"};
    ct_arena *arena = &report->arena;
    for (const ct_node *node = region->first; node; node = node->next) {
        if (!is_live(node, live)) continue;
        bool is_scan = node->op == &ct__op_scan;
        int64_t turns = is_scan ? ((const ct_scan_attrs *)node->attrs)->axis.size : 1;
        for (int i = 0; i < node->num_regions; i++) walk(l, node->regions[i], live, times * turns, report);
        ct_collective_info info;
        if (!ct__collective_info(node, &info)) continue;
        const ct_tensor *operand = node->operands[0], *result = node->results[0];
        const char *why = result->id < l->num_why ? l->why[result->id] : NULL;
        ct_collective_record record = {
            .kind = kinds[info.kind],
            .mesh_axes = ct_arena_strdup(arena, info.mesh_axes),
            .what = ct_arena_strdup(arena, ct_tensor_describe(operand)),
            .why = ct_arena_strdup(arena, why ? why : "a manual region"),
            .loc = ct_arena_strdup(arena, node->loc),
            .scope = ct_arena_strdup(arena, node->scope),
            .dtype = operand->dtype,
            .bytes = CT_MAX(bytes_of(operand), bytes_of(result)),
            .wire_bytes = wire_bytes(info.kind, bytes_of(operand), bytes_of(result), info.group_size),
            .times = times,
        };
        push(report, &record);
    }
}

void ct__report_collectives(ct_localizer *l, const ct_region *region, ct_localize_report *out_report)
{
    ct_arena_init(&out_report->arena);
    bool *live = ct_alloc_zeroed((size_t)l->graph->num_tensors, sizeof(*live));
    ct__graph_mark_live(l->graph, live);
    walk(l, region, live, 1, out_report);
    free(live);
}

void ct_localize_report_deinit(ct_localize_report *report)
{
    if (report->collectives) ct_arena_deinit(&report->arena);
    free(report->collectives);
    *report = (ct_localize_report){0};
}
