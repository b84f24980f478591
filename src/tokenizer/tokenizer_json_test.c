/* tokenizer.json in small: what is read, what is refused and how it is told. Ids against other libraries are compared
 * in tests/tokenizer. */
#include "base/testing.h"

#include "tokenizer/tokenizer_json_fuzz.c"

#define BYTE_LEVEL "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"use_regex\": true}"
#define VOCAB      "\"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2, \"\\u0120\": 3, \"\\u0120ab\": 4, \"c\": 5}"
#define MERGES     "\"merges\": [\"a b\", [\"\\u0120\", \"ab\"]]"
#define MODEL      "\"model\": {\"type\": \"BPE\", " VOCAB ", " MERGES "}"
#define ADDED                                                                                                          \
    "\"added_tokens\": [{\"id\": 6, \"content\": \"<s>\", \"special\": true, \"normalized\": false},"                  \
    "{\"id\": 7, \"content\": \"cab\", \"single_word\": true, \"normalized\": false}]"

static ct_tokenizer *load(const char *json)
{
    ct_tokenizer *tokenizer;
    expect_ok(ct__read_tokenizer_json(json, strlen(json), "test.json", &tokenizer));
    return tokenizer;
}

static void expect_ids(const ct_tokenizer *tokenizer, const char *text, const ct_tokenizer_encode_opts *opts,
                       const int32_t *wanted, size_t num_wanted)
{
    int32_t *ids;
    size_t num_ids;
    expect_ok(ct_tokenizer_encode(tokenizer, text, strlen(text), opts, &ids, &num_ids));
    assert_int_equal(num_ids, num_wanted);
    assert_memory_equal(ids, wanted, num_wanted * sizeof(*ids));
    free(ids);
}
#define IDS(...) (const int32_t[]){__VA_ARGS__}, CT_COUNT(((const int32_t[]){__VA_ARGS__}))

static void test_byte_level(void **state)
{
    (void)state;
    ct_tokenizer *t =
        load("{" ADDED ", \"pre_tokenizer\": " BYTE_LEVEL ", \"decoder\": {\"type\": \"ByteLevel\"}, " MODEL "}");
    assert_string_equal(ct_tokenizer_name(t), "test.json");
    assert_int_equal(ct_tokenizer_vocab_size(t), 8);
    assert_int_equal(ct_tokenizer_bos(t), -1);
    expect_ids(t, "ab ab<s>abc", NULL, IDS(2, 4, 6, 2, 5));
    expect_ids(t, "ab<s>", &(ct_tokenizer_encode_opts){.special_as_text = true}, IDS(2)); /* no token for < s > */
    expect_ids(t, "cab cabb cab", NULL, IDS(7, 3, 5, 2, 1, 3, 7));                        /* a single word only */
    size_t length;
    assert_memory_equal(ct_tokenizer_token(t, 4, &length),
                        "\xc4\xa0"
                        "ab",
                        4);
    assert_int_equal(length, 4);
    assert_int_equal(ct_tokenizer_id(t, "<s>", 3), 6);
    assert_int_equal(ct_tokenizer_id(t, "<t>", 3), -1);
    assert_null(ct_tokenizer_token(t, 8, &length));
    assert_true(ct_tokenizer_is_special(t, 6) && !ct_tokenizer_is_special(t, 7));

    ct_str text;
    ct_str_init(&text);
    expect_ok(ct_tokenizer_decode(t, (int32_t[]){6, 4, 7}, 3, &text));
    assert_string_equal(text.data, " abcab");
    ct_str_reset(&text);
    expect_ok(ct_tokenizer_decode_all(t, (int32_t[]){6, 4, 7}, 3, &text));
    assert_string_equal(text.data, "<s> abcab");
    ct_str_deinit(&text);

    int32_t *ids;
    ct_token_range *ranges;
    size_t num_ids;
    expect_ok(ct_tokenizer_encode(t, "c ab<s>", 7, &(ct_tokenizer_encode_opts){.out_ranges = &ranges}, &ids, &num_ids));
    assert_int_equal(num_ids, 3);
    assert_memory_equal(ranges, ((ct_token_range[]){{0, 1}, {1, 4}, {4, 7}}), 3 * sizeof(*ranges));
    free(ids);
    free(ranges);
    ct_tokenizer_free(t);
}

/* Prepend and Replace move offsets; unknown characters become bytes or <unk>; the first space of a text is dropped. */
static void test_sentencepiece_style(void **state)
{
    (void)state;
    ct_tokenizer *t = load(
        "{\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"Prepend\", \"prepend\": \"_\"},"
        "{\"type\": \"Replace\", \"pattern\": {\"String\": \" \"}, \"content\": \"_\"}]},"
        "\"decoder\": {\"type\": \"Sequence\", \"decoders\": [{\"type\": \"Replace\", \"pattern\": {\"String\": \"_\"},"
        "\"content\": \" \"}, {\"type\": \"ByteFallback\"}, {\"type\": \"Fuse\"},"
        "{\"type\": \"Strip\", \"content\": \" \", \"start\": 1, \"stop\": 0}]},"
        "\"model\": {\"unk_token\": \"<u>\", \"fuse_unk\": true, \"byte_fallback\": true, \"vocab\": {\"<u>\": 0,"
        "\"a\": 1, \"_\": 2, \"_a\": 3, \"<0xC3>\": 4, \"<0xA9>\": 5}, \"merges\": [\"_ a\"]}}");
    expect_ids(t, "a a\xc3\xa9xyz", NULL, IDS(3, 3, 4, 5, 0));
    int32_t *ids;
    ct_token_range *ranges;
    size_t num_ids;
    expect_ok(ct_tokenizer_encode(t, "a a\xc3\xa9xyz", 8, &(ct_tokenizer_encode_opts){.out_ranges = &ranges}, &ids,
                                  &num_ids));
    assert_memory_equal(ranges, ((ct_token_range[]){{0, 1}, {1, 3}, {3, 4}, {4, 5}, {5, 8}}), 5 * sizeof(*ranges));
    ct_str text;
    ct_str_init(&text);
    expect_ok(ct_tokenizer_decode(t, ids, 4, &text));
    assert_string_equal(text.data, "a a\xc3\xa9");
    ct_token_stream stream;
    ct_token_stream_init(&stream, t);
    stream.begun = true; /* a prompt went before */
    ct_str_reset(&text);
    for (size_t i = 0; i < 4; i++) expect_ok(ct_token_stream_push(&stream, ids[i], &text));
    assert_string_equal(text.data, " a a\xc3\xa9");
    ct_token_stream_deinit(&stream);
    ct_str_deinit(&text);
    free(ids);
    free(ranges);
    ct_tokenizer_free(t);
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *json, *message;
        ct_code code;
    } cases[] = {
        {"{}", "test.json: model is required, but missing", CT_CODE_NOT_FOUND},
        {"{\"model\": {\"type\": \"WordPiece\"}}",
         "test.json: model: a model other than BPE and Unigram is not supported (\"type\": \"WordPiece\")",
         CT_CODE_UNIMPLEMENTED},
        {"{\"normalizer\": {\"type\": \"Nmt\"}, " MODEL "}",
         "normalizer: a normalizer of this type is not supported (\"type\": \"Nmt\")", CT_CODE_UNIMPLEMENTED},
        {"{\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [" BYTE_LEVEL
         ", {\"type\": \"Digits\"}]}, " MODEL "}",
         "pre_tokenizer.pretokenizers[1]: a pre-tokenizer behind ByteLevel is not supported", CT_CODE_UNIMPLEMENTED},
        {"{\"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": \"\\\\bx\"}}, " MODEL "}",
         "the regular expression \"\\bx\" has \\b", CT_CODE_UNIMPLEMENTED},
        {"{\"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"String\": \"x\"}, \"behavior\": \"Odd\"}, " MODEL
         "}",
         "pre_tokenizer.behavior: this behavior is not supported", CT_CODE_UNIMPLEMENTED},
        {"{\"decoder\": {\"type\": \"CTC\"}, " MODEL "}", "decoder: a decoder of this type", CT_CODE_UNIMPLEMENTED},
        {"{\"post_processor\": {\"type\": \"Odd\"}, " MODEL "}", "post_processor: a post-processor of this type",
         CT_CODE_UNIMPLEMENTED},
        {"{\"model\": {\"dropout\": 0.1, " VOCAB ", " MERGES "}}", "model.dropout: this setting of the model",
         CT_CODE_UNIMPLEMENTED},
        {"{\"model\": {\"end_of_word_suffix\": \"</w>\", " VOCAB ", " MERGES "}}",
         "model.end_of_word_suffix: this setting", CT_CODE_UNIMPLEMENTED},
        {"{\"model\": {" VOCAB ", \"merges\": [\"a c\"]}}", "merge 0: \"ac\" is not in the vocabulary",
         CT_CODE_INVALID_ARGUMENT},
        {"{\"model\": {" VOCAB ", \"merges\": [\"abc\"]}}",
         "merge 0 must be two tokens with a space between, but is \"abc\"", CT_CODE_INVALID_ARGUMENT},
        {"{\"model\": {\"vocab\": {\"a\": 1, \"b\": 1}, \"merges\": []}}",
         "ids must be unique, but 1 is both \"a\" and \"b\"", CT_CODE_INVALID_ARGUMENT},
        {"{\"model\": {\"vocab\": {\"a\": 99999999}, \"merges\": []}}", "token ids must be in [0, 8388608)",
         CT_CODE_OUT_OF_RANGE},
        {"{\"model\": {\"unk_token\": \"u\", " VOCAB ", " MERGES "}}",
         "the model's unk_token \"u\" is not in the vocabulary", CT_CODE_INVALID_ARGUMENT},
        {"{\"added_tokens\": [{\"id\": 2, \"content\": \"x\"}], " MODEL "}", "2 is both \"ab\" and \"x\"",
         CT_CODE_INVALID_ARGUMENT},
    };
    for (size_t i = 0; i < CT_COUNT(cases); i++) {
        ct_tokenizer *tokenizer;
        expect_error(ct__read_tokenizer_json(cases[i].json, strlen(cases[i].json), "test.json", &tokenizer),
                     cases[i].code, cases[i].message);
        assert_null(tokenizer);
    }
}

static void write_file(const char *folder, const char *name, const char *text)
{
    char *path = ct_path_join(folder, name);
    expect_ok(ct_file_write(path, text, strlen(text)));
    free(path);
}

static void test_folders(void **state)
{
    (void)state;
    char *folder = ct_test_folder_new();
    ct_tokenizer *t;
    expect_error(ct_tokenizer_open(folder, &t), CT_CODE_NOT_FOUND, "has no tokenizer: none of tokenizer.json");
    write_file(folder, "vocab.json",
               "{"
               "\"a\": 0, \"b\": 1, \"ab\": 2, \"<|endoftext|>\": 3"
               "}");
    write_file(folder, "merges.txt", "#version: 0.2\na b\r\n");
    expect_ok(ct_tokenizer_open(folder, &t));
    expect_ids(t, "abb<|endoftext|>", &(ct_tokenizer_encode_opts){.add_eos = true}, IDS(2, 1, 3, 3));
    ct_tokenizer_free(t);
    write_file(folder, "tokenizer.json", "{" ADDED ", \"pre_tokenizer\": " BYTE_LEVEL ", " MODEL "}");
    write_file(folder, "tokenizer_config.json", "{\"bos_token\": {\"content\": \"<s>\"}, \"eos_token\": \"cab\"}");
    expect_ok(ct_tokenizer_open(folder, &t));
    expect_ids(t, "ab", &(ct_tokenizer_encode_opts){.add_bos = true, .add_eos = true}, IDS(6, 2, 7));
    ct_tokenizer_free(t);
    write_file(folder, "tokenizer_config.json", "{\"bos_token\": null}");
    write_file(folder, "special_tokens_map.json", "{\"bos_token\": \"a\", \"eos_token\": \"b\"}");
    expect_ok(ct_tokenizer_open(folder, &t));
    assert_int_equal(ct_tokenizer_bos(t), -1);
    assert_int_equal(ct_tokenizer_eos(t), 1);
    ct_tokenizer_free(t);
    write_file(folder, "tokenizer_config.json", "{\"eos_token\": \"nope\"}");
    expect_error(ct_tokenizer_open(folder, &t), CT_CODE_INVALID_ARGUMENT,
                 "tokenizer_config.json: eos_token is \"nope\", which is no token of");
    write_file(folder, "x.tiktoken", "IQ== 0\nIg== 1\n");
    char *ranks = ct_path_join(folder, "x.tiktoken");
    expect_error(ct_tokenizer_open(ranks, &t), CT_CODE_UNIMPLEMENTED, "a rank file of 2 ranks is of no known model");
    write_file(folder, "x.tiktoken", "IQ== 0\nIg=\n");
    expect_error(ct_tokenizer_open(ranks, &t), CT_CODE_INVALID_ARGUMENT, "but is \"Ig=\"; line 2");
    free(ranks);
    write_file(folder, "tokenizer_config.json",
               "{\"bos_token\": \"<s>\", \"add_bos_token\": true, \"add_eos_token\": true}");
    expect_ok(ct_tokenizer_open(folder, &t));
    expect_ids(t, "ab", &(ct_tokenizer_encode_opts){.add_special_tokens = true}, IDS(6, 2, 1));
    ct_tokenizer_free(t);
    write_file(folder, "x.model", "\x0a\x05hello, this is none");
    char *model = ct_path_join(folder, "x.model");
    expect_error(ct_tokenizer_open(model, &t), CT_CODE_INVALID_ARGUMENT, "nor a SentencePiece model");
    free(model);
    write_file(folder, "tekken.json", "{\"config\": {\"pattern\": \".\"}, \"vocab\": []}");
    char *tekken = ct_path_join(folder, "tekken.json");
    expect_error(ct_tokenizer_open(tekken, &t), CT_CODE_NOT_FOUND, "config.default_vocab_size is required");
    free(tekken);
    char *vocab = ct_path_join(folder, "vocab.json");
    write_file(folder, "tokenizer_config.json", "{\"tokenizer_class\": \"CLIPTokenizer\"}");
    expect_error(ct_tokenizer_open(vocab, &t), CT_CODE_UNIMPLEMENTED, "of tokenizer_class \"CLIPTokenizer\"");
    write_file(folder, "tokenizer_config.json",
               "{\"tokenizer_class\": \"Qwen2Tokenizer\", \"added_tokens_decoder\": {\"4\": {\"content\": \"<t>\"}}}");
    expect_ok(ct_tokenizer_open(vocab, &t));
    expect_ids(t, "ab<t>b", NULL, IDS(2, 4, 1));
    ct_tokenizer_free(t);
    free(vocab);
    ct_test_folder_free(folder);
    expect_ok(ct_tokenizer_open("bytes", &t));
    assert_int_equal(ct_tokenizer_vocab_size(t), 258);
    ct_tokenizer_free(t);
}

static void test_fuzz_corpus(void **state)
{
    (void)state;
    assert_true(ct_test_replay(CT_TEST_CORPORA, "tokenizer_json", LLVMFuzzerTestOneInput) >= 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_byte_level), cmocka_unit_test(test_sentencepiece_style), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_folders),    cmocka_unit_test(test_fuzz_corpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
