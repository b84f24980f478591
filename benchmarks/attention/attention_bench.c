/* Time of attention forward and backward, the portable form against the definition, on the default CPU plugin.
 *
 *   attention_bench [rounds [q rows [kv rows [backward q rows [backward kv rows [sequence [batch]]]]]]]
 *
 * 0: the default; all sequences; batch 1. 8 heads in 4 groups, head_dim 64, causal, positions and segments given as a
 * training step gives them. The forms run in turn; of the rounds the median, of wall clock and of CPU time (which
 * scatters less on a busy machine).
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "autodiff/grad.h"
#include "base/clock.h"
#include "graph/ops.h"
#include "kernels/attention/attention.h"
#include "kernels/kernel.h"
#include "pjrt/testing.h"

enum { Q, K, V, POSITIONS, KV_POSITIONS, SEGMENTS, KV_SEGMENTS, NUM_INPUTS, NUM_OUTPUTS = 4, MAX_ROUNDS = 99 };

static const struct {
    const char *name, *axes;
    ct_dtype dtype;
    int rank;
    int64_t sizes[4]; /* after batch and sequence */
} INPUTS[NUM_INPUTS] = {
    {"q", "batch seq heads head_dim", CT_DTYPE_F32, 4, {0, 0, 8, 64}},
    {"k", "batch kv_seq kv_heads head_dim", CT_DTYPE_F32, 4, {0, 0, 4, 64}},
    {"v", "batch kv_seq kv_heads head_dim", CT_DTYPE_F32, 4, {0, 0, 4, 64}},
    {"positions", "batch seq", CT_DTYPE_S32, 2, {0, 0}},
    {"kv_positions", "batch kv_seq", CT_DTYPE_S32, 2, {0, 0}},
    {"segments", "batch seq", CT_DTYPE_S32, 2, {0, 0}},
    {"kv_segments", "batch kv_seq", CT_DTYPE_S32, 2, {0, 0}},
};

typedef struct contender {
    ct_executable *executable;
    double wall[MAX_ROUNDS], cpu[MAX_ROUNDS];
} contender;

static ct_executable *compile(ct_client *client, int64_t batch, int64_t seq, const ct_kernels *kernels)
{
    ct_graph *graph = ct_graph_new("attention");
    ct_kernels_attach(graph, kernels);
    static const struct {
        const char *name;
        int64_t size;
    } axes[] = {{"heads", 8}, {"kv_heads", 4}, {"head_dim", 64}};
    for (size_t i = 0; i < CT_COUNT(axes); i++) ct_graph_declare_axis(graph, axes[i].name, axes[i].size);
    ct_graph_declare_axis(graph, "batch", batch);
    ct_graph_declare_axis(graph, "seq", seq);
    ct_graph_declare_axis(graph, "kv_seq", seq);
    ct_tensor *x[NUM_INPUTS], *outputs[NUM_OUTPUTS];
    for (int i = 0; i < NUM_INPUTS; i++) x[i] = ct_input(graph, INPUTS[i].name, INPUTS[i].dtype, INPUTS[i].axes);
    ct_attention_opts opts = {.causal = true,
                              .positions = x[POSITIONS],
                              .kv_positions = x[KV_POSITIONS],
                              .segments = x[SEGMENTS],
                              .kv_segments = x[KV_SEGMENTS]};
    outputs[0] = ct_attention(x[Q], x[K], x[V], &opts);
    expect_ok(ct_grad_from(graph, 1, outputs, &x[Q], x, 3, outputs + 1)); /* q as the cotangent */
    static const char *const names[NUM_OUTPUTS] = {"result", "dq", "dk", "dv"};
    for (int i = 0; i < NUM_OUTPUTS; i++) ct_output(graph, names[i], outputs[i], NULL);
    ct_str text = {0};
    expect_ok(ct_graph_print(graph, &text));
    ct_executable *executable = ct_test_compile(client, text.data, &(ct_compile_opts){.num_partitions = 1});
    ct_str_deinit(&text);
    ct_graph_free(graph);
    return executable;
}

static double cpu_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void run(const contender *c, ct_buffer **inputs, double *out_wall, double *out_cpu)
{
    ct_buffer *outputs[NUM_OUTPUTS];
    double wall = ct_clock_seconds(), cpu = cpu_seconds();
    expect_ok(ct_executable_execute(c->executable, inputs, NUM_INPUTS, NULL, outputs));
    for (int i = 0; i < NUM_OUTPUTS; i++) {
        ct_array array;
        expect_ok(ct_buffer_to_array(outputs[i], &array));
        ct_array_free(&array);
    }
    *out_wall = ct_clock_seconds() - wall;
    *out_cpu = cpu_seconds() - cpu;
    ct_buffers_free(outputs, NUM_OUTPUTS);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof(*values), ascending);
    return values[count / 2];
}

static void measure(ct_client *client, int64_t batch, int64_t seq, int rounds, const ct_attention_blocks *blocks)
{
    ct_kernels forms[2] = {{.attention = CT_KERNEL_DEFINITION, .platform = "cpu"},
                           {.attention = CT_KERNEL_PORTABLE, .platform = "cpu", .attention_blocks = *blocks}};
    static contender contenders[2];
    ct_buffer *inputs[NUM_INPUTS];
    for (int i = 0; i < NUM_INPUTS; i++) {
        int64_t sizes[4];
        for (int j = 0; j < INPUTS[i].rank; j++) sizes[j] = !j ? batch : j == 1 ? seq : INPUTS[i].sizes[j];
        ct_array array = ct_array_new(INPUTS[i].dtype, sizes, INPUTS[i].rank);
        for (int64_t j = 0; j < ct_array_num_elements(&array); j++)
            ct_array_set(&array, j,
                         i < POSITIONS  ? (double)(j * 7919 % 1013) / 506.5 - 1
                         : i < SEGMENTS ? (double)j
                                        : 0);
        expect_ok(ct_buffer_from_host(ct_client_addressable_device(client, 0), &array, NULL, NULL, &inputs[i]));
        ct_array_free(&array);
    }
    double wall, cpu;
    for (int f = 0; f < 2; f++) {
        contenders[f].executable = compile(client, batch, seq, &forms[f]);
        run(&contenders[f], inputs, &wall, &cpu); /* to warm up */
    }
    for (int round = 0; round < rounds; round++)
        for (int f = 0; f < 2; f++) run(&contenders[f], inputs, &contenders[f].wall[round], &contenders[f].cpu[round]);
    double walls[2], cpus[2];
    for (int f = 0; f < 2; f++) {
        walls[f] = median(contenders[f].wall, rounds);
        cpus[f] = median(contenders[f].cpu, rounds);
        ct_executable_free(contenders[f].executable);
    }
    printf("| %5lld | %8.1f | %8.1f | %5.2f | %8.1f | %8.1f | %5.2f |\n", (long long)seq, 1e3 * walls[0],
           1e3 * walls[1], walls[1] / walls[0], 1e3 * cpus[0], 1e3 * cpus[1], cpus[1] / cpus[0]);
    fflush(stdout);
    ct_buffers_free(inputs, NUM_INPUTS);
}

int main(int argc, char **argv)
{
    static const int64_t lengths[] = {512, 1024, 2048, 4096};
    int64_t numbers[7] = {5};
    for (int i = 1; i < argc && i < 8; i++) numbers[i - 1] = strtoll(argv[i], NULL, 10);
    ct_attention_blocks blocks = {.q = numbers[1], .kv = numbers[2], .q_dkv = numbers[3], .kv_dkv = numbers[4]};
    int rounds = (int)CT_MAX(1, CT_MIN(numbers[0], MAX_ROUNDS));
    ct_client *client = ct_test_client(1);
    printf("|   seq | definition ms | portable ms | ratio | definition CPU ms | portable CPU ms | ratio |\n");
    for (size_t i = 0; i < CT_COUNT(lengths); i++)
        if (!numbers[5] || numbers[5] == lengths[i])
            measure(client, CT_MAX(1, numbers[6]), lengths[i], rounds, &blocks);
    ct_client_free(client);
    return 0;
}
