/* profiler.enable_profiling: a run leaves traces of the steps that profile_freq names, with what the host did in each,
 * and ends with the bits that it has without them.
 */
#include <math.h>

#include "base/file.h"
#include "base/str.h"
#include "formats/json.h"
#include "support.h"

static const char *recipe(void)
{
    char *path = ct_test_path("recipe.toml");
    if (ct_path_exists(path)) return path;
    ct_test_write(ct_test_path("model/config.json"),
                  "{\"model_type\": \"llama\", \"hidden_size\": 32, \"num_hidden_layers\": 2, "
                  "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"intermediate_size\": 48, "
                  "\"vocab_size\": 320, \"max_position_embeddings\": 256, \"rope_theta\": 10000}\n");
    ct_str text;
    ct_str_init(&text);
    for (int i = 0; i < 4000; i++) ct_str_append_char(&text, (char)('a' + i * i % 23));
    ct_test_write(ct_test_path("text.txt"), "%s", text.data);
    ct_str_deinit(&text);
    ct_test_write(path,
                  "[model]\nname = \"llama3\"\nflavor = \"%s\"\n"
                  "[training]\nlocal_batch_size = 2\nseq_len = 32\nsteps = 7\ndataset_path = \"%s\"\n"
                  "[optimizer]\nlr = 1e-2\n[lr_scheduler]\nwarmup_steps = 0\ndecay_ratio = 0.0\n"
                  "[metrics]\nlog_freq = 1\n"
                  "[checkpoint]\nenable = true\ninterval = 7\nlast_save_model_only = false\n",
                  ct_test_path("model"), ct_test_path("text.txt"));
    return path;
}

/* Bit n is set when step n has a span of that name. */
static unsigned steps_of(const ct_json *json, const char *name)
{
    unsigned steps = 0;
    ct_json_iter iter = ct_json_iterate(ct_json_get(ct_json_root(json), "traceEvents"));
    while (ct_json_next(&iter)) {
        const char *phase, *found;
        int64_t step;
        expect_ok(ct_json_need_string(iter.value, "ph", &phase));
        expect_ok(ct_json_need_string(iter.value, "name", &found));
        if (strcmp(phase, "X") != 0 || strcmp(found, name) != 0) continue;
        expect_ok(ct_json_need_int(ct_json_get(iter.value, "args"), "step", &step));
        steps |= 1U << step;
    }
    return steps;
}

static void test_traces(void **state)
{
    (void)state;
    const char *plain = ct_test_path("plain"), *traced = ct_test_path("traced");
    ct_test_ok("train %s --dump_folder=%s", recipe(), plain);
    ct_test_ok("train %s --dump_folder=%s --profiler.enable_profiling --profiler.profile_freq=3 "
               "--profiler.profiler_active=2 --profiler.save_traces_folder=t",
               recipe(), traced);
    assert_false(ct_path_exists(ct_test_path("plain/profiling")));
    for (unsigned end = 3; end <= 6; end += 3) {
        ct_json *json;
        expect_ok(ct_json_read(ct_test_path("traced/t/iteration_%u/rank0_trace.json", end), &json));
        unsigned window = 3U << (end - 1);
        assert_int_equal(steps_of(json, "step"), window);
        assert_int_equal(steps_of(json, "launch"), window);
        assert_int_equal(steps_of(json, "readback"), window);
        assert_int_equal(steps_of(json, "put batch"), window << 1); /* of the next step, while this one runs */
        ct_json_free(json);
    }
    assert_false(ct_path_exists(ct_test_path("traced/t/iteration_9")));
    size_t num_plain, num_traced;
    ct_test_step *a = ct_test_metrics(plain, &num_plain), *b = ct_test_metrics(traced, &num_traced);
    assert_int_equal(num_plain, 7);
    assert_int_equal(num_traced, 7);
    for (size_t i = 0; i < 7; i++) assert_true(a[i].loss == b[i].loss && isfinite(a[i].loss));
    free(a);
    free(b);
    ct_test_same_checkpoints(ct_test_path("plain/checkpoint"), ct_test_path("traced/checkpoint"), 7);
}

static void test_mistakes(void **state)
{
    (void)state;
    ct_test_fails(1, "profiler.profiler_active must be at most profiler.profile_freq = 3, found 4",
                  "train %s --profiler.profile_freq=3 --profiler.profiler_active=4", recipe());
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_traces), cmocka_unit_test(test_mistakes)};
    return cmocka_run_group_tests(tests, NULL, ct_test_world_free);
}
