/* Scan: one node in the graph, one stablehlo.while in print.
 *
 *   while (i, carries, output buffers, inputs, captures):  slice inputs at i; body; write output slices at i
 *
 * Inputs and captures travel through the loop unchanged, as XLA's while wants every value explicit.
 */
#include "graph/scan.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static void print_slice_type(ct_printer *p, const ct_tensor *slice)
{
    ct_str_append(p->out, "tensor<1x");
    for (int i = 0; i < slice->rank; i++) ct__print(p, "%lldx", (long long)slice->axes[i].size);
    ct__print(p, "%s>", ct_dtype_mlir(slice->dtype));
}

static void print_zeros(ct_printer *p, int count)
{
    for (int i = 0; i < count; i++) ct_str_append(p->out, ", tensor<i32>");
}

/* %N = the position's slice of input %input, without the scanned axis */
static int print_input_slice(ct_printer *p, int input, const ct_tensor *input_type, const ct_tensor *slice,
                             int position, int zero, const ct_node *node)
{
    int wide = ct__print_new_name(p), name = ct__print_new_name(p);
    ct__print_line(p);
    ct__print(p, "%%%d = \"stablehlo.dynamic_slice\"(%%%d, %%%d", wide, input, position);
    for (int i = 0; i < slice->rank; i++) ct__print(p, ", %%%d", zero);
    ct_str_append(p->out, ") <{slice_sizes = array<i64: 1");
    for (int i = 0; i < slice->rank; i++) ct__print(p, ", %lld", (long long)slice->axes[i].size);
    ct_str_append(p->out, ">}> : (");
    ct__print_type(p, input_type);
    ct_str_append(p->out, ", tensor<i32>");
    print_zeros(p, slice->rank);
    ct_str_append(p->out, ") -> ");
    print_slice_type(p, slice);
    ct__print_loc(p, node);
    ct__print_line(p);
    ct__print(p, "%%%d = \"stablehlo.reshape\"(%%%d) : (", name, wide);
    print_slice_type(p, slice);
    ct_str_append(p->out, ") -> ");
    ct__print_type(p, slice);
    ct__print_loc(p, node);
    return name;
}

/* %N = buffer with the slice written at position */
static int print_output_update(ct_printer *p, int buffer, const ct_tensor *output, const ct_tensor *slice, int position,
                               int zero, const ct_node *node)
{
    int wide = ct__print_new_name(p), name = ct__print_new_name(p);
    ct__print_line(p);
    ct__print(p, "%%%d = \"stablehlo.reshape\"(", wide);
    ct__print_value(p, slice);
    ct_str_append(p->out, ") : (");
    ct__print_type(p, slice);
    ct_str_append(p->out, ") -> ");
    print_slice_type(p, slice);
    ct__print_loc(p, node);
    ct__print_line(p);
    ct__print(p, "%%%d = \"stablehlo.dynamic_update_slice\"(%%%d, %%%d, %%%d", name, buffer, wide, position);
    for (int i = 0; i < slice->rank; i++) ct__print(p, ", %%%d", zero);
    ct_str_append(p->out, ") : (");
    ct__print_type(p, output);
    ct_str_append(p->out, ", ");
    print_slice_type(p, slice);
    ct_str_append(p->out, ", tensor<i32>");
    print_zeros(p, slice->rank);
    ct_str_append(p->out, ") -> ");
    ct__print_type(p, output);
    ct__print_loc(p, node);
    return name;
}

static int print_s32(ct_printer *p, long long value)
{
    int name = ct__print_new_name(p);
    ct__print_line(p);
    ct__print(p, "%%%d = \"stablehlo.constant\"() <{value = dense<%lld> : tensor<i32>}> : () -> tensor<i32>", name,
              value);
    return name;
}

static int print_s32_binary(ct_printer *p, const char *op, int a, int b)
{
    int name = ct__print_new_name(p);
    ct__print_line(p);
    ct__print(p, "%%%d = \"stablehlo.%s\"(%%%d, %%%d) : (tensor<i32>, tensor<i32>) -> tensor<i32>", name, op, a, b);
    return name;
}

/* The values of a loop after its counter, with their types: [carries | buffers | inputs | captures]. */
typedef struct loop_values {
    int count;
    const ct_tensor **types;
    int *outside; /* SSA numbers before the loop */
    int *inside;  /* of the block's arguments; reused for condition and body */
} loop_values;

static void loop_add(loop_values *values, const ct_tensor *type, int outside)
{
    values->types[values->count] = type;
    values->outside[values->count++] = outside;
}

static void print_loop_types(ct_printer *p, const loop_values *values)
{
    ct_str_append(p->out, "tensor<i32>");
    for (int i = 0; i < values->count; i++) {
        ct_str_append(p->out, ", ");
        ct__print_type(p, values->types[i]);
    }
}

static int print_loop_block(ct_printer *p, loop_values *values)
{
    int counter = ct__print_new_name(p);
    ct__print(p, "^bb0(%%%d: tensor<i32>", counter);
    for (int i = 0; i < values->count; i++) {
        values->inside[i] = ct__print_new_name(p);
        ct__print(p, ", %%%d: ", values->inside[i]);
        ct__print_type(p, values->types[i]);
    }
    ct_str_append(p->out, "):");
    return counter;
}

static void print_scan(ct_printer *p, const ct_node *node)
{
    const ct_scan_attrs *attrs = node->attrs;
    const ct_region *body = node->regions[0];
    int num_carries = attrs->num_carries, num_outputs = node->num_results - num_carries;
    int num_outer = node->num_operands - num_carries; /* inputs and captures */
    size_t capacity = (size_t)(node->num_results + node->num_operands) + 1;
    loop_values values = {.types = ct_alloc(capacity * sizeof(*values.types)),
                          .outside = ct_alloc(capacity * sizeof(int)),
                          .inside = ct_alloc(capacity * sizeof(int))};

    int counter = print_s32(p, 0);
    for (int i = 0; i < num_carries; i++) loop_add(&values, node->operands[i], p->names[node->operands[i]->id]);
    for (int i = 0; i < num_outputs; i++) {
        const ct_tensor *output = node->results[num_carries + i];
        int zero = ct__print_new_name(p), buffer = ct__print_new_name(p);
        const char *type = ct_dtype_mlir(output->dtype);
        uint64_t bits = 0;
        ct__print_line(p);
        ct__print(p, "%%%d = \"stablehlo.constant\"() <{value = dense<", zero);
        ct__print_constant_value(p, output->dtype, &bits);
        ct__print(p, "> : tensor<%s>}> : () -> tensor<%s>", type, type);
        ct__print_line(p);
        ct__print(
            p, "%%%d = \"stablehlo.broadcast_in_dim\"(%%%d) <{broadcast_dimensions = array<i64>}> : (tensor<%s>) -> ",
            buffer, zero, type);
        ct__print_type(p, output);
        loop_add(&values, output, buffer);
    }
    for (int i = 0; i < num_outer; i++) {
        const ct_tensor *outer = node->operands[num_carries + i];
        loop_add(&values, outer, p->names[outer->id]);
    }

    ct__print_line(p);
    int result_counter = ct__print_new_name(p);
    int first_result = p->next_name;
    p->next_name += values.count;
    ct__print(p, "%%%d", result_counter);
    for (int i = 0; i < values.count; i++) ct__print(p, ", %%%d", first_result + i);
    ct__print(p, " = \"stablehlo.while\"(%%%d", counter);
    for (int i = 0; i < values.count; i++) ct__print(p, ", %%%d", values.outside[i]);
    ct_str_append(p->out, ") ({");
    p->indent++;
    ct__print_line(p);
    int inner = print_loop_block(p, &values);
    int length = print_s32(p, attrs->axis.size), more = ct__print_new_name(p);
    ct__print_line(p);
    ct__print(p,
              "%%%d = \"stablehlo.compare\"(%%%d, %%%d) <{comparison_direction = #stablehlo<comparison_direction LT>}> "
              ": (tensor<i32>, tensor<i32>) -> tensor<i1>",
              more, inner, length);
    ct__print_line(p);
    ct__print(p, "\"stablehlo.return\"(%%%d) : (tensor<i1>) -> ()", more);
    p->indent--;
    ct__print_line(p);
    ct_str_append(p->out, "}, {");
    p->indent++;
    ct__print_line(p);
    inner = print_loop_block(p, &values);

    /* inside the body, captured tensors go by the block's arguments */
    int *outer_names = ct_alloc((size_t)(num_outer + 1) * sizeof(int));
    for (int i = 0; i < num_outer; i++) {
        const ct_tensor *outer = node->operands[num_carries + i];
        outer_names[i] = p->names[outer->id];
    }
    for (int i = attrs->num_inputs; i < num_outer; i++)
        ct__print_bind(p, node->operands[num_carries + i], values.inside[num_carries + num_outputs + i]);
    for (int i = 0; i < num_carries; i++) ct__print_bind(p, body->args[i], values.inside[i]);
    int zero = print_s32(p, 0);
    int position = inner;
    if (attrs->reverse) position = print_s32_binary(p, "subtract", print_s32(p, attrs->axis.size - 1), inner);
    int next_position = position; /* dynamic_slice keeps it within the array */
    if (attrs->num_ahead)
        next_position = print_s32_binary(p, attrs->reverse ? "subtract" : "add", position, print_s32(p, 1));
    for (int i = 0; i < attrs->num_inputs; i++) {
        const ct_tensor *slice = body->args[num_carries + i];
        bool is_ahead = i >= attrs->num_inputs - attrs->num_ahead;
        int name = print_input_slice(p, values.inside[num_carries + num_outputs + i], node->operands[num_carries + i],
                                     slice, is_ahead ? next_position : position, zero, node);
        ct__print_bind(p, slice, name);
    }
    ct__print_region_nodes(p, body);
    int *updated = ct_alloc((size_t)(num_outputs + 1) * sizeof(int));
    for (int i = 0; i < num_outputs; i++)
        updated[i] = print_output_update(p, values.inside[num_carries + i], node->results[num_carries + i],
                                         body->results[num_carries + i], position, zero, node);
    int next = print_s32_binary(p, "add", inner, print_s32(p, 1));
    ct__print_line(p);
    ct__print(p, "\"stablehlo.return\"(%%%d", next);
    for (int i = 0; i < num_carries; i++) {
        ct_str_append(p->out, ", ");
        ct__print_value(p, body->results[i]);
    }
    for (int i = 0; i < num_outputs; i++) ct__print(p, ", %%%d", updated[i]);
    for (int i = 0; i < num_outer; i++) ct__print(p, ", %%%d", values.inside[num_carries + num_outputs + i]);
    ct_str_append(p->out, ") : (");
    print_loop_types(p, &values);
    ct_str_append(p->out, ") -> ()");
    p->indent--;
    ct__print_line(p);
    ct_str_append(p->out, "}) : (");
    print_loop_types(p, &values);
    ct_str_append(p->out, ") -> (");
    print_loop_types(p, &values);
    ct_str_append(p->out, ")");
    ct__print_loc(p, node);

    for (int i = 0; i < num_outer; i++) ct__print_bind(p, node->operands[num_carries + i], outer_names[i]);
    for (int i = 0; i < node->num_results; i++) ct__print_bind(p, node->results[i], first_result + i);
    free(updated);
    free(outer_names);
    free(values.types);
    free(values.outside);
    free(values.inside);
}

const ct_op ct__op_scan = {.name = "ctitan.scan", .print = print_scan, .structured = true};

ct_node *ct__scan_node(ct_graph *graph, const char *loc, const ct_scan_attrs *attrs, ct_region *region,
                       ct_tensor *const *operands)
{
    ct_node *node = ct__node_new(graph, &ct__op_scan, loc, attrs->num_carries + attrs->num_inputs, operands);
    node->attrs = ct_arena_dup(&graph->arena, attrs, sizeof(*attrs));
    ct__node_add_region(node, region);
    ct__node_capture(node);
    for (int i = 0; i < attrs->num_carries; i++) ct__result_like(node, region->args[i]);
    for (int i = attrs->num_carries; i < region->num_results; i++) {
        const ct_tensor *slice = region->results[i];
        ct_axis axes[CT_MAX_RANK + 1] = {attrs->axis};
        memcpy(axes + 1, slice->axes, (size_t)slice->rank * sizeof(*axes));
        ct__result(node, slice->dtype, slice->rank + 1, axes);
    }
    return node;
}

ct_tensor *ct__scan_add_output(ct_node *scan, ct_tensor *slice)
{
    const ct_scan_attrs *attrs = scan->attrs;
    ct_axis axes[CT_MAX_RANK + 1] = {attrs->axis};
    memcpy(axes + 1, slice->axes, (size_t)slice->rank * sizeof(*axes));
    ct__region_add_result(scan->regions[0], slice);
    return ct__result(scan, slice->dtype, slice->rank + 1, axes);
}

void ct__scan(const char *loc, ct_graph *graph, const ct_scan_opts *opts, ct_scan_body *body, void *context,
              ct_tensor **out_carries, ct_tensor **out_outputs)
{
    ct_scan_attrs attrs = {.axis = {ct__intern_z(graph, opts->axis), opts->length},
                           .num_carries = opts->num_carries,
                           .num_inputs = opts->num_inputs,
                           .reverse = opts->reverse,
                           .remat = opts->remat};
    int num_operands = opts->num_carries + opts->num_inputs;
    ct_tensor **operands = CT_ARENA_ARRAY(&graph->arena, ct_tensor *, num_operands + 1);
    for (int i = 0; i < opts->num_carries; i++) operands[i] = opts->carries[i];
    for (int i = 0; i < opts->num_inputs; i++) operands[opts->num_carries + i] = opts->inputs[i];
    /* from here on opts' arrays are not read again: the results may go to the same place */
    for (int i = 0; i < opts->num_carries; i++) out_carries[i] = graph->poison;
    for (int i = 0; i < opts->num_outputs; i++) out_outputs[i] = graph->poison;
    if (graph->error) return;
    for (int i = 0; i < opts->num_inputs; i++) {
        ct_tensor *input = operands[opts->num_carries + i];
        if (ct_tensor_is_poison(input)) return;
        if (!input->rank || input->axes[0].name != attrs.axis.name ||
            (attrs.axis.size && input->axes[0].size != attrs.axis.size)) {
            ct__fail(graph, loc, "scan", "input %d must begin with the axis %s=%lld, found %s", i, opts->axis,
                     (long long)attrs.axis.size, ct_tensor_describe(input));
            return;
        }
        attrs.axis.size = input->axes[0].size;
    }
    if (num_operands && ct__any_poison(num_operands, operands)) return;
    if (attrs.axis.size < 1) {
        ct__fail(graph, loc, "scan", "needs at least one turn along %s, found %lld", opts->axis,
                 (long long)attrs.axis.size);
        return;
    }

    ct_region *region = ct__region_new(graph, graph->region);
    for (int i = 0; i < opts->num_carries; i++)
        ct__region_add_arg(region, operands[i]->dtype, operands[i]->rank, operands[i]->axes);
    for (int i = 0; i < opts->num_inputs; i++) {
        const ct_tensor *input = operands[opts->num_carries + i];
        ct__region_add_arg(region, input->dtype, input->rank - 1, input->axes + 1);
    }
    int num_results = opts->num_carries + opts->num_outputs;
    ct_tensor **results = CT_ARENA_ARRAY(&graph->arena, ct_tensor *, num_results + 1);
    ct_insertion saved = ct__region_enter(region);
    ct_group *checkpoint = graph->checkpoint, *custom = graph->custom;
    graph->checkpoint = graph->custom = NULL; /* groups are of one region; the scan node itself belongs to them */
    body(graph, context, region->args, region->args + opts->num_carries, results, results + opts->num_carries);
    graph->checkpoint = checkpoint;
    graph->custom = custom;
    ct__region_leave(graph, saved);
    if (num_results && ct__any_poison(num_results, results)) return;
    for (int i = 0; i < opts->num_carries; i++)
        if (!ct__same_type(results[i], operands[i])) {
            ct__fail(graph, loc, "scan", "carry %d begins as %s but the body returns %s", i,
                     ct_tensor_describe(operands[i]), ct_tensor_describe(results[i]));
            return;
        }
    for (int i = 0; i < opts->num_outputs; i++) {
        const ct_tensor *slice = results[opts->num_carries + i];
        if (slice->rank == CT_MAX_RANK || ct__find_axis(slice->axes, slice->rank, attrs.axis.name) >= 0) {
            ct__fail(graph, loc, "scan", "output %d, %s, cannot be stacked along %s", i, ct_tensor_describe(slice),
                     opts->axis);
            return;
        }
    }
    for (int i = 0; i < num_results; i++) ct__region_add_result(region, results[i]);
    ct_node *node = ct__scan_node(graph, loc, &attrs, region, operands);
    for (int i = 0; i < opts->num_carries; i++) out_carries[i] = node->results[i];
    for (int i = 0; i < opts->num_outputs; i++) out_outputs[i] = node->results[opts->num_carries + i];
}
