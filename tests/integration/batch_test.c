/* One global batch, however it is cut: whole, over two devices, in microbatches, or both, gives the same losses, norms
 * and weights; labels that are ignored are spread unevenly over the parts. And bf16, in compute, moments and master
 * weights, learns.
 */
#include <math.h>

#include "reference.h"
#include "support.h"

enum { SEQ = 16, BATCH = 8, STEPS = 4, VOCAB = 90 };

static const char *recipe(void)
{
    char *path = ct_test_path("recipe.toml");
    if (ct_path_exists(path)) return path;
    ct_test_write(ct_test_path("model/config.json"),
                  "{\"model_type\": \"llama\", \"hidden_size\": 32, \"num_hidden_layers\": 2, "
                  "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"intermediate_size\": 48, "
                  "\"vocab_size\": %d, \"max_position_embeddings\": 64, \"rope_theta\": 10000}\n",
                  VOCAB);
    static int32_t tokens[STEPS * BATCH][SEQ + 1], labels[STEPS * BATCH][SEQ];
    for (int row = 0; row < STEPS * BATCH; row++)
        for (int p = 0; p <= SEQ; p++) {
            tokens[row][p] = (row * 31 + p * (3 + row % 5)) % VOCAB;
            /* the rows of one part keep all of their labels, those of another one in eight */
            if (p) labels[row][p - 1] = row % BATCH < 3 || p % 8 == 1 ? tokens[row][p] : -100;
        }
    ct_safetensors_entry entries[2] = {
        {"tokens", {.dtype = CT_DTYPE_S32, .rank = 2, .sizes = {STEPS * BATCH, SEQ + 1}, .data = tokens}},
        {"labels", {.dtype = CT_DTYPE_S32, .rank = 2, .sizes = {STEPS * BATCH, SEQ}, .data = labels}}};
    expect_ok(ct_safetensors_save(ct_test_path("tokens.safetensors"), entries, 2));
    ct_test_write(path,
                  "[model]\nname = \"llama3\"\nflavor = \"%s\"\n"
                  "[training]\nlocal_batch_size = %d\nseq_len = %d\nsteps = %d\ndataset = \"tokens\"\n"
                  "dataset_path = \"%s\"\nshuffle = false\nmixed_precision_param = \"float32\"\n"
                  "[optimizer]\nlr = 1e-2\neps = 1e-4\n[lr_scheduler]\nwarmup_steps = 0\ndecay_ratio = 0.0\n"
                  "[checkpoint]\nenable = true\nlast_save_model_only = false\n[metrics]\nlog_freq = 1\n",
                  ct_test_path("model"), BATCH, SEQ, STEPS, ct_test_path("tokens.safetensors"));
    return path;
}

/* Steps, and the checkpoint of the last one. */
static ct_test_step *train(const char *name, const char *overrides, int64_t num_steps, ct_checkpoint **out_checkpoint)
{
    const char *folder = ct_test_path("%s", name);
    ct_test_ok("train %s --dump_folder=%s --training.steps=%lld %s", recipe(), folder, (long long)num_steps, overrides);
    expect_ok(ct_checkpoint_open(ct_test_path("%s/checkpoint", name), num_steps, NULL, out_checkpoint));
    size_t count;
    ct_test_step *steps = ct_test_metrics(folder, &count);
    assert_int_equal(count, num_steps);
    return steps;
}

static void test_cuts(void **state)
{
    (void)state;
    static const struct {
        const char *name, *overrides;
    } cuts[] = {
        {"devices", "--device.count=2 --training.local_batch_size=4"},
        {"accumulated", "--training.local_batch_size=2 --training.global_batch_size=8"},
        {"both", "--device.count=2 --training.local_batch_size=2 --training.global_batch_size=8 "
                 "--model.scan_layers=false --activation_checkpoint.mode=full"},
    };
    ct_checkpoint *whole, *cut;
    ct_test_step *expected = train("whole", "", STEPS, &whole);
    for (size_t i = 0; i < CT_COUNT(cuts); i++) {
        ct_test_step *found = train(cuts[i].name, cuts[i].overrides, STEPS, &cut);
        double worst = 0, worst_parameter = 0;
        for (int s = 0; s < STEPS; s++) {
            worst = fmax(worst, fabs(found[s].loss / expected[s].loss - 1));
            worst = fmax(worst, fabs(found[s].grad_norm / expected[s].grad_norm - 1));
            assert_int_equal(found[s].n_tokens_seen, expected[s].n_tokens_seen);
        }
        if (!(worst <= 1e-5)) fail_msg("%s: losses or norms differ by %g", cuts[i].name, worst);
        assert_int_equal(ct_checkpoint_num_tensors(cut), ct_checkpoint_num_tensors(whole));
        for (size_t j = 0; j < ct_checkpoint_num_tensors(whole); j++) {
            const char *name = ct_checkpoint_at(whole, j)->name;
            if (!strncmp(name, "state.", 6)) continue;
            ct_test_values a = ct_test_checkpoint_tensor(cut, name), b = ct_test_checkpoint_tensor(whole, name);
            ct_test_close(name, a, b, 2e-4, &worst_parameter);
            free(a.data);
            free(b.data);
        }
        print_message("%s: losses and norms within %.1e, parameters within %.1e\n", cuts[i].name, worst,
                      worst_parameter);
        ct_checkpoint_close(cut);
        free(found);
    }
    ct_checkpoint_close(whole);
    free(expected);
}

/* bf16 has 8 bits: losses near those of f32, and falling as theirs do. */
static void test_bf16(void **state)
{
    (void)state;
    enum { LONG = 40 };
    static const struct {
        const char *name, *overrides;
        ct_dtype weights, moments;
    } kinds[] = {
        {"compute", "--training.mixed_precision_param=bfloat16", CT_DTYPE_F32, CT_DTYPE_F32},
        {"moments", "--optimizer.implementation=fused_opt_states_bf16", CT_DTYPE_F32, CT_DTYPE_BF16},
        {"all",
         "--training.mixed_precision_param=bfloat16 --optimizer.implementation=fused_opt_states_bf16 "
         "--training.dtype=bfloat16",
         CT_DTYPE_BF16, CT_DTYPE_BF16},
    };
    ct_checkpoint *checkpoint;
    ct_test_step *expected = train("f32", "", LONG, &checkpoint);
    ct_checkpoint_close(checkpoint);
    assert_true(expected[LONG - 1].loss < expected[0].loss - 1);
    for (size_t i = 0; i < CT_COUNT(kinds); i++) {
        ct_test_step *found = train(kinds[i].name, kinds[i].overrides, LONG, &checkpoint);
        double apart = 0, mean = 0;
        for (int s = 0; s < LONG; s++) {
            mean += (found[s].loss - expected[s].loss) / LONG;
            apart = fmax(apart, fabs(found[s].loss - expected[s].loss));
        }
        print_message("%s in bf16: losses differ from f32's by at most %.3f, %.4f on average; last %.3f and %.3f\n",
                      kinds[i].name, apart, mean, found[LONG - 1].loss, expected[LONG - 1].loss);
        assert_true(apart > 0); /* it is not f32 after all */
        assert_true(fabs(found[0].loss / expected[0].loss - 1) < 0.02);
        assert_true(found[LONG - 1].loss < expected[0].loss - 1 && fabs(mean) < 0.2);
        const char *name = "model.layers.1.mlp.up_proj.weight", *moment = "state.model.norm.weight.exp_avg_sq";
        assert_int_equal(ct_checkpoint_find(checkpoint, name)->dtype, kinds[i].weights);
        assert_int_equal(ct_checkpoint_find(checkpoint, moment)->dtype, kinds[i].moments);
        ct_checkpoint_close(checkpoint);
        free(found);
    }
    free(expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cuts), cmocka_unit_test(test_bf16)};
    return cmocka_run_group_tests(tests, NULL, ct_test_world_free);
}
