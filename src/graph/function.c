/* func.func private, func.call and stablehlo.composite. */
#include "graph/function.h"

#include <ctype.h>
#include <string.h>

#include "graph/call.h"

static ct_function *find_function(const ct_graph *graph, const char *name)
{
    for (ct_function *function = graph->functions; function; function = function->next)
        if (!strcmp(function->name, name)) return function;
    return NULL;
}

ct_function *ct__function_of_region(ct_graph *graph, const char *name, ct_region *region)
{
    char *symbol = ct_arena_strdup(&graph->arena, name);
    for (char *c = symbol; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("_.$-", *c)) *c = '_';
    const char *unique = symbol;
    for (int i = 1; find_function(graph, unique) || !strcmp(unique, "main"); i++)
        unique = ct_arena_printf(&graph->arena, "%s.%d", symbol, i);
    ct_function *function = CT_ARENA_NEW(&graph->arena, ct_function);
    function->name = unique;
    function->region = region;
    ct_function **last = &graph->functions; /* in order of making */
    while (*last) last = &(*last)->next;
    *last = function;
    graph->num_functions++;
    return function;
}

bool ct__region_is_isolated(const ct_region *region, const char *loc, const char *op)
{
    const ct_tensor *outer = NULL;
    for (const ct_node *node = region->first; node; node = node->next)
        for (int i = 0; i < node->num_operands && !outer; i++) /* captures of inner regions are operands as well */
            if (!ct__region_contains(region, node->operands[i])) outer = node->operands[i];
    for (int i = 0; i < region->num_results && !outer; i++)
        if (!ct__region_contains(region, region->results[i])) outer = region->results[i];
    if (!outer) return true;
    ct__fail(region->graph, loc, op, "the body uses %s, made outside at %s: pass it as an argument",
             ct_tensor_describe(outer), outer->node ? outer->node->loc : "the inputs");
    return false;
}

ct_function *ct__function_new(const char *loc, ct_graph *graph, const char *name, int num_args,
                              ct_tensor *const *args_like, int num_results, ct_function_body *body, void *context)
{
    ct_region *region = ct__region_new(graph, NULL);
    ct_function *function = ct__function_of_region(graph, name, region);
    if (graph->error || (num_args && ct__any_poison(num_args, args_like))) return function;
    for (int i = 0; i < num_args; i++)
        ct__region_add_arg(region, args_like[i]->dtype, args_like[i]->rank, args_like[i]->axes);
    ct_tensor **results = CT_ARENA_ARRAY(&graph->arena, ct_tensor *, num_results + 1);
    ct_group *checkpoint = graph->checkpoint, *custom = graph->custom;
    graph->checkpoint = NULL;
    graph->custom = NULL;
    ct_insertion saved = ct__region_enter(region);
    body(graph, context, region->args, results);
    ct__region_leave(graph, saved);
    graph->checkpoint = checkpoint;
    graph->custom = custom;
    if (graph->error || (num_results && ct__any_poison(num_results, results))) return function;
    for (int i = 0; i < num_results; i++) ct__region_add_result(region, results[i]);
    ct__region_is_isolated(region, loc, "function_new");
    return function;
}

int ct_function_num_args(const ct_function *function)
{
    return function->region->num_args;
}

int ct_function_num_results(const ct_function *function)
{
    return function->region->num_results;
}

const char *ct_function_name(const ct_function *function)
{
    return function->name;
}

/* ---- calls ---- */

ct_function *ct__node_function(const ct_node *node)
{
    if (node->op == &ct__op_call) return node->attrs;
    if (node->op == &ct__op_composite) return ((const ct_composite_attrs *)node->attrs)->function;
    return NULL;
}

static void print_call_attrs(ct_printer *p, const ct_node *node)
{
    ct__print(p, "callee = @%s", ct__node_function(node)->name);
}

static void print_composite_attrs(ct_printer *p, const ct_node *node)
{
    const ct_composite_attrs *attrs = node->attrs;
    ct__print(p, "name = \"%s\", composite_attributes = {%s}, decomposition = @%s", attrs->name, attrs->attributes,
              attrs->function->name);
}

const ct_op ct__op_call = {.name = "func.call", .print_attrs = print_call_attrs, .structured = true};
const ct_op ct__op_composite = {
    .name = "stablehlo.composite", .print_attrs = print_composite_attrs, .structured = true};

static bool args_fit(const char *loc, const char *op, const ct_function *function, ct_tensor *const *args)
{
    const ct_region *region = function->region;
    for (int i = 0; i < region->num_args; i++)
        if (!ct__same_type(args[i], region->args[i])) {
            ct__fail(region->graph, loc, op, "argument %d of %s must be %s, found %s", i, function->name,
                     ct_tensor_describe(region->args[i]), ct_tensor_describe(args[i]));
            return false;
        }
    return true;
}

static ct_node *refer(const char *loc, const ct_op *op, void *attrs, const ct_function *function,
                      ct_tensor *const *args)
{
    const ct_region *region = function->region;
    ct_node *node = ct__node_new(region->graph, op, loc, region->num_args, args);
    node->attrs = attrs;
    for (int i = 0; i < region->num_results; i++) ct__result_like(node, region->results[i]);
    return node;
}

ct_node *ct__call_node(const char *loc, ct_function *function, ct_tensor *const *args)
{
    return refer(loc, &ct__op_call, function, function, args);
}

/* What call and composite share; attrs NULL is a call. */
static void call(const char *loc, const char *op, ct_function *function, const ct_composite_attrs *attrs,
                 ct_tensor *const *args, ct_tensor **out_results)
{
    const ct_region *region = function->region;
    ct_graph *graph = region->graph;
    if (graph->error || (region->num_args && ct__any_poison(region->num_args, args)) ||
        !args_fit(loc, op, function, args)) {
        for (int i = 0; i < region->num_results; i++) out_results[i] = graph->poison;
        return;
    }
    ct_node *node =
        attrs ? refer(loc, &ct__op_composite, ct_arena_dup(&graph->arena, attrs, sizeof(*attrs)), function, args)
              : ct__call_node(loc, function, args);
    for (int i = 0; i < region->num_results; i++) out_results[i] = node->results[i];
}

void ct__call(const char *loc, ct_function *function, ct_tensor *const *args, ct_tensor **out_results)
{
    call(loc, "call", function, NULL, args, out_results);
}

void ct__composite(const char *loc, const char *name, const char *attributes, ct_function *decomposition,
                   ct_tensor *const *args, ct_tensor **out_results)
{
    ct_arena *arena = &decomposition->region->graph->arena;
    ct_composite_attrs attrs = {.function = decomposition,
                                .name = ct_arena_strdup(arena, name),
                                .attributes = ct_arena_strdup(arena, attributes)};
    call(loc, "composite", decomposition, &attrs, args, out_results);
}
