#include "base/testing.h"

#include "base/utf8.h"

static void test_characters(void **state)
{
    (void)state;
    assert_int_equal(ct_utf8_next("a", 1), 1);
    assert_int_equal(ct_utf8_next("\0", 1), 1);
    assert_int_equal(ct_utf8_next("\xc3\xa9x", 3), 2);
    assert_int_equal(ct_utf8_next("\xe2\x82\xac", 3), 3);
    assert_int_equal(ct_utf8_next("\xf0\x9f\x98\x80", 4), 4);
    assert_int_equal(ct_utf8_next("\xf4\x8f\xbf\xbf", 4), 4); /* U+10FFFF */
}

static void test_cut_off(void **state)
{
    (void)state;
    assert_int_equal(ct_utf8_next("\xc3", 1), -1);
    assert_int_equal(ct_utf8_next("\xe2\x82", 2), -1);
    assert_int_equal(ct_utf8_next("\xf0\x9f\x98", 3), -1);
    assert_int_equal(ct_utf8_next("\xe0", 1), -1);
}

static void test_not_characters(void **state)
{
    (void)state;
    static const char *const bad[] = {"\x80",     "\xbf",         "\xc0\xaf", "\xc1\xbf",         "\xe0\x80\xaf",
                                      "\xe0\x9f", "\xed\xa0\x80", "\xf0\x8f", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
                                      "\xff",     "\xc3(",        "\xe2\x82("};
    for (size_t i = 0; i < CT_COUNT(bad); i++) assert_int_equal(ct_utf8_next(bad[i], strlen(bad[i])), 0);
}

static void test_replaces(void **state)
{
    (void)state;
    ct_str text;
    ct_str_init(&text);
    /* One for each longest beginning of a character: the last two bytes are one. */
    ct_utf8_append(&text, "a\xff\xc3\xa9\xe2\x82", 6);
    assert_string_equal(text.data, "a\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd");
    ct_str_reset(&text);
    ct_utf8_append(&text, "\xf0\x9f\x98\xf0\x9f\xed\xa0\x80z\xc0\xaf\xe2", 12); /* 3, 2, 1, 1, 1; z; 1, 1; 1 */
    assert_string_equal(text.data, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz"
                                   "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    ct_str_deinit(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_characters),
        cmocka_unit_test(test_cut_off),
        cmocka_unit_test(test_not_characters),
        cmocka_unit_test(test_replaces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
