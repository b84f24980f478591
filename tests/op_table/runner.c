/* Runs the cases of the table in each mode. Arguments: a substring of case names to run only those. */
#include "op_table.h"
#include "random_programs.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "graph/node.h"

static const op_family *const families[] = {&elementwise_cases, &shape_cases,  &contraction_cases, &lookup_cases,
                                            &control_cases,     &random_cases, &function_cases,    &collective_cases};
static const char *only = "";

static bool wanted(const op_case *c)
{
    return strstr(c->name, only) != NULL;
}

static double *to_doubles(const ct_array *array)
{
    int64_t count = ct_array_num_elements(array);
    double *values = ct_alloc((size_t)(count + 1) * sizeof(*values));
    for (int64_t i = 0; i < count; i++) values[i] = ct_array_get(array, i);
    return values;
}

/* ---- FORWARD ---- */

static void forward(const op_case *c, ct_dtype dtype)
{
    char what[128];
    snprintf(what, sizeof(what), "%s, FORWARD, %s", c->name, ct_dtype_name(dtype));
    ct_tensor *in[OP_MAX_INPUTS], *out[OP_MAX_OUTPUTS];
    ct_graph *graph = op_build(c, dtype, in, out);
    expect_ok(ct_graph_check(graph));
    ct_array inputs[OP_MAX_INPUTS], outputs[OP_MAX_OUTPUTS];
    double *in_values[OP_MAX_INPUTS], *expected[OP_MAX_OUTPUTS];
    int num_inputs = op_num_inputs(c);
    for (int i = 0; i < num_inputs; i++) {
        inputs[i] = op_fill(in[i], &c->inputs[i], (uint32_t)i);
        in_values[i] = to_doubles(&inputs[i]);
    }
    op_output_all(c, graph, "y", c->num_outputs, out);
    for (int i = 0; i < c->num_outputs; i++)
        expected[i] = ct_alloc_zeroed((size_t)ct__num_elements(out[i]) + 1, sizeof(double));
    op_program *program = op_compile(graph, what);
    op_run(program, inputs, outputs);
    op_program_free(program);
    c->reference((const double *const *)in_values, expected);
    for (int i = 0; i < c->num_outputs; i++) {
        ct_dtype type = outputs[i].dtype;
        /* bits that pass through a 16-bit dtype keep its error even if the result is wider */
        double tolerance = CT_MAX(op_tolerance(type), ct_dtype_is_float(type) ? op_tolerance(dtype) : 0);
        tolerance *= c->tolerance != 0 ? c->tolerance : 1;
        for (int64_t j = 0; j < ct_array_num_elements(&outputs[i]); j++) {
            double value = ct_array_get(&outputs[i], j);
            if (!op_near(value, expected[i][j], tolerance))
                fail_msg("%s: output %d, element %lld is %.17g, expected %.17g", what, i, (long long)j, value,
                         expected[i][j]);
        }
        ct_array_free(&outputs[i]);
        free(expected[i]);
    }
    for (int i = 0; i < num_inputs; i++) {
        free(in_values[i]);
        ct_array_free(&inputs[i]);
    }
}

/* ---- GRAD ---- */

static void grad(const op_case *c)
{
    char what[128];
    snprintf(what, sizeof(what), "%s, GRAD", c->name);
    ct_tensor *in[OP_MAX_INPUTS], *out[OP_MAX_OUTPUTS], *gradients[OP_MAX_INPUTS];
    ct_graph *graph = op_build(c, CT_DTYPE_F64, in, out);
    int num_inputs = op_num_inputs(c), num_gradients;
    ct_tensor *loss = op_loss(c, graph, out);
    ct_status *status = op_gradients(c, graph, loss, in, gradients, &num_gradients);
    if (status) fail_msg("%s: %s", what, ct_status_message(status));
    op_output_all(c, graph, "loss", 1, &loss);
    op_output_all(c, graph, "g", num_gradients, gradients);
    ct_array inputs[OP_MAX_INPUTS];
    for (int i = 0; i < num_inputs; i++) inputs[i] = op_fill(in[i], &c->inputs[i], (uint32_t)i);
    op_check_gradients(graph, inputs, num_inputs, 2e-8 * (c->tolerance != 0 ? c->tolerance : 1), what);
    for (int i = 0; i < num_inputs; i++) ct_array_free(&inputs[i]);
}

/* ---- PRINT ---- */

/* Text without " loc(...)". */
static void append_without_locations(ct_str *out, const char *text)
{
    while (*text) {
        if (strncmp(text, " loc(", 5)) {
            ct_str_append_char(out, *text++);
            continue;
        }
        int depth = 0;
        do {
            if (*text == '(') depth++;
            if (*text == ')') depth--;
            text++;
        } while (depth || text[-1] != ')');
    }
}

/* Compilers evaluate arguments in different orders, so ct_add(ct_sin(x), ct_cos(x)) makes its nodes in either order.
 * For the golden text nodes are put in the order in which the results reach them. */
static void take_node(ct_region *region, ct_node *node, bool *taken)
{
    if (!node || node->region != region || taken[node->results[0]->id]) return;
    taken[node->results[0]->id] = true;
    for (int i = 0; i < node->num_operands; i++) take_node(region, node->operands[i]->node, taken);
    node->previous = region->last;
    node->next = NULL;
    *(region->last ? &region->last->next : &region->first) = node;
    region->last = node;
}

static void order_nodes(ct_region *region)
{
    bool *taken = ct_alloc_zeroed((size_t)region->graph->num_tensors, sizeof(*taken));
    ct_node **effects = ct_alloc_zeroed((size_t)region->graph->num_tensors, sizeof(*effects));
    int num_effects = 0;
    for (ct_node *node = region->first; node; node = node->next) {
        for (int i = 0; i < node->num_regions; i++) order_nodes(node->regions[i]);
        if (node->op->side_effect) effects[num_effects++] = node;
    }
    region->first = region->last = NULL; /* what nothing reaches is not printed anyway */
    for (int i = 0; i < num_effects; i++) take_node(region, effects[i], taken);
    for (int i = 0; i < region->num_results; i++) take_node(region, region->results[i]->node, taken);
    free(effects);
    free(taken);
}

/* f32, or what the case has instead */
static ct_dtype print_dtype(const op_case *c)
{
    if (!c->dtypes || c->dtypes & D(F32)) return CT_DTYPE_F32;
    int dtype = 1;
    while (!(c->dtypes >> dtype & 1)) dtype++;
    return (ct_dtype)dtype;
}

static void test_print(void **state)
{
    (void)state;
    ct_str all;
    ct_str_init(&all);
    for (size_t f = 0; f < CT_COUNT(families); f++)
        for (size_t i = 0; i < families[f]->count; i++) {
            const op_case *c = &families[f]->cases[i];
            if (!c->print) continue;
            ct_tensor *in[OP_MAX_INPUTS], *out[OP_MAX_OUTPUTS];
            ct_graph *graph = op_build(c, print_dtype(c), in, out);
            op_output_all(c, graph, "y", c->num_outputs, out);
            order_nodes(graph->main);
            for (ct_function *function = graph->functions; function; function = function->next)
                order_nodes(function->region);
            ct_str text = {0};
            expect_ok(ct_graph_print(graph, &text));
            ct_str_printf(&all, "// %s\n", c->name);
            append_without_locations(&all, text.data);
            ct_str_deinit(&text);
            ct_graph_free(graph);
        }
    static const char path[] = CT_SOURCE_DIR "/tests/op_table/golden.mlir";
    if (getenv("CT_UPDATE_GOLDEN")) {
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        assert_true(fputs(all.data, file) >= 0);
        assert_int_equal(fclose(file), 0);
    }
    char *golden;
    size_t size;
    expect_ok(ct_file_read(path, &golden, &size));
    size_t same = 0;
    while (same < size && same < all.length && golden[same] == all.data[same]) same++;
    if (same != size || same != all.length) {
        while (same > 0 && golden[same - 1] != '\n') same--;
        fail_msg("golden.mlir, at byte %zu, has\n%.300s\nbut the printer gives\n%.300s\n(CT_UPDATE_GOLDEN=1 accepts)",
                 same, golden + same, all.data + same);
    }
    free(golden);
    ct_str_deinit(&all);
}

/* ---- */

static void test_forward(void **state)
{
    const op_case *c = *state;
    for (int dtype = 1; dtype < CT_NUM_DTYPES; dtype++)
        if (c->dtypes >> dtype & 1) forward(c, (ct_dtype)dtype);
}

static void test_grad(void **state)
{
    grad(*state);
}

static void test_shard(void **state)
{
    const op_case *c = *state;
    static const ct_dtype integers[] = {CT_DTYPE_U8, CT_DTYPE_S64, CT_DTYPE_S32};
    ct_dtype dtype = c->grad ? CT_DTYPE_F64 : print_dtype(c);
    op_check_sharded(c, dtype);
    for (size_t i = 0; i < CT_COUNT(integers); i++) /* one of them as well: sums wrap, extremes begin elsewhere */
        if (c->dtypes >> integers[i] & 1 && dtype != integers[i]) {
            op_check_sharded(c, integers[i]);
            break;
        }
}

/* CT_RANDOM_PROGRAMS=first:count runs others than the usual ones. */
static void for_random_programs(void (*check)(int seed), int count)
{
    int first = 0;
    const char *range = getenv("CT_RANDOM_PROGRAMS");
    if (range) assert_int_equal(sscanf(range, "%d:%d", &first, &count), 2);
    for (int i = 0; i < count; i++) check(first + i);
}

static void test_random_programs(void **state)
{
    (void)state;
    for_random_programs(op_check_random_program, 10);
}

static void test_random_sharded(void **state)
{
    (void)state;
    for_random_programs(op_check_random_sharded, 6);
}

int main(int argc, char **argv)
{
    /* [--shard] [NAME]: the mode SHARD, which compiles most, alone; without it the others */
    bool shard = argc > 1 && !strcmp(argv[1], "--shard"), others = !shard;
    if (argc > 1 + shard) only = argv[1 + shard];
    size_t count = 3;
    for (size_t f = 0; f < CT_COUNT(families); f++) count += 3 * families[f]->count;
    struct CMUnitTest *tests = ct_alloc_zeroed(count, sizeof(*tests));
    size_t n = 0;
    for (size_t f = 0; f < CT_COUNT(families); f++)
        for (size_t i = 0; i < families[f]->count; i++) {
            const op_case *c = &families[f]->cases[i];
            if (!wanted(c)) continue;
            if (c->dtypes && others) {
                CT_ASSERT(c->reference);
                tests[n++] = (struct CMUnitTest){.name = ct_asprintf("FORWARD %s", c->name),
                                                 .test_func = test_forward,
                                                 .initial_state = (void *)(uintptr_t)c};
            }
            if (c->grad && others)
                tests[n++] = (struct CMUnitTest){.name = ct_asprintf("GRAD %s", c->name),
                                                 .test_func = test_grad,
                                                 .initial_state = (void *)(uintptr_t)c};
            if (shard && !c->mesh && !c->no_shard && (c->dtypes || c->grad))
                tests[n++] = (struct CMUnitTest){.name = ct_asprintf("SHARD %s", c->name),
                                                 .test_func = test_shard,
                                                 .initial_state = (void *)(uintptr_t)c};
        }
    if (others && strstr("random programs", only))
        tests[n++] = (struct CMUnitTest){.name = ct_strdup("GRAD random programs"), .test_func = test_random_programs};
    if (shard && strstr("sharded random programs", only))
        tests[n++] = (struct CMUnitTest){.name = ct_strdup("SHARD random programs"), .test_func = test_random_sharded};
    if (others && strstr("PRINT", only))
        tests[n++] = (struct CMUnitTest){.name = ct_strdup("PRINT"), .test_func = test_print};
    op_open();
    int failed = _cmocka_run_group_tests("op_table", tests, n, NULL, NULL);
    if (!failed) op_close(); /* a failed case leaves its buffers behind */
    for (size_t i = 0; i < n; i++) free((void *)(uintptr_t)tests[i].name);
    free(tests);
    return failed;
}
