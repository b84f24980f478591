/* PyTorch's values of tests/golden: scores and gradients by `ctitan score`, five AdamW steps by `ctitan train`, with
 * layers scanned and unrolled and every way of recomputing. Tolerances are those of tests/golden/README.md.
 */
#include "support.h"

/* A file for score: the tokens, of which it takes the first batch, and that batch's labels, of which five are ignored.
 */
static char *score_input(const char *model, const ct_safetensors *reference)
{
    const ct_safetensors_tensor *tokens, *labels;
    ct_safetensors_entry entries[2] = {{.name = "tokens"}, {.name = "labels"}};
    expect_ok(ct_safetensors_find(reference, "tokens", &tokens));
    expect_ok(ct_safetensors_find(reference, "labels0", &labels));
    expect_ok(ct_safetensors_load(tokens, &entries[0].array));
    expect_ok(ct_safetensors_load(labels, &entries[1].array));
    char *path = ct_test_path("%s.tokens.safetensors", model);
    expect_ok(ct_safetensors_save(path, entries, 2));
    ct_array_free(&entries[0].array);
    ct_array_free(&entries[1].array);
    return path;
}

static void compare(const ct_safetensors *found, const char *name, const ct_safetensors *expected,
                    const char *expected_name, double tolerance, double *worst)
{
    ct_test_values a = ct_test_tensor(found, name), b = ct_test_tensor(expected, expected_name);
    ct_test_close(name, a, b, tolerance, worst);
    free(a.data);
    free(b.data);
}

static void check_score(const char *model, int num_parameters, const char *kernels, bool has_logits)
{
    ct_safetensors *reference = ct_test_reference(model), *scores;
    const char *output = ct_test_path("%s.scores.safetensors", model);
    ct_test_ok("score --model=" CT_TEST_GOLDEN "/%s --tokens=%s --output=%s --gradients %s %s", model,
               score_input(model, reference), output, has_logits ? "--logits" : "", kernels);
    expect_ok(ct_safetensors_open(output, &scores));
    double worst_forward = 0, worst_gradient = 0;
    if (has_logits) compare(scores, "logits", reference, "logits0", CT_TEST_FORWARD, &worst_forward);
    compare(scores, "loss", reference, "loss0", CT_TEST_FORWARD, &worst_forward);
    int num_gradients = 0;
    for (size_t i = 0; i < ct_safetensors_num_tensors(reference); i++) {
        const char *name = ct_safetensors_at(reference, i)->name;
        if (strncmp(name, "grad.", 5) != 0) continue;
        compare(scores, name, reference, name, CT_TEST_GRADIENTS, &worst_gradient);
        num_gradients++;
    }
    assert_int_equal(num_gradients, num_parameters);
    assert_int_equal(ct_safetensors_num_tensors(scores), num_gradients + 2 + has_logits);
    print_message("%s %s: logits and loss within %.1e, %d gradients within %.1e\n", model, kernels, worst_forward,
                  num_gradients, worst_gradient);
    ct_safetensors_close(reference);
    ct_safetensors_close(scores);
}

/* ---- training ---- */

/* Blocks that the sequence of 48 has three and two of. */
#define PORTABLE                                                                                                       \
    "--kernels.attention=portable --splash_attention_kernel.sa_block_q=16 --splash_attention_kernel.sa_block_kv=24 "   \
    "--splash_attention_kernel.sa_block_q_dkv=24 --splash_attention_kernel.sa_block_kv_dkv=16"

/* Two runs at a time: layers scanned and unrolled. */
static const char *const REMAT[] = {"",
                                    "--activation_checkpoint.mode=none",
                                    "--activation_checkpoint.mode=full",
                                    ("--activation_checkpoint.mode=full "
                                     "--activation_checkpoint.save=attention_out,attention_residual"),
                                    (PORTABLE " --activation_checkpoint.mode=none "
                                              "--kernels.loss=portable --loss_kernel.loss_b_block_size=20"),
                                    "--kernels.loss=portable --loss_kernel.loss_v_block_size=24",
                                    (PORTABLE " --activation_checkpoint.mode=full")};

static ct_test_run start_training(const char *model, const char *family, const char *dump_folder, bool scan,
                                  const char *remat)
{
    const char *recipe = ct_test_path("%s.toml", model);
    ct_test_write(recipe,
                  "[model]\nname = \"%s\"\nflavor = \"" CT_TEST_GOLDEN "/%s\"\n"
                  "[training]\nlocal_batch_size = 2\nseq_len = 48\nsteps = 5\ndataset = \"tokens\"\nshuffle = false\n"
                  "dataset_path = \"" CT_TEST_GOLDEN "/%s/reference.safetensors\"\n"
                  "mixed_precision_param = \"float32\"\n"
                  "[optimizer]\nlr = 1e-3\n"
                  "[lr_scheduler]\nwarmup_steps = 0\ndecay_ratio = 0.0\n"
                  "[checkpoint]\nenable = true\nlast_save_model_only = false\ninitial_load_path = \"" CT_TEST_GOLDEN
                  "/%s\"\n"
                  "initial_load_in_hf = true\n"
                  "[metrics]\nlog_freq = 1\n",
                  family, model, model, model);
    return ct_test_start("train %s --dump_folder=%s --model.scan_layers=%s %s", recipe, dump_folder,
                         scan ? "true" : "false", remat);
}

/* The first step, from which ct_test_compare_training knows what rounding explains: qwen3_tiny has an element whose
 * first gradient, -6e-9 after clipping, is below AdamW's eps. The order of sums, and so that gradient's last bits, is
 * the program's and, as XLA writes code for the processor that it finds, the machine's. */
static ct_checkpoint *first_step(const char *model, const char *family)
{
    const char *folder = ct_test_path("%s.first", model);
    ct_test_run run = start_training(model, family, folder, true, "--training.steps=1");
    ct_test_wait(&run);
    ct_test_expect(&run, 0, "");
    ct_test_run_free(&run);
    char *steps = ct_path_join(folder, "checkpoint");
    ct_checkpoint *checkpoint;
    expect_ok(ct_checkpoint_open(steps, 1, NULL, &checkpoint));
    free(steps);
    return checkpoint;
}

static void check_training(const char *model, const char *family, int num_parameters)
{
    ct_safetensors *reference = ct_test_reference(model);
    ct_checkpoint *first = first_step(model, family);
    double worst[2] = {0, 0};
    for (size_t i = 0; i < CT_COUNT(REMAT); i++) {
        const char *folders[2] = {ct_test_path("%s.%zu.scanned", model, i), ct_test_path("%s.%zu.unrolled", model, i)};
        ct_test_run runs[2];
        for (int j = 0; j < 2; j++) runs[j] = start_training(model, family, folders[j], j == 0, REMAT[i]);
        for (int j = 0; j < 2; j++) {
            ct_test_wait(&runs[j]);
            ct_test_expect(&runs[j], 0, "");
            ct_test_run_free(&runs[j]);
            assert_int_equal(ct_test_compare_training(folders[j], reference, first, worst), num_parameters);
        }
    }
    print_message("%s: %zu trainings, losses and norms within %.1e, parameters within %.1e\n", model,
                  2 * CT_COUNT(REMAT), worst[0], worst[1]);
    ct_checkpoint_close(first);
    ct_safetensors_close(reference);
}

/* 2 layers of 9 parameters, embedding, norm, head; Qwen3 has q and k norms in each layer, and no head as it is tied */
enum { NUM_LLAMA3 = 2 * 9 + 3, NUM_QWEN3 = 2 * 11 + 2 };

static void test_score_llama3(void **state)
{
    (void)state;
    check_score("llama3_tiny", NUM_LLAMA3, "--kernels.attention=definition", true);
    check_score("llama3_tiny", NUM_LLAMA3, "--kernels.attention=portable", true);
    check_score("llama3_tiny", NUM_LLAMA3, "--kernels.loss=portable", false);
}

static void test_score_qwen3(void **state)
{
    (void)state;
    check_score("qwen3_tiny", NUM_QWEN3, "--kernels.attention=definition", true);
    check_score("qwen3_tiny", NUM_QWEN3, "--kernels.attention=portable", true);
    check_score("qwen3_tiny", NUM_QWEN3, "--kernels.loss=portable", false);
}

static void test_training_llama3(void **state)
{
    (void)state;
    check_training("llama3_tiny", "llama3", NUM_LLAMA3);
}

static void test_training_qwen3(void **state)
{
    (void)state;
    check_training("qwen3_tiny", "qwen3", NUM_QWEN3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_score_llama3),
        cmocka_unit_test(test_score_qwen3),
        cmocka_unit_test(test_training_llama3),
        cmocka_unit_test(test_training_qwen3),
    };
    return cmocka_run_group_tests(tests, NULL, ct_test_world_free);
}
