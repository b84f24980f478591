/* The walk over a program, node after node in order, and its inputs and outputs. */
#include "spmd/localize.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/manual.h"
#include "spmd/localizer.h"

static bool is_live(const ct_localizer *l, const ct_node *node)
{
    if (node->op->side_effect) return true;
    for (int i = 0; i < node->num_results; i++) {
        int id = node->results[i]->id;
        if (id >= l->num_live || l->live[id]) return true; /* past the end: a copy made since */
    }
    return false;
}

void ct__localize_nodes(ct_localizer *l, ct_node *first)
{
    ct_graph *graph = l->graph;
    const char *loc = graph->loc_override, *scope = graph->scope;
    for (ct_node *node = first; node && !graph->error; node = node->next) {
        if (!is_live(l, node)) continue;
        graph->loc_override = node->loc;
        graph->scope = node->scope;
        if (ct__place_region_node(l, node)) continue;
        if (node->num_operands && ct__place_point(l, node)) continue;
        ct__place_node(l, node);
    }
    graph->loc_override = loc;
    graph->scope = scope;
}

static ct_sharding port_sharding(const ct_graph_port *port)
{
    ct_sharding sharding = {0};
    if (port->sharding) sharding.at = *port->sharding;
    if (port->padded) memcpy(sharding.padded, port->padded, sizeof(sharding.padded));
    return sharding;
}

/* The region's arguments, and what is known of the inputs. */
static void make_inputs(ct_localizer *l, ct_region *region, ct_placement *placements)
{
    ct_graph *graph = l->graph;
    for (int i = 0; i < graph->num_inputs; i++) {
        ct_graph_port *port = &graph->inputs[i];
        ct_sharding sharding = port_sharding(port), store;
        ct_axis axes[CT_MAX_RANK];
        ct__local_type(l, port->tensor, &sharding, axes);
        ct_tensor *arg = ct__region_add_arg(region, port->tensor->dtype, port->tensor->rank, axes);
        ct__value_set(l, port->tensor, arg, &sharding);
        store = ct_parallel_gradient(l->parallel, port->tensor->rank, port->tensor->axes);
        ct__value(l, port->tensor)->store = ct_arena_dup(&graph->arena, &store, sizeof(store));
        placements[i] = sharding.at;
    }
}

static void make_outputs(ct_localizer *l, ct_region *region, ct_placement *placements)
{
    ct_graph *graph = l->graph;
    for (int i = 0; i < graph->num_outputs && !graph->error; i++) {
        ct_sharding sharding = port_sharding(&graph->outputs[i]);
        l->reason = ct_arena_printf(&graph->arena, "output %s", graph->outputs[i].name);
        ct__region_add_result(region, ct__want(l, graph->outputs[i].tensor, &sharding));
        placements[i] = sharding.at;
    }
}

/* Puts the manual region in the place of all that main held. */
static void replace_main(ct_localizer *l, ct_region *region, ct_placement *inputs, ct_placement *outputs)
{
    ct_graph *graph = l->graph;
    graph->main->first = graph->main->last = NULL;
    ct_tensor **args = CT_ARENA_ARRAY(&graph->arena, ct_tensor *, graph->num_inputs + 1);
    for (int i = 0; i < graph->num_inputs; i++) {
        ct_graph_port *port = &graph->inputs[i];
        args[i] = port->tensor;
        for (int d = 0; d < port->tensor->rank; d++)
            if (port->padded && port->padded[d]) port->tensor->axes[d].size = port->padded[d];
        port->sharding = &inputs[i];
    }
    ct_manual_attrs attrs = {.inputs = inputs, .outputs = outputs};
    const ct_node *node = ct__manual_node(graph, CT_LOC, &attrs, region, args);
    for (int i = 0; i < graph->num_outputs; i++) {
        graph->outputs[i].tensor = node->results[i];
        graph->outputs[i].sharding = &outputs[i];
        graph->main->results[i] = node->results[i];
    }
}

ct_status *ct_localize(ct_graph *graph, ct_localize_report *out_report)
{
    if (out_report) *out_report = (ct_localize_report){0};
    CT_TRY(ct_graph_check(graph));
    const ct_parallel *parallel = ct_parallel_of(graph);
    if (!parallel) return NULL;
    CT_ASSERT(graph->region == graph->main && !graph->checkpoint && !graph->custom);
    int num_live = graph->num_tensors;
    bool *live = ct_alloc_zeroed((size_t)num_live, sizeof(*live));
    ct__graph_mark_live(graph, live);
    ct_localizer l = {.graph = graph,
                      .parallel = parallel,
                      .mesh = &parallel->mesh,
                      .live = live,
                      .num_live = num_live,
                      .reason = ""};
    ct_placement *inputs = CT_ARENA_ARRAY(&graph->arena, ct_placement, graph->num_inputs + 1);
    ct_placement *outputs = CT_ARENA_ARRAY(&graph->arena, ct_placement, graph->num_outputs + 1);
    ct_region *region = ct__region_new(graph, graph->main);
    ct_node *first = graph->main->first;
    ct_insertion saved = ct__manual_enter(region);
    make_inputs(&l, region, inputs);
    ct__localize_nodes(&l, first);
    make_outputs(&l, region, outputs);
    ct__manual_leave(graph, saved);
    if (!graph->error) replace_main(&l, region, inputs, outputs);
    if (!graph->error && out_report) ct__report_collectives(&l, region, out_report);
    free(live);
    free(l.values);
    free(l.why);
    return ct_graph_check(graph);
}
