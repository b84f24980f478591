/* The rates at which libtpu's own estimates price the matrix products of models: what src/chips takes its matmul rates
 * from, and docs/prediction.md its ranges.
 *
 *   products_bench [topology...]
 *
 * bf16, 16384 tokens. Of every layer's and head's product the forward (x W), the input's gradient (dy W^T) and the
 * weight's (x^T dy), each compiled alone for one chip of the slice, with the default limit of vector memory for fusions
 * and with 96 MiB: the share of the chip's peak that the estimate comes to. Nothing is run.
 */
#include <stdio.h>
#include <stdlib.h>

#include "graph/dot.h"
#include "graph/graph.h"
#include "pjrt/hlo_text.h"
#include "pjrt/testing.h"
#include "pjrt/topology.h"
#include "predict/predict.h"

enum { TOKENS = 16384, LIMIT_KIB = 98304 };

typedef struct bench_product {
    const char *what;
    int64_t in, out;
} bench_product;

static const bench_product products[] = {
    {"Qwen3 8B attention", 4096, 4096},        {"Llama 3 8B feed-forward", 4096, 14336},
    {"Llama 3 70B feed-forward", 8192, 28672}, {"Llama 3 405B feed-forward", 16384, 53248},
    {"Qwen3 0.6B head", 1024, 151936},         {"Qwen3 8B head", 4096, 151936},
    {"Llama 3 8B head", 4096, 128256},         {"Llama 3 70B head", 8192, 128256},
    {"Llama 3 405B head", 16384, 128256},
};

static ct_graph *build(const bench_product *product, int which)
{
    static const char *const axes[][3] = {
        {"tokens in", "in out", "in"}, {"tokens out", "in out", "out"}, {"tokens in", "tokens out", "tokens"}};
    ct_graph *graph = ct_graph_new("product");
    ct_graph_declare_axis(graph, "tokens", TOKENS);
    ct_graph_declare_axis(graph, "in", product->in);
    ct_graph_declare_axis(graph, "out", product->out);
    ct_tensor *a = ct_input(graph, "a", CT_DTYPE_BF16, axes[which][0]);
    ct_tensor *b = ct_input(graph, "b", CT_DTYPE_BF16, axes[which][1]);
    ct_output(graph, "result", ct_dot(a, b, axes[which][2]), NULL);
    return graph;
}

static double rate_of(ct_topology *topology, const char *text, bool with_limit)
{
    int id = ct_topology_device_id(topology, 0);
    const ct_chip *chip = ct_chip_find(ct_topology_device_kind(topology, 0));
    const ct_named_value flag = {.name = "xla_tpu_scoped_vmem_limit_kib", .type = CT_VALUE_INT, .integer = LIMIT_KIB};
    ct_compile_opts opts = {.num_partitions = 1, .device_ids = &id, .flags = &flag, .num_flags = with_limit};
    ct_executable *executable;
    expect_ok(ct_topology_compile(topology, text, strlen(text), &opts, &executable));
    ct_arena arena;
    ct_arena_init(&arena);
    ct_hlo_module *module;
    ct_prediction *prediction;
    expect_ok(ct_executable_hlo(executable, &arena, &module));
    ct_predict_opts predict_opts = {.chip = chip, .num_devices = 1};
    expect_ok(ct_predict(&arena, module, &predict_opts, &prediction));
    double seconds = prediction->step.at[CT_CHIP_MID];
    ct_executable_free(executable);
    ct_arena_deinit(&arena);
    return seconds > 0 ? 1 / seconds / chip->peak_flops[CT_CHIP_BF16] : 0;
}

int main(int argc, char **argv)
{
    static const char *const all[] = {"v5e:2x2", "v5p:2x2x1", "v6e:2x2", "tpu7x:2x2x1"};
    ct_plugin *plugin = ct_test_libtpu();
    int count = argc > 1 ? argc - 1 : (int)CT_COUNT(all);
    for (int t = 0; t < count; t++) {
        const char *name = argc > 1 ? argv[t + 1] : all[t];
        ct_topology *topology;
        expect_ok(ct_topology_new(plugin, name, NULL, 0, &topology));
        printf("%s: share of the peak, forward / input's gradient / weight's gradient; the same with %d KiB\n", name,
               LIMIT_KIB);
        for (size_t i = 0; i < CT_COUNT(products); i++) {
            double flops = 2.0 * TOKENS * (double)products[i].in * (double)products[i].out;
            printf("  %-26s %6lld -> %6lld ", products[i].what, (long long)products[i].in, (long long)products[i].out);
            for (int limit = 0; limit < 2; limit++)
                for (int which = 0; which < 3; which++) {
                    ct_graph *graph = build(&products[i], which);
                    ct_str text = {0};
                    expect_ok(ct_graph_print(graph, &text));
                    printf(" %s%.2f", limit && !which ? "  " : "", flops * rate_of(topology, text.data, limit));
                    fflush(stdout);
                    ct_str_deinit(&text);
                    ct_graph_free(graph);
                }
            printf("\n");
        }
        ct_topology_free(topology);
    }
    return 0;
}
