/* The splash kernels compiled by libtpu for every chip, forward and backward, at blocks from 128 to 2048: within the
 * vector memory that is asked for, which is what the estimate gives. Skipped where there is no libtpu.
 */
#include "autodiff/grad.h"
#include "graph/ops.h"
#include "kernels/attention/attention.h"
#include "kernels/kernel.h"
#include "pjrt/testing.h"
#include "pjrt/topology.h"

typedef struct compile_case {
    const char *name;
    ct_dtype dtype; /* 0: bf16 */
    int64_t seq, heads, kv_heads, head_dim, block, compute;
    bool causal, segments, positions, separate;
    int64_t window;
    double soft_cap;
    int64_t vector_bytes;
    const char *only; /* this chip; NULL: all */
} compile_case;

static const compile_case CASES[] = {
    {.name = "128, all masks",
     .seq = 500,
     .heads = 4,
     .kv_heads = 2,
     .head_dim = 64,
     .block = 128,
     .causal = true,
     .segments = true,
     .positions = true,
     .window = 200,
     .soft_cap = 30},
    {.name = "128, f32, head_dim 256",
     .dtype = CT_DTYPE_F32,
     .seq = 300,
     .heads = 2,
     .kv_heads = 1,
     .head_dim = 256,
     .block = 128,
     .window = 100,
     .separate = true},
    {.name = "256, head_dim 80", .seq = 512, .heads = 2, .kv_heads = 2, .head_dim = 80, .block = 256, .causal = true},
    {.name = "256, head_dim 192, all masks, separate",
     .seq = 512,
     .heads = 2,
     .kv_heads = 2,
     .head_dim = 192,
     .block = 256,
     .causal = true,
     .segments = true,
     .positions = true,
     .soft_cap = 20,
     .separate = true},
    {.name = "256, in parts",
     .seq = 2048,
     .heads = 8,
     .kv_heads = 1,
     .head_dim = 128,
     .block = 256,
     .causal = true,
     .vector_bytes = 16 << 20},
    {.name = "512, separate, segments",
     .seq = 1024,
     .heads = 2,
     .kv_heads = 1,
     .head_dim = 128,
     .block = 512,
     .compute = 256,
     .segments = true,
     .separate = true},
    {.name = "2048", .seq = 4096, .heads = 2, .kv_heads = 1, .head_dim = 64, .block = 2048, .compute = 512},
    {.name = "tuned", .seq = 8192, .heads = 8, .kv_heads = 2, .head_dim = 128, .causal = true},
    {.name = "tuned, f32, head_dim 256",
     .dtype = CT_DTYPE_F32,
     .seq = 8192,
     .heads = 2,
     .kv_heads = 1,
     .head_dim = 256,
     .segments = true,
     .only = "v5p"}, /* it takes the most */
};

static const char *const CHIPS[][2] = {
    {"v5e", "v5e:2x2"}, {"v5p", "v5p:2x2x1"}, {"v6e", "v6e:2x2"}, {"tpu7x", "tpu7x:2x2x1"}};

static ct_kernels kernels_of(const compile_case *c, const char *chip)
{
    int64_t compute = c->compute ? c->compute : c->block;
    return (ct_kernels){.attention = CT_KERNEL_MOSAIC,
                        .platform = "tpu",
                        .chip = chip,
                        .vector_bytes = c->vector_bytes,
                        .attention_blocks = {.q = c->block,
                                             .kv = c->block,
                                             .kv_compute = compute,
                                             .q_dkv = c->block,
                                             .kv_dkv = c->block,
                                             .kv_dkv_compute = compute,
                                             .q_dq = c->block,
                                             .kv_dq = compute,
                                             .separate_backward = c->separate}};
}

static ct_graph *build(const compile_case *c, const ct_kernels *kernels)
{
    ct_graph *graph = ct_graph_new("splash");
    ct_kernels_attach(graph, kernels);
    ct_graph_declare_axis(graph, "batch", 2);
    ct_graph_declare_axis(graph, "seq", c->seq);
    ct_graph_declare_axis(graph, "kv_seq", c->seq);
    ct_graph_declare_axis(graph, "heads", c->heads);
    ct_graph_declare_axis(graph, "kv_heads", c->kv_heads);
    ct_graph_declare_axis(graph, "head_dim", c->head_dim);
    ct_dtype dtype = c->dtype ? c->dtype : CT_DTYPE_BF16;
    ct_tensor *x[3] = {ct_input(graph, "q", dtype, "batch seq heads head_dim"),
                       ct_input(graph, "k", dtype, "batch kv_seq kv_heads head_dim"),
                       ct_input(graph, "v", dtype, "batch kv_seq kv_heads head_dim")};
    ct_attention_opts opts = {.causal = c->causal, .window = c->window, .soft_cap = c->soft_cap};
    if (c->positions) {
        opts.positions = ct_input(graph, "positions", CT_DTYPE_S32, "batch seq");
        opts.kv_positions = ct_input(graph, "kv_positions", CT_DTYPE_S32, "batch kv_seq");
    }
    if (c->segments) {
        opts.segments = ct_input(graph, "segments", CT_DTYPE_S32, "batch seq");
        opts.kv_segments = ct_input(graph, "kv_segments", CT_DTYPE_S32, "batch kv_seq");
    }
    ct_tensor *result = ct_attention(x[0], x[1], x[2], &opts), *gradients[3];
    if (ct_graph_has_failed(graph)) return graph;
    ct_tensor *loss = ct_sum(ct_convert(result, CT_DTYPE_F32), "batch seq heads head_dim");
    expect_ok(ct_grad(graph, loss, x, 3, gradients));
    ct_output(graph, "result", result, NULL);
    for (int i = 0; i < 3; i++) ct_output(graph, (const char *[]){"dq", "dk", "dv"}[i], gradients[i], NULL);
    return graph;
}

/* Bytes of temporaries. */
static int64_t compile(ct_topology *topology, const compile_case *c, const char *chip)
{
    int id = ct_topology_device_id(topology, 0);
    ct_kernels kernels = kernels_of(c, chip);
    ct_graph *graph = build(c, &kernels);
    ct_str text = {0};
    expect_ok(ct_graph_print(graph, &text));
    ct_graph_free(graph);
    ct_executable *executable = NULL;
    ct_compile_opts opts = {.num_partitions = 1, .device_ids = &id};
    ct_status *status = ct_topology_compile(topology, text.data, text.length, &opts, &executable);
    if (status) fail_msg("%s for %s: %s", c->name, chip, ct_status_message(status));
    ct_executable_memory memory;
    expect_ok(ct_executable_memory_stats(executable, &memory));
    ct_executable_free(executable);
    ct_str_deinit(&text);
    return memory.temp_bytes;
}

static void test_compile(void **state)
{
    (void)state;
    ct_plugin *plugin = ct_test_libtpu();
    const char *only = getenv("CTITAN_TEST_CASE");
    int count = 0;
    for (size_t chip = 0; chip < CT_COUNT(CHIPS); chip++) {
        ct_topology *topology;
        expect_ok(ct_topology_new(plugin, CHIPS[chip][1], NULL, 0, &topology));
        for (size_t n = 0; n < CT_COUNT(CASES); n++) {
            if (only && !strstr(CASES[n].name, only)) continue;
            if (CASES[n].only && strcmp(CASES[n].only, CHIPS[chip][0]) != 0) continue;
            compile(topology, &CASES[n], CHIPS[chip][0]);
            count++;
        }
        ct_topology_free(topology);
    }
    print_message("%d programs of splash kernels compiled for %zu chips\n", count, CT_COUNT(CHIPS));
}

/* Temporaries grow with the sequence and no faster: neither scores nor partial gradients are kept. */
static void test_memory(void **state)
{
    (void)state;
    ct_topology *topology;
    expect_ok(ct_topology_new(ct_test_libtpu(), "v5p:2x2x1", NULL, 0, &topology));
    compile_case c = {
        .name = "memory", .heads = 4, .kv_heads = 1, .head_dim = 128, .block = 512, .causal = true, .segments = true};
    int64_t before = 0;
    for (c.seq = 2048; c.seq <= 1 << 17; c.seq *= 4) {
        int64_t bytes = compile(topology, &c, "v5p");
        print_message("sequences of %lld: temporaries %lld bytes\n", (long long)c.seq, (long long)bytes);
        assert_true(bytes < (16 << 10) * c.seq);
        if (c.seq == 1 << 17) assert_true(bytes < before * 9 / 2);
        before = bytes;
    }
    ct_topology_free(topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_compile), cmocka_unit_test(test_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
