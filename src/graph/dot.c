/* stablehlo.dot_general. Its derivative is two more contractions, whose axis order falls out right for weights kept as
 * [out in], so that no transposes are needed. */
#include "graph/dot.h"

#include <string.h>

#include "graph/convert.h"
#include "graph/factor.h"
#include "graph/shape.h"

typedef struct dot_attrs {
    int num_batch, num_contracted;
    int64_t batch[2][CT_MAX_RANK], contracted[2][CT_MAX_RANK];
} dot_attrs;

static void print_list(ct_printer *p, const char *name, const int64_t *values, int count)
{
    ct__print(p, "%s = [", name);
    for (int i = 0; i < count; i++) ct__print(p, "%s%lld", i ? ", " : "", (long long)values[i]);
    ct_str_append_char(p->out, ']');
}

static void print_dot_attrs(ct_printer *p, const ct_node *node)
{
    const dot_attrs *attrs = node->attrs;
    ct_str_append(p->out, "dot_dimension_numbers = #stablehlo.dot<");
    if (attrs->num_batch) {
        print_list(p, "lhs_batching_dimensions", attrs->batch[0], attrs->num_batch);
        print_list(p, ", rhs_batching_dimensions", attrs->batch[1], attrs->num_batch);
        ct_str_append(p->out, ", ");
    }
    print_list(p, "lhs_contracting_dimensions", attrs->contracted[0], attrs->num_contracted);
    print_list(p, ", rhs_contracting_dimensions", attrs->contracted[1], attrs->num_contracted);
    ct_str_append(p->out, ">, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]");
}

/* The axes of x that other lacks: summed away when its gradient is formed by contracting the cotangent with other. */
static const char *free_axes(const ct_tensor *x, const ct_tensor *other)
{
    ct_axis axes[CT_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < x->rank; i++)
        if (ct__find_axis(other->axes, other->rank, x->axes[i].name) < 0) axes[rank++] = x->axes[i];
    return ct__axes_text(x->graph, axes, rank);
}

/* The gradient of b. Of the two operands the left one's contracted axes come first, and libraries of dots on CPUs take
 * a transposed copy of it; the other order costs a transpose of the result. */
static ct_tensor *gradient_of_right(ct_tensor *c, ct_tensor *a, const ct_tensor *b)
{
    const char *contracted = free_axes(a, b);
    bool is_cheaper_swapped = ct__num_elements(a) + ct__num_elements(b) < ct__num_elements(c);
    ct_tensor *gradient = is_cheaper_swapped ? ct_dot(a, c, contracted) : ct_dot(c, a, contracted);
    return ct_transpose(gradient, ct__axes_text(b->graph, b->axes, b->rank));
}

static void vjp_dot(ct_node *node, ct_tensor *const *cotangents, ct_tensor **gradients)
{
    ct_tensor *a = node->operands[0], *b = node->operands[1], *c = ct_convert(cotangents[0], a->dtype);
    if (ct__wants_gradient(a)) {
        ct_tensor *gradient = ct_dot(c, b, free_axes(b, a));
        gradients[0] = ct_transpose(gradient, ct__axes_text(a->graph, a->axes, a->rank));
    }
    if (ct__wants_gradient(b)) gradients[1] = gradient_of_right(c, a, b);
}

/* Result dims: batch, then the free ones of the left operand, then of the right. */
static void rule_dot(const ct_node *node, ct_factors *factors)
{
    const dot_attrs *attrs = node->attrs;
    bool taken[2][CT_MAX_RANK] = {{0}};
    int result_dim = 0;
    for (int i = 0; i < attrs->num_batch + attrs->num_contracted; i++) {
        bool is_batch = i < attrs->num_batch;
        int dims[2];
        for (int k = 0; k < 2; k++) {
            dims[k] = (int)(is_batch ? attrs->batch[k][i] : attrs->contracted[k][i - attrs->num_batch]);
            taken[k][dims[k]] = true;
        }
        int factor = ct__factor_add(factors, is_batch ? CT_FACTOR_PARALLEL : CT_FACTOR_SUM,
                                    node->operands[0]->axes[dims[0]].size);
        for (int k = 0; k < 2; k++) ct__factor_operand(factors, k, dims[k], factor);
        if (is_batch) ct__factor_result(factors, 0, result_dim++, factor);
    }
    for (int k = 0; k < 2; k++)
        for (int dim = 0; dim < node->operands[k]->rank; dim++) {
            if (taken[k][dim]) continue;
            int factor = ct__factor_add(factors, CT_FACTOR_PARALLEL, node->operands[k]->axes[dim].size);
            ct__factor_operand(factors, k, dim, factor);
            ct__factor_result(factors, 0, result_dim++, factor);
        }
    ct__factors_linear(node, CT_LINEAR_EACH, 3, factors);
}

static const ct_op op_dot = {
    .name = "stablehlo.dot_general", .print_attrs = print_dot_attrs, .vjp = vjp_dot, .factors = rule_dot};

bool ct__is_weight_dot(const ct_node *node)
{
    return node->op == &op_dot && ((const dot_attrs *)node->attrs)->num_batch == 0;
}

static bool contains(const int *dims, int count, int dim)
{
    for (int i = 0; i < count; i++)
        if (dims[i] == dim) return true;
    return false;
}

static ct_tensor *contract(const char *loc, const char *op, ct_tensor *a, ct_tensor *b, const int *a_dims, int count,
                           ct_dtype dtype)
{
    if (a->dtype != b->dtype || a->dtype == CT_DTYPE_BOOL)
        return ct__fail(a->graph, loc, op, "dtypes must be equal numbers, found %s and %s", ct_tensor_describe(a),
                        ct_tensor_describe(b));
    dot_attrs attrs = {0};
    ct_axis axes[2 * CT_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < a->rank; i++) {
        int other = ct__find_axis(b->axes, b->rank, a->axes[i].name);
        if (other < 0) continue;
        if (a->axes[i].size != b->axes[other].size) /* (C9), (C10) */
            return ct__fail(a->graph, loc, op, "axis %s has sizes %lld and %lld: %s and %s", a->axes[i].name,
                            (long long)a->axes[i].size, (long long)b->axes[other].size, ct_tensor_describe(a),
                            ct_tensor_describe(b));
        if (contains(a_dims, count, i)) {
            attrs.contracted[0][attrs.num_contracted] = i;
            attrs.contracted[1][attrs.num_contracted++] = other;
        } else {
            attrs.batch[0][attrs.num_batch] = i;
            attrs.batch[1][attrs.num_batch++] = other;
            axes[rank++] = a->axes[i];
        }
    }
    for (int i = 0; i < a->rank; i++)
        if (ct__find_axis(b->axes, b->rank, a->axes[i].name) < 0) axes[rank++] = a->axes[i];
    for (int i = 0; i < b->rank; i++)
        if (ct__find_axis(a->axes, a->rank, b->axes[i].name) < 0) axes[rank++] = b->axes[i];
    if (rank > CT_MAX_RANK)
        return ct__fail(a->graph, loc, op, "the result would have %d axes, at most %d are possible", rank, CT_MAX_RANK);
    ct_node *node = ct__node_new(a->graph, &op_dot, loc, 2, (ct_tensor *[]){a, b});
    node->attrs = ct_arena_dup(&a->graph->arena, &attrs, sizeof(attrs));
    return ct__result(node, dtype, rank, axes);
}

ct_tensor *ct__dot_as(const char *loc, ct_tensor *a, ct_tensor *b, const char *contracted, ct_dtype dtype)
{
    if (ct__any_poison(2, (ct_tensor *[]){a, b})) return a->graph->poison;
    int dims[CT_MAX_RANK], other_dims[CT_MAX_RANK], count;
    if (!ct__parse_dims(b, loc, "dot", contracted, other_dims, &count)) return a->graph->poison;
    if (!ct__parse_dims(a, loc, "dot", contracted, dims, &count)) return a->graph->poison;
    return contract(loc, "dot", a, b, dims, count, dtype);
}

ct_tensor *ct__dot(const char *loc, ct_tensor *a, ct_tensor *b, const char *contracted)
{
    return ct__dot_as(loc, a, b, contracted, a->dtype);
}

ct_tensor *ct__linear(const char *loc, ct_tensor *x, ct_tensor *w)
{
    if (ct__any_poison(2, (ct_tensor *[]){x, w})) return x->graph->poison;
    int dims[CT_MAX_RANK], count = 0;
    for (int i = 0; i < x->rank; i++)
        if (ct__find_axis(w->axes, w->rank, x->axes[i].name) >= 0) dims[count++] = i;
    if (!count)
        return ct__fail(x->graph, loc, "linear", "no shared axis between x %s and w %s", ct_tensor_describe(x),
                        ct_tensor_describe(w));
    return contract(loc, "linear", x, w, dims, count, x->dtype);
}
