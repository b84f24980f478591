/* A run that is killed or stopped, and resumed, ends with the bits of one that was not: parameters, moments, counts,
 * data position and metrics; whether steps are saved in the foreground or the background. Runs on text that is shuffled
 * and does not fill an epoch evenly, with gradient accumulation and a learning rate that changes at every step.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "reference.h"
#include "support.h"

enum { STEPS = 24, INTERVAL = 2, NUM_KILLS = 20 };

static char *unbroken; /* dump folder of the run that all others are compared with */

static const char *recipe(void)
{
    char *path = ct_test_path("recipe.toml");
    if (ct_path_exists(path)) return path;
    ct_test_write(ct_test_path("model/config.json"),
                  "{\"model_type\": \"qwen3\", \"hidden_size\": 32, \"num_hidden_layers\": 2, "
                  "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"head_dim\": 8, "
                  "\"intermediate_size\": 320, \"vocab_size\": 1300, \"max_position_embeddings\": 64, "
                  "\"tie_word_embeddings\": false, \"rope_theta\": 10000}\n");
    char text[1500];
    for (uint32_t i = 0; i < sizeof(text) - 1; i++)
        text[i] = "etaoin shrdlu\n"[(int)((ct_test_random(5, i) + 1) * 6.999)];
    text[sizeof(text) - 1] = 0;
    ct_test_write(ct_test_path("text.txt"), "%s", text);
    ct_test_write(path,
                  "[model]\nname = \"qwen3\"\nflavor = \"%s\"\n"
                  "[training]\nlocal_batch_size = 2\nglobal_batch_size = 4\nseq_len = 16\nsteps = %d\n"
                  "dataset = \"text\"\ndataset_path = \"%s\"\n"
                  "[lr_scheduler]\nwarmup_steps = 5\n[metrics]\nlog_freq = 1\n"
                  "[checkpoint]\nenable = true\ninterval = %d\nkeep_latest_k = 0\nlast_save_model_only = false\n",
                  ct_test_path("model"), STEPS, ct_test_path("text.txt"), INTERVAL);
    return path;
}

static const char *const MODES[] = {"disabled", "async", "async_with_pinned_mem"};

static ct_test_run start_mode(const char *dump_folder, const char *mode)
{
    return ct_test_start("train %s --dump_folder=%s --checkpoint.async_mode=%s", recipe(), dump_folder, mode);
}

static ct_test_run start(const char *dump_folder)
{
    return start_mode(dump_folder, "disabled");
}

/* Lines of metrics.jsonl so far. */
static int num_lines(const char *dump_folder)
{
    char *path = ct_path_join(dump_folder, "metrics.jsonl"), *text;
    size_t size;
    int lines = 0;
    if (ct_path_exists(path)) {
        expect_ok(ct_file_read(path, &text, &size));
        for (size_t i = 0; i < size; i++) lines += text[i] == '\n';
        free(text);
    }
    free(path);
    return lines;
}

static bool is_running(const ct_test_run *run)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)run->process);
    char state = 'Z', text[512] = "";
    int descriptor = open(path, O_RDONLY);
    if (descriptor >= 0) {
        if (read(descriptor, text, sizeof(text) - 1) > 0) {
            const char *end = strrchr(text, ')');
            if (end && end[1]) state = end[2];
        }
        close(descriptor);
    }
    return state != 'Z';
}

static void nap(long microseconds)
{
    nanosleep(&(struct timespec){.tv_nsec = microseconds * 1000}, NULL);
}

/* Waits until metrics.jsonl has `lines` lines, or with lines < 0 until a save is under way; false: the run ended. */
static bool wait_for(const ct_test_run *run, const char *dump_folder, int lines)
{
    const char *checkpoints = ct_test_path("%s/checkpoint", strrchr(dump_folder, '/') + 1);
    while (is_running(run)) {
        if (lines >= 0 && num_lines(dump_folder) >= lines) return true;
        if (lines < 0 && ct_path_is_dir(checkpoints)) {
            char **names;
            size_t num_names;
            bool saving = false;
            expect_ok(ct_dir_list(checkpoints, &names, &num_names));
            for (size_t i = 0; i < num_names; i++) saving = saving || strstr(names[i], ".tmp-");
            ct_names_free(names, num_names);
            if (saving) return true;
        }
        nap(200);
    }
    return false;
}

static void expect_same_end(const char *dump_folder)
{
    char *a = ct_path_join(unbroken, "checkpoint"), *b = ct_path_join(dump_folder, "checkpoint");
    ct_test_same_checkpoints(a, b, STEPS);
    free(a);
    free(b);
    size_t num_expected, num_found;
    ct_test_step *expected = ct_test_metrics(unbroken, &num_expected),
                 *found = ct_test_metrics(dump_folder, &num_found);
    assert_int_equal(num_expected, STEPS);
    assert_int_equal(num_found, STEPS);
    for (size_t i = 0; i < STEPS; i++) {
        assert_int_equal(found[i].step, (int64_t)i + 1);
        assert_int_equal(found[i].n_tokens_seen, expected[i].n_tokens_seen);
        assert_true(found[i].loss == expected[i].loss && found[i].grad_norm == expected[i].grad_norm &&
                    found[i].lr == expected[i].lr);
    }
    assert_true(expected[STEPS - 1].loss < expected[0].loss);
    free(expected);
    free(found);
}

static int make_unbroken(void **state)
{
    (void)state;
    unbroken = ct_test_path("unbroken");
    ct_test_run run = start(unbroken);
    ct_test_wait(&run);
    ct_test_expect(&run, 0, "");
    ct_test_run_free(&run);
    return 0;
}

static void finish(const char *dump_folder)
{
    ct_test_run run = start(dump_folder);
    ct_test_wait(&run);
    ct_test_expect(&run, 0, "");
    ct_test_run_free(&run);
    expect_same_end(dump_folder);
}

/* The same bits whoever saves, and every step that was saved on the way holds what it should. */
static void test_same_in_every_mode(void **state)
{
    (void)state;
    for (size_t i = 0; i < CT_COUNT(MODES); i++) {
        const char *folder = ct_test_path("again.%zu", i);
        ct_test_run run = start_mode(folder, MODES[i]);
        ct_test_wait(&run);
        ct_test_expect(&run, 0, "");
        assert_int_equal(strstr(run.err, "in the background") != NULL, i > 0);
        ct_test_run_free(&run);
        expect_same_end(folder);
        for (int64_t step = INTERVAL; step <= STEPS; step += INTERVAL)
            ct_test_same_checkpoints(ct_test_path("unbroken/checkpoint"), ct_test_path("again.%zu/checkpoint", i),
                                     step);
    }
}

/* Killed at twenty moments of all kinds, the modes of saving in turn; begun anew in another folder whenever it gets to
 * its end before that. */
static void test_killed(void **state)
{
    (void)state;
    int num_kills = 0, num_ends = 0, last = 0;
    const char *folder = ct_test_path("killed.0");
    while (num_kills < NUM_KILLS) {
        ct_test_run run = start_mode(folder, MODES[num_kills % 3]);
        /* a step or more further than where it resumes, then a random moment within a few steps */
        bool alive = wait_for(&run, folder, CT_MIN(last + 1 + num_kills % 3, STEPS));
        nap((long)((ct_test_random(9, (uint32_t)num_kills) + 1) * 4000));
        if (alive) kill(run.process, SIGKILL);
        ct_test_wait(&run);
        bool ended = run.code == 0;
        if (!ended) ct_test_expect(&run, 128 + SIGKILL, "");
        num_kills += !ended;
        ct_test_run_free(&run);
        last = num_lines(folder);
        if (!ended) continue;
        expect_same_end(folder);
        folder = ct_test_path("killed.%d", ++num_ends);
        last = 0;
    }
    print_message("killed %d times, %d ends on the way\n", num_kills, num_ends);
    finish(folder);
}

/* Killed while a save is under way: what it had begun is not taken for a step, and is gone after the next save. */
static void test_killed_in_save(void **state)
{
    (void)state;
    const char *folder = ct_test_path("in_save"), *checkpoints = ct_test_path("in_save/checkpoint");
    bool left = false;
    for (int try = 0; try < 12 && !left; try++) {
        ct_test_run run = start_mode(folder, MODES[try % 3]);
        if (!wait_for(&run, folder, -1)) break;
        kill(run.process, SIGKILL);
        ct_test_wait(&run);
        ct_test_run_free(&run);
        char **names;
        size_t num_names;
        expect_ok(ct_dir_list(checkpoints, &names, &num_names));
        for (size_t i = 0; i < num_names; i++) left = left || strstr(names[i], ".tmp-");
        ct_names_free(names, num_names);
    }
    if (!left) fail_msg("no kill hit a save");
    finish(folder);
    char **names;
    size_t num_names;
    expect_ok(ct_dir_list(checkpoints, &names, &num_names));
    for (size_t i = 0; i < num_names; i++) assert_null(strstr(names[i], ".tmp-"));
    assert_int_equal(num_names, STEPS / INTERVAL);
    ct_names_free(names, num_names);
}

static void test_stopped(void **state)
{
    (void)state;
    static const int signals[] = {SIGINT, SIGTERM};
    for (size_t i = 0; i < CT_COUNT(signals); i++) {
        const char *folder = ct_test_path("stopped.%zu", i);
        ct_test_run run = start_mode(folder, MODES[i]);
        assert_true(wait_for(&run, folder, 3));
        kill(run.process, signals[i]);
        ct_test_wait(&run);
        ct_test_expect(&run, 128 + signals[i], "ctitan train: stopped after step ");
        const char *told = strstr(run.err, "stopped after step ");
        int64_t step = strtoll(told + strlen("stopped after step "), NULL, 10), latest;
        assert_non_null(strstr(told, "is saved; the same command goes on from there"));
        expect_ok(ct_checkpoint_latest(ct_test_path("stopped.%zu/checkpoint", i), NULL, &latest));
        assert_int_equal(latest, step);
        assert_int_equal(num_lines(folder), step); /* every step that was done is recorded */
        ct_test_run_free(&run);
        finish(folder);
    }
}

static void flip_byte(const char *path)
{
    int descriptor = open(path, O_RDWR);
    unsigned char byte = 0;
    struct stat status;
    assert_true(descriptor >= 0 && fstat(descriptor, &status) == 0);
    off_t middle = status.st_size / 2;
    assert_int_equal(pread(descriptor, &byte, 1, middle), 1);
    byte ^= 64;
    assert_int_equal(pwrite(descriptor, &byte, 1, middle), 1);
    close(descriptor);
}

/* The newest steps damaged in every way: the run says so, and goes on from the newest that is whole. */
static void test_damaged(void **state)
{
    (void)state;
    const char *folder = ct_test_path("damaged");
    ct_test_ok("train %s --dump_folder=%s --training.steps=8 --lr_scheduler.total_steps=%d", recipe(), folder, STEPS);
    flip_byte(ct_test_path("damaged/checkpoint/step-8/state-00001.safetensors"));
    assert_int_equal(truncate(ct_test_path("damaged/checkpoint/step-6/state-00001.safetensors"), 1000), 0);
    assert_int_equal(unlink(ct_test_path("damaged/checkpoint/step-4/manifest.json")), 0);
    ct_test_run run = start(folder);
    ct_test_wait(&run);
    ct_test_expect(&run, 0, "WARNING - skipping step 8: ");
    ct_test_expect(&run, 0, "was changed: the hash of ");
    ct_test_expect(&run, 0, "WARNING - skipping step 6: ");
    ct_test_expect(&run, 0, "WARNING - skipping step 4: ");
    ct_test_expect(&run, 0, "checkpoint/step-2");
    ct_test_run_free(&run);
    expect_same_end(folder);

    ct_test_fails(1, "has no step 7", "train %s --dump_folder=%s --checkpoint.load_step=7 --training.steps=30",
                  recipe(), folder);
    flip_byte(ct_test_path("damaged/checkpoint/step-24/state-00001.safetensors"));
    ct_test_fails(1, "step-24/state-00001.safetensors was changed",
                  "train %s --dump_folder=%s --checkpoint.load_step=24 --training.steps=30", recipe(), folder);
    for (int step = INTERVAL; step <= STEPS; step += INTERVAL)
        assert_int_equal(unlink(ct_test_path("damaged/checkpoint/step-%d/manifest.json", step)), 0);
    ct_test_fails(1, "none of the 12 steps in ", "train %s --dump_folder=%s", recipe(), folder);
    assert_int_equal(num_lines(folder), STEPS); /* and nothing was lost by asking */
}

/* What does not fit the saved run is refused by name. */
static void test_other_run(void **state)
{
    (void)state;
    ct_test_write(ct_test_path("other.txt"), "%s", "another text, much too short to be the one that was saved before");
    ct_test_fails(1, "num_tokens", "train %s --dump_folder=%s --training.steps=30 --training.dataset_path=%s", recipe(),
                  unbroken, ct_test_path("other.txt"));
    ct_test_fails(1, "shuffle", "train %s --dump_folder=%s --training.steps=30 --training.shuffle=false", recipe(),
                  unbroken);
    ct_test_fails(1, "model.embed_tokens.weight must be f32 [",
                  "train %s --dump_folder=%s --training.steps=30 --model.flavor=debugmodel", recipe(), unbroken);
    ct_test_run run = ct_test_start("train %s --dump_folder=%s", recipe(), unbroken);
    ct_test_wait(&run);
    ct_test_expect(&run, 0, "Step 24 of 24 is done already");
    ct_test_run_free(&run);
    assert_int_equal(num_lines(unbroken), STEPS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_in_every_mode),
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_killed_in_save),
        cmocka_unit_test(test_stopped),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_other_run),
    };
    return cmocka_run_group_tests(tests, make_unbroken, ct_test_world_free);
}
