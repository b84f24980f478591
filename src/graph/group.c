/* Checkpoint blocks, custom derivatives, stop_gradient, optimization_barrier. */
#include "graph/group.h"

#include <string.h>

#include "graph/dot.h"
#include "graph/elementwise.h"
#include "graph/factor.h"

ct_tensor *ct_checkpoint_name(ct_tensor *x, const char *name)
{
    if (!ct_tensor_is_poison(x)) x->checkpoint_name = ct__intern_z(x->graph, name);
    return x;
}

ct_tensor *ct_checkpoint_sum(ct_tensor *a, ct_tensor *b)
{
    ct_tensor *sum = ct_add(a, b);
    if (ct_tensor_is_poison(sum)) return sum;
    a->remat_role = b->remat_role = CT__REMAT_TERM;
    sum->remat_role = CT__REMAT_SUM;
    return sum;
}

void ct_checkpoint_begin(ct_graph *graph, const ct_remat_policy *policy)
{
    CT_ASSERT(!graph->checkpoint);
    if (policy->mode == CT_REMAT_NONE && !policy->num_offload && !policy->num_recompute) return; /* no block at all */
    graph->checkpoint = CT_ARENA_NEW(&graph->arena, ct_group);
    graph->checkpoint->policy = policy;
}

void ct_checkpoint_end(ct_graph *graph)
{
    graph->checkpoint = NULL;
}

static bool is_named(const ct_tensor *tensor, const char *const *names, int num_names)
{
    for (int i = 0; i < num_names; i++)
        if (tensor->checkpoint_name && !strcmp(names[i], tensor->checkpoint_name)) return true;
    return false;
}

bool ct__policy_offloads(const ct_remat_policy *policy, const ct_tensor *tensor)
{
    return policy && is_named(tensor, policy->offload, policy->num_offload);
}

bool ct__policy_saves(const ct_remat_policy *policy, const ct_tensor *tensor)
{
    const ct_op *op = tensor->node->op;
    if (op->always_saved) return true;
    if (policy && is_named(tensor, policy->recompute, policy->num_recompute)) return false;
    if (policy && (is_named(tensor, policy->save, policy->num_save) || ct__policy_offloads(policy, tensor)))
        return true;
    if (op->cheap) return false;
    if (!policy || policy->mode == CT_REMAT_NONE) return true;
    if (policy->mode != CT_REMAT_SELECTIVE || tensor->remat_role == CT__REMAT_TERM) return false;
    return tensor->remat_role == CT__REMAT_SUM || ct__is_weight_dot(tensor->node);
}

/* ---- optimization_barrier ---- */

static void vjp_barrier(ct_node *node, ct_tensor *const *cotangents, ct_tensor **gradients)
{
    for (int i = 0; i < node->num_operands; i++) gradients[i] = cotangents[i];
}

/* Where its operands lie is spmd's business: each passes as it is, however many there are. */
const ct_op ct__op_barrier = {.name = "stablehlo.optimization_barrier", .vjp = vjp_barrier};

void ct__optimization_barrier(const char *loc, int num_tensors, ct_tensor *const *tensors, ct_tensor **out_tensors)
{
    ct_graph *graph = ct__common_graph(num_tensors, tensors);
    bool poisoned = ct__any_poison(num_tensors, tensors);
    ct_node *node = poisoned ? NULL : ct__node_new(graph, &ct__op_barrier, loc, num_tensors, tensors);
    for (int i = 0; i < num_tensors; i++) /* out_tensors may be tensors itself */
        out_tensors[i] = poisoned ? graph->poison : ct__result_like(node, node->operands[i]);
}

/* ---- stop_gradient: an alias that the sweep does not pass ---- */

static void print_alias(ct_printer *p, const ct_node *node)
{
    ct__print_alias(p, node->results[0], node->operands[0]);
}

static void rule_alias(const ct_node *node, ct_factors *factors)
{
    ct__factors_elementwise(node, factors);
    ct__factors_linear(node, CT_LINEAR_JOINTLY, 1, factors);
}

static const ct_op op_stop_gradient = {
    .name = "ctitan.stop_gradient", .print = print_alias, .zero_gradient = true, .cheap = true, .factors = rule_alias};

ct_tensor *ct__stop_gradient(const char *loc, ct_tensor *x)
{
    if (ct__any_poison(1, &x)) return x->graph->poison;
    return ct__result_like(ct__node_new(x->graph, &op_stop_gradient, loc, 1, &x), x);
}

static void vjp_identity(ct_node *node, ct_tensor *const *cotangents, ct_tensor **gradients)
{
    (void)node;
    gradients[0] = cotangents[0];
}

static const ct_op op_identity = {
    .name = "ctitan.identity", .print = print_alias, .vjp = vjp_identity, .cheap = true, .factors = rule_alias};

/* ---- custom derivatives ---- */

void ct__custom_vjp(const char *loc, ct_graph *graph, int num_inputs, ct_tensor *const *inputs, int num_outputs,
                    ct_tensor **out_outputs, ct_custom_forward *forward, ct_custom_backward *backward, void *context)
{
    bool poisoned = ct__any_poison(num_inputs, inputs);
    inputs = ct_arena_dup(&graph->arena, inputs, (size_t)num_inputs * sizeof(*inputs)); /* may be out_outputs */
    for (int i = 0; i < num_outputs; i++) out_outputs[i] = graph->poison;
    if (poisoned) return;
    const char *saved_loc = ct__loc_enter(graph, loc);
    bool outermost = !graph->custom; /* inside another custom derivative this one is plain ops */
    if (outermost) {
        ct_group *group = CT_ARENA_NEW(&graph->arena, ct_group);
        *group =
            (ct_group){.backward = backward, .context = context, .num_inputs = num_inputs, .num_outputs = num_outputs};
        group->inputs = ct_arena_dup(&graph->arena, inputs, (size_t)num_inputs * sizeof(*inputs));
        group->outputs = CT_ARENA_ARRAY(&graph->arena, ct_tensor *, num_outputs);
        graph->custom = group;
    }
    forward(graph, context, inputs, out_outputs);
    for (int i = 0; outermost && i < num_outputs; i++) {
        if (ct_tensor_is_poison(out_outputs[i])) continue;
        /* an output that is made elsewhere would escape the group, and one that is listed twice would have its
         * cotangent counted twice: give it a node of the group's own */
        bool own = out_outputs[i]->node && out_outputs[i]->node->custom == graph->custom;
        for (int j = 0; j < i; j++) own &= out_outputs[j] != out_outputs[i];
        if (!own)
            out_outputs[i] =
                ct__result_like(ct__node_new(graph, &op_identity, loc, 1, &out_outputs[i]), out_outputs[i]);
        graph->custom->outputs[i] = out_outputs[i];
    }
    if (outermost) graph->custom = NULL;
    ct__loc_leave(graph, saved_loc);
}
