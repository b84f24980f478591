/* Stop ids of folders, stop texts across the pieces of a stream. */
#include "generate/stops.h"

#include "base/testing.h"

static bool find(const char *text, const char *const *stops, size_t num_stops, size_t *out_length)
{
    ct_str str;
    ct_str_init(&str);
    ct_str_append(&str, text);
    bool found = ct_stop_find(&str, stops, num_stops, out_length);
    ct_str_deinit(&str);
    return found;
}

static void test_texts(void **state)
{
    (void)state;
    static const char *const stops[] = {"abcd", "cx", "\n\n"};
    static const struct {
        const char *text;
        bool found;
        size_t length;
    } cases[] = {
        {"", false, 0},     {"hello", false, 5}, {"xxabcdyy", true, 2}, {"xxabc", false, 2},
        {"ab cx", true, 3}, {"abcx", true, 2},   {"zc", false, 1},      {"a\n", false, 1},
        {"a\n\n", true, 1}, {"ababcd", true, 2}, {"cxabcd", true, 0},   {"ababab", false, 4},
    };
    for (size_t i = 0; i < CT_COUNT(cases); i++) {
        size_t length;
        assert_int_equal(find(cases[i].text, stops, CT_COUNT(stops), &length), cases[i].found);
        assert_int_equal(length, cases[i].length);
    }
    size_t length;
    assert_false(find("abcd", NULL, 0, &length));
    assert_int_equal(length, 4);
}

/* config, generation: the files' texts, NULL: absent. wanted ends with -1. */
static void check_ids(const char *config, const char *generation, const int32_t *wanted)
{
    char *folder = ct_test_folder_new();
    char *paths[2] = {ct_path_join(folder, "config.json"), ct_path_join(folder, "generation_config.json")};
    const char *texts[2] = {config, generation};
    for (int i = 0; i < 2; i++) {
        if (texts[i]) expect_ok(ct_file_write(paths[i], texts[i], strlen(texts[i])));
        free(paths[i]);
    }
    ct_tokenizer *bytes = ct_tokenizer_bytes_new();
    ct_stop_ids found;
    expect_ok(ct_stop_ids_read(folder, bytes, &found));
    size_t count = 0;
    while (wanted[count] >= 0) assert_true(ct_stop_ids_has(&found, wanted[count++]));
    assert_int_equal(found.num_ids, count);
    free(found.ids);
    ct_tokenizer_free(bytes);
    ct_test_folder_free(folder);
}

static void test_ids(void **state)
{
    (void)state;
    check_ids(NULL, NULL, (const int32_t[]){257, -1});
    check_ids("{\"eos_token_id\": 2}", NULL, (const int32_t[]){2, 257, -1});
    check_ids("{\"eos_token_id\": 2}", "{\"eos_token_id\": null}", (const int32_t[]){2, 257, -1});
    check_ids("{\"eos_token_id\": 2}", "{\"eos_token_id\": [7, 9, 7, 257]}", (const int32_t[]){7, 9, 257, -1});
    char *folder = ct_test_folder_new(), *path = ct_path_join(folder, "generation_config.json");
    ct_tokenizer *bytes = ct_tokenizer_bytes_new();
    ct_stop_ids found;
    const char *wrong = "{\"eos_token_id\": [1, -4]}", *word = "{\"eos_token_id\": \"</s>\"}";
    expect_ok(ct_file_write(path, wrong, strlen(wrong)));
    expect_error(ct_stop_ids_read(folder, bytes, &found), CT_CODE_INVALID_ARGUMENT, "must be a token's id, found -4");
    expect_ok(ct_file_write(path, word, strlen(word)));
    expect_error(ct_stop_ids_read(folder, bytes, &found), CT_CODE_INVALID_ARGUMENT, "eos_token_id");
    assert_true(!found.ids && !found.num_ids);
    ct_tokenizer_free(bytes);
    free(path);
    ct_test_folder_free(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_texts), cmocka_unit_test(test_ids)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
