/* Patterns over PCRE2's 8-bit library, compiled to machine code where that is possible. */
#include "tokenizer/pattern.h"

#include <stdlib.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/alloc.h"

struct ct__pattern {
    pcre2_code *code; /* NULL when scan is there */
    ct__scan_function *scan;
    char *regex;
};

struct ct__matcher {
    pcre2_match_data *data;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
};

static ct__scan_function *find_scan(const char *regex)
{
    if (!strcmp(regex, ct__pattern_gpt2)) return ct__scan_gpt2;
    if (!strcmp(regex, ct__pattern_llama3)) return ct__scan_llama3;
    if (!strcmp(regex, ct__pattern_qwen2)) return ct__scan_qwen2;
    return NULL;
}

ct_status *ct__pattern_new(const char *regex, ct__dialect dialect, bool generic, ct__pattern **out_pattern)
{
    *out_pattern = NULL;
    ct__scan_function *scan = generic ? NULL : find_scan(regex);
    pcre2_code *code = NULL;
    if (!scan) {
        ct_str text;
        ct_str_init(&text);
        ct_status *status = ct__pattern_rewrite(regex, &text);
        int number = 0;
        PCRE2_SIZE offset = 0;
        uint32_t options = PCRE2_UTF | PCRE2_NO_UTF_CHECK | PCRE2_NEVER_BACKSLASH_C | PCRE2_UCP;
        options |= dialect == CT__DIALECT_ONIGURUMA ? PCRE2_MULTILINE : PCRE2_DOLLAR_ENDONLY;
        if (!status)
            code = pcre2_compile((PCRE2_SPTR)text.data, text.length, options & ~(uint32_t)PCRE2_NO_UTF_CHECK, &number,
                                 &offset, NULL);
        ct_str_deinit(&text);
        CT_TRY(status);
        if (!code) {
            PCRE2_UCHAR message[128] = {0};
            pcre2_get_error_message(number, message, sizeof(message));
            return ct_error(CT_CODE_INVALID_ARGUMENT, "the regular expression \"%s\" cannot be used: %s", regex,
                            (const char *)message);
        }
        (void)pcre2_jit_compile(code, PCRE2_JIT_COMPLETE); /* where there is none, it is interpreted */
    }
    *out_pattern = ct_alloc(sizeof(**out_pattern));
    **out_pattern = (ct__pattern){.code = code, .scan = scan, .regex = ct_strdup(regex)};
    return NULL;
}

void ct__pattern_free(ct__pattern *pattern)
{
    if (!pattern) return;
    pcre2_code_free(pattern->code);
    free(pattern->regex);
    free(pattern);
}

ct__scan_function *ct__pattern_scan(const ct__pattern *pattern)
{
    return pattern->scan;
}

static ct_status *match_code(const ct__pattern *pattern, ct__matcher *matcher, const char *text, size_t length,
                             size_t from, bool *out_found, size_t *out_begin, size_t *out_end)
{
    const PCRE2_SIZE *found = pcre2_get_ovector_pointer(matcher->data);
    while (from < length) {
        int result = pcre2_match(pattern->code, (PCRE2_SPTR)text, length, from, PCRE2_NO_UTF_CHECK, matcher->data,
                                 matcher->context);
        if (result == PCRE2_ERROR_JIT_STACKLIMIT) /* the interpreter keeps its stack on the heap */
            result = pcre2_match(pattern->code, (PCRE2_SPTR)text, length, from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                                 matcher->data, matcher->context);
        if (result == PCRE2_ERROR_NOMATCH) return NULL;
        if (result < 0) {
            PCRE2_UCHAR message[128] = {0};
            pcre2_get_error_message(result, message, sizeof(message));
            return ct_error(CT_CODE_RESOURCE_EXHAUSTED,
                            "the regular expression \"%s\" cannot be matched at byte %zu of %zu: %s", pattern->regex,
                            from, length, (const char *)message);
        }
        if (found[1] > found[0]) {
            *out_found = true;
            *out_begin = found[0];
            *out_end = found[1];
            return NULL;
        }
        from = CT_MAX(from, (size_t)found[1]) + 1; /* an empty match: go on behind the next character */
        while (from < length && ((unsigned char)text[from] & 0xc0) == 0x80) from++;
    }
    return NULL;
}

ct_status *ct__pattern_match(const ct__pattern *pattern, ct__matcher *matcher, const char *text, size_t length,
                             size_t from, bool *out_found, size_t *out_begin, size_t *out_end)
{
    *out_found = false;
    if (!pattern->scan) return match_code(pattern, matcher, text, length, from, out_found, out_begin, out_end);
    if (from >= length) return NULL;
    *out_found = true;
    *out_begin = from;
    *out_end = pattern->scan((const unsigned char *)text, from, length);
    return NULL;
}

ct__matcher *ct__matcher_new(void)
{
    ct__matcher *matcher = ct_alloc_zeroed(1, sizeof(*matcher));
    matcher->data = pcre2_match_data_create(1, NULL);
    matcher->context = pcre2_match_context_create(NULL);
    matcher->stack = pcre2_jit_stack_create(32 << 10, 1 << 20, NULL);
    CT_ASSERT(matcher->data && matcher->context && matcher->stack);
    pcre2_jit_stack_assign(matcher->context, NULL, matcher->stack);
    return matcher;
}

void ct__matcher_free(ct__matcher *matcher)
{
    if (!matcher) return;
    pcre2_match_data_free(matcher->data);
    pcre2_match_context_free(matcher->context);
    pcre2_jit_stack_free(matcher->stack);
    free(matcher);
}
