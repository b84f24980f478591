/* stablehlo.sort. Every sort carries positions as a last payload, which the derivative needs; XLA drops them unused. */
#include "graph/sort.h"

#include "graph/constant.h"
#include "graph/factor.h"
#include "graph/slice.h"

typedef struct sort_attrs {
    int64_t dim;
    bool descending;
} sort_attrs;

static void print_sort(ct_printer *p, const ct_node *node)
{
    const sort_attrs *attrs = node->attrs;
    ct_dtype key = node->operands[0]->dtype;
    ct__print_line(p);
    ct__print_results(p, node);
    ct_str_append(p->out, "\"stablehlo.sort\"");
    ct__print_operands(p, node->operands, node->num_operands);
    ct__print(p, " <{dimension = %lld : i64, is_stable = true}> ({ ^bb0(", (long long)attrs->dim);
    int first = p->next_name;
    for (int i = 0; i < node->num_operands; i++) {
        const char *type = ct_dtype_mlir(node->operands[i]->dtype);
        int a = ct__print_new_name(p), b = ct__print_new_name(p);
        ct__print(p, "%s%%%d: tensor<%s>, %%%d: tensor<%s>", i ? ", " : "", a, type, b, type);
    }
    int before = ct__print_new_name(p);
    ct__print(
        p, "): %%%d = \"stablehlo.compare\"(%%%d, %%%d) <{comparison_direction = #stablehlo<comparison_direction %s>",
        before, first, first + 1, attrs->descending ? "GT" : "LT");
    if (ct_dtype_is_float(key)) ct_str_append(p->out, ", compare_type = #stablehlo<comparison_type TOTALORDER>");
    ct__print(p, "}> : (tensor<%s>, tensor<%s>) -> tensor<i1> ", ct_dtype_mlir(key), ct_dtype_mlir(key));
    ct__print(p, "\"stablehlo.return\"(%%%d) : (tensor<i1>) -> () })", before);
    ct__print_signature(p, node);
}

static void vjp_sort(ct_node *node, ct_tensor *const *cotangents, ct_tensor **gradients)
{
    const sort_attrs *attrs = node->attrs;
    int last = node->num_operands - 1, count = 1;
    ct_graph *graph = node->graph;
    ct_tensor **tensors = CT_ARENA_ARRAY(&graph->arena, ct_tensor *, node->num_operands);
    ct_tensor **sorted = CT_ARENA_ARRAY(&graph->arena, ct_tensor *, node->num_operands);
    tensors[0] = node->results[last]; /* where each element came from: ascending, they are back */
    for (int i = 0; i < last; i++)
        if (cotangents[i]) tensors[count++] = cotangents[i];
    ct_sort_with(count, tensors, node->operands[0]->axes[attrs->dim].name, false, sorted);
    count = 1;
    for (int i = 0; i < last; i++)
        if (cotangents[i]) gradients[i] = sorted[count++];
}

static void rule_sort(const ct_node *node, ct_factors *factors)
{
    ct__factors_beside(node, (int)((const sort_attrs *)node->attrs)->dim, factors);
}

static const ct_op op_sort = {.name = "stablehlo.sort", .print = print_sort, .vjp = vjp_sort, .factors = rule_sort};

/* The node, its last result the positions; NULL: an error was kept. */
static ct_node *sort_node(const char *loc, const char *op, int num_tensors, ct_tensor *const *tensors, const char *axis,
                          bool descending)
{
    if (ct__any_poison(num_tensors, tensors)) return NULL;
    ct_tensor *keys = tensors[0];
    ct_graph *graph = keys->graph;
    int dim = ct__parse_dim(keys, loc, op, axis);
    if (dim < 0) return NULL;
    if (keys->dtype == CT_DTYPE_BOOL) {
        ct__fail(graph, loc, op, "needs numbers, found %s", ct_tensor_describe(keys));
        return NULL;
    }
    for (int i = 1; i < num_tensors; i++) { /* (C2) */
        bool same = tensors[i]->rank == keys->rank;
        for (int j = 0; same && j < keys->rank; j++)
            same = tensors[i]->axes[j].name == keys->axes[j].name && tensors[i]->axes[j].size == keys->axes[j].size;
        if (same) continue;
        ct__fail(graph, loc, op, "keys and payloads must have the same axes, found %s and %s", ct_tensor_describe(keys),
                 ct_tensor_describe(tensors[i]));
        return NULL;
    }
    const char *axes = "";
    for (int i = 0; i < keys->rank; i++)
        axes = ct_arena_printf(&graph->arena, "%s %s=%lld", axes, keys->axes[i].name, (long long)keys->axes[i].size);
    ct_tensor *positions = ct__iota(loc, graph, CT_DTYPE_S32, axes, keys->axes[dim].name);
    ct_node *node = ct__node_new(graph, &op_sort, loc, num_tensors, tensors);
    ct__node_add_operand(node, positions);
    node->attrs = ct_arena_dup(&graph->arena, &(sort_attrs){.dim = dim, .descending = descending}, sizeof(sort_attrs));
    for (int i = 0; i <= num_tensors; i++) ct__result_like(node, node->operands[i]);
    return node;
}

ct_tensor *ct__sort(const char *loc, ct_tensor *x, const char *axis, bool descending)
{
    ct_node *node = sort_node(loc, "sort", 1, &x, axis, descending);
    return node ? node->results[0] : x->graph->poison;
}

ct_tensor *ct__argsort(const char *loc, ct_tensor *x, const char *axis, bool descending)
{
    ct_node *node = sort_node(loc, "argsort", 1, &x, axis, descending);
    return node ? node->results[1] : x->graph->poison;
}

void ct__sort_with(const char *loc, int num_tensors, ct_tensor *const *tensors, const char *axis, bool descending,
                   ct_tensor **out_tensors)
{
    ct_graph *graph = ct__common_graph(num_tensors, tensors);
    ct_node *node = sort_node(loc, "sort_with", num_tensors, tensors, axis, descending);
    for (int i = 0; i < num_tensors; i++) out_tensors[i] = node ? node->results[i] : graph->poison;
}

ct_tensor *ct__top_k(const char *loc, ct_tensor *x, const char *axis, int64_t k, ct_tensor **out_indices)
{
    if (out_indices) *out_indices = x->graph->poison;
    ct_node *node = sort_node(loc, "top_k", 1, &x, axis, true);
    if (!node) return x->graph->poison;
    int64_t size = ct_tensor_axis_size(x, axis);
    if (k < 0 || k > size)
        return ct__fail(x->graph, loc, "top_k", "k = %lld is not within axis %s of %s", (long long)k, axis,
                        ct_tensor_describe(x));
    if (out_indices) *out_indices = ct__slice(loc, node->results[1], axis, 0, k);
    return ct__slice(loc, node->results[0], axis, 0, k);
}
