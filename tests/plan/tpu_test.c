/* `ctitan plan` for TPUs that are not here, with libtpu: Qwen3 0.6B cut to two scanned layers on two chips, programs
 * that do not fit and what is said of them, flags that are refused. Skipped, but for what is said of it, without
 * libtpu.
 */
#include <math.h>

#include "formats/json.h"
#include "support.h"

static const char *recipe(void)
{
    static const char *path;
    if (path) return path;
    path = ct_test_path("qwen3.toml");
    ct_test_write(path,
                  "[model]\nname = \"qwen3\"\nflavor = \"%s\"\n[training]\nseq_len = 512\nlocal_batch_size = 1\n"
                  "[activation_checkpoint]\nmode = \"full\"\n[device]\nplatform = \"tpu\"\n",
                  CT_SOURCE_DIR "/tests/plan/qwen3_0.6b_2layers");
    return path;
}

/* A model so small that libtpu takes seconds for it. */
static const char *tiny(void)
{
    static const char *path;
    if (path) return path;
    path = ct_test_path("tiny.toml");
    char *config = ct_path_join(ct_test_path("model"), "config.json");
    ct_test_write(config, "{\"model_type\": \"qwen3\", \"hidden_size\": 128, \"num_hidden_layers\": 1, "
                          "\"num_attention_heads\": 1, \"head_dim\": 128, \"num_key_value_heads\": 1, "
                          "\"intermediate_size\": 128, \"vocab_size\": 128, \"tie_word_embeddings\": true}");
    free(config);
    ct_test_write(path,
                  "[model]\nname = \"qwen3\"\nflavor = \"%s\"\n[training]\nseq_len = 128\nlocal_batch_size = 1\n"
                  "mixed_precision_param = \"float32\"\n[activation_checkpoint]\nmode = \"none\"\n",
                  ct_test_path("model"));
    return path;
}

/* Once per program: what is said without libtpu is a test of its own. */
static void need_libtpu(void)
{
    static int is_there = -1;
    if (is_there < 0) {
        ct_test_run run = ct_test_start("plan %s --topology=v5e:2x2 --device.topology=v5e:1x1", tiny());
        ct_test_wait(&run);
        is_there = !strstr(run.err, "no PJRT plugin for the platform");
        if (!is_there) ct_test_expect(&run, 1, "pip install libtpu==0.0.52 (Google's own licence)");
        ct_test_run_free(&run);
    }
    if (!is_there) skip();
}

static double number(ct_json_value object, const char *key)
{
    double value;
    expect_ok(ct_json_need_double(object, key, &value));
    return value;
}

static const char *string(ct_json_value object, const char *key)
{
    const char *value;
    expect_ok(ct_json_need_string(object, key, &value));
    return value;
}

static void check_plan(const char *topology, int num_devices, double peak_flops)
{
    ct_test_run run = ct_test_start("plan %s --json --topology=%s", recipe(), topology);
    ct_test_wait(&run);
    ct_test_expect(&run, 0, "");
    ct_json *json;
    expect_ok(ct_json_parse(run.out, strlen(run.out), topology, &json));
    ct_json_value root = ct_json_root(json), prediction = ct_json_get(root, "prediction");
    assert_string_equal(string(root, "verdict"), "fits");
    assert_int_equal(number(root, "num_devices"), num_devices);
    /* f32 weights and two moments, shared out, and a little padding */
    double state = 12 * number(root, "num_params") / num_devices,
           arguments = number(ct_json_get(root, "memory"), "argument_bytes");
    assert_true(arguments > state && arguments < 1.05 * state);

    static const char *const groups[] = {"matmul",  "elementwise",         "layout",
                                         "kernels", "collectives_exposed", "host_exposed"};
    static const char *const efficiencies[] = {"low", "mid", "high"};
    double before = INFINITY;
    for (size_t e = 0; e < CT_COUNT(efficiencies); e++) {
        double step = number(ct_json_get(prediction, "step_seconds"), efficiencies[e]), sum = 0;
        for (size_t g = 0; g < CT_COUNT(groups); g++)
            sum += number(ct_json_get(ct_json_get(prediction, "groups"), groups[g]), efficiencies[e]);
        assert_true(step > 0 && step <= before && fabs(sum - step) < 1e-6 * step);
        double mfu = number(ct_json_get(prediction, "mfu"), efficiencies[e]);
        double expected = number(root, "model_flops_per_step") / step / num_devices / peak_flops;
        assert_true(fabs(mfu - expected) < 1e-3 * expected && mfu < 1);
        before = step;
    }
    assert_true(ct_json_size(ct_json_get(prediction, "kernels")) >= 2); /* attention, there and back */
    bool gathers = false, scatters = false;
    for (ct_json_iter iter = ct_json_iterate(ct_json_get(prediction, "collectives")); ct_json_next(&iter);) {
        gathers |= !strcmp(string(iter.value, "kind"), "all_gather");
        scatters |= !strcmp(string(iter.value, "kind"), "reduce_scatter");
    }
    assert_true(gathers && scatters);
    print_message("%s: step %.2f ms at mid efficiency, temporaries %.0f MiB; compiled in %.0f s, %.0f s of processors, "
                  "%.0f MiB\n",
                  topology, 1e3 * number(ct_json_get(prediction, "step_seconds"), "mid"),
                  number(ct_json_get(root, "memory"), "temp_bytes") / (1 << 20), number(root, "compile_seconds"),
                  number(root, "compile_cpu_seconds"), number(root, "compile_host_bytes") / (1 << 20));
    ct_json_free(json);
    ct_test_run_free(&run);
}

static void test_v6e(void **state)
{
    (void)state;
    need_libtpu();
    check_plan("v6e:2x2", 4, 918e12);
}

static void test_v5e(void **state)
{
    (void)state;
    need_libtpu();
    check_plan("v5e:2x4", 8, 197e12);
}

static void has(const ct_test_run *run, const char *text)
{
    if (!strstr(run->out, text)) fail_msg("wanted \"%s\" in:\n%s", text, run->out);
}

/* The compiler refuses it; the nearest change that fits is found, compiled, and true. */
static void test_too_large(void **state)
{
    (void)state;
    need_libtpu();
    static const char line[] = "plan %s --topology=v5e:2x2 --training.local_batch_size=100000 %s";
    ct_test_run run = ct_test_start(line, tiny(), "--try-seconds=0");
    ct_test_wait(&run);
    ct_test_expect(&run, 1, "");
    has(&run, "It does not fit: a device needs about ");
    has(&run, "has 15.75 GiB for programs");
    has(&run, "The nearest change that fits by estimate, not compiled: ");
    has(&run, "No prediction: the compiler refused the program");
    ct_test_run_free(&run);

    run = ct_test_start(line, tiny(), "");
    ct_test_wait(&run);
    ct_test_expect(&run, 1, "");
    has(&run, "at an earlier time"); /* a refusal is kept, too */
    const char *nearest = strstr(run.out, "The nearest change that fits, compiled: ");
    if (!nearest) fail_msg("no nearest change in:\n%s", run.out);
    const char *flag = strstr(nearest, "(--");
    assert_non_null(flag);
    char *override = ct_asprintf("%.*s", (int)strcspn(flag + 1, ")"), flag + 1);
    print_message("%.*s\n", (int)strcspn(nearest, "\n"), nearest);
    ct_test_run_free(&run);
    run = ct_test_start(line, tiny(), override);
    ct_test_wait(&run);
    ct_test_expect(&run, 0, "");
    has(&run, "It fits: ");
    ct_test_run_free(&run);
    free(override);

    /* in a sweep: larger batches are not even tried */
    run = ct_test_start("plan %s --topology=v5e:2x2 --sweep training.local_batch_size=1,100000,200000", tiny());
    ct_test_wait(&run);
    ct_test_expect(&run, 0, "");
    has(&run, "too large");
    has(&run, "(a smaller batch did not fit)");
    has(&run, "The best that fits: --training.local_batch_size=1\n");
    ct_test_run_free(&run);
}

static void test_flags(void **state)
{
    (void)state;
    need_libtpu();
    ct_test_fails(1, "No such compile option: 'xla_tpu_banana'",
                  "plan %s --topology=v5e:2x2 --compile.xla_flags.xla_tpu_banana=1", tiny());
    ct_test_fails(1, "flag xla_tpu_scoped_vmem_limit_kib",
                  "plan %s --topology=v5e:2x2 --compile.xla_flags.xla_tpu_scoped_vmem_limit_kib=much", tiny());
    ct_test_fails(1, "Unknown command line flag 'xla_tpu_banana'",
                  "plan %s --topology=v5e:2x2 --compile.libtpu_init_args.xla_tpu_banana=1", tiny());
    ct_test_fails(1, "compile.libtpu_init_args (--compile.libtpu_init_args.xla_tpu_banana=1)",
                  "plan %s --topology=v5e:2x2 --compile.libtpu_init_args.xla_tpu_banana=1", tiny());

    /* a flag of the process: refused per program, taken before libtpu is loaded; the environment's stays */
    ct_test_fails(1, "No such compile option",
                  "plan %s --topology=v5e:2x2 --compile.xla_flags.xla_sc_disjoint_spmem=false", tiny());
    ct_test_run run =
        ct_test_start("plan %s --topology=v5e:2x2 --compile.libtpu_init_args.xla_sc_disjoint_spmem=false", tiny());
    ct_test_wait(&run);
    ct_test_expect(&run, 0, "");
    has(&run, "LIBTPU_INIT_ARGS --xla_sc_disjoint_spmem=false");
    ct_test_run_free(&run);
    setenv("LIBTPU_INIT_ARGS", "--xla_sc_disjoint_spmem=true --xla_tpu_impure_oom_fast_exit_threshold=-1", 1);
    run = ct_test_start("plan %s --topology=v5e:2x2 --compile.libtpu_init_args.xla_sc_disjoint_spmem=false", tiny());
    unsetenv("LIBTPU_INIT_ARGS");
    ct_test_wait(&run);
    ct_test_expect(&run, 0, "--xla_sc_disjoint_spmem=true of LIBTPU_INIT_ARGS stays");
    has(&run, "LIBTPU_INIT_ARGS --xla_sc_disjoint_spmem=true --xla_tpu_impure_oom_fast_exit_threshold=-1\n");
    ct_test_run_free(&run);
}

/* Two slices: twice the devices, and what crosses them is said to. */
static void test_slices(void **state)
{
    (void)state;
    need_libtpu();
    ct_test_run run =
        ct_test_start("plan %s --topology=v5e:2x2 --slices=2 --parallelism.data_parallel_replicate_degree=2", tiny());
    ct_test_wait(&run);
    ct_test_expect(&run, 0, "");
    has(&run, "8 devices of the kind TPU v5 lite");
    has(&run, "in 2 slices");
    has(&run, "slices");
    ct_test_run_free(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_v6e),   cmocka_unit_test(test_v5e),    cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_flags), cmocka_unit_test(test_slices),
    };
    return cmocka_run_group_tests(tests, NULL, ct_test_world_free);
}
