/* sdy.manual_computation over all mesh axes. */
#include "graph/manual.h"

#include "graph/call.h"
#include "graph/placement.h"

static void print_placements(ct_printer *p, const char *name, const ct_placement *placements, ct_tensor *const *tensors,
                             int count)
{
    ct__print(p, " %s=[", name);
    for (int i = 0; i < count; i++) {
        if (i) ct_str_append(p->out, ", ");
        ct__print_placement(p, &placements[i], tensors[i]->rank);
    }
    ct_str_append_char(p->out, ']');
}

static void print_manual(ct_printer *p, const ct_node *node)
{
    const ct_manual_attrs *attrs = node->attrs;
    const ct_region *region = node->regions[0];
    const ct_graph *graph = p->graph;
    ct__print_line(p);
    ct__print_results(p, node);
    ct_str_append(p->out, "sdy.manual_computation");
    ct__print_operands(p, node->operands, node->num_operands);
    print_placements(p, "in_shardings", attrs->inputs, node->operands, node->num_operands);
    print_placements(p, "out_shardings", attrs->outputs, node->results, node->num_results);
    ct_str_append(p->out, " manual_axes={");
    for (int i = 0; i < graph->num_mesh_axes; i++) ct__print(p, "%s\"%s\"", i ? ", " : "", graph->mesh[i].name);
    ct_str_append(p->out, "} (");
    for (int i = 0; i < region->num_args; i++) {
        int name = ct__print_new_name(p);
        ct__print_bind(p, region->args[i], name);
        ct__print(p, "%s%%%d: ", i ? ", " : "", name);
        ct__print_type(p, region->args[i]);
    }
    ct_str_append(p->out, ") {");
    p->indent++;
    ct__print_region_nodes(p, region);
    ct__print_line(p);
    ct_str_append(p->out, "sdy.return ");
    for (int i = 0; i < region->num_results; i++) {
        if (i) ct_str_append(p->out, ", ");
        ct__print_value(p, region->results[i]);
    }
    ct_str_append(p->out, " : ");
    ct__print_types(p, region->results, region->num_results);
    p->indent--;
    ct__print_line(p);
    ct_str_append_char(p->out, '}');
    ct__print_signature(p, node);
}

const ct_op ct__op_manual = {.name = "sdy.manual_computation", .print = print_manual, .structured = true};

ct_region *ct__manual_region(ct_graph *graph, int num_inputs, ct_tensor *const *inputs, const ct_placement *placements)
{
    ct_region *region = ct__region_new(graph, graph->region);
    for (int i = 0; i < num_inputs; i++) {
        ct_axis axes[CT_MAX_RANK];
        for (int j = 0; j < inputs[i]->rank; j++) {
            axes[j] = inputs[i]->axes[j];
            axes[j].size /= ct__placement_parts(graph, &placements[i], j);
        }
        ct__region_add_arg(region, inputs[i]->dtype, inputs[i]->rank, axes);
    }
    return region;
}

ct_insertion ct__manual_enter(ct_region *region)
{
    region->graph->manual_depth++;
    return ct__region_enter(region);
}

void ct__manual_leave(ct_graph *graph, ct_insertion saved)
{
    graph->manual_depth--;
    ct__region_leave(graph, saved);
}

ct_node *ct__manual_node(ct_graph *graph, const char *loc, const ct_manual_attrs *attrs, ct_region *region,
                         ct_tensor *const *inputs)
{
    ct_node *node = ct__node_new(graph, &ct__op_manual, loc, region->num_args, inputs);
    node->attrs = ct_arena_dup(&graph->arena, attrs, sizeof(*attrs));
    ct__node_add_region(node, region);
    for (int i = 0; i < region->num_results; i++) {
        const ct_tensor *local = region->results[i];
        ct_axis axes[CT_MAX_RANK];
        for (int j = 0; j < local->rank; j++) {
            axes[j] = local->axes[j];
            axes[j].size *= ct__placement_parts(graph, &attrs->outputs[i], j);
        }
        ct__result(node, local->dtype, local->rank, axes);
    }
    return node;
}

void ct__manual(const char *loc, ct_graph *graph, const ct_manual_opts *opts, ct_manual_body *body, void *context,
                ct_tensor **out_outputs)
{
    int num_inputs = opts->num_inputs, num_outputs = opts->num_outputs;
    bool poison = graph->error || (num_inputs && ct__any_poison(num_inputs, opts->inputs));
    ct_tensor *const *arrays = ct_arena_dup(&graph->arena, opts->inputs, (size_t)num_inputs * sizeof(*arrays));
    for (int i = 0; i < num_outputs; i++) out_outputs[i] = graph->poison; /* may be where inputs came from */
    if (poison) return;
    if (!graph->num_mesh_axes || graph->manual_depth) {
        ct__fail(graph, loc, "manual",
                 graph->manual_depth ? "manual regions do not nest: the outer one is manual over all axes"
                                     : "the graph has no mesh: call ct_graph_set_mesh");
        return;
    }
    ct_placement *inputs = CT_ARENA_ARRAY(&graph->arena, ct_placement, num_inputs + 1);
    ct_placement *outputs = CT_ARENA_ARRAY(&graph->arena, ct_placement, num_outputs + 1);
    for (int i = 0; i < num_inputs; i++)
        if (!ct__parse_placement(arrays[i], loc, "manual", opts->input_placements[i], &inputs[i]) ||
            !ct__placement_divides(arrays[i], loc, "manual", &inputs[i]))
            return;
    ct_region *region = ct__manual_region(graph, num_inputs, arrays, inputs);
    ct_tensor **results = CT_ARENA_ARRAY(&graph->arena, ct_tensor *, num_outputs + 1);
    ct_group *checkpoint = graph->checkpoint, *custom = graph->custom;
    graph->checkpoint = NULL;
    graph->custom = NULL;
    ct_insertion saved = ct__manual_enter(region);
    body(graph, context, region->args, results);
    ct__manual_leave(graph, saved);
    graph->checkpoint = checkpoint;
    graph->custom = custom;
    if (graph->error || (num_outputs && ct__any_poison(num_outputs, results))) return;
    for (int i = 0; i < num_outputs; i++) {
        if (!ct__parse_placement(results[i], loc, "manual", opts->output_placements[i], &outputs[i])) return;
        ct__region_add_result(region, results[i]);
    }
    if (!ct__region_is_isolated(region, loc, "manual")) return;
    ct_manual_attrs attrs = {.inputs = inputs, .outputs = outputs};
    ct_node *node = ct__manual_node(graph, loc, &attrs, region, arrays);
    for (int i = 0; i < num_outputs; i++) out_outputs[i] = node->results[i];
}
