/* The models of tests/golden for meshes on up to eight virtual devices, against PyTorch's values: five AdamW steps by
 * `ctitan train`, gradients of a scoring program. Every kind of parallelism alone and together, localized and through
 * XLA's partitioner; runs that go on on another mesh; degrees that do not fit.
 */
#include "support.h"

#include "train/state.h"
#include "train/step.h"

typedef struct mesh_case {
    const char *name;
    int replicate, shard, cp, tp;
    const char *extra; /* more overrides */
    bool shardy;       /* through XLA's partitioner as well */
} mesh_case;

#define NO_SP "--parallelism.no-enable_sequence_parallel"
#define LOSS  "--kernels.loss=portable --loss_kernel.loss_v_block_size=24"
#define ROWS  "--kernels.loss=portable --loss_kernel.loss_b_block_size=24"
#define RING  "--parallelism.context_parallel_rotate_method=ring"
#define FULL  "--activation_checkpoint.mode=full"
#define NONE  "--activation_checkpoint.mode=none"
#define HOST  "--activation_checkpoint.offload=block_in,attention_out --optimizer.offload_state"
/* fsdp has two mesh axes where cp is more than 1 */
#define FORM(form) "--parallelism.fsdp_gather_form=" form " --parallelism.fsdp_reduce_form=" form
#define MICRO      "--training.global_batch_size=16"
#define ONCE       "--parallelism.no-reduce_each_microbatch"
#define ALWAYS     "--parallelism.fsdp_reshard_after_forward=always"
#define NEVER      "--parallelism.fsdp_reshard_after_forward=never"

static const mesh_case CASES[] = {
    {"dp2", 1, 2, 1, 1, "", true},
    {"dp4 offloaded", 1, 4, 1, 1, FULL " " HOST, false},
    {"dp8", 1, 8, 1, 1, NONE, false},
    {"ddp4", 4, 1, 1, 1, "", false},
    {"hsdp2x2", 2, 2, 1, 1, NEVER, false},
    {"hsdp2x4", 2, 4, 1, 1, FULL " " ALWAYS, true},
    {"zero1", 1, 4, 1, 1, "--parallelism.zero_stage=1", false},
    {"zero2", 1, 4, 1, 1, "--parallelism.zero_stage=2 --parallelism.fsdp_prefetch=0", false},
    {"tp2", 1, 1, 1, 2, "", true},
    {"tp2 whole sequence", 1, 1, 1, 2, NO_SP, true},
    {"tp4", 1, 1, 1, 4, "", false},
    {"tp4 whole sequence", 1, 1, 1, 4, NO_SP " " NONE, false},
    {"tp8", 1, 1, 1, 8, "", true}, /* 4 kv heads */
    {"tp8 whole sequence", 1, 1, 1, 8, NO_SP, false},
    {"tp2 whole logits", 1, 1, 1, 2, "--parallelism.disable_loss_parallel", false},
    {"dp2 tp2 cp2 portable loss", 1, 2, 2, 2, LOSS, false},
    {"dp2 cp2 loss by rows, reduced once", 1, 2, 2, 1, ROWS " " MICRO " " ONCE, false},
    {"cp2", 1, 1, 2, 1, "", true},
    {"cp2 ring", 1, 1, 2, 1, RING " " FULL, true},
    {"cp4", 1, 1, 4, 1, NONE, false},
    {"cp4 ring", 1, 1, 4, 1, RING, false},
    {"dp2 tp2 cp2 in parts", 1, 2, 2, 2, FORM("parts"), true},
    {"dp2 tp2 cp2 ring, joint", 1, 2, 2, 2, RING " " FORM("joint"), false},
    {"hsdp2x2 tp2", 2, 2, 1, 2, FULL, true},
    {"dp4 tp2", 1, 4, 1, 2, "", false},
    {"dp2 tp4 whole sequence, portable loss", 1, 2, 1, 4, NO_SP " " LOSS, false},
    {"dp2 tp2 unrolled", 1, 2, 1, 2, "--model.scan_layers=false", false},
    {"dp2 tp2 microbatches", 1, 2, 1, 2, MICRO, true},
    {"dp4 reduced once", 1, 4, 1, 1, MICRO " " ONCE, false},
    {"dp2 norms whole", 1, 2, 1, 1, "--parallelism.fsdp_replicate_below=1024", false},
};

static const char *const MODELS[2] = {"llama3_mesh", "qwen3_mesh"};
enum { NUM_PARAMETERS_LLAMA3 = 8 * 9 + 3, NUM_PARAMETERS_QWEN3 = 8 * 11 + 2 };

static const char *recipe_of(const char *model)
{
    const char *recipe = ct_test_path("%s.toml", model);
    ct_test_write(recipe,
                  "[model]\nname = \"%.*s\"\nflavor = \"" CT_TEST_GOLDEN "/%s\"\n"
                  "[training]\nseq_len = 64\nsteps = 5\ndataset = \"tokens\"\nshuffle = false\n"
                  "dataset_path = \"" CT_TEST_GOLDEN "/%s/reference.safetensors\"\n"
                  "mixed_precision_param = \"float32\"\n"
                  "[parallelism]\nfsdp_replicate_below = 1\n"
                  "[optimizer]\nlr = 1e-3\n"
                  "[lr_scheduler]\nwarmup_steps = 0\ndecay_ratio = 0.0\n"
                  "[checkpoint]\nenable = true\nlast_save_model_only = false\ninitial_load_path = \"" CT_TEST_GOLDEN
                  "/%s\"\n"
                  "initial_load_in_hf = true\n"
                  "[metrics]\nlog_freq = 1\n",
                  (int)strcspn(model, "_"), model, model, model, model);
    return recipe;
}

static ct_test_run start(const char *model, const mesh_case *c, const char *dump_folder, const char *more)
{
    int ranks = c->replicate * c->shard, num_microbatches = strstr(c->extra, MICRO) ? 2 : 1;
    return ct_test_start("train %s --dump_folder=%s --device.count=%d --training.local_batch_size=%d "
                         "--parallelism.data_parallel_replicate_degree=%d --parallelism.data_parallel_shard_degree=%d "
                         "--parallelism.context_parallel_degree=%d --parallelism.tensor_parallel_degree=%d %s %s",
                         recipe_of(model), dump_folder, ranks * c->cp * c->tp, 16 / ranks / num_microbatches,
                         c->replicate, c->shard, c->cp, c->tp, c->extra, more);
}

/* The first step of a model on one device. */
static ct_checkpoint *first_step(const char *model)
{
    static const mesh_case alone = {"alone", 1, 1, 1, 1, "", false};
    const char *folder = ct_test_path("%s.first", model);
    if (!ct_path_is_dir(folder)) {
        ct_test_run run = start(model, &alone, folder, "--training.steps=1");
        ct_test_wait(&run);
        ct_test_expect(&run, 0, "");
        ct_test_run_free(&run);
    }
    char *steps = ct_path_join(folder, "checkpoint");
    ct_checkpoint *checkpoint;
    expect_ok(ct_checkpoint_open(steps, 1, NULL, &checkpoint));
    free(steps);
    return checkpoint;
}

/* Both models at a time. */
static void train_both(const mesh_case *c, const char *more, ct_safetensors *const *references, double worst[2])
{
    static int number;
    ct_test_run runs[2];
    const char *folders[2];
    number++;
    for (int i = 0; i < 2; i++) {
        folders[i] = ct_test_path("%s.%d", MODELS[i], number);
        runs[i] = start(MODELS[i], c, folders[i], more);
    }
    double seconds = 0;
    for (int i = 0; i < 2; i++) {
        ct_test_wait(&runs[i]);
        ct_test_expect(&runs[i], 0, "");
        seconds = runs[i].seconds;
        ct_test_run_free(&runs[i]);
        double here[2] = {0, 0};
        ct_checkpoint *first = first_step(MODELS[i]);
        int count = ct_test_compare_training(folders[i], references[i], first, here);
        ct_checkpoint_close(first);
        assert_int_equal(count, i ? NUM_PARAMETERS_QWEN3 : NUM_PARAMETERS_LLAMA3);
        for (int j = 0; j < 2; j++) worst[j] = here[j] > worst[j] ? here[j] : worst[j];
        expect_ok(ct_dir_remove(folders[i]));
    }
    print_message("%-24s %s %.1f s\n", c->name, more[0] ? "shardy" : "      ", seconds);
}

static void test_training(void **state)
{
    (void)state;
    ct_safetensors *references[2] = {ct_test_reference(MODELS[0]), ct_test_reference(MODELS[1])};
    double worst[2] = {0, 0}, worst_shardy[2] = {0, 0};
    const char *only = getenv("CTITAN_TEST_CASE");
    for (size_t i = 0; i < CT_COUNT(CASES); i++) {
        if (only && !strstr(CASES[i].name, only)) continue;
        train_both(&CASES[i], "", references, worst);
        if (CASES[i].shardy) train_both(&CASES[i], "--parallelism.partitioner=shardy", references, worst_shardy);
    }
    print_message("losses and norms within %.1e, parameters within %.1e; through Shardy %.1e, %.1e\n", worst[0],
                  worst[1], worst_shardy[0], worst_shardy[1]);
    for (int i = 0; i < 2; i++) ct_safetensors_close(references[i]);
}

/* ---- gradients ---- */

static ct_session *open_session(int num_devices)
{
    ct_session *session;
    ct_session_opts opts = {.plugin = {.path = getenv("CTITAN_PLUGIN_PATH")}, .num_devices = num_devices};
    expect_ok(ct_session_open(&opts, &session));
    return session;
}

static ct_model *open_model(const char *name)
{
    char *folder = ct_asprintf(CT_TEST_GOLDEN "/%s", name);
    const ct_model_family *family;
    ct_model_config config;
    ct_model *model;
    expect_ok(ct_model_config_read(folder, &family, &config));
    expect_ok(ct_model_new(family, &config, true, &model));
    free(folder);
    return model;
}

/* Puts a batch input, s32 [16 64]. */
static void put_ids(const ct_session *session, const ct_parallel *parallel, const int32_t *ids, ct_buffer **out_buffers,
                    size_t stride)
{
    const ct_axis axes[2] = {{"batch", 16}, {"seq", 64}};
    ct_array array = {.dtype = CT_DTYPE_S32, .rank = 2, .sizes = {16, 64}, .data = (void *)(uintptr_t)ids};
    ct_layout layout = {.mesh = &parallel->mesh, .dtype = CT_DTYPE_S32, .rank = 2, .sizes = {16, 64}};
    layout.sharding = ct_parallel_activation(parallel, 2, axes);
    expect_ok(ct_session_share(session, &array, &layout, out_buffers, stride));
}

/* An output against the reference's tensors that follow each other in it. */
static void compare_part(const float *found, const ct_safetensors *reference, const char *name, int64_t count,
                         double tolerance, double *worst)
{
    ct_test_values expected = ct_test_tensor(reference, name), values = {.count = count};
    values.data = ct_alloc((size_t)count * sizeof(double));
    for (int64_t i = 0; i < count; i++) values.data[i] = (double)found[i];
    ct_test_close(name, values, expected, tolerance, worst);
    free(values.data);
    free(expected.data);
}

typedef struct score_run {
    ct_session *session;
    const ct_model *model;
    const ct_parallel *parallel;
    const ct_safetensors *reference;
    size_t num_arguments, num_outputs;
    ct_buffer **arguments, **outputs;
} score_run;

static ct_array fetch(const score_run *run, size_t output, ct_sharding sharding, int rank, const ct_axis *axes)
{
    ct_layout layout = {.mesh = &run->parallel->mesh, .sharding = sharding, .dtype = CT_DTYPE_F32, .rank = rank};
    for (int i = 0; i < rank; i++) layout.sizes[i] = axes[i].size;
    ct_array array;
    expect_ok(ct_session_fetch(run->session, &layout, run->outputs + output, run->num_outputs, &array));
    return array;
}

static void compare_score(const score_run *run, double *worst_forward, double *worst_gradient)
{
    const ct_model *model = run->model;
    const ct_axis logit_axes[3] = {{"batch", 16}, {"seq", 64}, {"vocab", model->config.vocab_size}};
    ct_array array = fetch(run, 0, (ct_sharding){0}, 0, NULL);
    compare_part(array.data, run->reference, "loss0", 1, CT_TEST_FORWARD, worst_forward);
    ct_array_free(&array);
    array = fetch(run, 2, ct_parallel_activation(run->parallel, 3, logit_axes), 3, logit_axes);
    compare_part(array.data, run->reference, "logits0", ct_array_num_elements(&array), CT_TEST_FORWARD, worst_forward);
    ct_array_free(&array);
    for (int i = 0; i < model->num_params; i++) {
        const ct_model_param *param = &model->params[i];
        ct_sharding sharding = ct_parallel_gradient(run->parallel, param->rank, param->dims);
        array = fetch(run, (size_t)i + 3, sharding, param->rank, param->dims);
        int64_t layers = ct_model_param_layers(model, param), count = param->num_elements / layers;
        for (int64_t layer = 0; layer < layers; layer++) {
            char buffer[256], *name = ct_asprintf("grad.%s", ct_model_hf_name(param, layer, buffer));
            compare_part((const float *)array.data + layer * count, run->reference, name, count, CT_TEST_GRADIENTS,
                         worst_gradient);
            free(name);
        }
        ct_array_free(&array);
    }
}

static void score(ct_session *session, const char *name, const ct_parallel *parallel, double *worst_forward,
                  double *worst_gradient)
{
    ct_model *model = open_model(name);
    ct_safetensors *reference = ct_test_reference(name);
    size_t num_devices = (size_t)session->num_devices, num_params = (size_t)model->num_params;
    score_run run = {.session = session,
                     .model = model,
                     .parallel = parallel,
                     .reference = reference,
                     .num_arguments = num_params + 2,
                     .num_outputs = num_params + 3};
    ct_train_state train;
    ct_train_state_init(&train, session, model, parallel, CT_DTYPE_F32, CT_DTYPE_F32);
    char *folder = ct_asprintf(CT_TEST_GOLDEN "/%s", name);
    expect_ok(ct_train_state_from_hf(&train, folder));
    free(folder);
    run.arguments = ct_alloc_zeroed(num_devices * run.num_arguments, sizeof(ct_buffer *));
    run.outputs = ct_alloc_zeroed(num_devices * run.num_outputs, sizeof(ct_buffer *));
    ct_buffer **ids = ct_alloc_zeroed(num_devices * 2, sizeof(ct_buffer *));
    const ct_safetensors_tensor *tokens, *labels;
    expect_ok(ct_safetensors_find(reference, "tokens", &tokens));
    expect_ok(ct_safetensors_find(reference, "labels0", &labels));
    ct_array all_tokens, all_labels;
    expect_ok(ct_safetensors_load(tokens, &all_tokens));
    expect_ok(ct_safetensors_load(labels, &all_labels));
    int32_t inputs[16 * 64];
    for (int row = 0; row < 16; row++)
        memcpy(inputs + (ptrdiff_t)row * 64, (const int32_t *)all_tokens.data + (ptrdiff_t)row * 65,
               64 * sizeof(*inputs));
    put_ids(session, parallel, inputs, ids, 2);
    put_ids(session, parallel, all_labels.data, ids + 1, 2);
    for (size_t d = 0; d < num_devices; d++) {
        ct_buffer **row = run.arguments + d * run.num_arguments;
        memcpy(row, train.buffers + d * train.num_buffers, num_params * sizeof(*row));
        memcpy(row + num_params, ids + d * 2, 2 * sizeof(*row));
    }
    ct_score_opts opts = {.batch = 16, .seq_len = 64, .logits = true, .gradients = true, .parallel = parallel};
    ct_graph *graph;
    ct_executable *executable;
    expect_ok(ct_score_build(model, &opts, &graph));
    expect_ok(ct_session_compile(session, graph, NULL, &executable));
    expect_ok(ct_executable_execute(executable, run.arguments, run.num_arguments, NULL, run.outputs));
    compare_score(&run, worst_forward, worst_gradient);

    ct_buffers_free(run.outputs, num_devices * run.num_outputs);
    ct_buffers_free(ids, num_devices * 2);
    ct_executable_free(executable);
    ct_graph_free(graph);
    ct_array_free(&all_tokens);
    ct_array_free(&all_labels);
    ct_train_state_deinit(&train);
    free(run.arguments);
    free(run.outputs);
    free(ids);
    ct_safetensors_close(reference);
    ct_model_free(model);
}

static void test_gradients(void **state)
{
    (void)state;
    /* what CASES has, without what does not touch a forward and backward pass, and both models by turns */
    static const mesh_case cases[] = {
        {"dp8", 1, 8, 1, 1, "", false},        {"hsdp2x2", 2, 2, 1, 1, "", false},
        {"tp4", 1, 1, 1, 4, "", false},        {"tp4", 1, 1, 1, 4, NO_SP, false},
        {"tp8", 1, 1, 1, 8, "", false},        {"cp4", 1, 1, 4, 1, "", false},
        {"cp4 ring", 1, 1, 4, 1, RING, false}, {"dp2 tp2 cp2", 1, 2, 2, 2, RING, false},
        {"hsdp2x2 tp2", 2, 2, 1, 2, "", true}, {"dp2 cp2 tp2", 1, 2, 2, 2, "", true},
    };
    double worst_forward = 0, worst_gradient = 0;
    for (int num_devices = 4; num_devices <= 8; num_devices += 4) {
        ct_session *session = open_session(num_devices);
        for (size_t i = 0; i < CT_COUNT(cases); i++) {
            const mesh_case *c = &cases[i];
            if (c->replicate * c->shard * c->cp * c->tp != num_devices) continue;
            for (int j = 0; j < 2; j++) {
                ct_model *model = open_model(MODELS[j]);
                ct_parallel parallel = {.table = ct_model_sharding(model),
                                        .sequence_parallel = !strstr(c->extra, NO_SP),
                                        .loss_parallel = true,
                                        .rotate = strstr(c->extra, RING) ? CT_ROTATE_RING : CT_ROTATE_ALLGATHER,
                                        .zero_stage = 3,
                                        .prefetch = 1,
                                        .reduce_dtype = CT_DTYPE_F32,
                                        .partition = c->shardy ? CT_PARTITION_SHARDY : CT_PARTITION_MANUAL,
                                        .replicate_below = 1};
                ct_mesh_opts mesh = {.degrees = {c->replicate, c->shard, c->cp, c->tp},
                                     .num_devices = num_devices,
                                     .num_kv_heads = model->config.num_kv_heads};
                expect_ok(ct_mesh_init(&mesh, &parallel.mesh));
                ct_model_free(model);
                score(session, MODELS[j], &parallel, &worst_forward, &worst_gradient);
            }
        }
        ct_session_close(session);
    }
    print_message("logits and losses within %.1e, gradients within %.1e\n", worst_forward, worst_gradient);
}

/* ---- from mesh to mesh ---- */

static void test_other_meshes(void **state)
{
    (void)state;
    static const mesh_case saved = {"dp4 tp2", 1, 4, 1, 2, "--training.steps=2", false};
    static const mesh_case resumed[] = {
        {"hsdp2x2 tp2", 2, 2, 1, 2, "--training.steps=3", false},
        {"cp2 tp4", 1, 1, 2, 4, "--training.steps=4", false},
        {"alone", 1, 1, 1, 1, "--training.steps=5", false},
    };
    for (int i = 0; i < 2; i++) {
        ct_safetensors *reference = ct_test_reference(MODELS[i]);
        const char *folder = ct_test_path("%s.resumed", MODELS[i]);
        ct_test_run run = start(MODELS[i], &saved, folder, "");
        ct_test_wait(&run);
        ct_test_expect(&run, 0, "");
        ct_test_run_free(&run);
        char *steps = ct_path_join(folder, "checkpoint");
        ct_checkpoint *checkpoint;
        expect_ok(ct_checkpoint_open(steps, 2, NULL, &checkpoint));
        const ct_checkpoint_tensor *tensor = ct_checkpoint_find(checkpoint, "model.layers.0.mlp.down_proj.weight");
        assert_int_equal(tensor->num_shards, 8); /* each device wrote its part */
        assert_int_equal(tensor->shards[1].sizes[0], 16);
        assert_int_equal(tensor->shards[1].sizes[1], 48);
        ct_checkpoint_close(checkpoint);
        free(steps);
        for (size_t j = 0; j < CT_COUNT(resumed); j++) {
            run = start(MODELS[i], &resumed[j], folder, "");
            ct_test_wait(&run);
            ct_test_expect(&run, 0, "");
            ct_test_run_free(&run);
        }
        double worst[2] = {0, 0};
        ct_checkpoint *first = first_step(MODELS[i]);
        ct_test_compare_training(folder, reference, first, worst);
        ct_checkpoint_close(first);
        print_message("%s over four meshes: losses and norms within %.1e, parameters within %.1e\n", MODELS[i],
                      worst[0], worst[1]);
        ct_safetensors_close(reference);
    }
}

/* ---- what does not fit ---- */

static void test_mistakes(void **state)
{
    (void)state;
    static const struct {
        const char *arguments, *text;
    } mistakes[] = {
        {"--device.count=8 --parallelism.tensor_parallel_degree=3", "tensor_parallel_degree 3 (-1: what is left) does "
                                                                    "not divide 8"},
        {"--device.count=8 --parallelism.data_parallel_shard_degree=2 --parallelism.tensor_parallel_degree=2",
         "data_parallel_shard_degree 2 x context_parallel_degree 1 x tensor_parallel_degree 2 must be 8"},
        {"--device.count=16 --parallelism.tensor_parallel_degree=16",
         "parallelism.tensor_parallel_degree = 16 must divide the model's heads = 8"},
        {"--device.count=4 --training.local_batch_size=3 --training.global_batch_size=16",
         "training.local_batch_size x data parallel ranks = 3 x 4, found 16"},
        {"--device.count=4 --parallelism.context_parallel_degree=4 --training.seq_len=60",
         "training.seq_len must be a multiple of 8, found 60"},
        {"--device.count=8 --parallelism.tensor_parallel_degree=8 --training.seq_len=60",
         "training.seq_len must be a multiple of 8, found 60"},
        {"--device.count=2 --parallelism.context_parallel_rotate_method=rings", "found \"rings\"; did you mean"},
        {"--parallelism.zero_stage=4", "parallelism.zero_stage must be a whole number from 1 to 3, found 4"},
    };
    for (size_t i = 0; i < CT_COUNT(mistakes); i++)
        ct_test_fails(1, mistakes[i].text, "train %s --dump_folder=%s %s", recipe_of(MODELS[0]),
                      ct_test_path("mistakes"), mistakes[i].arguments);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_other_meshes),
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_training),
    };
    return cmocka_run_group_tests(tests, NULL, ct_test_world_free);
}
