#include "train/metrics.h"

#include <fcntl.h>
#include <math.h>
#include <unistd.h>

#include "base/testing.h"
#include "formats/json.h"
#include "train/metrics_flops.h"

static void expect_line(const ct_metrics_values *values, bool has_color, const char *line)
{
    ct_str text;
    ct_str_init(&text);
    ct_metrics_format(&text, values, has_color);
    assert_string_equal(text.data, line);
    ct_str_deinit(&text);
}

static void test_console_line(void **state)
{
    (void)state;
    ct_metrics_values values = {.step = 1,
                                .loss = 8.0385,
                                .grad_norm = 1.3444,
                                .memory_gib = 1.21,
                                .memory_pct = 1.27,
                                .tps = 2904.4,
                                .tflops = 0.21,
                                .mfu = 0.02};
    expect_line(&values, false,
                "step:  1  loss:  8.03850  grad_norm:  1.3444  memory:  1.21GiB(1.27%)  tps: 2,904  tflops: 0.21  "
                "mfu: 0.02%");
    expect_line(&values, true,
                "\x1b[31mstep:  1  \x1b[32mloss:  8.03850  \x1b[38;2;180;60;0mgrad_norm:  1.3444  "
                "\x1b[38;2;54;234;195mmemory:  1.21GiB(1.27%)  \x1b[34mtps: 2,904  \x1b[36mtflops: 0.21  "
                "\x1b[35mmfu: 0.02%\x1b[39m");
    values = (ct_metrics_values){.step = 12345,
                                 .loss = 123.456789,
                                 .grad_norm = 12345.67891,
                                 .memory_gib = 123.456,
                                 .memory_pct = 100,
                                 .tps = 1234567.5, /* half to even, as Python rounds */
                                 .tflops = 1234.567,
                                 .mfu = 39.996};
    expect_line(&values, false,
                "step: 12345  loss: 123.45679  grad_norm: 12345.6789  memory: 123.46GiB(100.00%)  tps: 1,234,568  "
                "tflops: 1,234.57  mfu: 40.00%");
    values = (ct_metrics_values){.step = 2, .loss = -NAN, .grad_norm = INFINITY, .tps = 2.5, .tflops = 999.999};
    expect_line(&values, false,
                "step:  2  loss:      nan  grad_norm:     inf  memory:  0.00GiB(0.00%)  tps: 2  tflops: 1,000.00  "
                "mfu: 0.00%");
}

/* stderr goes to a file while steps are recorded. */
static int saved_stderr;

static void divert_stderr(const char *path)
{
    fflush(stderr);
    saved_stderr = dup(STDERR_FILENO);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(file, STDERR_FILENO);
    close(file);
}

static void restore_stderr(void)
{
    dup2(saved_stderr, STDERR_FILENO);
    close(saved_stderr);
}

static ct_metrics_opts options(const char *folder)
{
    return (ct_metrics_opts){.folder = folder,
                             .num_steps = 20,
                             .log_freq = 5,
                             .first_step = 1,
                             .num_devices = 2,
                             .flops_per_token = 1e9,
                             .peak_flops = 312e12,
                             .start_s = 100,
                             .disable_color_printing = true};
}

/* Steps of two seconds and 1000 tokens each. */
static void record(ct_metrics *metrics, int64_t first, int64_t last)
{
    for (int64_t i = first; i <= last; i++) {
        ct_metrics_step step = {.step = i,
                                .loss = 1.0 / (double)i,
                                .grad_norm = 0.5,
                                .lr = 1e-3,
                                .num_tokens = 1000,
                                .data_loading_s = 0.25,
                                .host_s = 0.125,
                                .end_s = 100 + 2 * (double)i,
                                .memory_bytes = INT64_C(1) << 30,
                                .memory_limit_bytes = INT64_C(4) << 30};
        expect_ok(ct_metrics_record(metrics, &step));
    }
}

static char *read_text(const char *folder, const char *name)
{
    char *path = ct_path_join(folder, name), *text;
    size_t size_bytes;
    expect_ok(ct_file_read(path, &text, &size_bytes));
    free(path);
    return text;
}

static void write_text(const char *folder, const char *name, const char *text)
{
    char *path = ct_path_join(folder, name);
    expect_ok(ct_file_write(path, text, strlen(text)));
    free(path);
}

static void test_intervals(void **state)
{
    (void)state;
    char *folder = ct_test_folder_new(), *dump = ct_path_join(folder, "a/b"), *log = ct_path_join(folder, "log");
    ct_metrics_opts opts = options(dump);
    ct_metrics *metrics;
    expect_ok(ct_metrics_open(&opts, &metrics));
    divert_stderr(log);
    record(metrics, 1, 11);
    ct_metrics_close(metrics);
    restore_stderr();

    /* 1000 tokens in 2 s on 2 devices: 250 tokens/s, 0.25 TFLOP/s, 100 * 0.25 / 312 percent */
    char *text = read_text(folder, "log");
    const char *line =
        strstr(text, "INFO - step:  1  loss:  1.00000  grad_norm:  0.5000  memory:  1.00GiB(25.00%)  tps: "
                     "250  tflops: 0.25  mfu: 0.08%\n");
    assert_non_null(line);
    assert_non_null(line = strstr(line, "INFO - step:  5  loss:  0.20000  "));
    assert_non_null(strstr(line, "mfu: 0.08%  eta: 0m30s\n")); /* 15 steps of 2 s */
    assert_non_null(line = strstr(line, "INFO - step: 10  loss:  0.10000  "));
    assert_non_null(strstr(line, "mfu: 0.08%  eta: 0m20s\n"));
    assert_non_null(strstr(line, "tps: 250"));
    assert_null(strstr(text, "step:  2"));
    assert_null(strstr(text, "\r")); /* a file shows no progress */
    free(text);

    text = read_text(dump, "metrics.jsonl");
    assert_int_equal(strncmp(text, "{\"step\":1,\"loss\":1.0,", 21), 0);
    ct_json *json;
    const char *second = strchr(text, '\n') + 1;
    expect_ok(ct_json_parse(second, strcspn(second, "\n"), "second", &json));
    ct_json_value root = ct_json_root(json);
    static const struct {
        const char *name;
        double value;
    } fields[] = {
        {"step", 5},       {"loss", 0.2},       {"grad_norm", 0.5},     {"lr", 1e-3},       {"tps", 250},
        {"tflops", 0.25},  {"mfu", 25.0 / 312}, {"memory_gib", 1},      {"memory_pct", 25}, {"data_loading_s", 0.25},
        {"host_s", 0.125}, {"step_s", 2},       {"n_tokens_seen", 5000}};
    assert_int_equal(ct_json_size(root), CT_COUNT(fields));
    for (size_t i = 0; i < CT_COUNT(fields); i++) {
        double value;
        expect_ok(ct_json_need_double(root, fields[i].name, &value));
        if (fabs(value - fields[i].value) > 1e-12 * fabs(value)) fail_msg("%s is %g", fields[i].name, value);
    }
    ct_json_free(json);
    free(text);
    free(log);
    free(dump);
    ct_test_folder_free(folder);
}

static size_t count_lines(const char *text)
{
    size_t count = 0;
    for (; *text; text++) count += *text == '\n';
    return count;
}

static void test_resume_drops_what_comes_again(void **state)
{
    (void)state;
    char *folder = ct_test_folder_new(), *log = ct_path_join(folder, "log");
    ct_metrics_opts opts = options(folder);
    ct_metrics *metrics;
    divert_stderr(log);
    expect_ok(ct_metrics_open(&opts, &metrics));
    record(metrics, 1, 20);
    ct_metrics_close(metrics);
    char *unbroken = read_text(folder, "metrics.jsonl");
    assert_int_equal(count_lines(unbroken), 5); /* 1, 5, 10, 15, 20 */

    /* killed while a line was written, resumed from step 10 */
    char *cut = ct_asprintf("%s{\"step\":25,\"lo", unbroken);
    write_text(folder, "metrics.jsonl", cut);
    free(cut);
    opts.first_step = 11;
    opts.n_tokens_seen = 10000;
    opts.start_s = 120;
    expect_ok(ct_metrics_open(&opts, &metrics));
    char *kept = read_text(folder, "metrics.jsonl");
    assert_int_equal(count_lines(kept), 3);
    assert_memory_equal(kept, unbroken, strlen(kept));
    record(metrics, 11, 20);
    ct_metrics_close(metrics);
    restore_stderr();
    char *resumed = read_text(folder, "metrics.jsonl");
    assert_string_equal(resumed, unbroken);

    /* a file that is not ours stops a resume, and is left as it was */
    write_text(folder, "metrics.jsonl", "{\"step\":1}\nnotes\n");
    expect_error(ct_metrics_open(&opts, &metrics), CT_CODE_DATA_LOSS, "metrics.jsonl:2 must be a line of metrics");
    assert_null(metrics);
    char *untouched = read_text(folder, "metrics.jsonl");
    assert_string_equal(untouched, "{\"step\":1}\nnotes\n");

    /* a new run starts an empty file */
    opts.first_step = 1;
    expect_ok(ct_metrics_open(&opts, &metrics));
    ct_metrics_close(metrics);
    char *fresh = read_text(folder, "metrics.jsonl");
    assert_string_equal(fresh, "");
    free(fresh);
    free(untouched);
    free(resumed);
    free(kept);
    free(unbroken);
    free(log);
    ct_test_folder_free(folder);
}

static void test_not_finite_and_no_file(void **state)
{
    (void)state;
    char *folder = ct_test_folder_new(), *log = ct_path_join(folder, "log");
    ct_metrics_opts opts = options(folder);
    ct_metrics *metrics;
    divert_stderr(log);
    expect_ok(ct_metrics_open(&opts, &metrics));
    ct_metrics_step step = {.step = 1, .loss = NAN, .grad_norm = INFINITY, .num_tokens = 1, .end_s = 100};
    expect_ok(ct_metrics_record(metrics, &step)); /* no time passed either */
    ct_metrics_close(metrics);
    char *text = read_text(folder, "metrics.jsonl");
    assert_non_null(strstr(text, "\"loss\":null,\"grad_norm\":null,"));
    free(text);

    opts.folder = NULL;
    expect_ok(ct_metrics_open(&opts, &metrics));
    record(metrics, 1, 1);
    ct_metrics_close(metrics);
    opts.folder = log; /* a file is no folder */
    expect_error(ct_metrics_open(&opts, &metrics), CT_CODE_ALREADY_EXISTS, "log");
    restore_stderr();
    free(log);
    ct_test_folder_free(folder);
}

static void test_flops(void **state)
{
    (void)state;
    /* Llama 3 8B at 8192: 57.9e9 operations per token */
    ct_flops_model llama = {.num_params = 8030261248,
                            .num_embedding_params = INT64_C(128256) * 4096,
                            .num_layers = 32,
                            .num_heads = 32,
                            .head_dim = 128,
                            .seq_len = 8192};
    assert_true(ct_flops_per_token(&llama) == 6.0 * (8030261248.0 - 525336576.0) + 12.0 * 32 * 32 * 128 * 8192);
    assert_true(fabs(ct_flops_per_token(&llama) - 57.9e9) < 0.05e9);
    ct_flops_model tied = {.num_params = 100, .num_embedding_params = 40, .is_tied = true};
    assert_true(ct_flops_per_token(&tied) == 600);
    tied.is_tied = false;
    assert_true(ct_flops_per_token(&tied) == 360);
    tied.num_adapter_params = 5; /* the 60 others have no gradient */
    assert_true(ct_flops_per_token(&tied) == 4 * 60 + 6 * 5);
}

static void test_peak_flops(void **state)
{
    (void)state;
    static const struct {
        const char *kind;
        double peak;
    } rows[] = {{"TPU v4", 275e12},
                {"TPU v5 lite", 197e12},
                {"TPU v5p", 459e12},
                {"TPU v5", 459e12},
                {"TPU v6 lite", 918e12},
                {"TPU7x", 1153.5e12},
                {"NVIDIA H200", 989e12},
                {"NVIDIA H20", 148e12},
                {"NVIDIA H100 80GB HBM3", 989e12},
                {"NVIDIA H100 PCIe", 756e12},
                {"NVIDIA H100 NVL", 835e12},
                {"NVIDIA GB200", 2500e12},
                {"NVIDIA B200", 2250e12},
                {"NVIDIA A100-SXM4-80GB", 312e12},
                {"NVIDIA RTX A6000", 154.85e12},
                {"NVIDIA L40S", 362e12}};
    bool is_known;
    for (size_t i = 0; i < CT_COUNT(rows); i++) {
        double peak = ct_peak_flops(rows[i].kind, &is_known);
        if (peak != rows[i].peak || !is_known) fail_msg("%s: %g", rows[i].kind, peak);
    }
    assert_true(ct_peak_flops("cpu", &is_known) == 312e12);
    assert_false(is_known);
    assert_true(ct_peak_flops("", NULL) == 312e12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_console_line),
        cmocka_unit_test(test_intervals),
        cmocka_unit_test(test_resume_drops_what_comes_again),
        cmocka_unit_test(test_not_finite_and_no_file),
        cmocka_unit_test(test_flops),
        cmocka_unit_test(test_peak_flops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
