/* `ctitan plan` with the CPU plugin: reports, entries that are found again, sweeps that go on after being killed,
 * programs written and read, comparisons, executables saved and loaded, and what is refused.
 */
#include <signal.h>
#include <unistd.h>

#include "formats/json.h"
#include "support.h"

static const char *recipe(void)
{
    static const char *path;
    if (path) return path;
    path = ct_test_path("tiny.toml");
    char *config = ct_path_join(ct_test_path("model"), "config.json");
    ct_test_write(config, "{\"model_type\": \"qwen3\", \"hidden_size\": 32, \"num_hidden_layers\": 1, "
                          "\"num_attention_heads\": 4, \"intermediate_size\": 48, \"vocab_size\": 258}");
    free(config);
    /* programs are not run here, or not for long: what compiles fast will do */
    ct_test_write(path,
                  "[model]\nname = \"qwen3\"\nflavor = \"%s\"\n[training]\nseq_len = 16\nlocal_batch_size = 2\n"
                  "steps = 3\ndataset_path = \"%s\"\n[lr_scheduler]\nwarmup_steps = 1\n[metrics]\nlog_freq = 1\n"
                  "[parallelism]\nfsdp_replicate_below = 1\n"
                  "[compile.xla_flags]\nxla_backend_optimization_level = 0\n"
                  "xla_llvm_disable_expensive_passes = true\n",
                  ct_test_path("model"), CT_SOURCE_DIR "/README.md");
    return path;
}

static ct_test_run run_ok(const char *format, const char *argument)
{
    ct_test_run run = ct_test_start(format, recipe(), argument);
    ct_test_wait(&run);
    ct_test_expect(&run, 0, "");
    return run;
}

static void has(const ct_test_run *run, const char *text)
{
    if (!strstr(run->out, text)) fail_msg("wanted \"%s\" in:\n%s", text, run->out);
}

static ct_json *parse(const ct_test_run *run)
{
    ct_json *json;
    expect_ok(ct_json_parse(run->out, strlen(run->out), "stdout", &json));
    return json;
}

static int64_t integer(ct_json_value object, const char *key)
{
    int64_t value;
    expect_ok(ct_json_need_int(object, key, &value));
    return value;
}

static void test_report(void **state)
{
    (void)state;
    ct_test_run run = run_ok("plan %s --topology=cpu:%s", "2");
    has(&run, "on 2 devices of the kind cpu");
    has(&run, "how much \"cpu\" has is not known");
    has(&run, "No prediction: programs for \"cpu\" carry no estimates of time");
    has(&run, "exp_avg.model.embed_tokens.weight");
    has(&run, "\n  all_gather ");
    has(&run, "Compiled in ");
    assert_null(strstr(run.out, "at an earlier time"));
    ct_test_run_free(&run);

    run = run_ok("plan %s --topology=cpu:%s", "2");
    has(&run, "at an earlier time");
#if !defined(__SANITIZE_ADDRESS__)
    assert_true(run.seconds < 1);
#endif
    ct_test_run_free(&run);
    run = run_ok("plan %s --no-cache --topology=cpu:%s", "2");
    assert_null(strstr(run.out, "at an earlier time"));
    ct_test_run_free(&run);
}

/* An entry that is damaged is compiled again, and what decides the program decides the entry. */
static void test_entries(void **state)
{
    (void)state;
    const char *folder = ct_test_path("entries");
    ct_test_run run = run_ok("plan %s --topology=cpu:1 --json --folder=%s", folder);
    ct_json *json = parse(&run);
    const char *key;
    expect_ok(ct_json_need_string(ct_json_root(json), "entry", &key));
    char *path = ct_asprintf("%s/%s.json", folder, key), *program = ct_asprintf("%s/%s.hlo", folder, key);
    assert_true(ct_path_exists(path) && ct_path_exists(program));
    ct_test_run_free(&run);
    ct_test_write(path, "{\"version\": 1, \"kind\": 3");
    run = run_ok("plan %s --topology=cpu:1 --json --folder=%s", folder);
    assert_non_null(strstr(run.err, "compiling again"));
    has(&run, "\"was_there\": false");
    ct_test_run_free(&run);
    run = run_ok("plan %s --topology=cpu:1 --json --folder=%s", folder);
    has(&run, "\"was_there\": true");
    ct_test_run_free(&run);
    expect_ok(ct_dir_remove(program)); /* the other half */
    run = run_ok("plan %s --topology=cpu:1 --json --folder=%s", folder);
    has(&run, "\"was_there\": false");
    ct_test_run_free(&run);
    run =
        run_ok("plan %s --topology=cpu:1 --json --compile.xla_flags.xla_cpu_enable_fast_math=true --folder=%s", folder);
    has(&run, "\"was_there\": false");
    has(&run, "\"xla_cpu_enable_fast_math=true\"");
    ct_test_run_free(&run);
    free(program);
    free(path);
    ct_json_free(json);
}

static void test_json(void **state)
{
    (void)state;
    ct_test_run run = run_ok("plan %s --json --lines=3 --topology=cpu:%s", "2");
    ct_json *json = parse(&run);
    ct_json_value root = ct_json_root(json), memory = ct_json_get(root, "memory");
    assert_int_equal(integer(root, "num_devices"), 2);
    assert_int_equal(integer(root, "tokens_per_step"), 2 * 16 * 2);
    assert_true(integer(memory, "argument_bytes") > 0 && integer(memory, "alias_bytes") > 0);
    assert_int_equal(integer(root, "used_bytes"), integer(memory, "argument_bytes") + integer(memory, "temp_bytes") +
                                                      integer(memory, "output_bytes") - integer(memory, "alias_bytes") +
                                                      integer(memory, "code_bytes"));
    assert_true(integer(root, "compile_host_bytes") > 1 << 20);
    assert_int_equal(ct_json_size(ct_json_get(root, "largest_arrays")), 3);
    assert_true(integer(ct_json_get(root, "wire_bytes"), "all_gather") > 0);
    ct_json_free(json);
    ct_test_run_free(&run);
}

static void test_programs(void **state)
{
    (void)state;
    const char *program = ct_test_path("step.hlo"), *text = ct_test_path("step.txt");
    ct_test_run run = run_ok("plan %s --topology=cpu:2 --hlo=%s", program);
    ct_test_run_free(&run);
    run = run_ok("plan %s --topology=cpu:2 --hlo=%s", text);
    ct_test_run_free(&run);
    char *printed = ct_test_read(text, NULL);
    assert_int_equal(strncmp(printed, "HloModule", 9), 0);
    free(printed);

    run = ct_test_start("plan --from-hlo=%s --chip=v6e", program);
    ct_test_wait(&run);
    ct_test_expect(&run, 0, "");
    has(&run, "Predicted for v6e");
    has(&run, "exp_avg.model.embed_tokens.weight");
    has(&run, "Without a price"); /* the CPU's program has no estimates */
    ct_test_run_free(&run);
    ct_test_fails(1, "--chip=v6e or --topology=v6e:4x4 says what it is for", "plan --from-hlo=%s", program);
    ct_test_fails(1, "must be one of v4, v5e, v5p, v6e or tpu7x, or a slice", "plan --from-hlo=%s --chip=h100",
                  program);
    ct_test_fails(1, "is for 2 devices", "plan --from-hlo=%s --topology=v6e:4x4", program);
    ct_test_fails(1, "/nowhere/p.hlo", "plan --from-hlo=/nowhere/p.hlo --chip=v6e");
    ct_test_ok("check %s --program=%s", recipe(), ct_test_path("stable.mlir"));
    ct_test_fails(1, "StableHLO", "plan --from-hlo=%s --chip=v6e", ct_test_path("stable.mlir"));
}

static void test_compare(void **state)
{
    (void)state;
    const char *other = ct_test_path("other.toml"), *saved = ct_test_path("one.json");
    char *text = ct_test_read(recipe(), NULL);
    ct_test_write(other, "%s[activation_checkpoint]\nmode = \"none\"\n", text);
    free(text);
    ct_test_run run = ct_test_start("plan %s %s --topology=cpu:2", recipe(), other);
    ct_test_wait(&run);
    ct_test_expect(&run, 0, "");
    has(&run, "memory.temp_bytes");
    has(&run, "  x ");
    assert_null(strstr(run.out, "memory.argument_bytes")); /* the same */
    ct_test_run_free(&run);

    run = run_ok("plan %s --json --topology=cpu:%s", "1");
    ct_test_write(saved, "%s", run.out);
    ct_test_run_free(&run);
    run = ct_test_start("plan %s %s --topology=cpu:2", saved, recipe());
    ct_test_wait(&run);
    ct_test_expect(&run, 0, "");
    const char *line = strstr(run.out, "memory.argument_bytes");
    assert_non_null(line);
    const char *ratio = strstr(line, "  x ");
    assert_non_null(ratio);
    double found = strtod(ratio + 4, NULL);
    assert_true(found > 0.49 && found < 0.55);
    ct_test_run_free(&run);
    run = ct_test_start("plan %s %s", saved, saved);
    ct_test_wait(&run);
    ct_test_expect(&run, 0, "");
    has(&run, "they do not differ");
    ct_test_run_free(&run);
}

static size_t num_entries(const char *folder)
{
    char **names;
    size_t count, found = 0;
    if (!ct_path_is_dir(folder)) return 0;
    expect_ok(ct_dir_list(folder, &names, &count));
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(names[i]);
        found += length > 5 && !strcmp(names[i] + length - 5, ".json");
    }
    ct_names_free(names, count);
    return found;
}

/* Killed after its first point, a sweep begins where it was. */
static void test_sweep(void **state)
{
    (void)state;
    static const char line[] = "plan %s --topology=cpu:2 --sweep training.local_batch_size=1,4 --sweep "
                               "activation_checkpoint.save=attention_out+query, --folder=%s %s";
    const char *folder = ct_test_path("sweep");
    ct_test_run run = ct_test_start(line, recipe(), folder, "");
    while (!num_entries(folder)) usleep(2000);
    kill(run.process, SIGKILL);
    ct_test_wait(&run);
    ct_test_run_free(&run);
    size_t kept = num_entries(folder);
    assert_in_range(kept, 1, 3);

    run = ct_test_start(line, recipe(), folder, "");
    ct_test_wait(&run);
    ct_test_expect(&run, 0, "4 of 4: training.local_batch_size=4 activation_checkpoint.save=");
    has(&run, "No best: there is no prediction");
    size_t stars = 0;
    for (const char *at = run.out; (at = strstr(at, "*  --training")); at++) stars++;
    assert_int_equal(stars, kept);
    assert_int_equal(num_entries(folder), 4);
    ct_test_run_free(&run);

    run = ct_test_start(line, recipe(), folder, "--json");
    ct_test_wait(&run);
    ct_test_expect(&run, 0, "");
    ct_json *json = parse(&run);
    ct_json_value points = ct_json_get(ct_json_root(json), "points");
    assert_int_equal(ct_json_size(points), 4);
    int64_t last = 0;
    for (size_t i = 0; i < 4; i += 2) { /* more sequences, more memory */
        int64_t used = integer(ct_json_at(points, i), "used_bytes");
        assert_true(used > last);
        last = used;
    }
    ct_json_free(json);
    ct_test_run_free(&run);
}

static void test_sweep_mistakes(void **state)
{
    (void)state;
    static const struct {
        const char *flags, *message;
        int code;
    } rows[] = {
        {"--sweep training.local_batch_size=1,0", "training.local_batch_size must be a whole number of at least 1", 1},
        {"--sweep training.local_batch_sise=1", "did you mean training.local_batch_size?", 1},
        {"--sweep training.local_batch_size", "--sweep must be key=value,value", 1},
        {"--sweep training.seq_len=16,16", "has the value \"16\" twice", 1},
        {"--sweep training.seq_len=16 --sweep training.seq_len=32", "has the key training.seq_len twice", 1},
        {"--sweep training.seq_len=16,65536", "exceeds the model's longest sequence", 1},
        {"--sweep parallelism.tensor_parallel_degree=1,3", "does not divide 2", 1},
        {"--sweep activation_checkpoint.save=nothing", "must list values that a block names", 1},
        {"--sweep training.seq_len=16 --hlo=x", "--hlo is for the plan of one recipe", 2},
        {"other.toml --sweep training.seq_len=16", "--sweep takes one recipe", 2},
        {"--topology=cpu:x", "wants a number of devices", 1},
        {"--topology=v9:2x2", "a topology must be a chip", 1},
        {"--topolgy=v6e:2x2", "did you mean --topology?", 2},
        {"--try-seconds=-1", "must not be negative", 2},
        {"--from-hlo=x", "--from-hlo takes no recipe", 2},
    };
    const char *folder = ct_test_path("never");
    for (size_t i = 0; i < CT_COUNT(rows); i++)
        ct_test_fails(rows[i].code, rows[i].message, "plan %s --topology=cpu:2 --folder=%s %s", recipe(), folder,
                      rows[i].flags);
    assert_false(ct_path_exists(folder));
    ct_test_fails(2, "a recipe is needed", "plan");
    ct_test_fails(1, "/nowhere.toml", "plan /nowhere.toml");
}

/* A point that the compiler does not take is told, and others go on. */
static void test_sweep_failure(void **state)
{
    (void)state;
    ct_test_run run = ct_test_start("plan %s --topology=cpu:1 --sweep compile.xla_flags.xla_no_such_flag=1", recipe());
    ct_test_wait(&run);
    ct_test_expect(&run, 0, "xla_no_such_flag");
    has(&run, "failed");
    has(&run, "None of them fits");
    ct_test_run_free(&run);
    ct_test_fails(1, "xla_no_such_flag", "plan %s --topology=cpu:1 --compile.xla_flags.xla_no_such_flag=1", recipe());
}

static void test_executable(void **state)
{
    (void)state;
    const char *step = ct_test_path("saved/step"), *moved = ct_test_path("moved");
    expect_ok(ct_dir_make(ct_test_path("saved")));
    ct_test_ok("plan %s --topology=cpu:2 --save=%s", recipe(), step);
    ct_test_ok("train %s --device.count=2 --dump_folder=%s", recipe(), ct_test_path("compiled"));
    ct_test_run run =
        ct_test_start("train %s --device.count=2 --compile.executable=%s --training.steps=2 --dump_folder=%s", recipe(),
                      step, ct_test_path("loaded"));
    ct_test_wait(&run); /* what is of the run may differ */
    ct_test_expect(&run, 0, "");
    assert_true(strstr(run.out, "Loaded the training step") || strstr(run.err, "Loaded the training step"));
    ct_test_run_free(&run);
    size_t count, count_loaded;
    ct_test_step *compiled = ct_test_metrics(ct_test_path("compiled"), &count);
    ct_test_step *loaded = ct_test_metrics(ct_test_path("loaded"), &count_loaded);
    assert_int_equal(count_loaded, 2);
    for (size_t i = 0; i < count_loaded; i++) assert_true(compiled[i].loss == loaded[i].loss || i); /* the same bits */
    free(compiled);
    free(loaded);

    static const struct {
        const char *flags, *difference;
    } rows[] = {
        {"--device.count=2 --training.seq_len=8", "training.seq_len is 16 there and 8 here"},
        {"--device.count=2 --optimizer.beta1=0.8", "optimizer.beta1 is 0.9 there and 0.8 here"},
        {"--device.count=2 --compile.xla_flags.xla_cpu_enable_fast_math=true",
         "the flag xla_cpu_enable_fast_math is not set there and true here"},
        {"--device.count=1", "2 devices there and 1 here"},
        {"--device.count=2 --compile.executable=/nowhere/step", "/nowhere/step"},
    };
    for (size_t i = 0; i < CT_COUNT(rows); i++)
        ct_test_fails(1, rows[i].difference, "train %s --compile.executable=%s --dump_folder=%s %s", recipe(), step,
                      ct_test_path("other"), rows[i].flags);

    /* damaged, and without its description */
    size_t size;
    char *bytes = ct_test_read(step, &size);
    expect_ok(ct_file_write(moved, bytes, size));
    ct_test_fails(1, "ctitan plan --save writes beside it",
                  "train %s --device.count=2 --compile.executable=%s --dump_folder=%s", recipe(), moved,
                  ct_test_path("other"));
    bytes[size / 2] ^= 4;
    expect_ok(ct_file_write(step, bytes, size));
    ct_test_fails(1, "damaged", "train %s --device.count=2 --compile.executable=%s --dump_folder=%s", recipe(), step,
                  ct_test_path("other"));
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_report),         cmocka_unit_test(test_entries),       cmocka_unit_test(test_json),
        cmocka_unit_test(test_programs),       cmocka_unit_test(test_compare),       cmocka_unit_test(test_sweep),
        cmocka_unit_test(test_sweep_mistakes), cmocka_unit_test(test_sweep_failure), cmocka_unit_test(test_executable),
    };
    return cmocka_run_group_tests(tests, NULL, ct_test_world_free);
}
