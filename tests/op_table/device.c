/* Programs on the CPU plugin. One client with eight virtual devices serves all cases. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "graph/node.h"
#include "op_table.h"
#include "pjrt/executable.h"

static ct_client *client;

struct op_program {
    ct_executable *executable;
    int num_inputs, num_outputs, num_devices;
};

void op_open(void)
{
    ct_plugin *plugin;
    expect_ok(ct_plugin_load(&(ct_plugin_opts){.path = getenv("CTITAN_PLUGIN_PATH")}, &plugin));
    expect_ok(ct_client_new(plugin, &(ct_client_opts){.device_count = 8}, &client));
}

void op_close(void)
{
    ct_client_free(client);
}

op_program *op_compile(ct_graph *graph, const char *what)
{
    ct_str text = {0};
    op_program *program = ct_alloc_zeroed(1, sizeof(*program));
    ct_status *status = ct_graph_print(graph, &text);
    if (status) fail_msg("%s: %s", what, ct_status_message(status));
    program->num_inputs = ct_graph_num_inputs(graph);
    program->num_outputs = ct_graph_num_outputs(graph);
    program->num_devices = 1;
    for (int i = 0; i < graph->num_mesh_axes; i++) program->num_devices *= (int)graph->mesh[i].size;
    ct_graph_free(graph);
    /* on a mesh it is our program that is tested, not XLA's passes, which are slow */
    static const ct_named_value fast[] = {
        {.name = "xla_backend_optimization_level", .type = CT_VALUE_INT, .integer = 0}};
    ct_compile_opts opts = {.num_partitions = program->num_devices, .flags = fast};
    opts.num_flags = program->num_devices > 1 ? CT_COUNT(fast) : 0;
    status = ct_client_compile(client, text.data, text.length, &opts, &program->executable);
    if (status) fail_msg("%s: %s\n%s", what, ct_status_message(status), text.data);
    ct_str_deinit(&text);
    return program;
}

int op_num_outputs(const op_program *program)
{
    return program->num_outputs;
}

void op_run(op_program *program, const ct_array *inputs, ct_array *outputs)
{
    int devices = program->num_devices, num_inputs = program->num_inputs, num_outputs = program->num_outputs;
    ct_array *parts = ct_alloc((size_t)(devices * num_inputs + 1) * sizeof(*parts));
    ct_array *results = ct_alloc((size_t)(devices * num_outputs + 1) * sizeof(*results));
    for (int d = 0; d < devices; d++)
        for (int i = 0; i < num_inputs; i++) parts[d * num_inputs + i] = inputs[i];
    op_run_parts(program, parts, results);
    for (int i = 0; i < num_outputs; i++) outputs[i] = results[i];
    for (int k = num_outputs; k < devices * num_outputs; k++) {
        const ct_array *output = &outputs[k % num_outputs];
        assert_int_equal(ct_array_bytes(&results[k]), ct_array_bytes(output));
        assert_memory_equal(results[k].data, output->data, ct_array_bytes(output));
        ct_array_free(&results[k]);
    }
    free(parts);
    free(results);
}

void op_run_parts(op_program *program, const ct_array *inputs, ct_array *outputs)
{
    int devices = program->num_devices, num_inputs = program->num_inputs, num_outputs = program->num_outputs;
    ct_buffer **arguments = ct_alloc_zeroed((size_t)(devices * num_inputs + 1), sizeof(*arguments));
    ct_buffer **results = ct_alloc_zeroed((size_t)(devices * num_outputs + 1), sizeof(*results));
    for (int d = 0; d < devices; d++) {
        ct_device *device;
        expect_ok(ct_executable_device(program->executable, (size_t)d, &device));
        for (int i = d * num_inputs; i < (d + 1) * num_inputs; i++)
            expect_ok(ct_buffer_from_host(device, &inputs[i], NULL, NULL, &arguments[i]));
    }
    expect_ok(ct_executable_execute(program->executable, arguments, (size_t)num_inputs, NULL, results));
    for (int i = 0; i < devices * num_outputs; i++) expect_ok(ct_buffer_to_array(results[i], &outputs[i]));
    ct_buffers_free(arguments, (size_t)(devices * num_inputs));
    ct_buffers_free(results, (size_t)(devices * num_outputs));
    free(arguments);
    free(results);
}

void op_program_free(op_program *program)
{
    ct_executable_free(program->executable);
    free(program);
}

/* ---- gradients ---- */

double op_uniform(uint32_t stream, uint32_t index)
{
    uint32_t bits[2];
    ct_threefry((const uint32_t[2]){stream, 2}, (const uint32_t[2]){index, 0}, bits);
    return (bits[0] + 0.5) / 4294967296.0;
}

bool op_near(double a, double b, double tolerance)
{
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
    if (isinf(a) || isinf(b)) return a == b;
    return fabs(a - b) <= tolerance * (1 + fabs(b));
}

void op_check_gradients(ct_graph *graph, const ct_array *inputs, int num_inputs, double tolerance, const char *what)
{
    op_program *program = op_compile(graph, what);
    int num_outputs = op_num_outputs(program);
    ct_array *outputs = ct_alloc_zeroed((size_t)num_outputs, sizeof(*outputs));
    ct_array *again = ct_alloc_zeroed((size_t)num_outputs, sizeof(*again));
    op_run(program, inputs, outputs);
    int next = 1;
    for (int i = 0; i < num_inputs; i++) {
        if (inputs[i].dtype != CT_DTYPE_F64) continue;
        const ct_array *gradient = &outputs[next++];
        double *values = inputs[i].data;
        for (int64_t j = 0; j < ct_array_num_elements(&inputs[i]); j++) {
            static const double h = 1e-5;
            double before = values[j], loss[2];
            for (int side = 0; side < 2; side++) {
                values[j] = before + (side ? h : -h);
                op_run(program, inputs, again);
                loss[side] = *(double *)again[0].data;
                for (int k = 0; k < num_outputs; k++) ct_array_free(&again[k]);
            }
            values[j] = before;
            double difference = (loss[1] - loss[0]) / (2 * h), value = ((double *)gradient->data)[j];
            double scale = fabs(*(double *)outputs[0].data);
            if (!op_near(value, difference, tolerance * (1 + scale)))
                fail_msg("%s: the gradient of input %d, element %lld is %.12g, differences give %.12g", what, i,
                         (long long)j, value, difference);
        }
    }
    for (int k = 0; k < num_outputs; k++) ct_array_free(&outputs[k]);
    free(outputs);
    free(again);
    op_program_free(program);
}
