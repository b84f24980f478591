/* ctitan generate: the likeliest tokens by the logits that ctitan score gives, texts, chats, stops, seeds, mistakes. */
#include "support.h"

#define DATA CT_SOURCE_DIR "/tests/data/"

/* What the command prints. */
static char *output(const char *arguments)
{
    ct_test_run run = ct_test_start("generate %s", arguments);
    ct_test_wait(&run);
    ct_test_expect(&run, 0, "");
    char *text = strdup(run.out);
    ct_test_run_free(&run);
    return text;
}

enum { NEW = 20 };

/* A line of NEW ids. */
static const char *parse_line(const char *text, int32_t *out_ids)
{
    char *end;
    for (int i = 0; i < NEW; i++, text = end) {
        out_ids[i] = (int32_t)strtol(text, &end, 10);
        assert_ptr_not_equal(text, end);
    }
    assert_memory_equal(end, " \n", 2);
    return end + 2;
}

/* ids behind prompt, whose bytes are tokens, must be where score finds the largest logits. */
static void expect_likeliest(const char *model, const char *prompt, const int32_t *ids)
{
    size_t length = strlen(prompt);
    int32_t tokens[64 + NEW];
    for (size_t i = 0; i < length; i++) tokens[i] = (unsigned char)prompt[i];
    memcpy(tokens + length, ids, NEW * sizeof(*ids));
    ct_array array = {.dtype = CT_DTYPE_S32, .rank = 2, .sizes = {1, (int64_t)length + NEW}, .data = tokens};
    ct_safetensors_entry entry = {"tokens", array};
    const char *in = ct_test_path("tokens.safetensors"), *out = ct_test_path("scores.safetensors");
    expect_ok(ct_safetensors_save(in, &entry, 1));
    ct_test_ok("score --model=" CT_TEST_GOLDEN "/%s --tokens=%s --output=%s --logits", model, in, out);
    ct_safetensors *scores;
    expect_ok(ct_safetensors_open(out, &scores));
    ct_test_values logits = ct_test_tensor(scores, "logits");
    int64_t vocab = logits.count / ((int64_t)length + NEW - 1);
    for (size_t t = 0; t < NEW; t++) {
        const double *row = logits.data + ((int64_t)(length + t) - 1) * vocab;
        int64_t best = 0;
        for (int64_t i = 1; i < vocab; i++) best = row[i] > row[best] ? i : best;
        if (ids[t] != best)
            fail_msg("%s, \"%s\": token %zu is %d, not %lld", model, prompt, t, ids[t], (long long)best);
    }
    free(logits.data);
    ct_safetensors_close(scores);
}

static void check_model(const char *model)
{
    char *arguments = ct_asprintf("--model=" CT_TEST_GOLDEN "/%s --tokenizer=bytes --ids --max-tokens=%d "
                                  "--prompt=Hello,there --prompt=A",
                                  model, NEW);
    char *text = output(arguments);
    int32_t ids[2][NEW];
    const char *rest = parse_line(parse_line(text, ids[0]), ids[1]);
    assert_string_equal(rest, "");
    expect_likeliest(model, "Hello,there", ids[0]);
    expect_likeliest(model, "A", ids[1]);
    free(text);
    free(arguments);
}

static void test_likeliest(void **state)
{
    (void)state;
    check_model("llama3_tiny");
    check_model("qwen3_tiny");
}

#define TINY "--model=" CT_TEST_GOLDEN "/llama3_tiny --tokenizer=bytes --prompt=A "

#define REPEATS "--model=" CT_TEST_GOLDEN "/llama3_tiny --tokenizer=bytes --prompt=abc --max-tokens=20 "

static void test_stop_text(void **state)
{
    (void)state;
    char *whole = output(REPEATS), *cut = output(REPEATS "--stop=never --stop=eee");
    char *at = strstr(whole, "eee");
    assert_non_null(at);
    size_t length = (size_t)(at - whole);
    assert_true(length > 0);
    assert_int_equal(strlen(cut), length + 1);
    assert_memory_equal(cut, whole, length);
    assert_int_equal(cut[length], '\n');
    free(whole);
    free(cut);
}

static void test_seeds(void **state)
{
    (void)state;
#define DRAWN TINY "--ids --max-tokens=20 --temperature=1.3 --top-k=200 --top-p=0.95 --min-p=0.001 "
    char *one = output(DRAWN "--seed=1"), *again = output(DRAWN "--seed=1"), *two = output(DRAWN "--seed=2");
    char *more = output(DRAWN "--seed=1 --prompt=A_longer_prompt_that_pads_the_first"); /* the first row is as before */
    assert_string_equal(one, again);
    assert_string_not_equal(one, two);
    assert_memory_equal(more, one, strlen(one));
    free(one);
    free(again);
    free(two);
    free(more);
}

/* A folder with a tokenizer that has a chat template. */
static const char *chat_folder(void)
{
    static const char *const files[] = {"tokenizer.json", "tokenizer_config.json"};
    ct_test_write(ct_test_path("model/config.json"),
                  "{\"model_type\": \"qwen3\", \"architectures\": [\"Qwen3ForCausalLM\"], \"hidden_size\": 32, "
                  "\"num_hidden_layers\": 2, \"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"head_dim\": 8, "
                  "\"intermediate_size\": 64, \"vocab_size\": 320, \"max_position_embeddings\": 512, "
                  "\"rope_theta\": 10000, \"tie_word_embeddings\": true, \"torch_dtype\": \"float32\"}\n");
    for (size_t i = 0; i < CT_COUNT(files); i++) {
        char *from = ct_asprintf(DATA "tokenizer/%s", files[i]), *text = ct_test_read(from, NULL);
        ct_test_write(ct_test_path("model/%s", files[i]), "%s", text);
        free(text);
        free(from);
    }
    const char *model = ct_test_path("model"), *folder = ct_test_path("base");
    ct_test_ok("train %s --model.flavor=%s --dump_folder=%s --training.dataset_path=" DATA "chat.jsonl "
               "--model.hf_assets_path=none --validation.no-enable --checkpoint.create_seed_checkpoint",
               CT_SOURCE_DIR "/recipes/qwen3/debug-sft.toml", model, ct_test_path("seed"));
    ct_test_ok("convert %s %s", ct_test_path("seed/checkpoint/step-0"), folder);
    return folder;
}

static void test_chat(void **state)
{
    (void)state;
    const char *folder = chat_folder();
    char *chat = ct_asprintf("--model=%s --ids --max-tokens=12 --chat --system=Brief. --prompt=Hi", folder);
    char *plain = ct_asprintf("--model=%s --ids --max-tokens=12 --prompt=<|im_start|>system\nBrief.<|im_end|>\n"
                              "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n",
                              folder);
    char *bare = ct_asprintf("--model=%s --ids --max-tokens=12 --prompt=Hi", folder);
    char *a = output(chat), *b = output(plain), *c = output(bare);
    assert_string_equal(a, b);
    assert_string_not_equal(a, c);
    char *half = ct_asprintf("%s --dtype=bfloat16", chat), *d = output(half);
    assert_true(strtol(d, NULL, 10) >= 0 && strchr(d, '\n'));
    free(a);
    free(b);
    free(c);
    free(d);
    free(chat);
    free(plain);
    free(bare);
    free(half);
}

static void test_mistakes(void **state)
{
    (void)state;
    ct_test_fails(2, "--model and --prompt are required", "generate --prompt=A");
    ct_test_fails(2, "want --temperature above 0", "generate " TINY "--top-k=3");
    ct_test_fails(2, "--temperature must be a number, found \"warm\"", "generate " TINY "--temperature=warm");
    ct_test_fails(2, "top-p must be above 0 and at most 1", "generate " TINY "--temperature=1 --top-p=0");
    ct_test_fails(2, "it wants --chat", "generate " TINY "--system=x");
    ct_test_fails(2, "--dtype must be float32 or bfloat16", "generate " TINY "--dtype=int8");
    ct_test_fails(1, "exceed the model's longest sequence, 128", "generate " TINY "--max-tokens=128");
    ct_test_fails(1, "ctitan convert makes one", "generate --prompt=A --model=%s", ct_test_path("."));
    ct_test_fails(1, "has no tokenizer", "generate --model=" CT_TEST_GOLDEN "/llama3_tiny --prompt=A");
    ct_test_fails(1, "a stop text must have at least one character", "generate " TINY "--stop=");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_likeliest), cmocka_unit_test(test_stop_text), cmocka_unit_test(test_seeds),
        cmocka_unit_test(test_chat),      cmocka_unit_test(test_mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, ct_test_world_free);
}
