/* Finding and loading plugins, and what they say of themselves. */
#include "pjrt/plugin.h"

#include "pjrt/plugin_search.h"
#include "pjrt/testing.h"

static void test_default_plugin(void **state)
{
    (void)state;
    ct_plugin *plugin = ct_test_plugin();
    int major, minor;
    ct_plugin_api_version(plugin, &major, &minor);
    assert_int_equal(major, 0);
    assert_true(minor >= 60);
    assert_non_null(ct_plugin_stablehlo_version(plugin));
    assert_true(ct_plugin_has_extension(plugin, 5));
    assert_false(ct_plugin_has_extension(plugin, 12345));
    size_t num_attributes;
    const ct_named_value *attributes = ct_plugin_attributes(plugin, &num_attributes);
    assert_non_null(ct_named_value_find(attributes, num_attributes, "stablehlo_minimum_version"));
}

static void test_same_library_is_one_plugin(void **state)
{
    (void)state;
    ct_plugin *plugin = ct_test_plugin(), *again;
    char *folder = ct_path_parent(ct_plugin_path(plugin));
    char *roundabout = ct_asprintf("%s/./%s", folder, strrchr(ct_plugin_path(plugin), '/') + 1);
    expect_ok(ct_plugin_load(&(ct_plugin_opts){.path = roundabout}, &again));
    assert_ptr_equal(plugin, again);
    free(roundabout);
    free(folder);
}

static void test_search(void **state)
{
    (void)state;
    ct_plugin *plugin;
    char *folder = ct_test_folder_new();
    const char *folders[] = {folder};
    ct_plugin_opts opts = {.platform = "cuda", .folders = folders, .num_folders = 1};
    char *path;
    ct_status *status = ct__plugin_find(&opts, &path);
    if (status) { /* else it is installed here */
        assert_int_equal(ct_status_code(status), CT_CODE_NOT_FOUND);
        assert_non_null(strstr(ct_status_message(status), folder));
        assert_non_null(strstr(ct_status_message(status), "xla_cuda13/xla_cuda_plugin.so"));
        assert_non_null(strstr(ct_status_message(status), "CTITAN_PLUGIN_PATH"));
    }
    ct_status_free(status);
    free(path);

    opts.platform = "abacus";
    expect_error(ct_plugin_load(&opts, &plugin), CT_CODE_INVALID_ARGUMENT, "found \"abacus\"");

    /* A folder of the caller's comes before the built-in ones: this file is found there, and is no library. */
    char *library_folder = ct_path_join(folder, "xla_cpu_pjrt");
    char *library = ct_path_join(library_folder, "xla_cpu_pjrt.so");
    expect_ok(ct_dir_make(library_folder));
    expect_ok(ct_file_write(library, "not a library", 13));
    opts.platform = "cpu";
    expect_error(ct_plugin_load(&opts, &plugin), CT_CODE_INVALID_ARGUMENT, library);
    free(library);
    free(library_folder);
    ct_test_folder_free(folder);
}

static void test_no_plugin(void **state)
{
    (void)state;
    ct_plugin *plugin;
    expect_error(ct_plugin_load(&(ct_plugin_opts){.path = "/nowhere/plugin.so"}, &plugin), CT_CODE_NOT_FOUND,
                 "/nowhere/plugin.so");
    expect_error(ct_plugin_load(&(ct_plugin_opts){.path = "libm.so.6"}, &plugin), CT_CODE_INVALID_ARGUMENT,
                 "exports no GetPjrtApi");
}

static void test_client(void **state)
{
    (void)state;
    ct_client *client = ct_test_client(3);
    assert_string_equal(ct_client_platform_name(client), "cpu");
    assert_int_equal(ct_client_num_devices(client), 3);
    assert_int_equal(ct_client_num_addressable_devices(client), 3);
    for (size_t i = 0; i < 3; i++) {
        ct_device *device = ct_client_addressable_device(client, i);
        assert_int_equal(ct_device_id(device), (int)i);
        assert_ptr_equal(ct_device_client(device), client);
        assert_non_null(ct_device_default_memory(device));
        const ct_memory *memory;
        expect_ok(ct_device_memory(device, ct_memory_kind(ct_device_default_memory(device)), &memory));
        assert_ptr_equal(memory, ct_device_default_memory(device));
        expect_error(ct_device_memory(device, "attic", &memory), CT_CODE_NOT_FOUND, "no memory of kind \"attic\"");
        ct_memory_stats stats;
        expect_ok(ct_device_memory_stats(device, &stats));
        assert_true(stats.bytes_in_use >= -1);
    }
    ct_client_free(client);
    expect_error(ct_client_new(ct_test_plugin(), &(ct_client_opts){.device_count = -1}, &client),
                 CT_CODE_INVALID_ARGUMENT, "must be positive, found -1");
}

static void test_values(void **state)
{
    (void)state;
    ct_arena arena;
    ct_arena_init(&arena);
    ct_named_value value;
    static const struct {
        const char *text, *name;
        ct_value_type type;
        const char *shown;
    } cases[] = {
        {"--xla_a=true", "xla_a", CT_VALUE_BOOL, "true"},
        {"xla_b", "xla_b", CT_VALUE_BOOL, "true"},
        {"c=false", "c", CT_VALUE_BOOL, "false"},
        {"d=-12", "d", CT_VALUE_INT, "-12"},
        {"e=1.5", "e", CT_VALUE_FLOAT, "1.5"},
        {"f=a=b", "f", CT_VALUE_TEXT, "a=b"},
        {"g=", "g", CT_VALUE_TEXT, ""},
    };
    for (size_t i = 0; i < CT_COUNT(cases); i++) {
        expect_ok(ct_named_value_parse(&arena, cases[i].text, &value));
        assert_string_equal(value.name, cases[i].name);
        assert_int_equal(value.type, cases[i].type);
        assert_string_equal(ct_named_value_text(&arena, &value), cases[i].shown);
    }
    expect_error(ct_named_value_parse(&arena, "--=3", &value), CT_CODE_INVALID_ARGUMENT, "must read name=value");
    value = (ct_named_value){.type = CT_VALUE_INT_LIST, .list = (int64_t[]){1, 13, 3}, .num_list = 3};
    assert_string_equal(ct_named_value_text(&arena, &value), "1.13.3");
    ct_arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_default_plugin), cmocka_unit_test(test_same_library_is_one_plugin),
        cmocka_unit_test(test_search),         cmocka_unit_test(test_no_plugin),
        cmocka_unit_test(test_client),         cmocka_unit_test(test_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
