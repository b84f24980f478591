#include "spmd/parallel.h"

#include "base/testing.h"

static const ct_sharding_axis AXES[] = {
    {"batch", "dp", NULL, false}, {"seq", "cp", NULL, false},
    {"heads", "tp", "tp", false}, {"kv_heads", "tp_kv", "tp_kv", false},
    {"ffn", "tp", "tp", false},   {"vocab", "tp", "tp", true},
    {"dim", NULL, NULL, true},    {"head_dim", NULL, NULL, false},
};
static const ct_sharding_point POINTS[] = {
    {"residual", "batch=dp seq=cp", "batch=dp seq=cp+tp", NULL},
    {"logits", "batch=dp seq=cp vocab=tp", NULL, "batch=dp seq=cp"},
};
static const ct_sharding_table TABLE = {
    .axes = AXES, .num_axes = 8, .points = POINTS, .num_points = 2, .fsdp_axes = "dim ffn vocab heads kv_heads"};

static ct_parallel make(int64_t replicate, int64_t shard, int64_t cp, int64_t tp, int64_t kv_heads)
{
    ct_parallel parallel = {
        .table = &TABLE, .sequence_parallel = true, .loss_parallel = true, .zero_stage = 3, .replicate_below = 64};
    ct_mesh_opts opts = {
        .degrees = {replicate, shard, cp, tp}, .num_devices = replicate * shard * cp * tp, .num_kv_heads = kv_heads};
    expect_ok(ct_mesh_init(&opts, &parallel.mesh));
    return parallel;
}

/* "axis=size" words as axes. */
static int parse(const char *text, ct_axis *axes)
{
    static char names[CT_MAX_RANK][16];
    int rank = 0;
    for (; *text; text += strspn(text, " "), rank++) {
        size_t length = strcspn(text, "=");
        snprintf(names[rank], sizeof(names[rank]), "%.*s", (int)length, text);
        axes[rank] = (ct_axis){names[rank], strtoll(text + length + 1, NULL, 10)};
        text += strcspn(text, " ");
    }
    return rank;
}

typedef ct_sharding sharding_fn(const ct_parallel *parallel, int rank, const ct_axis *axes);

static void expect_text(const ct_parallel *parallel, const ct_sharding *sharding, int rank, const ct_axis *axes,
                        const char *wanted)
{
    char *text = ct_sharding_text(&parallel->mesh, sharding, rank, axes);
    assert_string_equal(text, wanted);
    free(text);
}

static ct_sharding expect_sharding(const ct_parallel *parallel, sharding_fn *function, const char *tensor,
                                   const char *wanted)
{
    ct_axis axes[CT_MAX_RANK];
    int rank = parse(tensor, axes);
    ct_sharding sharding = function(parallel, rank, axes);
    expect_text(parallel, &sharding, rank, axes, wanted);
    return sharding;
}

static void stored_on_an_axis_that_divides(void **state)
{
    (void)state;
    ct_parallel p = make(1, 4, 2, 2, 4);
    expect_sharding(&p, ct_parallel_stored, "layers=3 heads=8 head_dim=16 dim=64", "heads=tp dim=dp_shard+cp");
    expect_sharding(&p, ct_parallel_used, "layers=3 heads=8 head_dim=16 dim=64", "heads=tp");
    expect_sharding(&p, ct_parallel_stored, "ffn=96 dim=60", "ffn=tp+dp_shard+cp"); /* 60 does not divide by 8 */
    expect_sharding(&p, ct_parallel_stored, "layers=100 dim=32", "");               /* below 64, layers not counted */
    expect_sharding(&p, ct_parallel_stored, "dim=64", "dim=dp_shard+cp");
    ct_sharding s = expect_sharding(&p, ct_parallel_stored, "vocab=251 dim=60", "vocab=tp dim=dp_shard+cp");
    assert_int_equal(s.padded[0], 252);
    assert_int_equal(s.padded[1], 64); /* none divides: dim, the first that may be padded */
    p.partition = CT_PARTITION_SHARDY;
    s = expect_sharding(&p, ct_parallel_stored, "vocab=251 dim=60", "");
    assert_int_equal(s.padded[0], 0);
}

static void stages(void **state)
{
    (void)state;
    ct_parallel p = make(2, 2, 1, 2, 4);
    p.zero_stage = 1;
    expect_sharding(&p, ct_parallel_stored, "ffn=96 dim=64", "ffn=tp");
    expect_sharding(&p, ct_parallel_gradient, "ffn=96 dim=64", "ffn=tp");
    expect_sharding(&p, ct_parallel_moment, "ffn=96 dim=64", "ffn=tp dim=dp_shard");
    p.zero_stage = 2;
    expect_sharding(&p, ct_parallel_stored, "ffn=96 dim=64", "ffn=tp");
    expect_sharding(&p, ct_parallel_gradient, "ffn=96 dim=64", "ffn=tp dim=dp_shard");
    p.zero_stage = 3;
    expect_sharding(&p, ct_parallel_stored, "ffn=96 dim=64", "ffn=tp dim=dp_shard");
}

static void repeated_kv_heads(void **state)
{
    (void)state;
    ct_parallel p = make(1, 2, 1, 8, 4);
    expect_sharding(&p, ct_parallel_used, "kv_heads=4 head_dim=16 dim=64", "kv_heads=tp_0");
    expect_sharding(&p, ct_parallel_stored, "kv_heads=4 head_dim=16 dim=64", "kv_heads=tp_0 dim=dp_shard+tp_1");
    expect_sharding(&p, ct_parallel_stored, "heads=8 head_dim=16 dim=64", "heads=tp_0+tp_1 dim=dp_shard");
    p = make(1, 2, 1, 8, 1);
    expect_sharding(&p, ct_parallel_used, "kv_heads=1 head_dim=16 dim=64", "");
    expect_sharding(&p, ct_parallel_stored, "kv_heads=1 head_dim=16 dim=64", "dim=dp_shard+tp");
}

static void expect_point(const ct_parallel *parallel, const char *name, const char *tensor, const char *wanted)
{
    ct_axis axes[CT_MAX_RANK];
    int rank = parse(tensor, axes);
    ct_sharding sharding;
    assert_true(ct_parallel_point(parallel, name, rank, axes, &sharding));
    expect_text(parallel, &sharding, rank, axes, wanted);
}

static void points(void **state)
{
    (void)state;
    ct_parallel p = make(2, 1, 2, 2, 4);
    expect_sharding(&p, ct_parallel_activation, "batch=4 seq=16 heads=8 head_dim=16",
                    "batch=dp_replicate seq=cp heads=tp");
    expect_point(&p, "residual", "batch=4 seq=16 dim=64", "batch=dp_replicate seq=cp+tp");
    expect_point(&p, "logits", "batch=4 seq=16 vocab=251", "batch=dp_replicate seq=cp vocab=tp");
    p.sequence_parallel = p.loss_parallel = false;
    expect_point(&p, "residual", "batch=4 seq=16 dim=64", "batch=dp_replicate seq=cp");
    expect_point(&p, "logits", "batch=4 seq=16 vocab=251", "batch=dp_replicate seq=cp");
    ct_sharding sharding;
    ct_axis axes[CT_MAX_RANK];
    assert_false(ct_parallel_point(&p, "nowhere", parse("seq=16", axes), axes, &sharding));
}

static void sizes_that_do_not_divide(void **state)
{
    (void)state;
    ct_parallel p = make(2, 2, 2, 4, 4);
    const char *const names[] = {"batch", "seq", "heads", "vocab", "layers"};
    int64_t sizes[] = {4, 16, 8, 251, 3};
    expect_ok(ct_parallel_check(&p, 5, names, sizes));
    sizes[0] = 6;
    expect_error(ct_parallel_check(&p, 5, names, sizes), CT_CODE_INVALID_ARGUMENT,
                 "axis batch of size 6 must be a multiple of 4, the parts that the sharding table splits it into over "
                 "the mesh axes dp_replicate=2 dp_shard=2");
    sizes[0] = 4;
    sizes[1] = 12; /* divides over cp, not over cp and tp */
    expect_error(ct_parallel_check(&p, 5, names, sizes), CT_CODE_INVALID_ARGUMENT,
                 "axis seq of size 12 must be a multiple of 8, the parts that residual splits it into");
    sizes[1] = 16;
    sizes[2] = 6;
    expect_error(ct_parallel_check(&p, 5, names, sizes), CT_CODE_INVALID_ARGUMENT, "axis heads of size 6");
}

static void ports(void **state)
{
    (void)state;
    ct_parallel p = make(1, 2, 1, 2, 4);
    ct_graph *graph = ct_graph_new("ports");
    ct_parallel_attach(graph, &p);
    assert_ptr_equal(ct_parallel_of(graph), &p);
    ct_tensor *x = ct_input(graph, "x", CT_DTYPE_F32, "vocab=7 dim=8");
    ct_output(graph, "y", x, NULL);
    ct_sharding sharding = ct_parallel_stored(&p, 2, x->axes);
    ct_parallel_set_input(graph, x, &sharding);
    ct_parallel_set_output(graph, 0, &sharding);
    assert_int_equal(graph->inputs[0].padded[0], 8);
    assert_int_equal(graph->outputs[0].sharding->count[0], 1);
    expect_ok(ct_graph_check(graph));
    ct_graph_free(graph);

    ct_parallel alone = make(1, 1, 1, 1, 4);
    graph = ct_graph_new("alone");
    ct_parallel_attach(graph, &alone);
    assert_null(ct_parallel_of(graph));
    ct_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stored_on_an_axis_that_divides),
        cmocka_unit_test(stages),
        cmocka_unit_test(repeated_kv_heads),
        cmocka_unit_test(points),
        cmocka_unit_test(sizes_that_do_not_divide),
        cmocka_unit_test(ports),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
