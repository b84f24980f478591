/* Collective ops with dense replica groups, which old plugins read as well. Channels are numbered when printed, so that
 * copies of a node get their own. */
#include "graph/collectives.h"

#include <string.h>

#include "graph/constant.h"
#include "graph/convert.h"
#include "graph/elementwise.h"
#include "graph/placement.h"

/* The groups of a collective: [num_groups, group_size] device numbers, row-major. */
typedef struct collective_attrs {
    const char *mesh_axes;
    int64_t num_groups, group_size;
    int64_t *devices;
    int64_t dim, other_dim; /* all_gather, reduce_scatter, all_to_all (split, concat) */
    ct_reduction reduction;
    int num_pairs;
    int64_t (*pairs)[2]; /* collective_permute: positions in the group */
} collective_attrs;

static bool make_groups(ct_graph *graph, const char *loc, const char *op, const char *mesh_axes,
                        collective_attrs *attrs)
{
    *attrs = (collective_attrs){.mesh_axes = ct__intern_z(graph, mesh_axes), .num_groups = 1, .group_size = 1};
    int named[CT_MAX_RANK], num_named;
    const ct_region *root = graph->region;
    while (root->parent) root = root->parent;
    if (root == graph->main && !graph->manual_depth) {
        ct__fail(graph, loc, op, "collectives work at local sizes: call it in the body of ct_manual");
        return false;
    }
    if (!ct__parse_mesh_axes(graph, loc, op, mesh_axes, named, &num_named)) return false;
    int64_t stride[CT_MAX_RANK], device_stride = 1;
    for (int i = graph->num_mesh_axes - 1; i >= 0; i--) {
        stride[i] = device_stride;
        device_stride *= graph->mesh[i].size;
    }
    int others[CT_MAX_RANK], num_others = 0;
    for (int i = 0; i < graph->num_mesh_axes; i++) {
        bool is_named = false;
        for (int j = 0; j < num_named; j++) is_named |= named[j] == i;
        if (!is_named) others[num_others++] = i;
        *(is_named ? &attrs->group_size : &attrs->num_groups) *= graph->mesh[i].size;
    }
    attrs->devices = CT_ARENA_ARRAY(&graph->arena, int64_t, attrs->num_groups * attrs->group_size);
    for (int64_t group = 0; group < attrs->num_groups; group++)
        for (int64_t position = 0; position < attrs->group_size; position++) {
            int64_t device = 0, rest = group;
            for (int i = num_others - 1; i >= 0; i--) {
                device += rest % graph->mesh[others[i]].size * stride[others[i]];
                rest /= graph->mesh[others[i]].size;
            }
            rest = position;
            for (int i = num_named - 1; i >= 0; i--) {
                device += rest % graph->mesh[named[i]].size * stride[named[i]];
                rest /= graph->mesh[named[i]].size;
            }
            attrs->devices[group * attrs->group_size + position] = device;
        }
    return true;
}

static void print_channel(ct_printer *p)
{
    ct__print(p, "channel_handle = #stablehlo.channel_handle<handle = %d, type = 1>", ++p->graph->num_channels);
}

static void print_groups(ct_printer *p, const collective_attrs *attrs)
{
    ct_str_append(p->out, "replica_groups = dense<[");
    for (int64_t i = 0; i < attrs->num_groups; i++) {
        for (int64_t j = 0; j < attrs->group_size; j++)
            ct__print(p, "%s%lld", j ? ", " : i ? ", [" : "[", (long long)attrs->devices[i * attrs->group_size + j]);
        ct_str_append_char(p->out, ']');
    }
    ct__print(p, "]> : tensor<%lldx%lldxi64>, ", (long long)attrs->num_groups, (long long)attrs->group_size);
    print_channel(p);
}

/* The body that combines two elements, as a region in the generic form. */
static void print_combine(ct_printer *p, const char *combine, ct_dtype dtype)
{
    const char *type = ct_dtype_mlir(dtype);
    int a = ct__print_new_name(p), b = ct__print_new_name(p), r = ct__print_new_name(p);
    ct__print(p, " ({ ^bb0(%%%d: tensor<%s>, %%%d: tensor<%s>): ", a, type, b, type);
    ct__print(p, "%%%d = \"stablehlo.%s\"(%%%d, %%%d) : (tensor<%s>, tensor<%s>) -> tensor<%s> ", r, combine, a, b,
              type, type, type);
    ct__print(p, "\"stablehlo.return\"(%%%d) : (tensor<%s>) -> () })", r, type);
}

static ct_tensor *collective(const char *loc, const ct_op *op, ct_tensor *x, const collective_attrs *attrs, int rank,
                             const ct_axis *axes)
{
    ct_node *node = ct__node_new(x->graph, op, loc, 1, &x);
    node->attrs = ct_arena_dup(&x->graph->arena, attrs, sizeof(*attrs));
    return ct__result(node, x->dtype, rank, axes);
}

/* ---- all_gather and reduce_scatter ---- */

static void print_all_gather_attrs(ct_printer *p, const ct_node *node)
{
    const collective_attrs *attrs = node->attrs;
    ct__print(p, "all_gather_dim = %lld : i64, ", (long long)attrs->dim);
    print_groups(p, attrs);
    ct_str_append(p->out, ", use_global_device_ids");
}

static void vjp_all_gather(ct_node *node, ct_tensor *const *cotangents, ct_tensor **gradients)
{
    const collective_attrs *attrs = node->attrs;
    gradients[0] = ct_reduce_scatter(cotangents[0], node->results[0]->axes[attrs->dim].name, attrs->mesh_axes);
}

static const ct_op op_all_gather = {
    .name = "stablehlo.all_gather", .print_attrs = print_all_gather_attrs, .vjp = vjp_all_gather};

ct_tensor *ct__all_gather(const char *loc, ct_tensor *x, const char *axis, const char *mesh_axes)
{
    if (ct__any_poison(1, &x)) return x->graph->poison;
    int dim = ct__parse_dim(x, loc, "all_gather", axis);
    collective_attrs attrs;
    if (dim < 0 || !make_groups(x->graph, loc, "all_gather", mesh_axes, &attrs)) return x->graph->poison;
    if (attrs.group_size == 1 || !x->axes[dim].size) return x;
    attrs.dim = dim;
    ct_axis axes[CT_MAX_RANK];
    memcpy(axes, x->axes, sizeof(axes));
    axes[dim].size *= attrs.group_size; /* (C6) */
    return collective(loc, &op_all_gather, x, &attrs, x->rank, axes);
}

static void print_reduce_scatter(ct_printer *p, const ct_node *node)
{
    const collective_attrs *attrs = node->attrs;
    ct__print_line(p);
    ct__print_results(p, node);
    ct_str_append(p->out, "\"stablehlo.reduce_scatter\"");
    ct__print_operands(p, node->operands, 1);
    ct__print(p, " <{scatter_dimension = %lld : i64, ", (long long)attrs->dim);
    print_groups(p, attrs);
    ct_str_append(p->out, ", use_global_device_ids}>");
    print_combine(p, "add", node->results[0]->dtype);
    ct__print_signature(p, node);
}

static void vjp_reduce_scatter(ct_node *node, ct_tensor *const *cotangents, ct_tensor **gradients)
{
    const collective_attrs *attrs = node->attrs;
    gradients[0] = ct_all_gather(cotangents[0], node->results[0]->axes[attrs->dim].name, attrs->mesh_axes);
}

static const ct_op op_reduce_scatter = {
    .name = "stablehlo.reduce_scatter", .print = print_reduce_scatter, .vjp = vjp_reduce_scatter};

ct_tensor *ct__reduce_scatter(const char *loc, ct_tensor *x, const char *axis, const char *mesh_axes)
{
    if (ct__any_poison(1, &x)) return x->graph->poison;
    int dim = ct__parse_dim(x, loc, "reduce_scatter", axis);
    collective_attrs attrs;
    if (dim < 0 || !make_groups(x->graph, loc, "reduce_scatter", mesh_axes, &attrs)) return x->graph->poison;
    if (attrs.group_size == 1) return x;
    attrs.dim = dim;
    if (x->axes[dim].size % attrs.group_size || x->dtype == CT_DTYPE_BOOL) /* (C8) */
        return ct__fail(x->graph, loc, "reduce_scatter", "axis %s of %s cannot be scattered over %lld devices", axis,
                        ct_tensor_describe(x), (long long)attrs.group_size);
    ct_axis axes[CT_MAX_RANK];
    memcpy(axes, x->axes, sizeof(axes));
    axes[dim].size /= attrs.group_size;
    return collective(loc, &op_reduce_scatter, x, &attrs, x->rank, axes);
}

/* ---- all_reduce ---- */

static void print_all_reduce(ct_printer *p, const ct_node *node)
{
    static const char *const combines[] = {"add", "maximum", "minimum"};
    const collective_attrs *attrs = node->attrs;
    ct__print_line(p);
    ct__print_results(p, node);
    ct_str_append(p->out, "\"stablehlo.all_reduce\"");
    ct__print_operands(p, node->operands, 1);
    ct_str_append(p->out, " <{");
    print_groups(p, attrs);
    ct_str_append(p->out, ", use_global_device_ids}>");
    print_combine(p, combines[attrs->reduction], node->results[0]->dtype);
    ct__print_signature(p, node);
}

static void vjp_all_reduce(ct_node *node, ct_tensor *const *cotangents, ct_tensor **gradients)
{
    const collective_attrs *attrs = node->attrs;
    gradients[0] = ct_all_reduce(cotangents[0], CT_REDUCTION_SUM, attrs->mesh_axes);
}

static const ct_op op_all_sum = {.name = "stablehlo.all_reduce", .print = print_all_reduce, .vjp = vjp_all_reduce};
static const ct_op op_all_extremum = {.name = "stablehlo.all_reduce", .print = print_all_reduce};

ct_tensor *ct__all_reduce(const char *loc, ct_tensor *x, ct_reduction reduction, const char *mesh_axes)
{
    if (ct__any_poison(1, &x)) return x->graph->poison;
    collective_attrs attrs;
    if (!make_groups(x->graph, loc, "all_reduce", mesh_axes, &attrs)) return x->graph->poison;
    if (attrs.group_size == 1) return x;
    attrs.reduction = reduction;
    return collective(loc, reduction == CT_REDUCTION_SUM ? &op_all_sum : &op_all_extremum, x, &attrs, x->rank, x->axes);
}

static const ct_op op_pending_sum = {.name = "stablehlo.all_reduce", .print = print_all_reduce, .vjp = vjp_all_reduce};

ct_tensor *ct__pending_sum(const char *loc, ct_tensor *x, const char *mesh_axes)
{
    ct_tensor *sum = *mesh_axes ? ct__all_reduce(loc, x, CT_REDUCTION_SUM, mesh_axes) : x;
    if (sum != x && sum->node) sum->node->op = &op_pending_sum;
    return sum;
}

bool ct__is_pending_sum(const ct_node *node)
{
    return node->op == &op_pending_sum;
}

/* ---- all_to_all ---- */

static void print_all_to_all_attrs(ct_printer *p, const ct_node *node)
{
    const collective_attrs *attrs = node->attrs;
    ct__print(p, "split_dimension = %lld : i64, concat_dimension = %lld : i64, split_count = %lld : i64, ",
              (long long)attrs->dim, (long long)attrs->other_dim, (long long)attrs->group_size);
    print_groups(p, attrs);
}

static void vjp_all_to_all(ct_node *node, ct_tensor *const *cotangents, ct_tensor **gradients)
{
    const collective_attrs *attrs = node->attrs;
    const ct_axis *axes = node->results[0]->axes;
    gradients[0] = ct_all_to_all(cotangents[0], axes[attrs->other_dim].name, axes[attrs->dim].name, attrs->mesh_axes);
}

static const ct_op op_all_to_all = {
    .name = "stablehlo.all_to_all", .print_attrs = print_all_to_all_attrs, .vjp = vjp_all_to_all};

ct_tensor *ct__all_to_all(const char *loc, ct_tensor *x, const char *split_axis, const char *concat_axis,
                          const char *mesh_axes)
{
    if (ct__any_poison(1, &x)) return x->graph->poison;
    int split = ct__parse_dim(x, loc, "all_to_all", split_axis),
        concat = ct__parse_dim(x, loc, "all_to_all", concat_axis);
    collective_attrs attrs;
    if (split < 0 || concat < 0 || !make_groups(x->graph, loc, "all_to_all", mesh_axes, &attrs))
        return x->graph->poison;
    if (attrs.group_size == 1) return x;
    attrs.dim = split;
    attrs.other_dim = concat;
    if (x->axes[split].size % attrs.group_size) /* (C2) */
        return ct__fail(x->graph, loc, "all_to_all", "axis %s of %s cannot be split over %lld devices", split_axis,
                        ct_tensor_describe(x), (long long)attrs.group_size);
    ct_axis axes[CT_MAX_RANK];
    memcpy(axes, x->axes, sizeof(axes));
    axes[split].size /= attrs.group_size; /* (C9) */
    axes[concat].size *= attrs.group_size;
    return collective(loc, &op_all_to_all, x, &attrs, x->rank, axes);
}

/* ---- collective_permute ---- */

static void print_permute_attrs(ct_printer *p, const ct_node *node)
{
    const collective_attrs *attrs = node->attrs;
    ct_str_append(p->out, "source_target_pairs = dense<[");
    for (int64_t i = 0; i < attrs->num_groups; i++)
        for (int j = 0; j < attrs->num_pairs; j++) {
            const int64_t *group = attrs->devices + i * attrs->group_size;
            ct__print(p, "%s[%lld, %lld]", i || j ? ", " : "", (long long)group[attrs->pairs[j][0]],
                      (long long)group[attrs->pairs[j][1]]);
        }
    ct__print(p, "]> : tensor<%lldx2xi64>, ", (long long)(attrs->num_groups * attrs->num_pairs));
    print_channel(p);
}

static void vjp_permute(ct_node *node, ct_tensor *const *cotangents, ct_tensor **gradients)
{
    const collective_attrs *attrs = node->attrs;
    int64_t(*back)[2] = ct_arena_dup(&node->graph->arena, attrs->pairs, (size_t)attrs->num_pairs * sizeof(*back));
    for (int i = 0; i < attrs->num_pairs; i++) {
        back[i][0] = attrs->pairs[i][1];
        back[i][1] = attrs->pairs[i][0];
    }
    gradients[0] = ct_collective_permute(cotangents[0], attrs->mesh_axes, attrs->num_pairs, (const int64_t(*)[2])back);
}

static const ct_op op_permute = {
    .name = "stablehlo.collective_permute", .print_attrs = print_permute_attrs, .vjp = vjp_permute};

ct_tensor *ct__collective_permute(const char *loc, ct_tensor *x, const char *mesh_axes, int num_pairs,
                                  const int64_t (*pairs)[2])
{
    if (ct__any_poison(1, &x)) return x->graph->poison;
    collective_attrs attrs;
    if (!make_groups(x->graph, loc, "collective_permute", mesh_axes, &attrs)) return x->graph->poison;
    for (int i = 0; i < num_pairs; i++) { /* (C1), (C2), (C3), (C4) */
        bool fits = true;
        for (int k = 0; k < 2; k++) {
            fits &= pairs[i][k] >= 0 && pairs[i][k] < attrs.group_size;
            for (int j = 0; j < i; j++) fits &= pairs[j][k] != pairs[i][k];
        }
        if (!fits)
            return ct__fail(x->graph, loc, "collective_permute",
                            "pair {%lld, %lld} is out of the group of %lld, or its source or target occurs twice",
                            (long long)pairs[i][0], (long long)pairs[i][1], (long long)attrs.group_size);
    }
    if (!num_pairs) return ct__fail(x->graph, loc, "collective_permute", "no pairs");
    attrs.num_pairs = num_pairs;
    attrs.pairs = ct_arena_dup(&x->graph->arena, pairs, (size_t)num_pairs * sizeof(*pairs));
    return collective(loc, &op_permute, x, &attrs, x->rank, x->axes);
}

/* ---- what a node is ---- */

bool ct__collective_info(const ct_node *node, ct_collective_info *out_info)
{
    static const struct {
        const ct_op *op;
        ct_collective_kind kind;
    } kinds[] = {{&op_all_gather, CT_COLLECTIVE_ALL_GATHER},  {&op_reduce_scatter, CT_COLLECTIVE_REDUCE_SCATTER},
                 {&op_all_sum, CT_COLLECTIVE_ALL_REDUCE},     {&op_all_extremum, CT_COLLECTIVE_ALL_REDUCE},
                 {&op_pending_sum, CT_COLLECTIVE_ALL_REDUCE}, {&op_all_to_all, CT_COLLECTIVE_ALL_TO_ALL},
                 {&op_permute, CT_COLLECTIVE_PERMUTE}};
    for (size_t i = 0; i < CT_COUNT(kinds); i++) {
        if (node->op != kinds[i].op) continue;
        const collective_attrs *attrs = node->attrs;
        *out_info = (ct_collective_info){kinds[i].kind, attrs->mesh_axes, attrs->group_size};
        return true;
    }
    return false;
}

/* ---- where am I ---- */

static const ct_op op_partition_id = {.name = "stablehlo.partition_id", .zero_gradient = true, .cheap = true};

ct_tensor *ct__partition_id(const char *loc, ct_graph *graph)
{
    if (graph->error) return graph->poison;
    return ct__result(ct__node_new(graph, &op_partition_id, loc, 0, NULL), CT_DTYPE_U32, 0, NULL);
}

ct_tensor *ct__mesh_index(const char *loc, ct_graph *graph, const char *mesh_axes)
{
    int named[CT_MAX_RANK], num_named;
    if (graph->error || !ct__parse_mesh_axes(graph, loc, "mesh_index", mesh_axes, named, &num_named))
        return graph->poison;
    ct_tensor *id = ct__partition_id(loc, graph), *index = NULL;
    for (int i = 0; i < num_named; i++) {
        int64_t stride = 1, size = graph->mesh[named[i]].size;
        for (int j = named[i] + 1; j < graph->num_mesh_axes; j++) stride *= graph->mesh[j].size;
        ct_tensor *position = ct__div(loc, id, ct__scalar_like(loc, id, (double)stride));
        position = ct__remainder(loc, position, ct__scalar_like(loc, id, (double)size));
        index = index ? ct__add(loc, ct__mul(loc, index, ct__scalar_like(loc, id, (double)size)), position) : position;
    }
    return ct__convert(loc, index, CT_DTYPE_S32);
}
