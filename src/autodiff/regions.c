/* Derivatives of scan and cond.
 *
 *   scan      carries c, inputs x:      c', y = body(c, x)                     for position 0 .. n-1
 *   its vjp   carries dc', sums dw:     dc, dx, dw += body_vjp(saved; dc', dy) for position n-1 .. 0
 *
 * What body_vjp needs of the forward turn is, in this order of preference: an input's own slice (the stacked input is
 * there anyway), computed again when cheap or when the scan's policy does not save it, or saved: stacked by the forward
 * scan as one more output.
 */
#include "autodiff/sweep.h"
#include "graph/ops.h"
#include "graph/scan.h"

typedef struct scan_backward {
    ct_node *scan;
    ct_region *region; /* of the backward body */
    const ct_scan_attrs *attrs;
    int num_inputs, capacity;
    ct_tensor **inputs; /* stacked inputs of the backward scan, in the order of its slices */
} scan_backward;

static ct_tensor *add_backward_input(scan_backward *backward, ct_tensor *stacked, const ct_tensor *slice)
{
    ct_graph *graph = backward->scan->graph;
    if (backward->num_inputs == backward->capacity) {
        int capacity = backward->capacity ? backward->capacity * 2 : 16;
        ct_tensor **grown = CT_ARENA_ARRAY(&graph->arena, ct_tensor *, capacity);
        for (int i = 0; i < backward->num_inputs; i++) grown[i] = backward->inputs[i];
        backward->inputs = grown;
        backward->capacity = capacity;
    }
    backward->inputs[backward->num_inputs++] = stacked;
    return ct__region_add_arg(backward->region, slice->dtype, slice->rank, slice->axes);
}

static bool scan_covers(const ct_replay *replay, const ct_tensor *tensor)
{
    const scan_backward *backward = replay->context;
    return ct__region_contains(backward->scan->regions[0], tensor);
}

static ct_tensor *scan_leaf(ct_replay *replay, ct_tensor *tensor)
{
    scan_backward *backward = replay->context;
    const ct_scan_attrs *attrs = backward->attrs;
    if (!scan_covers(replay, tensor)) return tensor;
    if (!tensor->node && tensor->index >= attrs->num_carries)
        return add_backward_input(backward, backward->scan->operands[tensor->index], tensor);
    if (tensor->node && !ct__policy_saves(attrs->remat, tensor)) return NULL;
    if (!ct__policy_offloads(attrs->remat, tensor))
        return add_backward_input(backward, ct__scan_add_output(backward->scan, tensor), tensor);
    ct_insertion saved = ct__region_enter(backward->scan->regions[0]);
    ct_tensor *on_host = ct_to_host(tensor);
    ct__region_leave(replay->graph, saved);
    return ct_to_device(add_backward_input(backward, ct__scan_add_output(backward->scan, on_host), tensor));
}

void ct__scan_vjp(ct_sweep *sweep, ct_node *scan, ct_tensor *const *cotangents, ct_tensor **gradients)
{
    ct_graph *graph = sweep->graph;
    const ct_scan_attrs *attrs = scan->attrs;
    ct_region *body = scan->regions[0];
    int num_carries = attrs->num_carries, num_inputs = attrs->num_inputs;
    int num_outputs = scan->num_results - num_carries, num_fixed = num_carries + num_inputs;
    int num_captures = scan->num_operands - num_fixed;
    ct_tensor *const *captures = scan->operands + num_fixed;
    ct_region *region = ct__region_new(graph, graph->region);
    scan_backward backward = {.scan = scan, .region = region, .attrs = attrs};

    /* carries: cotangents of active carries, then running sums for active captures */
    ct_tensor **initial = CT_ARENA_ARRAY(&graph->arena, ct_tensor *, num_carries + num_captures + 1);
    ct_tensor **carry_args = CT_ARENA_ARRAY(&graph->arena, ct_tensor *, num_carries + 1);
    ct_tensor **sum_args = CT_ARENA_ARRAY(&graph->arena, ct_tensor *, num_captures + 1);
    int num_initial = 0;
    for (int i = 0; i < num_carries; i++) {
        ct_tensor *arg = body->args[i];
        if (!ct__is_active(sweep, arg)) continue;
        initial[num_initial++] = cotangents[i] ? cotangents[i] : ct__zeros_like(arg);
        carry_args[i] = ct__region_add_arg(region, arg->dtype, arg->rank, arg->axes);
    }
    for (int i = 0; i < num_captures; i++) {
        if (!ct__is_active(sweep, captures[i])) continue;
        initial[num_initial++] = ct__zeros_like(captures[i]);
        sum_args[i] = ct__region_add_arg(region, captures[i]->dtype, captures[i]->rank, captures[i]->axes);
    }

    /* inside the backward body, captures collect their own cotangents: hide those of outside meanwhile */
    ct_tensor **outer = CT_ARENA_ARRAY(&graph->arena, ct_tensor *, num_captures + 1);
    for (int i = 0; i < num_captures; i++) {
        outer[i] = ct__map_get(&sweep->cotangents, captures[i]);
        if (outer[i]) ct__map_set(&sweep->cotangents, captures[i], NULL);
    }
    ct_insertion saved = ct__region_enter(region);
    for (int i = 0; i < num_carries; i++) ct__accumulate(sweep, body->results[i], carry_args[i]);
    for (int i = 0; i < num_outputs; i++) {
        ct_tensor *slice = body->results[num_carries + i];
        if (cotangents[num_carries + i] && ct__is_active(sweep, slice))
            ct__accumulate(sweep, slice, add_backward_input(&backward, cotangents[num_carries + i], slice));
    }
    ct__sweep_nodes(sweep, body->last);

    for (int i = 0; i < num_carries; i++) {
        if (!carry_args[i]) continue;
        ct_tensor *cotangent = ct__map_get(&sweep->cotangents, body->args[i]);
        ct__region_add_result(region, cotangent ? cotangent : ct__zeros_like(body->args[i]));
    }
    for (int i = 0; i < num_captures; i++) {
        if (!sum_args[i]) continue;
        ct_tensor *cotangent = ct__map_get(&sweep->cotangents, captures[i]);
        ct__region_add_result(region, cotangent ? ct_add(sum_args[i], cotangent) : sum_args[i]);
    }
    int *input_result = CT_ARENA_ARRAY(&graph->arena, int, num_inputs + 1);
    for (int i = 0; i < num_inputs; i++) {
        ct_tensor *cotangent = ct__map_get(&sweep->cotangents, body->args[num_carries + i]);
        input_result[i] = -1;
        if (!cotangent) continue;
        input_result[i] = region->num_results;
        ct__region_add_result(region, cotangent);
    }
    for (int i = 0; i < num_captures; i++)
        if (outer[i] || ct__map_get(&sweep->cotangents, captures[i]))
            ct__map_set(&sweep->cotangents, captures[i], outer[i]);

    ct_replay replay = {.graph = graph, .context = &backward, .leaf = scan_leaf, .covers = scan_covers};
    if (!graph->error) {
        ct__replay_nodes(&replay, region, region->first);
        for (int i = 0; i < region->num_results; i++)
            if (scan_covers(&replay, region->results[i]))
                region->results[i] = ct__replay_value(&replay, region->results[i]);
    }
    ct__map_free(&replay.map);
    ct__region_leave(graph, saved);
    if (graph->error) return;

    ct_scan_attrs backward_attrs = {
        .axis = attrs->axis, .num_carries = num_initial, .num_inputs = backward.num_inputs, .reverse = !attrs->reverse};
    ct_tensor **operands = CT_ARENA_ARRAY(&graph->arena, ct_tensor *, num_initial + backward.num_inputs + 1);
    for (int i = 0; i < num_initial; i++) operands[i] = initial[i];
    for (int i = 0; i < backward.num_inputs; i++) operands[num_initial + i] = backward.inputs[i];
    ct_node *node = ct__scan_node(graph, scan->loc, &backward_attrs, region, operands);
    int next = 0;
    for (int i = 0; i < num_carries; i++)
        if (carry_args[i]) gradients[i] = node->results[next++];
    for (int i = 0; i < num_captures; i++)
        if (sum_args[i]) gradients[num_fixed + i] = node->results[next++];
    for (int i = 0; i < num_inputs; i++)
        if (input_result[i] >= 0) gradients[num_carries + i] = node->results[input_result[i]];
}

/* The backward branch runs the forward branch again and then its derivative; nothing is saved. */
void ct__cond_vjp(ct_sweep *sweep, ct_node *cond, ct_tensor *const *cotangents, ct_tensor **gradients)
{
    ct_graph *graph = sweep->graph;
    ct_tensor **outer = CT_ARENA_ARRAY(&graph->arena, ct_tensor *, cond->num_operands);
    for (int i = 1; i < cond->num_operands; i++) outer[i] = ct__map_get(&sweep->cotangents, cond->operands[i]);
    ct_region *regions[2];
    for (int b = 0; b < 2; b++) {
        ct_region *forward = cond->regions[b];
        regions[b] = ct__region_new(graph, graph->region);
        for (int i = 1; i < cond->num_operands; i++)
            if (outer[i] || ct__map_get(&sweep->cotangents, cond->operands[i]))
                ct__map_set(&sweep->cotangents, cond->operands[i], NULL);
        ct_insertion saved = ct__region_enter(regions[b]);
        ct_tensor_map map = {0};
        ct__region_inline(forward, &map);
        ct_node *last = regions[b]->last;
        ct__mark_active(sweep, regions[b]);
        for (int i = 0; i < forward->num_results; i++) {
            ct_tensor *copy = ct__map_get(&map, forward->results[i]);
            ct__accumulate(sweep, copy ? copy : forward->results[i], cotangents[i]);
        }
        ct__map_free(&map);
        if (last) ct__sweep_nodes(sweep, last);
        for (int i = 1; i < cond->num_operands; i++) {
            if (!ct__is_active(sweep, cond->operands[i])) continue;
            ct_tensor *cotangent = ct__map_get(&sweep->cotangents, cond->operands[i]);
            ct__region_add_result(regions[b], cotangent ? cotangent : ct__zeros_like(cond->operands[i]));
        }
        ct__region_leave(graph, saved);
    }
    for (int i = 1; i < cond->num_operands; i++)
        if (outer[i] || ct__map_get(&sweep->cotangents, cond->operands[i]))
            ct__map_set(&sweep->cotangents, cond->operands[i], outer[i]);
    if (graph->error) return;
    ct_node *node = ct__cond_node(graph, cond->loc, cond->operands[0], regions[0], regions[1]);
    int next = 0;
    for (int i = 1; i < cond->num_operands; i++)
        if (ct__is_active(sweep, cond->operands[i])) gradients[i] = node->results[next++];
}
