/* The matchers written by hand against the same patterns in PCRE2, and what the rewriting refuses. */
#include "base/testing.h"

#include "tokenizer/pattern.h"
#include "tokenizer/unicode.h"

typedef struct pair {
    ct__scan_function *scan;
    ct__pattern *generic;
    ct__matcher *matcher;
} pair;

/* Both must cut the text alike. */
static void compare(const pair *p, const char *text, size_t length)
{
    for (size_t at = 0; at < length;) {
        bool found;
        size_t begin, end;
        expect_ok(ct__pattern_match(p->generic, p->matcher, text, length, at, &found, &begin, &end));
        assert_true(found);
        assert_int_equal(begin, at);
        size_t ours = p->scan((const unsigned char *)text, at, length);
        if (ours != end) fail_msg("\"%.*s\" at %zu: by hand %zu, PCRE2 %zu", (int)length, text, at, ours, end);
        at = end;
    }
}

static void put(ct_str *text, uint32_t point)
{
    char bytes[4];
    ct_str_append_n(text, bytes, ct__utf8_encode(point, bytes));
}

static bool is_character(uint32_t point)
{
    return point < 0xd800 || point >= 0xe000;
}

static const char *const patterns[] = {ct__pattern_gpt2, ct__pattern_llama3, ct__pattern_qwen2};

static void with_each(void (*check)(const pair *p))
{
    for (size_t i = 0; i < CT_COUNT(patterns); i++) {
        ct__pattern *known;
        expect_ok(ct__pattern_new(patterns[i], CT__DIALECT_ONIGURUMA, false, &known));
        pair p = {.scan = ct__pattern_scan(known), .matcher = ct__matcher_new()};
        assert_non_null(p.scan);
        expect_ok(ct__pattern_new(patterns[i], CT__DIALECT_ONIGURUMA, true, &p.generic));
        assert_null(ct__pattern_scan(p.generic));
        check(&p);
        ct__pattern_free(known);
        ct__pattern_free(p.generic);
        ct__matcher_free(p.matcher);
    }
}

/* Every code point beside others; of Qwen's pattern, which shares its matcher with Llama's, only some. */
static void check_every_point(const pair *p)
{
    ct_str text;
    ct_str_init(&text);
    for (uint32_t point = 0; point < 0x110000; point++) {
        if (!is_character(point) || (p->scan == ct__scan_qwen2 && point > 0x3000 && point % 16)) continue;
        ct_str_reset(&text);
        ct_str_append_char(&text, 'a');
        put(&text, point);
        ct_str_append(&text, "1 ");
        put(&text, point);
        put(&text, point);
        ct_str_append(&text, "\n");
        compare(p, text.data, text.length);
    }
    ct_str_deinit(&text);
}

static void test_every_point(void **state)
{
    (void)state;
    with_each(check_every_point);
}

/* Random texts of few characters, so that all neighbourhoods come up. */
static void check_random(const pair *p)
{
    static const uint32_t points[] = {' ',     ' ',   ' ',  '\n',   '\r',   '\t', 0xa0,  0x3000, 'a',   'S',
                                      't',     'r',   'E',  'v',    'm',    'L',  'l',   'd',    '1',   '2',
                                      0xb2,    '.',   '\'', '\'',   0x2019, 0xe9, 0x17f, 0x130,  0x301, 0x4e2d,
                                      0x1f600, 0x660, '/',  0x2028, 0x200d, 0x85, '!',   0x16a0, 0xac00};
    ct_str text;
    ct_str_init(&text);
    uint64_t seed = 1;
    for (int round = 0; round < 60000; round++) {
        ct_str_reset(&text);
        int length = 1 + round % 12;
        for (int i = 0; i < length; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            put(&text, points[(seed >> 33) % CT_COUNT(points)]);
        }
        compare(p, text.data, text.length);
    }
    ct_str_deinit(&text);
}

static void test_random(void **state)
{
    (void)state;
    with_each(check_random);
}

static void test_rewrite(void **state)
{
    (void)state;
    static const struct {
        const char *regex, *rewritten;
    } cases[] = {
        {"[\\s]", "[\\x{9}\\x{a}\\x{b}\\x{c}\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}\\x{2001}\\x{2002}\\x{2003}"
                  "\\x{2004}\\x{2005}\\x{2006}\\x{2007}\\x{2008}\\x{2009}\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}"
                  "\\x{3000}]"},
        {"\\p{Zl}+", "[\\x{2028}]+"},
        {"a\\u0041(?:b|\\.)", "a\\x{0041}(?:b|\\.)"},
        {"[]a]", "[]a]"},
    };
    for (size_t i = 0; i < CT_COUNT(cases); i++) {
        ct_str text;
        ct_str_init(&text);
        expect_ok(ct__pattern_rewrite(cases[i].regex, &text));
        assert_string_equal(text.data, cases[i].rewritten);
        ct_str_deinit(&text);
    }
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *regex, *message;
    } cases[] = {
        {"a\\b", "has \\b at character 2, which is not supported"},
        {"\\p{Greek}", "has \\p{Greek} at character 1"},
        {"\\p", "has \\p without a name"},
        {"\\p{L", "has \\p without a name"},
        {"(?<name>x)", "has a group of an unknown kind at character 1"},
        {"[a[b]]", "has a class inside a class at character 3"},
        {"[a&&b]", "has an intersection of classes"},
        {"\\u12", "has \\u without four hexadecimal digits"},
        {"\\", "has \\  at character 1"},
    };
    ct__pattern *pattern;
    for (size_t i = 0; i < CT_COUNT(cases); i++)
        expect_error(ct__pattern_new(cases[i].regex, CT__DIALECT_ONIGURUMA, false, &pattern), CT_CODE_UNIMPLEMENTED,
                     cases[i].message);
    expect_error(ct__pattern_new("(a", CT__DIALECT_ONIGURUMA, false, &pattern), CT_CODE_INVALID_ARGUMENT,
                 "the regular expression \"(a\" cannot be used: missing closing parenthesis");
}

/* $ ends lines for Oniguruma, and only texts for Rust; empty matches are none. */
static void test_dialects(void **state)
{
    (void)state;
    ct__matcher *matcher = ct__matcher_new();
    static const size_t ends[] = {2, 5};
    for (int i = 0; i < 2; i++) {
        ct__pattern *pattern;
        bool found;
        size_t begin, end;
        expect_ok(ct__pattern_new("x*b$", i ? CT__DIALECT_RUST : CT__DIALECT_ONIGURUMA, false, &pattern));
        expect_ok(ct__pattern_match(pattern, matcher, "ab\nab", 5, 0, &found, &begin, &end));
        assert_true(found);
        assert_int_equal(end, ends[i]);
        ct__pattern_free(pattern);
        expect_ok(ct__pattern_new("b*", CT__DIALECT_RUST, false, &pattern));
        expect_ok(ct__pattern_match(pattern, matcher,
                                    "a\xe4\xb8\xad"
                                    "bba",
                                    7, 0, &found, &begin, &end));
        assert_true(found && begin == 4 && end == 6);
        expect_ok(ct__pattern_match(pattern, matcher, "a\xe4\xb8\xad", 4, 0, &found, &begin, &end));
        assert_false(found);
        ct__pattern_free(pattern);
    }
    ct__matcher_free(matcher);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_point), cmocka_unit_test(test_random),   cmocka_unit_test(test_rewrite),
        cmocka_unit_test(test_refused),     cmocka_unit_test(test_dialects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
