/* The reverse sweep over one region: marks what matters, then visits nodes backward, adding up cotangents. */
#include "autodiff/sweep.h"

#include <stdlib.h>
#include <string.h>

#include "autodiff/grad.h"
#include "base/alloc.h"
#include "graph/call.h"
#include "graph/manual.h"
#include "graph/ops.h"
#include "graph/scan.h"

void ct__sweep_init(ct_sweep *sweep, ct_graph *graph)
{
    *sweep = (ct_sweep){.graph = graph};
}

void ct__sweep_deinit(ct_sweep *sweep)
{
    ct__map_free(&sweep->cotangents);
    free(sweep->active);
}

bool ct__is_active(const ct_sweep *sweep, const ct_tensor *tensor)
{
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): num_active counts what active holds */
    return tensor->id < sweep->num_active && sweep->active[tensor->id];
}

void ct__set_active(ct_sweep *sweep, const ct_tensor *tensor, bool active)
{
    if (tensor->id >= sweep->num_active) {
        if (!active) return;
        int count = CT_MAX(sweep->graph->num_tensors, sweep->num_active * 2);
        sweep->active = ct_realloc(sweep->active, (size_t)count * sizeof(*sweep->active));
        memset(sweep->active + sweep->num_active, 0, (size_t)(count - sweep->num_active) * sizeof(*sweep->active));
        sweep->num_active = count;
        sweep->graph->wants_gradient = sweep->active;
        sweep->graph->num_wants_gradient = count;
    }
    CT_ASSERT(sweep->active);
    sweep->active[tensor->id] = active && ct_dtype_is_float(tensor->dtype);
}

static bool any_active(const ct_sweep *sweep, ct_tensor *const *tensors, int count)
{
    for (int i = 0; i < count; i++)
        if (ct__is_active(sweep, tensors[i])) return true;
    return false;
}

/* Marks only add: a parameter stays active whatever made it. */
static void mark(ct_sweep *sweep, const ct_tensor *tensor, bool active)
{
    if (active) ct__set_active(sweep, tensor, true);
}

/* A carry is active when its initial value or what a turn returns is: repeat until nothing changes. */
static void mark_scan(ct_sweep *sweep, const ct_node *scan)
{
    const ct_scan_attrs *attrs = scan->attrs;
    const ct_region *body = scan->regions[0];
    int num_fixed = attrs->num_carries + attrs->num_inputs;
    for (int i = 0; i < num_fixed; i++) ct__set_active(sweep, body->args[i], ct__is_active(sweep, scan->operands[i]));
    for (bool changed = true; changed;) {
        changed = false;
        ct__mark_active(sweep, body);
        for (int i = 0; i < attrs->num_carries; i++)
            if (ct__is_active(sweep, body->results[i]) && !ct__is_active(sweep, body->args[i])) {
                mark(sweep, body->args[i], true);
                changed |= ct__is_active(sweep, body->args[i]);
            }
    }
    for (int i = 0; i < scan->num_results; i++) mark(sweep, scan->results[i], ct__is_active(sweep, body->results[i]));
}

void ct__mark_active(ct_sweep *sweep, const ct_region *region)
{
    for (const ct_node *node = region->first; node; node = node->next) {
        if (node->op == &ct__op_scan && !node->custom) {
            mark_scan(sweep, node);
            continue;
        }
        if (node->op == &ct__op_cond) {
            ct__mark_active(sweep, node->regions[0]);
            ct__mark_active(sweep, node->regions[1]);
        }
        bool active = node->custom ? any_active(sweep, node->custom->inputs, node->custom->num_inputs)
                                   : !node->op->zero_gradient && any_active(sweep, node->operands, node->num_operands);
        for (int i = 0; i < node->num_results; i++) mark(sweep, node->results[i], active);
    }
}

/* Regions around this one first: what they made may be used here. */
static void mark_from_outside(ct_sweep *sweep, const ct_region *region)
{
    if (region->parent) mark_from_outside(sweep, region->parent);
    ct__mark_active(sweep, region);
}

void ct__accumulate(ct_sweep *sweep, ct_tensor *tensor, ct_tensor *cotangent)
{
    if (!cotangent || !ct__is_active(sweep, tensor)) return;
    ct_tensor *before = ct__map_get(&sweep->cotangents, tensor);
    ct__map_set(&sweep->cotangents, tensor, before ? ct_add(before, cotangent) : cotangent);
}

ct_tensor *ct__zeros_like(const ct_tensor *tensor)
{
    return ct_full_like(tensor, 0);
}

/* The group's hand-written derivative; returns the node before the group. */
static ct_node *sweep_custom(ct_sweep *sweep, ct_node *last)
{
    ct_graph *graph = sweep->graph;
    ct_group *group = last->custom;
    ct_tensor **cotangents = CT_ARENA_ARRAY(&graph->arena, ct_tensor *, group->num_outputs + 1);
    ct_tensor **gradients = CT_ARENA_ARRAY(&graph->arena, ct_tensor *, group->num_inputs + 1);
    bool reached = false;
    for (int i = 0; i < group->num_outputs; i++) {
        cotangents[i] = ct__map_get(&sweep->cotangents, group->outputs[i]);
        reached |= cotangents[i] != NULL;
    }
    if (reached && any_active(sweep, group->inputs, group->num_inputs)) {
        graph->loc_override = last->loc;
        group->backward(graph, group->context, group->inputs, group->outputs, cotangents, gradients);
        for (int i = 0; i < group->num_inputs; i++) ct__accumulate(sweep, group->inputs[i], gradients[i]);
    }
    ct_node *node = last;
    while (node && node->custom == group) node = node->previous;
    return node;
}

static void sweep_node(ct_sweep *sweep, ct_node *node)
{
    ct_graph *graph = sweep->graph;
    ct_tensor **cotangents = CT_ARENA_ARRAY(&graph->arena, ct_tensor *, node->num_results + 1);
    bool reached = false;
    for (int i = 0; i < node->num_results; i++) {
        cotangents[i] = ct__map_get(&sweep->cotangents, node->results[i]);
        reached |= cotangents[i] != NULL;
    }
    if (!reached || node->op->zero_gradient || !any_active(sweep, node->operands, node->num_operands)) return;
    int num_operands = node->num_operands;
    ct_tensor **gradients = CT_ARENA_ARRAY(&graph->arena, ct_tensor *, num_operands + 1);
    graph->loc_override = node->loc;
    if (node->op == &ct__op_scan) {
        ct__scan_vjp(sweep, node, cotangents, gradients);
    } else if (node->op == &ct__op_cond) {
        ct__cond_vjp(sweep, node, cotangents, gradients);
    } else if (ct__node_function(node)) {
        ct__call_vjp(sweep, node, cotangents, gradients);
    } else if (node->op == &ct__op_manual) {
        ct__manual_vjp(sweep, node, cotangents, gradients);
    } else if (node->op->vjp) {
        node->op->vjp(node, cotangents, gradients);
    } else {
        ct__fail(graph, node->loc, "grad", "%s has no derivative; use ct_stop_gradient or ct_custom_vjp",
                 node->op->name);
        return;
    }
    for (int i = 0; i < num_operands; i++) ct__accumulate(sweep, node->operands[i], gradients[i]);
}

void ct__sweep_nodes(ct_sweep *sweep, ct_node *last)
{
    ct_graph *graph = sweep->graph;
    const char *loc = graph->loc_override, *scope = graph->scope;
    ct_block_replay block = {0};
    for (ct_node *node = last; node && !graph->error;) {
        if (node->checkpoint != block.group) {
            if (block.group) ct__block_end(&block, sweep);
            if (node->checkpoint) ct__block_begin(&block, sweep, node);
        }
        graph->scope = node->scope;
        if (node->custom) {
            node = sweep_custom(sweep, node);
        } else {
            sweep_node(sweep, node);
            node = node->previous;
        }
    }
    if (block.group) ct__block_end(&block, sweep);
    graph->loc_override = loc;
    graph->scope = scope;
}

/* A gradient taken inside a body stops at the body's edge, so what reaches the parameters through nodes outside would
 * be lost without a word. */
static void reject_detours(ct_sweep *sweep, ct_tensor *const *params, int num_params)
{
    ct_graph *graph = sweep->graph;
    for (const ct_node *node = graph->region->first; node; node = node->next)
        for (int i = 0; i < node->num_operands; i++) {
            const ct_tensor *operand = node->operands[i];
            if (operand->region == graph->region || !ct__map_get(&sweep->cotangents, operand)) continue;
            bool is_param = false;
            for (int j = 0; j < num_params; j++) is_param |= params[j] == operand;
            if (!is_param)
                ct__fail(graph, operand->node ? operand->node->loc : node->loc, "grad",
                         "%s depends on a parameter but was made outside the body that ct_grad is called in; make it "
                         "inside, or stop its gradient with ct_stop_gradient",
                         ct_tensor_describe(operand));
        }
}

ct_status *ct_grad_from(ct_graph *graph, int num_tensors, ct_tensor *const *tensors, ct_tensor *const *cotangents,
                        ct_tensor *const *params, int num_params, ct_tensor **out_gradients)
{
    params = ct_arena_dup(&graph->arena, params, (size_t)num_params * sizeof(*params)); /* may be out_gradients */
    for (int i = 0; i < num_params; i++) out_gradients[i] = graph->poison;
    CT_TRY(ct_graph_check(graph));
    CT_ASSERT(!graph->checkpoint && !graph->custom);
    ct_sweep sweep;
    ct__sweep_init(&sweep, graph);
    const bool *outer_wants = graph->wants_gradient;
    int num_outer_wants = graph->num_wants_gradient;
    for (int i = 0; i < num_params; i++) {
        if (!ct_dtype_is_float(params[i]->dtype))
            ct__fail(graph, CT_LOC, "grad", "gradients exist for floats only, parameter %d is %s", i,
                     ct_tensor_describe(params[i]));
        ct__set_active(&sweep, params[i], true);
    }
    /* the array must exist even when no parameter is given */
    graph->wants_gradient = sweep.active;
    graph->num_wants_gradient = sweep.num_active;
    mark_from_outside(&sweep, graph->region);
    ct_node *last = graph->region->last;
    for (int i = 0; i < num_tensors; i++)
        if (cotangents[i]) {
            if (tensors[i]->region != graph->region) CT_BUG("ct_grad: tensor %d is not of the current region", i);
            if (!ct__same_type(tensors[i], cotangents[i]))
                ct__fail(graph, CT_LOC, "grad", "cotangent %s does not fit %s", ct_tensor_describe(cotangents[i]),
                         ct_tensor_describe(tensors[i]));
            else
                ct__accumulate(&sweep, tensors[i], cotangents[i]);
        }
    if (!graph->error && last) ct__sweep_nodes(&sweep, last);
    reject_detours(&sweep, params, num_params);
    for (int i = 0; i < num_params && !graph->error; i++) {
        ct_tensor *gradient = ct__map_get(&sweep.cotangents, params[i]);
        out_gradients[i] = gradient ? gradient : ct__zeros_like(params[i]);
    }
    graph->wants_gradient = outer_wants;
    graph->num_wants_gradient = num_outer_wants;
    ct__sweep_deinit(&sweep);
    return ct_graph_check(graph);
}

ct_status *ct_grad(ct_graph *graph, ct_tensor *loss, ct_tensor *const *params, int num_params,
                   ct_tensor **out_gradients)
{
    params = ct_arena_dup(&graph->arena, params, (size_t)num_params * sizeof(*params)); /* may be out_gradients */
    for (int i = 0; i < num_params; i++) out_gradients[i] = graph->poison;
    CT_TRY(ct_graph_check(graph));
    if (loss->rank != 0 || !ct_dtype_is_float(loss->dtype))
        return ct_error(CT_CODE_INVALID_ARGUMENT, "grad: the loss must be a float without axes, found %s",
                        ct_tensor_describe(loss));
    ct_tensor *one = ct_scalar_like(loss, 1);
    return ct_grad_from(graph, 1, &loss, &one, params, num_params, out_gradients);
}
