/* environment.json: each run says what it ran, where and on what; and nothing of the environment but XLA's flags. */
#include <stdlib.h>
#include <sys/utsname.h>
#include <time.h>

#include "formats/json.h"
#include "support.h"

static const char *text_of(ct_json_value value, const char *key)
{
    const char *text;
    expect_ok(ct_json_need_string(value, key, &text));
    return text;
}

static void test_environment(void **state)
{
    (void)state;
    setenv("SOME_SERVICE_TOKEN", "hunter2-is-secret", 1);
    const char *folder = ct_test_path("run");
    ct_test_write(ct_test_path("text.txt"), "some text to learn from, again and again and again and again\n");
    ct_test_write(ct_test_path("recipe.toml"),
                  "[model]\nname = \"llama3\"\nflavor = \"debugmodel\"\n"
                  "[training]\nlocal_batch_size = 2\nseq_len = 16\nsteps = 1\ndataset_path = \"%s\"\n",
                  ct_test_path("text.txt"));
    time_t before = time(NULL);
    ct_test_ok("train %s --dump_folder=%s --device.count=2", ct_test_path("recipe.toml"), folder);
    char *bytes = ct_test_read(ct_test_path("run/environment.json"), NULL);
    assert_null(strstr(bytes, "hunter2"));
    assert_null(strstr(bytes, "SOME_SERVICE_TOKEN"));
    free(bytes);

    ct_json *json;
    expect_ok(ct_json_read(ct_test_path("run/environment.json"), &json));
    ct_json_value root = ct_json_root(json), plugin = ct_json_get(root, "plugin");
    ct_test_run version = ct_test_start("--version");
    ct_test_wait(&version);
    assert_non_null(strstr(version.out, text_of(root, "version")));
    ct_test_run_free(&version);
    ct_json_iter words = ct_json_iterate(ct_json_get(root, "command"));
    const char *expected[] = {"ctitan", "train", ct_test_path("recipe.toml"), ct_asprintf("--dump_folder=%s", folder),
                              "--device.count=2"};
    for (size_t i = 0; i < CT_COUNT(expected); i++) {
        assert_true(ct_json_next(&words));
        const char *word;
        expect_ok(ct_json_as_string(words.value, &word));
        assert_string_equal(word, expected[i]);
    }
    assert_false(ct_json_next(&words));
    free((char *)expected[3]);
    struct tm started = {0};
    assert_non_null(strptime(text_of(root, "started"), "%Y-%m-%dT%H:%M:%SZ", &started));
    assert_true(timegm(&started) >= before && timegm(&started) <= time(NULL));
    struct utsname names;
    assert_int_equal(uname(&names), 0);
    assert_string_equal(text_of(ct_json_get(root, "host"), "name"), names.nodename);
    assert_string_equal(text_of(ct_json_get(root, "host"), "release"), names.release);
    assert_string_equal(text_of(plugin, "platform"), "cpu");
    assert_true(ct_path_exists(text_of(plugin, "path")));
    assert_true(strtod(text_of(plugin, "api_version"), NULL) > 0);
    int64_t count;
    expect_ok(ct_json_need_int(ct_json_get(root, "devices"), "count", &count));
    assert_int_equal(count, 2);
    assert_string_equal(text_of(ct_json_get(root, "devices"), "kind"), "cpu");
    ct_json_free(json);
}

/* The commit is that of the sources, where they are a checkout. */
static void test_commit(void **state)
{
    (void)state;
    ct_json *json;
    expect_ok(ct_json_read(ct_test_path("run/environment.json"), &json));
    FILE *git = popen("git -C " CT_SOURCE_DIR " rev-parse HEAD 2>/dev/null", "r");
    char head[64] = "";
    bool is_checkout = git && fscanf(git, "%63s", head) == 1;
    if (git) pclose(git);
    ct_json_value commit = ct_json_get(ct_json_root(json), "commit");
    if (is_checkout) {
        const char *text;
        expect_ok(ct_json_as_string(commit, &text));
        assert_int_equal(strspn(text, "0123456789abcdef"), 40);
        assert_true(!text[40] || !strcmp(text + 40, "-modified"));
        if (strncmp(text, head, 40) != 0) print_message("built from %.40s, the sources are at %s\n", text, head);
    } else {
        assert_true(ct_json_is_null(commit));
    }
    ct_json_free(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_environment), cmocka_unit_test(test_commit)};
    return cmocka_run_group_tests(tests, NULL, ct_test_world_free);
}
