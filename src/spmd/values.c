/* What is known of each logical tensor while the program is made local. */
#include "spmd/localizer.h"

#include <string.h>

#include "base/alloc.h"
#include "graph/constant.h"
#include "graph/shape.h"

ct_value *ct__value(ct_localizer *l, const ct_tensor *tensor)
{
    if (tensor->id >= l->num_values) {
        int count = CT_MAX(tensor->id + 1, l->num_values * 2);
        l->values = ct_realloc(l->values, (size_t)count * sizeof(*l->values));
        memset(l->values + l->num_values, 0, (size_t)(count - l->num_values) * sizeof(*l->values));
        l->num_values = count;
    }
    ct_value **value = &l->values[tensor->id];
    if (!*value) *value = CT_ARENA_NEW(&l->graph->arena, ct_value);
    return *value;
}

static void add_version(ct_localizer *l, ct_value *value, ct_tensor *local, const ct_sharding *sharding)
{
    ct_version *version = CT_ARENA_NEW(&l->graph->arena, ct_version);
    *version = (ct_version){.next = value->versions, .local = local, .sharding = *sharding};
    value->versions = version;
}

void ct__value_add(ct_localizer *l, const ct_tensor *tensor, ct_tensor *local, const ct_sharding *sharding)
{
    add_version(l, ct__value(l, tensor), local, sharding);
}

void ct__value_set(ct_localizer *l, const ct_tensor *tensor, ct_tensor *local, const ct_sharding *sharding)
{
    ct_value *value = ct__value(l, tensor);
    *value = (ct_value){.natural = *sharding};
    add_version(l, value, local, sharding);
}

void ct__value_defer(ct_localizer *l, const ct_tensor *tensor, ct_node *node, const ct_sharding *natural,
                     uint32_t free_dims, bool is_zero)
{
    *ct__value(l, tensor) =
        (ct_value){.natural = *natural, .deferred = node, .free_dims = free_dims, .is_zero = is_zero};
}

void ct__value_unknown(ct_localizer *l, const ct_tensor *tensor, bool is_zero)
{
    *ct__value(l, tensor) = (ct_value){.free_dims = (1u << tensor->rank) - 1, .is_zero = is_zero, .is_unknown = true};
}

/* Is the tensor's region the current one or around it? */
static bool is_visible(const ct_localizer *l, const ct_tensor *local)
{
    for (const ct_region *r = l->graph->region; r; r = r->parent)
        if (r == local->region) return true;
    return false;
}

ct_sharding ct__summed(const ct_sharding *sharding)
{
    ct_sharding summed = *sharding;
    summed.partial = 0;
    return summed;
}

const ct_sharding *ct__value_sharding(ct_localizer *l, const ct_tensor *tensor)
{
    const ct_value *value = ct__value(l, tensor);
    if (!value->natural.partial) return &value->natural;
    for (const ct_version *version = value->versions; version; version = version->next)
        if (!version->sharding.partial && is_visible(l, version->local)) return &version->sharding;
    return &value->natural;
}

void ct__local_type(const ct_localizer *l, const ct_tensor *tensor, const ct_sharding *sharding, ct_axis *out_axes)
{
    for (int i = 0; i < tensor->rank; i++) {
        out_axes[i] = tensor->axes[i];
        out_axes[i].size = ct_sharding_local_size(l->mesh, sharding, i, tensor->axes[i].size);
    }
}

/* natural with the free dims split as wanted says. */
static ct_sharding with_free_dims(const ct_value *value, int rank, const ct_sharding *wanted)
{
    ct_sharding target = value->natural;
    uint32_t used = value->natural.partial;
    for (int i = 0; i < rank; i++)
        if (!(value->free_dims & (1u << i)))
            for (int j = 0; j < target.at.count[i]; j++) used |= 1u << target.at.mesh_axes[i][j];
    for (int i = 0; i < rank; i++) {
        if (!(value->free_dims & (1u << i))) continue;
        bool is_taken = false;
        for (int j = 0; j < wanted->at.count[i]; j++) is_taken |= (used & (1u << wanted->at.mesh_axes[i][j])) != 0;
        target.at.count[i] = is_taken ? 0 : wanted->at.count[i];
        memcpy(target.at.mesh_axes[i], wanted->at.mesh_axes[i], sizeof(target.at.mesh_axes[i]));
        target.padded[i] = is_taken ? 0 : wanted->padded[i];
    }
    return target;
}

static const ct_version *cheapest(const ct_localizer *l, const ct_value *value, const ct_tensor *type,
                                  const ct_sharding *wanted)
{
    const ct_version *best = NULL;
    double best_cost = 0;
    for (const ct_version *version = value->versions; version; version = version->next) {
        if (!is_visible(l, version->local)) continue;
        double cost = ct__reshard_cost(l, type, &version->sharding, wanted);
        if (best && cost >= best_cost) continue;
        best = version;
        best_cost = cost;
    }
    return best;
}

ct_tensor *ct__want(ct_localizer *l, ct_tensor *tensor, const ct_sharding *wanted)
{
    ct_graph *graph = l->graph;
    if (graph->error) return graph->poison;
    ct_value *value = ct__value(l, tensor);
    if (value->is_unknown) {
        ct_axis axes[CT_MAX_RANK];
        ct__local_type(l, tensor, wanted, axes);
        return ct__broadcast_to(CT_LOC, ct_scalar(graph, tensor->dtype, 0), tensor->rank, axes);
    }
    ct_sharding without = ct__summed(wanted); /* zeros are summands as they are */
    if (value->is_zero) wanted = &without;
    const ct_version *source = cheapest(l, value, tensor, wanted);
    if (source && ct_sharding_equal(&source->sharding, wanted)) return source->local;
    if (value->deferred) {
        ct_sharding target = with_free_dims(value, tensor->rank, wanted);
        if (!source ||
            ct__reshard_cost(l, tensor, &target, wanted) < ct__reshard_cost(l, tensor, &source->sharding, wanted)) {
            const char *reason = l->reason;
            ct__place_deferred(l, value->deferred, tensor, &target);
            l->reason = reason;
            source = cheapest(l, value, tensor, wanted);
            if (graph->error) return graph->poison;
        }
    }
    if (!source) CT_BUG("%s has no version here", ct_tensor_describe(tensor));
    if (ct_sharding_equal(&source->sharding, wanted)) return source->local;
    /* where the source is: what a loop captures is moved once, before it */
    ct_insertion saved = {graph->region, graph->insert_before};
    graph->region = source->local->region;
    graph->insert_before = NULL;
    ct_tensor *local = ct__reshard(l, source->local, tensor, &source->sharding, wanted);
    ct__region_leave(graph, saved);
    add_version(l, value, local, wanted);
    return local;
}
