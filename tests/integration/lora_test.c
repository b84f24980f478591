/* Low-rank adapters: their gradients against those of the merged weights' by `ctitan score`, on one device and on
 * meshes; what is frozen stays as it is and has no part in the state and none of its gradients in the program; runs
 * that go on; PEFT's files; adapters merged by a last save and by `ctitan convert`; mistakes.
 */
#include <math.h>

#include "formats/json.h"
#include "reference.h"
#include "support.h"

#define BASE   CT_TEST_GOLDEN "/qwen3_tiny" /* tied, 2 layers */
#define TOKENS BASE "/reference.safetensors"
#define PREFIX "base_model.model.model.layers."

enum { LAYERS = 2, RANK = 4, NUM_BASE = 1 + 11 * LAYERS + 1 };
static const double SCALE = 1.5; /* alpha 6 */

typedef struct module {
    const char *name;
    int64_t out, in;
} module;

static const module MODULES[] = {
    {"self_attn.q_proj", 64, 64}, {"self_attn.k_proj", 32, 64}, {"self_attn.v_proj", 32, 64},
    {"self_attn.o_proj", 64, 64}, {"mlp.gate_proj", 192, 64},   {"mlp.up_proj", 192, 64},
    {"mlp.down_proj", 64, 192},
};
enum { NUM_ADAPTERS = (int)CT_COUNT(MODULES) * LAYERS };

static const char *recipe(void)
{
    char *path = ct_test_path("recipe.toml");
    if (ct_path_exists(path)) return path;
    ct_test_write(path, "[model]\nname = \"qwen3\"\nflavor = \"" BASE "\"\n"
                        "[training]\nlocal_batch_size = 2\nseq_len = 48\nsteps = 5\ndataset = \"tokens\"\n"
                        "shuffle = false\ndataset_path = \"" TOKENS "\"\nmixed_precision_param = \"float32\"\n"
                        "[lora]\nrank = 4\nalpha = 6\n"
                        "[optimizer]\nlr = 1e-2\n"
                        "[lr_scheduler]\nwarmup_steps = 0\ndecay_ratio = 0.0\n"
                        "[checkpoint]\nenable = true\ninterval = 2\nlast_save_model_only = false\n"
                        "initial_load_path = \"" BASE "\"\ninitial_load_in_hf = true\n"
                        "[metrics]\nlog_freq = 1\n");
    return path;
}

/* ---- adapters of the test's own ---- */

static double element(bool is_b, uint32_t index)
{
    return ct_test_random(is_b ? 2 : 1, index) * (is_b ? 0.05 : 0.1);
}

/* Writes a folder of adapters in PEFT's layout; rank is what its configuration says. */
static const char *write_adapters(const char *folder, int rank)
{
    ct_safetensors_entry entries[2 * NUM_ADAPTERS];
    size_t count = 0;
    for (int layer = 0; layer < LAYERS; layer++)
        for (size_t m = 0; m < CT_COUNT(MODULES); m++)
            for (int b = 0; b < 2; b++) {
                int64_t sizes[2] = {b ? MODULES[m].out : RANK, b ? RANK : MODULES[m].in};
                ct_array array = ct_array_new(CT_DTYPE_F32, sizes, 2);
                for (int64_t i = 0; i < ct_array_num_elements(&array); i++)
                    ct_array_set(&array, i, element(b, (uint32_t)(i + 100000 * (layer * 10 + (int)m))));
                entries[count++] = (ct_safetensors_entry){
                    .name = ct_asprintf(PREFIX "%d.%s.lora_%c.weight", layer, MODULES[m].name, b ? 'B' : 'A'),
                    .array = array};
            }
    char *path = ct_path_join(folder, "adapter_model.safetensors"),
         *config = ct_path_join(folder, "adapter_config.json");
    ct_test_write(config,
                  "{\"peft_type\": \"LORA\", \"r\": %d, \"lora_alpha\": 6, \"bias\": \"none\", \"rank_pattern\": {}, "
                  "\"use_dora\": false, \"modules_to_save\": null, \"target_modules\": [\"down_proj\", \"up_proj\", "
                  "\"gate_proj\", \"o_proj\", \"v_proj\", \"k_proj\", \"q_proj\"]}\n",
                  rank);
    expect_ok(ct_safetensors_save(path, entries, count));
    for (size_t i = 0; i < count; i++) {
        free((char *)(uintptr_t)entries[i].name);
        ct_array_free(&entries[i].array);
    }
    free(path);
    free(config);
    return folder;
}

/* weight + scale B A, of files' tensors. */
static void merge(ct_test_values weight, const ct_safetensors *adapters, int layer, const module *m)
{
    char *name_a = ct_asprintf(PREFIX "%d.%s.lora_A.weight", layer, m->name);
    char *name_b = ct_asprintf(PREFIX "%d.%s.lora_B.weight", layer, m->name);
    ct_test_values a = ct_test_tensor(adapters, name_a), b = ct_test_tensor(adapters, name_b);
    assert_int_equal(weight.count, m->out * m->in);
    for (int64_t o = 0; o < m->out; o++)
        for (int64_t i = 0; i < m->in; i++)
            for (int64_t r = 0; r < RANK; r++)
                weight.data[o * m->in + i] += SCALE * b.data[o * RANK + r] * a.data[r * m->in + i];
    free(a.data);
    free(b.data);
    free(name_a);
    free(name_b);
}

static char *weight_name(int layer, const module *m)
{
    return ct_asprintf("model.layers.%d.%s.weight", layer, m->name);
}

/* The base with adapters merged, by this file's arithmetic, as a Hugging Face folder. */
static void write_merged(const char *folder, const char *adapter_folder)
{
    ct_safetensors *base, *adapters;
    char *path = ct_path_join(adapter_folder, "adapter_model.safetensors"),
         *text = ct_test_read(BASE "/config.json", NULL);
    expect_ok(ct_safetensors_dir_open(BASE, &base));
    expect_ok(ct_safetensors_open(path, &adapters));
    free(path);
    size_t count = ct_safetensors_num_tensors(base);
    assert_int_equal(count, NUM_BASE);
    ct_safetensors_entry *entries = ct_alloc_zeroed(count, sizeof(*entries));
    for (size_t i = 0; i < count; i++) {
        const ct_safetensors_tensor *tensor = ct_safetensors_at(base, i);
        ct_test_values values = ct_test_tensor(base, tensor->name);
        for (int layer = 0; layer < LAYERS; layer++)
            for (size_t m = 0; m < CT_COUNT(MODULES); m++) {
                char *name = weight_name(layer, &MODULES[m]);
                if (!strcmp(name, tensor->name)) merge(values, adapters, layer, &MODULES[m]);
                free(name);
            }
        entries[i] = (ct_safetensors_entry){.name = tensor->name,
                                            .array = ct_array_new(CT_DTYPE_F32, tensor->sizes, tensor->rank)};
        for (int64_t j = 0; j < values.count; j++) ct_array_set(&entries[i].array, j, values.data[j]);
        free(values.data);
    }
    char *model = ct_path_join(folder, "model.safetensors"), *config = ct_path_join(folder, "config.json");
    ct_test_write(config, "%s", text);
    expect_ok(ct_safetensors_save(model, entries, count));
    for (size_t i = 0; i < count; i++) ct_array_free(&entries[i].array);
    free(entries);
    free(model);
    free(config);
    free(text);
    ct_safetensors_close(adapters);
    ct_safetensors_close(base);
}

/* ---- gradients ---- */

/* Loss and gradients of a folder on the tokens of the first step. */
static ct_safetensors *score(const char *folder, const char *output)
{
    ct_test_ok("score --model=%s --tokens=" TOKENS " --output=%s --gradients", folder, output);
    ct_safetensors *file;
    expect_ok(ct_safetensors_open(output, &file));
    return file;
}

static double loss_of(const ct_safetensors *scores)
{
    ct_test_values loss = ct_test_tensor(scores, "loss");
    double value = loss.data[0];
    free(loss.data);
    return value;
}

/* What dW of the merged weight makes of the adapter's matrices: dA = s B^T dW, dB = s dW A^T. */
static ct_test_values expected_gradient(const ct_safetensors *scores, const ct_safetensors *adapters, int layer,
                                        const module *m, bool is_b)
{
    char *name = weight_name(layer, m), *gradient_name = ct_asprintf("grad.%s", name);
    char *other_name = ct_asprintf(PREFIX "%d.%s.lora_%c.weight", layer, m->name, is_b ? 'A' : 'B');
    ct_test_values dw = ct_test_tensor(scores, gradient_name), other = ct_test_tensor(adapters, other_name);
    ct_test_values result = {.count = (is_b ? m->out : m->in) * RANK};
    result.data = ct_alloc_zeroed((size_t)result.count, sizeof(double));
    for (int64_t o = 0; o < m->out; o++)
        for (int64_t i = 0; i < m->in; i++)
            for (int64_t r = 0; r < RANK; r++) {
                double d = SCALE * dw.data[o * m->in + i];
                if (is_b)
                    result.data[o * RANK + r] += d * other.data[r * m->in + i];
                else
                    result.data[r * m->in + i] += d * other.data[o * RANK + r];
            }
    free(dw.data);
    free(other.data);
    free(name);
    free(gradient_name);
    free(other_name);
    return result;
}

/* exp_avg after the first step is a tenth of the gradient, when nothing is clipped. */
static void compare_gradients(const char *what, const char *dump_folder, const ct_safetensors *scores,
                              const ct_safetensors *adapters, double *worst)
{
    char *steps = ct_path_join(dump_folder, "checkpoint");
    ct_checkpoint *checkpoint;
    expect_ok(ct_checkpoint_open(steps, 1, NULL, &checkpoint));
    double squares = 0;
    for (int layer = 0; layer < LAYERS; layer++)
        for (size_t m = 0; m < CT_COUNT(MODULES); m++)
            for (int b = 0; b < 2; b++) {
                char *name =
                    ct_asprintf("state." PREFIX "%d.%s.lora_%c.weight.exp_avg", layer, MODULES[m].name, b ? 'B' : 'A');
                ct_test_values found = ct_test_checkpoint_tensor(checkpoint, name);
                ct_test_values expected = expected_gradient(scores, adapters, layer, &MODULES[m], b);
                for (int64_t i = 0; i < found.count; i++) found.data[i] *= 10;
                for (int64_t i = 0; i < expected.count; i++) squares += expected.data[i] * expected.data[i];
                char *label = ct_asprintf("%s: %s", what, name);
                ct_test_close(label, found, expected, 1e-4, worst);
                free(label);
                free(name);
                free(found.data);
                free(expected.data);
            }
    size_t count;
    ct_test_step *step = ct_test_metrics(dump_folder, &count);
    assert_true(fabs(step[0].grad_norm / sqrt(squares) - 1) < 1e-5); /* of the adapters alone */
    assert_true(fabs(step[0].loss / loss_of(scores) - 1) < 1e-5);
    free(step);
    free(steps);
    ct_checkpoint_close(checkpoint);
}

static void test_gradients(void **state)
{
    (void)state;
    static const char *const variants[] = {
        "",
        "--model.scan_layers=false",
        "--activation_checkpoint.mode=full",
        "--activation_checkpoint.mode=none --model.scan_layers=false",
        "--training.local_batch_size=1 --training.global_batch_size=2",
        "--kernels.loss=portable --loss_kernel.loss_v_block_size=48",
        "--device.count=2 --parallelism.tensor_parallel_degree=2 --parallelism.fsdp_replicate_below=1",
        "--device.count=8 --parallelism.tensor_parallel_degree=2 --parallelism.context_parallel_degree=2 "
        "--training.local_batch_size=1 --parallelism.fsdp_replicate_below=1 --model.scan_layers=false",
        "--device.count=4 --parallelism.tensor_parallel_degree=4 --parallelism.no-enable_sequence_parallel",
        "--device.count=4 --parallelism.tensor_parallel_degree=2 --parallelism.partitioner=shardy "
        "--training.local_batch_size=1",
    };
    const char *adapter_folder = write_adapters(ct_test_path("mine"), RANK), *merged = ct_test_path("merged");
    write_merged(merged, adapter_folder);
    ct_safetensors *scores = score(merged, ct_test_path("merged.scores")), *adapters;
    expect_ok(ct_safetensors_open(ct_test_path("mine/adapter_model.safetensors"), &adapters));
    for (size_t i = 0; i < CT_COUNT(variants); i++) {
        const char *folder = ct_test_path("gradients.%zu", i);
        ct_test_ok("train %s --dump_folder=%s --training.steps=1 --training.max_norm=inf --lora.adapter_path=%s %s",
                   recipe(), folder, adapter_folder, variants[i]);
        double worst = 0;
        compare_gradients(variants[i], folder, scores, adapters, &worst);
        print_message("gradients are off by %.1e at most: %s\n", worst, variants[i]);
    }
    ct_safetensors_close(scores);
    ct_safetensors_close(adapters);
}

/* ---- a run ---- */

/* Five steps from new adapters, saved at 2 and 4 and, merged, at the end. */
static const char *run(void)
{
    const char *folder = ct_test_path("run");
    if (!ct_path_is_dir(folder))
        ct_test_ok("train %s --dump_folder=%s --checkpoint.last_save_in_hf --checkpoint.last_save_model_only", recipe(),
                   folder);
    return folder;
}

/* B is zero at first, so the model is the base. Then the loss falls. */
static void test_losses(void **state)
{
    (void)state;
    ct_safetensors *scores = score(BASE, ct_test_path("base.scores"));
    size_t count;
    ct_test_step *steps = ct_test_metrics(run(), &count);
    assert_int_equal(count, 5);
    assert_true(fabs(steps[0].loss / loss_of(scores) - 1) < 1e-6);
    ct_test_ok("train %s --dump_folder=%s --training.steps=30 --checkpoint.no-enable --dataloader.repeat", recipe(),
               ct_test_path("long"));
    ct_test_step *longer = ct_test_metrics(ct_test_path("long"), &count);
    for (int i = 0; i < 5; i++)
        assert_true(longer[i].loss == steps[i].loss && longer[i].grad_norm == steps[i].grad_norm);
    print_message("loss %.4f, after as many passes over the same five batches %.4f\n", longer[0].loss, longer[25].loss);
    assert_true(longer[25].loss < longer[0].loss - 0.05);
    free(longer);
    free(steps);
    ct_safetensors_close(scores);
}

/* Weights of a folder are the base's bits, or those with the adapters merged. */
static void compare_merged(const char *folder, const char *adapter_folder, double tolerance)
{
    ct_safetensors *base, *found, *adapters;
    char *path = ct_path_join(adapter_folder, "adapter_model.safetensors");
    expect_ok(ct_safetensors_dir_open(BASE, &base));
    expect_ok(ct_safetensors_dir_open(folder, &found));
    expect_ok(ct_safetensors_open(path, &adapters));
    free(path);
    assert_int_equal(ct_safetensors_num_tensors(found), NUM_BASE);
    int num_merged = 0;
    double worst = 0;
    for (size_t i = 0; i < NUM_BASE; i++) {
        const ct_safetensors_tensor *before = ct_safetensors_at(base, i), *after;
        expect_ok(ct_safetensors_find(found, before->name, &after));
        int num_here = num_merged;
        for (int layer = 0; layer < LAYERS; layer++)
            for (size_t m = 0; m < CT_COUNT(MODULES); m++) {
                char *name = weight_name(layer, &MODULES[m]);
                if (!strcmp(name, before->name)) {
                    ct_test_values expected = ct_test_tensor(base, name), values = ct_test_tensor(found, name);
                    assert_true(ct_test_error(values.data, expected.data, values.count) > 10 * tolerance);
                    merge(expected, adapters, layer, &MODULES[m]);
                    ct_test_close(name, values, expected, tolerance, &worst);
                    free(expected.data);
                    free(values.data);
                    num_merged++;
                }
                free(name);
            }
        if (num_merged != num_here) continue;
        assert_int_equal(after->size_bytes, before->size_bytes);
        assert_memory_equal(after->data, before->data, before->size_bytes);
    }
    assert_int_equal(num_merged, NUM_ADAPTERS);
    print_message("%s: merged weights are off by %.1e at most\n", folder, worst);
    ct_safetensors_close(base);
    ct_safetensors_close(found);
    ct_safetensors_close(adapters);
}

static void test_merged(void **state)
{
    (void)state;
    run();
    compare_merged(ct_test_path("run/checkpoint/step-5"), ct_test_path("run/checkpoint/step-5/adapter"), 2e-7);
    ct_test_ok("convert %s %s", ct_test_path("run/checkpoint/step-4"), ct_test_path("converted"));
    compare_merged(ct_test_path("converted"), ct_test_path("run/checkpoint/step-4/adapter"), 2e-7);
    assert_false(ct_test_folder_has(ct_test_path("converted"), "adapter"));

    /* the last step is a folder of merged weights already; a step of weights alone is merged from its base */
    ct_test_ok("convert %s %s", ct_test_path("run/checkpoint/step-5"), ct_test_path("converted.5"));
    compare_merged(ct_test_path("converted.5"), ct_test_path("run/checkpoint/step-5/adapter"), 2e-7);
    ct_test_ok("train %s --dump_folder=%s --checkpoint.last_save_model_only --checkpoint.export_dtype=bfloat16 "
               "--device.count=2 --training.local_batch_size=1 --parallelism.fsdp_replicate_below=1",
               recipe(), ct_test_path("bare"));
    ct_test_ok("convert %s %s --dtype=float32", ct_test_path("bare/checkpoint"), ct_test_path("converted.bare"));
    compare_merged(ct_test_path("converted.bare"), ct_test_path("bare/checkpoint/step-5/adapter"), 2e-7);

    /* new adapters on the same base, from those of a step: the same model at first */
    ct_test_ok("train %s --dump_folder=%s --lora.adapter_path=%s --training.steps=1 --checkpoint.no-enable", recipe(),
               ct_test_path("again"), ct_test_path("run/checkpoint/step-4/adapter"));
    ct_safetensors *scores = score(ct_test_path("converted"), ct_test_path("converted.scores"));
    size_t count;
    ct_test_step *steps = ct_test_metrics(ct_test_path("again"), &count);
    assert_true(fabs(steps[0].loss / loss_of(scores) - 1) < 1e-5);
    free(steps);
    ct_safetensors_close(scores);
}

/* A step holds adapters and their moments, in files as PEFT has them, and nothing else. */
static void test_files(void **state)
{
    (void)state;
    run();
    char *steps = ct_test_path("run/checkpoint");
    ct_checkpoint *checkpoint;
    expect_ok(ct_checkpoint_open(steps, 4, &(ct_checkpoint_open_opts){.verify = true}, &checkpoint));
    assert_int_equal(ct_checkpoint_num_tensors(checkpoint), 2 * NUM_ADAPTERS * 3);
    for (size_t i = 0; i < ct_checkpoint_num_tensors(checkpoint); i++)
        assert_non_null(strstr(ct_checkpoint_at(checkpoint, i)->name, ".lora_"));
    ct_safetensors *file;
    expect_ok(ct_safetensors_open(ct_test_path("run/checkpoint/step-4/adapter/adapter_model.safetensors"), &file));
    assert_int_equal(ct_safetensors_num_tensors(file), 2 * NUM_ADAPTERS);
    assert_string_equal(ct_safetensors_metadata(file, "format"), "pt");
    for (int layer = 0; layer < LAYERS; layer++)
        for (size_t m = 0; m < CT_COUNT(MODULES); m++)
            for (int b = 0; b < 2; b++) {
                const ct_safetensors_tensor *tensor;
                char *name = ct_asprintf(PREFIX "%d.%s.lora_%c.weight", layer, MODULES[m].name, b ? 'B' : 'A');
                int64_t sizes[2] = {b ? MODULES[m].out : RANK, b ? RANK : MODULES[m].in};
                expect_ok(ct_safetensors_find(file, name, &tensor));
                expect_ok(ct_safetensors_check_shape(tensor, sizes, 2));
                ct_test_values in_file = ct_test_tensor(file, name),
                               in_step = ct_test_checkpoint_tensor(checkpoint, name);
                ct_test_close(name, in_file, in_step, 0, NULL);
                free(in_file.data);
                free(in_step.data);
                free(name);
            }
    ct_safetensors_close(file);
    ct_checkpoint_close(checkpoint);

    ct_json *json;
    expect_ok(ct_json_read(ct_test_path("run/checkpoint/step-4/adapter/adapter_config.json"), &json));
    ct_json_value root = ct_json_root(json), targets;
    const char *type, *base, *task, *first;
    int64_t rank, alpha;
    expect_ok(ct_json_need_string(root, "peft_type", &type));
    expect_ok(ct_json_need_string(root, "task_type", &task));
    expect_ok(ct_json_need_string(root, "base_model_name_or_path", &base));
    expect_ok(ct_json_need_int(root, "r", &rank));
    expect_ok(ct_json_need_int(root, "lora_alpha", &alpha));
    expect_ok(ct_json_need_array(root, "target_modules", &targets));
    assert_string_equal(type, "LORA");
    assert_string_equal(task, "CAUSAL_LM");
    assert_string_equal(base, BASE);
    assert_true(rank == RANK && alpha == 6 && ct_json_size(targets) == CT_COUNT(MODULES));
    ct_json_iter iter = ct_json_iterate(targets);
    assert_true(ct_json_next(&iter));
    expect_ok(ct_json_as_string(iter.value, &first));
    assert_string_equal(first, "q_proj");
    ct_json_free(json);
    assert_true(ct_test_folder_has(ct_test_path("run/checkpoint/step-5"), "model.safetensors"));
    assert_true(ct_test_folder_has(ct_test_path("run/checkpoint/step-5/adapter"), "adapter_model.safetensors"));
}

/* New adapters: A uniform up to 1 / sqrt(in), B zero. A step with a learning rate of 0 leaves them. */
static void test_initial(void **state)
{
    (void)state;
    ct_test_ok("train %s --dump_folder=%s --optimizer.lr=0 --training.steps=1", recipe(), ct_test_path("initial"));
    ct_safetensors *file;
    expect_ok(ct_safetensors_open(ct_test_path("initial/checkpoint/step-1/adapter/adapter_model.safetensors"), &file));
    for (size_t i = 0; i < ct_safetensors_num_tensors(file); i++) {
        const ct_safetensors_tensor *tensor = ct_safetensors_at(file, i);
        ct_test_values values = ct_test_tensor(file, tensor->name);
        bool is_b = strstr(tensor->name, "lora_B") != NULL;
        double bound = is_b ? 0 : 1 / sqrt((double)tensor->sizes[1]), largest = 0, squares = 0;
        for (int64_t j = 0; j < values.count; j++) {
            largest = fmax(largest, fabs(values.data[j]));
            squares += values.data[j] * values.data[j];
        }
        assert_true(largest <= bound && largest >= 0.95 * bound);
        /* of a uniform distribution a third of the bound's square; five standard errors */
        double third = bound * bound / 3, n = (double)values.count;
        assert_true(fabs(squares / n - third) <= 5 * third * sqrt(0.8 / n));
        free(values.data);
    }
    ct_safetensors_close(file);
}

/* ---- going on ---- */

static void test_resume(void **state)
{
    (void)state;
    static const char *const modes[] = {"disabled", "async"};
    static const char *const meshes[] = {
        "", "--device.count=2 --training.local_batch_size=1 --parallelism.fsdp_replicate_below=1"};
    for (size_t i = 0; i < CT_COUNT(modes); i++) {
        const char *whole = ct_test_path("whole.%zu", i), *broken = ct_test_path("broken.%zu", i);
        const char *more = "--training.global_batch_size=2 --lr_scheduler.total_steps=5 --checkpoint.async_mode";
        ct_test_ok("train %s --dump_folder=%s %s=%s %s", recipe(), whole, more, modes[i], meshes[i]);
        for (int steps = 3; steps <= 5; steps += 2)
            ct_test_ok("train %s --dump_folder=%s --training.steps=%d %s=%s %s", recipe(), broken, steps, more,
                       modes[i], meshes[i]);
        char *a = ct_path_join(whole, "checkpoint"), *b = ct_path_join(broken, "checkpoint");
        ct_test_same_checkpoints(a, b, 5);
        free(a);
        free(b);
    }
    /* a step of two devices, gone on with on one */
    ct_test_ok("train %s --dump_folder=%s --training.steps=6 --dataloader.repeat", recipe(), ct_test_path("broken.1"));
    ct_test_fails(1, "its adapters have alpha 6, but lora.alpha = 8", "train %s --dump_folder=%s --lora.alpha=8",
                  recipe(), ct_test_path("broken.0"));
    ct_test_fails(1, "with adapters, but lora.rank is 0", "train %s --dump_folder=%s --lora.rank=0", recipe(),
                  ct_test_path("broken.0"));
    ct_test_fails(1, "adapters fit only the weights that they were trained on",
                  "train %s --dump_folder=%s --checkpoint.initial_load_path=%s", recipe(), ct_test_path("broken.0"),
                  ct_test_path("run/checkpoint/step-5"));
}

/* ---- the program ---- */

static char *program(const char *name, const char *more)
{
    const char *path = ct_test_path("%s.mlir", name);
    ct_test_ok("check %s --program=%s --model.scan_layers=false --activation_checkpoint.mode=none "
               "--training.local_batch_size=1 %s",
               recipe(), path, more);
    return ct_test_read(path, NULL);
}

/* Dots and scatters, or the dots whose result has the type. */
static int count_dots(const char *text, const char *type)
{
    int count = 0;
    for (const char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
        char *copy = ct_asprintf("%.*s", (int)(end - line), line), *arrow = strstr(copy, "-> ");
        bool is_dot = strstr(copy, "stablehlo.dot_general") || strstr(copy, "stablehlo.scatter");
        if (is_dot && arrow && (!type || !strncmp(arrow + 3, type, strlen(type)))) count++;
        free(copy);
    }
    return count;
}

/* No gradient of a frozen weight is in the program, and none of them, nor their moments, comes out of it. */
static void test_program(void **state)
{
    (void)state;
    static const char *const types[] = {"tensor<192x64xf32>",  "tensor<64x192xf32>",  "tensor<4x16x64xf32>",
                                        "tensor<64x4x16xf32>", "tensor<2x16x64xf32>", "tensor<64x2x16xf32>",
                                        "tensor<256x64xf32>"};
    char *full = program("full", "--lora.rank=0"), *lora = program("lora", "");
    int num_full = 0, num_lora = 0;
    for (size_t i = 0; i < CT_COUNT(types); i++) {
        num_full += count_dots(full, types[i]);
        num_lora += count_dots(lora, types[i]);
    }
    assert_int_equal(num_full, NUM_ADAPTERS + 1); /* of each matrix, and of the head; the table's is a scatter */
    assert_int_equal(num_lora, 0);
    /* of each: a product for the gradient less, two forward, two for the gradients of A and B, two for what is passed
     * on; but nothing is passed on to the embedding: below the first layer's q, k and v there is nothing to train */
    int saved = 3 * 2;
    assert_int_equal(count_dots(lora, NULL) - count_dots(full, NULL), NUM_ADAPTERS * 5 - 2 - saved);
    free(full);
    free(lora);

    ct_test_run run = ct_test_start("check %s --training.mixed_precision_param=bfloat16", recipe());
    ct_test_wait(&run);
    ct_test_expect(&run, 0, "");
    long long num_params = 0, num_trained = 0, bytes = 0;
    for (size_t m = 0; m < CT_COUNT(MODULES); m++) {
        num_params += LAYERS * MODULES[m].out * MODULES[m].in;
        num_trained += LAYERS * RANK * (MODULES[m].out + MODULES[m].in);
    }
    num_params += 256 * 64 + 64 + LAYERS * (2 * 64 + 2 * 16);
    const char *line = strstr(run.out, "\nstate ");
    assert_non_null(line);
    assert_int_equal(sscanf(line + strlen("\nstate "), "%lld", &bytes), 1);
    assert_int_equal(bytes, 2 * num_params + 12 * num_trained); /* frozen in bf16; a weight and two moments in f32 */
    ct_test_run_free(&run);
}

/* ---- meshes ---- */

static const char *mesh_recipe(void)
{
    char *path = ct_test_path("mesh.toml");
    if (ct_path_exists(path)) return path;
    ct_test_write(path, "[model]\nname = \"llama3\"\nflavor = \"" CT_TEST_GOLDEN "/llama3_mesh\"\n"
                        "[training]\nseq_len = 64\nsteps = 3\ndataset = \"tokens\"\nshuffle = false\n"
                        "dataset_path = \"" CT_TEST_GOLDEN "/llama3_mesh/reference.safetensors\"\n"
                        "mixed_precision_param = \"float32\"\n"
                        "[lora]\nrank = 6\nalpha = 12\n"
                        "[parallelism]\nfsdp_replicate_below = 1\n"
                        "[optimizer]\nlr = 1e-2\neps = 1e-4\n" /* AdamW's first steps do not blow up rounding */
                        "[lr_scheduler]\nwarmup_steps = 0\ndecay_ratio = 0.0\n"
                        "[checkpoint]\nenable = true\nlast_save_model_only = false\n"
                        "initial_load_path = \"" CT_TEST_GOLDEN "/llama3_mesh\"\ninitial_load_in_hf = true\n"
                        "[metrics]\nlog_freq = 1\n");
    return path;
}

/* Losses, norms and adapters of three steps are those of one device. */
static void test_meshes(void **state)
{
    (void)state;
    static const char *const meshes[] = {
        "--training.local_batch_size=16",
        "--device.count=4 --training.local_batch_size=4",
        "--device.count=4 --training.local_batch_size=4 --parallelism.zero_stage=1 --activation_checkpoint.mode=full "
        "--parallelism.fsdp_prefetch=0",
        "--device.count=8 --training.local_batch_size=8 --parallelism.tensor_parallel_degree=2 "
        "--parallelism.context_parallel_degree=2",
        "--device.count=8 --training.local_batch_size=16 --parallelism.tensor_parallel_degree=8", /* 4 kv heads */
        "--device.count=8 --training.local_batch_size=2 --training.global_batch_size=16 "
        "--parallelism.data_parallel_replicate_degree=2 --parallelism.tensor_parallel_degree=2 "
        "--parallelism.fsdp_reshard_after_forward=never --parallelism.no-reduce_each_microbatch",
    };
    ct_checkpoint *alone = NULL;
    ct_test_step *expected = NULL;
    double worst[2] = {0, 0};
    for (size_t i = 0; i < CT_COUNT(meshes); i++) {
        const char *folder = ct_test_path("mesh.%zu", i);
        ct_test_ok("train %s --dump_folder=%s %s", mesh_recipe(), folder, meshes[i]);
        char *steps = ct_path_join(folder, "checkpoint");
        ct_checkpoint *checkpoint;
        size_t count;
        expect_ok(ct_checkpoint_open(steps, 3, &(ct_checkpoint_open_opts){.verify = true}, &checkpoint));
        ct_test_step *found = ct_test_metrics(folder, &count);
        assert_int_equal(count, 3);
        if (!i) {
            alone = checkpoint;
            expected = found;
            assert_int_equal(ct_checkpoint_num_tensors(alone), 8 * 7 * 2 * 3);
            free(steps);
            continue;
        }
        for (int s = 0; s < 3; s++) {
            worst[0] = fmax(worst[0], fabs(found[s].loss / expected[s].loss - 1));
            worst[0] = fmax(worst[0], fabs(found[s].grad_norm / expected[s].grad_norm - 1));
        }
        assert_int_equal(ct_checkpoint_num_tensors(checkpoint), ct_checkpoint_num_tensors(alone));
        for (size_t t = 0; t < ct_checkpoint_num_tensors(alone); t++) {
            const char *name = ct_checkpoint_at(alone, t)->name;
            if (!strncmp(name, "state.", 6)) continue;
            ct_test_values a = ct_test_checkpoint_tensor(checkpoint, name), b = ct_test_checkpoint_tensor(alone, name);
            char *label = ct_asprintf("%s: %s", meshes[i], name);
            ct_test_close(label, a, b, CT_TEST_PARAMETERS, &worst[1]);
            free(label);
            free(a.data);
            free(b.data);
        }
        free(found);
        free(steps);
        ct_checkpoint_close(checkpoint);
    }
    print_message("on meshes losses and norms differ by %.1e, adapters by %.1e at most\n", worst[0], worst[1]);
    assert_true(worst[0] < 1e-5);
    ct_checkpoint_close(alone);
    free(expected);
}

/* ---- PEFT ---- */

static void compare_logits(const char *folder, const ct_safetensors *theirs, const char *name)
{
    const char *output = ct_test_path("%s.logits", name);
    ct_test_ok("score --model=%s --tokens=" TOKENS " --output=%s --logits", folder, output);
    ct_safetensors *ours;
    expect_ok(ct_safetensors_open(output, &ours));
    double worst = 0;
    ct_test_values found = ct_test_tensor(ours, "logits"), expected = ct_test_tensor(theirs, name);
    ct_test_close(name, found, expected, CT_TEST_FORWARD, &worst);
    print_message("%s: logits differ by %.2g\n", name, worst);
    free(found.data);
    free(expected.data);
    ct_safetensors_close(ours);
}

/* PEFT loads a step's adapters, and with them computes the logits of the merged folder; and a run starts from adapters
 * that PEFT saved. */
static void test_peft(void **state)
{
    (void)state;
    const char *python = getenv("CTITAN_TEST_PYTHON");
    if (!python) python = "python3";
    char *probe = ct_asprintf("%s -c 'import torch, transformers, peft, safetensors' 2>/dev/null", python);
    int missing = system(probe);
    free(probe);
    if (missing) {
        print_message("no torch, transformers and peft in %s (CTITAN_TEST_PYTHON names another)\n", python);
        skip();
    }
    run();
    const char *adapters = ct_test_path("run/checkpoint/step-4/adapter"), *output = ct_test_path("peft.safetensors");
    const char *made = ct_test_path("made"), *merged = ct_test_path("peft.merged"), *taken = ct_test_path("taken");
    char *command = ct_asprintf("%s " CT_SOURCE_DIR "/tests/integration/peft_logits.py " BASE " %s " TOKENS " %s %s",
                                python, adapters, made, output);
    assert_int_equal(system(command), 0);
    free(command);
    ct_safetensors *theirs;
    expect_ok(ct_safetensors_open(output, &theirs));
    ct_test_ok("convert %s %s", ct_test_path("run/checkpoint/step-4"), merged);
    compare_logits(merged, theirs, "logits");
    ct_test_ok("train %s --dump_folder=%s --lora.adapter_path=%s --optimizer.lr=0 --training.steps=1 "
               "--checkpoint.last_save_in_hf --checkpoint.last_save_model_only",
               recipe(), taken, made);
    compare_logits(ct_test_path("taken/checkpoint/step-1"), theirs, "made");
    ct_safetensors_close(theirs);
}

/* ---- mistakes ---- */

static void test_mistakes(void **state)
{
    (void)state;
    run();
    ct_test_fails(1,
                  "a target must be one of the qwen3 model's q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, "
                  "down_proj, found \"q_porj\"; did you mean \"q_proj\"?",
                  "check %s --lora.target_modules=v_proj,q_porj", recipe());
    ct_test_fails(1, "\"q_proj\" must be named once", "check %s --lora.target_modules=q_proj,q_proj", recipe());
    ct_test_fails(1, "the rank must be at most 32, the smaller side of k_proj [32, 64], found 33",
                  "check %s --lora.rank=33", recipe());
    ct_test_fails(1, "lora.alpha must be a number above 0, found 0", "check %s --lora.alpha=0", recipe());
    ct_test_fails(1, "it has adapters and not the weights that they adapt",
                  "train %s --dump_folder=%s --lora.rank=0 --checkpoint.no-initial_load_in_hf "
                  "--checkpoint.initial_load_path=%s",
                  recipe(), ct_test_path("wrong"), ct_test_path("run/checkpoint/step-4"));
    ct_test_fails(1, "its adapters are of rank 5, but lora.rank = 4; set it to that",
                  "train %s --dump_folder=%s --lora.adapter_path=%s", recipe(), ct_test_path("wrong"),
                  write_adapters(ct_test_path("fifth"), 5));
    ct_test_fails(1,
                  "its adapters are of q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj, but "
                  "lora.target_modules is q_proj, v_proj; set it to those",
                  "train %s --dump_folder=%s --lora.target_modules=v_proj,q_proj --lora.adapter_path=%s", recipe(),
                  ct_test_path("wrong"), ct_test_path("run/checkpoint/step-4/adapter"));
    ct_test_fails(1, "adapter_config.json", "train %s --dump_folder=%s --lora.adapter_path=%s", recipe(),
                  ct_test_path("wrong"), BASE);
    ct_test_fails(1, "has adapters to the weights that " BASE " had when they were trained", "convert %s %s --base=%s",
                  ct_test_path("run/checkpoint/step-4"), ct_test_path("wrong.folder"),
                  ct_test_path("run/checkpoint/step-5"));
    ct_test_fails(1, "say with --base=DIR where it is now", "convert %s %s --base=/nowhere",
                  ct_test_path("run/checkpoint/step-4"), ct_test_path("wrong.folder"));
    ct_test_fails(1, "--base is for a step of adapters", "convert %s %s --base=%s", BASE, ct_test_path("wrong.folder"),
                  BASE);
    /* from a seed: there is no file to merge with, but the run itself can */
    ct_test_ok("train %s --dump_folder=%s --checkpoint.initial_load_path=none --checkpoint.no-initial_load_in_hf "
               "--training.steps=1",
               recipe(), ct_test_path("seed"));
    ct_test_fails(1, "were made from seed 42 and are in no file", "convert %s %s", ct_test_path("seed/checkpoint"),
                  ct_test_path("wrong.folder"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients), cmocka_unit_test(test_losses),  cmocka_unit_test(test_merged),
        cmocka_unit_test(test_files),     cmocka_unit_test(test_initial), cmocka_unit_test(test_resume),
        cmocka_unit_test(test_program),   cmocka_unit_test(test_meshes),  cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_peft),
    };
    return cmocka_run_group_tests(tests, NULL, ct_test_world_free);
}
