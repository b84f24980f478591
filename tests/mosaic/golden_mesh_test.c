/* As golden_test.c, on eight devices: data, context and tensor parallel at once, localized. Tolerances are those of
 * tests/golden/README.md.
 */
#include "calls.h"
#include "support.h"
#include "train/state.h"
#include "train/step.h"

static const char MODEL[] = "llama3_mesh";

typedef struct scored {
    char *folder;
    ct_session *session;
    ct_model *model;
    ct_parallel parallel;
    ct_safetensors *reference;
    int64_t batch, seq;
    ct_buffer **outputs;
    size_t num_outputs;
    double worst[2]; /* of losses, of gradients */
} scored;

static ct_layout layout_of(const scored *s, ct_sharding sharding, ct_dtype dtype, int rank, const ct_axis *axes)
{
    ct_layout layout = {.mesh = &s->parallel.mesh, .sharding = sharding, .dtype = dtype, .rank = rank};
    for (int i = 0; i < rank; i++) layout.sizes[i] = axes[i].size;
    return layout;
}

static ct_array reference_array(const scored *s, const char *name)
{
    const ct_safetensors_tensor *tensor;
    ct_array array;
    expect_ok(ct_safetensors_find(s->reference, name, &tensor));
    expect_ok(ct_safetensors_load(tensor, &array));
    return array;
}

/* Of the file's first batch as many columns as it has labels. */
static void put_ids(const scored *s, const char *name, ct_buffer **out_buffers, size_t stride)
{
    const ct_axis axes[2] = {{"batch", s->batch}, {"seq", s->seq}};
    ct_array file = reference_array(s, name), ids = ct_array_new(CT_DTYPE_S32, (int64_t[]){s->batch, s->seq}, 2);
    int64_t columns = file.sizes[file.rank - 1];
    for (int64_t i = 0; i < s->batch * s->seq; i++)
        ct_array_set(&ids, i, ct_array_get(&file, i / s->seq * columns + i % s->seq));
    ct_layout layout = layout_of(s, ct_parallel_activation(&s->parallel, 2, axes), CT_DTYPE_S32, 2, axes);
    expect_ok(ct_session_share(s->session, &ids, &layout, out_buffers, stride));
    ct_array_free(&file);
    ct_array_free(&ids);
}

static void compare(scored *s, size_t output, ct_sharding sharding, int rank, const ct_axis *axes, int64_t parts,
                    const ct_model_param *param)
{
    ct_layout layout = layout_of(s, sharding, CT_DTYPE_F32, rank, axes);
    ct_array array;
    expect_ok(ct_session_fetch(s->session, &layout, s->outputs + output, s->num_outputs, &array));
    int64_t count = ct_array_num_elements(&array) / parts;
    for (int64_t part = 0; part < parts; part++) {
        char buffer[256], *name = param ? ct_asprintf("grad.%s", ct_model_hf_name(param, part, buffer)) : NULL;
        ct_test_values expected = ct_test_tensor(s->reference, name ? name : "loss0"), found = {.count = count};
        found.data = ct_alloc((size_t)count * sizeof(double));
        for (int64_t i = 0; i < count; i++) found.data[i] = ct_array_get(&array, part * count + i);
        ct_test_close(name ? name : "loss", found, expected, param ? CT_TEST_GRADIENTS : CT_TEST_FORWARD,
                      &s->worst[param != NULL]);
        free(found.data);
        free(expected.data);
        free(name);
    }
    ct_array_free(&array);
}

static void run(scored *s, ct_graph *graph)
{
    size_t num_devices = (size_t)s->session->num_devices, num_params = (size_t)s->model->num_params;
    size_t num_arguments = num_params + 2;
    ct_str text = {0};
    expect_ok(ct_graph_print(graph, &text));
    int num_calls;
    char *interpreted = mosaic_rewrite(text.data, &num_calls);
    assert_true(num_calls >= 2 + 3); /* layers are one scan */
    ct_executable *executable;
    expect_ok(
        ct_client_compile(s->session->client, interpreted, strlen(interpreted), &s->session->compile, &executable));
    free(interpreted);
    ct_str_deinit(&text);

    ct_train_state train;
    ct_train_state_init(&train, s->session, s->model, &s->parallel, CT_DTYPE_F32, CT_DTYPE_F32);
    expect_ok(ct_train_state_from_hf(&train, s->folder));
    ct_buffer **ids = ct_alloc_zeroed(num_devices * 2, sizeof(ct_buffer *));
    ct_buffer **arguments = ct_alloc_zeroed(num_devices * num_arguments, sizeof(ct_buffer *));
    put_ids(s, "tokens", ids, 2);
    put_ids(s, "labels0", ids + 1, 2);
    for (size_t d = 0; d < num_devices; d++) {
        memcpy(arguments + d * num_arguments, train.buffers + d * train.num_buffers, num_params * sizeof(*arguments));
        memcpy(arguments + d * num_arguments + num_params, ids + d * 2, 2 * sizeof(*arguments));
    }
    expect_ok(ct_executable_execute(executable, arguments, num_arguments, NULL, s->outputs));
    ct_buffers_free(ids, num_devices * 2);
    ct_executable_free(executable);
    ct_train_state_deinit(&train);
    free(arguments);
    free(ids);
}

static void score(ct_session *session, double worst[2])
{
    scored s = {.session = session, .folder = ct_asprintf(CT_TEST_GOLDEN "/%s", MODEL)};
    s.reference = ct_test_reference(MODEL);
    ct_array labels = reference_array(&s, "labels0");
    s.batch = labels.sizes[0];
    s.seq = labels.sizes[1];
    ct_array_free(&labels);
    const ct_model_family *family;
    ct_model_config config;
    expect_ok(ct_model_config_read(s.folder, &family, &config));
    expect_ok(ct_model_new(family, &config, true, &s.model));
    s.parallel = (ct_parallel){.table = ct_model_sharding(s.model),
                               .sequence_parallel = true,
                               .loss_parallel = true,
                               .rotate = CT_ROTATE_ALLGATHER,
                               .zero_stage = 3,
                               .prefetch = 1,
                               .reduce_dtype = CT_DTYPE_F32,
                               .replicate_below = 1};
    ct_mesh_opts mesh = {
        .degrees = {1, 2, 2, 2}, .num_devices = session->num_devices, .num_kv_heads = config.num_kv_heads};
    expect_ok(ct_mesh_init(&mesh, &s.parallel.mesh));
    ct_score_opts opts = {.batch = s.batch, .seq_len = s.seq, .gradients = true, .parallel = &s.parallel};
    opts.kernels = (ct_kernels){.attention = CT_KERNEL_MOSAIC, .loss = CT_KERNEL_MOSAIC, .platform = "tpu"};
    s.num_outputs = (size_t)s.model->num_params + 2;
    s.outputs = ct_alloc_zeroed((size_t)session->num_devices * s.num_outputs, sizeof(ct_buffer *));
    ct_graph *graph;
    expect_ok(ct_score_build(s.model, &opts, &graph));
    run(&s, graph);
    ct_graph_free(graph);

    compare(&s, 0, (ct_sharding){0}, 0, NULL, 1, NULL);
    for (int i = 0; i < s.model->num_params; i++) {
        const ct_model_param *param = &s.model->params[i];
        compare(&s, (size_t)i + 2, ct_parallel_gradient(&s.parallel, param->rank, param->dims), param->rank,
                param->dims, ct_model_param_layers(s.model, param), param);
    }
    for (int i = 0; i < 2; i++) worst[i] = CT_MAX(worst[i], s.worst[i]);
    ct_buffers_free(s.outputs, (size_t)session->num_devices * s.num_outputs);
    free(s.outputs);
    ct_model_free(s.model);
    ct_safetensors_close(s.reference);
    free(s.folder);
}

static void test_score(void **state)
{
    (void)state;
    double worst[2] = {0, 0};
    ct_session *session;
    ct_session_opts opts = {.plugin = {.path = getenv("CTITAN_PLUGIN_PATH")}, .num_devices = 8};
    expect_ok(ct_session_open(&opts, &session));
    expect_ok(mosaic_register(session->plugin));
    score(session, worst);
    ct_session_close(session);
    print_message("loss within %.1e, gradients within %.1e\n", worst[0], worst[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_score)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
