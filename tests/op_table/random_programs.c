/* Programs made at random of scans, branches, calls, checkpoint blocks, custom derivatives and inner gradients within
 * one another, whose gradients are checked against central differences.
 *
 * All tensors are f64[a=2 b=3] and kept in a pool: a stack whose top is what the current region made. Picking from the
 * whole stack makes captures across any number of regions; values stay near [-2, 2]. A seed means one program per
 * compiler, as the order in which arguments are drawn is the compiler's.
 *
 * The same programs on a mesh are cases of the mode SHARD; there a and b have other sizes.
 */
#include "random_programs.h"
#include "op_table.h"

#include "graph/node.h"

enum { POOL = 256, NUM_INPUTS = 3, NUM_OUTPUTS = 4 };
typedef struct maker {
    ct_graph *graph;
    uint32_t seed, drawn;
    int depth;
    bool in_block;
    int num_pool;
    ct_tensor *pool[POOL];
} maker;

static int draw(maker *m, int count)
{
    return (int)(op_uniform(m->seed, m->drawn++) * count);
}

static ct_tensor *pick(maker *m)
{
    /* half of the time something new */
    int recent = CT_MIN(m->num_pool, 4);
    return draw(m, 2) ? m->pool[m->num_pool - 1 - draw(m, recent)] : m->pool[draw(m, m->num_pool)];
}

static void push(maker *m, ct_tensor *x)
{
    CT_ASSERT(m->num_pool < POOL);
    m->pool[m->num_pool++] = x;
}

static void make_ops(maker *m, int count);

static const ct_remat_policy *pick_policy(maker *m)
{
    static const char *const save[] = {"kept"};
    static const ct_remat_policy policies[] = {
        {.mode = CT_REMAT_NONE},
        {.mode = CT_REMAT_SELECTIVE},
        {.mode = CT_REMAT_FULL},
        {.mode = CT_REMAT_SELECTIVE, .num_save = 1, .save = save},
        {.mode = CT_REMAT_FULL, .num_save = 1, .save = save},
        {.mode = CT_REMAT_SELECTIVE, .num_offload = 1, .offload = save},
        {.mode = CT_REMAT_FULL, .num_offload = 1, .offload = save},
        {.mode = CT_REMAT_NONE, .num_recompute = 1, .recompute = save},
    };
    return &policies[draw(m, CT_COUNT(policies))];
}

static ct_tensor *mix(ct_tensor *x, ct_tensor *y)
{
    return ct_tanh(ct_add(ct_mul(x, y), x));
}

static ct_tensor *dot(ct_tensor *x, ct_tensor *y, ct_tensor *z)
{
    ct_tensor *scores = ct_dot(x, ct_rename(y, "a", "k"), "b");
    return ct_tanh(ct_dot(scores, ct_rename(z, "a", "k"), "k"));
}

/* x sin(y), by hand, with cos(y) as a residual */
static void custom_forward(ct_graph *graph, void *context, ct_tensor *const *in, ct_tensor **out)
{
    (void)graph;
    (void)context;
    out[0] = ct_mul(in[0], ct_sin(in[1]));
    out[1] = ct_cos(in[1]);
}
static void custom_backward(ct_graph *graph, void *context, ct_tensor *const *in, ct_tensor *const *out,
                            ct_tensor *const *cotangents, ct_tensor **gradients)
{
    (void)graph;
    (void)context;
    if (!cotangents[0]) return;
    gradients[0] = ct_mul(cotangents[0], ct_sin(in[1]));
    gradients[1] = ct_mul(cotangents[0], ct_mul(in[0], out[1]));
}

typedef struct scan_plan {
    maker *m;
    int num_carries, num_outputs, count;
} scan_plan;

/* carry 0 counts turns */
static void scan_body(ct_graph *graph, void *context, ct_tensor *const *carries, ct_tensor *const *slices,
                      ct_tensor **out_carries, ct_tensor **out_slices)
{
    (void)graph;
    scan_plan *plan = context;
    maker *m = plan->m;
    int mark = m->num_pool;
    bool in_block = m->in_block;
    m->in_block = false;
    for (int i = 1; i < plan->num_carries; i++) push(m, carries[i]);
    push(m, slices[0]);
    push(m, slices[1]);
    ct_tensor *turn = ct_convert(carries[0], CT_DTYPE_F64);
    push(m, ct_sin(ct_add(slices[0], turn)));
    make_ops(m, plan->count);
    out_carries[0] = ct_add_scalar(carries[0], 1);
    for (int i = 1; i < plan->num_carries; i++) out_carries[i] = pick(m);
    for (int i = 0; i < plan->num_outputs; i++) out_slices[i] = pick(m);
    m->num_pool = mark;
    m->in_block = in_block;
}

static ct_tensor *stack(maker *m, const char *axis)
{
    ct_tensor *parts[3];
    for (int i = 0; i < 3; i++) parts[i] = ct_unsqueeze(pick(m), axis, 0);
    return ct_concat(parts, 3, axis);
}

static void make_scan(maker *m)
{
    const char *axis = ct_arena_printf(&m->graph->arena, "n%d", m->depth);
    scan_plan plan = {.m = m, .num_carries = 1 + draw(m, 3), .num_outputs = draw(m, 3), .count = 1 + draw(m, 4)};
    ct_tensor *carries[3] = {ct_scalar(m->graph, CT_DTYPE_S32, 0)}, *inputs[2];
    for (int i = 1; i < plan.num_carries; i++) carries[i] = pick(m);
    inputs[0] = stack(m, axis);
    inputs[1] = draw(m, 2) ? stack(m, axis) : inputs[0];
    ct_tensor *out_carries[3], *outputs[2];
    ct_scan_opts opts = {.axis = axis,
                         .num_carries = plan.num_carries,
                         .carries = carries,
                         .num_inputs = 2,
                         .inputs = inputs,
                         .num_outputs = plan.num_outputs,
                         .reverse = draw(m, 2),
                         .remat = draw(m, 4) ? pick_policy(m) : NULL};
    m->depth++;
    ct_scan(m->graph, &opts, scan_body, &plan, out_carries, outputs);
    m->depth--;
    for (int i = 1; i < plan.num_carries; i++) push(m, ct_tanh(out_carries[i]));
    for (int i = 0; i < plan.num_outputs; i++) push(m, ct_tanh(ct_sum(outputs[i], axis)));
}

typedef struct cond_plan {
    maker *m;
    int count, num_results;
} cond_plan;

static void branch(ct_graph *graph, void *context, ct_tensor **out_results)
{
    (void)graph;
    cond_plan *plan = context;
    maker *m = plan->m;
    int mark = m->num_pool;
    bool in_block = m->in_block;
    m->in_block = false;
    make_ops(m, draw(m, plan->count));
    for (int i = 0; i < plan->num_results; i++) out_results[i] = pick(m);
    m->num_pool = mark;
    m->in_block = in_block;
}

static void make_cond(maker *m)
{
    cond_plan plan = {.m = m, .count = 4, .num_results = 1 + draw(m, 2)};
    ct_tensor *sum = ct_sum(pick(m), "a b"), *results[2];
    ct_tensor *predicate = ct_gt(sum, ct_scalar_like(sum, 0.0123));
    m->depth++;
    ct_cond(m->graph, predicate, branch, branch, &plan, plan.num_results, results);
    m->depth--;
    for (int i = 0; i < plan.num_results; i++) push(m, results[i]);
}

typedef struct call_plan {
    maker *m;
    int count;
} call_plan;

/* A function sees its arguments alone, so the pool is theirs meanwhile. */
static void function_body(ct_graph *graph, void *context, ct_tensor *const *args, ct_tensor **out_results)
{
    (void)graph;
    call_plan *plan = context;
    maker *m = plan->m;
    ct_tensor *pool[POOL];
    int num_pool = m->num_pool;
    bool in_block = m->in_block;
    memcpy(pool, m->pool, sizeof(pool));
    m->num_pool = 0;
    m->in_block = false;
    for (int i = 0; i < 3; i++) push(m, args[i]);
    make_ops(m, plan->count);
    for (int i = 0; i < 2; i++) out_results[i] = pick(m);
    memcpy(m->pool, pool, sizeof(pool));
    m->num_pool = num_pool;
    m->in_block = in_block;
}

static void make_calls(maker *m)
{
    call_plan plan = {.m = m, .count = 1 + draw(m, 4)};
    ct_tensor *args[3] = {pick(m), pick(m), pick(m)}, *results[2];
    m->depth++;
    ct_function *function = ct_function_new(m->graph, "function", 3, args, 2, function_body, &plan);
    m->depth--;
    bool composite = draw(m, 2);
    for (int i = 0; i < 2; i++) {
        if (composite)
            ct_composite("ctitan.random", "", function, args, results);
        else
            ct_call(function, args, results);
        for (int j = 0; j < 2; j++) push(m, ct_tanh(results[j]));
        for (int j = 0; j < 3; j++) args[j] = pick(m);
    }
}

static void make_inner_gradient(maker *m)
{
    ct_tensor *param = ct_mul_scalar(pick(m), 0.7), *other = pick(m), *gradient;
    ct_tensor *loss = ct_sum(ct_mul(ct_sin(param), ct_mul(param, other)), "a b");
    expect_ok(ct_grad(m->graph, loss, &param, 1, &gradient));
    push(m, ct_tanh(gradient));
}

static void make_op(maker *m)
{
    switch (draw(m, m->depth < 3 ? 16 : 10)) {
    case 0: push(m, mix(pick(m), pick(m))); break;
    case 1: push(m, ct_sin(pick(m))); break;
    case 2: push(m, ct_softmax(pick(m), draw(m, 2) ? "a" : "b")); break;
    case 3: push(m, dot(pick(m), pick(m), pick(m))); break;
    case 4: {
        ct_tensor *x = pick(m);
        push(m, ct_sub(x, ct_mean(x, "b")));
        break;
    }
    case 5: {
        ct_tensor *in[2] = {pick(m), pick(m)}, *results[2];
        ct_custom_vjp(m->graph, 2, in, 2, results, custom_forward, custom_backward, NULL);
        push(m, results[0]);
        break;
    }
    case 6: push(m, ct_checkpoint_name(ct_sigmoid(mix(pick(m), pick(m))), "kept")); break;
    case 7: {
        ct_tensor *in[2] = {pick(m), pick(m)}, *results[2];
        ct_optimization_barrier(2, in, results);
        push(m, results[0]);
        push(m, results[1]);
        break;
    }
    case 8:
        if (m->in_block) break;
        make_inner_gradient(m);
        break;
    case 9:
        if (m->in_block) break;
        m->in_block = true;
        ct_checkpoint_begin(m->graph, pick_policy(m));
        make_ops(m, 1 + draw(m, 4));
        ct_checkpoint_end(m->graph);
        m->in_block = false;
        break;
    case 10:
    case 11: make_cond(m); break;
    case 12: make_calls(m); break;
    default: make_scan(m); break;
    }
}

static void make_ops(maker *m, int count)
{
    for (int i = 0; i < count && !m->graph->error; i++) make_op(m);
}

/* The program of a seed: outputs are what it made last. */
static void make_program(ct_graph *graph, ct_tensor *const *in, ct_tensor **out, int seed, int num_ops)
{
    maker m = {.graph = graph, .seed = 1000 + (uint32_t)seed};
    for (int i = 0; i < NUM_INPUTS; i++) push(&m, in[i]);
    make_ops(&m, num_ops);
    for (int i = 0; i < NUM_OUTPUTS; i++) out[i] = m.pool[CT_MAX(0, m.num_pool - 1 - i)];
}

void op_check_random_program(int seed)
{
    char what[64];
    snprintf(what, sizeof(what), "random program %d", seed);
    ct_graph *graph = ct_graph_new("random");
    ct_tensor *in[NUM_INPUTS], *out[NUM_OUTPUTS], *gradients[NUM_INPUTS];
    ct_array inputs[NUM_INPUTS];
    for (int i = 0; i < NUM_INPUTS; i++) {
        static const char *const names[NUM_INPUTS] = {"x", "y", "z"};
        in[i] = ct_input(graph, names[i], CT_DTYPE_F64, "a=2 b=3");
        inputs[i] = ct_array_new(CT_DTYPE_F64, (const int64_t[]){2, 3}, 2);
        for (int j = 0; j < 6; j++)
            ct_array_set(&inputs[i], j, 2 * op_uniform(1000 + (uint32_t)seed, 10000u + (uint32_t)(6 * i + j)) - 1);
    }
    make_program(graph, in, out, seed, 8);
    ct_tensor *loss = ct_scalar(graph, CT_DTYPE_F64, 0);
    for (int i = 0; i < NUM_OUTPUTS; i++) loss = ct_add(loss, ct_sum(ct_mul(out[i], ct_add_scalar(out[i], i)), "a b"));
    ct_status *status = ct_grad(graph, loss, in, NUM_INPUTS, gradients);
    if (status) fail_msg("%s: %s", what, ct_status_message(status));
    ct_output(graph, "loss", loss, NULL);
    for (int i = 0; i < NUM_INPUTS; i++) ct_output(graph, (const char *[]){"gx", "gy", "gz"}[i], gradients[i], NULL);
    op_check_gradients(graph, inputs, NUM_INPUTS, 1e-7, what);
    for (int i = 0; i < NUM_INPUTS; i++) ct_array_free(&inputs[i]);
}

static void build_sharded(ct_graph *graph, ct_tensor *const *in, ct_tensor **out, int seed)
{
    make_program(graph, in, out, seed, 4); /* compiling them is slow */
}

void op_check_random_sharded(int seed)
{
    static const char *const axes[] = {"a=2 b=3", "a=8 b=4", "a=4 b=8", "a=3 b=5", "a=8 b=16", "a=1 b=8"};
    op_case c = {.grad = true, .num_outputs = NUM_OUTPUTS, .build = build_sharded, .variant = seed, .tolerance = 100};
    for (int i = 0; i < NUM_INPUTS; i++) c.inputs[i].axes = axes[(size_t)seed % CT_COUNT(axes)];
    char name[64];
    snprintf(name, sizeof(name), "random program %d", seed);
    c.name = name;
    op_check_sharded_at_random(&c, CT_DTYPE_F64, seed, 1);
}
