/* PyTorch's loss and gradients of tests/golden with attention, head and loss as TPU kernels, interpreted on the CPU. */
#include "support.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "calls.h"
#include "pjrt/testing.h"
#include "train/step.h"
#include "train/weights.h"

static ct_array first_rows(const ct_safetensors *reference, const char *name, int64_t rows, int64_t columns)
{
    ct_test_values values = ct_test_tensor(reference, name);
    int64_t stride = columns + (strcmp(name, "tokens") == 0);
    ct_array ids = ct_array_new(CT_DTYPE_S32, (int64_t[]){rows, columns}, 2);
    for (int64_t i = 0; i < rows * columns; i++) ct_array_set(&ids, i, values.data[i / columns * stride + i % columns]);
    free(values.data);
    return ids;
}

static void put(ct_device *device, ct_array *array, ct_buffer **out_buffer)
{
    expect_ok(ct_buffer_from_host(device, array, NULL, NULL, out_buffer));
    ct_array_free(array);
}

static ct_executable *compile(ct_client *client, const ct_model *model, const ct_score_opts *opts)
{
    ct_graph *graph;
    ct_str printed = {0};
    expect_ok(ct_score_build(model, opts, &graph));
    expect_ok(ct_graph_print(graph, &printed));
    ct_graph_free(graph);
    int num_calls;
    char *text = mosaic_rewrite(printed.data, &num_calls);
    assert_int_equal(num_calls, 2 + 3); /* attention forward and fused backward, in scans; the loss' three */
    ct_executable *executable = ct_test_compile(client, text, &(ct_compile_opts){.num_partitions = 1});
    free(text);
    ct_str_deinit(&printed);
    return executable;
}

static void compare_gradient(const ct_model *model, int param, ct_buffer *output, const ct_safetensors *reference,
                             double *worst)
{
    ct_array stacked;
    expect_ok(ct_buffer_to_array(output, &stacked));
    int64_t layers = ct_model_param_layers(model, &model->params[param]);
    int64_t count = ct_array_num_elements(&stacked) / layers;
    ct_test_values found = {.data = ct_alloc((size_t)count * sizeof(double)), .count = count};
    for (int64_t layer = 0; layer < layers; layer++) {
        char buffer[256], name[300];
        snprintf(name, sizeof(name), "grad.%s", ct_model_hf_name(&model->params[param], layer, buffer));
        for (int64_t i = 0; i < count; i++) found.data[i] = ct_array_get(&stacked, layer * count + i);
        ct_test_values expected = ct_test_tensor(reference, name);
        ct_test_close(name, found, expected, CT_TEST_GRADIENTS, worst);
        free(expected.data);
    }
    free(found.data);
    ct_array_free(&stacked);
}

static void check(const char *name)
{
    ct_safetensors *reference = ct_test_reference(name), *weights;
    const ct_safetensors_tensor *labels;
    expect_ok(ct_safetensors_find(reference, "labels0", &labels));
    ct_score_opts opts = {
        .batch = labels->sizes[0],
        .seq_len = labels->sizes[1],
        .gradients = true,
        .kernels = {.attention = CT_KERNEL_MOSAIC, .loss = CT_KERNEL_MOSAIC, .platform = "tpu", .chip = "v5e"}};
    char *folder = ct_path_join(CT_TEST_GOLDEN, name);
    const ct_model_family *family;
    ct_model_config config;
    ct_model *model;
    expect_ok(ct_model_config_read(folder, &family, &config));
    expect_ok(ct_model_new(family, &config, true, &model));
    expect_ok(ct_safetensors_dir_open(folder, &weights));

    ct_client *client = ct_test_client(1);
    expect_ok(mosaic_register(ct_client_plugin(client)));
    ct_executable *executable = compile(client, model, &opts);
    size_t num_inputs = (size_t)model->num_params + 2, num_outputs = (size_t)model->num_params + 2;
    ct_buffer **inputs = ct_alloc_zeroed(num_inputs, sizeof(*inputs));
    ct_buffer **outputs = ct_alloc_zeroed(num_outputs, sizeof(*outputs));
    ct_device *device;
    expect_ok(ct_executable_device(executable, 0, &device));
    for (int i = 0; i < model->num_params; i++) {
        ct_array array;
        expect_ok(ct_weights_read(weights, model, i, &array));
        put(device, &array, &inputs[i]);
    }
    ct_array ids = first_rows(reference, "tokens", opts.batch, opts.seq_len);
    put(device, &ids, &inputs[model->num_params]);
    ids = first_rows(reference, "labels0", opts.batch, opts.seq_len);
    put(device, &ids, &inputs[model->num_params + 1]);
    expect_ok(ct_executable_execute(executable, inputs, num_inputs, NULL, outputs));

    float loss;
    expect_ok(ct_buffer_to_host(outputs[0], &loss, sizeof(loss), NULL));
    double found_loss = (double)loss, worst_loss = 0, worst_gradient = 0;
    ct_test_values expected = ct_test_tensor(reference, "loss0");
    ct_test_close("loss", (ct_test_values){&found_loss, 1}, expected, CT_TEST_FORWARD, &worst_loss);
    free(expected.data);
    for (int i = 0; i < model->num_params; i++) compare_gradient(model, i, outputs[i + 2], reference, &worst_gradient);
    print_message("%s: loss within %.1e, gradients within %.1e\n", name, worst_loss, worst_gradient);

    ct_buffers_free(inputs, num_inputs);
    ct_buffers_free(outputs, num_outputs);
    free(inputs);
    free(outputs);
    ct_executable_free(executable);
    ct_client_free(client);
    ct_safetensors_close(weights);
    ct_safetensors_close(reference);
    ct_model_free(model);
    free(folder);
}

static void test_llama3(void **state)
{
    (void)state;
    check("llama3_tiny");
}

static void test_qwen3(void **state)
{
    (void)state;
    check("qwen3_tiny");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_llama3), cmocka_unit_test(test_qwen3)};
    return cmocka_run_group_tests(tests, NULL, ct_test_world_free);
}
