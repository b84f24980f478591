#include "base/crc32c.h"
#include "base/testing.h"

/* The check value of the catalogues, and those of RFC 3720, B.4. */
static void test_known_values(void **state)
{
    (void)state;
    unsigned char bytes[32];
    assert_int_equal(ct_crc32c("123456789", 9), 0xe3069283);
    assert_int_equal(ct_crc32c("", 0), 0);
    memset(bytes, 0, sizeof(bytes));
    assert_int_equal(ct_crc32c(bytes, sizeof(bytes)), 0x8a9136aa);
    memset(bytes, 0xff, sizeof(bytes));
    assert_int_equal(ct_crc32c(bytes, sizeof(bytes)), 0x62a8ab43);
    for (size_t i = 0; i < sizeof(bytes); i++) bytes[i] = (unsigned char)i;
    assert_int_equal(ct_crc32c(bytes, sizeof(bytes)), 0x46dd794e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_known_values)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
