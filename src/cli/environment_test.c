/* What joins LIBTPU_INIT_ARGS, and what stays; whether there is a TPU. */
#include "cli/environment.h"

#include <stdlib.h>
#include <string.h>

#include "base/testing.h"

static void test_init_args(void **state)
{
    (void)state;
    static const ct_named_value flags[] = {
        {.name = "xla_a", .type = CT_VALUE_BOOL, .boolean = true},
        {.name = "xla_b", .type = CT_VALUE_INT, .integer = -3},
        {.name = "xla_c", .type = CT_VALUE_TEXT, .text = "ENABLED"},
    };
    static const struct {
        const char *before, *after;
        size_t num_flags;
    } rows[] = {
        {NULL, "--xla_a=true --xla_b=-3 --xla_c=ENABLED", 3},
        {"", "--xla_a=true --xla_b=-3 --xla_c=ENABLED", 3},
        {"--other=1", "--other=1 --xla_a=true --xla_b=-3 --xla_c=ENABLED", 3},
        {"--xla_b=7", "--xla_b=7 --xla_a=true --xla_c=ENABLED", 3},
        {"  -xla_a \t--xla_c=x", "  -xla_a \t--xla_c=x --xla_b=-3", 3},
        {"--xla_bb=7", "--xla_bb=7 --xla_a=true --xla_b=-3 --xla_c=ENABLED", 3},
        {"--kept=1", "--kept=1", 0},
        {NULL, "", 0},
    };
    for (size_t i = 0; i < CT_COUNT(rows); i++) {
        ct_arena arena;
        ct_arena_init(&arena);
        if (rows[i].before)
            setenv("LIBTPU_INIT_ARGS", rows[i].before, 1);
        else
            unsetenv("LIBTPU_INIT_ARGS");
        ct_plugin_opts opts = {.path = "/nowhere/libtpu.so"}; /* that it cannot be loaded is for whoever needs it */
        ct_environment_libtpu_args(&arena, flags, rows[i].num_flags, "r.toml:3", &opts);
        assert_string_equal(opts.libtpu_init_args, rows[i].after);
        const char *now = getenv("LIBTPU_INIT_ARGS");
        assert_string_equal(now ? now : "", rows[i].after);
        ct_arena_deinit(&arena);
    }
    unsetenv("LIBTPU_INIT_ARGS");
}

static void write_vendor(const char *folder, const char *device, const char *vendor)
{
    char *path = ct_asprintf("%s/%s", folder, device), *file = ct_path_join(path, "vendor");
    expect_ok(ct_dir_make(path));
    expect_ok(ct_file_write(file, vendor, strlen(vendor)));
    free(file);
    free(path);
}

static void test_has_tpu(void **state)
{
    (void)state;
    char *folder = ct_test_folder_new();
    assert_false(ct_environment_has_tpu(folder));
    write_vendor(folder, "0000:00:01.0", "0x8086\n");
    write_vendor(folder, "0000:00:02.0", "");
    assert_false(ct_environment_has_tpu(folder));
    write_vendor(folder, "0000:00:05.0", "0x1ae0\n");
    assert_true(ct_environment_has_tpu(folder));
    ct_test_folder_free(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_init_args), cmocka_unit_test(test_has_tpu)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
