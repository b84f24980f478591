/* What placement rules and local forms have in common. */
#include "graph/factor.h"

#include "graph/collectives.h"
#include "graph/compare.h"
#include "graph/constant.h"
#include "graph/convert.h"
#include "graph/elementwise.h"
#include "graph/placement.h"

int ct__factor_add(ct_factors *factors, ct_factor_kind kind, int64_t size)
{
    if (size == 1) return -1;
    for (int i = 0; kind == CT_FACTOR_WHOLE && i < factors->count; i++)
        if (factors->kinds[i] == kind && factors->sizes[i] == size) return i;
    if (factors->count == CT_MAX_FACTORS) {
        CT_ASSERT(kind == CT_FACTOR_WHOLE);
        return -1;
    }
    factors->kinds[factors->count] = kind;
    factors->sizes[factors->count] = size;
    return factors->count++;
}

static void append(ct_dim_factors *dim, int factor)
{
    if (factor < 0) return;
    CT_ASSERT(dim->count < CT_MAX_SUBFACTORS);
    dim->factors[dim->count++] = (signed char)factor;
}

void ct__factor_operand(ct_factors *factors, int operand, int dim, int factor)
{
    append(&factors->operands[operand][dim], factor);
}

void ct__factor_result(ct_factors *factors, int result, int dim, int factor)
{
    append(&factors->results[result][dim], factor);
}

/* Operands and results of as many dims; dim `apart`, if any, is WHOLE in each by itself. */
static void side_by_side(const ct_node *node, int apart, ct_factors *factors)
{
    const ct_tensor *first = node->results[0];
    for (int dim = 0; dim < first->rank; dim++) {
        bool whole = dim == apart;
        int factor = whole ? -1 : ct__factor_add(factors, CT_FACTOR_PARALLEL, first->axes[dim].size);
        for (int i = 0; i < node->num_operands; i++) {
            const ct_tensor *operand = node->operands[i];
            if (operand->rank == 0) continue;
            CT_ASSERT(operand->rank == first->rank && (whole || operand->axes[dim].size == first->axes[dim].size));
            if (whole) factor = ct__factor_add(factors, CT_FACTOR_WHOLE, operand->axes[dim].size);
            ct__factor_operand(factors, i, dim, factor);
        }
        for (int i = 0; i < node->num_results; i++) {
            if (whole) factor = ct__factor_add(factors, CT_FACTOR_WHOLE, node->results[i]->axes[dim].size);
            ct__factor_result(factors, i, dim, factor);
        }
    }
}

void ct__factors_elementwise(const ct_node *node, ct_factors *out_factors)
{
    side_by_side(node, -1, out_factors);
    out_factors->repeatable = true;
}

void ct__factors_beside(const ct_node *node, int dim, ct_factors *out_factors)
{
    side_by_side(node, dim, out_factors);
}

void ct__factors_whole(const ct_node *node, ct_factors *out_factors)
{
    for (int i = 0; i < node->num_operands; i++)
        for (int dim = 0; dim < node->operands[i]->rank; dim++)
            ct__factor_operand(out_factors, i, dim,
                               ct__factor_add(out_factors, CT_FACTOR_WHOLE, node->operands[i]->axes[dim].size));
    for (int i = 0; i < node->num_results; i++)
        for (int dim = 0; dim < node->results[i]->rank; dim++)
            ct__factor_result(out_factors, i, dim,
                              ct__factor_add(out_factors, CT_FACTOR_WHOLE, node->results[i]->axes[dim].size));
}

void ct__factors_linear(const ct_node *node, ct_linearity linearity, uint32_t operands, ct_factors *factors)
{
    if (node->results[0]->dtype == CT_DTYPE_BOOL) return;
    factors->linearity = linearity;
    factors->linear_operands = operands;
}

uint32_t ct__all_operands(const ct_node *node)
{
    return node->num_operands < 32 ? ((uint32_t)1 << node->num_operands) - 1 : UINT32_MAX;
}

/* ---- local forms ---- */

int ct__factor_of(const ct_dim_factors *dim)
{
    return dim->count == 1 ? dim->factors[0] : -1;
}

void ct__local_axes(const ct_local *local, int result, ct_axis *out_axes)
{
    const ct_tensor *whole = local->node->results[result];
    for (int dim = 0; dim < whole->rank; dim++) {
        const ct_dim_factors *factors = &local->factors->results[result][dim];
        out_axes[dim] = whole->axes[dim];
        if (factors->count) out_axes[dim].size = 1;
        for (int i = 0; i < factors->count; i++) out_axes[dim].size *= local->local_sizes[factors->factors[i]];
    }
}

bool ct__local_is_split(const ct_local *local, int factor)
{
    return factor >= 0 && local->mesh_axes[factor][0];
}

int64_t ct__local_parts(const ct_local *local, int factor)
{
    ct_graph *graph = local->node->graph;
    int axes[CT_MAX_RANK], count;
    int64_t parts = 1;
    if (!ct__local_is_split(local, factor)) return 1;
    if (!ct__parse_mesh_axes(graph, local->node->loc, local->node->op->name, local->mesh_axes[factor], axes, &count))
        return 1;
    for (int i = 0; i < count; i++) parts *= graph->mesh[axes[i]].size;
    return parts;
}

ct_tensor *ct__local_offset(const ct_local *local, int factor)
{
    const char *loc = local->node->loc;
    ct_graph *graph = local->node->graph;
    if (!ct__local_is_split(local, factor)) return ct__scalar(loc, graph, CT_DTYPE_S32, 0);
    ct_tensor *index = ct__mesh_index(loc, graph, local->mesh_axes[factor]);
    return ct__mul(loc, index, ct__scalar_like(loc, index, (double)local->local_sizes[factor]));
}

void ct__local_clone(const ct_local *local, void *attrs)
{
    const ct_node *node = local->node;
    CT_ASSERT(!node->num_regions);
    ct_node *copy = ct__node_new(node->graph, node->op, node->loc, node->num_operands, local->operands);
    copy->loc = node->loc;
    copy->scope = node->scope;
    copy->attrs = attrs;
    for (int i = 0; i < node->num_results; i++) {
        ct_axis axes[CT_MAX_RANK];
        ct__local_axes(local, i, axes);
        local->results[i] = ct__result(copy, node->results[i]->dtype, node->results[i]->rank, axes);
        local->results[i]->checkpoint_name = node->results[i]->checkpoint_name;
        local->results[i]->remat_role = node->results[i]->remat_role;
    }
}

/* Indices into the whole array as positions in the device's part; those of other parts are negative or past its end. */
static ct_tensor *local_indices(const ct_local *local, int factor, ct_tensor *indices)
{
    const char *loc = local->node->loc;
    return ct__sub(loc, indices, ct__convert(loc, ct__local_offset(local, factor), indices->dtype));
}

void ct__local_lookup(const ct_local *local, int factor, int64_t size)
{
    if (!ct__local_is_split(local, factor)) {
        ct__local_clone(local, local->node->attrs);
        return;
    }
    const char *loc = local->node->loc;
    /* a lookup clamps what is out of the whole array; after that just one device has each index */
    ct_tensor *indices = ct__clamp(loc, local->operands[1], 0, (double)(size - 1));
    indices = local_indices(local, factor, indices);
    ct_tensor *operands[2] = {local->operands[0], indices};
    ct_local lookup = *local;
    lookup.operands = operands;
    ct__local_clone(&lookup, local->node->attrs);
    ct_tensor *after = ct__compare(loc, "GE", indices, ct__scalar_like(loc, indices, 0));
    ct_tensor *before =
        ct__compare(loc, "LT", indices, ct__scalar_like(loc, indices, (double)local->local_sizes[factor]));
    ct_tensor *taken = local->results[0];
    local->results[0] = ct__select(loc, ct__and(loc, after, before), taken, ct__scalar_like(loc, taken, 0));
}

/* Indices of dims that are reduced, -1 where a dim is padding. */
static ct_tensor *without_padding(const ct_local *local, ct_tensor *indices)
{
    const char *loc = local->node->loc;
    ct_graph *graph = local->node->graph;
    for (int i = 0; i < indices->rank; i++) {
        int factor = ct__factor_of(&local->factors->operands[1][i]);
        if (!ct__local_is_split(local, factor) || local->factors->kinds[factor] != CT_FACTOR_SUM) continue;
        int64_t size = local->factors->sizes[factor];
        if (local->local_sizes[factor] * ct__local_parts(local, factor) == size) continue;
        const char *axis = indices->axes[i].name;
        const char *ramp = ct_arena_printf(&graph->arena, "%s=%lld", axis, (long long)indices->axes[i].size);
        ct_tensor *position =
            ct__add(loc, ct__iota(loc, graph, CT_DTYPE_S32, ramp, axis), ct__local_offset(local, factor));
        ct_tensor *is_inside = ct__compare(loc, "LT", position, ct__scalar_like(loc, position, (double)size));
        indices = ct__select(loc, is_inside, indices, ct__scalar_like(loc, indices, -1));
    }
    return indices;
}

void ct__local_scatter(const ct_local *local, int factor)
{
    ct_tensor *operands[3] = {local->operands[0], local->operands[1], local->operands[2]};
    ct_local scatter = *local;
    scatter.operands = operands; /* scatters drop what is out of bounds */
    if (ct__local_is_split(local, factor)) operands[1] = local_indices(local, factor, operands[1]);
    operands[1] = without_padding(local, operands[1]);
    ct__local_clone(&scatter, local->node->attrs);
}
