/* Chat templates in small: what is refused, with its line; folders; what the assistant wrote. That rendering equals
 * Jinja's is held in tests/tokenizer. */
#include "base/testing.h"

#include "tokenizer/chat_template_fuzz.c"

static const ct_chat_message messages[] = {{"user", " Hi "}, {"assistant", "Hello"}, {"user", "?"}};

static ct_status *render(const char *source, const ct_chat_opts *opts, ct_str *text)
{
    ct_chat_template *chat_template;
    CT_TRY(ct_chat_template_parse(source, strlen(source), "t", &chat_template));
    ct_status *status = ct_chat_template_render_messages(chat_template, messages, CT_COUNT(messages), opts, text);
    ct_chat_template_free(chat_template);
    return status;
}

static void test_renders(void **state)
{
    (void)state;
    static const char source[] = "{{ bos_token }}{% for m in messages %}\n"
                                 "<{{ m.role }}>{% if m.role == 'assistant' %}{% generation %}{{ m.content | trim }}."
                                 "{% endgeneration %}{% else %}{{ m.content | trim }}{% endif %}\n"
                                 "{% endfor %}\n"
                                 "{% if add_generation_prompt %}<assistant>{% endif %}";
    ct_str text;
    ct_str_init(&text);
    ct_tokenizer *tokenizer = ct_tokenizer_bytes_new();
    ct_token_range *generated;
    size_t num_generated;
    ct_chat_opts opts = {.add_generation_prompt = true,
                         .tokenizer = tokenizer,
                         .out_generated = &generated,
                         .out_num_generated = &num_generated};
    expect_ok(render(source, &opts, &text));
    assert_string_equal(text.data, "<bos><user>Hi<assistant>Hello.<user>?<assistant>");
    assert_int_equal(num_generated, 1);
    assert_memory_equal(text.data + generated[0].begin, "Hello.", generated[0].end - generated[0].begin);
    assert_int_equal(generated[0].end - generated[0].begin, 6);
    free(generated);
    ct_tokenizer_free(tokenizer);
    ct_str_deinit(&text);
}

#define MANY(text) text text text text text text text text text text text text
static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *source, *message;
        ct_code code;
    } cases[] = {
        {"a\n{% include 'x' %}", "t:2: the statement {% include %} is not supported", CT_CODE_UNIMPLEMENTED},
        {"\n\n{{ x | wordwrap }}", "t:3: the filter \"wordwrap\" is not supported", CT_CODE_UNIMPLEMENTED},
        {"{{ 1 is odder }}", "t:1: the test \"odder\" is not supported", CT_CODE_UNIMPLEMENTED},
        {"{{ lipsum() }}", "t:1: the function \"lipsum\" is not supported", CT_CODE_UNIMPLEMENTED},
        {"{{ 'x'.zfill(3) }}", "t:1: the method \"zfill\" of str is not supported", CT_CODE_UNIMPLEMENTED},
        {"{{ f(*x) }}", "t:1: a call with * is not supported", CT_CODE_UNIMPLEMENTED},
        {"{% for x in y recursive %}{% endfor %}", "t:1: a recursive loop is not supported", CT_CODE_UNIMPLEMENTED},
        {"x\n{% if y %}\nz", "t:3: {% endif %} is missing for the block of line 2", CT_CODE_INVALID_ARGUMENT},
        {"{{ x", "t:1: {{ is not closed by }}", CT_CODE_INVALID_ARGUMENT},
        {"{# x", "t:1: a comment that is not closed by #}", CT_CODE_INVALID_ARGUMENT},
        {"{{ 'x }}", "t:1: a string that is not closed", CT_CODE_INVALID_ARGUMENT},
        {"{{ a b }}", "t:1: }} was expected, found \"b\"", CT_CODE_INVALID_ARGUMENT},
        {"{{ $ }}", "t:1: the character '$' has no meaning", CT_CODE_INVALID_ARGUMENT},
        {"{% break %}", "t:1: break and continue belong in a loop", CT_CODE_INVALID_ARGUMENT},
        {"\n{{ nope.x }}", "t:2: \"nope\" is undefined", CT_CODE_INVALID_ARGUMENT},
        {"{{ raise_exception('no system') }}", "t:1: the template refuses the conversation: no system",
         CT_CODE_INVALID_ARGUMENT},
        {"{{ 1 + 'a' }}", "t:1: + does not work between int and str", CT_CODE_INVALID_ARGUMENT},
        {"{% set a.b = 1 %}", "t:1: only attributes of a namespace can be set, but a is undefined",
         CT_CODE_INVALID_ARGUMENT},
        {"{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
         "t:1: the template takes more than 512 MiB", CT_CODE_RESOURCE_EXHAUSTED},
        {"{% for i in range(1000000) %}{{ 1" MANY(MANY("+1")) "}}{% endfor %}",
         "t:1: the template does not come to an end", CT_CODE_RESOURCE_EXHAUSTED},
        {"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "t:1: nesting is deeper than 400",
         CT_CODE_RESOURCE_EXHAUSTED},
        {"{{ 'aaaaaaaaaa' * 1000000000 }}", "is too large", CT_CODE_RESOURCE_EXHAUSTED},
        {"{% set ns = namespace(x=[]) %}{% for i in range(1000) %}{% set ns.x = [ns.x] %}{% endfor %}",
         "t:1: lists are nested deeper than 500", CT_CODE_RESOURCE_EXHAUSTED},
    };
    ct_str text;
    ct_str_init(&text);
    ct_str_append(&text, "kept");
    for (size_t i = 0; i < CT_COUNT(cases); i++) {
        expect_error(render(cases[i].source, NULL, &text), cases[i].code, cases[i].message);
        assert_string_equal(text.data, "kept");
    }
    ct_str_deinit(&text);
}

static void write_file(const char *folder, const char *name, const char *text)
{
    char *path = ct_path_join(folder, name);
    expect_ok(ct_file_write(path, text, strlen(text)));
    free(path);
}

static void expect_folder(const char *folder, const char *wanted)
{
    ct_chat_template *chat_template;
    ct_str text;
    ct_str_init(&text);
    expect_ok(ct_chat_template_open(folder, &chat_template));
    expect_ok(ct_chat_template_render_messages(chat_template, messages, 1, NULL, &text));
    assert_string_equal(text.data, wanted);
    ct_str_deinit(&text);
    ct_chat_template_free(chat_template);
}

static void test_folders(void **state)
{
    (void)state;
    char *folder = ct_test_folder_new();
    ct_chat_template *chat_template;
    expect_error(ct_chat_template_open(folder, &chat_template), CT_CODE_NOT_FOUND, "has no chat template");
    write_file(folder, "tokenizer_config.json", "{\"bos_token\": null}");
    expect_error(ct_chat_template_open(folder, &chat_template), CT_CODE_NOT_FOUND, "has no chat template");
    write_file(folder, "tokenizer_config.json", "{\"chat_template\": \"A{{ messages[0].role }}\"}");
    expect_folder(folder, "Auser");
    write_file(
        folder, "tokenizer_config.json",
        "{\"chat_template\": [{\"name\": \"tool_use\", \"template\": \"no\"}, {\"name\": \"default\", \"template\": "
        "\"B{{ messages|length }}\"}]}");
    expect_folder(folder, "B1");
    write_file(folder, "tokenizer_config.json", "{\"chat_template\": \"{% x %}\"}");
    expect_error(ct_chat_template_open(folder, &chat_template), CT_CODE_UNIMPLEMENTED,
                 "chat_template:1: the statement {% x %} is not supported; reading");
    write_file(folder, "chat_template.jinja", "C\n");
    expect_folder(folder, "C");
    ct_test_folder_free(folder);
}

static void test_fuzz_corpus(void **state)
{
    (void)state;
    assert_true(ct_test_replay(CT_TEST_CORPORA, "chat_template", LLVMFuzzerTestOneInput) >= 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_renders),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_folders),
        cmocka_unit_test(test_fuzz_corpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
