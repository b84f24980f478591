/* The mode SHARD: a case's outputs and gradients on one device and on a mesh a=2 b=4, made local by spmd and left to
 * XLA's partitioner. What sizes do not divide is padded, and padding holds NaN or numbers that fit nothing, so that
 * what reads it shows. Each way to split the inputs is a trial:
 *
 *   one axis     of all inputs that have it, over a; over a and b
 *   two axes     over b and over a
 *   at random    each input and each result by itself
 *
 * Usually a case runs some of them, another regular one than the case before; CT_SHARD_TRIALS=n runs all regular ones
 * and n at random.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "graph/node.h"
#include "op_table.h"
#include "spmd/localize.h"

enum { NUM_DEVICES = 8, MAX_RESULTS = OP_MAX_OUTPUTS + OP_MAX_INPUTS };

static const ct_sharding_table NO_TABLE = {.fsdp_axes = ""};
static const ct_parallel PARALLEL = {
    .mesh = {.num_axes = 2,
             .axes = {{.name = "a", .size = 2, .group = CT_MESH_DP_SHARD},
                      {.name = "b", .size = 4, .group = CT_MESH_TP}},
             .degrees = {1, 2, 1, 4},
             .num_torus = 1,
             .torus = {NUM_DEVICES},
             .num_devices = NUM_DEVICES},
    .table = &NO_TABLE,
    .reduce_dtype = CT_DTYPE_F32,
};

typedef struct trial {
    ct_sharding inputs[OP_MAX_INPUTS], outputs[MAX_RESULTS];
    bool is_padded;
    char *text;
} trial;

/* ---- programs ---- */

typedef enum program_kind { ONE_DEVICE, LOCALIZED, PARTITIONER } program_kind;

/* in: the inputs' types. */
static ct_graph *build(const op_case *c, ct_dtype dtype, program_kind kind, const trial *t, const char *what,
                       ct_tensor **in)
{
    ct_tensor *out[OP_MAX_OUTPUTS], *gradients[OP_MAX_INPUTS];
    int num_gradients = 0;
    ct_graph *graph = ct_graph_new("test");
    if (kind != ONE_DEVICE) ct_parallel_attach(graph, &PARALLEL);
    op_build_into(c, graph, dtype, in, out);
    ct_status *status = ct_graph_check(graph);
    if (!status && c->grad && dtype == CT_DTYPE_F64)
        status = op_gradients(c, graph, op_loss(c, graph, out), in, gradients, &num_gradients);
    op_output_all(c, graph, "y", c->num_outputs, out);
    op_output_all(c, graph, "g", num_gradients, gradients);
    if (kind != ONE_DEVICE) {
        for (int i = 0; i < op_num_inputs(c); i++) ct_parallel_set_input(graph, in[i], &t->inputs[i]);
        for (int i = 0; i < ct_graph_num_outputs(graph); i++) ct_parallel_set_output(graph, i, &t->outputs[i]);
    }
    if (!status && kind == LOCALIZED) status = ct_localize(graph, NULL);
    if (status) fail_msg("%s: %s", what, ct_status_message(status));
    return graph;
}

/* Where element `index` of a device's part is in the whole array; -1: it is padding. */
static int64_t index_in_whole(const ct_array *whole, const ct_sharding *sharding, int64_t device, int64_t index)
{
    int64_t offsets[CT_MAX_RANK], valid[CT_MAX_RANK], local[CT_MAX_RANK], from = 0, stride = 1;
    ct_sharding_box(&PARALLEL.mesh, sharding, whole->rank, whole->sizes, device, offsets, valid, local);
    for (int d = whole->rank - 1; d >= 0; d--) {
        int64_t position = index % local[d];
        index /= local[d];
        if (position >= valid[d]) return -1;
        from += (offsets[d] + position) * stride;
        stride *= whole->sizes[d];
    }
    return from;
}

static bool is_padding(const ct_array *whole, const ct_sharding *sharding, int64_t device, int64_t index)
{
    return index_in_whole(whole, sharding, device, index) < 0;
}

/* A device's part of an array, padding filled with what no one may use. */
static ct_array part_of(const ct_array *whole, const ct_sharding *sharding, int64_t device)
{
    int64_t sizes[CT_MAX_RANK];
    for (int d = 0; d < whole->rank; d++)
        sizes[d] = ct_sharding_local_size(&PARALLEL.mesh, sharding, d, whole->sizes[d]);
    ct_array part = ct_array_new(whole->dtype, sizes, whole->rank);
    double filler = ct_dtype_is_float(whole->dtype) ? NAN : whole->dtype == CT_DTYPE_BOOL ? 1 : 101;
    for (int64_t i = 0; i < ct_array_num_elements(&part); i++) {
        int64_t from = index_in_whole(whole, sharding, device, i);
        ct_array_set(&part, i, from < 0 ? filler : ct_array_get(whole, from));
    }
    return part;
}

static void run_on_mesh(const op_case *c, ct_dtype dtype, program_kind kind, const trial *t, const char *what,
                        const ct_array *inputs, const ct_array *expected)
{
    ct_tensor *in[OP_MAX_INPUTS];
    int num_inputs = op_num_inputs(c);
    op_program *program = op_compile(build(c, dtype, kind, t, what, in), what);
    int num_outputs = op_num_outputs(program);
    ct_array parts[NUM_DEVICES * OP_MAX_INPUTS], outputs[NUM_DEVICES * MAX_RESULTS];
    for (int d = 0; d < NUM_DEVICES; d++)
        for (int i = 0; i < num_inputs; i++) parts[d * num_inputs + i] = part_of(&inputs[i], &t->inputs[i], d);
    op_run_parts(program, parts, outputs);
    op_program_free(program);
    for (int i = 0; i < NUM_DEVICES * num_inputs; i++) ct_array_free(&parts[i]);
    for (int k = 0; k < NUM_DEVICES * num_outputs; k++) {
        int device = k / num_outputs, i = k % num_outputs;
        bool is_output = i < c->num_outputs;
        ct_dtype type = expected[i].dtype;
        double tolerance = CT_MAX(op_tolerance(type), ct_dtype_is_float(type) ? op_tolerance(dtype) : 0);
        tolerance *= (c->tolerance != 0 ? c->tolerance : 1) * (is_output ? 1 : 10);
        if (c->is_movement && is_output) tolerance = 0;
        ct_array wanted = part_of(&expected[i], &t->outputs[i], device);
        if (ct_array_bytes(&outputs[k]) != ct_array_bytes(&wanted))
            fail_msg("%s: result %d has %zu bytes, expected %zu", what, i, ct_array_bytes(&outputs[k]),
                     ct_array_bytes(&wanted));
        for (int64_t j = 0; j < ct_array_num_elements(&wanted); j++) {
            if (is_padding(&expected[i], &t->outputs[i], device, j)) continue;
            double value = ct_array_get(&outputs[k], j), on_one = ct_array_get(&wanted, j);
            if (!op_near(value, on_one, tolerance))
                fail_msg("%s: %s %d on device %d, element %lld is %.17g, on one device %.17g", what,
                         is_output ? "output" : "gradient", is_output ? i : i - c->num_outputs, device, (long long)j,
                         value, on_one);
        }
        ct_array_free(&wanted);
        ct_array_free(&outputs[k]);
    }
}

/* ---- trials ---- */

typedef struct checking {
    const op_case *c;
    ct_dtype dtype;
    int num_inputs, num_outputs, num_axes;
    ct_tensor *in[OP_MAX_INPUTS], *out[MAX_RESULTS];
    const char *axes[OP_MAX_INPUTS * CT_MAX_RANK]; /* of all inputs, once each */
    ct_array inputs[OP_MAX_INPUTS], expected[MAX_RESULTS];
} checking;

/* Over the mesh axes of a word, "ab". */
static void split(ct_sharding *sharding, int dim, const char *mesh_axes)
{
    ct_placement *at = &sharding->at;
    for (; *mesh_axes; mesh_axes++) at->mesh_axes[dim][at->count[dim]++] = *mesh_axes - 'a';
}

static void split_axis(trial *t, const checking *k, const char *axis, const char *mesh_axes)
{
    for (int i = 0; i < k->num_inputs; i++) {
        int dim = ct__find_axis(k->in[i]->axes, k->in[i]->rank, axis);
        if (dim >= 0) split(&t->inputs[i], dim, mesh_axes);
    }
}

static void split_at_random(ct_sharding *sharding, const ct_tensor *type, uint32_t seed, uint32_t *draw)
{
    static const char *const orders[] = {"ab", "ba", "a", "b"};
    if (!type->rank) return;
    for (const char *order = orders[(int)(op_uniform(seed, (*draw)++) * 4)]; *order; order++)
        split(sharding, (int)(op_uniform(seed, (*draw)++) * type->rank), (char[2]){*order, 0});
}

/* Pads what does not divide, and says it in text. */
static void finish_sharding(trial *t, ct_sharding *sharding, const ct_tensor *type, ct_str *text)
{
    int64_t sizes[CT_MAX_RANK];
    for (int d = 0; d < type->rank; d++) sizes[d] = type->axes[d].size;
    ct_sharding_pad(&PARALLEL.mesh, sharding, type->rank, sizes);
    for (int d = 0; d < type->rank; d++) t->is_padded |= sharding->padded[d] != 0;
    char *one = ct_sharding_text(&PARALLEL.mesh, sharding, type->rank, type->axes);
    ct_str_printf(text, "[%s] ", one);
    free(one);
}

static void finish_trial(trial *t, const checking *k)
{
    ct_str text;
    ct_str_init(&text);
    for (int i = 0; i < k->num_inputs; i++) finish_sharding(t, &t->inputs[i], k->in[i], &text);
    ct_str_append(&text, "-> ");
    for (int i = 0; i < k->num_outputs; i++) finish_sharding(t, &t->outputs[i], k->out[i], &text);
    t->text = ct_str_release(&text);
}

static int distinct_axes(int num_inputs, ct_tensor *const *in, const char **out_axes)
{
    int count = 0;
    for (int i = 0; i < num_inputs; i++)
        for (int d = 0; d < in[i]->rank; d++) {
            bool is_known = false;
            for (int k = 0; k < count; k++) is_known |= out_axes[k] == in[i]->axes[d].name;
            if (!is_known) out_axes[count++] = in[i]->axes[d].name;
        }
    return count;
}

static void run_trial(const checking *k, program_kind kind, trial *t)
{
    char *what = ct_asprintf("%s, SHARD, %s, %s %s", k->c->name, ct_dtype_name(k->dtype),
                             kind == LOCALIZED ? "localized" : "partitioner", t->text);
    run_on_mesh(k->c, k->dtype, kind, t, what, k->inputs, k->expected);
    free(what);
}

static int num_regular_trials(const checking *k)
{
    return k->num_axes ? 3 * k->num_axes - 1 : 0;
}

/* One axis over a, over a and b, and two axes over b and a, for axis after axis. */
static trial regular_trial(const checking *k, int number)
{
    trial t = {0};
    int axis = number / 3;
    const char *mesh_axes = (const char *[]){"a", "ab", "b"}[number % 3];
    split_axis(&t, k, k->axes[axis], mesh_axes);
    if (number % 3 == 2) split_axis(&t, k, k->axes[axis + 1], "a");
    finish_trial(&t, k);
    return t;
}

static trial random_trial(const checking *k, int number)
{
    trial t = {0};
    uint32_t draw = 0;
    for (int i = 0; i < k->num_inputs; i++) split_at_random(&t.inputs[i], k->in[i], (uint32_t)(1000 + number), &draw);
    for (int i = 0; i < k->num_outputs; i++)
        split_at_random(&t.outputs[i], k->out[i], (uint32_t)(1000 + number), &draw);
    finish_trial(&t, k);
    return t;
}

static void run_all_trials(const checking *k, int num_random)
{
    int num_regular = num_regular_trials(k);
    for (int i = 0; i < num_regular + num_random; i++) {
        trial t = i < num_regular ? regular_trial(k, i) : random_trial(k, i - num_regular);
        run_trial(k, LOCALIZED, &t);
        if (!t.is_padded) run_trial(k, PARTITIONER, &t); /* it takes sizes that divide only */
        free(t.text);
    }
}

/* A regular one, another for each case; one at random; and the next regular one that the partitioner can take. */
static void run_some_trials(const checking *k)
{
    static int turn;
    int num_regular = num_regular_trials(k), start = turn++;
    for (int i = 0; i < num_regular; i++) {
        trial t = regular_trial(k, (start + i) % num_regular);
        if (i == 0) run_trial(k, LOCALIZED, &t);
        bool is_last = !t.is_padded;
        if (is_last) run_trial(k, PARTITIONER, &t);
        free(t.text);
        if (is_last) break;
    }
    for (int i = 0; i < (num_regular ? 1 : 3); i++) { /* without inputs only results can be split */
        trial t = random_trial(k, start + i);
        run_trial(k, LOCALIZED, &t);
        free(t.text);
    }
}

static checking checking_begin(const op_case *c, ct_dtype dtype, ct_graph **out_types)
{
    checking k = {.c = c, .dtype = dtype, .num_inputs = op_num_inputs(c)};
    ct_tensor *unused[OP_MAX_INPUTS];
    *out_types = build(c, dtype, ONE_DEVICE, NULL, c->name, k.in); /* kept for its types */
    for (int i = 0; i < k.num_inputs; i++) k.inputs[i] = op_fill(k.in[i], &c->inputs[i], (uint32_t)i);
    k.num_axes = distinct_axes(k.num_inputs, k.in, k.axes);
    op_program *program = op_compile(build(c, dtype, ONE_DEVICE, NULL, c->name, unused), c->name);
    k.num_outputs = op_num_outputs(program);
    for (int i = 0; i < k.num_outputs; i++) k.out[i] = ct_graph_output_tensor(*out_types, i);
    op_run(program, k.inputs, k.expected);
    op_program_free(program);
    return k;
}

static void checking_end(checking *k, ct_graph *types)
{
    for (int i = 0; i < k->num_inputs; i++) ct_array_free(&k->inputs[i]);
    for (int i = 0; i < k->num_outputs; i++) ct_array_free(&k->expected[i]);
    ct_graph_free(types);
}

void op_check_sharded(const op_case *c, ct_dtype dtype)
{
    ct_graph *types;
    checking k = checking_begin(c, dtype, &types);
    const char *num_random = getenv("CT_SHARD_TRIALS");
    if (num_random)
        run_all_trials(&k, atoi(num_random));
    else
        run_some_trials(&k);
    checking_end(&k, types);
}

void op_check_sharded_at_random(const op_case *c, ct_dtype dtype, int first, int count)
{
    ct_graph *types;
    checking k = checking_begin(c, dtype, &types);
    for (int i = 0; i < count; i++) {
        trial t = random_trial(&k, first + i);
        run_trial(&k, LOCALIZED, &t);
        free(t.text);
    }
    checking_end(&k, types);
}
