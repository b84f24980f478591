/* stablehlo.custom_call. */
#include "graph/custom_call.h"

#include <string.h>

#include "graph/factor.h"

typedef struct custom_call_attrs {
    const char *target;
    ct_custom_call_opts opts;
} custom_call_attrs;

/* A string literal of MLIR: quotes, backslashes and control characters as \HH. */
static void print_string(ct_printer *p, const char *text)
{
    ct_str_append_char(p->out, '"');
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == '"' || *c == '\\' || *c < 32)
            ct__print(p, "\\%02X", *c);
        else
            ct_str_append_char(p->out, (char)*c);
    }
    ct_str_append_char(p->out, '"');
}

static void print_attribute(ct_printer *p, const ct_attribute *attribute)
{
    ct__print(p, "%s = ", attribute->name);
    switch (attribute->kind) {
    case CT_ATTRIBUTE_INT: ct__print(p, "%lld : i64", (long long)attribute->integer); break;
    case CT_ATTRIBUTE_FLOAT: ct__print(p, "%.8e : f32", attribute->number); break;
    case CT_ATTRIBUTE_DOUBLE: ct__print(p, "%.16e : f64", attribute->number); break;
    case CT_ATTRIBUTE_BOOL: ct_str_append(p->out, attribute->integer ? "true" : "false"); break;
    case CT_ATTRIBUTE_STRING: print_string(p, attribute->string); break;
    case CT_ATTRIBUTE_RAW: ct_str_append(p->out, attribute->string); break;
    case CT_ATTRIBUTE_INTS:
        ct_str_append(p->out, "array<i64");
        for (int64_t i = 0; i < attribute->integer; i++)
            ct__print(p, "%s%lld", i ? ", " : ": ", (long long)attribute->integers[i]);
        ct_str_append_char(p->out, '>');
        break;
    }
}

static void print_dictionary(ct_printer *p, const ct_attribute *attributes, int count)
{
    ct_str_append_char(p->out, '{');
    for (int i = 0; i < count; i++) {
        if (i) ct_str_append(p->out, ", ");
        print_attribute(p, &attributes[i]);
    }
    ct_str_append_char(p->out, '}');
}

/* Layouts from minor to major: dense<[2, 1, 0]> : tensor<3xindex> */
static void print_layouts(ct_printer *p, const char *name, ct_tensor *const *tensors, int count)
{
    ct__print(p, ", %s = [", name);
    for (int i = 0; i < count; i++) {
        ct__print(p, "%sdense<[", i ? ", " : "");
        for (int j = tensors[i]->rank - 1; j >= 0; j--) ct__print(p, "%d%s", j, j ? ", " : "");
        ct__print(p, "]> : tensor<%dxindex>", tensors[i]->rank);
    }
    ct_str_append_char(p->out, ']');
}

static void print_custom_call(ct_printer *p, const ct_node *node)
{
    const custom_call_attrs *attrs = node->attrs;
    const ct_custom_call_opts *opts = &attrs->opts;
    ct__print_line(p);
    ct__print_results(p, node);
    ct_str_append(p->out, "\"stablehlo.custom_call\"");
    ct__print_operands(p, node->operands, node->num_operands);
    ct_str_append(p->out, " <{call_target_name = ");
    print_string(p, attrs->target);
    ct__print(p, ", api_version = %d : i32, has_side_effect = %s, backend_config = ", opts->api_version,
              opts->has_side_effect ? "true" : "false");
    if (opts->api_version == 4)
        print_dictionary(p, opts->attributes, opts->num_attributes);
    else
        print_string(p, opts->config);
    if (opts->row_major) {
        print_layouts(p, "operand_layouts", node->operands, node->num_operands);
        print_layouts(p, "result_layouts", node->results, node->num_results);
    }
    ct_str_append(p->out, "}>");
    if (opts->num_frontend_attributes) {
        ct_str_append(p->out, " {mhlo.frontend_attributes = ");
        print_dictionary(p, opts->frontend_attributes, opts->num_frontend_attributes);
        ct_str_append_char(p->out, '}');
    }
    ct__print_signature(p, node);
}

static const ct_op op_custom_call = {
    .name = "stablehlo.custom_call", .print = print_custom_call, .factors = ct__factors_whole};
static const ct_op op_custom_call_effect = {
    .name = "stablehlo.custom_call", .print = print_custom_call, .side_effect = true, .factors = ct__factors_whole};

static const ct_attribute *copy_attributes(ct_graph *graph, const ct_attribute *attributes, int count)
{
    ct_attribute *copy = CT_ARENA_ARRAY(&graph->arena, ct_attribute, count + 1);
    for (int i = 0; i < count; i++) {
        copy[i] = attributes[i];
        copy[i].name = ct__intern_z(graph, attributes[i].name);
        if (attributes[i].string) copy[i].string = ct_arena_strdup(&graph->arena, attributes[i].string);
        if (attributes[i].integers)
            copy[i].integers =
                ct_arena_dup(&graph->arena, attributes[i].integers, (size_t)attributes[i].integer * sizeof(int64_t));
    }
    return copy;
}

void ct__custom_call(const char *loc, ct_graph *graph, const char *target, int num_operands, ct_tensor *const *operands,
                     int num_results, ct_tensor *const *results_like, const ct_custom_call_opts *opts,
                     ct_tensor **out_results)
{
    bool poison = graph->error || (num_operands && ct__any_poison(num_operands, operands)) ||
                  (num_results && ct__any_poison(num_results, results_like));
    results_like = ct_arena_dup(&graph->arena, results_like, (size_t)num_results * sizeof(*results_like));
    operands = ct_arena_dup(&graph->arena, operands, (size_t)num_operands * sizeof(*operands));
    for (int i = 0; i < num_results; i++) out_results[i] = graph->poison; /* may be where operands came from */
    if (poison) return;
    custom_call_attrs *attrs = CT_ARENA_NEW(&graph->arena, custom_call_attrs);
    attrs->target = ct_arena_strdup(&graph->arena, target);
    if (opts) attrs->opts = *opts;
    ct_custom_call_opts *kept = &attrs->opts;
    if (!kept->api_version) kept->api_version = 4;
    if (kept->api_version == 3 || kept->api_version < 1 || kept->api_version > 4 ||
        (kept->api_version == 4 ? kept->config != NULL : kept->num_attributes > 0)) {
        ct__fail(graph, loc, "custom_call",
                 "%s has api_version %d: 4 takes attributes and no config, 1 and 2 a config and no attributes", target,
                 kept->api_version);
        return;
    }
    kept->config = ct_arena_strdup(&graph->arena, kept->config ? kept->config : "");
    kept->attributes = copy_attributes(graph, kept->attributes, kept->num_attributes);
    kept->frontend_attributes = copy_attributes(graph, kept->frontend_attributes, kept->num_frontend_attributes);
    const ct_op *op = kept->has_side_effect ? &op_custom_call_effect : &op_custom_call;
    ct_node *node = ct__node_new(graph, op, loc, num_operands, operands);
    node->attrs = attrs;
    for (int i = 0; i < num_results; i++) out_results[i] = ct__result_like(node, results_like[i]);
}
