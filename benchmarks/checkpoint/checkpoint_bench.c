/* Speed of saving and loading a training state against dd on the same disk.
 *
 *   checkpoint_bench FOLDER [rounds [layers]]
 *
 * A Qwen3 of dim 1024 and that many layers (8: 109 M parameters, a state of 1.3 GB in f32) lies on the CPU plugin's
 * device. In each round, in turn: dd writes as many bytes as a step has, the same bytes, from memory, buffered and
 * flushed, then past the page cache; the state is saved; dd reads a file that is not in the page cache, buffered and
 * past it, and past it into memory, which is where a load has to bring it; the state is loaded, hashes checked, its
 * files not being in the page cache either. FOLDER must be on the
 * disk in question; it is made, and what is written there removed. Megabytes per second, medians, and ratios per round.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "pjrt/testing.h"
#include "train/state.h"

enum { MAX_ROUNDS = 99 };

enum { DD_WRITE, DD_WRITE_DIRECT, SAVE, DD_READ, DD_READ_DIRECT, DD_READ_MEMORY, LOAD, NUM_KINDS };
static const char *const KINDS[NUM_KINDS] = {"dd conv=fsync",   "dd oflag=direct", "save", "dd",
                                             "dd iflag=direct", "dd to memory",    "load"};

static double seconds[NUM_KINDS][MAX_ROUNDS], cpu_seconds[NUM_KINDS][MAX_ROUNDS];

static double cpu_clock(void)
{
    struct rusage self;
    getrusage(RUSAGE_SELF, &self);
    return (double)(self.ru_utime.tv_sec + self.ru_stime.tv_sec) +
           1e-6 * (double)(self.ru_utime.tv_usec + self.ru_stime.tv_usec);
}

/* Out of the page cache, which clean pages leave when asked. */
static void forget(const char *path)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return;
    if (fsync(descriptor)) perror(path);
    (void)posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
    close(descriptor);
}

static void forget_all(const char *folder)
{
    char **names;
    size_t num_names;
    expect_ok(ct_dir_list(folder, &names, &num_names));
    for (size_t i = 0; i < num_names; i++) {
        char *path = ct_path_join(folder, names[i]);
        forget(path);
        free(path);
    }
    ct_names_free(names, num_names);
}

static double run(const char *command)
{
    double start = ct_clock_seconds();
    if (system(command)) {
        fprintf(stderr, "failed: %s\n", command);
        exit(1);
    }
    return ct_clock_seconds() - start;
}

static double dd(const char *from, const char *to, const char *flags)
{
    char *command = ct_asprintf("dd if=%s of=%s bs=8M %s status=none", from, to, flags);
    double passed = run(command);
    free(command);
    return passed;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(const double *values, int count)
{
    double sorted[MAX_ROUNDS];
    memcpy(sorted, values, (size_t)count * sizeof(double));
    qsort(sorted, (size_t)count, sizeof(double), compare);
    return count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

/* How fast `kind` is against each dd, medians over rounds. */
static void print_shares(int kind, int first_dd, int rounds)
{
    for (int other = first_dd; other < kind; other++) {
        double ratios[MAX_ROUNDS];
        for (int i = 0; i < rounds; i++) ratios[i] = seconds[other][i] / seconds[kind][i];
        printf("%s: %.0f%% of %s\n", KINDS[kind], 100 * median(ratios, rounds), KINDS[other]);
    }
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: checkpoint_bench FOLDER [rounds [layers]]\n");
        return 2;
    }
    const char *folder = argv[1];
    int rounds = argc > 2 ? atoi(argv[2]) : 5, layers = argc > 3 ? atoi(argv[3]) : 8;
    if (rounds < 1 || rounds > MAX_ROUNDS || layers < 1) return 2;
    const ct_model_family *family;
    ct_model_config config;
    ct_model *model;
    expect_ok(ct_model_config_find("qwen3", "0.6B", &family, &config));
    config.num_layers = layers;
    config.vocab_size = 8192;
    expect_ok(ct_model_new(family, &config, true, &model));
    ct_session_opts session_opts = {.plugin = {.path = getenv("CTITAN_PLUGIN_PATH")}};
    ct_session *session;
    expect_ok(ct_session_open(&session_opts, &session));
    ct_train_state state;
    ct_train_state_init(&state, session, model, NULL, CT_DTYPE_F32, CT_DTYPE_F32);
    expect_ok(ct_train_state_from_seed(&state, 1));

    char *steps = ct_path_join(folder, "steps"), *step = ct_checkpoint_path(steps, 1);
    char *memory_copy = ct_asprintf("/dev/shm/checkpoint_bench.%ld.copy", (long)getpid());
    char *copy = ct_path_join(folder, "dd"), *memory = ct_asprintf("/dev/shm/checkpoint_bench.%ld", (long)getpid());
    ct_train_save_opts save = {.info = "{}"};
    expect_ok(ct_train_state_save(&state, steps, 1, &save));
    char *join = ct_asprintf("cat %s/*.safetensors >%s", step, memory);
    (void)run(join);
    free(join);
    double total = 0;
    ct_train_state_bytes(model, NULL, CT_DTYPE_F32, CT_DTYPE_F32, &total);
    printf("%.0f MB, %d rounds, in %s\n", total / 1e6, rounds, folder);

    for (int i = 0; i < rounds; i++) {
        seconds[DD_WRITE][i] = dd(memory, copy, "conv=fsync");
        expect_ok(ct_dir_remove(copy));
        seconds[DD_WRITE_DIRECT][i] = dd(memory, copy, "oflag=direct conv=fsync");
        expect_ok(ct_dir_remove(steps));
        double start = ct_clock_seconds(), cpu_start = cpu_clock();
        expect_ok(ct_train_state_save(&state, steps, 1, &save));
        seconds[SAVE][i] = ct_clock_seconds() - start;
        cpu_seconds[SAVE][i] = cpu_clock() - cpu_start;

        forget(copy);
        seconds[DD_READ][i] = dd(copy, "/dev/null", "");
        forget(copy);
        seconds[DD_READ_DIRECT][i] = dd(copy, "/dev/null", "iflag=direct");
        expect_ok(ct_dir_remove(memory_copy));
        seconds[DD_READ_MEMORY][i] = dd(copy, memory_copy, "iflag=direct");
        expect_ok(ct_dir_remove(memory_copy));
        expect_ok(ct_dir_remove(copy));
        forget_all(step);
        ct_train_state_deinit(&state); /* as at a run's start: the devices hold nothing */
        ct_train_state_init(&state, session, model, NULL, CT_DTYPE_F32, CT_DTYPE_F32);
        start = ct_clock_seconds();
        cpu_start = cpu_clock();
        ct_checkpoint *checkpoint;
        expect_ok(ct_checkpoint_open(steps, 1, NULL, &checkpoint));
        expect_ok(ct_train_state_load(&state, checkpoint, false));
        ct_checkpoint_close(checkpoint);
        seconds[LOAD][i] = ct_clock_seconds() - start;
        cpu_seconds[LOAD][i] = cpu_clock() - cpu_start;
        for (int kind = 0; kind < NUM_KINDS; kind++) printf("  %s %.0f", KINDS[kind], total / 1e6 / seconds[kind][i]);
        printf("\n");
        fflush(stdout);
    }
    for (int kind = 0; kind < NUM_KINDS; kind++)
        printf("%-16s %6.0f MB/s\n", KINDS[kind], total / 1e6 / median(seconds[kind], rounds));
    printf("CPU time: save %.2f s, load %.2f s per GB\n", median(cpu_seconds[SAVE], rounds) / total * 1e9,
           median(cpu_seconds[LOAD], rounds) / total * 1e9);
    print_shares(SAVE, DD_WRITE, rounds);
    print_shares(LOAD, DD_READ, rounds);

    ct_train_state_deinit(&state);
    ct_session_close(session);
    ct_model_free(model);
    expect_ok(ct_dir_remove(steps));
    expect_ok(ct_dir_remove(memory));
    free(steps);
    free(step);
    free(copy);
    free(memory);
    free(memory_copy);
    return 0;
}
