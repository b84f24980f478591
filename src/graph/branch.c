/* stablehlo.while as such, and cond, printed as stablehlo.if. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/group.h"
#include "graph/scan.h"

/* ---- while ---- */

static void print_block(ct_printer *p, const ct_node *node, const ct_region *region, int *inside)
{
    ct_str_append(p->out, "^bb0(");
    for (int i = 0; i < node->num_operands; i++) {
        inside[i] = ct__print_new_name(p);
        ct__print(p, "%s%%%d: ", i ? ", " : "", inside[i]);
        ct__print_type(p, node->operands[i]);
        if (i < region->num_args) ct__print_bind(p, region->args[i], inside[i]);
    }
    ct_str_append(p->out, "):");
    for (int i = region->num_args; i < node->num_operands; i++) ct__print_bind(p, node->operands[i], inside[i]);
}

static void print_while(ct_printer *p, const ct_node *node)
{
    const ct_region *condition = node->regions[0], *body = node->regions[1];
    int count = node->num_operands;
    int *outside = ct_alloc((size_t)count * sizeof(int)), *inside = ct_alloc((size_t)count * sizeof(int));
    for (int i = 0; i < count; i++) outside[i] = p->names[node->operands[i]->id];
    ct__print_line(p);
    int first = p->next_name;
    p->next_name += count;
    for (int i = 0; i < count; i++) ct__print(p, "%s%%%d", i ? ", " : "", first + i);
    ct_str_append(p->out, " = \"stablehlo.while\"");
    ct__print_operands(p, node->operands, count);
    ct_str_append(p->out, " ({");
    p->indent++;
    ct__print_line(p);
    print_block(p, node, condition, inside);
    ct__print_region_nodes(p, condition);
    ct__print_line(p);
    ct_str_append(p->out, "\"stablehlo.return\"");
    ct__print_operands(p, condition->results, 1);
    ct_str_append(p->out, " : (tensor<i1>) -> ()");
    p->indent--;
    ct__print_line(p);
    ct_str_append(p->out, "}, {");
    p->indent++;
    ct__print_line(p);
    print_block(p, node, body, inside);
    ct__print_region_nodes(p, body);
    ct__print_line(p);
    ct_str_append(p->out, "\"stablehlo.return\"(");
    for (int i = 0; i < count; i++) {
        if (i) ct_str_append(p->out, ", ");
        if (i < body->num_results)
            ct__print_value(p, body->results[i]);
        else
            ct__print(p, "%%%d", inside[i]);
    }
    ct_str_append(p->out, ") : (");
    ct__print_types(p, node->operands, count);
    ct_str_append(p->out, ") -> ()");
    p->indent--;
    ct__print_line(p);
    ct_str_append(p->out, "}) : (");
    ct__print_types(p, node->operands, count);
    ct_str_append(p->out, ") -> (");
    ct__print_types(p, node->operands, count);
    ct_str_append_char(p->out, ')');
    ct__print_loc(p, node);
    for (int i = 0; i < count; i++) ct__print_bind(p, node->operands[i], outside[i]);
    for (int i = 0; i < node->num_results; i++) ct__print_bind(p, node->results[i], first + i);
    free(outside);
    free(inside);
}

static const ct_op op_while = {.name = "ctitan.while", .print = print_while};

static ct_region *loop_region(ct_graph *graph, int num_carries, ct_tensor *const *carries)
{
    ct_region *region = ct__region_new(graph, graph->region);
    for (int i = 0; i < num_carries; i++)
        ct__region_add_arg(region, carries[i]->dtype, carries[i]->rank, carries[i]->axes);
    return region;
}

void ct__while(const char *loc, ct_graph *graph, int num_carries, ct_tensor *const *carries,
               ct_while_condition *condition, ct_while_body *body, void *context, ct_tensor **out_carries)
{
    CT_ASSERT(num_carries > 0);
    carries = ct_arena_dup(&graph->arena, carries, (size_t)num_carries * sizeof(*carries)); /* may be out_carries */
    for (int i = 0; i < num_carries; i++) out_carries[i] = graph->poison;
    if (ct__any_poison(num_carries, carries)) return;
    ct_group *checkpoint = graph->checkpoint, *custom = graph->custom;
    graph->checkpoint = graph->custom = NULL;

    ct_region *test = loop_region(graph, num_carries, carries);
    ct_insertion saved = ct__region_enter(test);
    ct_tensor *more = condition(graph, context, test->args);
    ct__region_leave(graph, saved);
    ct_region *turn = loop_region(graph, num_carries, carries);
    saved = ct__region_enter(turn);
    ct_tensor **next = CT_ARENA_ARRAY(&graph->arena, ct_tensor *, num_carries);
    body(graph, context, turn->args, next);
    ct__region_leave(graph, saved);
    graph->checkpoint = checkpoint;
    graph->custom = custom;
    if (ct__any_poison(1, &more) || ct__any_poison(num_carries, next)) return;

    if (more->dtype != CT_DTYPE_BOOL || more->rank != 0) { /* (C1) */
        ct__fail(graph, loc, "while", "the condition must be a bool without axes, found %s", ct_tensor_describe(more));
        return;
    }
    for (int i = 0; i < num_carries; i++)
        if (!ct__same_type(next[i], carries[i])) { /* (C2) */
            ct__fail(graph, loc, "while", "carry %d begins as %s but the body returns %s", i,
                     ct_tensor_describe(carries[i]), ct_tensor_describe(next[i]));
            return;
        }
    ct__region_add_result(test, more);
    for (int i = 0; i < num_carries; i++) ct__region_add_result(turn, next[i]);
    ct_node *node = ct__node_new(graph, &op_while, loc, num_carries, carries);
    ct__node_add_region(node, test);
    ct__node_add_region(node, turn);
    ct__node_capture(node);
    for (int i = 0; i < num_carries; i++) out_carries[i] = ct__result_like(node, carries[i]);
}

/* ---- cond: the branches see outer tensors directly, as stablehlo.if allows ---- */

static void print_branch(ct_printer *p, const ct_region *region)
{
    p->indent++;
    ct__print_region_nodes(p, region);
    ct__print_line(p);
    ct_str_append(p->out, "\"stablehlo.return\"");
    ct__print_operands(p, region->results, region->num_results);
    ct_str_append(p->out, " : (");
    ct__print_types(p, region->results, region->num_results);
    ct_str_append(p->out, ") -> ()");
    p->indent--;
    ct__print_line(p);
}

static void print_cond(ct_printer *p, const ct_node *node)
{
    ct__print_line(p);
    ct__print_results(p, node);
    ct_str_append(p->out, "\"stablehlo.if\"");
    ct__print_operands(p, node->operands, 1);
    ct_str_append(p->out, " ({");
    print_branch(p, node->regions[0]);
    ct_str_append(p->out, "}, {");
    print_branch(p, node->regions[1]);
    ct_str_append(p->out, "}) : (tensor<i1>) -> (");
    ct__print_types(p, node->results, node->num_results);
    ct_str_append_char(p->out, ')');
    ct__print_loc(p, node);
}

const ct_op ct__op_cond = {.name = "ctitan.cond", .print = print_cond, .structured = true};

ct_node *ct__cond_node(ct_graph *graph, const char *loc, ct_tensor *predicate, ct_region *if_true, ct_region *if_false)
{
    ct_node *node = ct__node_new(graph, &ct__op_cond, loc, 1, &predicate);
    ct__node_add_region(node, if_true);
    ct__node_add_region(node, if_false);
    ct__node_capture(node);
    for (int i = 0; i < if_true->num_results; i++) ct__result_like(node, if_true->results[i]);
    return node;
}

void ct__cond(const char *loc, ct_graph *graph, ct_tensor *predicate, ct_branch *if_true, ct_branch *if_false,
              void *context, int num_results, ct_tensor **out_results)
{
    for (int i = 0; i < num_results; i++) out_results[i] = graph->poison;
    if (ct__any_poison(1, &predicate)) return;
    if (predicate->dtype != CT_DTYPE_BOOL || predicate->rank != 0) {
        ct__fail(graph, loc, "cond", "the predicate must be a bool without axes, found %s",
                 ct_tensor_describe(predicate));
        return;
    }
    ct_branch *const builders[2] = {if_true, if_false};
    ct_region *regions[2];
    ct_group *checkpoint = graph->checkpoint, *custom = graph->custom;
    graph->checkpoint = graph->custom = NULL;
    for (int b = 0; b < 2; b++) {
        regions[b] = ct__region_new(graph, graph->region);
        ct_tensor **results = CT_ARENA_ARRAY(&graph->arena, ct_tensor *, num_results + 1);
        ct_insertion saved = ct__region_enter(regions[b]);
        builders[b](graph, context, results);
        ct__region_leave(graph, saved);
        if (num_results && ct__any_poison(num_results, results)) {
            CT_ASSERT(graph->error);
            break;
        }
        for (int i = 0; i < num_results; i++) ct__region_add_result(regions[b], results[i]);
    }
    graph->checkpoint = checkpoint;
    graph->custom = custom;
    if (graph->error) return;
    for (int i = 0; i < num_results; i++)
        if (!ct__same_type(regions[0]->results[i], regions[1]->results[i])) { /* (C2) */
            ct__fail(graph, loc, "cond", "result %d is %s in one branch and %s in the other", i,
                     ct_tensor_describe(regions[0]->results[i]), ct_tensor_describe(regions[1]->results[i]));
            return;
        }
    ct_node *node = ct__cond_node(graph, loc, predicate, regions[0], regions[1]);
    for (int i = 0; i < num_results; i++) out_results[i] = node->results[i];
}
