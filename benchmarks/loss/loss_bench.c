/* Time and memory of head and loss, forward and backward, the portable form against the definition, on the default CPU
 * plugin.
 *
 *   loss_bench [rounds [tile [block of rows]]]
 *
 * f32, hidden and weight at the given sizes, gradients of both. The forms run in turn; of the rounds the median, of
 * wall clock and of CPU time (which scatters less on a busy machine).
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "autodiff/grad.h"
#include "base/clock.h"
#include "graph/ops.h"
#include "kernels/kernel.h"
#include "kernels/linear_cross_entropy/linear_cross_entropy.h"
#include "pjrt/testing.h"

enum { HIDDEN, WEIGHT, LABELS, NUM_INPUTS, NUM_OUTPUTS = 3, MAX_ROUNDS = 99 };

typedef struct contender {
    ct_executable *executable;
    double wall[MAX_ROUNDS], cpu[MAX_ROUNDS];
    int64_t temporaries;
} contender;

typedef struct bench_size {
    int64_t rows, dim, vocab;
} bench_size;

static ct_executable *compile(ct_client *client, const bench_size *size, const ct_kernels *kernels)
{
    ct_graph *graph = ct_graph_new("loss");
    ct_kernels_attach(graph, kernels);
    ct_graph_declare_axis(graph, "batch", 1);
    ct_graph_declare_axis(graph, "seq", size->rows);
    ct_graph_declare_axis(graph, "dim", size->dim);
    ct_graph_declare_axis(graph, "vocab", size->vocab);
    ct_tensor *x[NUM_INPUTS] = {ct_input(graph, "hidden", CT_DTYPE_F32, "batch seq dim"),
                                ct_input(graph, "weight", CT_DTYPE_F32, "vocab dim"),
                                ct_input(graph, "labels", CT_DTYPE_S32, "batch seq")};
    ct_tensor *loss = ct_linear_cross_entropy_sum(x[HIDDEN], x[WEIGHT], x[LABELS], NULL);
    ct_tensor *outputs[NUM_OUTPUTS] = {ct_mul_scalar(loss, 1 / (double)size->rows)};
    expect_ok(ct_grad(graph, outputs[0], x, 2, outputs + 1));
    static const char *const names[NUM_OUTPUTS] = {"loss", "d hidden", "d weight"};
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
    ct_array loss;
    expect_ok(ct_buffer_to_array(outputs[0], &loss)); /* waits for all: they are one program */
    ct_array_free(&loss);
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

static void measure(ct_client *client, const bench_size *size, int rounds, int64_t tile, int64_t block)
{
    ct_kernels forms[2] = {
        {.loss = CT_KERNEL_DEFINITION, .platform = "cpu"},
        {.loss = CT_KERNEL_PORTABLE, .platform = "cpu", .loss_blocks = {.vocab = tile, .rows = block}}};
    static contender contenders[2];
    int64_t sizes[NUM_INPUTS][3] = {{1, size->rows, size->dim}, {size->vocab, size->dim}, {1, size->rows}};
    ct_buffer *inputs[NUM_INPUTS];
    for (int i = 0; i < NUM_INPUTS; i++) {
        ct_array array = ct_array_new(i == LABELS ? CT_DTYPE_S32 : CT_DTYPE_F32, sizes[i], i == HIDDEN ? 3 : 2);
        for (int64_t j = 0; j < ct_array_num_elements(&array); j++)
            ct_array_set(&array, j,
                         i == LABELS ? (double)(j * 7919 % size->vocab) : (double)(j * 7919 % 1013) / 5065 - 0.1);
        expect_ok(ct_buffer_from_host(ct_client_addressable_device(client, 0), &array, NULL, NULL, &inputs[i]));
        ct_array_free(&array);
    }
    double wall, cpu, walls[2], cpus[2];
    for (int f = 0; f < 2; f++) {
        contenders[f].executable = compile(client, size, &forms[f]);
        ct_executable_memory stats;
        expect_ok(ct_executable_memory_stats(contenders[f].executable, &stats));
        contenders[f].temporaries = stats.temp_bytes;
        run(&contenders[f], inputs, &wall, &cpu); /* to warm up */
    }
    for (int round = 0; round < rounds; round++)
        for (int f = 0; f < 2; f++) run(&contenders[f], inputs, &contenders[f].wall[round], &contenders[f].cpu[round]);
    for (int f = 0; f < 2; f++) {
        walls[f] = median(contenders[f].wall, rounds);
        cpus[f] = median(contenders[f].cpu, rounds);
        ct_executable_free(contenders[f].executable);
    }
    printf("| %5lld | %4lld | %6lld | %7.1f | %7.1f | %4.2f | %4.2f | %6.1f | %6.1f |\n", (long long)size->rows,
           (long long)size->dim, (long long)size->vocab, 1e3 * walls[0], 1e3 * walls[1], walls[1] / walls[0],
           cpus[1] / cpus[0], (double)contenders[0].temporaries / 1048576, (double)contenders[1].temporaries / 1048576);
    fflush(stdout);
    ct_buffers_free(inputs, NUM_INPUTS);
}

int main(int argc, char **argv)
{
    static const bench_size sizes[] = {{512, 256, 2048},   {512, 256, 8192},   {2048, 256, 2048},
                                       {512, 256, 32768},  {2048, 256, 8192},  {2048, 256, 32768},
                                       {512, 1024, 32768}, {4096, 256, 32768}, {1024, 512, 128256}};
    int rounds = argc > 1 ? atoi(argv[1]) : 5;
    int64_t tile = argc > 2 ? strtoll(argv[2], NULL, 10) : 0;
    int64_t block = argc > 3 ? strtoll(argv[3], NULL, 10) : 0;
    ct_client *client = ct_test_client(1);
    puts("|  rows |  dim |  vocab | definition ms | portable ms | ratio | CPU ratio | definition MiB | portable MiB |");
    puts("|------:|-----:|-------:|--------------:|------------:|------:|----------:|---------------:|-------------:|");
    for (size_t i = 0; i < CT_COUNT(sizes); i++)
        measure(client, &sizes[i], (int)CT_MAX(1, CT_MIN(rounds, MAX_ROUNDS)), tile, block);
    ct_client_free(client);
    return 0;
}
