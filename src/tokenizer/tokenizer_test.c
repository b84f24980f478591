#include "base/testing.h"

#include "tokenizer/tokenizer.h"

static void test_bytes(void **state)
{
    (void)state;
    ct_tokenizer *tokenizer = ct_tokenizer_bytes_new();
    assert_int_equal(ct_tokenizer_vocab_size(tokenizer), 258);
    assert_int_equal(ct_tokenizer_bos(tokenizer), 256);
    assert_int_equal(ct_tokenizer_eos(tokenizer), 257);
    assert_true(ct_tokenizer_is_special(tokenizer, 256));
    assert_false(ct_tokenizer_is_special(tokenizer, 255));
    assert_false(ct_tokenizer_is_special(tokenizer, 258));

    int32_t *ids;
    size_t num_ids;
    expect_ok(ct_tokenizer_encode(tokenizer, "a\0\xff", 3,
                                  &(ct_tokenizer_encode_opts){.add_bos = true, .add_eos = true}, &ids, &num_ids));
    assert_int_equal(num_ids, 5);
    assert_memory_equal(ids, ((int32_t[]){256, 'a', 0, 255, 257}), 20);
    ct_str text;
    ct_str_init(&text);
    expect_ok(ct_tokenizer_decode(tokenizer, ids, num_ids, &text));
    assert_int_equal(text.length, 3);
    assert_memory_equal(text.data, "a\0\xff", 3);
    free(ids);
    expect_ok(ct_tokenizer_encode(tokenizer, "", 0, NULL, &ids, &num_ids));
    assert_int_equal(num_ids, 0);
    free(ids);

    expect_error(ct_tokenizer_decode(tokenizer, (int32_t[]){1, 258}, 2, &text), CT_CODE_OUT_OF_RANGE,
                 "token ids must be in [0, 258) for tokenizer bytes, but the one at 1 is 258");
    expect_error(ct_tokenizer_decode(tokenizer, (int32_t[]){-1}, 1, &text), CT_CODE_OUT_OF_RANGE, "is -1");
    assert_int_equal(text.length, 3);
    ct_str_deinit(&text);
    ct_tokenizer_free(tokenizer);
}

/* Pushes bytes one id at a time; after each, the text must be what `shown` says. */
static void stream(const int32_t *ids, size_t num_ids, const char *const *shown, const char *at_end)
{
    ct_tokenizer *tokenizer = ct_tokenizer_bytes_new();
    ct_token_stream decoder;
    ct_str text;
    ct_token_stream_init(&decoder, tokenizer);
    ct_str_init(&text);
    for (size_t i = 0; i < num_ids; i++) {
        expect_ok(ct_token_stream_push(&decoder, ids[i], &text));
        assert_string_equal(text.data, shown[i]);
    }
    ct_token_stream_finish(&decoder, &text);
    assert_string_equal(text.data, at_end);
    expect_error(ct_token_stream_push(&decoder, 300, &text), CT_CODE_OUT_OF_RANGE, "is 300");
    ct_str_deinit(&text);
    ct_token_stream_deinit(&decoder);
    ct_tokenizer_free(tokenizer);
}

#define FFFD "\xef\xbf\xbd"
static void test_stream_holds_back(void **state)
{
    (void)state;
    stream((int32_t[]){'a', 0xe2, 0x82, 0xac, 'b'}, 5,
           (const char *const[]){"a", "a", "a", "a\xe2\x82\xac",
                                 "a\xe2\x82\xac"
                                 "b"},
           "a\xe2\x82\xac"
           "b");
    /* A broken character shows as soon as it cannot become one. */
    stream((int32_t[]){0xe2, 'x', 0xff, 0xf0, 0x9f}, 5,
           (const char *const[]){"", FFFD "x", FFFD "x" FFFD, FFFD "x" FFFD, FFFD "x" FFFD}, FFFD "x" FFFD FFFD);
    stream((int32_t[]){0xc3, 257, 'z'}, 3, (const char *const[]){"", FFFD, FFFD "z"}, FFFD "z");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_stream_holds_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
