/* Every form of the fused linear cross-entropy against its definition in f64: losses, log-sum-exp, gradients of hidden
 * and weight; on one device and localized on eight virtual ones. What moves between them, and what memory they take.
 */
#include <math.h>

#include "autodiff/grad.h"
#include "base/rng.h"
#include "graph/ops.h"
#include "kernels/kernel.h"
#include "kernels/linear_cross_entropy/linear_cross_entropy.h"
#include "models/family.h"
#include "pjrt/testing.h"
#include "spmd/localize.h"

enum { HIDDEN, WEIGHT, LABELS, NUM_INPUTS };
enum { LOSS, LSE, D_HIDDEN, D_WEIGHT, NUM_OUTPUTS };
static const char *const OUTPUT_NAMES[NUM_OUTPUTS] = {"loss", "log-sum-exp", "d hidden", "d weight"};

typedef enum label_kind { RANDOM, FIRST_FIVE_IGNORED, ALL_IGNORED, OUTSIDE } label_kind;

typedef struct loss_case {
    const char *name;
    int64_t batch, seq, dim, vocab, tile; /* tile 0: chosen */
    label_kind labels;
    double z_loss, soft_cap;
    bool no_lse; /* no gradient through it */
} loss_case;

static const loss_case CASES[] = {
    {"one row", 1, 1, 5, 40, 16, RANDOM, 0, 0, false},
    {"odd rows", 3, 7, 12, 64, 16, RANDOM, 0, 0, true},
    {"one tile, chosen", 2, 4, 8, 50, 0, RANDOM, 0, 0, true},
    {"smaller than the tile", 2, 3, 8, 11, 16, RANDOM, 0, 0, false},
    {"no multiple of the tile", 2, 9, 8, 251, 64, RANDOM, 0, 0, true},
    {"one more than the tile", 2, 9, 8, 65, 64, RANDOM, 1e-2, 0, true},
    {"several tiles, chosen", 2, 5, 4, 9001, 0, RANDOM, 0, 0, true},
    {"vocabulary of one", 2, 3, 4, 1, 0, RANDOM, 0, 0, false},
    {"five ignored, z-loss", 2, 6, 8, 100, 32, FIRST_FIVE_IGNORED, 0.1, 0, true},
    {"all ignored, z-loss, soft cap", 2, 4, 8, 70, 32, ALL_IGNORED, 0.1, 2, false},
    {"all ignored, nothing through lse", 2, 4, 8, 70, 32, ALL_IGNORED, 0, 0, true},
    {"soft cap", 2, 8, 16, 130, 64, RANDOM, 0, 1.5, true},
    {"soft cap, z-loss, five ignored", 4, 5, 16, 129, 48, FIRST_FIVE_IGNORED, 0.05, 3, false},
    {"labels outside of the vocabulary", 2, 8, 8, 90, 32, OUTSIDE, 0.1, 0, true},
};

enum { BLOCK = 3 }; /* of rows, of the sum's portable form, where tile is not 0 */

static double uniform(uint32_t stream, uint32_t index)
{
    uint32_t bits[2];
    ct_threefry((const uint32_t[2]){stream, 11}, (const uint32_t[2]){index, 0}, bits);
    return bits[0] / 2147483648.0 - 1;
}

/* ---- the program ---- */

typedef struct variant {
    ct_kernel_form form;
    ct_dtype dtype;
    const ct_parallel *parallel; /* NULL: one device */
    bool is_placed;              /* inputs and outputs lie as a model's do, else all is whole everywhere */
    bool is_sum;                 /* the sum over rows, whose gradients the log-sum-exp has no part in */
    bool is_frozen;              /* the weight */
} variant;

static ct_array input_of(const loss_case *c, int input, ct_dtype dtype)
{
    int64_t sizes[NUM_INPUTS][3] = {{c->batch, c->seq, c->dim}, {c->vocab, c->dim}, {c->batch, c->seq}};
    ct_array array = ct_array_new(input == LABELS ? CT_DTYPE_S32 : dtype, sizes[input], input == HIDDEN ? 3 : 2);
    for (int64_t i = 0; i < ct_array_num_elements(&array); i++) {
        double value = uniform((uint32_t)input, (uint32_t)i) * (input == HIDDEN ? 2 : 1);
        if (input == LABELS) {
            value = floor((value + 1) / 2 * (double)c->vocab);
            bool is_ignored = c->labels == ALL_IGNORED || (c->labels == FIRST_FIVE_IGNORED && i < 5);
            if (is_ignored) value = -100;
            if (c->labels == OUTSIDE && i % 3 == 0) value = (double)(c->vocab + i);
        }
        ct_array_set(&array, i, value);
    }
    return array;
}

static ct_tensor *weights_like(ct_tensor *rows, uint32_t stream)
{
    ct_array array = ct_array_new(rows->dtype, (int64_t[]){rows->axes[0].size, rows->axes[1].size}, 2);
    for (int64_t i = 0; i < ct_array_num_elements(&array); i++) ct_array_set(&array, i, uniform(stream, (uint32_t)i));
    ct_tensor *constant = ct_constant(rows->graph, &array, "batch seq");
    ct_array_free(&array);
    return constant;
}

static void place(ct_graph *graph, const variant *v, ct_tensor *const *inputs)
{
    typedef ct_sharding sharding_fn(const ct_parallel *parallel, int rank, const ct_axis *axes);
    static sharding_fn *const of_input[NUM_INPUTS] = {NULL, ct_parallel_stored, ct_parallel_activation};
    static sharding_fn *const of_output[NUM_OUTPUTS] = {ct_parallel_activation, ct_parallel_activation, NULL,
                                                        ct_parallel_gradient};
    for (int i = 0; i < NUM_INPUTS; i++) {
        ct_sharding sharding = {0};
        if (v->is_placed && of_input[i]) sharding = of_input[i](v->parallel, inputs[i]->rank, inputs[i]->axes);
        if (v->is_placed && i == HIDDEN) ct_parallel_point(v->parallel, "residual", 3, inputs[i]->axes, &sharding);
        ct_parallel_set_input(graph, inputs[i], &sharding);
    }
    for (int i = 0; i < NUM_OUTPUTS; i++) {
        const ct_tensor *x = ct_graph_output_tensor(graph, i);
        ct_sharding sharding = {0};
        if (v->is_placed && of_output[i]) sharding = of_output[i](v->parallel, x->rank, x->axes);
        if (v->is_placed && i == D_HIDDEN) ct_parallel_point(v->parallel, "residual", 3, x->axes, &sharding);
        ct_parallel_set_output(graph, i, &sharding);
    }
}

/* kernels must outlive the graph. */
static ct_graph *build(const loss_case *c, const variant *v, ct_kernels *kernels)
{
    ct_graph *graph = ct_graph_new("loss");
    ct_parallel_attach(graph, v->parallel);
    *kernels = (ct_kernels){.loss = v->form, .platform = "cpu", .loss_blocks = {.vocab = c->tile}};
    if (v->is_sum) kernels->loss_blocks = (ct_loss_blocks){.rows = c->tile ? BLOCK : 0};
    ct_kernels_attach(graph, kernels);
    ct_graph_declare_axis(graph, "batch", c->batch);
    ct_graph_declare_axis(graph, "seq", c->seq);
    ct_graph_declare_axis(graph, "dim", c->dim);
    ct_graph_declare_axis(graph, "vocab", c->vocab);
    ct_tensor *x[NUM_INPUTS] = {ct_input(graph, "hidden", v->dtype, "batch seq dim"),
                                ct_input(graph, "weight", v->dtype, "vocab dim"),
                                ct_input(graph, "labels", CT_DTYPE_S32, "batch seq")};
    ct_tensor *lse, *gradients[2];
    ct_linear_cross_entropy_opts opts = {
        .z_loss = c->z_loss, .soft_cap = c->soft_cap, .frozen = v->is_frozen, .out_logsumexp = &lse};
    ct_tensor *hidden = ct_shard(x[HIDDEN], "residual"), *weight = ct_use(x[WEIGHT], v->dtype), *rows, *loss = NULL;
    if (v->is_sum) {
        opts.out_logsumexp = NULL;
        rows = lse = ct_linear_cross_entropy_sum(hidden, weight, x[LABELS], &opts);
        loss = ct_mul_scalar(rows, 0.7);
    } else {
        rows = ct_linear_cross_entropy(hidden, weight, x[LABELS], &opts);
        if (!ct_graph_has_failed(graph)) loss = ct_sum(ct_mul(rows, weights_like(rows, 21)), "batch seq");
    }
    if (ct_graph_has_failed(graph)) return graph;
    if (!c->no_lse && !v->is_sum) loss = ct_add(loss, ct_sum(ct_mul(lse, weights_like(lse, 22)), "batch seq"));
    expect_ok(ct_grad(graph, loss, x, 2, gradients));
    ct_tensor *outputs[NUM_OUTPUTS] = {rows, lse, gradients[0], gradients[1]};
    for (int i = 0; i < NUM_OUTPUTS; i++) ct_output(graph, OUTPUT_NAMES[i], outputs[i], NULL);
    if (v->parallel) place(graph, v, x);
    return graph;
}

static char *text_of(ct_graph *graph)
{
    ct_str text = {0};
    expect_ok(ct_graph_print(graph, &text));
    return ct_str_release(&text);
}

/* ---- runs ---- */

/* Inputs are rounded to bf16 whatever the dtype, so that one oracle serves all. */
static void run(ct_client *client, const loss_case *c, const variant *v, ct_array outputs[NUM_OUTPUTS])
{
    size_t num_devices = v->parallel ? (size_t)v->parallel->mesh.num_devices : 1;
    ct_kernels kernels;
    ct_graph *graph = build(c, v, &kernels);
    expect_ok(ct_graph_check(graph));
    if (v->parallel && v->parallel->partition == CT_PARTITION_MANUAL) expect_ok(ct_localize(graph, NULL));
    char *text = text_of(graph);
    ct_graph_free(graph);
    static const ct_named_value fast = {.name = "xla_backend_optimization_level", .type = CT_VALUE_INT, .integer = 0};
    ct_executable *executable = ct_test_compile(
        client, text, &(ct_compile_opts){.num_partitions = (int)num_devices, .flags = &fast, .num_flags = 1});
    free(text);
    ct_buffer *inputs[8 * NUM_INPUTS] = {0}, *results[8 * NUM_OUTPUTS] = {0};
    for (int i = 0; i < NUM_INPUTS; i++) {
        ct_array rounded = input_of(c, i, CT_DTYPE_BF16), array = input_of(c, i, v->dtype);
        for (int64_t j = 0; j < ct_array_num_elements(&array); j++) ct_array_set(&array, j, ct_array_get(&rounded, j));
        for (size_t d = 0; d < num_devices; d++) {
            ct_device *device;
            expect_ok(ct_executable_device(executable, d, &device));
            expect_ok(ct_buffer_from_host(device, &array, NULL, NULL, &inputs[d * NUM_INPUTS + (size_t)i]));
        }
        ct_array_free(&array);
        ct_array_free(&rounded);
    }
    expect_ok(ct_executable_execute(executable, inputs, NUM_INPUTS, NULL, results));
    for (int i = 0; i < NUM_OUTPUTS; i++) {
        expect_ok(ct_buffer_to_array(results[i], &outputs[i]));
        for (size_t d = 1; d < num_devices; d++) {
            ct_array other;
            expect_ok(ct_buffer_to_array(results[d * NUM_OUTPUTS + (size_t)i], &other));
            assert_memory_equal(other.data, outputs[i].data, ct_array_bytes(&other));
            ct_array_free(&other);
        }
    }
    ct_buffers_free(inputs, num_devices * NUM_INPUTS);
    ct_buffers_free(results, num_devices * NUM_OUTPUTS);
    ct_executable_free(executable);
}

static double tolerance_of(const variant *v, int output)
{
    if (v->dtype == CT_DTYPE_F64) return 1e-13;
    if (v->dtype == CT_DTYPE_F32) return 2e-6;
    /* rows of the definition come from rounded logits; gradients are rounded themselves */
    return v->form == CT_KERNEL_DEFINITION ? 1.5e-2 : output <= LSE ? 1e-5 : 8e-3;
}

static void compare(const loss_case *c, const variant *v, const char *where, const ct_array *found,
                    const ct_array *expected, double worst[NUM_OUTPUTS])
{
    for (int i = 0; i < NUM_OUTPUTS; i++) {
        double error = 0, largest = 0;
        assert_int_equal(ct_array_num_elements(&found[i]), ct_array_num_elements(&expected[i]));
        for (int64_t j = 0; j < ct_array_num_elements(&found[i]); j++) {
            double a = ct_array_get(&found[i], j), b = ct_array_get(&expected[i], j);
            if (!isfinite(a)) fail_msg("%s, %s: %s %lld is %g", where, c->name, OUTPUT_NAMES[i], (long long)j, a);
            error = fmax(error, fabs(a - b));
            largest = fmax(largest, fabs(b));
        }
        /* there is something to compare, but where nothing counts */
        bool is_zero = c->labels == ALL_IGNORED && (i == LOSS || v->is_sum || (i > LSE && c->no_lse));
        bool is_certain = c->vocab == 1 && (i != LSE || v->is_sum);
        if (is_zero) assert_true(largest == 0.0 && error == 0.0);
        if (!is_zero && !is_certain) assert_true(largest > 1e-3);
        if (!(error <= tolerance_of(v, i) * fmax(largest, 1e-3)))
            fail_msg("%s, %s, %s, %s: %s is off by %g of %g", where, c->name, ct_kernel_form_name(v->form),
                     ct_dtype_mlir(v->dtype), OUTPUT_NAMES[i], error, largest);
        worst[i] = fmax(worst[i], largest > 0 ? error / largest : 0);
    }
}

static void free_all(ct_array arrays[NUM_OUTPUTS])
{
    for (int i = 0; i < NUM_OUTPUTS; i++) ct_array_free(&arrays[i]);
}

static void test_forms(void **state)
{
    (void)state;
    static const ct_kernel_form forms[] = {CT_KERNEL_DEFINITION, CT_KERNEL_PORTABLE};
    static const ct_dtype dtypes[] = {CT_DTYPE_F64, CT_DTYPE_F32, CT_DTYPE_BF16};
    ct_client *client = ct_test_client(1);
    double worst[2][CT_COUNT(dtypes)][CT_COUNT(forms)][NUM_OUTPUTS] = {0};
    for (int sum = 0; sum < 2; sum++)
        for (size_t n = 0; n < CT_COUNT(CASES); n++) {
            variant oracle = {.form = CT_KERNEL_DEFINITION, .dtype = CT_DTYPE_F64, .is_sum = sum};
            ct_array expected[NUM_OUTPUTS], found[NUM_OUTPUTS];
            run(client, &CASES[n], &oracle, expected);
            for (size_t k = 0; k < CT_COUNT(dtypes); k++)
                for (size_t f = sum || k == 0; f < CT_COUNT(forms); f++) { /* the oracle itself is left out */
                    variant tried = {.form = forms[f], .dtype = dtypes[k], .is_sum = sum};
                    run(client, &CASES[n], &tried, found);
                    compare(&CASES[n], &tried, sum ? "sum" : "rows", found, expected, worst[sum][k][f]);
                    free_all(found);
                }
            free_all(expected);
        }
    for (int sum = 0; sum < 2; sum++)
        for (size_t k = 0; k < CT_COUNT(dtypes); k++)
            for (size_t f = sum || k == 0; f < CT_COUNT(forms); f++) {
                const double *w = worst[sum][k][f];
                print_message("%s, %-10s %-4s loss %.1e, log-sum-exp %.1e, d hidden %.1e, d weight %.1e\n",
                              sum ? "sum " : "rows", ct_kernel_form_name(forms[f]), ct_dtype_mlir(dtypes[k]), w[LOSS],
                              w[LSE], w[D_HIDDEN], w[D_WEIGHT]);
            }
    ct_client_free(client);
}

/* ---- on meshes ---- */

typedef struct mesh_case {
    const char *name;
    int64_t replicate, shard, cp, tp;
    bool whole_sequence, shardy;
    int gathers, reduces, scatters; /* of a placed program; of the weight and its gradient apart */
    int uses, stores;
} mesh_case;

/* One gather of hidden, one maximum, two sums together, one sum of d hidden. */
static const mesh_case MESHES[] = {
    {"tp2", 1, 1, 1, 2, false, false, 1, 2, 1, 0, 0},
    {"tp4", 1, 1, 1, 4, false, false, 1, 2, 1, 0, 0},
    {"tp8", 1, 1, 1, 8, false, false, 1, 2, 1, 0, 0},
    {"tp2 whole sequence", 1, 1, 1, 2, true, false, 0, 3, 0, 0, 0},
    {"tp4 whole sequence", 1, 1, 1, 4, true, false, 0, 3, 0, 0, 0},
    {"dp2 tp2 cp2", 1, 2, 2, 2, false, false, 1, 2, 1, 1, 1},
    {"dp2 tp2 cp2 whole sequence", 1, 2, 2, 2, true, false, 0, 3, 0, 1, 1},
    {"hsdp2x2 tp2", 2, 2, 1, 2, false, false, 1, 2, 1, 1, 2},
    {"dp4", 1, 4, 1, 1, false, false, 0, 0, 0, 1, 1},
    {"cp2", 1, 1, 2, 1, false, false, 0, 0, 0, 1, 1},
    {"hsdp2x2 cp2", 2, 2, 2, 1, false, false, 0, 0, 0, 1, 2},
    {"dp2 cp2, shardy", 1, 2, 2, 1, false, true, 0, 0, 0, 0, 0},
    {"dp2 tp2 cp2, shardy", 1, 2, 2, 2, false, true, 0, 0, 0, 0, 0},
};

static ct_parallel parallel_of(const mesh_case *m)
{
    ct_parallel parallel = {.table = &ct__decoder_sharding,
                            .sequence_parallel = !m->whole_sequence,
                            .loss_parallel = true,
                            .zero_stage = 3,
                            .gather_form = CT_FORM_JOINT,
                            .reduce_form = CT_FORM_JOINT,
                            .reduce_dtype = CT_DTYPE_F32,
                            .partition = m->shardy ? CT_PARTITION_SHARDY : CT_PARTITION_MANUAL,
                            .replicate_below = 1};
    ct_mesh_opts opts = {.degrees = {m->replicate, m->shard, m->cp, m->tp},
                         .num_devices = m->replicate * m->shard * m->cp * m->tp,
                         .num_kv_heads = m->tp};
    expect_ok(ct_mesh_init(&opts, &parallel.mesh));
    return parallel;
}

/* 251 is padded on every mesh; 3 leaves devices with nothing but padding. */
static const loss_case MESH_CASES[] = {
    {"251, z-loss, soft cap", 4, 16, 8, 251, 24, FIRST_FIVE_IGNORED, 0.05, 2, false},
    {"256", 4, 16, 8, 256, 0, RANDOM, 0, 0, true},
    {"3", 4, 16, 8, 3, 0, RANDOM, 0.1, 0, false},
    {"labels outside of 251", 4, 16, 8, 251, 0, OUTSIDE, 0, 0, true},
};

static void test_meshes(void **state)
{
    (void)state;
    ct_client *client = ct_test_client(8);
    double worst[2][NUM_OUTPUTS] = {0};
    for (int sum = 0; sum < 2; sum++)
        for (size_t n = 0; n < CT_COUNT(MESH_CASES); n++) {
            variant oracle = {.form = CT_KERNEL_DEFINITION, .dtype = CT_DTYPE_F64, .is_sum = sum};
            ct_array expected[NUM_OUTPUTS], found[NUM_OUTPUTS];
            run(client, &MESH_CASES[n], &oracle, expected);
            for (size_t i = n && n < 2; i < CT_COUNT(MESHES); i += n ? 2 : 1) {
                if (sum && (n > 1 || (MESHES[i].tp > 1 && !MESHES[i].shardy))) continue;
                ct_parallel parallel = parallel_of(&MESHES[i]);
                variant tried = {
                    .form = CT_KERNEL_PORTABLE, .dtype = CT_DTYPE_F32, .parallel = &parallel, .is_sum = sum};
                run(client, &MESH_CASES[n], &tried, found);
                compare(&MESH_CASES[n], &tried, MESHES[i].name, found, expected, worst[sum]);
                free_all(found);
            }
            free_all(expected);
        }
    for (int sum = 0; sum < 2; sum++)
        print_message("%s on meshes: loss %.1e, log-sum-exp %.1e, d hidden %.1e, d weight %.1e\n",
                      sum ? "sum " : "rows", worst[sum][LOSS], worst[sum][LSE], worst[sum][D_HIDDEN],
                      worst[sum][D_WEIGHT]);
    ct_client_free(client);
}

/* Where inputs and outputs lie as in a model nothing else moves, and no logits. */
static int count_dots(const loss_case *c, const variant *v)
{
    ct_kernels kernels;
    ct_graph *graph = build(c, v, &kernels);
    expect_ok(ct_graph_check(graph));
    char *text = text_of(graph);
    int count = 0;
    for (const char *at = text; (at = strstr(at, "stablehlo.dot_general")); at++) count++;
    free(text);
    ct_graph_free(graph);
    return count;
}

/* A frozen weight: all else is as it was, and the product that would make its gradient is not in the program. */
static void test_frozen(void **state)
{
    (void)state;
    ct_client *client = ct_test_client(8);
    static const ct_kernel_form forms[] = {CT_KERNEL_DEFINITION, CT_KERNEL_PORTABLE};
    static const mesh_case meshes[] = {
        {.name = "one device", 1, 1, 1, 1}, {.name = "dp4", 1, 4, 1, 1}, {.name = "dp2 tp2 cp2", 1, 2, 2, 2}};
    const loss_case *c = &MESH_CASES[0];
    for (size_t m = 0; m < CT_COUNT(meshes); m++)
        for (int sum = 0; sum < 2; sum++)
            for (size_t f = 0; f < CT_COUNT(forms); f++) {
                ct_parallel parallel = parallel_of(&meshes[m]);
                variant v = {.form = forms[f], .dtype = CT_DTYPE_F64, .parallel = m ? &parallel : NULL, .is_sum = sum};
                parallel.reduce_dtype = CT_DTYPE_F64;
                ct_array expected[NUM_OUTPUTS], found[NUM_OUTPUTS];
                run(client, c, &v, expected);
                int num_dots = m ? 0 : count_dots(c, &v);
                v.is_frozen = true;
                run(client, c, &v, found);
                if (!m) assert_int_equal(count_dots(c, &v), num_dots - 1);
                for (int64_t i = 0; i < ct_array_num_elements(&found[D_WEIGHT]); i++) {
                    assert_true(ct_array_get(&found[D_WEIGHT], i) == 0);
                    ct_array_set(&expected[D_WEIGHT], i, 0);
                }
                for (int o = 0; o < D_WEIGHT; o++)
                    for (int64_t i = 0; i < ct_array_num_elements(&found[o]); i++)
                        assert_true(fabs(ct_array_get(&found[o], i) - ct_array_get(&expected[o], i)) <
                                    1e-12 * (1 + fabs(ct_array_get(&expected[o], i))));
                free_all(expected);
                free_all(found);
            }
    ct_client_free(client);
}

static void test_what_moves(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * CT_COUNT(MESHES); i++) {
        const mesh_case *m = &MESHES[i / 2];
        bool is_sum = i % 2;
        if (m->shardy) continue;
        ct_parallel parallel = parallel_of(m);
        variant v = {CT_KERNEL_PORTABLE, CT_DTYPE_BF16, &parallel, true, is_sum, false};
        ct_kernels kernels;
        ct_graph *graph = build(&MESH_CASES[0], &v, &kernels);
        ct_localize_report report;
        expect_ok(ct_localize(graph, &report));
        int gathers = 0, reduces = 0, scatters = 0, uses = 0, stores = 0, sums = 0;
        for (int k = 0; k < report.num_collectives; k++) {
            const ct_collective_record *r = &report.collectives[k];
            bool is_use = !strcmp(r->why, "use"), is_store = !strcmp(r->why, "gradient");
            bool is_sum_output = !strncmp(r->why, "output loss", 11) || !strncmp(r->why, "output log", 10);
            uses += is_use;
            stores += is_store;
            sums += is_sum_output;
            gathers += !is_use && !strcmp(r->kind, "all_gather");
            reduces += !is_store && !is_sum_output && !strcmp(r->kind, "all_reduce");
            scatters += !is_store && !strcmp(r->kind, "reduce_scatter");
            assert_int_equal(r->times, 1);
        }
        if (gathers != m->gathers || reduces != m->reduces || scatters != m->scatters || uses != m->uses ||
            stores != m->stores || (sums > 0) != (is_sum && m->replicate * m->shard * m->cp > 1) ||
            gathers + reduces + scatters + uses + stores + sums != report.num_collectives) {
            for (int k = 0; k < report.num_collectives; k++)
                print_error("%s %s %s: %s\n", report.collectives[k].kind, report.collectives[k].mesh_axes,
                            report.collectives[k].what, report.collectives[k].why);
            fail_msg("%s%s: %d gathers, %d all-reduces, %d scatters, %d for uses, %d for stores, %d for the sum",
                     m->name, is_sum ? ", sum" : "", gathers, reduces, scatters, uses, stores, sums);
        }
        ct_localize_report_deinit(&report);
        ct_graph_free(graph);
    }
}

/* ---- memory ---- */

static int64_t temporaries_of(ct_client *client, ct_kernel_form form, bool is_sum, int64_t rows, int64_t vocab)
{
    loss_case c = {.name = "memory", .batch = 1, .seq = rows, .dim = 64, .vocab = vocab, .no_lse = true};
    variant v = {form, CT_DTYPE_F32, NULL, false, is_sum, false};
    ct_kernels kernels;
    ct_graph *graph = build(&c, &v, &kernels);
    char *text = text_of(graph);
    ct_graph_free(graph);
    ct_executable *executable = ct_test_compile(client, text, &(ct_compile_opts){.num_partitions = 1});
    ct_executable_memory memory;
    expect_ok(ct_executable_memory_stats(executable, &memory));
    ct_executable_free(executable);
    free(text);
    return memory.temp_bytes;
}

/* The compiled program's temporaries: those of the definition hold the logits, those of the portable form grow with the
 * rows, and its sum's with the weight as well, but not with their product. */
static void test_memory(void **state)
{
    (void)state;
    enum { SMALL = 16384, LARGE = 131072 };
    ct_client *client = ct_test_client(1);
    assert_true(temporaries_of(client, CT_KERNEL_DEFINITION, false, 2048, SMALL) >= (int64_t)2048 * SMALL * 4);
    for (int sum = 0; sum < 2; sum++) {
        int64_t before = 0, gap = 0;
        for (int64_t rows = 512; rows <= 32768; rows *= 4) {
            int64_t small = temporaries_of(client, CT_KERNEL_PORTABLE, sum, rows, SMALL);
            int64_t large = temporaries_of(client, CT_KERNEL_PORTABLE, sum, rows, LARGE);
            print_message("%s, %6lld rows: %5.1f MiB at a vocabulary of %d, %5.1f MiB at %d\n", sum ? "sum " : "rows",
                          (long long)rows, (double)small / 1048576, SMALL, (double)large / 1048576, LARGE);
            if (!before) gap = sum ? large - small : small / 10;
            assert_true(large - small <= gap + gap / 10);
            if (before) assert_true(small <= 4 * before + before / 10);
            before = small;
        }
    }
    ct_client_free(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_forms), cmocka_unit_test(test_meshes),
                                       cmocka_unit_test(test_frozen), cmocka_unit_test(test_what_moves),
                                       cmocka_unit_test(test_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
