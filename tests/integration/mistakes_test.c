/* Bad input through the command: each ends with a message that names what was wrong, an exit code, and nothing lost or
 * half-written.
 */
#include <errno.h>
#include <math.h>
#include <sys/mount.h>
#include <unistd.h>

#include "reference.h"
#include "support.h"

enum { SEQ = 8, VOCAB = 1500 };

static ct_test_model model;
static const char *folder, *tokens, *recipe; /* all of them good */

/* ---- good input, to be spoiled ---- */

static const char *write_tokens(const char *name, int num_rows, int32_t spoiled_row, int32_t spoiled_value)
{
    int64_t sizes[2] = {num_rows, SEQ + 1}, label_sizes[2] = {num_rows, SEQ};
    ct_safetensors_entry entries[2] = {{"tokens", ct_array_new(CT_DTYPE_S32, sizes, 2)},
                                       {"labels", ct_array_new(CT_DTYPE_S32, label_sizes, 2)}};
    int32_t *ids = entries[0].array.data, *labels = entries[1].array.data;
    for (int row = 0; row < num_rows; row++)
        for (int p = 0; p <= SEQ; p++) {
            ids[row * (SEQ + 1) + p] = (row * 7 + p * p) % VOCAB;
            if (p) labels[row * SEQ + p - 1] = ids[row * (SEQ + 1) + p];
        }
    for (int p = 0; p < SEQ && spoiled_row >= 0; p++)
        if (spoiled_value == -100)
            labels[spoiled_row * SEQ + p] = -100;
        else
            ids[spoiled_row * (SEQ + 1) + 3] = spoiled_value;
    char *path = ct_test_path("%s.safetensors", name);
    expect_ok(ct_safetensors_save(path, entries, 2));
    for (int i = 0; i < 2; i++) ct_array_free(&entries[i].array);
    return path;
}

static int make_input(void **state)
{
    (void)state;
    ct_test_config config = {.dim = 24,
                             .num_layers = 1,
                             .num_heads = 2,
                             .num_kv_heads = 1,
                             .head_dim = 12,
                             .ffn_dim = 32,
                             .vocab_size = VOCAB,
                             .norm_eps = 1e-5,
                             .theta = 10000};
    model = ct_test_model_new(&config, 3);
    folder = ct_test_path("model");
    ct_test_model_write(&model, folder, CT_DTYPE_F32, 1, false);
    tokens = write_tokens("good", 40, -1, 0);
    recipe = ct_test_path("good.toml");
    ct_test_write(recipe,
                  "[model]\nname = \"llama3\"\nflavor = \"%s\"\n"
                  "[training]\nlocal_batch_size = 1\nseq_len = %d\nsteps = 12\ndataset = \"tokens\"\n"
                  "dataset_path = \"%s\"\nshuffle = false\nmixed_precision_param = \"float32\"\n"
                  "[lr_scheduler]\nwarmup_steps = 0\n[metrics]\nlog_freq = 1\n",
                  folder, SEQ, tokens);
    return 0;
}

static int free_input(void **state)
{
    ct_test_model_free(&model);
    umount2(ct_test_path("disk"), MNT_DETACH); /* where a test failed before its end */
    return ct_test_world_free(state);
}

/* A folder as the good one, but with its weights' file changed by the bytes' owner. */
static char *spoiled_folder(const char *name, char **out_bytes, size_t *out_size)
{
    char *copy = ct_test_path("%s", name);
    ct_test_model_write(&model, copy, CT_DTYPE_F32, 1, false);
    *out_bytes = ct_test_read(ct_test_path("%s/model.safetensors", name), out_size);
    return copy;
}

static void write_back(const char *name, char *bytes, size_t size)
{
    expect_ok(ct_file_write(ct_test_path("%s/model.safetensors", name), bytes, size));
    free(bytes);
}

/* Both verbs that load a folder must fail with the text, and leave nothing. */
static void expect_folder_fails(const char *spoiled, const char *text)
{
    const char *output = ct_test_path("out.safetensors"), *run = ct_test_path("run");
    ct_test_fails(1, text, "score --model=%s --tokens=%s --output=%s", spoiled, tokens, output);
    assert_false(ct_path_exists(output));
    ct_test_fails(1, text,
                  "train %s --dump_folder=%s --checkpoint.initial_load_path=%s --checkpoint.initial_load_in_hf "
                  "--checkpoint.enable",
                  recipe, run, spoiled);
    assert_false(ct_test_folder_has(run, "checkpoint"));
    assert_false(ct_test_folder_has(run, "metrics"));
}

/* ---- weights ---- */

static void test_weights(void **state)
{
    (void)state;
    char *bytes;
    size_t size;
    expect_folder_fails("/nowhere/model", "/nowhere/model");

    char *spoiled = spoiled_folder("cut", &bytes, &size);
    write_back("cut", bytes, size - 100);
    expect_folder_fails(spoiled, "cut/model.safetensors");

    spoiled = spoiled_folder("header", &bytes, &size);
    memcpy(bytes, "\xff\xff\xff\xff\xff\xff\xff\x7f", 8);
    write_back("header", bytes, size);
    expect_folder_fails(spoiled, "header/model.safetensors");

    spoiled = spoiled_folder("offsets", &bytes, &size); /* the header lies about where a tensor is */
    char *offsets = strstr(bytes + 8, "\"data_offsets\":[");
    assert_non_null(offsets);
    offsets[strlen("\"data_offsets\":[")] = '9';
    write_back("offsets", bytes, size);
    expect_folder_fails(spoiled, "offsets/model.safetensors");

    spoiled = spoiled_folder("nan", &bytes, &size);
    float nan = NAN;
    memcpy(bytes + size - 4 * sizeof(float), &nan, sizeof(nan));
    write_back("nan", bytes, size);
    expect_folder_fails(spoiled, "must be finite, found nan at index");

    spoiled = spoiled_folder("name", &bytes, &size);
    memcpy(strstr(bytes + 8, "up_proj"), "Up_proj", 7);
    write_back("name", bytes, size);
    expect_folder_fails(spoiled, "model.layers.0.mlp.up_proj.weight");

    ct_test_model wide = model;
    wide.config.ffn_dim++; /* the configuration's, not the weights' */
    spoiled = ct_test_path("shape");
    ct_test_model_write(&wide, spoiled, CT_DTYPE_F32, 1, false);
    const char *output = ct_test_path("shape.out");
    ct_test_fails(1, "[33, 24]", "score --model=%s --tokens=%s --output=%s", spoiled, tokens, output);
    assert_false(ct_path_exists(output));

    spoiled = ct_test_path("type");
    ct_test_model_write(&model, spoiled, CT_DTYPE_F32, 1, false);
    ct_test_write(ct_test_path("type/config.json"), "{\"model_type\": \"gpt2\"}");
    ct_test_fails(1, "model_type must be one of llama, qwen3, found \"gpt2\"",
                  "score --model=%s --tokens=%s --output=%s", spoiled, tokens, output);
    ct_test_fails(1, "model_type must be one of llama, qwen3, found \"gpt2\"",
                  "train %s --dump_folder=%s --model.flavor=%s", recipe, ct_test_path("run"), spoiled);
    ct_test_fails(1, "holds a llama3 model, but model.name = \"qwen3\"", "check %s --model.name=qwen3", recipe);
}

/* ---- recipes and command lines ---- */

static void test_recipe(void **state)
{
    (void)state;
    const char *run = ct_test_path("never");
    ct_test_fails(1, "/nowhere.toml", "train /nowhere.toml");
    ct_test_fails(2, "1 argument is needed", "train");
    ct_test_fails(2, "did you mean \"train\"?", "trian x");
    ct_test_fails(1, "/nowhere/data", "train %s --dump_folder=%s --training.dataset_path=/nowhere/data", recipe, run);
    ct_test_fails(1, "did you mean 405B?", "check %s --model.flavor=404B", recipe);
    ct_test_fails(1, "training.seq_len = 65 exceeds the model's longest sequence, 64",
                  "train %s --dump_folder=%s --training.seq_len=65", recipe, run);
    ct_test_fails(1, "/nowhere/plugin.so", "train %s --dump_folder=%s --device.platform=/nowhere/plugin.so", recipe,
                  run);
    ct_test_fails(1, tokens, "train %s --dump_folder=%s --device.platform=%s", recipe, run, tokens);
    ct_test_fails(1, "[any, 7], but has [40, 9]", "train %s --dump_folder=%s --training.seq_len=6", recipe, run);

    ct_test_run both = ct_test_start("train %s --dump_folder=%s --training.stepz=3 --optimizer.lr=fast", recipe, run);
    ct_test_wait(&both);
    ct_test_expect(&both, 1, "training.stepz");
    ct_test_expect(&both, 1, "optimizer.lr must be");
    ct_test_run_free(&both);
    assert_false(ct_path_exists(run));
}

static void test_ten_mistakes(void **state)
{
    (void)state;
    const char *path = ct_test_path("ten.toml");
    ct_test_write(path, "dump_foldr = \"x\"\n"
                        "[model]\n"
                        "name = \"lama3\"\n"
                        "flavor = 8\n"
                        "[training]\n"
                        "seq_len = 0\n"
                        "steps = \"many\"\n"
                        "dataset = \"texts\"\n"
                        "max_norm = -1.0\n"
                        "[optimizer]\n"
                        "beta1 = 1.0\n"
                        "lrr = 1.0\n"
                        "[lr_sheduler]\n"
                        "warmup_steps = 3\n"
                        "[checkpoint]\n"
                        "enable = 1\n");
    static const char *const wanted[] = {"ten.toml:1",  "dump_foldr",  "ten.toml:3",  "lama3", "ten.toml:4",  "flavor",
                                         "ten.toml:6",  "seq_len",     "ten.toml:7",  "steps", "ten.toml:8",  "texts",
                                         "ten.toml:9",  "max_norm",    "ten.toml:11", "beta1", "ten.toml:12", "lrr",
                                         "lr_sheduler", "ten.toml:16", "enable"};
    static const char *const verbs[] = {"check", "train"};
    for (size_t v = 0; v < CT_COUNT(verbs); v++) {
        ct_test_run run = ct_test_start("%s %s", verbs[v], path);
        ct_test_wait(&run);
        for (size_t i = 0; i < CT_COUNT(wanted); i++) ct_test_expect(&run, 1, wanted[i]);
        ct_test_run_free(&run);
    }
}

/* ---- tokens ---- */

static void test_tokens(void **state)
{
    (void)state;
    const char *output = ct_test_path("tokens.out");
    expect_ok(ct_file_write(output, "before", 6));
    static const int32_t bad[] = {VOCAB, -1};
    for (size_t i = 0; i < CT_COUNT(bad); i++) {
        char found[64];
        snprintf(found, sizeof(found), "%d", bad[i]);
        const char *path = write_tokens("bad", 4, 2, bad[i]);
        ct_test_fails(1, found, "score --model=%s --tokens=%s --output=%s", folder, path, output);
        const char *run = ct_test_path("bad.%zu", i);
        ct_test_fails(1, found, "train %s --dump_folder=%s --training.dataset_path=%s", recipe, run, path);
        size_t num_steps; /* the steps before the bad row are done, and recorded */
        free(ct_test_metrics(run, &num_steps));
        assert_int_equal(num_steps, 2);
    }
    const char *path = write_tokens("ignored", 1, 0, -100);
    ct_test_fails(1, "all labels are -100", "score --model=%s --tokens=%s --output=%s", folder, path, output);
    path = write_tokens("ignored", 4, 1, -100);
    ct_test_fails(1, "step 2: all labels of the batch are -100", "train %s --dump_folder=%s --training.dataset_path=%s",
                  recipe, ct_test_path("ignored"), path);
    ct_test_fails(1, "good.toml", "score --model=%s --tokens=%s --output=%s", folder, recipe, output);
    ct_test_fails(1, "tokens", "score --model=%s --tokens=%s/model.safetensors --output=%s", folder, folder, output);
    ct_test_fails(2, "--model, --tokens and --output are required", "score --model=%s", folder);
    ct_test_fails(1, "/nowhere/out", "score --model=%s --tokens=%s --output=/nowhere/out", folder, tokens);
    size_t size;
    char *bytes = ct_test_read(output, &size);
    assert_true(size == 6 && !memcmp(bytes, "before", 6));
    free(bytes);
    assert_false(ct_test_folder_has(ct_test_world(), "tokens.out."));
}

/* ---- numbers that leave their range ---- */

static void test_not_finite(void **state)
{
    (void)state;
    const char *run = ct_test_path("wild");
    ct_test_run wild = ct_test_start("train %s --dump_folder=%s --optimizer.lr=1e30 --checkpoint.enable "
                                     "--checkpoint.interval=1",
                                     recipe, run);
    ct_test_wait(&wild);
    ct_test_expect(&wild, 1, "loss and gradient norm must be finite");
    const char *told = strstr(wild.err, "train: step ");
    assert_non_null(told);
    int64_t step = strtoll(told + strlen("train: step "), NULL, 10), latest;
    ct_test_run_free(&wild);
    assert_true(step > 1 && step < 12);
    const char *checkpoints = ct_test_path("wild/checkpoint");
    expect_ok(ct_checkpoint_latest(checkpoints, &(ct_checkpoint_open_opts){.verify = true}, &latest));
    assert_int_equal(latest, step - 1);
    ct_checkpoint *checkpoint;
    expect_ok(ct_checkpoint_open(checkpoints, latest, NULL, &checkpoint));
    for (size_t i = 0; i < ct_checkpoint_num_tensors(checkpoint); i++) {
        ct_test_values values = ct_test_checkpoint_tensor(checkpoint, ct_checkpoint_at(checkpoint, i)->name);
        for (int64_t j = 0; j < values.count; j++) assert_true(isfinite(values.data[j]));
        free(values.data);
    }
    ct_checkpoint_close(checkpoint);
    size_t num_steps;
    free(ct_test_metrics(run, &num_steps));
    assert_int_equal(num_steps, step - 1);
}

/* ---- folders that cannot be written ---- */

static void test_folders(void **state)
{
    (void)state;
    ct_test_fails(1, "good.toml", "train %s --dump_folder=%s", recipe, recipe);
    ct_test_fails(1, "/proc/none", "train %s --dump_folder=/proc/none", recipe);
}

/* A small file system that is full, or read-only; needs the right to mount one. */
static bool mount_small(const char *path, const char *options)
{
    expect_ok(ct_dir_make(path));
    if (!mount("tmpfs", path, "tmpfs", 0, options)) return true;
    print_message("cannot mount a file system (%s)\n", strerror(errno));
    return false;
}

static void test_full_disk(void **state)
{
    (void)state;
    const char *disk = ct_test_path("disk"), *run = ct_test_path("disk/run");
    if (!mount_small(disk, "size=3m")) skip();
    /* a step is about 0.9 MB, so the fourth has no room; training goes on, the steps before stay, and nothing is left
     * of those that failed; that the last one is not saved is an error */
    const char *options = "--checkpoint.enable --checkpoint.interval=1 --checkpoint.keep_latest_k=0 "
                          "--checkpoint.last_save_model_only=false --metrics.log_freq=1";
    static const char *const modes[] = {"disabled", "async", "async_with_pinned_mem"};
    for (size_t i = 0; i < CT_COUNT(modes); i++) {
        expect_ok(ct_dir_remove(run));
        ct_test_run full =
            ct_test_start("train %s --dump_folder=%s --checkpoint.async_mode=%s %s", recipe, run, modes[i], options);
        ct_test_wait(&full);
        ct_test_expect(&full, 1, "No space left on device");
        ct_test_expect(&full, 1, "Step 4 could not be saved");
        ct_test_expect(&full, 1, "the newest step that this run has saved is step 3");
        ct_test_expect(&full, 1, "ctitan train: cannot write ");
        ct_test_run_free(&full);
        size_t num_done;
        free(ct_test_metrics(run, &num_done));
        assert_int_equal(num_done, 12);
    }
    int64_t latest, *steps;
    size_t num_steps;
    const char *checkpoints = ct_test_path("disk/run/checkpoint");
    expect_ok(ct_checkpoint_latest(checkpoints, &(ct_checkpoint_open_opts){.verify = true}, &latest));
    expect_ok(ct_checkpoint_list(checkpoints, &steps, &num_steps));
    free(steps);
    assert_true(latest >= 1 && num_steps == (size_t)latest);
    char **names;
    expect_ok(ct_dir_list(checkpoints, &names, &num_steps));
    assert_int_equal(num_steps, latest);
    ct_names_free(names, num_steps);
    /* with room again, the same command ends as if nothing had been */
    assert_int_equal(mount("tmpfs", disk, "tmpfs", MS_REMOUNT, "size=40m"), 0);
    ct_test_ok("train %s --dump_folder=%s %s", recipe, run, options);
    const char *other = ct_test_path("disk/other");
    ct_test_ok("train %s --dump_folder=%s %s --checkpoint.interval=12", recipe, other, options);
    ct_test_same_checkpoints(checkpoints, ct_test_path("disk/other/checkpoint"), 12);

    /* metrics: a disk with room for a page or two */
    assert_int_equal(umount(disk), 0);
    assert_true(mount_small(disk, "size=64k"));
    size_t filler = 48 << 10;
    char *zeros = ct_alloc_zeroed(1, filler);
    expect_ok(ct_file_write(ct_test_path("disk/filler"), zeros, filler));
    free(zeros);
    ct_test_run full = ct_test_start("train %s --dump_folder=%s --training.steps=400", recipe, run);
    ct_test_wait(&full);
    ct_test_expect(&full, 0, "metrics.jsonl: No space left on device; training goes on");
    ct_test_expect(&full, 0, "metrics.jsonl lacks its last lines");
    ct_test_run_free(&full);
    size_t num_lines; /* what is there is whole lines */
    free(ct_test_metrics(run, &num_lines));
    assert_true(num_lines > 0 && num_lines < 400);

    /* a full cache of programs is no reason not to run */
    assert_int_equal(unlink(ct_test_path("disk/run/metrics.jsonl")), 0);
    ct_test_ok("train %s --dump_folder=%s --training.steps=2 --compile.cache_dir=%s", recipe, ct_test_path("uncached"),
               ct_test_path("disk/cache"));

    assert_int_equal(mount("tmpfs", disk, "tmpfs", MS_REMOUNT | MS_RDONLY, "size=64k"), 0);
    ct_test_fails(1, "Read-only file system", "train %s --dump_folder=%s", recipe, ct_test_path("disk/new"));
    ct_test_fails(1, "Read-only file system", "score --model=%s --tokens=%s --output=%s", folder, tokens,
                  ct_test_path("disk/out"));
    assert_int_equal(umount(disk), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_weights),   cmocka_unit_test(test_recipe),     cmocka_unit_test(test_ten_mistakes),
        cmocka_unit_test(test_tokens),    cmocka_unit_test(test_not_finite), cmocka_unit_test(test_folders),
        cmocka_unit_test(test_full_disk),
    };
    return cmocka_run_group_tests(tests, make_input, free_input);
}
