/* Graphs: axis lists, names, scopes and locations, the sticky error, poison, ports, and the error text of every family.
 */
#include "graph/graph.h"

#include "base/testing.h"
#include "graph/node.h"
#include "graph/ops.h"

/* ---- axes and names ---- */

static void test_axis_lists(void **state)
{
    (void)state;
    ct_graph *graph = ct_graph_new("test");
    ct_graph_declare_axis(graph, "dim", 4);
    ct_tensor *x = ct_input(graph, "x", CT_DTYPE_BF16, "  batch=2   seq=0 dim ");
    assert_string_equal(ct_tensor_describe(x), "bf16[batch=2 seq=0 dim=4]");
    assert_int_equal(ct_tensor_rank(x), 3);
    assert_int_equal(ct_tensor_find_axis(x, "dim"), 2);
    assert_int_equal(ct_tensor_find_axis(x, "heads"), -1);
    assert_int_equal(ct_tensor_axis_size(x, "dim"), 4);
    assert_int_equal(ct_graph_axis_size(graph, "dim"), 4);
    assert_int_equal(ct_graph_axis_size(graph, "heads"), 0);
    /* a size written in place wins over the declared one, for this tensor */
    ct_tensor *y = ct_input(graph, "y", CT_DTYPE_BOOL, "dim=7");
    assert_int_equal(ct_tensor_size(y, 0), 7);
    assert_string_equal(ct_tensor_describe(ct_input(graph, "z", CT_DTYPE_S32, "")), "s32[]");
    expect_ok(ct_graph_check(graph));
    ct_graph_free(graph);
}

static void test_nothing_is_made_when_nothing_is_to_do(void **state)
{
    (void)state;
    ct_graph *graph = ct_graph_new("test");
    ct_tensor *x = ct_input(graph, "x", CT_DTYPE_F32, "a=2 b=3");
    assert_ptr_equal(ct_convert(x, CT_DTYPE_F32), x);
    assert_ptr_equal(ct_transpose(x, "a b"), x);
    assert_ptr_equal(ct_slice(x, "b", 0, 3), x);
    assert_ptr_equal(ct_pad(x, "b", 0, 0, 1), x);
    assert_ptr_equal(ct_broadcast_like(x, x), x);
    assert_ptr_equal(ct_sum(x, ""), x);
    assert_null(graph->main->first);
    ct_graph_free(graph);
}

/* ---- printing ---- */

static char *printed(ct_graph *graph)
{
    ct_str text = {0};
    expect_ok(ct_graph_print(graph, &text));
    ct_graph_free(graph);
    return ct_str_release(&text);
}

static void test_program_text(void **state)
{
    (void)state;
    ct_graph *graph = ct_graph_new("step");
    ct_graph_set_mesh(graph, "dp=2 tp=4");
    ct_tensor *w = ct_input(graph, "layers.0.\"w\"", CT_DTYPE_F32, "out=8 in=4");
    ct_tensor *x = ct_input(graph, "x", CT_DTYPE_F32, "batch=2 in=4");
    ct_graph_set_input_sharding(graph, w, "out=dp+tp");
    ct_scope_push(graph, "layers.%d", 0);
    ct_scope_push(graph, "mlp");
    const char *saved = ct__loc_enter(graph, "src/nn/mlp.c:12");
    ct_tensor *y = ct_linear(x, w);
    ct_exp(y); /* nobody uses it: not printed */
    ct__loc_leave(graph, saved);
    ct_scope_pop(graph);
    ct_scope_pop(graph);
    saved = ct__loc_enter(graph, "recipe.c:3");
    ct_tensor *next = ct_add(w, w);
    ct__loc_leave(graph, saved);
    ct_output(graph, "y", y, NULL);
    ct_output(graph, "w", next, w);
    ct_graph_set_output_sharding(graph, 1, "out=dp+tp");
    assert_int_equal(ct_graph_input_donated_to(graph, 0), 1);
    assert_int_equal(ct_graph_input_donated_to(graph, 1), -1);
    assert_string_equal(ct_graph_input_name(graph, 0), "layers.0.\"w\"");
    assert_string_equal(ct_graph_output_name(graph, 1), "w");
    char *text = printed(graph);
    assert_string_equal(
        text,
        "module @step {\n"
        "  sdy.mesh @mesh = <[\"dp\"=2, \"tp\"=4]>\n"
        "  func.func public @main(%0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"dp\", \"tp\"}, {}]>, "
        "tf.aliasing_output = 1 : i32} loc(\"layers.0.\\\"w\\\"\"), %1: tensor<2x4xf32> loc(\"x\")) -> "
        "(tensor<2x8xf32>, tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"dp\", \"tp\"}, {}]>}) {\n"
        "    %2 = \"stablehlo.dot_general\"(%1, %0) <{dot_dimension_numbers = "
        "#stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>, precision_config = "
        "[#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<2x4xf32>, tensor<8x4xf32>) -> "
        "tensor<2x8xf32> loc(\"layers.0.mlp\"(\"nn/mlp.c\":12:0))\n"
        "    %3 = \"stablehlo.add\"(%0, %0) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32> "
        "loc(\"recipe.c\":3:0)\n"
        "    \"func.return\"(%2, %3) : (tensor<2x8xf32>, tensor<8x4xf32>) -> ()\n"
        "  }\n"
        "}\n");
    free(text);
}

/* Printing twice gives the same text: channels, names and liveness start afresh. */
static void gather_body(ct_graph *graph, void *context, ct_tensor *const *args, ct_tensor **out)
{
    (void)graph;
    (void)context;
    out[0] = ct_all_gather(args[0], "n", "dp");
}
static void test_printing_twice(void **state)
{
    (void)state;
    ct_graph *graph = ct_graph_new("test");
    ct_graph_set_mesh(graph, "dp=2");
    ct_tensor *x = ct_input(graph, "x", CT_DTYPE_F32, "n=4"), *y;
    static const char *const in[1] = {"n=dp"}, *const out[1] = {""};
    ct_manual_opts opts = {
        .num_inputs = 1, .num_outputs = 1, .inputs = &x, .input_placements = in, .output_placements = out};
    ct_manual(graph, &opts, gather_body, NULL, &y);
    ct_output(graph, "y", y, NULL);
    ct_str first = {0};
    expect_ok(ct_graph_print(graph, &first));
    assert_non_null(strstr(first.data, "handle = 1"));
    char *second = printed(graph);
    assert_string_equal(first.data, second);
    free(second);
    ct_str_deinit(&first);
}

/* ---- the sticky error ---- */

static void test_first_error_stays(void **state)
{
    (void)state;
    ct_graph *graph = ct_graph_new("test");
    ct_tensor *x = ct_input(graph, "x", CT_DTYPE_F32, "batch=8 dim=128");
    ct_tensor *w = ct_input(graph, "w", CT_DTYPE_F32, "out=4 in=4");
    ct_scope_push(graph, "layers.%d", 7);
    ct_tensor *bad = ct_linear(x, w);
    int line = __LINE__ - 1;
    ct_scope_pop(graph);
    assert_true(ct_tensor_is_poison(bad));
    assert_string_equal(ct_tensor_describe(bad), "poison");
    ct_tensor *also = ct_add(bad, ct_input(graph, "x", CT_DTYPE_F32, "dim")); /* two further mistakes */
    assert_true(ct_tensor_is_poison(also));
    assert_true(ct_tensor_is_poison(ct_exp(x))); /* a failed graph makes nothing more */
    ct_output(graph, "y", also, NULL);
    assert_int_equal(ct_graph_num_outputs(graph), 0);
    char expected[256];
    snprintf(expected, sizeof(expected),
             "graph/graph_test.c:%d: linear: no shared axis between x f32[batch=8 dim=128] and w f32[out=4 in=4] (in "
             "layers.7)",
             line);
    expect_error(ct_graph_check(graph), CT_CODE_INVALID_ARGUMENT, expected);
    ct_str text = {0};
    expect_error(ct_graph_print(graph, &text), CT_CODE_INVALID_ARGUMENT, expected);
    ct_str_deinit(&text);
    ct_graph_free(graph);
}

static void test_error_of_a_layer_names_its_caller(void **state)
{
    (void)state;
    ct_graph *graph = ct_graph_new("test");
    ct_tensor *x = ct_input(graph, "x", CT_DTYPE_F32, "dim=4");
    const char *saved = ct__loc_enter(graph, "src/models/model.c:40");
    assert_true(ct_tensor_is_poison(ct_sum(x, "heads")));
    ct__loc_leave(graph, saved);
    expect_error(ct_graph_check(graph), CT_CODE_INVALID_ARGUMENT,
                 "models/model.c:40: sum: no axis heads in f32[dim=4]");
    ct_graph_free(graph);
    graph = ct_graph_new("test");
    ct_graph_fail(graph, "rope", "head_dim must be even, found %d", 3);
    expect_error(ct_graph_check(graph), CT_CODE_INVALID_ARGUMENT, "rope: head_dim must be even, found 3");
    ct_graph_free(graph);
}

/* ---- the error text of every op family ---- */

static ct_tensor *f(ct_graph *graph, const char *axes)
{
    return ct_input(graph, axes, CT_DTYPE_F32, axes);
}
static ct_tensor *n(ct_graph *graph, const char *axes)
{
    return ct_input(graph, ct_arena_printf(&graph->arena, "s32 %s", axes), CT_DTYPE_S32, axes);
}

static void copy_carry(ct_graph *graph, void *context, ct_tensor *const *c, ct_tensor *const *x, ct_tensor **out_c,
                       ct_tensor **out_y)
{
    (void)graph, (void)x;
    out_c[0] = context ? context : c[0];
    out_y[0] = c[0];
}
static void scan_one(ct_graph *graph, const char *axis, int64_t length, ct_tensor *input, ct_tensor *next)
{
    ct_tensor *carry = f(graph, "dim=2"), *final, *outputs;
    ct_scan_opts opts = {.axis = axis,
                         .length = length,
                         .num_carries = 1,
                         .carries = &carry,
                         .num_inputs = input ? 1 : 0,
                         .inputs = &input,
                         .num_outputs = 1};
    ct_scan(graph, &opts, copy_carry, next, &final, &outputs);
    assert_true(ct_tensor_is_poison(final) && ct_tensor_is_poison(outputs));
}

static ct_tensor *condition(ct_graph *graph, void *context, ct_tensor *const *carries)
{
    (void)graph, (void)context;
    return carries[0];
}
static void turn(ct_graph *graph, void *context, ct_tensor *const *carries, ct_tensor **out_carries)
{
    (void)graph, (void)context;
    out_carries[0] = carries[0];
}
static void branch_a(ct_graph *graph, void *context, ct_tensor **out)
{
    (void)context;
    out[0] = ct_scalar(graph, CT_DTYPE_F32, 1);
}
static void branch_b(ct_graph *graph, void *context, ct_tensor **out)
{
    (void)context;
    out[0] = ct_scalar(graph, CT_DTYPE_S32, 1);
}
static void use_outside(ct_graph *graph, void *context, ct_tensor *const *args, ct_tensor **out)
{
    (void)graph;
    out[0] = ct_add(args[0], context);
}

static void bad_axes(ct_graph *g)
{
    f(g, "a=1 a=2");
}
static void bad_size(ct_graph *g)
{
    f(g, "a=x");
}
static void no_size(ct_graph *g)
{
    f(g, "a");
}
static void many_axes(ct_graph *g)
{
    f(g, "a=1 b=1 c=1 d=1 e=1 f=1 g=1 h=1 i=1");
}
static void same_input(ct_graph *g)
{
    f(g, "a=1"), f(g, "a=1");
}
static void add_dtypes(ct_graph *g)
{
    ct_add(f(g, "a=2"), n(g, "a=2 b=1"));
}
static void add_sizes(ct_graph *g)
{
    ct_add(f(g, "a=2"), f(g, "a=3"));
}
static void add_axes(ct_graph *g)
{
    ct_add(f(g, "a=2"), f(g, "b=2"));
}
static void exp_integer(ct_graph *g)
{
    ct_exp(n(g, "a=2"));
}
static void compare_dtypes(ct_graph *g)
{
    ct_lt(f(g, "a=2"), n(g, "a=2 b=1"));
}
static void select_float(ct_graph *g)
{
    ct_select(f(g, "a=1"), f(g, "a=2"), f(g, "a=3"));
}
static void bitcast_size(ct_graph *g)
{
    ct_bitcast(f(g, "a=2"), CT_DTYPE_BF16);
}
static void precision_integer(ct_graph *g)
{
    ct_reduce_precision(n(g, "a=2"), CT_DTYPE_BF16);
}
static void full_size(ct_graph *g)
{
    ct_full(g, CT_DTYPE_F32, "a", 0);
}
static void iota_axis(ct_graph *g)
{
    ct_iota(g, CT_DTYPE_S32, "a=2", "b");
}
static void constant_rank(ct_graph *g)
{
    float zero = 0;
    ct_constant(g, (&(ct_array){.dtype = CT_DTYPE_F32, .data = &zero}), "a");
}
static void broadcast_axis(ct_graph *g)
{
    ct_broadcast_like(f(g, "a=2 b=2"), f(g, "b=2"));
}
static void rename_taken(ct_graph *g)
{
    ct_rename(f(g, "a=2 b=2"), "a", "b");
}
static void split_size(ct_graph *g)
{
    ct_split(f(g, "a=6"), "a", "b=4 c");
}
static void split_open(ct_graph *g)
{
    ct_split(f(g, "a=6"), "a", "b c");
}
static void merge_order(ct_graph *g)
{
    ct_merge(f(g, "a=2 b=3"), "b a", "c");
}
static void squeeze_size(ct_graph *g)
{
    ct_squeeze(f(g, "a=2"), "a");
}
static void transpose_part(ct_graph *g)
{
    ct_transpose(f(g, "a=2 b=3"), "b");
}
static void transpose_twice(ct_graph *g)
{
    ct_transpose(f(g, "a=2 b=3"), "b b");
}
static void slice_bounds(ct_graph *g)
{
    ct_slice(f(g, "a=2"), "a", 1, 3);
}
static void slice_axes(ct_graph *g)
{
    ct_slice(f(g, "a=2 b=2"), "a b", 0, 1);
}
static void dynamic_start(ct_graph *g)
{
    ct_dynamic_slice(f(g, "a=2"), "a", f(g, ""), 1);
}
static void dynamic_size(ct_graph *g)
{
    ct_dynamic_slice(f(g, "a=2"), "a", n(g, ""), 3);
}
static void update_fit(ct_graph *g)
{
    ct_dynamic_update_slice(f(g, "a=2"), f(g, "a=3"), "a", n(g, ""));
}
static void pad_negative(ct_graph *g)
{
    ct_pad(f(g, "a=2"), "a", -1, -2, 0);
}
static void concat_fit(ct_graph *g)
{
    ct_concat((ct_tensor *[]){f(g, "a=2 b=1"), f(g, "a=2 b=2")}, 2, "a");
}
static void dot_sizes(ct_graph *g)
{
    ct_dot(f(g, "a=2"), f(g, "a=3"), "a");
}
static void dot_axis(ct_graph *g)
{
    ct_dot(f(g, "a=2"), f(g, "b=2"), "a");
}
static void dot_dtypes(ct_graph *g)
{
    ct_dot(f(g, "a=2"), n(g, "a=2 b=1"), "a");
}
static void mean_integer(ct_graph *g)
{
    ct_mean(n(g, "a=2"), "a");
}
static void any_float(ct_graph *g)
{
    ct_any(f(g, "a=2"), "a");
}
static void argmax_axes(ct_graph *g)
{
    ct_argmax(f(g, "a=2 b=2"), "a b");
}
static void cumsum_axes(ct_graph *g)
{
    ct_cumsum(f(g, "a=2 b=2 c=1"), "a b c");
}
static void rename_axes(ct_graph *g)
{
    ct_rename(f(g, "a=2 b=2 c=1"), "a b c", "d");
}
static void split_axes(ct_graph *g)
{
    ct_split(f(g, "a=2 b=2 c=1"), "a b c", "d e");
}
static void squeeze_axes(ct_graph *g)
{
    ct_squeeze(f(g, "a=1 b=1 c=1"), "a b c");
}
static void sort_axes(ct_graph *g)
{
    ct_sort(f(g, "a=1 b=1 c=1"), "a b c", false);
}
static void along_two(ct_graph *g)
{
    ct_take_along(f(g, "a=1 b=1 c=1"), n(g, "a=1 b=1 c=1"), "a b c");
}
static void softmax_integer(ct_graph *g)
{
    ct_softmax(n(g, "a=2"), "a");
}
static void take_axis(ct_graph *g)
{
    ct_take(f(g, "a=2 b=3"), n(g, "c=2"), "b");
}
static void take_float(ct_graph *g)
{
    ct_take(f(g, "a=2"), f(g, "c=2"), "a");
}
static void take_shared(ct_graph *g)
{
    ct_take(f(g, "a=2 b=3"), n(g, "b=2"), "a");
}
static void scatter_fit(ct_graph *g)
{
    ct_scatter_add(f(g, "a=2 b=3"), n(g, "c=2"), f(g, "c=2"), "a");
}
static void one_hot_taken(ct_graph *g)
{
    ct_one_hot(n(g, "a=2"), "a", 3, CT_DTYPE_F32);
}
static void along_axes(ct_graph *g)
{
    ct_take_along(f(g, "a=2 b=3"), n(g, "a=3 b=1"), "b");
}
static void sort_payload(ct_graph *g)
{
    ct_tensor *tensors[2] = {f(g, "a=2"), f(g, "a=3")};
    ct_sort_with(2, tensors, "a", false, tensors);
}
static void top_k_size(ct_graph *g)
{
    ct_top_k(f(g, "a=2"), "a", 3, NULL);
}
static void scan_input(ct_graph *g)
{
    scan_one(g, "n", 4, f(g, "a=4"), NULL);
}
static void scan_length(ct_graph *g)
{
    scan_one(g, "n", 0, NULL, NULL);
}
static void scan_carry(ct_graph *g)
{
    scan_one(g, "n", 2, NULL, f(g, "a=4"));
}
static void scan_output(ct_graph *g)
{
    scan_one(g, "dim", 2, NULL, NULL);
}
static void while_condition(ct_graph *g)
{
    ct_tensor *carry = f(g, "a=2");
    ct_while(g, 1, &carry, condition, turn, NULL, &carry);
}
static void cond_predicate(ct_graph *g)
{
    ct_tensor *result;
    ct_cond(g, f(g, ""), branch_a, branch_a, NULL, 1, &result);
}
static void cond_results(ct_graph *g)
{
    ct_tensor *result;
    ct_cond(g, ct_input(g, "p", CT_DTYPE_BOOL, ""), branch_a, branch_b, NULL, 1, &result);
}
static void function_outside(ct_graph *g)
{
    ct_tensor *x = f(g, "a=2");
    ct_function_new(g, "g", 1, &x, 1, use_outside, x);
}
static void identity(ct_graph *graph, void *context, ct_tensor *const *args, ct_tensor **out)
{
    (void)graph, (void)context;
    out[0] = args[0];
}
static void call_types(ct_graph *g)
{
    ct_tensor *x = f(g, "a=2"), *y = f(g, "b=2");
    ct_function *function = ct_function_new(g, "g", 1, &x, 1, identity, NULL);
    ct_call(function, &y, &x);
}
static void custom_call_version(ct_graph *g)
{
    ct_tensor *x = f(g, "a=2");
    ct_custom_call(g, "target", 1, &x, 1, &x, (&(ct_custom_call_opts){.config = "{}"}), &x);
}
static void manual_of(ct_graph *g, ct_tensor *x, const char *in, const char *out, ct_manual_body *body, void *context)
{
    ct_tensor *y;
    ct_manual_opts opts = {
        .num_inputs = 1, .num_outputs = 1, .inputs = &x, .input_placements = &in, .output_placements = &out};
    ct_manual(g, &opts, body, context, &y);
}
static void manual_mesh(ct_graph *g)
{
    manual_of(g, f(g, "a=2"), "", "", identity, NULL);
}
static void manual_axis(ct_graph *g)
{
    ct_graph_set_mesh(g, "dp=2");
    manual_of(g, f(g, "a=2"), "a=tp", "", identity, NULL);
}
static void manual_divide(ct_graph *g)
{
    ct_graph_set_mesh(g, "dp=2 tp=2");
    manual_of(g, f(g, "a=6"), "a=dp+tp", "", identity, NULL);
}
static void manual_twice(ct_graph *g)
{
    ct_graph_set_mesh(g, "dp=2");
    manual_of(g, f(g, "a=2 b=2"), "a=dp b=dp", "", identity, NULL);
}
static void manual_word(ct_graph *g)
{
    ct_graph_set_mesh(g, "dp=2");
    manual_of(g, f(g, "a=2 b=2"), "a", "", identity, NULL);
}
static void manual_outside(ct_graph *g)
{
    ct_graph_set_mesh(g, "dp=2");
    manual_of(g, f(g, "a=2"), "", "", use_outside, f(g, ""));
}
static void collective_outside(ct_graph *g)
{
    ct_graph_set_mesh(g, "dp=2");
    ct_all_reduce(f(g, "a=2"), CT_REDUCTION_SUM, "dp");
}
static void scatter_size(ct_graph *graph, void *context, ct_tensor *const *args, ct_tensor **out)
{
    (void)graph, (void)context;
    out[0] = ct_reduce_scatter(args[0], "a", "dp");
}
static void collective_size(ct_graph *g)
{
    ct_graph_set_mesh(g, "dp=2");
    manual_of(g, f(g, "a=3"), "", "", scatter_size, NULL);
}
static void permute_pairs(ct_graph *graph, void *context, ct_tensor *const *args, ct_tensor **out)
{
    (void)graph, (void)context;
    static const int64_t pairs[2][2] = {{0, 1}, {1, 1}};
    out[0] = ct_collective_permute(args[0], "dp", 2, pairs);
}
static void collective_pairs(ct_graph *g)
{
    ct_graph_set_mesh(g, "dp=2");
    manual_of(g, f(g, "a=3"), "", "", permute_pairs, NULL);
}
static void sharding_mesh(ct_graph *g)
{
    ct_graph_set_input_sharding(g, f(g, "a=2"), "a=dp");
}
static void bytes_overflow(ct_graph *g)
{
    ct_exp(ct_iota(g, CT_DTYPE_F32, "c=3037000500 d=3037000500", "d"));
}

static const struct {
    void (*build)(ct_graph *graph);
    const char *text;
} errors[] = {
    {bytes_overflow, "iota: f32[c=3037000500 d=3037000500] has more than 2^63 bytes"},
    {bad_axes, "input: axis a occurs twice in \"a=1 a=2\""},
    {bad_size, "input: bad size in \"a=x\": write name=SIZE"},
    {no_size, "input: axis a of a has no size: declare it or write a=SIZE"},
    {many_axes, "input: more than 8 axes in \"a=1 b=1 c=1 d=1 e=1 f=1 g=1 h=1 i=1\""},
    {same_input, "input: the name a=1 is taken by another input"},
    {add_dtypes, "add: dtypes must be equal and supported, found f32[a=2] and s32[a=2 b=1]"},
    {add_sizes, "add: axis a has sizes 3 and 2: f32[a=3] and f32[a=2]"},
    {add_axes, "add: neither operand has all axes: f32[b=2] and f32[a=2]"},
    {exp_integer, "exponential: dtype s32 is not supported (s32[a=2])"},
    {compare_dtypes, "compare: dtypes must be equal, found f32[a=2] and s32[a=2 b=1]"},
    {select_float, "select: needs a bool condition and equal dtypes, found f32[a=1], f32[a=2] and f32[a=3]"},
    {bitcast_size, "bitcast: f32[a=2] and bf16 differ in size"},
    {precision_integer, "reduce_precision: needs a float and bf16 or f16, found s32[a=2] and bf16"},
    {full_size, "full: axis a has no size: declare it or write a=SIZE"},
    {iota_axis, "iota: no axis b in \"a=2\""},
    {constant_rank, "constant: the array has 0 dims, \"a\" names 1"},
    {broadcast_axis, "broadcast: f32[a=2 b=2] does not fit the axes \"b\""},
    {rename_taken, "rename: cannot call a of f32[a=2 b=2] b: the name is taken"},
    {split_size, "split: axis a of size 6 cannot be split as \"b=4 c\""},
    {split_open, "split: more than one open size in \"b c\""},
    {merge_order, "merge: axes \"b a\" are not neighbours in that order in f32[a=2 b=3]"},
    {squeeze_size, "squeeze: axis a of f32[a=2] must have size 1"},
    {transpose_part, "transpose: \"b\" must name every axis of f32[a=2 b=3]"},
    {transpose_twice, "transpose: axis b is named twice in \"b b\""},
    {slice_bounds, "slice: "},
    {slice_axes, "slice: takes one axis, found \"a b\""},
    {dynamic_start, "dynamic_slice: start must be an integer without axes, found f32[]"},
    {dynamic_size, "dynamic_slice: size 3 is not within axis a of f32[a=2]"},
    {update_fit, "dynamic_update_slice: the update f32[a=3] does not fit into f32[a=2] along a"},
    {pad_negative, "pad: axis a of f32[a=2] would get -1 positions"},
    {concat_fit, "concat: f32[a=2 b=1] and f32[a=2 b=2] differ elsewhere than along a"},
    {dot_sizes, "dot: axis a has sizes 2 and 3: f32[a=2] and f32[a=3]"},
    {dot_axis, "dot: no axis a in f32[b=2]"},
    {dot_dtypes, "dot: dtypes must be equal numbers, found f32[a=2] and s32[a=2 b=1]"},
    {mean_integer, "mean: needs floats, found s32[a=2]"},
    {any_float, "any: needs bool, found f32[a=2]"},
    {argmax_axes, "argmax: takes one axis, found \"a b\""},
    {cumsum_axes, "cumsum: takes one axis, found \"a b c\""},
    {rename_axes, "rename: takes one axis, found \"a b c\""},
    {split_axes, "split: takes one axis, found \"a b c\""},
    {squeeze_axes, "squeeze: takes one axis, found \"a b c\""},
    {sort_axes, "sort: takes one axis, found \"a b c\""},
    {along_two, "take_along: takes one axis, found \"a b c\""},
    {softmax_integer, "softmax: needs floats and one axis, found s32[a=2] and \"a\""},
    {take_axis, "take: b must be the first axis of f32[a=2 b=3]"},
    {take_float, "take: indices must be s32 or s64, found f32[c=2]"},
    {take_shared, "take: axis b occurs in both f32[a=2 b=3] and s32[b=2]"},
    {scatter_fit, "scatter_add: updates must have dtype f32 and the axes \"c b\", found f32[c=2]"},
    {one_hot_taken, "one_hot: cannot add axis a to s32[a=2]"},
    {along_axes,
     "take_along: indices must be s32 or s64 with the axes of f32[a=2 b=3], b of any size, found s32[a=3 b=1]"},
    {sort_payload, "sort_with: keys and payloads must have the same axes, found f32[a=2] and f32[a=3]"},
    {top_k_size, "top_k: k = 3 is not within axis a of f32[a=2]"},
    {scan_input, "scan: input 0 must begin with the axis n=4, found f32[a=4]"},
    {scan_length, "scan: needs at least one turn along n, found 0"},
    {scan_carry, "scan: carry 0 begins as f32[dim=2] but the body returns f32[a=4]"},
    {scan_output, "scan: output 0, f32[dim=2], cannot be stacked along dim"},
    {while_condition, "while: the condition must be a bool without axes, found f32[a=2]"},
    {cond_predicate, "cond: the predicate must be a bool without axes, found f32[]"},
    {cond_results, "cond: result 0 is f32[] in one branch and s32[] in the other"},
    {function_outside, "function_new: the body uses f32[a=2], made outside at the inputs: pass it as an argument"},
    {call_types, "call: argument 0 of g must be f32[a=2], found f32[b=2]"},
    {custom_call_version,
     "custom_call: target has api_version 4: 4 takes attributes and no config, 1 and 2 a config and no attributes"},
    {manual_mesh, "manual: the graph has no mesh: call ct_graph_set_mesh"},
    {manual_axis, "manual: no axis tp in the mesh \"dp\"; ct_graph_set_mesh sets it"},
    {manual_divide, "manual: axis a of f32[a=6] cannot be split into 4 equal parts"},
    {manual_twice, "manual: mesh axis dp is used twice for f32[a=2 b=2]"},
    {manual_word, "manual: bad placement \"a\": write axis=mesh_axis or axis=mesh_axis+mesh_axis"},
    {manual_outside, "manual: the body uses f32[], made outside at the inputs: pass it as an argument"},
    {collective_outside, "all_reduce: collectives work at local sizes: call it in the body of ct_manual"},
    {collective_size, "reduce_scatter: axis a of f32[a=3] cannot be scattered over 2 devices"},
    {collective_pairs,
     "collective_permute: pair {1, 1} is out of the group of 2, or its source or target occurs twice"},
    {sharding_mesh, "input_sharding: a=2 has a placement but the graph has no mesh: call ct_graph_set_mesh"},
};

static void test_error_texts(void **state)
{
    (void)state;
    for (size_t i = 0; i < CT_COUNT(errors); i++) {
        ct_graph *graph = ct_graph_new("test");
        errors[i].build(graph);
        expect_error(ct_graph_check(graph), CT_CODE_INVALID_ARGUMENT, errors[i].text);
        ct_graph_free(graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_axis_lists),        cmocka_unit_test(test_nothing_is_made_when_nothing_is_to_do),
        cmocka_unit_test(test_program_text),      cmocka_unit_test(test_printing_twice),
        cmocka_unit_test(test_first_error_stays), cmocka_unit_test(test_error_of_a_layer_names_its_caller),
        cmocka_unit_test(test_error_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
