/* broadcast_in_dim, reshape (split, merge, squeeze), transpose, and rename, which is no op at all in StableHLO. */
#include "graph/shape.h"

#include <string.h>

#include "graph/factor.h"
#include "graph/reduce.h"

typedef struct dims_attrs {
    int count;
    int64_t dims[CT_MAX_RANK];
} dims_attrs;

static ct_tensor *node_with_dims(const char *loc, const ct_op *op, ct_tensor *x, const dims_attrs *attrs, int rank,
                                 const ct_axis *axes)
{
    ct_node *node = ct__node_new(x->graph, op, loc, 1, &x);
    if (attrs) node->attrs = ct_arena_dup(&x->graph->arena, attrs, sizeof(*attrs));
    return ct__result(node, x->dtype, rank, axes);
}

/* ---- broadcast ---- */

static void print_broadcast_attrs(ct_printer *p, const ct_node *node)
{
    const dims_attrs *attrs = node->attrs;
    ct__print_dims(p, "broadcast_dimensions", attrs->dims, attrs->count);
}

static void vjp_broadcast(ct_node *node, ct_tensor *const *cotangents, ct_tensor **gradients)
{
    ct_tensor *x = node->operands[0], *result = node->results[0];
    ct_axis added[CT_MAX_RANK];
    int num_added = 0;
    for (int i = 0; i < result->rank; i++)
        if (ct__find_axis(x->axes, x->rank, result->axes[i].name) < 0) added[num_added++] = result->axes[i];
    ct_tensor *summed = ct_sum(cotangents[0], ct__axes_text(x->graph, added, num_added));
    gradients[0] = ct_transpose(summed, ct__axes_text(x->graph, x->axes, x->rank));
}

/* dims[i] is the result's dim of x's dim i; other dims of the result can be made at any part. */
static void rule_broadcast(const ct_node *node, ct_factors *factors)
{
    const dims_attrs *attrs = node->attrs;
    for (int dim = 0; dim < node->results[0]->rank; dim++) {
        int factor = ct__factor_add(factors, CT_FACTOR_PARALLEL, node->results[0]->axes[dim].size);
        ct__factor_result(factors, 0, dim, factor);
        for (int i = 0; i < attrs->count; i++)
            if (attrs->dims[i] == dim) ct__factor_operand(factors, 0, i, factor);
    }
    ct__factors_linear(node, CT_LINEAR_JOINTLY, 1, factors);
    factors->repeatable = true;
}

static const ct_op op_broadcast = {.name = "stablehlo.broadcast_in_dim",
                                   .print_attrs = print_broadcast_attrs,
                                   .vjp = vjp_broadcast,
                                   .cheap = true,
                                   .factors = rule_broadcast};

ct_tensor *ct__broadcast_to(const char *loc, ct_tensor *x, int rank, const ct_axis *axes)
{
    if (ct__any_poison(1, &x)) return x->graph->poison;
    dims_attrs attrs = {.count = x->rank};
    bool same = rank == x->rank;
    for (int i = 0; i < x->rank; i++) {
        int dim = ct__find_axis(axes, rank, x->axes[i].name);
        if (dim < 0 || axes[dim].size != x->axes[i].size) /* (C5), without size-1 stretching */
            return ct__fail(x->graph, loc, "broadcast", "%s does not fit the axes \"%s\"", ct_tensor_describe(x),
                            ct__axes_text(x->graph, axes, rank));
        attrs.dims[i] = dim;
        if (dim != i) same = false;
    }
    if (same) return x;
    return node_with_dims(loc, &op_broadcast, x, &attrs, rank, axes);
}

ct_tensor *ct__broadcast_like(const char *loc, ct_tensor *x, const ct_tensor *like)
{
    if (ct_tensor_is_poison(like)) return x->graph->poison;
    return ct__broadcast_to(loc, x, like->rank, like->axes);
}

bool ct__broadcast_together(const char *loc, const char *op, int num_operands, ct_tensor **operands)
{
    ct_tensor *widest = operands[0];
    for (int i = 1; i < num_operands; i++)
        if (operands[i]->rank > widest->rank) widest = operands[i];
    for (int i = 0; i < num_operands; i++) {
        ct_tensor *x = operands[i];
        for (int j = 0; j < x->rank; j++) {
            int dim = ct__find_axis(widest->axes, widest->rank, x->axes[j].name);
            if (dim < 0) {
                ct__fail(x->graph, loc, op, "neither operand has all axes: %s and %s", ct_tensor_describe(x),
                         ct_tensor_describe(widest));
                return false;
            }
            if (widest->axes[dim].size != x->axes[j].size) {
                ct__fail(x->graph, loc, op, "axis %s has sizes %lld and %lld: %s and %s", x->axes[j].name,
                         (long long)x->axes[j].size, (long long)widest->axes[dim].size, ct_tensor_describe(x),
                         ct_tensor_describe(widest));
                return false;
            }
        }
    }
    for (int i = 0; i < num_operands; i++) operands[i] = ct__broadcast_to(loc, operands[i], widest->rank, widest->axes);
    return true;
}

/* ---- rename ---- */

static void print_rename(ct_printer *p, const ct_node *node)
{
    ct__print_alias(p, node->results[0], node->operands[0]);
}

static void vjp_rename(ct_node *node, ct_tensor *const *cotangents, ct_tensor **gradients);

static void rule_rename(const ct_node *node, ct_factors *factors)
{
    ct__factors_elementwise(node, factors);
    ct__factors_linear(node, CT_LINEAR_JOINTLY, 1, factors);
}

static const ct_op op_rename = {
    .name = "ctitan.rename", .print = print_rename, .vjp = vjp_rename, .cheap = true, .factors = rule_rename};

static ct_tensor *with_axes(const char *loc, ct_tensor *x, const ct_axis *axes)
{
    return node_with_dims(loc, &op_rename, x, NULL, x->rank, axes);
}

static void vjp_rename(ct_node *node, ct_tensor *const *cotangents, ct_tensor **gradients)
{
    gradients[0] = with_axes(CT_LOC, cotangents[0], node->operands[0]->axes);
}

ct_tensor *ct__rename(const char *loc, ct_tensor *x, const char *from, const char *to)
{
    if (ct__any_poison(1, &x)) return x->graph->poison;
    int dim = ct__parse_dim(x, loc, "rename", from);
    if (dim < 0) return x->graph->poison;
    const char *name = ct__intern_z(x->graph, to);
    if (ct__find_axis(x->axes, x->rank, name) >= 0)
        return ct__fail(x->graph, loc, "rename", "cannot call %s of %s %s: the name is taken", from,
                        ct_tensor_describe(x), to);
    ct_axis axes[CT_MAX_RANK];
    memcpy(axes, x->axes, sizeof(axes));
    axes[dim].name = name;
    return with_axes(loc, x, axes);
}

/* ---- reshape ---- */

static void vjp_reshape(ct_node *node, ct_tensor *const *cotangents, ct_tensor **gradients)
{
    gradients[0] = ct__reshape(CT_LOC, cotangents[0], node->operands[0]->rank, node->operands[0]->axes);
}

/* One side of a reshape: its dims [first, stop), which hold as many elements as the other side's. */
typedef struct dim_group {
    const ct_tensor *tensor;
    ct_dim_factors *dims;
    int first, stop;
} dim_group;

static void group_whole(const dim_group *group, ct_factors *factors)
{
    for (int dim = group->first; dim < group->stop; dim++) {
        int factor = ct__factor_add(factors, CT_FACTOR_WHOLE, group->tensor->axes[dim].size);
        if (factor >= 0) group->dims[dim] = (ct_dim_factors){.count = 1, .factors = {(signed char)factor}};
    }
}

/* How many elements the parts [dim, stop) of a side's group hold: where it cuts the row of elements. */
static int64_t elements_from(const dim_group *group, int dim)
{
    int64_t count = 1;
    for (int i = dim; i < group->stop; i++) count *= group->tensor->axes[i].size;
    return count;
}

/* Factors lie between the cuts of both sides, as long as each cut divides the one before:
 *   [heads=8] -> [4 2]: cuts 8 | 2 | 1, factors 4 2;   [4 6] -> [6 4]: cuts 24 | 6, 4 | 1, none. */
static bool group_split(const dim_group sides[2], ct_factors *factors)
{
    int64_t sizes[CT_MAX_FACTORS], cut = elements_from(&sides[0], sides[0].first);
    int count = 0, owner[2][CT_MAX_FACTORS], next[2] = {sides[0].first, sides[1].first};
    while (cut > 1) {
        int64_t below = 1;
        for (int k = 0; k < 2; k++)
            while (sides[k].tensor->axes[next[k]].size == 1) next[k]++;
        for (int k = 0; k < 2; k++) below = CT_MAX(below, elements_from(&sides[k], next[k] + 1));
        if (cut % below) return false;
        sizes[count] = cut / below;
        for (int k = 0; k < 2; k++) {
            owner[k][count] = next[k];
            if (elements_from(&sides[k], next[k] + 1) == below) next[k]++;
        }
        cut = below;
        count++;
    }
    for (int k = 0; k < 2; k++)
        for (int i = CT_MAX_SUBFACTORS; i < count; i++)
            if (owner[k][i] == owner[k][i - CT_MAX_SUBFACTORS]) return false;
    for (int i = 0; i < count; i++) {
        int factor = ct__factor_add(factors, CT_FACTOR_PARALLEL, sizes[i]);
        ct__factor_operand(factors, 0, owner[0][i], factor);
        ct__factor_result(factors, 0, owner[1][i], factor);
    }
    return true;
}

/* Both sides, read from the left, fall into the smallest groups of equal numbers of elements. */
static void rule_reshape(const ct_node *node, ct_factors *factors)
{
    dim_group sides[2] = {{.tensor = node->operands[0], .dims = factors->operands[0]},
                          {.tensor = node->results[0], .dims = factors->results[0]}};
    bool is_empty = ct__num_elements(node->results[0]) == 0;
    while (sides[0].stop < sides[0].tensor->rank || sides[1].stop < sides[1].tensor->rank) {
        int64_t counts[2];
        for (int k = 0; k < 2; k++) {
            sides[k].first = sides[k].stop;
            if (sides[k].stop < sides[k].tensor->rank) sides[k].stop++;
            counts[k] = elements_from(&sides[k], sides[k].first);
        }
        while (counts[0] != counts[1] || is_empty) { /* without elements all is one group */
            int k = counts[0] < counts[1] ? 0 : 1;
            if (is_empty) k = sides[0].stop < sides[0].tensor->rank ? 0 : 1;
            if (sides[k].stop == sides[k].tensor->rank) break;
            counts[k] *= sides[k].tensor->axes[sides[k].stop++].size;
        }
        if (!is_empty && group_split(sides, factors)) continue;
        for (int k = 0; k < 2; k++) group_whole(&sides[k], factors);
    }
    ct__factors_linear(node, CT_LINEAR_JOINTLY, 1, factors);
    factors->repeatable = true;
}

/* A clone: its result has local sizes. */
static const ct_op op_reshape = {
    .name = "stablehlo.reshape", .vjp = vjp_reshape, .cheap = true, .factors = rule_reshape};

ct_tensor *ct__reshape(const char *loc, ct_tensor *x, int rank, const ct_axis *axes)
{
    if (ct__any_poison(1, &x)) return x->graph->poison;
    int64_t count = 1;
    for (int i = 0; i < rank; i++) count *= axes[i].size;
    if (count != ct__num_elements(x)) /* (C2) */
        return ct__fail(x->graph, loc, "reshape", "%s has %lld elements, the new axes \"%s\" have %lld",
                        ct_tensor_describe(x), (long long)ct__num_elements(x), ct__axes_text(x->graph, axes, rank),
                        (long long)count);
    return node_with_dims(loc, &op_reshape, x, NULL, rank, axes);
}

/* x's axes with [dim, dim + removed) replaced by parts. */
static ct_tensor *replace_axes(const char *loc, const char *op, ct_tensor *x, int dim, int removed, int num_parts,
                               const ct_axis *parts)
{
    ct_axis axes[2 * CT_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < dim; i++) axes[rank++] = x->axes[i];
    for (int i = 0; i < num_parts; i++) axes[rank++] = parts[i];
    for (int i = dim + removed; i < x->rank; i++) axes[rank++] = x->axes[i];
    if (rank > CT_MAX_RANK)
        return ct__fail(x->graph, loc, op, "the result would have %d axes, at most %d are possible", rank, CT_MAX_RANK);
    for (int i = 0; i < rank; i++)
        if (ct__find_axis(axes, i, axes[i].name) >= 0)
            return ct__fail(x->graph, loc, op, "axis %s would occur twice in the result of %s", axes[i].name,
                            ct_tensor_describe(x));
    return ct__reshape(loc, x, rank, axes);
}

ct_tensor *ct__split(const char *loc, ct_tensor *x, const char *axis, const char *text)
{
    if (ct__any_poison(1, &x)) return x->graph->poison;
    ct_graph *graph = x->graph;
    int dim = ct__parse_dim(x, loc, "split", axis), num_parts;
    ct_axis parts[CT_MAX_RANK];
    if (dim < 0) return graph->poison;
    if (!ct__parse_axes(graph, loc, "split", text, parts, &num_parts)) return graph->poison;
    if (num_parts < 1) return ct__fail(graph, loc, "split", "no parts named for axis %s", axis);
    int64_t product = 1;
    int open = -1;
    for (int i = 0; i < num_parts; i++) {
        if (parts[i].size > 0)
            product *= parts[i].size;
        else if (open < 0)
            open = i;
        else
            return ct__fail(graph, loc, "split", "more than one open size in \"%s\"", text);
    }
    if (open >= 0) parts[open].size = x->axes[dim].size / product;
    if (product * (open >= 0 ? parts[open].size : 1) != x->axes[dim].size)
        return ct__fail(graph, loc, "split", "axis %s of size %lld cannot be split as \"%s\"", axis,
                        (long long)x->axes[dim].size, text);
    return replace_axes(loc, "split", x, dim, 1, num_parts, parts);
}

ct_tensor *ct__merge(const char *loc, ct_tensor *x, const char *text, const char *name)
{
    if (ct__any_poison(1, &x)) return x->graph->poison;
    int dims[CT_MAX_RANK], count;
    if (!ct__parse_dims(x, loc, "merge", text, dims, &count)) return x->graph->poison;
    ct_axis merged = {ct__intern_z(x->graph, name), 1};
    for (int i = 0; i < count; i++) {
        if (dims[i] != dims[0] + i)
            return ct__fail(x->graph, loc, "merge", "axes \"%s\" are not neighbours in that order in %s", text,
                            ct_tensor_describe(x));
        merged.size *= x->axes[dims[i]].size;
    }
    if (!count) return ct__fail(x->graph, loc, "merge", "no axes named");
    return replace_axes(loc, "merge", x, dims[0], count, 1, &merged);
}

ct_tensor *ct__unsqueeze(const char *loc, ct_tensor *x, const char *name, int dim)
{
    if (ct__any_poison(1, &x)) return x->graph->poison;
    CT_ASSERT(dim >= 0 && dim <= x->rank);
    ct_axis axis = {ct__intern_z(x->graph, name), 1};
    return replace_axes(loc, "unsqueeze", x, dim, 0, 1, &axis);
}

ct_tensor *ct__squeeze(const char *loc, ct_tensor *x, const char *name)
{
    if (ct__any_poison(1, &x)) return x->graph->poison;
    int dim = ct__parse_dim(x, loc, "squeeze", name);
    if (dim < 0) return x->graph->poison;
    if (x->axes[dim].size != 1)
        return ct__fail(x->graph, loc, "squeeze", "axis %s of %s must have size 1", name, ct_tensor_describe(x));
    return replace_axes(loc, "squeeze", x, dim, 1, 0, NULL);
}

/* ---- transpose ---- */

static void print_transpose_attrs(ct_printer *p, const ct_node *node)
{
    const dims_attrs *attrs = node->attrs;
    ct__print_dims(p, "permutation", attrs->dims, attrs->count);
}

static void vjp_transpose(ct_node *node, ct_tensor *const *cotangents, ct_tensor **gradients)
{
    ct_tensor *x = node->operands[0];
    gradients[0] = ct_transpose(cotangents[0], ct__axes_text(x->graph, x->axes, x->rank));
}

static void rule_transpose(const ct_node *node, ct_factors *factors)
{
    const dims_attrs *attrs = node->attrs;
    for (int i = 0; i < attrs->count; i++) {
        int factor = ct__factor_add(factors, CT_FACTOR_PARALLEL, node->results[0]->axes[i].size);
        ct__factor_operand(factors, 0, (int)attrs->dims[i], factor);
        ct__factor_result(factors, 0, i, factor);
    }
    ct__factors_linear(node, CT_LINEAR_JOINTLY, 1, factors);
    factors->repeatable = true;
}

static const ct_op op_transpose = {.name = "stablehlo.transpose",
                                   .print_attrs = print_transpose_attrs,
                                   .vjp = vjp_transpose,
                                   .cheap = true,
                                   .factors = rule_transpose};

ct_tensor *ct__transpose(const char *loc, ct_tensor *x, const char *order)
{
    if (ct__any_poison(1, &x)) return x->graph->poison;
    int dims[CT_MAX_RANK], count;
    if (!ct__parse_dims(x, loc, "transpose", order, dims, &count)) return x->graph->poison;
    if (count != x->rank) /* (C2): a permutation of all dims */
        return ct__fail(x->graph, loc, "transpose", "\"%s\" must name every axis of %s", order, ct_tensor_describe(x));
    dims_attrs attrs = {.count = count};
    ct_axis axes[CT_MAX_RANK];
    bool same = true;
    for (int i = 0; i < count; i++) {
        attrs.dims[i] = dims[i];
        axes[i] = x->axes[dims[i]];
        if (dims[i] != i) same = false;
    }
    return same ? x : node_with_dims(loc, &op_transpose, x, &attrs, count, axes);
}
