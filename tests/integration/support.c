/* Child processes, files and numbers of the integration tests. */
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/str.h"

enum { MAX_ARGUMENTS = 64, TIMEOUT_S = 300 };

static char *world;
static ct_arena world_arena;

/* ---- files ---- */

const char *ct_test_world(void)
{
    if (world) return world;
    ct_arena_init(&world_arena);
    world = ct_test_folder_new();
    setenv("XDG_CACHE_HOME", ct_test_path("cache"), 1);
    return world;
}

int ct_test_world_free(void **state)
{
    (void)state;
    if (!world) return 0;
    ct_test_folder_free(world);
    ct_arena_deinit(&world_arena);
    world = NULL;
    return 0;
}

static char *format_text(const char *format, va_list arguments)
{
    char *text;
    if (vasprintf(&text, format, arguments) < 0) fail_msg("cannot format %s", format);
    return text;
}

char *ct_test_path(const char *format, ...)
{
    const char *folder = ct_test_world();
    va_list arguments;
    va_start(arguments, format);
    char *name = format_text(format, arguments);
    va_end(arguments);
    char *path = ct_arena_printf(&world_arena, "%s/%s", folder, name);
    free(name);
    return path;
}

void ct_test_write(const char *path, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = format_text(format, arguments), *parent = ct_path_parent(path);
    va_end(arguments);
    expect_ok(ct_dir_make(parent));
    expect_ok(ct_file_write(path, text, strlen(text)));
    free(parent);
    free(text);
}

char *ct_test_read(const char *path, size_t *out_size)
{
    char *data;
    size_t size;
    expect_ok(ct_file_read(path, &data, &size));
    if (out_size) *out_size = size;
    return data;
}

bool ct_test_folder_has(const char *folder, const char *prefix)
{
    if (!ct_path_is_dir(folder)) return false;
    char **names;
    size_t num_names;
    bool found = false;
    expect_ok(ct_dir_list(folder, &names, &num_names));
    for (size_t i = 0; i < num_names; i++) found = found || !strncmp(names[i], prefix, strlen(prefix));
    ct_names_free(names, num_names);
    return found;
}

/* ---- the command ---- */

static ct_test_run start(const char *format, va_list arguments)
{
    static int number;
    ct_test_run run = {.out_path = ct_test_path("out.%d", number), .err_path = ct_test_path("err.%d", number)};
    number++;
    char *line = format_text(format, arguments);
    char *argv[MAX_ARGUMENTS] = {(char *)(uintptr_t) "ctitan"};
    int argc = 1;
    for (char *rest = line, *word; (word = strtok_r(rest, " ", &rest));) {
        assert_true(argc < MAX_ARGUMENTS - 1);
        argv[argc++] = word;
    }
    run.started_s = ct_clock_seconds();
    /* made here: the child may be killed before it does anything */
    int out = open(run.out_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    int err = open(run.err_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (out < 0 || err < 0) fail_msg("cannot make %s: %s", run.out_path, strerror(errno));
    run.process = fork();
    if (run.process < 0) fail_msg("cannot fork: %s", strerror(errno));
    if (!run.process) {
        if (dup2(out, 1) < 0 || dup2(err, 2) < 0) _exit(126);
        execv(CT_BINARY_DIR "/ctitan", argv);
        _exit(127);
    }
    close(out);
    close(err);
    free(line);
    return run;
}

ct_test_run ct_test_start(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    ct_test_run run = start(format, arguments);
    va_end(arguments);
    return run;
}

void ct_test_wait(ct_test_run *run)
{
    int status;
    struct rusage usage;
    pid_t ended;
    while ((ended = wait4(run->process, &status, WNOHANG, &usage)) == 0) {
        if (ct_clock_seconds() - run->started_s > TIMEOUT_S) kill(run->process, SIGKILL);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    assert_int_equal(ended, run->process);
    run->seconds = ct_clock_seconds() - run->started_s;
    run->peak_kib = usage.ru_maxrss;
    run->code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    run->out = ct_test_read(run->out_path, NULL);
    run->err = ct_test_read(run->err_path, NULL);
}

void ct_test_run_free(ct_test_run *run)
{
    free(run->out);
    free(run->err);
    *run = (ct_test_run){0};
}

void ct_test_expect(const ct_test_run *run, int code, const char *text)
{
    if (run->code == code && strstr(run->err, text)) return;
    print_error("wanted exit code %d and \"%s\", got %d and:\n%s%s", code, text, run->code, run->err, run->out);
    fail();
}

void ct_test_ok(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    ct_test_run run = start(format, arguments);
    va_end(arguments);
    ct_test_wait(&run);
    ct_test_expect(&run, 0, "");
    ct_test_run_free(&run);
}

void ct_test_fails(int code, const char *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    ct_test_run run = start(format, arguments);
    va_end(arguments);
    ct_test_wait(&run);
    ct_test_expect(&run, code, text);
    ct_test_run_free(&run);
}

/* ---- numbers ---- */

static ct_test_values values_of(const ct_array *array)
{
    ct_test_values values = {.count = ct_array_num_elements(array)};
    values.data = ct_alloc((size_t)values.count * sizeof(double));
    for (int64_t i = 0; i < values.count; i++) values.data[i] = ct_array_get(array, i);
    return values;
}

ct_test_values ct_test_tensor(const ct_safetensors *file, const char *name)
{
    const ct_safetensors_tensor *tensor;
    ct_array array;
    expect_ok(ct_safetensors_find(file, name, &tensor));
    expect_ok(ct_safetensors_load(tensor, &array));
    ct_test_values values = values_of(&array);
    ct_array_free(&array);
    return values;
}

ct_array ct_test_checkpoint_array(const ct_checkpoint *checkpoint, const char *name)
{
    const ct_checkpoint_tensor *tensor = ct_checkpoint_find(checkpoint, name);
    if (!tensor) fail_msg("the checkpoint has no tensor %s", name);
    ct_array array = ct_array_new(tensor->dtype, tensor->sizes, tensor->rank);
    expect_ok(ct_checkpoint_read(checkpoint, tensor, NULL, array.data));
    return array;
}

ct_test_values ct_test_checkpoint_tensor(const ct_checkpoint *checkpoint, const char *name)
{
    ct_array array = ct_test_checkpoint_array(checkpoint, name);
    ct_test_values values = values_of(&array);
    ct_array_free(&array);
    return values;
}

double ct_test_error(const double *found, const double *expected, int64_t count)
{
    double largest = 0, difference = 0;
    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(found[i])) return INFINITY;
        largest = fmax(largest, fabs(expected[i]));
        difference = fmax(difference, fabs(found[i] - expected[i]));
    }
    return largest > 0 ? difference / largest : difference;
}

void ct_test_close(const char *what, ct_test_values found, ct_test_values expected, double tolerance, double *worst)
{
    if (found.count != expected.count)
        fail_msg("%s must have %lld values, found %lld", what, (long long)expected.count, (long long)found.count);
    double error = ct_test_error(found.data, expected.data, expected.count);
    if (!(error <= tolerance)) fail_msg("%s: the error is %g, allowed is %g", what, error, tolerance);
    if (worst) *worst = fmax(*worst, error);
}

#define VALIDATION "validation_metrics/loss"

static ct_test_step *read_metrics(const char *dump_folder, bool is_validation, size_t *out_count)
{
    char *path = ct_path_join(dump_folder, "metrics.jsonl"), *text = ct_test_read(path, NULL);
    ct_test_step *steps = NULL;
    *out_count = 0;
    for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
        const char *found = strstr(line, VALIDATION);
        if ((found && found < end) != is_validation) continue;
        steps = ct_realloc(steps, (*out_count + 1) * sizeof(*steps));
        ct_test_step *step = &steps[(*out_count)++];
        ct_json *json;
        expect_ok(ct_json_parse(line, (size_t)(end - line), path, &json));
        ct_json_value root = ct_json_root(json);
        *step = (ct_test_step){0};
        expect_ok(ct_json_need_int(root, "step", &step->step));
        if (is_validation) expect_ok(ct_json_need_double(root, VALIDATION, &step->loss));
        if (is_validation) {
            ct_json_free(json);
            continue;
        }
        expect_ok(ct_json_need_int(root, "n_tokens_seen", &step->n_tokens_seen));
        expect_ok(ct_json_need_double(root, "loss", &step->loss));
        expect_ok(ct_json_need_double(root, "grad_norm", &step->grad_norm));
        expect_ok(ct_json_need_double(root, "lr", &step->lr));
        ct_json_free(json);
    }
    free(text);
    free(path);
    return steps;
}

ct_test_step *ct_test_metrics(const char *dump_folder, size_t *out_count)
{
    return read_metrics(dump_folder, false, out_count);
}

ct_test_step *ct_test_validations(const char *dump_folder, size_t *out_count)
{
    return read_metrics(dump_folder, true, out_count);
}

static char *info_text(const ct_checkpoint *checkpoint)
{
    ct_json_writer *writer = ct_json_writer_new();
    ct_json_put_value(writer, NULL, ct_checkpoint_info(checkpoint));
    char *text = ct_json_writer_text(writer, false);
    ct_json_writer_free(writer);
    return text;
}

void ct_test_same_checkpoints(const char *folder_a, const char *folder_b, int64_t step)
{
    ct_checkpoint *a, *b;
    ct_checkpoint_open_opts opts = {.verify = true};
    expect_ok(ct_checkpoint_open(folder_a, step, &opts, &a));
    expect_ok(ct_checkpoint_open(folder_b, step, &opts, &b));
    assert_int_equal(ct_checkpoint_num_tensors(a), ct_checkpoint_num_tensors(b));
    assert_true(ct_checkpoint_num_tensors(a) > 0);
    for (size_t i = 0; i < ct_checkpoint_num_tensors(a); i++) {
        const char *name = ct_checkpoint_at(a, i)->name;
        ct_array x = ct_test_checkpoint_array(a, name), y = ct_test_checkpoint_array(b, name);
        if (x.dtype != y.dtype || ct_array_bytes(&x) != ct_array_bytes(&y) ||
            memcmp(x.data, y.data, ct_array_bytes(&x)) != 0)
            fail_msg("%s of step %lld has other bits in %s than in %s", name, (long long)step, folder_a, folder_b);
        ct_array_free(&x);
        ct_array_free(&y);
    }
    char *info_a = info_text(a), *info_b = info_text(b);
    assert_string_equal(info_a, info_b);
    free(info_a);
    free(info_b);
    ct_checkpoint_close(a);
    ct_checkpoint_close(b);
}

void ct_test_documents(void)
{
    ct_test_write(ct_test_path("model/config.json"),
                  "{\"model_type\": \"llama\", \"hidden_size\": 32, \"num_hidden_layers\": 2, "
                  "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"intermediate_size\": 48, "
                  "\"vocab_size\": 320, \"max_position_embeddings\": 256, \"rope_theta\": 10000}\n");
    ct_str lines;
    ct_str_init(&lines);
    for (int i = 0; i < CT_TEST_NUM_DOCUMENTS; i++) {
        ct_str_append(&lines, "{\"text\":\"");
        for (int c = 0; c < 5 + i * 37 % 29; c++) ct_str_append_char(&lines, (char)('a' + (i * 7 + c * c) % 26));
        ct_str_append(&lines, "\"}\n");
    }
    ct_test_write(ct_test_path("documents.jsonl"), "%s", lines.data);
    ct_str_deinit(&lines);
}

/* ---- PyTorch's values ---- */

ct_safetensors *ct_test_reference(const char *model)
{
    ct_safetensors *file;
    char *path = ct_asprintf(CT_TEST_GOLDEN "/%s/reference.safetensors", model);
    expect_ok(ct_safetensors_open(path, &file));
    free(path);
    return file;
}

/* Takes from the differences what the noise of the first gradient explains. */
static void forgive_first_step(const ct_checkpoint *first_step, const char *name, ct_test_values found,
                               ct_test_values expected)
{
    const double lr = 1e-3, eps = 1e-8, ulp = 0x1p-23;
    char *moment = ct_asprintf("state.%s.exp_avg", name);
    ct_test_values gradient = ct_test_checkpoint_tensor(first_step, moment); /* (1 - beta1) g */
    free(moment);
    assert_int_equal(gradient.count, found.count);
    double largest = 0;
    for (int64_t i = 0; i < gradient.count; i++) largest = fmax(largest, fabs(gradient.data[i]) / 0.1);
    for (int64_t i = 0; i < gradient.count; i++) {
        double size = fabs(gradient.data[i]) / 0.1 + eps, difference = found.data[i] - expected.data[i];
        double allowed = lr * eps * 2 * ulp * largest / (size * size);
        found.data[i] -= copysign(fmin(fabs(difference), allowed), difference);
    }
    free(gradient.data);
}

int ct_test_compare_training(const char *dump_folder, const ct_safetensors *reference, const ct_checkpoint *first_step,
                             double worst[2])
{
    size_t num_steps;
    ct_test_step *steps = ct_test_metrics(dump_folder, &num_steps);
    assert_int_equal(num_steps, 5);
    double losses[5], norms[5];
    for (int i = 0; i < 5; i++) losses[i] = steps[i].loss, norms[i] = steps[i].grad_norm;
    free(steps);
    ct_test_values expected = ct_test_tensor(reference, "adamw.losses");
    ct_test_close("losses", (ct_test_values){losses, 5}, expected, CT_TEST_FORWARD, &worst[0]);
    free(expected.data);
    expected = ct_test_tensor(reference, "adamw.grad_norms");
    ct_test_close("norms", (ct_test_values){norms, 5}, expected, CT_TEST_FORWARD, &worst[0]);
    free(expected.data);

    char *folder = ct_path_join(dump_folder, "checkpoint");
    ct_checkpoint *checkpoint;
    expect_ok(ct_checkpoint_open(folder, 5, &(ct_checkpoint_open_opts){.verify = true}, &checkpoint));
    int compared = 0;
    for (size_t i = 0; i < ct_safetensors_num_tensors(reference); i++) {
        static const char prefix[] = "adamw.param.";
        const char *name = ct_safetensors_at(reference, i)->name;
        if (strncmp(name, prefix, strlen(prefix)) != 0) continue;
        ct_test_values found = ct_test_checkpoint_tensor(checkpoint, name + strlen(prefix));
        expected = ct_test_tensor(reference, name);
        if (first_step) forgive_first_step(first_step, name + strlen(prefix), found, expected);
        ct_test_close(name, found, expected, CT_TEST_PARAMETERS, &worst[1]);
        free(found.data);
        free(expected.data);
        compared++;
    }
    assert_int_equal(ct_checkpoint_num_tensors(checkpoint), 3 * compared);
    ct_checkpoint_close(checkpoint);
    free(folder);
    return compared;
}
