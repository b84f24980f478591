/* The kernels of the loss compiled by libtpu for every chip at blocks from 128 to 2048, each within the vector memory
 * that the estimate gives it; and a program with all of them in the blocks tuned for the chip. Skipped where there is
 * no libtpu.
 */
#include "autodiff/grad.h"
#include "graph/ops.h"
#include "kernels/kernel.h"
#include "kernels/linear_cross_entropy/linear_cross_entropy.h"
#include "kernels/linear_cross_entropy/mosaic.h"
#include "pjrt/testing.h"
#include "pjrt/topology.h"

typedef struct compile_case {
    ct_mosaic_element element;
    int64_t rows, vocab, dim;
    ct_loss_blocks blocks;
    double soft_cap;
} compile_case;

/* Vocabularies that blocks do and do not divide, smaller than a block, odd ones. Large tiles take libtpu long. */
static const compile_case CASES[] = {
    {CT_MOSAIC_BF16, 300, 1000, 256, {128, 128, 128}, 0},    {CT_MOSAIC_F32, 256, 1024, 384, {128, 128, 128}, 30},
    {CT_MOSAIC_F32, 100, 51, 80, {128, 80, 128}, 0},         {CT_MOSAIC_BF16, 512, 16033, 768, {256, 256, 256}, 30},
    {CT_MOSAIC_BF16, 512, 16032, 1024, {256, 1024, 256}, 0}, {CT_MOSAIC_F32, 512, 5027, 512, {256, 256, 256}, 0},
    {CT_MOSAIC_BF16, 1024, 8192, 1024, {512, 512, 512}, 0},  {CT_MOSAIC_BF16, 4096, 16032, 512, {1024, 512, 1024}, 20},
    {CT_MOSAIC_BF16, 4096, 8200, 256, {2048, 128, 512}, 0},  {CT_MOSAIC_BF16, 4096, 8200, 256, {512, 128, 2048}, 0},
    {CT_MOSAIC_BF16, 4096, 8200, 256, {2048, 128, 2048}, 0}, /* for one chip */
};
enum { LARGEST = CT_COUNT(CASES) - 1 };

static const char *const CHIPS[][2] = {
    {"v5e", "v5e:2x2"}, {"v5p", "v5p:2x2x1"}, {"v6e", "v6e:2x2"}, {"tpu7x", "tpu7x:2x2x1"}};

static void compile(ct_topology *topology, const char *chip, const char *what, const ct_loss_blocks *blocks,
                    ct_graph *graph)
{
    ct_str text = {0};
    expect_ok(ct_graph_print(graph, &text));
    ct_graph_free(graph);
    ct_executable *executable = NULL;
    int id = ct_topology_device_id(topology, 0);
    ct_compile_opts opts = {.num_partitions = 1, .device_ids = &id};
    ct_status *status = ct_topology_compile(topology, text.data, text.length, &opts, &executable);
    if (status)
        fail_msg("%s for %s, blocks of %lld, %lld, %lld: %s", what, chip, (long long)blocks->rows,
                 (long long)blocks->hidden, (long long)blocks->vocab, ct_status_message(status));
    ct_executable_free(executable);
    ct_str_deinit(&text);
}

/* A program of one kernel that may take no more than the estimate. */
static ct_graph *kernel_program(const compile_case *c, ct__loss_kernel kernel)
{
    ct__loss_mosaic s = {.element = c->element,
                         .rows = c->rows,
                         .vocab = c->vocab,
                         .dim = c->dim,
                         .soft_cap = c->soft_cap,
                         .blocks = c->blocks};
    s.vector_bytes = ct__loss_mosaic_bytes(&s, kernel);
    ct_graph *graph = ct_graph_new("kernel");
    ct_graph_declare_axis(graph, "one", 1);
    ct_graph_declare_axis(graph, "row", ct__loss_mosaic_padded(&s));
    ct_graph_declare_axis(graph, "dim", c->dim);
    ct_graph_declare_axis(graph, "vocab", c->vocab);
    static const char *const names[7] = {"limit", "x", "w", "labels", "lse", "of_softmax", "of_label"};
    static const char *const axes[7] = {"one", "row dim", "vocab dim", "one row", "one row", "one row", "one row"};
    ct_dtype dtype = c->element == CT_MOSAIC_F32 ? CT_DTYPE_F32 : CT_DTYPE_BF16;
    ct_tensor *x[7], *results[2];
    for (int i = 0; i < 7; i++)
        x[i] = ct_input(graph, names[i], i == 0 || i == 3 ? CT_DTYPE_S32 : i < 3 ? dtype : CT_DTYPE_F32, axes[i]);
    bool is_forward = kernel == CT__LOSS_FORWARD;
    ct_tensor *likes[2] = {is_forward ? x[4] : x[kernel == CT__LOSS_DX ? 1 : 2], x[4]};
    ct_mosaic_call(ct__loss_mosaic_kernel(&s, kernel), is_forward ? 4 : 7, x, is_forward ? 2 : 1, likes, results);
    for (int i = 0; i <= is_forward; i++) ct_output(graph, i ? "second" : "first", results[i], NULL);
    return graph;
}

/* Rows and vocabulary as one of eight chips that share the vocabulary of Llama 3 has them. */
static ct_graph *whole_program(const ct_kernels *kernels)
{
    ct_graph *graph = ct_graph_new("loss");
    ct_kernels_attach(graph, kernels);
    ct_graph_declare_axis(graph, "batch", 2);
    ct_graph_declare_axis(graph, "seq", 4096);
    ct_graph_declare_axis(graph, "dim", 4096);
    ct_graph_declare_axis(graph, "vocab", 128256 / 8);
    ct_tensor *x[2] = {ct_input(graph, "hidden", CT_DTYPE_BF16, "batch seq dim"),
                       ct_input(graph, "weight", CT_DTYPE_BF16, "vocab dim")};
    ct_tensor *labels = ct_input(graph, "labels", CT_DTYPE_S32, "batch seq"), *gradients[2];
    ct_linear_cross_entropy_opts opts = {.z_loss = 1e-4};
    ct_tensor *loss = ct_linear_cross_entropy_sum(x[0], x[1], labels, &opts);
    expect_ok(ct_grad(graph, loss, x, 2, gradients));
    ct_output(graph, "loss", loss, NULL);
    ct_output(graph, "d hidden", gradients[0], NULL);
    ct_output(graph, "d weight", gradients[1], NULL);
    return graph;
}

static void test_compile(void **state)
{
    (void)state;
    ct_plugin *plugin = ct_test_libtpu();
    int num_kernels = 0;
    for (size_t chip = 0; chip < CT_COUNT(CHIPS); chip++) {
        ct_topology *topology;
        expect_ok(ct_topology_new(plugin, CHIPS[chip][1], NULL, 0, &topology));
        for (size_t n = 0; n < LARGEST + (chip == 0); n++)
            for (ct__loss_kernel kernel = 0; kernel < CT__LOSS_KERNELS; kernel++, num_kernels++)
                compile(topology, CHIPS[chip][0], (const char *[]){"forward", "dx", "dw"}[kernel], &CASES[n].blocks,
                        kernel_program(&CASES[n], kernel));
        ct_topology_free(topology);
    }
    print_message("%d kernels of the loss compiled for %zu chips\n", num_kernels, CT_COUNT(CHIPS));
}

/* v5e and v6e have the blocks of tpu7x. */
static void test_tuned(void **state)
{
    (void)state;
    ct_plugin *plugin = ct_test_libtpu();
    for (size_t chip = 1; chip < CT_COUNT(CHIPS); chip += 2) {
        ct_topology *topology;
        expect_ok(ct_topology_new(plugin, CHIPS[chip][1], NULL, 0, &topology));
        ct_kernels kernels = {.platform = "tpu", .chip = CHIPS[chip][0]};
        compile(topology, CHIPS[chip][0], "a program in tuned blocks", &kernels.loss_blocks, whole_program(&kernels));
        ct_topology_free(topology);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_compile), cmocka_unit_test(test_tuned)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
