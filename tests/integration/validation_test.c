/* [validation]: the loss over data that is not trained on is that of the forward pass, averaged over its tokens however
 * they are batched and spread, and a run ends with the bits that it has without it.
 */
#include <math.h>

#include "support.h"

static const char *recipe(void)
{
    char *path = ct_test_path("recipe.toml");
    if (ct_path_exists(path)) return path;
    ct_test_documents();
    ct_test_write(path,
                  "[model]\nname = \"llama3\"\nflavor = \"%s\"\n"
                  "[training]\nlocal_batch_size = %d\nseq_len = 64\nsteps = 5\ndataset_path = \"%s\"\n"
                  "document_mask = true\nmixed_precision_param = \"float32\"\n"
                  "[dataloader]\nshuffle = true\npacking = \"none\"\n"
                  "[optimizer]\nlr = 1e-2\n[lr_scheduler]\nwarmup_steps = 0\ndecay_ratio = 0.0\n"
                  "[metrics]\nlog_freq = 1\n"
                  "[checkpoint]\nenable = true\ninterval = 2\nlast_save_model_only = false\n"
                  "[validation]\nenable = true\nfreq = 2\ndataset_path = \"%s\"\n",
                  ct_test_path("model"), CT_TEST_NUM_DOCUMENTS, ct_test_path("documents.jsonl"),
                  ct_test_path("documents.jsonl"));
    return path;
}

/* The loss of the weights that a run of lr 0 starts and ends with. */
static double validated(const char *name, const char *overrides, double *out_training_loss)
{
    const char *folder = ct_test_path("%s", name);
    ct_test_ok("train %s --dump_folder=%s --optimizer.lr=0 --training.steps=1 --checkpoint.no-enable %s", recipe(),
               folder, overrides);
    size_t count;
    ct_test_step *steps = ct_test_metrics(folder, &count);
    if (out_training_loss) *out_training_loss = steps[0].loss;
    free(steps);
    steps = ct_test_validations(folder, &count);
    double loss = steps[0].loss;
    assert_true(count == 1 && steps[0].step == 1);
    free(steps);
    return loss;
}

static void test_average(void **state)
{
    (void)state;
    static const struct {
        const char *name, *overrides;
    } ways[] = {
        {"short_last", "--validation.local_batch_size=5 --validation.steps=9"},
        {"packed", "--dataloader.packing=first_fit --validation.local_batch_size=2 --validation.seq_len=48"},
        {"mesh", "--device.count=4 --training.local_batch_size=6 --parallelism.tensor_parallel_degree=2"},
        {"context", "--device.count=2 --parallelism.context_parallel_degree=2"},
        {"accumulated", "--training.local_batch_size=3 --training.global_batch_size=12"},
    };
    double trained, whole = validated("whole", "", &trained), worst = 0;
    assert_true(fabs(whole / trained - 1) < 1e-6); /* the one batch of the run is all of the data */
    for (size_t i = 0; i < CT_COUNT(ways); i++) {
        double loss = validated(ways[i].name, ways[i].overrides, NULL);
        if (!(fabs(loss / whole - 1) < 1e-5)) fail_msg("%s: %.7f, but all at once %.7f", ways[i].name, loss, whole);
        worst = fmax(worst, fabs(loss / whole - 1));
    }
    print_message("validation losses within %.1e\n", worst);
    double first = validated("first", "--validation.local_batch_size=3 --validation.steps=1", NULL);
    assert_true(fabs(first / whole - 1) > 1e-5);
}

/* With and without it, and resumed in between. */
static void test_undisturbed(void **state)
{
    (void)state;
    const char *with = ct_test_path("with"), *without = ct_test_path("without"), *resumed = ct_test_path("resumed");
    ct_test_ok("train %s --dump_folder=%s", recipe(), with);
    ct_test_ok("train %s --dump_folder=%s --validation.no-enable", recipe(), without);
    ct_test_ok("train %s --dump_folder=%s --training.steps=3 --lr_scheduler.total_steps=5", recipe(), resumed);
    ct_test_ok("train %s --dump_folder=%s --checkpoint.load_step=2", recipe(), resumed);
    for (int64_t step = 2; step <= 5; step += step == 4 ? 1 : 2) {
        ct_test_same_checkpoints(ct_test_path("with/checkpoint"), ct_test_path("without/checkpoint"), step);
        ct_test_same_checkpoints(ct_test_path("with/checkpoint"), ct_test_path("resumed/checkpoint"), step);
    }
    size_t count, resumed_count;
    ct_test_step *steps = ct_test_validations(with, &count), *again = ct_test_validations(resumed, &resumed_count);
    static const int64_t expected[] = {1, 2, 4};
    assert_int_equal(count, CT_COUNT(expected));
    assert_int_equal(resumed_count, CT_COUNT(expected));
    for (size_t i = 0; i < CT_COUNT(expected); i++) {
        assert_int_equal(steps[i].step, expected[i]);
        assert_true(steps[i].loss == again[i].loss);
    }
    assert_true(steps[2].loss < steps[0].loss); /* it is the data that is learned */
    free(steps);
    free(again);
    free(ct_test_validations(without, &count));
    assert_int_equal(count, 0);
}

static void test_line(void **state)
{
    (void)state;
    ct_test_run run = ct_test_start("train %s --dump_folder=%s --training.steps=1 --metrics.disable_color_printing",
                                    recipe(), ct_test_path("line"));
    ct_test_wait(&run);
    ct_test_expect(&run, 0, "validate step:  1  loss: ");
    assert_non_null(strstr(run.err, "  memory: "));
    ct_test_run_free(&run);
}

static void test_errors(void **state)
{
    (void)state;
    const char *folder = ct_test_path("errors");
    ct_test_fails(1, "needs validation.dataset_path", "train %s --dump_folder=%s --validation.dataset_path=", recipe(),
                  folder);
    ct_test_fails(1, "must be -1 (all of the data) or at least 1", "train %s --dump_folder=%s --validation.steps=0",
                  recipe(), folder);
    ct_test_fails(1, "validation.dataset_path", "train %s --dump_folder=%s --validation.dataset_path=/nowhere.jsonl",
                  recipe(), folder);
    ct_test_fails(1, "validation.seq_len = 999 exceeds", "train %s --dump_folder=%s --validation.seq_len=999", recipe(),
                  folder);
    ct_test_fails(1, "must give a label to average over", "train %s --dump_folder=%s --validation.seq_len=4", recipe(),
                  folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_average), cmocka_unit_test(test_undisturbed),
                                       cmocka_unit_test(test_line), cmocka_unit_test(test_errors)};
    return cmocka_run_group_tests(tests, NULL, ct_test_world_free);
}
