/* Flags in their forms, what is claimed by others, positional arguments, and the errors. */
#include "cli/args.h"

#include "base/testing.h"

typedef struct {
    const char *text;
    int64_t number;
    bool truth;
    ct_flag flags[3];
    ct_args args;
} fixture;

static size_t dotted_length(const char *const *args, size_t num_args)
{
    (void)num_args;
    const char *dot = strchr(args[0], '.');
    return dot && strchr(args[0], '=') > dot;
}

static void setup(fixture *f)
{
    *f = (fixture){.text = "default", .number = 7};
    f->flags[0] = (ct_flag){"text", CT_FLAG_TEXT, &f->text, "TEXT  a text"};
    f->flags[1] = (ct_flag){"number", CT_FLAG_INT, &f->number, "N  a number"};
    f->flags[2] = (ct_flag){"truth", CT_FLAG_BOOL, &f->truth, "a switch"};
    f->args = (ct_args){.usage = "ctitan test", .flags = f->flags, .num_flags = 3, .max_positional = 2};
}

static ct_status *parse(fixture *f, const char *line)
{
    static char copy[512];
    static char *argv[32];
    snprintf(copy, sizeof(copy), "test %s", line);
    int argc = 0;
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) argv[argc++] = word;
    argv[argc] = NULL;
    return ct_args_parse(&f->args, argc, argv);
}

static void test_forms(void **state)
{
    (void)state;
    fixture f;
    setup(&f);
    expect_ok(parse(&f, "--text=a=b one --number -12 --truth -- --two"));
    assert_string_equal(f.text, "a=b");
    assert_int_equal(f.number, -12);
    assert_true(f.truth);
    assert_int_equal(f.args.num_positional, 2);
    assert_string_equal(f.args.positional[0], "one");
    assert_string_equal(f.args.positional[1], "--two");
    ct_args_deinit(&f.args);

    setup(&f);
    expect_ok(parse(&f, "--truth=false"));
    assert_string_equal(f.text, "default");
    assert_int_equal(f.number, 7);
    assert_false(f.truth);
    ct_args_deinit(&f.args);
}

static void test_others(void **state)
{
    (void)state;
    fixture f;
    setup(&f);
    f.args.other_length = dotted_length;
    expect_ok(parse(&f, "recipe --training.steps=3 --number=1 --a.b=c"));
    assert_int_equal(f.args.num_others, 2);
    assert_string_equal(f.args.others[0], "--training.steps=3");
    assert_string_equal(f.args.others[1], "--a.b=c");
    assert_int_equal(f.args.num_positional, 1);
    ct_args_deinit(&f.args);
}

static void test_errors(void **state)
{
    (void)state;
    static const struct {
        const char *line, *message;
    } cases[] = {
        {"--nubmer=3", "there is no flag --nubmer; did you mean --number?"},
        {"--entirely-else=3", "there is no flag --entirely-else;"},
        {"--number=3x", "--number must be a whole number, found \"3x\""},
        {"--number=99999999999999999999", "--number must be a whole number"},
        {"--number", "--number needs a value"},
        {"--truth=maybe", "--truth must be true or false, found \"maybe\""},
        {"a b c", "unexpected argument \"c\""},
    };
    for (size_t i = 0; i < CT_COUNT(cases); i++) {
        fixture f;
        setup(&f);
        expect_error(parse(&f, cases[i].line), CT_CODE_INVALID_ARGUMENT, cases[i].message);
        ct_args_deinit(&f.args);
    }
    fixture f;
    setup(&f);
    f.args.min_positional = 1;
    expect_error(parse(&f, ""), CT_CODE_INVALID_ARGUMENT, "1 argument is needed, found 0");
    ct_args_deinit(&f.args);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_others),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
