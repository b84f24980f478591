/* custom_call @annotate_device_placement, and memory kinds of inputs and outputs. */
#include "graph/memory.h"

#include "graph/factor.h"
#include "graph/node.h"

static void print_placement(ct_printer *p, const ct_node *node, const char *memory)
{
    ct__print_line(p);
    ct__print_results(p, node);
    ct_str_append(p->out, "\"stablehlo.custom_call\"");
    ct__print_operands(p, node->operands, 1);
    ct__print(p,
              " <{call_target_name = \"annotate_device_placement\", has_side_effect = true, api_version = 1 : i32}> "
              "{mhlo.frontend_attributes = {_xla_buffer_placement = \"%s\"}}",
              memory);
    ct__print_signature(p, node);
}

static void print_to_host(ct_printer *p, const ct_node *node)
{
    print_placement(p, node, "pinned_host");
}

static void print_to_device(ct_printer *p, const ct_node *node)
{
    print_placement(p, node, "device");
}

static void vjp_move(ct_node *node, ct_tensor *const *cotangents, ct_tensor **gradients)
{
    (void)node;
    gradients[0] = cotangents[0];
}

static void factors_move(const ct_node *node, ct_factors *out_factors)
{
    ct__factors_elementwise(node, out_factors);
    out_factors->repeatable = false;
}

static const ct_op op_to_host = {
    .name = "ctitan.to_host", .print = print_to_host, .vjp = vjp_move, .factors = factors_move};
static const ct_op op_to_device = {
    .name = "ctitan.to_device", .print = print_to_device, .vjp = vjp_move, .factors = factors_move};

static ct_tensor *move(const char *loc, const ct_op *op, ct_tensor *x)
{
    if (ct__any_poison(1, &x)) return x->graph->poison;
    return ct__result_like(ct__node_new(x->graph, op, loc, 1, &x), x);
}

ct_tensor *ct__to_host(const char *loc, ct_tensor *x)
{
    return move(loc, &op_to_host, x);
}

ct_tensor *ct__to_device(const char *loc, ct_tensor *x)
{
    return move(loc, &op_to_device, x);
}

void ct_graph_set_input_on_host(ct_graph *graph, const ct_tensor *input)
{
    if (graph->error) return;
    for (int i = 0; i < graph->num_inputs; i++)
        if (graph->inputs[i].tensor == input) {
            graph->inputs[i].on_host = true;
            return;
        }
    CT_BUG("%s is not an input", ct_tensor_describe(input));
}

void ct_graph_set_output_on_host(ct_graph *graph, int index)
{
    if (graph->error) return;
    CT_ASSERT(index >= 0 && index < graph->num_outputs);
    graph->outputs[index].on_host = true;
}
