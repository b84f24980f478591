/* The classifier of collectives and the rules on programs written by hand and compiled by libtpu: one that does what a
 * sharded step should, and ones with a fault each, which must be found.
 *
 * All are two scanned layers x + w2 tanh(w1 x) with their gradients, w1 and w2 of 2048 x 1024, 384 tokens a device,
 * weights gathered in bf16 in both passes. programs/make.py writes them.
 */
#include "pjrt/testing.h"
#include "rules.h"

enum { NUM_WEIGHT = 2048 * 1024, NUM_LAYERS = 2 };

typedef struct {
    ct_arena arena;
    ct_hlo_traffic traffic;
} compiled;

static compiled compile(const char *topology_name, const char *program, bool no_rings, const char *flag)
{
    compiled result;
    ct_arena_init(&result.arena);
    char *path = ct_asprintf("%s/tests/collectives/programs/%s.mlir", CT_SOURCE_DIR, program), *text;
    size_t text_bytes;
    expect_ok(ct_file_read(path, &text, &text_bytes));
    ct_topology *topology;
    const ct_named_value open = {.name = "wrap", .type = CT_VALUE_INT_LIST, .list = (int64_t[3]){0}, .num_list = 3};
    expect_ok(ct_topology_new(ct_test_libtpu(), topology_name, &open, no_rings, &topology));
    int num_devices = (int)ct_topology_num_devices(topology);
    int *ids = ct_alloc_zeroed((size_t)num_devices, sizeof(*ids));
    ct_torus torus;
    expect_ok(ct_topology_torus(topology, 0, &torus, ids));
    ct_named_value value;
    if (flag) expect_ok(ct_named_value_parse(&result.arena, flag, &value));
    ct_compile_opts opts = {
        .num_partitions = num_devices, .device_ids = ids, .flags = &value, .num_flags = flag != NULL};
    ct_executable *executable;
    expect_ok(ct_topology_compile(topology, text, text_bytes, &opts, &executable));
    ct_hlo_module *module;
    expect_ok(ct_executable_hlo(executable, &result.arena, &module));
    ct_hlo_traffic_find(&result.arena, module, num_devices, &result.traffic);
    ct_executable_free(executable);
    ct_topology_free(topology);
    free(ids);
    free(text);
    free(path);
    return result;
}

static traffic_rules rules_for(int num_axes, const int64_t *sizes)
{
    static const int64_t weights[] = {NUM_WEIGHT}, gathers[] = {2 * 2 * NUM_LAYERS}, scatters[] = {2 * NUM_LAYERS};
    return (traffic_rules){.num_axes = num_axes,
                           .sizes = sizes,
                           .num_fsdp_axes = num_axes,
                           .weights = weights,
                           .gathers = gathers,
                           .scatters = scatters,
                           .num_weights = 1,
                           .small_elements = 4096};
}

static const int64_t v6e_sizes[] = {4, 4};

/* The program must have problems, of which one says text; "" none at all. */
static void expect_problem(compiled *c, const traffic_rules *rules, const char *text)
{
    ct_str problems;
    ct_str_init(&problems);
    size_t num_problems = traffic_check(&c->traffic, rules, &problems);
    if (text[0] ? !num_problems || !strstr(problems.data, text) : num_problems != 0) {
        ct_hlo_traffic_print(&c->traffic, rules->num_axes, rules->sizes, &problems);
        fail_msg("wanted \"%s\", found %zu problems:\n%s", text, num_problems, problems.data);
    }
    ct_str_deinit(&problems);
    ct_arena_deinit(&c->arena);
}

static void test_per_axis(void **state)
{
    (void)state;
    compiled c = compile("v6e:4x4", "fsdp_per_axis", false, NULL);
    traffic_rules rules = rules_for(2, v6e_sizes);
    int64_t wire[CT_HLO_COLLECTIVE_NUM_KINDS], whole = (int64_t)NUM_WEIGHT * 2 / 16 * 15;
    ct_hlo_traffic_sum(&c.traffic, wire);
    assert_int_equal(wire[CT_HLO_COLLECTIVE_ALL_GATHER], 4 * NUM_LAYERS * whole);
    assert_in_range(wire[CT_HLO_COLLECTIVE_REDUCE_SCATTER], 2 * NUM_LAYERS * whole, 2 * NUM_LAYERS * whole * 107 / 100);
    assert_int_equal(wire[CT_HLO_COLLECTIVE_ALL_REDUCE], 0);
    assert_true(c.traffic.estimated_cycles > 1e5);
    expect_problem(&c, &rules, "");
}

/* Fused beside computation a gather stands in several fusions, and is one. */
static void test_async_fusion(void **state)
{
    (void)state;
    compiled c = compile("v5e:4x4", "fsdp_per_axis", false, "xla_tpu_enable_async_collective_fusion=true");
    traffic_rules rules = rules_for(2, v6e_sizes);
    expect_problem(&c, &rules, "");
}

static void test_sparse_cores(void **state)
{
    (void)state;
    static const int64_t sizes[] = {2, 2, 2, 2};
    compiled c = compile("tpu7x:2x2x2", "fsdp_one_group_2x2x2x2", false, NULL);
    for (size_t i = 0; i < c.traffic.num_items; i++) {
        assert_true(c.traffic.items[i].is_async);
        assert_string_equal(c.traffic.items[i].emitter, "sparse core");
        assert_int_equal(ct_hlo_collective_axes(&c.traffic.items[i], 4, sizes), 15);
        assert_int_equal(c.traffic.items[i].times, NUM_LAYERS);
    }
    traffic_rules rules = rules_for(4, sizes);
    expect_problem(&c, &rules, "");
}

static void test_faults(void **state)
{
    (void)state;
    static const struct {
        const char *program, *problem;
    } rows[] = {
        {"fsdp_shardy", "an all-reduce where a reduce-scatter would do: all_reduce"},
        {"all_reduced_gradient", "an all-reduce where a reduce-scatter would do: all_reduce"},
        {"gathered_activations", "no weight has this size: all_gather"},
        {"replicated_weight", "an all-reduce of more than norms and scalars: all_reduce"},
        {"replicated_weight", "are gathered 4 times and scattered 2 times, wanted 8 and 4"},
    };
    for (size_t i = 0; i < CT_COUNT(rows); i++) {
        compiled c = compile("v6e:4x4", rows[i].program, false, NULL);
        traffic_rules rules = rules_for(2, v6e_sizes);
        expect_problem(&c, &rules, rows[i].problem);
    }
}

/* Without rings libtpu gathers over three axes by reducing a buffer that is zero but for a device's own part. */
static void test_gather_by_all_reduce(void **state)
{
    (void)state;
    static const int64_t sizes[] = {8, 4, 4}, weights[] = {1024 * 1024}, once[] = {1}, never[] = {0};
    traffic_rules rules = {.num_axes = 3,
                           .sizes = sizes,
                           .num_fsdp_axes = 3,
                           .weights = weights,
                           .gathers = once,
                           .scatters = never,
                           .num_weights = 1};
    compiled c = compile("v5p:4x4x8", "gather_4x4x8", true, NULL);
    expect_problem(&c, &rules, "an all-reduce where an all-gather would do: all_reduce");
    c = compile("v5p:4x4x8", "gather_4x4x8", false, NULL);
    expect_problem(&c, &rules, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_per_axis),
        cmocka_unit_test(test_async_fusion),
        cmocka_unit_test(test_sparse_cores),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_gather_by_all_reduce),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
