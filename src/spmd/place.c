/* One op by its placement rule.
 *
 *   1. per mesh axis: which factor it splits, of those that operands have split (the table's column first, then size)
 *   2. per factor: the longest list of mesh axes that an operand has; the others are sliced or gathered to it
 *   3. partial sums: kept through what is linear, else summed, scattered where a factor is split over the mesh axis
 *
 * An op whose result has dims that no operand decides (iota, constants, broadcasts, and what is computed from them
 * alone) is deferred: it is made when it is wanted, as it is wanted.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/collectives.h"
#include "graph/compare.h"
#include "graph/constant.h"
#include "graph/elementwise.h"
#include "graph/reduce.h"
#include "graph/shape.h"
#include "spmd/localizer.h"

enum { SMALL_ELEMENTS = 64, ACTIVATION_RANK = 3 };

typedef struct axis_list {
    int count, axes[CT_MAX_MESH_AXES];
    int64_t padded; /* of the factor; 0: divides */
} axis_list;

typedef struct placing {
    ct_localizer *l;
    ct_node *node;
    ct_factors factors;
    axis_list lists[CT_MAX_FACTORS];
    uint32_t partial;                /* kept through the op */
    uint32_t column[CT_MAX_FACTORS]; /* mesh axes that the table's column gives to the factor's axis */
} placing;

static double bytes_of(const ct_tensor *tensor)
{
    return (double)ct__num_elements(tensor) * (double)ct_dtype_bytes(tensor->dtype);
}

static void rule_of(placing *p)
{
    ct_node *node = p->node;
    ct_arena *arena = &p->l->graph->arena;
    p->factors.operands = ct_arena_alloc(arena, (size_t)(node->num_operands + 1) * sizeof(*p->factors.operands));
    p->factors.results = ct_arena_alloc(arena, (size_t)(node->num_results + 1) * sizeof(*p->factors.results));
    memset(p->factors.operands, 0, (size_t)(node->num_operands + 1) * sizeof(*p->factors.operands));
    memset(p->factors.results, 0, (size_t)(node->num_results + 1) * sizeof(*p->factors.results));
    (node->op->factors ? node->op->factors : ct__factors_whole)(node, &p->factors);
}

/* Does the operand say how this dim is split? */
static bool is_decided(const placing *p, int operand, int dim)
{
    const ct_value *value = ct__value(p->l, p->node->operands[operand]);
    return !(value->free_dims & (1u << dim));
}

static bool is_linear_operand(const ct_factors *factors, int operand)
{
    return factors->linearity != CT_LINEAR_NONE && (factors->linear_operands & (1u << CT_MIN(operand, 31)));
}

/* ---- factors ---- */

/* Shares a dim's mesh axes out to its factors: the major one first, the next only when that is used up. */
static void share_out(const placing *p, const ct_sharding *sharding, int dim, const ct_dim_factors *dim_factors,
                      axis_list out[CT_MAX_SUBFACTORS])
{
    int next = 0, count = sharding->at.count[dim];
    for (int k = 0; k < dim_factors->count; k++) {
        out[k] = (axis_list){0};
        int64_t size = p->factors.sizes[(int)dim_factors->factors[k]], parts = 1;
        bool is_only = dim_factors->count == 1;
        while (next < count) {
            int axis = sharding->at.mesh_axes[dim][next];
            int64_t more = parts * p->l->mesh->axes[axis].size;
            if (!is_only && size % more) break;
            parts = more;
            out[k].axes[out[k].count++] = axis;
            next++;
        }
        if (is_only) out[k].padded = sharding->padded[dim];
        if (parts != size) next = count;
    }
}

static void find_columns(placing *p)
{
    for (int i = 0; i < p->node->num_operands; i++)
        for (int d = 0; d < p->node->operands[i]->rank; d++) {
            const ct_dim_factors *dim = &p->factors.operands[i][d];
            if (!dim->count) continue;
            ct_sharding column = ct_parallel_activation(p->l->parallel, 1, &p->node->operands[i]->axes[d]);
            for (int j = 0; j < column.at.count[0]; j++)
                p->column[(int)dim->factors[0]] |= 1u << column.at.mesh_axes[0][j];
        }
}

static void choose_lists(placing *p)
{
    const ct_mesh *mesh = p->l->mesh;
    int winner[CT_MAX_MESH_AXES];
    double best[CT_MAX_MESH_AXES] = {0};
    axis_list shares[CT_MAX_SUBFACTORS];
    for (int t = 0; t < mesh->num_axes; t++) winner[t] = -1;
    for (int pass = 0; pass < 2; pass++) /* who gets each mesh axis; then the lists */
        for (int i = 0; i < p->node->num_operands; i++) {
            const ct_tensor *operand = p->node->operands[i];
            const ct_sharding *sharding = ct__value_sharding(p->l, operand);
            double bytes = bytes_of(operand);
            for (int d = 0; d < operand->rank; d++) {
                const ct_dim_factors *dim = &p->factors.operands[i][d];
                if (!sharding->at.count[d] || !is_decided(p, i, d)) continue;
                share_out(p, sharding, d, dim, shares);
                for (int k = 0; k < dim->count; k++) {
                    int f = dim->factors[k];
                    if (p->factors.kinds[f] == CT_FACTOR_WHOLE) continue;
                    int length = 0;
                    for (; length < shares[k].count; length++) {
                        int t = shares[k].axes[length];
                        double score = bytes + ((p->column[f] & (1u << t)) ? 1e30 : 0);
                        if (pass == 0 && score > best[t]) {
                            best[t] = score;
                            winner[t] = f;
                        }
                        if (pass == 1 && winner[t] != f) break;
                    }
                    if (pass == 0 || length <= p->lists[f].count) continue;
                    bool is_cut = length < shares[k].count;
                    p->lists[f] = shares[k];
                    p->lists[f].count = length;
                    if (!is_cut) continue;
                    p->lists[f].padded = 0;
                    int64_t parts = 1;
                    for (int j = 0; j < length; j++) {
                        parts *= mesh->axes[shares[k].axes[j]].size;
                        if (p->factors.sizes[f] % parts) p->lists[f].count = CT_MIN(p->lists[f].count, j);
                    }
                }
            }
        }
}

static int64_t parts_of(const placing *p, int factor)
{
    int64_t parts = 1;
    for (int i = 0; i < p->lists[factor].count; i++) parts *= p->l->mesh->axes[p->lists[factor].axes[i]].size;
    return parts;
}

/* A minor factor of a dim may be split only when the major ones are used up, and not padded: that would be padding in
 * the midst of the dim. */
static bool clear_broken(placing *p, const ct_dim_factors *dim)
{
    bool is_full = true, changed = false;
    for (int k = 0; k < dim->count; k++) {
        int f = dim->factors[k];
        if ((!is_full || (k && p->lists[f].padded)) && p->lists[f].count) {
            p->lists[f] = (axis_list){0};
            changed = true;
        }
        is_full &= parts_of(p, f) == p->factors.sizes[f];
    }
    return changed;
}

static void make_consistent(placing *p)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = 0; i < p->node->num_operands; i++)
            for (int d = 0; d < p->node->operands[i]->rank; d++) changed |= clear_broken(p, &p->factors.operands[i][d]);
        for (int i = 0; i < p->node->num_results; i++)
            for (int d = 0; d < p->node->results[i]->rank; d++) changed |= clear_broken(p, &p->factors.results[i][d]);
    }
}

static ct_sharding sharding_of(const placing *p, int rank, const ct_dim_factors *dims)
{
    ct_sharding sharding = {0};
    for (int d = 0; d < rank; d++)
        for (int k = 0; k < dims[d].count; k++) {
            const axis_list *list = &p->lists[(int)dims[d].factors[k]];
            for (int j = 0; j < list->count; j++) sharding.at.mesh_axes[d][sharding.at.count[d]++] = list->axes[j];
            if (k == 0 && list->count) sharding.padded[d] = list->padded;
            if (k > 0) sharding.padded[d] *= p->factors.sizes[(int)dims[d].factors[k]];
        }
    return sharding;
}

static uint32_t split_axes(const placing *p)
{
    uint32_t axes = 0;
    for (int f = 0; f < p->factors.count; f++)
        for (int j = 0; j < p->lists[f].count; j++) axes |= 1u << p->lists[f].axes[j];
    return axes;
}

/* ---- partial sums ---- */

/* Which operand without the others' pending sum counts as zero on all devices but one, so that the sum may wait.
 * Numbers, because that is cheaper than to reduce the others; activations, because a placement point is ahead, where
 * the sum is scattered rather than reduced. */
static bool is_masked(const ct_tensor *tensor)
{
    return ct__num_elements(tensor) <= SMALL_ELEMENTS || tensor->rank >= ACTIVATION_RANK;
}

/* A sum is not made longer before it is sent: broadcast, padded, converted to a wider dtype. */
static bool grows(const placing *p)
{
    double before = 0, after = 0;
    for (int i = 0; i < p->node->num_operands; i++) {
        const ct_tensor *operand = p->node->operands[i];
        bool is_sum = is_linear_operand(&p->factors, i) && ct__value_sharding(p->l, operand)->partial & p->partial;
        if (is_sum) before += bytes_of(operand);
    }
    for (int i = 0; i < p->node->num_results; i++) after += bytes_of(p->node->results[i]);
    return after > before;
}

static void choose_partial(placing *p)
{
    const ct_factors *factors = &p->factors;
    const ct_node *node = p->node;
    p->partial = 0;
    if (factors->linearity == CT_LINEAR_NONE) return;
    for (int i = 0; i < node->num_operands; i++)
        if (is_linear_operand(factors, i)) p->partial |= ct__value_sharding(p->l, node->operands[i])->partial;
    p->partial &= ~split_axes(p);
    if (grows(p)) p->partial = 0;
    for (int i = 0; i < node->num_operands && p->partial; i++) {
        const ct_value *value = ct__value(p->l, node->operands[i]);
        uint32_t partial = ct__value_sharding(p->l, node->operands[i])->partial;
        if (factors->linearity == CT_LINEAR_JOINTLY) {
            if (!is_linear_operand(factors, i) || value->is_zero || is_masked(node->operands[i])) continue;
            p->partial &= partial;
        } else {
            bool is_plain = !node->operands[i]->rank || value->free_dims == (1u << node->operands[i]->rank) - 1;
            if (is_linear_operand(factors, i) && partial) {
                /* the others must be numbers that every device has, and hold no sum themselves */
                p->partial &= partial;
                for (int j = 0; j < node->num_operands; j++)
                    if (j != i) p->partial &= ~ct__value_sharding(p->l, node->operands[j])->partial;
            } else if (!is_plain) {
                p->partial = 0;
            }
        }
    }
}

/* ---- emission ---- */

/* x with the padding of a dim replaced by value. */
static ct_tensor *mask_padding(ct_tensor *x, int dim, ct_tensor *offset, int64_t size, double value)
{
    ct_graph *graph = x->graph;
    const char *axis = ct_arena_printf(&graph->arena, "%s=%lld", x->axes[dim].name, (long long)x->axes[dim].size);
    ct_tensor *position = ct_add(ct_iota(graph, CT_DTYPE_S32, axis, x->axes[dim].name), offset);
    ct_tensor *is_inside = ct_lt(position, ct_scalar_like(position, (double)size));
    return ct_select(ct_broadcast_like(is_inside, x), x, ct_scalar_like(x, value));
}

static double identity_of(ct_factor_kind kind, ct_dtype dtype)
{
    if (kind == CT_FACTOR_SUM) return 0;
    return kind == CT_FACTOR_MAX ? ct__least_of(dtype) : ct__greatest_of(dtype);
}

static const char *list_text(const placing *p, const axis_list *list)
{
    const char *text = "";
    for (int i = 0; i < list->count; i++)
        text = ct_arena_printf(&p->l->graph->arena, "%s%s%s", text, *text ? " " : "",
                               p->l->mesh->axes[list->axes[i]].name);
    return text;
}

/* The mesh axes of SUM factors that the operand lacks: each device adds its part of the others to it, so it must be a
 * summand itself (what a scatter adds to). */
static uint32_t summed_beside(const placing *p, int operand)
{
    uint32_t summed = 0;
    for (int f = 0; f < p->factors.count; f++) {
        bool has = p->factors.kinds[f] != CT_FACTOR_SUM;
        for (int d = 0; d < p->node->operands[operand]->rank; d++) {
            const ct_dim_factors *dim = &p->factors.operands[operand][d];
            for (int k = 0; k < dim->count; k++) has |= dim->factors[k] == f;
        }
        for (int j = 0; !has && j < p->lists[f].count; j++) summed |= 1u << p->lists[f].axes[j];
    }
    return summed;
}

static ct_tensor *local_operand(placing *p, ct_local *local, int operand)
{
    ct_tensor *logical = p->node->operands[operand];
    const ct_dim_factors *dims = p->factors.operands[operand];
    ct_sharding wanted = sharding_of(p, logical->rank, dims);
    if (is_linear_operand(&p->factors, operand)) {
        /* EACH: the sum is in one of them */
        bool takes_part =
            p->factors.linearity == CT_LINEAR_JOINTLY || ct__value_sharding(p->l, logical)->partial & p->partial;
        if (takes_part) wanted.partial = p->partial;
        if (p->factors.linearity == CT_LINEAR_JOINTLY) wanted.partial |= summed_beside(p, operand);
    }
    ct_tensor *x = ct__want(p->l, logical, &wanted);
    if (p->node->op->local) return x;
    for (int d = 0; d < logical->rank && !ct_tensor_is_poison(x); d++) {
        if (dims[d].count != 1) continue;
        int f = dims[d].factors[0];
        ct_factor_kind kind = p->factors.kinds[f];
        if (!p->lists[f].padded || kind == CT_FACTOR_PARALLEL || kind == CT_FACTOR_WHOLE) continue;
        x = mask_padding(x, d, ct__local_offset(local, f), p->factors.sizes[f], identity_of(kind, x->dtype));
    }
    return x;
}

static ct_tensor *reduce_extremes(placing *p, ct_tensor *x)
{
    for (int f = 0; f < p->factors.count; f++) {
        ct_factor_kind kind = p->factors.kinds[f];
        if ((kind != CT_FACTOR_MAX && kind != CT_FACTOR_MIN) || !p->lists[f].count) continue;
        x = ct_all_reduce(x, kind == CT_FACTOR_MAX ? CT_REDUCTION_MAX : CT_REDUCTION_MIN, list_text(p, &p->lists[f]));
        p->l->reason = "extreme";
        ct__note_collective(p->l, x);
    }
    return x;
}

/* Builds the local node; out_locals, out_shardings: per result. */
static void emit(placing *p, ct_tensor **out_locals, ct_sharding *out_shardings)
{
    ct_node *node = p->node;
    ct_graph *graph = p->l->graph;
    const char *mesh_axes[CT_MAX_FACTORS];
    int64_t sizes[CT_MAX_FACTORS];
    uint32_t summed = 0;
    for (int f = 0; f < p->factors.count; f++) {
        axis_list *list = &p->lists[f];
        mesh_axes[f] = list_text(p, list);
        sizes[f] = (list->padded ? list->padded : p->factors.sizes[f]) / parts_of(p, f);
        if (p->factors.kinds[f] == CT_FACTOR_SUM)
            for (int j = 0; j < list->count; j++) summed |= 1u << list->axes[j];
    }
    ct_tensor **operands = CT_ARENA_ARRAY(&graph->arena, ct_tensor *, node->num_operands + 1);
    ct_local local = {.node = node,
                      .factors = &p->factors,
                      .operands = operands,
                      .mesh_axes = mesh_axes,
                      .local_sizes = sizes,
                      .results = out_locals};
    p->l->reason = ct_arena_printf(&graph->arena, "operand of %s", node->op->name);
    for (int i = 0; i < node->num_operands; i++) operands[i] = local_operand(p, &local, i);
    for (int i = 0; i < node->num_results; i++) out_locals[i] = graph->poison;
    if (graph->error) return;
    if (node->op->local)
        node->op->local(&local);
    else
        ct__local_clone(&local, node->attrs);
    for (int i = 0; i < node->num_results && !graph->error; i++) {
        out_locals[i] = reduce_extremes(p, out_locals[i]);
        out_shardings[i] = sharding_of(p, node->results[i]->rank, p->factors.results[i]);
        out_shardings[i].partial = p->partial | summed;
    }
}

static void prepare(placing *p)
{
    rule_of(p);
    find_columns(p);
    choose_lists(p);
    make_consistent(p);
    choose_partial(p);
}

/* The dims of the only result that no operand decides. */
static uint32_t free_dims_of(const placing *p)
{
    const ct_node *node = p->node;
    if (!p->factors.repeatable || node->num_results != 1) return 0;
    uint32_t decided = 0, free_dims = 0;
    for (int i = 0; i < node->num_operands; i++)
        for (int d = 0; d < node->operands[i]->rank; d++)
            for (int k = 0; k < p->factors.operands[i][d].count; k++)
                if (is_decided(p, i, d)) decided |= 1u << p->factors.operands[i][d].factors[k];
    const ct_tensor *result = node->results[0];
    for (int d = 0; d < result->rank; d++) {
        const ct_dim_factors *dim = &p->factors.results[0][d];
        if (dim->count != 1) continue;
        int f = dim->factors[0];
        if (!(decided & (1u << f)) && p->factors.kinds[f] == CT_FACTOR_PARALLEL) free_dims |= 1u << d;
    }
    return free_dims;
}

/* Zeros stay zeros under what is linear. */
static bool is_zero(placing *p)
{
    if (ct__is_zero_constant(p->node)) return true;
    if (p->factors.linearity != CT_LINEAR_JOINTLY) return false;
    for (int i = 0; i < p->node->num_operands; i++)
        if (is_linear_operand(&p->factors, i) && !ct__value(p->l, p->node->operands[i])->is_zero) return false;
    return true;
}

void ct__place_node(ct_localizer *l, ct_node *node)
{
    placing p = {.l = l, .node = node};
    prepare(&p);
    uint32_t free_dims = free_dims_of(&p);
    bool zero = is_zero(&p);
    if (free_dims) {
        ct_sharding natural = sharding_of(&p, node->results[0]->rank, p.factors.results[0]);
        natural.partial = zero ? 0 : p.partial;
        ct__value_defer(l, node->results[0], node, &natural, free_dims, zero);
        return;
    }
    ct_tensor **locals = CT_ARENA_ARRAY(&l->graph->arena, ct_tensor *, node->num_results + 1);
    ct_sharding *shardings = CT_ARENA_ARRAY(&l->graph->arena, ct_sharding, node->num_results + 1);
    emit(&p, locals, shardings);
    for (int i = 0; i < node->num_results && !l->graph->error; i++) {
        ct__value_set(l, node->results[i], locals[i], &shardings[i]);
        ct__value(l, node->results[i])->is_zero = zero;
    }
}

void ct__place_deferred(ct_localizer *l, ct_node *node, const ct_tensor *result, const ct_sharding *target)
{
    placing p = {.l = l, .node = node};
    rule_of(&p);
    find_columns(&p);
    choose_lists(&p);
    uint32_t free_dims = ct__value(l, result)->free_dims;
    for (int d = 0; d < result->rank; d++) {
        if (!(free_dims & (1u << d))) continue;
        axis_list *list = &p.lists[(int)p.factors.results[0][d].factors[0]];
        list->count = target->at.count[d];
        for (int j = 0; j < list->count; j++) list->axes[j] = target->at.mesh_axes[d][j];
        list->padded = target->padded[d];
    }
    make_consistent(&p);
    choose_partial(&p);
    bool zero = ct__value(l, result)->is_zero;
    if (zero) p.partial = 0; /* zeros are right as summands */
    const char *loc = l->graph->loc_override, *scope = l->graph->scope;
    l->graph->loc_override = node->loc;
    l->graph->scope = node->scope;
    ct_tensor *local = NULL;
    ct_sharding sharding = {0};
    emit(&p, &local, &sharding);
    l->graph->loc_override = loc;
    l->graph->scope = scope;
    if (l->graph->error) return;
    ct__value_add(l, result, local, &sharding);
}
