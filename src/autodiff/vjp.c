/* Functions differentiated, and calls through them. The forward function is a copy of the original that a replay
 * extends by residuals, as it extends a scan by stacked outputs. */
#include "autodiff/vjp.h"

#include "autodiff/sweep.h"
#include "base/alloc.h"
#include "graph/call.h"
#include "graph/ops.h"

/* Derivatives already made for calls, one per set of arguments whose gradient is wanted. */
typedef struct ct_derivative {
    struct ct_derivative *next;
    bool *wanted;
    ct_vjp_pair pair;
} ct_derivative;

typedef struct vjp_replay {
    ct_region *forward, *backward;
    const ct_remat_policy *policy;
} vjp_replay;

static bool vjp_covers(const ct_replay *replay, const ct_tensor *tensor)
{
    return ct__region_contains(((const vjp_replay *)replay->context)->forward, tensor);
}

static ct_tensor *vjp_leaf(ct_replay *replay, ct_tensor *tensor)
{
    vjp_replay *vjp = replay->context;
    if (!vjp_covers(replay, tensor)) return tensor;
    if (tensor->node && !ct__policy_saves(vjp->policy, tensor)) return NULL;
    ct__region_add_result(vjp->forward, tensor);
    return ct__region_add_arg(vjp->backward, tensor->dtype, tensor->rank, tensor->axes);
}

/* Moves the last `count` arguments of region to the front. */
static void rotate_args(ct_region *region, int count)
{
    int total = region->num_args, first = total - count;
    ct_tensor **args = CT_ARENA_ARRAY(&region->graph->arena, ct_tensor *, total + 1);
    for (int i = 0; i < total; i++) args[i < first ? i + count : i - first] = region->args[i];
    for (int i = 0; i < total; i++) {
        region->args[i] = args[i];
        args[i]->index = i;
    }
}

static ct_region *copy_of(const ct_function *function)
{
    ct_region *original = function->region, *copy = ct__region_new(original->graph, NULL);
    ct_tensor_map map = {0};
    for (int i = 0; i < original->num_args; i++) {
        const ct_tensor *arg = original->args[i];
        ct__map_set(&map, arg, ct__region_add_arg(copy, arg->dtype, arg->rank, arg->axes));
    }
    ct_insertion saved = ct__region_enter(copy);
    ct__region_inline(original, &map);
    ct__region_leave(original->graph, saved);
    for (int i = 0; i < original->num_results; i++)
        ct__region_add_result(copy, ct__map_get(&map, original->results[i]));
    ct__map_free(&map);
    return copy;
}

/* The backward region's results, and what of forward they need. */
static void fill_backward(ct_sweep *sweep, vjp_replay *vjp, const bool *wanted, ct_vjp_pair *pair)
{
    ct_graph *graph = sweep->graph;
    ct_region *forward = vjp->forward, *backward = vjp->backward;
    for (int i = 0; i < forward->num_args; i++) ct__set_active(sweep, forward->args[i], wanted[i]);
    graph->wants_gradient = sweep->active; /* also when nothing is wanted */
    graph->num_wants_gradient = sweep->num_active;
    ct__mark_active(sweep, forward);
    for (int i = 0; i < pair->num_outputs; i++) {
        ct_tensor *result = forward->results[i];
        if (!ct_dtype_is_float(result->dtype)) continue;
        pair->num_cotangents++;
        ct__accumulate(sweep, result, ct__region_add_arg(backward, result->dtype, result->rank, result->axes));
    }
    if (forward->last) ct__sweep_nodes(sweep, forward->last);
    for (int i = 0; i < forward->num_args; i++) {
        if (!wanted[i]) continue;
        ct_tensor *gradient = ct__map_get(&sweep->cotangents, forward->args[i]);
        ct__region_add_result(backward, gradient ? gradient : ct__zeros_like(forward->args[i]));
    }
    pair->num_gradients = backward->num_results;
    ct_replay replay = {.graph = graph, .context = vjp, .leaf = vjp_leaf, .covers = vjp_covers};
    if (!graph->error) {
        ct__replay_nodes(&replay, backward, backward->first);
        for (int i = 0; i < backward->num_results; i++)
            if (vjp_covers(&replay, backward->results[i]))
                backward->results[i] = ct__replay_value(&replay, backward->results[i]);
    }
    ct__map_free(&replay.map);
    pair->num_residuals = forward->num_results - pair->num_outputs;
    rotate_args(backward, pair->num_residuals);
}

static ct_vjp_pair make_pair(ct_function *function, const bool *wanted, const ct_remat_policy *policy)
{
    ct_graph *graph = function->region->graph;
    ct_group *checkpoint = graph->checkpoint, *custom = graph->custom;
    const bool *outer_wants = graph->wants_gradient;
    int num_outer_wants = graph->num_wants_gradient;
    graph->checkpoint = graph->custom = NULL;

    vjp_replay vjp = {.forward = copy_of(function), .backward = ct__region_new(graph, NULL), .policy = policy};
    ct_vjp_pair pair = {.num_outputs = function->region->num_results};
    ct_sweep sweep;
    ct__sweep_init(&sweep, graph);
    ct_insertion saved = ct__region_enter(vjp.backward);
    fill_backward(&sweep, &vjp, wanted, &pair);
    ct__region_leave(graph, saved);
    ct__sweep_deinit(&sweep);

    graph->wants_gradient = outer_wants;
    graph->num_wants_gradient = num_outer_wants;
    graph->checkpoint = checkpoint;
    graph->custom = custom;
    ct_arena *arena = &graph->arena;
    pair.forward = ct__function_of_region(graph, ct_arena_printf(arena, "%s.forward", function->name), vjp.forward);
    pair.backward = ct__function_of_region(graph, ct_arena_printf(arena, "%s.backward", function->name), vjp.backward);
    return pair;
}

ct_status *ct_vjp(ct_function *function, const ct_remat_policy *policy, ct_vjp_pair *out_pair)
{
    *out_pair = (ct_vjp_pair){0};
    ct_graph *graph = function->region->graph;
    CT_TRY(ct_graph_check(graph));
    const ct_region *region = function->region;
    bool *wanted = CT_ARENA_ARRAY(&graph->arena, bool, region->num_args + 1);
    for (int i = 0; i < region->num_args; i++) wanted[i] = ct_dtype_is_float(region->args[i]->dtype);
    *out_pair = make_pair(function, wanted, policy);
    return ct_graph_check(graph);
}

/* The pair for the arguments that sweep wants, from the function's list. */
static const ct_derivative *derivative_of(ct_sweep *sweep, ct_function *function, ct_tensor *const *args)
{
    ct_arena *arena = &sweep->graph->arena;
    int num_args = function->region->num_args;
    bool *wanted = CT_ARENA_ARRAY(arena, bool, num_args + 1);
    for (int i = 0; i < num_args; i++) wanted[i] = ct__is_active(sweep, args[i]);
    for (const ct_derivative *d = function->derivatives; d; d = d->next) {
        bool same = true;
        for (int i = 0; i < num_args; i++) same &= d->wanted[i] == wanted[i];
        if (same) return d;
    }
    ct_derivative *made = CT_ARENA_NEW(arena, ct_derivative);
    *made = (ct_derivative){.wanted = wanted, .pair = make_pair(function, wanted, NULL)};
    made->next = function->derivatives;
    function->derivatives = made;
    return made;
}

/* Calls backward; residuals are the last results of a call of forward. */
static void call_backward(const ct_derivative *derivative, const ct_node *forward, ct_tensor *const *cotangents,
                          ct_tensor **gradients)
{
    const ct_vjp_pair *pair = &derivative->pair;
    ct_graph *graph = forward->graph;
    int count = 0;
    ct_tensor **args = CT_ARENA_ARRAY(&graph->arena, ct_tensor *, pair->num_residuals + pair->num_cotangents + 1);
    for (int i = 0; i < pair->num_residuals; i++) args[count++] = forward->results[pair->num_outputs + i];
    for (int i = 0; i < pair->num_outputs; i++)
        if (ct_dtype_is_float(forward->results[i]->dtype))
            args[count++] = cotangents[i] ? cotangents[i] : ct__zeros_like(forward->results[i]);
    const ct_node *node = ct__call_node(forward->loc, pair->backward, args);
    for (int i = 0, next = 0; i < forward->num_operands; i++)
        if (derivative->wanted[i]) gradients[i] = node->results[next++];
}

void ct__call_vjp(ct_sweep *sweep, ct_node *call, ct_tensor *const *cotangents, ct_tensor **gradients)
{
    ct_function *function = ct__node_function(call);
    const ct_derivative *derivative = derivative_of(sweep, function, call->operands);
    if (sweep->graph->error) return;
    ct_function *forward = derivative->pair.forward;
    if (call->op == &ct__op_composite) { /* its results are fixed, so the forward pass runs again */
        call_backward(derivative, ct__call_node(call->loc, forward, call->operands), cotangents, gradients);
        return;
    }
    call->attrs = forward; /* this call now returns the residuals as well */
    for (int i = derivative->pair.num_outputs; i < forward->region->num_results; i++)
        ct__result_like(call, forward->region->results[i]);
    call_backward(derivative, call, cotangents, gradients);
}
