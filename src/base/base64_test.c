/* Base64 both ways: RFC 4648's own examples, all bytes, and texts that end early. */
#include "base/base64.h"

#include "base/testing.h"

static void check(const char *bytes, size_t size, const char *wanted)
{
    ct_str text;
    ct_str_init(&text);
    ct_base64_append(&text, bytes, size);
    if (wanted) assert_string_equal(text.data, wanted);
    size_t decoded_size;
    char *decoded = ct_base64_decode(text.data, text.length, &decoded_size);
    assert_int_equal(decoded_size, size);
    assert_memory_equal(decoded, bytes, size);
    assert_int_equal(decoded[size], 0);
    free(decoded);
    ct_str_deinit(&text);
}

static void test_both_ways(void **state)
{
    (void)state;
    check("", 0, "");
    check("f", 1, "Zg==");
    check("fo", 2, "Zm8=");
    check("foobar", 6, "Zm9vYmFy");
    char all[256];
    for (int i = 0; i < 256; i++) all[i] = (char)i;
    for (size_t size = 250; size <= 256; size++) check(all, size, NULL);
}

static void test_ends(void **state)
{
    (void)state;
    size_t size;
    char *bytes = ct_base64_decode("Zm9v\"Zm9v", 9, &size);
    assert_int_equal(size, 3);
    assert_string_equal(bytes, "foo");
    free(bytes);
    bytes = ct_base64_decode("Zm9", 3, &size); /* no padding */
    assert_int_equal(size, 2);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_ways),
        cmocka_unit_test(test_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
