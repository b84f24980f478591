/* Fine-tuning from a Hugging Face folder and conversations to a Hugging Face folder: the loss on what the assistant
 * says falls, and the folder holds the model that was trained.
 */
#include <math.h>

#include "reference.h"
#include "support.h"

#define DATA CT_SOURCE_DIR "/tests/data/"

static const char *const TOKENIZER[] = {"tokenizer.json", "tokenizer_config.json"};

/* A Hugging Face folder of initial weights. */
static const char *base(void)
{
    char *folder = ct_test_path("base");
    if (ct_path_exists(folder)) return folder;
    const char *model = ct_test_path("model");
    ct_test_write(ct_test_path("model/config.json"),
                  "{\"model_type\": \"qwen3\", \"architectures\": [\"Qwen3ForCausalLM\"], \"hidden_size\": 32, "
                  "\"num_hidden_layers\": 2, \"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"head_dim\": 8, "
                  "\"intermediate_size\": 64, \"vocab_size\": 320, \"max_position_embeddings\": 512, "
                  "\"rope_theta\": 10000, \"tie_word_embeddings\": true, \"torch_dtype\": \"float32\"}\n");
    ct_test_write(ct_test_path("model/generation_config.json"), "{\"temperature\": 0.6}\n");
    for (size_t i = 0; i < CT_COUNT(TOKENIZER); i++) {
        char *from = ct_asprintf(DATA "tokenizer/%s", TOKENIZER[i]), *text = ct_test_read(from, NULL);
        ct_test_write(ct_test_path("model/%s", TOKENIZER[i]), "%s", text);
        free(text);
        free(from);
    }
    ct_test_ok("train %s --model.flavor=%s --dump_folder=%s --training.dataset_path=" DATA "chat.jsonl "
               "--model.hf_assets_path=none --validation.no-enable --checkpoint.create_seed_checkpoint",
               CT_SOURCE_DIR "/recipes/qwen3/debug-sft.toml", model, ct_test_path("seed"));
    ct_test_ok("convert %s %s", ct_test_path("seed/checkpoint/step-0"), folder);
    return folder;
}

#define TRAIN                                                                                                          \
    "train " CT_SOURCE_DIR "/recipes/qwen3/debug-sft.toml --model.hf_assets_path=none "                                \
    "--training.dataset_path=" DATA "chat.jsonl --validation.dataset_path=" DATA "chat.jsonl "                         \
    "--checkpoint.initial_load_in_hf --model.flavor=%s --checkpoint.initial_load_path=%s --dump_folder=%s "

static void test_end_to_end(void **state)
{
    (void)state;
    const char *from = base(), *folder = ct_test_path("sft"), *result = ct_test_path("sft/checkpoint/step-20");
    ct_test_ok(TRAIN "--optimizer.lr=1e-2", from, from, folder);
    size_t num_steps, num_validations, num_again;
    ct_test_step *steps = ct_test_metrics(folder, &num_steps),
                 *validations = ct_test_validations(folder, &num_validations);
    assert_int_equal(num_steps, 20);
    assert_int_equal(num_validations, 3);
    print_message("loss %.3f, then %.3f; validation %.3f, then %.3f\n", steps[0].loss, steps[19].loss,
                  validations[0].loss, validations[2].loss);
    assert_true(steps[0].loss > 5 && steps[19].loss < 4.5);
    assert_true(validations[2].loss < 4.5);

    static const char *const names[] = {"config.json", "generation_config.json", "tokenizer.json",
                                        "tokenizer_config.json", "model.safetensors"};
    for (size_t i = 0; i < CT_COUNT(names); i++) assert_true(ct_test_folder_has(result, names[i]));
    for (size_t i = 0; i < CT_COUNT(TOKENIZER); i++) {
        char *before = ct_test_read(ct_test_path("model/%s", TOKENIZER[i]), NULL);
        char *after = ct_test_read(ct_test_path("sft/checkpoint/step-20/%s", TOKENIZER[i]), NULL);
        assert_string_equal(after, before);
        free(before);
        free(after);
    }

    /* what was saved is what was validated at the end */
    const char *again = ct_test_path("again");
    ct_test_ok(TRAIN "--optimizer.lr=0 --training.steps=1 --checkpoint.no-enable", result, result, again);
    ct_test_step *after = ct_test_validations(again, &num_again);
    assert_true(fabs(after[0].loss / validations[2].loss - 1) < 1e-6);
    free(after);
    free(steps);
    free(validations);

    int32_t ids[66];
    for (uint32_t i = 0; i < CT_COUNT(ids); i++) ids[i] = (int32_t)((ct_test_random(8, i) + 1) * 150);
    ct_safetensors_entry entry = {"tokens", {.dtype = CT_DTYPE_S32, .rank = 2, .sizes = {2, 33}, .data = ids}};
    const char *tokens = ct_test_path("tokens.safetensors"), *scores = ct_test_path("scores.safetensors");
    expect_ok(ct_safetensors_save(tokens, &entry, 1));
    ct_test_ok("score --model=%s --tokens=%s --output=%s --logits", result, tokens, scores);
}

static void test_refused(void **state)
{
    (void)state;
    const char *from = base();
    ct_test_fails(1, "model.hf_assets_path to the folder of a tokenizer that has one",
                  TRAIN "--model.hf_assets_path=bytes", from, from, ct_test_path("refused"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_end_to_end), cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, ct_test_world_free);
}
