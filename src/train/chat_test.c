/* Conversations through a recipe: the tokenizer's own template, every assistant turn in the loss and nothing else. */
#include "train/chat.h"

#include "base/testing.h"
#include "train/setup.h"

#define DATA CT_SOURCE_DIR "/tests/data/"
enum { SEQ_LEN = 512 };

static ct_recipe *parse(const char *format, ...) CT_PRINTF(1, 2);
static ct_recipe *parse(const char *format, ...)
{
    char *text;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0) fail_msg("cannot format %s", format);
    va_end(arguments);
    ct_recipe *recipe;
    expect_ok(ct_recipe_parse("r.toml", text, strlen(text), &(ct_recipe_load_opts){0}, &recipe));
    free(text);
    return recipe;
}

static const char RECIPE[] = "[model]\nname = \"qwen3\"\nflavor = \"debugmodel\"\n%s"
                             "[training]\ndataset_path = \"" DATA "chat.jsonl\"\nseq_len = %d\n"
                             "[dataloader]\nmessages_column = \"messages\"\nshuffle = false\npacking = \"none\"\n";
static const char WITH_TEMPLATE[] = "hf_assets_path = \"" DATA "tokenizer\"\n";

/* What the template makes of the content: without blanks at its ends. */
static void append_trimmed(ct_str *out, const char *content)
{
    size_t length = strlen(content);
    while (length && strchr(" \t\n", content[length - 1])) length--;
    while (length && strchr(" \t\n", *content)) content++, length--;
    ct_str_append_n(out, content, length);
}

static void test_labels(void **state)
{
    (void)state;
    ct_recipe *recipe = parse(RECIPE, WITH_TEMPLATE, SEQ_LEN);
    ct_model *model;
    ct_tokenizer *tokenizer;
    ct_recipe_chat chat;
    expect_ok(ct_recipe_model(recipe, &model));
    expect_ok(ct_recipe_tokenizer(recipe, &tokenizer));
    expect_ok(ct_recipe_chat_open(&chat, recipe, tokenizer));
    ct_step_opts step = {.batch = 1, .num_microbatches = 1};
    ct_dataset_opts opts = ct_recipe_data(recipe, &step, model, tokenizer, &chat.renderer);
    ct_dataset *dataset;
    expect_ok(ct_dataset_open(&opts, &dataset));
    ct_batch batch;
    ct_batch_init(&batch, dataset);
    char *text, *rest = NULL;
    size_t size;
    int num_turns = 0;
    expect_ok(ct_file_read(DATA "chat.jsonl", &text, &size));
    ct_str whole, wanted, found;
    ct_str_init(&whole);
    ct_str_init(&wanted);
    ct_str_init(&found);
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        ct_json *json;
        expect_ok(ct_json_parse(line, strlen(line), "chat.jsonl", &json));
        ct_str_reset(&whole);
        ct_str_reset(&wanted);
        ct_json_iter iter = ct_json_iterate(ct_json_get(ct_json_root(json), "messages"));
        while (ct_json_next(&iter)) {
            const char *role, *content;
            expect_ok(ct_json_need_string(iter.value, "role", &role));
            expect_ok(ct_json_need_string(iter.value, "content", &content));
            bool is_learned = !strcmp(role, "assistant");
            num_turns += is_learned;
            ct_str_printf(&whole, "<|im_start|>%s\n", role);
            append_trimmed(&whole, content);
            ct_str_append(&whole, "<|im_end|>\n");
            if (!is_learned) continue;
            append_trimmed(&wanted, content);
            ct_str_append(&wanted, "<|im_end|>");
        }
        ct_json_free(json);
        expect_ok(ct_dataset_next(dataset, &batch));
        const int32_t *labels = batch.labels.data, *inputs = batch.inputs.data;
        ct_str_reset(&found);
        for (int i = 0; i < SEQ_LEN; i++)
            if (labels[i] != CT_IGNORED_LABEL) expect_ok(ct_tokenizer_decode_all(tokenizer, &labels[i], 1, &found));
        assert_string_equal(found.data, wanted.data);
        ct_str_reset(&found);
        expect_ok(ct_tokenizer_decode_all(tokenizer, inputs, SEQ_LEN, &found));
        assert_memory_equal(found.data, whole.data, whole.length - 1); /* the last token is a label alone */
    }
    assert_true(num_turns > 25); /* some conversations have several */
    ct_str_deinit(&whole);
    ct_str_deinit(&wanted);
    ct_str_deinit(&found);
    free(text);
    ct_batch_deinit(&batch);
    ct_dataset_close(dataset);
    ct_recipe_chat_close(&chat);
    ct_tokenizer_free(tokenizer);
    ct_model_free(model);
    ct_recipe_free(recipe);
}

static void expect_refused(const char *assets, const char *why)
{
    ct_recipe *recipe = parse(RECIPE, assets, SEQ_LEN);
    ct_recipe_chat chat;
    ct_status *status = ct_recipe_chat_open(&chat, recipe, NULL);
    const char *message = ct_status_message(status);
    assert_int_equal(ct_status_code(status), CT_CODE_FAILED_PRECONDITION);
    if (!strstr(message, why) || !strstr(message, "r.toml:") || !strstr(message, "set model.hf_assets_path"))
        fail_msg("the message lacks \"%s\", its line, or what to do: %s", why, message);
    ct_status_free(status);
    ct_recipe_chat_close(&chat);
    ct_recipe_free(recipe);
}

static void test_without_template(void **state)
{
    (void)state;
    expect_refused("", "the tokenizer \"bytes\" has no chat template");
    char *folder = ct_test_folder_new(), *config = ct_path_join(folder, "tokenizer_config.json");
    expect_ok(ct_file_write(config, "{}", 2));
    char *assets = ct_asprintf("hf_assets_path = \"%s\"\n", folder);
    expect_refused(assets, "neither chat_template.jinja nor");
    free(assets);
    free(config);
    ct_test_folder_free(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_labels), cmocka_unit_test(test_without_template)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
