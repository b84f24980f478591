/* The StableHLO printer. Generic form, which changes least between versions:
 *
 *   %3 = "stablehlo.add"(%1, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("layers.0"("model.c":38:0))
 *
 * Nodes whose results no output needs are not printed. SSA numbers are given in order of printing. Ops whose result is
 * their operand under other axes (rename) print nothing: their result takes the operand's number.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/call.h"
#include "graph/node.h"
#include "graph/placement.h"

void ct__print(ct_printer *p, const char *format, ...)
{
    char text[512];
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (length >= 0 && (size_t)length < sizeof(text)) {
        ct_str_append_n(p->out, text, (size_t)length);
    } else { /* rare: long names or constants */
        char *longer = ct_alloc((size_t)length + 1);
        vsnprintf(longer, (size_t)length + 1, format, again);
        ct_str_append(p->out, longer);
        free(longer);
    }
    va_end(again);
}

void ct__print_line(ct_printer *p)
{
    ct_str_append_char(p->out, '\n');
    for (int i = 0; i < p->indent; i++) ct_str_append(p->out, "  ");
}

int ct__print_new_name(ct_printer *p)
{
    return p->next_name++;
}

void ct__print_bind(ct_printer *p, const ct_tensor *tensor, int name)
{
    CT_ASSERT(tensor->id < p->num_names);
    p->names[tensor->id] = name;
}

void ct__print_alias(ct_printer *p, const ct_tensor *tensor, const ct_tensor *of)
{
    CT_ASSERT(p->names[of->id] >= 0);
    ct__print_bind(p, tensor, p->names[of->id]);
}

void ct__print_value(ct_printer *p, const ct_tensor *tensor)
{
    if (tensor->id >= p->num_names || p->names[tensor->id] < 0)
        CT_BUG("%s, made at %s, is used before it is defined", ct_tensor_describe(tensor),
               tensor->node ? tensor->node->loc : "a region's argument");
    ct__print(p, "%%%d", p->names[tensor->id]);
}

void ct__print_type(ct_printer *p, const ct_tensor *tensor)
{
    ct_str_append(p->out, "tensor<");
    for (int i = 0; i < tensor->rank; i++) ct__print(p, "%lldx", (long long)tensor->axes[i].size);
    ct__print(p, "%s>", ct_dtype_mlir(tensor->dtype));
}

void ct__print_types(ct_printer *p, ct_tensor *const *tensors, int count)
{
    for (int i = 0; i < count; i++) {
        if (i) ct_str_append(p->out, ", ");
        ct__print_type(p, tensors[i]);
    }
}

void ct__print_results(ct_printer *p, const ct_node *node)
{
    for (int i = 0; i < node->num_results; i++) {
        int name = ct__print_new_name(p);
        ct__print_bind(p, node->results[i], name);
        ct__print(p, "%s%%%d", i ? ", " : "", name);
    }
    if (node->num_results) ct_str_append(p->out, " = ");
}

void ct__print_operands(ct_printer *p, ct_tensor *const *operands, int count)
{
    ct_str_append_char(p->out, '(');
    for (int i = 0; i < count; i++) {
        if (i) ct_str_append(p->out, ", ");
        ct__print_value(p, operands[i]);
    }
    ct_str_append_char(p->out, ')');
}

static void print_escaped(ct_printer *p, const char *text)
{
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') ct_str_append_char(p->out, '\\');
        ct_str_append_char(p->out, *text);
    }
}

void ct__print_loc(ct_printer *p, const ct_node *node)
{
    const char *colon = strrchr(node->loc, ':');
    const char *file = node->loc;
    if (!strncmp(file, "src/", 4)) file += 4;
    ct_str_append(p->out, " loc(");
    if (node->scope[0]) {
        ct_str_append_char(p->out, '"');
        print_escaped(p, node->scope);
        ct_str_append(p->out, "\"(");
    }
    ct_str_append_char(p->out, '"');
    ct_str_append_n(p->out, file, (size_t)(colon - file));
    ct__print(p, "\":%s:0)%s", colon + 1, node->scope[0] ? ")" : "");
}

void ct__print_signature(ct_printer *p, const ct_node *node)
{
    ct_str_append(p->out, " : (");
    ct__print_types(p, node->operands, node->num_operands);
    ct_str_append(p->out, ") -> ");
    if (node->num_results != 1) ct_str_append_char(p->out, '(');
    ct__print_types(p, node->results, node->num_results);
    if (node->num_results != 1) ct_str_append_char(p->out, ')');
    ct__print_loc(p, node);
}

void ct__print_dims(ct_printer *p, const char *name, const int64_t *values, int count)
{
    ct__print(p, "%s = array<i64", name);
    for (int i = 0; i < count; i++) ct__print(p, "%s%lld", i ? ", " : ": ", (long long)values[i]);
    ct_str_append_char(p->out, '>');
}

void ct__print_constant_value(ct_printer *p, ct_dtype dtype, const void *element)
{
    ct_array array = {.dtype = dtype, .data = (void *)(uintptr_t)element};
    if (dtype == CT_DTYPE_BOOL) {
        ct_str_append(p->out, ct_array_get(&array, 0) != 0 ? "true" : "false");
    } else if (dtype == CT_DTYPE_S64) {
        ct__print(p, "%lld", (long long)*(const int64_t *)element);
    } else if (!ct_dtype_is_float(dtype)) {
        ct__print(p, "%lld", (long long)ct_array_get(&array, 0));
    } else {
        double value = ct_array_get(&array, 0);
        if (isfinite(value)) { /* 17 digits read back exactly in every type */
            ct__print(p, "%.*e", dtype == CT_DTYPE_F64 ? 16 : 8, value);
        } else { /* MLIR wants the bits of what is not a number */
            uint64_t bits = 0;
            memcpy(&bits, element, ct_dtype_bytes(dtype));
            ct__print(p, "0x%0*llX", (int)ct_dtype_bytes(dtype) * 2, (unsigned long long)bits);
        }
    }
}

static void print_node(ct_printer *p, const ct_node *node)
{
    if (node->op->print) {
        node->op->print(p, node);
        return;
    }
    ct__print_line(p);
    ct__print_results(p, node);
    ct__print(p, "\"%s\"", node->op->name);
    ct__print_operands(p, node->operands, node->num_operands);
    if (node->op->print_attrs) {
        ct_str_append(p->out, " <{");
        node->op->print_attrs(p, node);
        ct_str_append(p->out, "}>");
    }
    ct__print_signature(p, node);
}

static bool node_is_live(const ct_node *node, const bool *live)
{
    if (node->op->side_effect) return true;
    for (int i = 0; i < node->num_results; i++)
        if (live[node->results[i]->id]) return true;
    return false;
}

void ct__print_region_nodes(ct_printer *p, const ct_region *region)
{
    for (const ct_node *node = region->first; node; node = node->next)
        if (node_is_live(node, p->live)) print_node(p, node);
}

static void mark_live(const ct_region *region, bool *live)
{
    for (int i = 0; i < region->num_results; i++) live[region->results[i]->id] = true;
    for (const ct_node *node = region->last; node; node = node->previous) {
        if (!node_is_live(node, live)) continue;
        for (int i = 0; i < node->num_operands; i++) live[node->operands[i]->id] = true;
        for (int i = 0; i < node->num_regions; i++) mark_live(node->regions[i], live);
        ct_function *function = ct__node_function(node);
        if (!function || function->live) continue;
        function->live = true;
        mark_live(function->region, live);
    }
}

void ct__graph_mark_live(ct_graph *graph, bool *live)
{
    for (ct_function *function = graph->functions; function; function = function->next) function->live = false;
    mark_live(graph->main, live);
}

static void print_port_attributes(ct_printer *p, const ct_graph_port *port)
{
    const char *separator = " {";
    if (port->sharding) {
        ct__print(p, "%ssdy.sharding = #sdy.sharding", separator);
        ct__print_placement(p, port->sharding, port->tensor->rank);
        separator = ", ";
    }
    if (port->donated_to >= 0) {
        ct__print(p, "%stf.aliasing_output = %d : i32", separator, port->donated_to);
        separator = ", ";
    }
    if (port->on_host) {
        ct__print(p, "%smhlo.memory_kind = \"pinned_host\"", separator);
        separator = ", ";
    }
    if (*separator == ',') ct_str_append_char(p->out, '}');
}

/* From the end of the arguments on; outputs (may be NULL) have the results' attributes. */
static void print_function_body(ct_printer *p, const ct_region *region, const ct_graph_port *outputs)
{
    ct_str_append(p->out, ") -> (");
    for (int i = 0; i < region->num_results; i++) {
        if (i) ct_str_append(p->out, ", ");
        ct__print_type(p, region->results[i]);
        if (outputs) print_port_attributes(p, &outputs[i]);
    }
    ct_str_append(p->out, ") {");
    p->indent = 2;
    ct__print_region_nodes(p, region);
    ct_str_append(p->out, "\n    \"func.return\"");
    ct__print_operands(p, region->results, region->num_results);
    ct_str_append(p->out, " : (");
    ct__print_types(p, region->results, region->num_results);
    ct_str_append(p->out, ") -> ()\n  }");
}

static void print_main(ct_printer *p, const ct_graph *graph)
{
    ct_str_append(p->out, "\n  func.func public @main(");
    for (int i = 0; i < graph->num_inputs; i++) {
        const ct_graph_port *input = &graph->inputs[i];
        int name = ct__print_new_name(p);
        ct__print_bind(p, input->tensor, name);
        ct__print(p, "%s%%%d: ", i ? ", " : "", name);
        ct__print_type(p, input->tensor);
        print_port_attributes(p, input);
        ct_str_append(p->out, " loc(\"");
        print_escaped(p, input->name);
        ct_str_append(p->out, "\")");
    }
    print_function_body(p, graph->main, graph->outputs);
}

static void print_function(ct_printer *p, const ct_function *function)
{
    const ct_region *region = function->region;
    ct__print(p, "\n  func.func private @%s(", function->name);
    for (int i = 0; i < region->num_args; i++) {
        int name = ct__print_new_name(p);
        ct__print_bind(p, region->args[i], name);
        ct__print(p, "%s%%%d: ", i ? ", " : "", name);
        ct__print_type(p, region->args[i]);
    }
    print_function_body(p, region, NULL);
}

ct_status *ct_graph_print(ct_graph *graph, ct_str *out_text)
{
    CT_TRY(ct_graph_check(graph));
    if (!out_text->data) ct_str_init(out_text);
    int num_tensors = graph->num_tensors;
    bool *live = ct_alloc_zeroed((size_t)num_tensors, sizeof(*live));
    ct_printer printer = {.out = out_text, .graph = graph, .live = live, .num_names = num_tensors};
    printer.names = ct_alloc((size_t)num_tensors * sizeof(int));
    for (int i = 0; i < num_tensors; i++) printer.names[i] = -1;
    ct__graph_mark_live(graph, live);
    graph->num_channels = 0;

    ct__print(&printer, "module @%s {", graph->name);
    if (graph->num_mesh_axes) {
        ct_str_append(out_text, "\n  sdy.mesh @mesh = <[");
        for (int i = 0; i < graph->num_mesh_axes; i++)
            ct__print(&printer, "%s\"%s\"=%lld", i ? ", " : "", graph->mesh[i].name, (long long)graph->mesh[i].size);
        ct_str_append(out_text, "]>");
    }
    for (const ct_function *function = graph->functions; function; function = function->next)
        if (function->live) print_function(&printer, function);
    print_main(&printer, graph);
    ct_str_append(out_text, "\n}\n");
    free(live);
    free(printer.names);
    return NULL;
}
