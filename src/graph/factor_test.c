/* The placement rule of each op family as text:
 *
 *   [ab c] [c .] -> [a b]  a=4 b=2 c=3+  each 0 1  repeatable
 *
 * Dims by their factors, major first, '.' for none. Kinds: none PARALLEL, + SUM, > MAX, < MIN, ! WHOLE. Then in which
 * operands the results are linear. */
#include "graph/factor.h"

#include "base/testing.h"
#include "graph/ops.h"

static ct_graph *graph;

static void append_dims(ct_str *out, const ct_dim_factors *dims, int rank)
{
    ct_str_append_char(out, '[');
    for (int i = 0; i < rank; i++) {
        if (i) ct_str_append_char(out, ' ');
        if (!dims[i].count) ct_str_append_char(out, '.');
        for (int k = 0; k < dims[i].count; k++) ct_str_append_char(out, (char)('a' + dims[i].factors[k]));
    }
    ct_str_append_char(out, ']');
}

static char *rule_text(const ct_node *node)
{
    assert_non_null(node->op->factors);
    ct_factors factors = {0};
    factors.operands = ct_alloc_zeroed((size_t)node->num_operands + 1, sizeof(*factors.operands));
    factors.results = ct_alloc_zeroed((size_t)node->num_results + 1, sizeof(*factors.results));
    node->op->factors(node, &factors);
    ct_str out;
    ct_str_init(&out);
    for (int i = 0; i < node->num_operands; i++) {
        if (i) ct_str_append_char(&out, ' ');
        append_dims(&out, factors.operands[i], node->operands[i]->rank);
    }
    ct_str_append(&out, node->num_operands ? " ->" : "->");
    for (int i = 0; i < node->num_results; i++) {
        ct_str_append_char(&out, ' ');
        append_dims(&out, factors.results[i], node->results[i]->rank);
    }
    for (int i = 0; i < factors.count; i++) {
        ct_str_printf(&out, "%s%c=%lld", i ? " " : "  ", 'a' + i, (long long)factors.sizes[i]);
        if (factors.kinds[i] != CT_FACTOR_PARALLEL) ct_str_append_char(&out, " +><!"[factors.kinds[i]]);
    }
    if (factors.linearity) {
        ct_str_append(&out, factors.linearity == CT_LINEAR_EACH ? "  each" : "  jointly");
        for (int i = 0; i < 32; i++)
            if (factors.linear_operands >> i & 1) ct_str_printf(&out, " %d", i);
    }
    if (factors.repeatable) ct_str_append(&out, "  repeatable");
    /* the factors of a dim multiply to its size */
    for (int i = 0; i < node->num_operands + node->num_results; i++) {
        bool is_operand = i < node->num_operands;
        const ct_tensor *x = is_operand ? node->operands[i] : node->results[i - node->num_operands];
        const ct_dim_factors *dims = is_operand ? factors.operands[i] : factors.results[i - node->num_operands];
        for (int dim = 0; dim < x->rank; dim++) {
            int64_t size = 1;
            for (int k = 0; k < dims[dim].count; k++) size *= factors.sizes[(int)dims[dim].factors[k]];
            if (dims[dim].count) assert_int_equal(size, x->axes[dim].size);
        }
    }
    free(factors.operands);
    free(factors.results);
    return out.data;
}

static void expect_rule(const ct_tensor *result, const char *expected)
{
    expect_ok(ct_graph_check(graph));
    char *text = rule_text(result->node);
    assert_string_equal(text, expected);
    free(text);
}

static ct_tensor *input(ct_dtype dtype, const char *axes)
{
    static int count;
    char name[16];
    snprintf(name, sizeof(name), "x%d", count++);
    return ct_input(graph, name, dtype, axes);
}
#define F32(axes)  input(CT_DTYPE_F32, axes)
#define S32(axes)  input(CT_DTYPE_S32, axes)
#define BOOL(axes) input(CT_DTYPE_BOOL, axes)

static int setup(void **state)
{
    (void)state;
    graph = ct_graph_new("test");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    ct_graph_free(graph);
    return 0;
}

static void test_elementwise(void **state)
{
    (void)state;
    ct_tensor *x = F32("p=4 q=1 r=3"), *y = F32("p=4 q=1 r=3"), *n = S32("p=4"), *m = BOOL("p=4");
    expect_rule(ct_add(x, y), "[a . b] [a . b] -> [a . b]  a=4 b=3  jointly 0 1  repeatable");
    expect_rule(ct_sub(n, n), "[a] [a] -> [a]  a=4  jointly 0 1  repeatable");
    expect_rule(ct_mul(x, y), "[a . b] [a . b] -> [a . b]  a=4 b=3  each 0 1  repeatable");
    expect_rule(ct_div(x, y), "[a . b] [a . b] -> [a . b]  a=4 b=3  each 0  repeatable");
    expect_rule(ct_div(n, n), "[a] [a] -> [a]  a=4  repeatable");
    expect_rule(ct_maximum(x, y), "[a . b] [a . b] -> [a . b]  a=4 b=3  repeatable");
    expect_rule(ct_and(n, n), "[a] [a] -> [a]  a=4  repeatable");
    expect_rule(ct_add(m, m), "[a] [a] -> [a]  a=4  repeatable"); /* or */
    expect_rule(ct_mul(m, m), "[a] [a] -> [a]  a=4  repeatable");
    expect_rule(ct_neg(x), "[a . b] -> [a . b]  a=4 b=3  jointly 0  repeatable");
    expect_rule(ct_exp(x), "[a . b] -> [a . b]  a=4 b=3  repeatable");
    expect_rule(ct_is_finite(x), "[a . b] -> [a . b]  a=4 b=3  repeatable");
    expect_rule(ct_eq(x, y), "[a . b] [a . b] -> [a . b]  a=4 b=3  repeatable");
    expect_rule(ct_select(m, n, n), "[a] [a] [a] -> [a]  a=4  jointly 1 2  repeatable");
    expect_rule(ct_select(m, m, m), "[a] [a] [a] -> [a]  a=4  repeatable");
    expect_rule(ct_convert(x, CT_DTYPE_BF16), "[a . b] -> [a . b]  a=4 b=3  jointly 0  repeatable");
    expect_rule(ct_convert(n, CT_DTYPE_F32), "[a] -> [a]  a=4  repeatable");
    expect_rule(ct_bitcast(n, CT_DTYPE_F32), "[a] -> [a]  a=4  repeatable");
    expect_rule(ct_reduce_precision(x, CT_DTYPE_BF16), "[a . b] -> [a . b]  a=4 b=3  repeatable");
    expect_rule(ct_stop_gradient(x), "[a . b] -> [a . b]  a=4 b=3  jointly 0  repeatable");
    expect_rule(ct_add(F32(""), F32("")), "[] [] -> []  jointly 0 1  repeatable");
}

static void test_constants(void **state)
{
    (void)state;
    float values[6] = {0, 1, 2, 3, 4, 5};
    ct_array array = {.dtype = CT_DTYPE_F32, .rank = 2, .sizes = {2, 3}, .data = values};
    expect_rule(ct_constant(graph, &array, "p q"), "-> [a b]  a=2 b=3  repeatable");
    expect_rule(ct_scalar(graph, CT_DTYPE_F32, 1), "-> []  repeatable");
    expect_rule(ct_iota(graph, CT_DTYPE_S32, "p=4 q=3", "q"), "-> [a b]  a=4 b=3  repeatable");
}

static void test_shapes(void **state)
{
    (void)state;
    ct_tensor *x = F32("p=4 q=3");
    ct_axis wide[3] = {{ct__intern_z(graph, "q"), 3}, {ct__intern_z(graph, "r"), 5}, {ct__intern_z(graph, "p"), 4}};
    expect_rule(ct__broadcast_to(CT_LOC, x, 3, wide), "[c a] -> [a b c]  a=3 b=5 c=4  jointly 0  repeatable");
    expect_rule(ct_full(graph, CT_DTYPE_F32, "p=4", 1), "[] -> [a]  a=4  jointly 0  repeatable");
    expect_rule(ct_transpose(x, "q p"), "[b a] -> [a b]  a=3 b=4  jointly 0  repeatable");
    expect_rule(ct_rename(x, "q", "s"), "[a b] -> [a b]  a=4 b=3  jointly 0  repeatable");
    expect_rule(ct_unsqueeze(x, "s", 1), "[a b] -> [a . b]  a=4 b=3  jointly 0  repeatable");
    expect_rule(ct_squeeze(F32("s=1 p=4"), "s"), "[. a] -> [a]  a=4  jointly 0  repeatable");
}

/* sizes of x and of the result */
static void expect_reshape(const char *from, const char *to, const char *expected)
{
    ct_axis axes[CT_MAX_RANK];
    int rank;
    assert_true(ct__parse_axes(graph, CT_LOC, "test", to, axes, &rank));
    expect_rule(ct__reshape(CT_LOC, F32(from), rank, axes), expected);
}

static void test_reshape(void **state)
{
    (void)state;
    expect_reshape("h=8", "k=4 g=2", "[ab] -> [a b]  a=4 b=2  jointly 0  repeatable");
    expect_reshape("s=2 k=4 g=2 d=3", "s=2 h=8 d=3", "[a b c d] -> [a bc d]  a=2 b=4 c=2 d=3  jointly 0  repeatable");
    expect_reshape("p=4 q=6", "r=24", "[a b] -> [ab]  a=4 b=6  jointly 0  repeatable");
    expect_reshape("p=24", "a=2 b=3 c=4", "[abc] -> [a b c]  a=2 b=3 c=4  jointly 0  repeatable");
    expect_reshape("p=4 q=6", "r=2 s=12", "[ab c] -> [a bc]  a=2 b=2 c=6  jointly 0  repeatable");
    expect_reshape("p=4 q=6", "r=6 s=4", "[a b] -> [b a]  a=4! b=6!  jointly 0  repeatable");
    expect_reshape("x=5 p=4 q=6 y=7", "x=5 r=6 s=4 y=7",
                   "[a b c d] -> [a c b d]  a=5 b=4! c=6! d=7  jointly 0  repeatable");
    expect_reshape("p=16", "a=2 b=2 c=2 d=2", "[a] -> [b b b b]  a=16! b=2!  jointly 0  repeatable"); /* four parts */
    expect_reshape("a=1 p=4 b=1 q=3 c=1", "p=4 d=1 e=1 q=3",
                   "[. a . b .] -> [a . . b]  a=4 b=3  jointly 0  repeatable");
    expect_reshape("p=8 b=1", "c=1 q=2 d=1 r=4 e=1", "[ab .] -> [. a . b .]  a=2 b=4  jointly 0  repeatable");
    expect_reshape("p=1 q=1", "", "[. .] -> []  jointly 0  repeatable");
    expect_reshape("p=0 q=3", "r=3 s=0", "[a b] -> [b a]  a=0! b=3!  jointly 0  repeatable");
    expect_reshape("p=2 q=2 r=2 s=2", "t=4 u=4", "[a b c d] -> [ab cd]  a=2 b=2 c=2 d=2  jointly 0  repeatable");
}

static void test_slices(void **state)
{
    (void)state;
    ct_tensor *x = F32("p=4 q=6"), *start = S32(""), *update = F32("p=4 q=2");
    expect_rule(ct_slice(x, "q", 1, 3), "[a b] -> [a c]  a=4 b=6! c=2!  jointly 0  repeatable");
    expect_rule(ct_pad(x, "p", 1, 0, 0), "[a c] [] -> [b c]  a=4! b=5! c=6  jointly 0  repeatable");
    expect_rule(ct_pad(x, "p", 1, 0, 7), "[a c] [] -> [b c]  a=4! b=5! c=6  jointly 0 1  repeatable");
    expect_rule(ct_reverse(x, "p"), "[a b] -> [a b]  a=4! b=6  jointly 0  repeatable");
    expect_rule(ct_dynamic_slice(x, "q", start, 1), "[a b] [] [] -> [a .]  a=4 b=6!  jointly 0");
    expect_rule(ct_dynamic_update_slice(x, update, "q", start),
                "[a b] [a c] [] [] -> [a b]  a=4 b=6! c=2!  jointly 0 1");
    expect_rule(ct_concat(((ct_tensor *[]){x, update, x}), 3, "q"),
                "[a b] [a c] [a b] -> [a d]  a=4 b=6! c=2! d=14!  jointly 0 1 2");
    ct_tensor *many[40]; /* more sizes than there are factors */
    for (int i = 0; i < 40; i++) {
        char axes[16];
        snprintf(axes, sizeof(axes), "p=4 q=%d", i + 2);
        many[i] = F32(axes);
    }
    char *text = rule_text(ct_concat(many, 40, "q")->node);
    assert_non_null(strstr(text, "[a b] [a c]"));
    assert_non_null(strstr(text, "-> [a .]"));
    assert_non_null(strstr(text, "jointly 0 1 2"));
    free(text);
}

static void test_dot(void **state)
{
    (void)state;
    expect_rule(ct_linear(F32("b=2 s=3 k=4"), F32("n=5 k=4")), "[b c a] [d a] -> [b c d]  a=4+ b=2 c=3 d=5  each 0 1");
    expect_rule(ct_dot(F32("b=2 h=3 q=4 d=5"), F32("b=2 k=6 h=3 d=5"), "d"),
                "[a b d c] [a e b c] -> [a b d e]  a=2 b=3 c=5+ d=4 e=6  each 0 1");
    expect_rule(ct_dot(F32("b=2 q=1"), F32("k=6"), ""), "[a .] [b] -> [a . b]  a=2 b=6  each 0 1");
}

static void test_reduce(void **state)
{
    (void)state;
    ct_tensor *x = F32("p=4 q=3 r=5"), *m = BOOL("p=4 q=3");
    expect_rule(ct_sum(x, "q"), "[a b c] [] -> [a c]  a=4 b=3+ c=5  jointly 0");
    expect_rule(ct_sum(x, "r p q"), "[a b c] [] -> []  a=4+ b=3+ c=5+  jointly 0");
    expect_rule(ct_max(x, "p r"), "[a b c] [] -> [b]  a=4> b=3 c=5>");
    expect_rule(ct_min(x, "p"), "[a b c] [] -> [b c]  a=4< b=3 c=5");
    expect_rule(ct_max(m, "p"), "[a b] [] -> [b]  a=4! b=3");
    expect_rule(ct_prod(x, "q"), "[a b c] [] -> [a c]  a=4 b=3! c=5");
    expect_rule(ct_any(m, "q"), "[a b] [] -> [a]  a=4 b=3!");
    expect_rule(ct_all(m, "q"), "[a b] [] -> [a]  a=4 b=3!");
}

static void test_lookups(void **state)
{
    (void)state;
    ct_tensor *table = F32("v=9 d=4"), *indices = S32("b=2 s=3"), *x = F32("b=2 v=9");
    expect_rule(ct_take(table, indices, "v"), "[a d] [b c] -> [b c d]  a=9+ b=2 c=3 d=4  jointly 0");
    expect_rule(ct_take(BOOL("v=9"), indices, "v"), "[a] [b c] -> [b c]  a=9! b=2 c=3");
    expect_rule(ct_scatter_add(table, indices, F32("b=2 s=3 d=4"), "v"),
                "[a d] [b c] [b c d] -> [a d]  a=9 b=2+ c=3+ d=4  jointly 0 2");
    expect_rule(ct_take_along(x, S32("b=2 v=5"), "v"), "[a c] [a b] -> [a b]  a=2 b=5 c=9+  jointly 0");
    expect_rule(ct_scatter_add_along(x, S32("b=2 v=5"), F32("b=2 v=5"), "v"),
                "[a c] [a b] [a b] -> [a c]  a=2 b=5+ c=9  jointly 0 2");
    expect_rule(ct_sort(x, "v", false), "[a b] [a b] -> [a b] [a b]  a=2 b=9!");
}

static void test_custom_call(void **state)
{
    (void)state;
    ct_tensor *x = F32("p=4 q=3"), *y = F32("p=4"), *out;
    ct_custom_call(graph, "f", 2, ((ct_tensor *[]){x, y}), 1, &y, NULL, &out);
    expect_rule(out, "[a b] [a] -> [a]  a=4! b=3!");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_elementwise, setup, teardown),
        cmocka_unit_test_setup_teardown(test_constants, setup, teardown),
        cmocka_unit_test_setup_teardown(test_shapes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_reshape, setup, teardown),
        cmocka_unit_test_setup_teardown(test_slices, setup, teardown),
        cmocka_unit_test_setup_teardown(test_dot, setup, teardown),
        cmocka_unit_test_setup_teardown(test_reduce, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lookups, setup, teardown),
        cmocka_unit_test_setup_teardown(test_custom_call, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
