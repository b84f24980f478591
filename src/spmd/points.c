/* The markers use, store, shard and padded: their derivatives, how they print for Shardy, and their local forms. */
#include "spmd/points.h"

#include "graph/convert.h"
#include "graph/placement.h"
#include "spmd/localizer.h"

static void print_constraint(ct_printer *p, const ct_node *node, int value, ct_dtype dtype, int name,
                             const ct_sharding *sharding)
{
    ct_tensor type = *node->results[0];
    type.dtype = dtype;
    ct__print_line(p);
    ct__print(p, "%%%d = sdy.sharding_constraint %%%d ", name, value);
    ct__print_placement(p, &sharding->at, type.rank);
    ct_str_append(p->out, " : ");
    ct__print_type(p, &type);
    ct__print_loc(p, node);
}

/* %name = the value in another dtype; the value itself when it has it */
static int print_convert(ct_printer *p, const ct_node *node, int value, ct_dtype from, ct_dtype to)
{
    if (from == to) return value;
    ct_tensor source = *node->results[0], target = source;
    source.dtype = from;
    target.dtype = to;
    int name = ct__print_new_name(p);
    ct__print_line(p);
    ct__print(p, "%%%d = \"stablehlo.convert\"(%%%d) : (", name, value);
    ct__print_type(p, &source);
    ct_str_append(p->out, ") -> ");
    ct__print_type(p, &target);
    ct__print_loc(p, node);
    return name;
}

static int name_of(const ct_printer *p, const ct_tensor *tensor)
{
    return p->names[tensor->id];
}

/* ---- use ---- */

static void print_use(ct_printer *p, const ct_node *node)
{
    const ct_tensor *param = node->operands[0], *result = node->results[0];
    ct_sharding used = ct_parallel_used(ct_parallel_of(p->graph), result->rank, result->axes);
    int value = print_convert(p, node, name_of(p, param), param->dtype, result->dtype), name = ct__print_new_name(p);
    print_constraint(p, node, value, result->dtype, name, &used);
    ct__print_bind(p, result, name);
}

static void vjp_use(ct_node *node, ct_tensor *const *cotangents, ct_tensor **gradients);

const ct_op ct__op_use = {.name = "ctitan.use", .print = print_use, .vjp = vjp_use, .cheap = true};
/* fsdp_reshard_after_forward = "never": what was gathered is kept for the backward pass, whatever the remat policy */
const ct_op ct__op_use_kept = {.name = "ctitan.use", .print = print_use, .vjp = vjp_use, .always_saved = true};

bool ct__is_use(const ct_node *node)
{
    return node->op == &ct__op_use || node->op == &ct__op_use_kept;
}

ct_tensor *ct__use(const char *loc, ct_tensor *param, ct_dtype dtype)
{
    if (ct__any_poison(1, &param)) return param->graph->poison;
    const ct_parallel *parallel = ct_parallel_of(param->graph);
    if (!parallel) return ct__convert(loc, param, dtype);
    bool is_kept = parallel->reshard_after_forward == CT_RESHARD_NEVER;
    ct_node *node = ct__node_new(param->graph, is_kept ? &ct__op_use_kept : &ct__op_use, loc, 1, &param);
    return ct__result(node, dtype, param->rank, param->axes);
}

/* ---- store ---- */

static void print_store(ct_printer *p, const ct_node *node)
{
    const ct_tensor *gradient = node->operands[0], *result = node->results[0];
    const ct_parallel *parallel = ct_parallel_of(p->graph);
    ct_sharding stored = ct_parallel_gradient(parallel, result->rank, result->axes);
    int value = print_convert(p, node, name_of(p, gradient), gradient->dtype, parallel->reduce_dtype);
    int name = ct__print_new_name(p);
    print_constraint(p, node, value, parallel->reduce_dtype, name, &stored);
    ct__print_bind(p, result, print_convert(p, node, name, parallel->reduce_dtype, result->dtype));
}

static void vjp_store(ct_node *node, ct_tensor *const *cotangents, ct_tensor **gradients)
{
    gradients[0] = ct_use(cotangents[0], node->operands[0]->dtype);
}

const ct_op ct__op_store = {.name = "ctitan.store", .print = print_store, .vjp = vjp_store};
/* Inside a microbatch whose gradients are reduced after the last one. */
const ct_op ct__op_store_later = {.name = "ctitan.store_later", .print = print_store, .vjp = vjp_store};

static ct_tensor *store(const char *loc, const ct_op *op, ct_tensor *gradient, ct_tensor *param)
{
    ct_tensor *operands[2] = {gradient, param};
    if (ct__any_poison(2, operands)) return param->graph->poison;
    if (!ct_parallel_of(param->graph)) return ct__convert(loc, gradient, param->dtype);
    return ct__result_like(ct__node_new(param->graph, op, loc, 2, operands), param);
}

ct_tensor *ct__store(const char *loc, ct_tensor *gradient, ct_tensor *param)
{
    return store(loc, &ct__op_store, gradient, param);
}

static void vjp_use(ct_node *node, ct_tensor *const *cotangents, ct_tensor **gradients)
{
    const ct_parallel *parallel = ct_parallel_of(node->graph);
    gradients[0] =
        store(CT_LOC, parallel->reduce_once ? &ct__op_store_later : &ct__op_store, cotangents[0], node->operands[0]);
}

/* ---- shard ---- */

static void print_shard(ct_printer *p, const ct_node *node)
{
    const ct_tensor *result = node->results[0];
    ct_sharding sharding;
    ct_parallel_point(ct_parallel_of(p->graph), node->attrs, result->rank, result->axes, &sharding);
    int name = ct__print_new_name(p);
    print_constraint(p, node, name_of(p, node->operands[0]), result->dtype, name, &sharding);
    ct__print_bind(p, result, name);
}

static void vjp_shard(ct_node *node, ct_tensor *const *cotangents, ct_tensor **gradients)
{
    gradients[0] = ct_shard(cotangents[0], node->attrs);
}

const ct_op ct__op_shard = {.name = "ctitan.shard", .print = print_shard, .vjp = vjp_shard, .cheap = true};

ct_tensor *ct__shard(const char *loc, ct_tensor *x, const char *point)
{
    if (ct__any_poison(1, &x)) return x->graph->poison;
    const ct_parallel *parallel = ct_parallel_of(x->graph);
    ct_sharding sharding;
    if (!parallel || !ct_parallel_point(parallel, point, x->rank, x->axes, &sharding)) return x;
    ct_node *node = ct__node_new(x->graph, &ct__op_shard, loc, 1, &x);
    node->attrs = (void *)(uintptr_t)ct__intern_z(x->graph, point);
    return ct__result_like(node, x);
}

/* ---- padded and unpadded: the same parts under another size ---- */

static const ct_op op_padded = {.name = "ctitan.padded"}, op_unpadded = {.name = "ctitan.unpadded"};

ct_tensor *ct__padded(const char *loc, ct_tensor *x)
{
    const ct_parallel *parallel = ct_parallel_of(x->graph);
    if (ct__any_poison(1, &x) || !parallel) return x;
    ct_sharding used = ct_parallel_used(parallel, x->rank, x->axes);
    ct_axis axes[CT_MAX_RANK];
    bool is_padded = false;
    for (int i = 0; i < x->rank; i++) {
        axes[i] = x->axes[i];
        if (!used.padded[i]) continue;
        axes[i].size = used.padded[i];
        is_padded = true;
    }
    return is_padded ? ct__result(ct__node_new(x->graph, &op_padded, loc, 1, &x), x->dtype, x->rank, axes) : x;
}

ct_tensor *ct__unpadded(const char *loc, ct_tensor *x, ct_tensor *like)
{
    if (ct__any_poison(2, (ct_tensor *[]){x, like})) return x->graph->poison;
    bool is_same = true;
    for (int i = 0; i < x->rank; i++) is_same &= x->axes[i].size == like->axes[i].size;
    if (is_same) return x;
    return ct__result(ct__node_new(x->graph, &op_unpadded, loc, 1, &x), x->dtype, like->rank, like->axes);
}

/* ---- local forms ---- */

static void place_padding(ct_localizer *l, const ct_node *node)
{
    bool pads = node->op == &op_padded;
    ct_tensor *x = node->operands[0], *result = node->results[0];
    const ct_tensor *smaller = pads ? x : result;
    ct_sharding padded = ct_parallel_used(l->parallel, smaller->rank, smaller->axes), even = padded;
    for (int i = 0; i < smaller->rank; i++) even.padded[i] = 0;
    if (!pads) padded.partial = even.partial = ct__value_sharding(l, x)->partial;
    l->reason = "padding";
    ct_tensor *local = ct__want(l, x, pads ? &padded : &even);
    ct__value_set(l, result, local, pads ? &even : &padded);
}

ct_tensor *ct__gather_used(ct_localizer *l, const ct_node *use, ct_tensor *local, const ct_sharding *stored,
                           ct_sharding *out_used)
{
    const ct_tensor *result = use->results[0];
    *out_used = ct_parallel_used(l->parallel, result->rank, result->axes);
    l->reason = "use";
    return ct__reshard(l, ct_convert(local, result->dtype), result, stored, out_used);
}

static void place_store(ct_localizer *l, const ct_node *node)
{
    ct_tensor *gradient = node->operands[0], *result = node->results[0];
    ct_sharding from = *ct__value_sharding(l, gradient), to;
    const ct_sharding *stored = ct__value(l, node->operands[1])->store;
    to = stored ? *stored : ct_parallel_gradient(l->parallel, result->rank, result->axes);
    l->reason = "gradient";
    ct_tensor *local = ct__want(l, gradient, &from);
    if (node->op == &ct__op_store_later) {
        to = from;
    } else {
        /* on the wire in the reduce dtype, and only what is still to be reduced */
        if (from.partial) local = ct_convert(local, l->parallel->reduce_dtype);
        ct_tensor type = *result;
        type.dtype = local->dtype;
        local = ct__reshard(l, local, &type, &from, &to);
    }
    ct__value_set(l, result, ct_convert(local, result->dtype), &to);
}

bool ct__place_point(ct_localizer *l, ct_node *node)
{
    ct_tensor *x = node->operands[0], *result = node->results[0];
    if (node->op == &ct__op_shard) {
        ct_sharding sharding;
        ct_parallel_point(l->parallel, node->attrs, x->rank, x->axes, &sharding);
        l->reason = ct_arena_printf(&l->graph->arena, "point %s", (const char *)node->attrs);
        ct__value_set(l, result, ct__want(l, x, &sharding), &sharding);
    } else if (ct__is_use(node)) {
        const ct_value *value = ct__value(l, x);
        if (value->ahead && value->ahead->dtype == result->dtype) {
            ct__value_set(l, result, value->ahead, value->ahead_sharding);
            return true;
        }
        ct_sharding stored = *ct__value_sharding(l, x), used;
        ct_tensor *local = ct__gather_used(l, node, ct__want(l, x, &stored), &stored, &used);
        ct__value_set(l, result, local, &used);
    } else if (node->op == &ct__op_store || node->op == &ct__op_store_later) {
        place_store(l, node);
    } else if (node->op == &op_padded || node->op == &op_unpadded) {
        place_padding(l, node);
    } else {
        return false;
    }
    return true;
}
