/* Documents in the compiled step: packed into sequences with training.document_mask they give the loss and gradients of
 * each by itself, in every form of attention and over several devices; a run on a mixture goes on from its checkpoint
 * with the same data on other devices; and what is broken is told.
 */
#include <math.h>

#include "support.h"

#define DATA CT_SOURCE_DIR "/tests/data/"
static const char *recipe(void)
{
    char *path = ct_test_path("recipe.toml");
    if (ct_path_exists(path)) return path;
    ct_test_documents();
    ct_test_write(path,
                  "[model]\nname = \"llama3\"\nflavor = \"%s\"\n"
                  "[training]\nlocal_batch_size = %d\nseq_len = 64\nsteps = 1\ndataset_path = \"%s\"\n"
                  "document_mask = true\nmixed_precision_param = \"float32\"\n"
                  "[dataloader]\nshuffle = false\nrepeat = false\npacking = \"none\"\n"
                  "[optimizer]\nlr = 1e-2\n[lr_scheduler]\nwarmup_steps = 0\ndecay_ratio = 0.0\n"
                  "[metrics]\nlog_freq = 1\n",
                  ct_test_path("model"), CT_TEST_NUM_DOCUMENTS, ct_test_path("documents.jsonl"));
    return path;
}

static ct_test_step first_step(const char *name, const char *overrides)
{
    const char *folder = ct_test_path("%s", name);
    ct_test_ok("train %s --dump_folder=%s %s", recipe(), folder, overrides);
    size_t count;
    ct_test_step *steps = ct_test_metrics(folder, &count), first = steps[0];
    assert_int_equal(count, 1);
    free(steps);
    return first;
}

static double difference(ct_test_step a, ct_test_step b)
{
    return fmax(fabs(a.loss / b.loss - 1), fabs(a.grad_norm / b.grad_norm - 1));
}

static void test_packed_as_apart(void **state)
{
    (void)state;
    static const struct {
        const char *name, *overrides;
    } ways[] = {
        {"definition", "--kernels.attention=definition"},
        {"portable", "--kernels.attention=portable --splash_attention_kernel.sa_block_q=16 "
                     "--splash_attention_kernel.sa_block_kv=16"},
        {"ring", "--device.count=2 --parallelism.context_parallel_degree=2 "
                 "--parallelism.context_parallel_rotate_method=ring"},
        {"mesh", "--device.count=4 --training.local_batch_size=6 --parallelism.tensor_parallel_degree=2"},
        {"accumulated", "--training.local_batch_size=3 --training.global_batch_size=12"},
    };
    ct_test_step apart = first_step("apart", "");
    double worst = 0;
    for (size_t i = 0; i < CT_COUNT(ways); i++) {
        char *overrides = ct_asprintf("--dataloader.packing=first_fit %s", ways[i].overrides);
        ct_test_step packed = first_step(ways[i].name, overrides);
        free(overrides);
        assert_int_equal(packed.n_tokens_seen, apart.n_tokens_seen);
        if (!(difference(packed, apart) <= 1e-5))
            fail_msg("%s: loss %.7f and norm %.7f, apart %.7f and %.7f", ways[i].name, packed.loss, packed.grad_norm,
                     apart.loss, apart.grad_norm);
        worst = fmax(worst, difference(packed, apart));
    }
    print_message("loss and gradient norm within %.1e\n", worst);
    ct_test_step open = first_step("open", "--dataloader.packing=first_fit --training.document_mask=false");
    assert_true(difference(open, apart) > 1e-4); /* the mask is what does it */
}

#define MIXTURE                                                                                                        \
    "--training.dataset_path=" DATA "texts.jsonl.zst," DATA "texts_snappy.parquet," DATA "texts_pax.tar.gz "           \
    "--dataloader.weights=3,1,2 --dataloader.shuffle --dataloader.streaming_shuffle_buffer=9 --dataloader.repeat "     \
    "--dataloader.packing=auto --training.steps=9 --checkpoint.enable --checkpoint.interval=3 "                        \
    "--checkpoint.last_save_model_only=false "

/* Stopped and gone on from, with other threads and other devices, against an unbroken run. */
static void test_mixture_resumed(void **state)
{
    (void)state;
    const char *whole = ct_test_path("whole"), *broken = ct_test_path("broken");
    ct_test_ok("train %s --dump_folder=%s " MIXTURE, recipe(), whole);
    ct_test_ok("train %s --dump_folder=%s " MIXTURE "--training.steps=4 --lr_scheduler.total_steps=9", recipe(),
               broken);
    ct_test_ok("train %s --dump_folder=%s " MIXTURE "--dataloader.num_workers=3", recipe(), broken);
    size_t count, broken_count;
    ct_test_step *steps = ct_test_metrics(whole, &count), *again = ct_test_metrics(broken, &broken_count);
    assert_int_equal(count, 9);
    assert_int_equal(broken_count, 9);
    for (size_t i = 0; i < 9; i++) {
        assert_int_equal(again[i].step, i + 1);
        assert_true(again[i].loss == steps[i].loss && again[i].grad_norm == steps[i].grad_norm);
    }
    free(again);

    const char *moved = ct_test_path("moved");
    ct_test_ok("train %s --dump_folder=%s " MIXTURE "--training.steps=4 --lr_scheduler.total_steps=9", recipe(), moved);
    ct_test_ok("train %s --dump_folder=%s " MIXTURE "--device.count=2 --training.local_batch_size=6", recipe(), moved);
    again = ct_test_metrics(moved, &broken_count);
    assert_int_equal(broken_count, 9);
    for (size_t i = 0; i < 9; i++) assert_true(fabs(again[i].loss / steps[i].loss - 1) < 1e-5);
    free(again);
    free(steps);

    ct_test_fails(1, "num_sources = 3, but now it is 1",
                  "train %s --dump_folder=%s --checkpoint.enable --dataloader.shuffle --dataloader.packing=auto",
                  recipe(), whole);
    ct_test_fails(1, "document_mask = 1, but now it is 0",
                  "train %s --dump_folder=%s " MIXTURE "--training.document_mask=false --training.steps=20", recipe(),
                  whole);
}

static void test_fine_tuning(void **state)
{
    (void)state;
    const char *folder = ct_test_path("tuned");
    ct_test_run run = ct_test_start(
        "train %s --dump_folder=%s --training.dataset_path=" DATA "prompts.jsonl --dataloader.prompt_column=prompt "
        "--dataloader.completion_column=completion --dataloader.packing=auto --training.steps=100 "
        "--training.local_batch_size=4 --checkpoint.enable --checkpoint.last_save_model_only=false",
        recipe(), folder);
    ct_test_wait(&run);
    ct_test_expect(&run, 0, "The data ended after step ");
    ct_test_expect(&run, 0, "longer than training.seq_len left out");
    ct_test_run_free(&run);
    size_t count;
    ct_test_step *steps = ct_test_metrics(folder, &count);
    assert_true(count > 2 && count < 20);
    assert_true(steps[count - 1].loss < steps[0].loss);
    assert_true(ct_path_exists(ct_test_path("tuned/checkpoint/step-%zu", count)));
    free(steps);
    ct_test_ok("train %s --dump_folder=%s --training.dataset_path=" DATA "prompts.jsonl "
               "--dataloader.prompt_column=prompt --dataloader.completion_column=completion "
               "--dataloader.packing=auto --training.steps=100 --training.local_batch_size=4 --checkpoint.enable",
               recipe(), folder); /* it stays at the end */
}

/* The tokenizer of a folder: fewer tokens than bytes, its files go along with the checkpoint, its vocabulary must fit.
 */
static void test_tokenizer(void **state)
{
    (void)state;
    ct_test_step bytes = first_step("bytes", "--model.hf_assets_path=bytes --training.local_batch_size=40 "
                                             "--dataloader.packing=first_fit --training.dataset_path=" DATA
                                             "prompts.jsonl --dataloader.prompt_column=prompt "
                                             "--dataloader.completion_column=completion");
    ct_test_step ids = first_step("ids", "--model.hf_assets_path=" DATA "tokenizer --training.local_batch_size=40 "
                                         "--dataloader.packing=first_fit --training.dataset_path=" DATA
                                         "prompts.jsonl --dataloader.prompt_column=prompt "
                                         "--dataloader.completion_column=completion --checkpoint.enable");
    assert_true(bytes.loss != ids.loss);
    size_t size, wanted_size;
    char *bytes_saved = ct_test_read(ct_test_path("ids/checkpoint/step-1/tokenizer.json"), &size);
    char *wanted = ct_test_read(DATA "tokenizer/tokenizer.json", &wanted_size);
    assert_int_equal(size, wanted_size);
    assert_memory_equal(bytes_saved, wanted, size);
    free(bytes_saved);
    free(wanted);
    ct_test_fails(1, "model.hf_assets_path (--model.hf_assets_path=/nowhere)",
                  "train %s --dump_folder=%s --model.hf_assets_path=/nowhere", recipe(), ct_test_path("failed"));
    ct_test_write(ct_test_path("small/config.json"),
                  "{\"model_type\": \"llama\", \"hidden_size\": 16, \"num_hidden_layers\": 1, "
                  "\"num_attention_heads\": 2, \"intermediate_size\": 16, \"vocab_size\": 319}\n");
    ct_test_fails(1, "has 320 ids, but the model's vocabulary only 319",
                  "train %s --dump_folder=%s --model.flavor=%s --model.hf_assets_path=" DATA "tokenizer", recipe(),
                  ct_test_path("failed"), ct_test_path("small"));
}

static void test_broken(void **state)
{
    (void)state;
    ct_test_write(ct_test_path("broken.jsonl"),
                  "{\"text\":\"good\"}\n{\"text\":\n{\"body\":\"x\"}\n{\"text\":\"fine\"}\n");
    ct_test_run run = ct_test_start("train %s --dump_folder=%s --training.dataset_path=%s", recipe(),
                                    ct_test_path("skipped"), ct_test_path("broken.jsonl"));
    ct_test_wait(&run);
    ct_test_expect(&run, 0, "broken.jsonl, byte 16:1:9: not valid JSON");
    ct_test_expect(&run, 0, "the record has no \"text\"");
    ct_test_expect(&run, 0, "2 broken records left out");
    ct_test_run_free(&run);
    ct_test_fails(1, "broken.jsonl, byte 16",
                  "train %s --dump_folder=%s --training.dataset_path=%s "
                  "--dataloader.broken_records=fail",
                  recipe(), ct_test_path("failed"), ct_test_path("broken.jsonl"));
    ct_test_fails(1, "of several kinds",
                  "train %s --dump_folder=%s --training.dataset_path=%s," DATA "texts_snappy.parquet", recipe(),
                  ct_test_path("failed"), ct_test_path("broken.jsonl"));
    ct_test_fails(1, "dataloader.weights must have one weight per training.dataset_path, 1, found 2",
                  "train %s --dump_folder=%s --dataloader.weights=1,2", recipe(), ct_test_path("failed"));
    ct_test_fails(1, "dataloader.prompt_column needs dataloader.completion_column too",
                  "train %s --dump_folder=%s --dataloader.prompt_column=q", recipe(), ct_test_path("failed"));
    ct_test_fails(1, "two kinds of data",
                  "train %s --dump_folder=%s --dataloader.messages_column=m "
                  "--dataloader.text_column=t",
                  recipe(), ct_test_path("failed"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_packed_as_apart), cmocka_unit_test(test_mixture_resumed),
                                       cmocka_unit_test(test_fine_tuning), cmocka_unit_test(test_tokenizer),
                                       cmocka_unit_test(test_broken)};
    return cmocka_run_group_tests(tests, NULL, ct_test_world_free);
}
