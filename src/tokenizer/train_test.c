/* Training in small; what Hugging Face's trainer learns from real text is compared in tests/tokenizer. */
#include "base/testing.h"

#include "tokenizer/tokenizer.h"
#include "tokenizer/train.h"

static void test_learns(void **state)
{
    (void)state;
    char *folder = ct_test_folder_new();
    ct_tokenizer_trainer *trainer = ct_tokenizer_trainer_new();
    int64_t size;
    expect_error(ct_tokenizer_trainer_write(trainer, 300, folder, &size), CT_CODE_INVALID_ARGUMENT,
                 "there is no text to learn from");
    expect_ok(ct_tokenizer_trainer_add(trainer, "abab abab cd", 12));
    expect_ok(ct_tokenizer_trainer_add(trainer, " cd\xff", 4));
    expect_error(ct_tokenizer_trainer_write(trainer, 257, folder, &size), CT_CODE_INVALID_ARGUMENT,
                 "must be from 258 to 8388608, but is 257");
    /* ab (4 times), then of the pairs that come up twice that of the smaller ids: cd, before abab. */
    expect_ok(ct_tokenizer_trainer_write(trainer, 260, folder, &size));
    assert_int_equal(size, 260);
    ct_tokenizer *t;
    expect_ok(ct_tokenizer_open(folder, &t));
    assert_int_equal(ct_tokenizer_vocab_size(t), 260);
    assert_int_equal(ct_tokenizer_bos(t), 0);
    assert_int_equal(ct_tokenizer_eos(t), 1);
    assert_int_equal(ct_tokenizer_id(t, "ab", 2), 258);
    assert_int_equal(ct_tokenizer_id(t, "cd", 2), 259);
    ct_tokenizer_free(t);
    /* All there is to learn is less than asked for; training twice gives the same. */
    for (int i = 0; i < 2; i++) {
        expect_ok(ct_tokenizer_trainer_write(trainer, 1000, folder, &size));
        assert_true(size > 260 && size < 280);
    }
    expect_ok(ct_tokenizer_open(folder, &t));
    int32_t *ids;
    size_t num_ids;
    expect_ok(ct_tokenizer_encode(t, "abab abab cd cd", 15, &(ct_tokenizer_encode_opts){.add_special_tokens = true},
                                  &ids, &num_ids));
    assert_int_equal(num_ids, 5);
    assert_int_equal(ids[0], 0);
    free(ids);
    ct_tokenizer_free(t);
    ct_tokenizer_trainer_free(trainer);
    ct_test_folder_free(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_learns)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
