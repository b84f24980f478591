/* Ops with regions: a scan stays a scan of local turns, a branch a branch; calls are inlined, manual regions too, since
 * they are local already.
 *
 * The sharding of a scan's carries is that of their initial values. Where an initial value can be anything (zeros), it
 * is that of the body's results: the body is made once on the side to see them, and again in earnest.
 *
 *   prefetch: a weight that the body uses is gathered one turn ahead and carried
 *     before       slice(w, first) -> gather = carry
 *     in turn i    uses the carry;  slice(w, i + 1) -> gather = next carry
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/call.h"
#include "graph/collectives.h"
#include "graph/constant.h"
#include "graph/convert.h"
#include "graph/custom_vjp.h"
#include "graph/function.h"
#include "graph/group.h"
#include "graph/manual.h"
#include "graph/placement.h"
#include "graph/scan.h"
#include "graph/shape.h"
#include "graph/slice.h"
#include "spmd/localizer.h"

/* The sharding of a slice of a stacked tensor, and back. */
static ct_sharding without_first(const ct_sharding *stacked)
{
    ct_sharding slice = {.partial = stacked->partial};
    for (int i = 1; i < CT_MAX_RANK; i++) {
        slice.at.count[i - 1] = stacked->at.count[i];
        memcpy(slice.at.mesh_axes[i - 1], stacked->at.mesh_axes[i], sizeof(slice.at.mesh_axes[0]));
        slice.padded[i - 1] = stacked->padded[i];
    }
    return slice;
}

static ct_sharding with_first(const ct_sharding *slice)
{
    ct_sharding stacked = {.partial = slice->partial};
    for (int i = 1; i < CT_MAX_RANK; i++) {
        stacked.at.count[i] = slice->at.count[i - 1];
        memcpy(stacked.at.mesh_axes[i], slice->at.mesh_axes[i - 1], sizeof(stacked.at.mesh_axes[0]));
        stacked.padded[i] = slice->padded[i - 1];
    }
    return stacked;
}

/* The first dim whole, nothing pending. */
static ct_sharding scannable(const ct_sharding *stacked)
{
    ct_sharding sharding = ct__summed(stacked);
    sharding.at.count[0] = 0;
    sharding.padded[0] = 0;
    return sharding;
}

static ct_tensor *add_arg(ct_localizer *l, ct_region *region, const ct_tensor *logical, const ct_sharding *sharding)
{
    ct_axis axes[CT_MAX_RANK];
    ct__local_type(l, logical, sharding, axes);
    return ct__region_add_arg(region, logical->dtype, logical->rank, axes);
}

/* ---- scan ---- */

/* A weight gathered ahead. */
typedef struct ahead {
    int input;          /* of the scan */
    const ct_node *use; /* the first such use in the body; others of the same dtype share it */
    ct_sharding used;
    ct_tensor *initial, *carry, *slice;
} ahead;

typedef struct scan_placing {
    ct_node *node;
    const ct_scan_attrs *attrs;
    const ct_region *body;
    int num_outputs;
    ct_sharding *carries, *inputs; /* inputs: stacked */
    bool *is_open;                 /* carries whose sharding the body decides */
    ahead *aheads;
    int num_aheads;
} scan_placing;

static bool is_open_carry(ct_localizer *l, const ct_tensor *initial)
{
    const ct_value *value = ct__value(l, initial);
    uint32_t all = (1u << initial->rank) - 1;
    return value->is_unknown || (value->is_zero && value->free_dims == all) ||
           (initial->rank && value->free_dims == all);
}

static void run_body(ct_localizer *l, const scan_placing *s)
{
    const char *scope = l->graph->scope, *loc = l->graph->loc_override;
    ct__localize_nodes(l, s->body->first);
    l->graph->scope = scope;
    l->graph->loc_override = loc;
}

/* The shardings of open carries, from a body that is thrown away. */
static void find_open_carries(ct_localizer *l, scan_placing *s)
{
    bool any = false;
    int num_carries = s->attrs->num_carries;
    for (int i = 0; i < num_carries; i++) any |= s->is_open[i];
    if (!any) return;
    ct_region *scratch = ct__region_new(l->graph, l->graph->region);
    for (int i = 0; i < num_carries; i++) {
        ct_tensor *arg = s->body->args[i];
        if (s->is_open[i])
            ct__value_unknown(l, arg, ct__value(l, s->node->operands[i])->is_zero);
        else
            ct__value_set(l, arg, add_arg(l, scratch, arg, &s->carries[i]), &s->carries[i]);
    }
    for (int i = 0; i < s->attrs->num_inputs; i++) {
        ct_tensor *arg = s->body->args[num_carries + i];
        ct_sharding slice = without_first(&s->inputs[i]);
        ct__value_set(l, arg, add_arg(l, scratch, arg, &slice), &slice);
    }
    ct_insertion saved = ct__region_enter(scratch);
    l->trial++;
    run_body(l, s);
    for (int i = 0; i < num_carries && !l->graph->error; i++) {
        if (!s->is_open[i]) continue;
        ct_tensor *result = s->body->results[i];
        const ct_value *initial = ct__value(l, s->node->operands[i]);
        s->carries[i] = *ct__value_sharding(l, result);
        if (!initial->is_zero) s->carries[i].partial = 0;
    }
    l->trial--;
    ct__region_leave(l->graph, saved);
}

/* Is the input's slice used by a gather in the body? */
static void find_aheads(ct_localizer *l, scan_placing *s)
{
    int num_carries = s->attrs->num_carries;
    if (l->parallel->prefetch < 1 || s->attrs->axis.size < 2 || l->trial) return;
    s->aheads = CT_ARENA_ARRAY(&l->graph->arena, ahead, s->attrs->num_inputs + 1);
    for (const ct_node *use = s->body->first; use; use = use->next) {
        if (!ct__is_use(use) || use->operands[0]->node || use->operands[0]->region != s->body) continue;
        if (use->results[0]->id < l->num_live && !l->live[use->results[0]->id]) continue;
        int input = use->operands[0]->index - num_carries;
        if (input < 0) continue;
        const ct_tensor *result = use->results[0];
        ct_sharding stored = without_first(&s->inputs[input]);
        ct_sharding used = ct_parallel_used(l->parallel, result->rank, result->axes);
        if (ct__reshard_cost(l, result, &stored, &used) < 1) continue; /* nothing to gather */
        bool is_known = false;
        for (int i = 0; i < s->num_aheads; i++) is_known |= s->aheads[i].input == input;
        if (!is_known) s->aheads[s->num_aheads++] = (ahead){.input = input, .use = use};
    }
}

static ct_tensor *gather_slice(ct_localizer *l, const scan_placing *s, ahead *a, ct_tensor *slice)
{
    ct_sharding stored = without_first(&s->inputs[a->input]);
    const char *scope = l->graph->scope, *loc = l->graph->loc_override;
    l->graph->scope = a->use->scope;
    l->graph->loc_override = a->use->loc;
    ct_tensor *gathered = ct__gather_used(l, a->use, slice, &stored, &a->used);
    l->graph->scope = scope;
    l->graph->loc_override = loc;
    return gathered;
}

/* A turn with its arguments and results; operands gets carries, aheads' carries, inputs, aheads' inputs. */
static ct_region *make_body(ct_localizer *l, scan_placing *s, ct_tensor **operands, ct_sharding *outputs)
{
    ct_graph *graph = l->graph;
    int num_carries = s->attrs->num_carries, num_inputs = s->attrs->num_inputs, count = 0;
    for (int i = 0; i < num_carries; i++) operands[count++] = ct__want(l, s->node->operands[i], &s->carries[i]);
    ct_tensor **stacked = CT_ARENA_ARRAY(&graph->arena, ct_tensor *, num_inputs + 1);
    for (int i = 0; i < num_inputs; i++) stacked[i] = ct__want(l, s->node->operands[num_carries + i], &s->inputs[i]);
    if (graph->error) return NULL;
    for (int i = 0; i < s->num_aheads; i++) {
        ct_tensor *whole = stacked[s->aheads[i].input];
        const char *axis = whole->axes[0].name;
        int64_t first = s->attrs->reverse ? whole->axes[0].size - 1 : 0;
        ct_tensor *slice = ct_squeeze(ct_slice(whole, axis, first, first + 1), axis);
        operands[count++] = gather_slice(l, s, &s->aheads[i], slice);
    }
    for (int i = 0; i < num_inputs; i++) operands[count++] = stacked[i];
    for (int i = 0; i < s->num_aheads; i++) operands[count++] = stacked[s->aheads[i].input];

    ct_region *region = ct__region_new(graph, graph->region);
    for (int i = 0; i < num_carries; i++) {
        ct_tensor *arg = s->body->args[i];
        ct__value_set(l, arg, add_arg(l, region, arg, &s->carries[i]), &s->carries[i]);
    }
    for (int i = 0; i < s->num_aheads; i++)
        s->aheads[i].carry = ct__region_add_arg(region, operands[num_carries + i]->dtype,
                                                operands[num_carries + i]->rank, operands[num_carries + i]->axes);
    for (int i = 0; i < num_inputs; i++) {
        ct_tensor *arg = s->body->args[num_carries + i];
        ct_sharding slice = without_first(&s->inputs[i]);
        ct__value_set(l, arg, add_arg(l, region, arg, &slice), &slice);
        const ct_sharding *store = ct__value(l, s->node->operands[num_carries + i])->store;
        if (store) {
            ct_sharding stored = without_first(store);
            ct__value(l, arg)->store = ct_arena_dup(&graph->arena, &stored, sizeof(stored));
        }
    }
    for (int i = 0; i < s->num_aheads; i++) {
        ct_sharding slice = without_first(&s->inputs[s->aheads[i].input]);
        s->aheads[i].slice = add_arg(l, region, s->body->args[num_carries + s->aheads[i].input], &slice);
    }

    ct_insertion saved = ct__region_enter(region);
    for (int i = 0; i < s->num_aheads; i++) { /* first, so that it may run beside all of the turn */
        ahead *a = &s->aheads[i];
        a->initial = gather_slice(l, s, a, a->slice);
        ct__value(l, s->body->args[num_carries + a->input])->ahead = a->carry;
        ct__value(l, s->body->args[num_carries + a->input])->ahead_sharding = &a->used;
    }
    run_body(l, s);
    for (int i = 0; i < num_carries && !graph->error; i++) {
        l->reason = "carry of a loop";
        ct__region_add_result(region, ct__want(l, s->body->results[i], &s->carries[i]));
    }
    for (int i = 0; i < s->num_aheads && !graph->error; i++) ct__region_add_result(region, s->aheads[i].initial);
    for (int i = 0; i < s->num_outputs && !graph->error; i++) {
        ct_tensor *result = s->body->results[num_carries + i];
        outputs[i] = *ct__value_sharding(l, result);
        ct__region_add_result(region, ct__want(l, result, &outputs[i]));
    }
    ct__region_leave(graph, saved);
    return region;
}

static void place_scan(ct_localizer *l, ct_node *node)
{
    ct_graph *graph = l->graph;
    const ct_scan_attrs *attrs = node->attrs;
    scan_placing s = {.node = node, .attrs = attrs, .body = node->regions[0]};
    s.num_outputs = node->num_results - attrs->num_carries;
    s.carries = CT_ARENA_ARRAY(&graph->arena, ct_sharding, attrs->num_carries + 1);
    s.inputs = CT_ARENA_ARRAY(&graph->arena, ct_sharding, attrs->num_inputs + 1);
    s.is_open = CT_ARENA_ARRAY(&graph->arena, bool, attrs->num_carries + 1);
    for (int i = 0; i < attrs->num_carries; i++) {
        s.is_open[i] = is_open_carry(l, node->operands[i]);
        s.carries[i] = ct__summed(ct__value_sharding(l, node->operands[i]));
    }
    for (int i = 0; i < attrs->num_inputs; i++)
        s.inputs[i] = scannable(ct__value_sharding(l, node->operands[attrs->num_carries + i]));
    find_open_carries(l, &s);
    if (graph->error) return;
    find_aheads(l, &s);

    int capacity = attrs->num_carries + attrs->num_inputs + 2 * s.num_aheads + 1;
    ct_tensor **operands = CT_ARENA_ARRAY(&graph->arena, ct_tensor *, capacity);
    ct_sharding *outputs = CT_ARENA_ARRAY(&graph->arena, ct_sharding, s.num_outputs + 1);
    l->reason = "operand of a loop";
    ct_region *region = make_body(l, &s, operands, outputs);
    if (graph->error) return;
    ct_scan_attrs local = *attrs;
    local.num_carries += s.num_aheads;
    local.num_inputs += s.num_aheads;
    local.num_ahead = s.num_aheads;
    ct_node *made = ct__scan_node(graph, node->loc, &local, region, operands);
    for (int i = 0; i < attrs->num_carries; i++) ct__value_set(l, node->results[i], made->results[i], &s.carries[i]);
    for (int i = 0; i < s.num_outputs; i++) {
        ct_sharding stacked = with_first(&outputs[i]);
        ct__value_set(l, node->results[attrs->num_carries + i], made->results[local.num_carries + i], &stacked);
    }
}

/* ---- cond ---- */

static void place_cond(ct_localizer *l, ct_node *node)
{
    ct_graph *graph = l->graph;
    ct_sharding whole = {0};
    l->reason = "predicate";
    ct_tensor *predicate = ct__want(l, node->operands[0], &whole);
    ct_sharding *results = CT_ARENA_ARRAY(&graph->arena, ct_sharding, node->num_results + 1);
    ct_region *regions[2];
    for (int b = 0; b < 2; b++) {
        const ct_region *branch = node->regions[b];
        regions[b] = ct__region_new(graph, graph->region);
        ct_insertion saved = ct__region_enter(regions[b]);
        ct__localize_nodes(l, branch->first);
        for (int i = 0; i < branch->num_results && !graph->error; i++) {
            if (b == 0) results[i] = ct__summed(ct__value_sharding(l, branch->results[i]));
            l->reason = "result of a branch";
            ct__region_add_result(regions[b], ct__want(l, branch->results[i], &results[i]));
        }
        ct__region_leave(graph, saved);
        if (graph->error) return;
    }
    const ct_node *made = ct__cond_node(graph, node->loc, predicate, regions[0], regions[1]);
    for (int i = 0; i < node->num_results; i++) ct__value_set(l, node->results[i], made->results[i], &results[i]);
}

/* ---- calls, manual regions, loops of unknown length ---- */

/* The function's nodes, copied as logical ones and made local here. */
static void place_call(ct_localizer *l, ct_node *node)
{
    ct_region *original = ct__node_function(node)->region, *copy = ct__region_new(l->graph, node->region);
    ct_tensor_map map = {0};
    for (int i = 0; i < original->num_args; i++) ct__map_set(&map, original->args[i], node->operands[i]);
    ct_insertion saved = ct__region_enter(copy);
    ct__region_inline(original, &map);
    ct__region_leave(l->graph, saved);
    ct__localize_nodes(l, copy->first);
    for (int i = 0; i < node->num_results && !l->graph->error; i++) {
        const ct_tensor *result = ct__map_get(&map, original->results[i]);
        ct_value *value = ct__value(l, node->results[i]);
        *value = *ct__value(l, result ? result : original->results[i]);
    }
    ct__map_free(&map);
}

/* A pending sum is left to who wants it; adds its mesh axes to the sharding. */
static const ct_tensor *summand_of(const ct_localizer *l, const ct_tensor *result, ct_sharding *sharding)
{
    if (!result->node || !ct__is_pending_sum(result->node)) return result;
    ct_collective_info info;
    int mesh_axes[CT_MAX_RANK], count;
    if (!ct__collective_info(result->node, &info) ||
        !ct__parse_mesh_axes(l->graph, CT_LOC, "manual", info.mesh_axes, mesh_axes, &count))
        return result;
    for (int i = 0; i < count; i++) sharding->partial |= 1u << mesh_axes[i];
    return result->node->operands[0];
}

static void place_manual(ct_localizer *l, ct_node *node)
{
    const ct_manual_attrs *attrs = node->attrs;
    ct_region *body = node->regions[0];
    ct_tensor_map map = {0};
    l->reason = "operand of a manual region";
    for (int i = 0; i < node->num_operands; i++) {
        ct_sharding wanted = {.at = attrs->inputs[i]};
        ct__map_set(&map, body->args[i], ct__want(l, node->operands[i], &wanted));
    }
    if (!l->graph->error) ct__region_inline(body, &map);
    for (int i = 0; i < node->num_results && !l->graph->error; i++) {
        ct_sharding sharding = {.at = attrs->outputs[i]};
        const ct_tensor *result = summand_of(l, body->results[i], &sharding);
        ct__value_set(l, node->results[i], ct__map_get(&map, result), &sharding);
    }
    ct__map_free(&map);
}

/* Any other op with regions: on whole operands, as it is. */
static void place_whole(ct_localizer *l, ct_node *node)
{
    ct_sharding whole = {0};
    ct_tensor_map map = {0};
    l->reason = ct_arena_printf(&l->graph->arena, "operand of %s", node->op->name);
    for (int i = 0; i < node->num_operands; i++)
        ct__map_set(&map, node->operands[i], ct__want(l, node->operands[i], &whole));
    if (!l->graph->error) {
        const ct_node *made = ct__node_clone(node, &map);
        for (int i = 0; i < node->num_results; i++) ct__value_set(l, node->results[i], made->results[i], &whole);
    }
    ct__map_free(&map);
}

/* Every value passes through as it is. */
static void place_barrier(ct_localizer *l, ct_node *node)
{
    ct_arena *arena = &l->graph->arena;
    ct_tensor **locals = CT_ARENA_ARRAY(arena, ct_tensor *, node->num_operands + 1);
    ct_sharding *shardings = CT_ARENA_ARRAY(arena, ct_sharding, node->num_operands + 1);
    for (int i = 0; i < node->num_operands; i++) {
        shardings[i] = *ct__value_sharding(l, node->operands[i]);
        locals[i] = ct__want(l, node->operands[i], &shardings[i]);
    }
    if (l->graph->error) return;
    ct__optimization_barrier(node->loc, node->num_operands, locals, locals);
    for (int i = 0; i < node->num_results; i++) {
        const ct_sharding *store = ct__value(l, node->operands[i])->store;
        ct__value_set(l, node->results[i], locals[i], &shardings[i]);
        ct__value(l, node->results[i])->store = store;
    }
}

bool ct__place_region_node(ct_localizer *l, ct_node *node)
{
    if (node->op == &ct__op_scan)
        place_scan(l, node);
    else if (node->op == &ct__op_cond)
        place_cond(l, node);
    else if (node->op == &ct__op_manual)
        place_manual(l, node);
    else if (node->op == &ct__op_barrier)
        place_barrier(l, node);
    else if (ct__node_function(node))
        place_call(l, node);
    else if (node->num_regions)
        place_whole(l, node);
    else
        return false;
    return true;
}
