/* The keys of [checkpoint], one by one, on runs of a few small steps. */
#include <signal.h>
#include <unistd.h>

#include "support.h"

enum { STEPS = 6 };

static const char *recipe(void)
{
    char *path = ct_test_path("recipe.toml");
    if (ct_path_exists(path)) return path;
    ct_test_write(ct_test_path("model/config.json"),
                  "{\"model_type\": \"qwen3\", \"hidden_size\": 16, \"num_hidden_layers\": 2, "
                  "\"num_attention_heads\": 2, \"num_key_value_heads\": 1, \"head_dim\": 8, \"intermediate_size\": 40, "
                  "\"vocab_size\": 260, \"max_position_embeddings\": 64, \"tie_word_embeddings\": true, "
                  "\"torch_dtype\": \"bfloat16\"}\n");
    ct_test_write(ct_test_path("model/generation_config.json"), "{\"eos_token_id\": 257}\n");
    ct_test_write(ct_test_path("model/tokenizer.json"),
                  "{\"version\": \"1.0\", \"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1}, "
                  "\"merges\": []}}\n");
    char text[700];
    for (uint32_t i = 0; i < sizeof(text) - 1; i++) text[i] = "the cat sat on a mat.\n"[i * 7 % 22];
    text[sizeof(text) - 1] = 0;
    ct_test_write(ct_test_path("text.txt"), "%s", text);
    ct_test_write(path,
                  "[model]\nname = \"qwen3\"\nflavor = \"%s\"\n"
                  "[training]\nlocal_batch_size = 2\nseq_len = 16\nsteps = %d\n"
                  "dataset = \"text\"\ndataset_path = \"%s\"\n"
                  "[lr_scheduler]\nwarmup_steps = 3\ntotal_steps = 20\n[metrics]\nlog_freq = 1\n"
                  "[checkpoint]\nenable = true\ninterval = 2\nlast_save_model_only = false\n",
                  ct_test_path("model"), STEPS, ct_test_path("text.txt"));
    return path;
}

/* Trains into folder `name`; options are added to the command. What it logged is the caller's to free. */
static char *train(const char *name, const char *options)
{
    ct_test_run run = ct_test_start("train %s --dump_folder=%s %s", recipe(), ct_test_path("%s", name), options);
    ct_test_wait(&run);
    ct_test_expect(&run, 0, "");
    char *log = run.err;
    run.err = NULL;
    ct_test_run_free(&run);
    return log;
}

static void expect_steps(const char *name, const char *wanted)
{
    int64_t *steps;
    size_t num_steps;
    char found[256] = "";
    expect_ok(ct_checkpoint_list(ct_test_path("%s/checkpoint", name), &steps, &num_steps));
    for (size_t i = 0; i < num_steps; i++)
        snprintf(found + strlen(found), sizeof(found) - strlen(found), "%s%lld", i ? " " : "", (long long)steps[i]);
    free(steps);
    assert_string_equal(found, wanted);
}

static ct_checkpoint *open_step(const char *name, int64_t step)
{
    ct_checkpoint *checkpoint;
    expect_ok(ct_checkpoint_open(ct_test_path("%s/checkpoint", name), step, &(ct_checkpoint_open_opts){.verify = true},
                                 &checkpoint));
    return checkpoint;
}

static void expect_same(const char *a, const char *b, int64_t step)
{
    ct_test_same_checkpoints(ct_test_path("%s/checkpoint", a), ct_test_path("%s/checkpoint", b), step);
}

/* The tensors of a that begin as prefix have the same bits in b. */
static size_t compare(const ct_checkpoint *a, const ct_checkpoint *b, const char *prefix, bool *out_same)
{
    size_t count = 0;
    *out_same = true;
    for (size_t i = 0; i < ct_checkpoint_num_tensors(a); i++) {
        const char *name = ct_checkpoint_at(a, i)->name;
        if (strncmp(name, prefix, strlen(prefix)) != 0) continue;
        ct_array x = ct_test_checkpoint_array(a, name), y = ct_test_checkpoint_array(b, name);
        *out_same = *out_same && !memcmp(x.data, y.data, ct_array_bytes(&x));
        ct_array_free(&x);
        ct_array_free(&y);
        count++;
    }
    return count;
}

static void test_which_steps(void **state)
{
    (void)state;
    free(train("plain", ""));
    expect_steps("plain", "2 4 6");
    free(train("first", "--checkpoint.enable_first_step_checkpoint --checkpoint.async_mode=async"));
    expect_steps("first", "1 2 4 6");
    free(train("two", "--checkpoint.keep_latest_k=2"));
    expect_steps("two", "4 6");
    free(train("two.async", "--checkpoint.keep_latest_k=2 --checkpoint.interval=1 --checkpoint.async_mode=async"));
    expect_steps("two.async", "5 6");
    free(train("none", "--checkpoint.load_only"));
    expect_steps("none", "");
    expect_same("plain", "two", 6);
    expect_same("plain", "two.async", 6);

    /* load_only goes on from a step, and leaves the folder as it is */
    char *log = train("two", "--checkpoint.load_only --training.steps=8");
    assert_non_null(strstr(log, "Training starts at step 7"));
    expect_steps("two", "4 6");
    free(log);
}

static void test_seed_checkpoint(void **state)
{
    (void)state;
    char *log = train("seed", "--checkpoint.create_seed_checkpoint");
    assert_null(strstr(log, "Training starts"));
    free(log);
    expect_steps("seed", "0");
    log = train("seed", "--debug.seed=42"); /* weights are the seed's; all else begins */
    assert_non_null(strstr(log, "Training starts at step 1"));
    free(log);
    expect_same("plain", "seed", 6);
    /* weights of a seed checkpoint, wherever it lies and whatever the run's own seed */
    const char *option = ct_test_path("seed/checkpoint/step-0");
    ct_test_ok("train %s --dump_folder=%s --checkpoint.initial_load_path=%s", recipe(), ct_test_path("seeded"), option);
    expect_same("plain", "seeded", 6);
}

/* Weights alone at the end: nothing to go on from, so a longer run goes back to the full step before. */
static void test_model_only(void **state)
{
    (void)state;
    free(train("bare", "--checkpoint.last_save_model_only --checkpoint.export_dtype=bfloat16"));
    ct_checkpoint *bare = open_step("bare", 6), *plain = open_step("plain", 6);
    assert_int_equal(3 * ct_checkpoint_num_tensors(bare), ct_checkpoint_num_tensors(plain));
    for (size_t i = 0; i < ct_checkpoint_num_tensors(bare); i++) {
        const char *name = ct_checkpoint_at(bare, i)->name;
        ct_array narrow = ct_test_checkpoint_array(bare, name), wide = ct_test_checkpoint_array(plain, name);
        assert_int_equal(narrow.dtype, CT_DTYPE_BF16);
        ct_array rounded = ct_array_new(CT_DTYPE_BF16, wide.sizes, wide.rank);
        for (int64_t j = 0; j < ct_array_num_elements(&wide); j++) ct_array_set(&rounded, j, ct_array_get(&wide, j));
        assert_memory_equal(narrow.data, rounded.data, ct_array_bytes(&narrow));
        ct_array_free(&narrow);
        ct_array_free(&wide);
        ct_array_free(&rounded);
    }
    ct_checkpoint_close(bare);
    ct_checkpoint_close(plain);
    char *log = train("bare", "--checkpoint.last_save_model_only");
    assert_non_null(strstr(log, "Step 6 of 6 is done already"));
    free(log);
    log = train("bare", "--training.steps=8");
    assert_non_null(strstr(log, "skipping step 6: it has weights alone"));
    assert_non_null(strstr(log, "Training starts at step 5"));
    free(log);
    free(train("longer", "--training.steps=8"));
    expect_same("bare", "longer", 8);
    expect_same("bare", "longer", 6); /* and the full step took the place of the bare one */

    free(train("only", "--checkpoint.last_save_model_only --checkpoint.interval=100"));
    ct_test_fails(1, "it has weights alone", "train %s --dump_folder=%s --training.steps=8", recipe(),
                  ct_test_path("only"));
    ct_test_fails(1, "resuming from", "train %s --dump_folder=%s --training.steps=8 --checkpoint.load_step=6", recipe(),
                  ct_test_path("only"));
    ct_test_fails(1, "it has weights alone, so checkpoint.initial_load_model_only must be true",
                  "train %s --dump_folder=%s --checkpoint.initial_load_path=%s --checkpoint.no-initial_load_model_only",
                  recipe(), ct_test_path("refused"), ct_test_path("only/checkpoint/step-6"));
}

/* The last step is a Hugging Face folder that a run can start from, in every type; and a step. */
static void test_hf(void **state)
{
    (void)state;
    free(train("hf", "--checkpoint.last_save_model_only --checkpoint.last_save_in_hf"));
    const char *folder = ct_test_path("hf/checkpoint/step-6");
    ct_safetensors *file;
    expect_ok(ct_safetensors_dir_open(folder, &file));
    ct_checkpoint *plain = open_step("plain", 6), *step = open_step("hf", 6);
    assert_int_equal(3 * ct_safetensors_num_tensors(file), ct_checkpoint_num_tensors(plain));
    for (size_t i = 0; i < ct_safetensors_num_tensors(file); i++) {
        const ct_safetensors_tensor *tensor = ct_safetensors_at(file, i);
        ct_array array = ct_test_checkpoint_array(plain, tensor->name);
        assert_int_equal(tensor->dtype, CT_DTYPE_F32);
        assert_memory_equal(tensor->data, array.data, ct_array_bytes(&array));
        ct_array_free(&array);
    }
    bool same;
    compare(step, plain, "model.", &same);
    assert_true(same);
    ct_safetensors_close(file);
    ct_checkpoint_close(plain);
    ct_checkpoint_close(step);
    static const char *const copied[] = {"generation_config.json", "tokenizer.json"};
    for (size_t i = 0; i < CT_COUNT(copied); i++) {
        char *a = ct_test_read(ct_test_path("model/%s", copied[i]), NULL);
        char *b = ct_test_read(ct_test_path("hf/checkpoint/step-6/%s", copied[i]), NULL);
        assert_string_equal(a, b);
        free(a);
        free(b);
    }
    char *config = ct_test_read(ct_test_path("hf/checkpoint/step-6/config.json"), NULL);
    assert_non_null(strstr(config, "\"torch_dtype\": \"float32\"")); /* as the weights are */
    assert_non_null(strstr(config, "\"vocab_size\": 260"));
    free(config);
    /* the same weights, whether read as a folder or as a step */
    const char *options = "--checkpoint.create_seed_checkpoint";
    ct_test_ok("train %s --dump_folder=%s --model.flavor=%s --checkpoint.initial_load_path=%s "
               "--checkpoint.initial_load_in_hf %s",
               recipe(), ct_test_path("from.hf"), folder, folder, options);
    ct_test_ok("train %s --dump_folder=%s --model.flavor=%s --checkpoint.initial_load_path=%s %s", recipe(),
               ct_test_path("from.step"), folder, folder, options);
    expect_same("from.hf", "from.step", 0);
}

/* Parts of a step that are left out begin anew, and only those. */
static void test_parts(void **state)
{
    (void)state;
    const char *path = ct_test_path("plain/checkpoint/step-4");
    const char *all = "--checkpoint.no-initial_load_model_only --checkpoint.interval=1";
    ct_test_ok("train %s --dump_folder=%s --checkpoint.initial_load_path=%s %s", recipe(), ct_test_path("all"), path,
               all);
    expect_steps("all", "5 6");
    expect_same("plain", "all", 6); /* all of it is there: the same run, in another folder */

    size_t count;
    ct_test_ok("train %s --dump_folder=%s --checkpoint.initial_load_path=%s %s "
               "--checkpoint.exclude_from_loading=lr_scheduler",
               recipe(), ct_test_path("no.lr"), path, all);
    ct_test_step *steps = ct_test_metrics(ct_test_path("no.lr"), &count), *plain;
    size_t num_plain;
    plain = ct_test_metrics(ct_test_path("plain"), &num_plain);
    assert_int_equal(count, 2);
    assert_int_equal(steps[0].step, 5);
    assert_true(steps[0].lr == plain[0].lr && steps[0].loss == plain[4].loss);
    assert_int_equal(steps[0].n_tokens_seen, plain[4].n_tokens_seen);
    free(steps);

    ct_test_ok("train %s --dump_folder=%s --checkpoint.initial_load_path=%s %s "
               "--checkpoint.exclude_from_loading=train_state,dataloader",
               recipe(), ct_test_path("no.step"), path, all);
    steps = ct_test_metrics(ct_test_path("no.step"), &count);
    assert_int_equal(count, STEPS);
    assert_true(steps[0].step == 1 && steps[0].n_tokens_seen == plain[0].n_tokens_seen);
    assert_true(steps[0].lr == plain[4].lr && steps[0].loss < plain[0].loss);
    free(steps);

    /* moments that begin at zero, and are corrected as those of a first step */
    ct_test_ok("train %s --dump_folder=%s --checkpoint.initial_load_path=%s %s "
               "--checkpoint.exclude_from_loading=optimizer",
               recipe(), ct_test_path("no.moments"), path, all);
    ct_checkpoint *fresh = open_step("no.moments", 5), *whole = open_step("all", 5);
    int64_t seen;
    expect_ok(ct_json_need_int(ct_json_get(ct_checkpoint_info(fresh), "optimizer"), "steps", &seen));
    assert_int_equal(seen, 1);
    ct_test_values moment = ct_test_checkpoint_tensor(fresh, "state.model.norm.weight.exp_avg");
    ct_test_values square = ct_test_checkpoint_tensor(fresh, "state.model.norm.weight.exp_avg_sq");
    for (int64_t i = 0; i < moment.count; i++) { /* m = 0.1 g, v = 0.05 g^2 */
        double gradient = moment.data[i] / 0.1;
        double wanted = 0.05 * gradient * gradient, error = square.data[i] - wanted;
        assert_true(error <= 1e-4 * wanted + 1e-20 && -error <= 1e-4 * wanted + 1e-20);
    }
    free(moment.data);
    free(square.data);
    bool same;
    assert_true(compare(fresh, whole, "state.", &same) > 0 && !same);
    ct_checkpoint_close(fresh);
    ct_checkpoint_close(whole);
    free(plain);
}

static bool wait_for_text(const ct_test_run *run, const char *text)
{
    for (int i = 0; i < 20000; i++) {
        char *log = ct_test_read(run->err_path, NULL);
        bool has = strstr(log, text) != NULL;
        free(log);
        if (has) return true;
        usleep(1000);
    }
    return false;
}

/* One run at a time in a folder, and the second signal does not wait. */
static void test_lock_and_signals(void **state)
{
    (void)state;
    const char *folder = ct_test_path("locked");
    ct_test_run run =
        ct_test_start("train %s --dump_folder=%s --training.steps=100000 --lr_scheduler.total_steps=200000 "
                      "--checkpoint.interval=100000",
                      recipe(), folder);
    assert_true(wait_for_text(&run, "Training starts"));
    char text[128];
    snprintf(text, sizeof(text), "is held by another process (%d); another run writes into dump_folder",
             (int)run.process);
    ct_test_fails(1, text, "train %s --dump_folder=%s", recipe(), folder);
    kill(run.process, SIGTERM);
    ct_test_wait(&run);
    ct_test_expect(&run, 143, "which is saved; the same command goes on from there");
    ct_test_run_free(&run);

    run = ct_test_start("train %s --dump_folder=%s --training.steps=100000 --lr_scheduler.total_steps=200000 "
                        "--checkpoint.interval=100000",
                        recipe(), folder);
    assert_true(wait_for_text(&run, "Training starts"));
    kill(run.process, SIGKILL);
    ct_test_wait(&run);
    ct_test_run_free(&run);
    /* the lock went with the process; while a program is compiled the first signal only asks, the second ends it */
    ct_test_run next = ct_test_start("train %s --dump_folder=%s --compile.cache_dir=", recipe(), folder);
    assert_true(wait_for_text(&next, "Data: "));
    kill(next.process, SIGTERM);
    usleep(20000);
    kill(next.process, SIGINT);
    ct_test_wait(&next);
    ct_test_expect(&next, 128 + SIGINT, "Data: ");
    assert_null(strstr(next.err, "stopped after step"));
    ct_test_run_free(&next);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_which_steps), cmocka_unit_test(test_seed_checkpoint),
        cmocka_unit_test(test_model_only),  cmocka_unit_test(test_hf),
        cmocka_unit_test(test_parts),       cmocka_unit_test(test_lock_and_signals),
    };
    return cmocka_run_group_tests(tests, NULL, ct_test_world_free);
}
