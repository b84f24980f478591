/* The derivative of a manual region: another one, which runs the body again and then its derivative.
 *
 *   inputs, cotangents -> [ body; reverse sweep; sums over the mesh axes that an input's placement does not use ]
 *
 * A cotangent that is whole along a mesh axis reaches each device along it, so each takes its share of it.
 */
#include "graph/manual.h"

#include "autodiff/sweep.h"
#include "graph/ops.h"
#include "graph/placement.h"

/* The mesh axes that placement does not use, as a list; the product of their sizes. */
static const char *unused_axes(ct_graph *graph, const ct_placement *placement, int64_t *out_count)
{
    ct_axis axes[CT_MAX_RANK];
    int rank = 0;
    *out_count = 1;
    for (int i = 0; i < graph->num_mesh_axes; i++) {
        if (ct__placement_uses(placement, i)) continue;
        axes[rank++] = graph->mesh[i];
        *out_count *= graph->mesh[i].size;
    }
    return ct__axes_text(graph, axes, rank);
}

/* Inlines the body and sweeps it; adds the results, one per active input. */
static void fill_backward(ct_sweep *sweep, const ct_node *manual, ct_region *region, ct_tensor *const *cotangent_args)
{
    ct_graph *graph = sweep->graph;
    const ct_manual_attrs *attrs = manual->attrs;
    ct_region *body = manual->regions[0];
    ct_tensor_map map = {0};
    for (int i = 0; i < body->num_args; i++) {
        ct__map_set(&map, body->args[i], region->args[i]);
        if (ct__is_active(sweep, manual->operands[i])) ct__set_active(sweep, region->args[i], true);
    }
    ct__region_inline(body, &map);
    ct_node *last = region->last;
    ct__mark_active(sweep, region);
    for (int i = 0; i < body->num_results; i++) {
        if (!cotangent_args[i]) continue;
        int64_t copies;
        unused_axes(graph, &attrs->outputs[i], &copies);
        ct_tensor *share = copies == 1 ? cotangent_args[i] : ct_mul_scalar(cotangent_args[i], 1.0 / (double)copies);
        ct__accumulate(sweep, ct__map_get(&map, body->results[i]), share);
    }
    ct__map_free(&map);
    if (last) ct__sweep_nodes(sweep, last);
    for (int i = 0; i < body->num_args; i++) {
        if (!ct__is_active(sweep, manual->operands[i])) continue;
        ct_tensor *gradient = ct__map_get(&sweep->cotangents, region->args[i]);
        if (!gradient) gradient = ct__zeros_like(region->args[i]);
        int64_t copies;
        const char *axes = unused_axes(graph, &attrs->inputs[i], &copies);
        ct__region_add_result(region, copies == 1 ? gradient : ct_all_reduce(gradient, CT_REDUCTION_SUM, axes));
    }
}

void ct__manual_vjp(ct_sweep *sweep, ct_node *manual, ct_tensor *const *cotangents, ct_tensor **gradients)
{
    ct_graph *graph = sweep->graph;
    const ct_manual_attrs *attrs = manual->attrs;
    int num_inputs = manual->num_operands, num_outputs = manual->num_results, count = num_inputs;
    ct_tensor **inputs = CT_ARENA_ARRAY(&graph->arena, ct_tensor *, num_inputs + num_outputs);
    ct_placement *placements = CT_ARENA_ARRAY(&graph->arena, ct_placement, num_inputs + num_outputs);
    int *position = CT_ARENA_ARRAY(&graph->arena, int, num_outputs + 1);
    for (int i = 0; i < num_inputs; i++) {
        inputs[i] = manual->operands[i];
        placements[i] = attrs->inputs[i];
    }
    for (int i = 0; i < num_outputs; i++) {
        position[i] = -1;
        if (!cotangents[i]) continue;
        position[i] = count;
        inputs[count] = cotangents[i];
        placements[count++] = attrs->outputs[i];
    }
    ct_region *region = ct__manual_region(graph, count, inputs, placements);
    ct_tensor **cotangent_args = CT_ARENA_ARRAY(&graph->arena, ct_tensor *, num_outputs + 1);
    for (int i = 0; i < num_outputs; i++) cotangent_args[i] = position[i] < 0 ? NULL : region->args[position[i]];
    ct_insertion saved = ct__manual_enter(region);
    fill_backward(sweep, manual, region, cotangent_args);
    ct__manual_leave(graph, saved);
    if (graph->error) return;

    ct_placement *results = CT_ARENA_ARRAY(&graph->arena, ct_placement, num_inputs + 1);
    for (int i = 0, next = 0; i < num_inputs; i++)
        if (ct__is_active(sweep, manual->operands[i])) results[next++] = attrs->inputs[i];
    ct_manual_attrs backward = {.inputs = placements, .outputs = results};
    ct_node *node = ct__manual_node(graph, manual->loc, &backward, region, inputs);
    for (int i = 0, next = 0; i < num_inputs; i++)
        if (ct__is_active(sweep, manual->operands[i])) gradients[i] = node->results[next++];
}
