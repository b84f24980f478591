/* The compilation cache: hits, what the key distinguishes, damaged entries, two processes at once. */
#include "pjrt/compile_cache.h"

#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "pjrt/testing.h"

static const char program[] = "func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n"
                              "  %0 = stablehlo.multiply %a, %a : tensor<4xf32>\n"
                              "  return %0 : tensor<4xf32>\n"
                              "}\n";

/* Compiles and runs; whether it came from the cache. */
static bool run(ct_client *client, const char *text, const ct_compile_opts *opts)
{
    ct_executable *executable = ct_test_compile(client, text, opts);
    bool hit = ct_executable_is_from_cache(executable);
    float values[4] = {1, 2, 3, 4}, squares[4];
    ct_buffer *argument = ct_test_buffer(client, 0, values, 1, (int64_t[]){4}), *output;
    expect_ok(ct_executable_execute(executable, &argument, 1, NULL, &output));
    ct_test_floats(output, squares, 4);
    for (int i = 0; i < 4; i++) assert_true(squares[i] == values[i] * values[i]);
    ct_buffer_free(argument);
    ct_buffer_free(output);
    ct_executable_free(executable);
    return hit;
}

/* The path of the folder's only entry, heap. */
static char *only_entry(const char *folder)
{
    char **names;
    size_t num_names;
    expect_ok(ct_dir_list(folder, &names, &num_names));
    assert_int_equal(num_names, 1);
    char *path = ct_path_join(folder, names[0]);
    ct_names_free(names, num_names);
    return path;
}

static void test_hits_and_misses(void **state)
{
    (void)state;
    ct_client *client = ct_test_client(2);
    char *parent = ct_test_folder_new(), *folder = ct_path_join(parent, "made/on/demand");
    ct_compile_opts opts = {.cache_folder = folder};
    assert_false(run(client, program, &opts));
    assert_true(run(client, program, &opts));
    assert_false(run(client, program, NULL)); /* no folder, no cache */

    char *spaced = ct_asprintf("%s\n", program);
    assert_false(run(client, spaced, &opts));
    free(spaced);
    ct_named_value flag = {.name = "xla_cpu_enable_fast_math", .type = CT_VALUE_BOOL, .boolean = true};
    ct_compile_opts flagged = {.cache_folder = folder, .flags = &flag, .num_flags = 1};
    assert_false(run(client, program, &flagged));
    assert_true(run(client, program, &flagged));
    ct_client_free(client);

    client = ct_test_client(2); /* another client of the same plugin */
    assert_true(run(client, program, &opts));
    ct_client_free(client);
    free(folder);
    ct_test_folder_free(parent);
}

typedef void damage(char **bytes, size_t *size);

static void truncate_header(char **bytes, size_t *size)
{
    (void)bytes;
    *size = 20;
}

static void truncate_payload(char **bytes, size_t *size)
{
    (void)bytes;
    *size -= 7;
}

static void empty(char **bytes, size_t *size)
{
    (void)bytes;
    *size = 0;
}

static void flip_magic(char **bytes, size_t *size)
{
    (void)size;
    (*bytes)[0] ^= 1;
}

static void flip_key(char **bytes, size_t *size)
{
    (void)size;
    (*bytes)[10] ^= 1;
}

static void lie_about_size(char **bytes, size_t *size)
{
    (void)size;
    memset(*bytes + 24, 0xff, 8);
}

static void flip_payload(char **bytes, size_t *size)
{
    (*bytes)[48 + (*size - 48) / 2] ^= 4;
}

static void append(char **bytes, size_t *size)
{
    *bytes = ct_realloc(*bytes, *size + 1);
    (*bytes)[(*size)++] = 'x';
}

static void test_damaged_entries(void **state)
{
    (void)state;
    ct_client *client = ct_test_client(1);
    char *folder = ct_test_folder_new();
    ct_compile_opts opts = {.cache_folder = folder};
    assert_false(run(client, program, &opts));
    char *path = only_entry(folder), *good;
    size_t good_size;
    expect_ok(ct_file_read(path, &good, &good_size));
    damage *damages[] = {truncate_header, truncate_payload, empty,        flip_magic,
                         flip_key,        lie_about_size,   flip_payload, append};
    for (size_t i = 0; i < CT_COUNT(damages); i++) {
        char *bytes = ct_alloc(good_size);
        size_t size = good_size;
        memcpy(bytes, good, size);
        damages[i](&bytes, &size);
        expect_ok(ct_file_write(path, bytes, size));
        free(bytes);
        assert_false(run(client, program, &opts)); /* compiled again ... */
        assert_true(run(client, program, &opts));  /* ... and replaced */
    }
    free(good);
    free(path);
    ct_test_folder_free(folder);
    ct_client_free(client);
}

/* An entry whose every check passes but which the plugin cannot load. */
static void test_entry_that_does_not_load(void **state)
{
    (void)state;
    ct_client *client = ct_test_client(1);
    char *folder = ct_test_folder_new();
    ct_compile_opts opts = {.cache_folder = folder};
    assert_false(run(client, program, &opts));
    char *path = only_entry(folder), *bytes;
    size_t size;
    expect_ok(ct_file_read(path, &bytes, &size));
    static const unsigned char payload[] = "not what a plugin wrote";
    ct__cache_seal((unsigned char *)bytes, payload, sizeof(payload));
    memcpy(bytes + 48, payload, sizeof(payload));
    expect_ok(ct_file_write(path, bytes, 48 + sizeof(payload)));
    assert_false(run(client, program, &opts));
    assert_true(run(client, program, &opts));
    free(bytes);
    free(path);
    ct_test_folder_free(folder);
    ct_client_free(client);
}

static void test_folder_that_cannot_be(void **state)
{
    (void)state;
    ct_client *client = ct_test_client(1);
    ct_compile_opts opts = {.cache_folder = "/proc/no/such/place"};
    assert_false(run(client, program, &opts));
    assert_false(run(client, program, &opts));
    ct_client_free(client);
}

/* Processes that compile the same programs at once, into one folder; each starts with a plugin of its own. */
static void test_two_processes(void **state)
{
    (void)state;
    char *folder = ct_test_folder_new(), self[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    assert_true(length > 0);
    self[length] = 0;
    pid_t children[2];
    for (int i = 0; i < 2; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (!children[i]) {
            execl(self, self, "--fill", folder, (char *)NULL);
            _exit(127);
        }
    }
    for (int i = 0; i < 2; i++) {
        int code;
        assert_int_equal(waitpid(children[i], &code, 0), children[i]);
        assert_true(WIFEXITED(code));
        assert_int_equal(WEXITSTATUS(code), 0);
    }
    ct_client *client = ct_test_client(1);
    assert_true(run(client, program, &(ct_compile_opts){.cache_folder = folder}));
    ct_client_free(client);
    char **names;
    size_t num_names;
    expect_ok(ct_dir_list(folder, &names, &num_names));
    assert_int_equal(num_names, 4); /* and nothing half-written left over */
    ct_names_free(names, num_names);
    ct_test_folder_free(folder);
}

static int fill(const char *folder)
{
    ct_client *client = ct_test_client(1);
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 4; i++) {
            char *text = ct_asprintf("%s%.*s", program, i, "\n\n\n\n");
            ct_executable *executable = ct_test_compile(client, text, &(ct_compile_opts){.cache_folder = folder});
            if (round && !ct_executable_is_from_cache(executable)) return 1;
            ct_executable_free(executable);
            free(text);
        }
    }
    ct_client_free(client);
    return 0;
}

int main(int argc, char **argv)
{
    ct_log_set_level(CT_LOG_ERROR);
    if (argc == 3 && !strcmp(argv[1], "--fill")) return fill(argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hits_and_misses),
        cmocka_unit_test(test_damaged_entries),
        cmocka_unit_test(test_entry_that_does_not_load),
        cmocka_unit_test(test_folder_that_cannot_be),
        cmocka_unit_test(test_two_processes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
