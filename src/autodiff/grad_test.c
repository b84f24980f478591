/* What the reverse sweep makes and refuses; whether its numbers are right is tests/op_table's business. */
#include "autodiff/grad.h"

#include "autodiff/vjp.h"
#include "base/testing.h"
#include "graph/node.h"
#include "graph/ops.h"

static int count_nodes(const ct_graph *graph)
{
    int count = 0;
    for (const ct_node *node = graph->main->first; node; node = node->next) count++;
    return count;
}

/* How often word occurs in the program whose outputs are tensors. Frees the graph. */
static int occurrences(ct_graph *graph, ct_tensor *const *tensors, int num_tensors, const char *word)
{
    for (int i = 0; i < num_tensors; i++) {
        char name[16];
        snprintf(name, sizeof(name), "y%d", i);
        ct_output(graph, name, tensors[i], NULL);
    }
    ct_str text = {0};
    expect_ok(ct_graph_print(graph, &text));
    int count = 0;
    for (const char *at = text.data; (at = strstr(at, word)); at++) count++;
    ct_str_deinit(&text);
    ct_graph_free(graph);
    return count;
}

/* ---- what is refused ---- */

static ct_tensor *never(ct_graph *graph, void *context, ct_tensor *const *carries)
{
    (void)context, (void)carries;
    return ct_full(graph, CT_DTYPE_BOOL, "", 0);
}
static void same(ct_graph *graph, void *context, ct_tensor *const *carries, ct_tensor **out_carries)
{
    (void)graph, (void)context;
    out_carries[0] = carries[0];
}

static void test_refusals(void **state)
{
    (void)state;
    ct_graph *graph = ct_graph_new("test");
    ct_tensor *x = ct_input(graph, "x", CT_DTYPE_F32, "dim=3"), *gradient;
    expect_error(ct_grad(graph, x, &x, 1, &gradient), CT_CODE_INVALID_ARGUMENT,
                 "grad: the loss must be a float without axes, found f32[dim=3]");
    assert_true(ct_tensor_is_poison(gradient));
    /* an op without a derivative on the way */
    ct_tensor *y;
    ct_while(graph, 1, &x, never, same, NULL, &y);
    int line = __LINE__ - 1;
    char expected[128];
    snprintf(expected, sizeof(expected),
             "autodiff/grad_test.c:%d: grad: ctitan.while has no derivative; use ct_stop_gradient or ct_custom_vjp",
             line);
    expect_error(ct_grad(graph, ct_sum(y, "dim"), &x, 1, &gradient), CT_CODE_INVALID_ARGUMENT, expected);
    ct_graph_free(graph);

    graph = ct_graph_new("test");
    x = ct_input(graph, "x", CT_DTYPE_S32, "");
    ct_tensor *loss = ct_scalar(graph, CT_DTYPE_F32, 1);
    expect_error(ct_grad(graph, loss, &x, 1, &gradient), CT_CODE_INVALID_ARGUMENT,
                 "grad: gradients exist for floats only, parameter 0 is s32[]");
    ct_graph_free(graph);

    graph = ct_graph_new("test");
    x = ct_input(graph, "x", CT_DTYPE_F32, "dim=3");
    ct_tensor *cotangent = ct_scalar(graph, CT_DTYPE_F32, 1);
    expect_error(ct_grad_from(graph, 1, &x, &cotangent, &x, 1, &gradient), CT_CODE_INVALID_ARGUMENT,
                 "cotangent f32[] does not fit f32[dim=3]");
    ct_graph_free(graph);

    /* the graph's own error comes first */
    graph = ct_graph_new("test");
    x = ct_input(graph, "x", CT_DTYPE_F32, "");
    ct_sum(x, "dim");
    expect_error(ct_grad(graph, x, &x, 1, &gradient), CT_CODE_INVALID_ARGUMENT, "sum: no axis dim in f32[]");
    ct_graph_free(graph);
}

/* inside a body, with respect to a tensor outside that reaches the loss by another way */
static void detour_body(ct_graph *graph, void *context, ct_tensor *const *c, ct_tensor *const *x, ct_tensor **out_c,
                        ct_tensor **out_y)
{
    (void)x, (void)out_y;
    ct_tensor *const *outer = context;
    ct_tensor *loss = ct_sum(ct_mul(outer[0], outer[1]), "dim"), *gradient;
    ct_status_free(ct_grad(graph, loss, &outer[0], 1, &gradient));
    out_c[0] = ct_add(c[0], gradient);
}
static void test_detours(void **state)
{
    (void)state;
    for (int stopped = 0; stopped < 2; stopped++) {
        ct_graph *graph = ct_graph_new("test");
        ct_tensor *w = ct_input(graph, "w", CT_DTYPE_F32, "dim=3"), *final;
        ct_tensor *doubled = ct_add(stopped ? ct_stop_gradient(w) : w, w);
        if (stopped) doubled = ct_stop_gradient(doubled);
        ct_tensor *outer[2] = {w, doubled};
        ct_scan_opts opts = {.axis = "n", .length = 2, .num_carries = 1, .carries = &w};
        ct_scan(graph, &opts, detour_body, outer, &final, NULL);
        if (stopped)
            expect_ok(ct_graph_check(graph));
        else
            expect_error(
                ct_graph_check(graph), CT_CODE_INVALID_ARGUMENT,
                "grad: f32[dim=3] depends on a parameter but was made outside the body that ct_grad is called in");
        ct_graph_free(graph);
    }
}

/* ---- what is made ---- */

static void test_only_the_way_is_visited(void **state)
{
    (void)state;
    ct_graph *graph = ct_graph_new("test");
    ct_tensor *x = ct_input(graph, "x", CT_DTYPE_F32, "dim=3"), *y = ct_input(graph, "y", CT_DTYPE_F32, "dim=3");
    ct_tensor *unrelated = ct_exp(ct_tanh(ct_sin(y)));
    ct_tensor *loss = ct_sum(ct_mul(x, unrelated), "dim"), *gradients[2];
    int before = count_nodes(graph);
    expect_ok(ct_grad(graph, loss, &x, 1, gradients));
    /* one, its broadcast, one product: nothing for y's side */
    assert_int_equal(count_nodes(graph) - before, 3);
    /* nothing depends on it: zeros of its type */
    ct_tensor *free = ct_input(graph, "free", CT_DTYPE_BF16, "a=2 b=3");
    expect_ok(ct_grad(graph, loss, &free, 1, gradients));
    assert_string_equal(ct_tensor_describe(gradients[0]), "bf16[a=2 b=3]");
    /* no parameter at all */
    expect_ok(ct_grad(graph, loss, NULL, 0, NULL));
    ct_graph_free(graph);
}

/* results may go where the parameters came from */
static void test_in_place(void **state)
{
    (void)state;
    ct_graph *graph = ct_graph_new("test");
    ct_tensor *x[2] = {ct_input(graph, "x", CT_DTYPE_F32, "dim=3"), ct_input(graph, "y", CT_DTYPE_F32, "")};
    expect_ok(ct_grad(graph, ct_sum(ct_mul(x[0], x[1]), "dim"), x, 2, x));
    assert_string_equal(ct_tensor_describe(x[0]), "f32[dim=3]");
    assert_string_equal(ct_tensor_describe(x[1]), "f32[]");
    assert_non_null(x[0]->node);
    ct_graph_free(graph);
}

/* ---- what remat policies keep ---- */

static const char *const save_h[] = {"h"};
static const ct_remat_policy none = {.mode = CT_REMAT_NONE}, selective = {.mode = CT_REMAT_SELECTIVE},
                             full = {.mode = CT_REMAT_FULL},
                             full_but_h = {.mode = CT_REMAT_FULL, .num_save = 1, .save = save_h},
                             h_on_host = {.mode = CT_REMAT_FULL, .num_offload = 1, .offload = save_h},
                             all_but_h = {.mode = CT_REMAT_NONE, .num_recompute = 1, .recompute = save_h};

static ct_tensor *block(ct_tensor *x, ct_tensor *w)
{
    ct_tensor *h = ct_checkpoint_name(ct_sin(ct_rename(ct_linear(x, w), "out", "dim")), "h");
    return ct_exp(ct_mul(h, h));
}

static int in_block(const ct_remat_policy *policy, const char *word)
{
    ct_graph *graph = ct_graph_new("test");
    ct_tensor *in[2] = {ct_input(graph, "x", CT_DTYPE_F32, "dim=3"), ct_input(graph, "w", CT_DTYPE_F32, "out=3 dim=3")};
    ct_checkpoint_begin(graph, policy);
    ct_tensor *y = block(in[0], in[1]);
    ct_checkpoint_end(graph);
    ct_tensor *gradients[2];
    expect_ok(ct_grad(graph, ct_sum(y, "dim"), in, 2, gradients));
    return occurrences(graph, gradients, 2, word);
}

static void test_blocks(void **state)
{
    (void)state;
    /* ops of the forward pass: once, or once more in the backward pass. The block's result is not needed for gradients
     * alone, so under full remat only the copies remain live where the loss itself is no output. */
    assert_int_equal(in_block(&none, "optimization_barrier"), 0);
    assert_int_equal(in_block(&none, "stablehlo.sine"), 1);
    assert_int_equal(in_block(&full, "optimization_barrier"), 1);
    assert_int_equal(in_block(&full, "stablehlo.sine"), 1);
    assert_int_equal(in_block(&full, "stablehlo.dot_general"), 3); /* h again, and two gradients */
    assert_int_equal(in_block(&selective, "stablehlo.dot_general"), 3);
    assert_int_equal(in_block(&selective, "stablehlo.sine"), 1);
    assert_int_equal(in_block(&full_but_h, "stablehlo.sine"), 1);
    /* cos(w x) needs w x again although h is kept */
    assert_int_equal(in_block(&full_but_h, "stablehlo.dot_general"), 4);
    /* kept on the host: there and back */
    assert_int_equal(in_block(&h_on_host, "annotate_device_placement"), 2);
    assert_int_equal(in_block(&h_on_host, "stablehlo.sine"), 1);
    assert_int_equal(in_block(&all_but_h, "optimization_barrier"), 1);
    assert_int_equal(in_block(&all_but_h, "stablehlo.dot_general"), 3);
}

static void scan_body(ct_graph *graph, void *context, ct_tensor *const *c, ct_tensor *const *x, ct_tensor **out_c,
                      ct_tensor **out_y)
{
    (void)graph, (void)context, (void)out_y;
    out_c[0] = block(c[0], x[0]);
}

/* Stacked buffers: what the forward scan saves, and the gradient of the weights. */
static int stacked(const ct_remat_policy *policy)
{
    ct_graph *graph = ct_graph_new("test");
    ct_tensor *in[2] = {ct_input(graph, "x", CT_DTYPE_F32, "dim=3"),
                        ct_input(graph, "w", CT_DTYPE_F32, "n=4 out=3 dim=3")};
    ct_tensor *y, *gradients[2];
    ct_scan_opts opts = {
        .axis = "n", .num_carries = 1, .carries = in, .num_inputs = 1, .inputs = &in[1], .remat = policy};
    ct_scan(graph, &opts, scan_body, NULL, &y, NULL);
    expect_ok(ct_grad(graph, ct_sum(y, "dim"), in, 2, gradients));
    return occurrences(graph, gradients, 2, "stablehlo.dynamic_update_slice");
}

static void test_scans(void **state)
{
    (void)state;
    assert_int_equal(stacked(&full), 2);       /* the carry; dw */
    assert_int_equal(stacked(&selective), 3);  /* and w x */
    assert_int_equal(stacked(&full_but_h), 3); /* and h */
    assert_int_equal(stacked(&h_on_host), 3);
    assert_int_equal(stacked(&all_but_h), 4);
    assert_int_equal(stacked(&none), 5); /* carry, w x, h, the result of exp; dw */
}

/* ---- functions ---- */

static void function_body(ct_graph *graph, void *context, ct_tensor *const *args, ct_tensor **out)
{
    (void)graph, (void)context;
    out[0] = block(args[0], args[1]);
    out[1] = ct_convert(args[0], CT_DTYPE_S32);
}

static void test_vjp_signatures(void **state)
{
    (void)state;
    static const struct {
        const ct_remat_policy *policy;
        int num_residuals;
    } cases[] = {{NULL, 5}, {&none, 5}, {&full, 2}, {&selective, 3}, {&full_but_h, 3}};
    for (size_t i = 0; i < CT_COUNT(cases); i++) {
        ct_graph *graph = ct_graph_new("test");
        ct_tensor *like[2] = {ct_input(graph, "x", CT_DTYPE_F32, "dim=3"),
                              ct_input(graph, "w", CT_DTYPE_F32, "out=3 dim=3")};
        ct_function *function = ct_function_new(graph, "f", 2, like, 2, function_body, NULL);
        ct_vjp_pair pair;
        expect_ok(ct_vjp(function, cases[i].policy, &pair));
        assert_int_equal(pair.num_outputs, 2);
        assert_int_equal(pair.num_residuals, cases[i].num_residuals);
        assert_int_equal(pair.num_cotangents, 1); /* the s32 output has none */
        assert_int_equal(pair.num_gradients, 2);
        assert_int_equal(ct_function_num_results(pair.forward), 2 + pair.num_residuals);
        assert_int_equal(ct_function_num_args(pair.backward), pair.num_residuals + 1);
        assert_string_equal(ct_function_name(pair.backward), "f.backward");
        assert_int_equal(ct_function_num_results(function), 2); /* the original is as it was */
        ct_graph_free(graph);
    }
}

/* calls that want the same gradients share one pair; functions that nothing calls are not printed */
static void test_calls_share_derivatives(void **state)
{
    (void)state;
    ct_graph *graph = ct_graph_new("test");
    ct_tensor *in[2] = {ct_input(graph, "x", CT_DTYPE_F32, "dim=3"), ct_input(graph, "w", CT_DTYPE_F32, "out=3 dim=3")};
    ct_function *function = ct_function_new(graph, "f", 2, in, 2, function_body, NULL);
    ct_tensor *results[2], *args[2] = {in[0], in[1]}, *gradients[2];
    for (int i = 0; i < 3; i++) {
        ct_call(function, args, results);
        args[0] = results[0];
    }
    expect_ok(ct_grad(graph, ct_sum(args[0], "dim"), in, 2, gradients));
    assert_int_equal(occurrences(graph, gradients, 2, "func.func private"), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_detours),
        cmocka_unit_test(test_only_the_way_is_visited),
        cmocka_unit_test(test_in_place),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_scans),
        cmocka_unit_test(test_vjp_signatures),
        cmocka_unit_test(test_calls_share_derivatives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
