/* Rewrites a regular expression of Oniguruma or Rust for PCRE2: \p{..}, \P{..}, \s, \S, \d, \D become explicit ranges
 * of code points from our tables, \uXXXX becomes \x{XXXX}. What the engines read differently is refused by name.
 */
#include <stdio.h>
#include <string.h>

#include "tokenizer/pattern.h"
#include "tokenizer/unicode.h"

static const char *const category_names[CT__NUM_CATEGORIES] = {
    "Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps",
    "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co"};

typedef struct rewriter {
    const char *regex;
    size_t at;
    ct_str *out;
    bool in_class;
} rewriter;

static ct_status *unsupported(const rewriter *r, const char *what)
{
    return ct_error(CT_CODE_UNIMPLEMENTED,
                    "the regular expression \"%s\" has %s at character %zu, which is not supported", r->regex, what,
                    r->at + 1);
}

/* The categories of a name as bits: of one letter all that begin with it; 0 when there is none. */
static uint32_t categories_of(const char *name, size_t length)
{
    uint32_t bits = 0;
    for (int i = 0; i < CT__NUM_CATEGORIES; i++)
        if (length && length <= 2 && !strncmp(category_names[i], name, length)) bits |= 1u << i;
    return bits;
}

static void put_range(ct_str *out, uint32_t first, uint32_t end)
{
    /* Text has no surrogates, and PCRE2 wants none in a pattern. */
    if (first < 0xd800 && end > 0xe000) {
        put_range(out, first, 0xd800);
        put_range(out, 0xe000, end);
        return;
    }
    if (first >= 0xd800 && first < 0xe000) first = 0xe000;
    if (end > 0xd800 && end <= 0xe000) end = 0xd800;
    if (first >= end) return;
    ct_str_printf(out, "\\x{%x}", first);
    if (end - first > 1) ct_str_printf(out, "-\\x{%x}", end - 1);
}

static void put_categories(ct_str *out, uint32_t bits)
{
    uint32_t first = 0;
    bool inside = false;
    for (size_t i = 0; i < ct__unicode_num_runs; i++) {
        uint32_t begin = ct__unicode_runs[i] / 32;
        bool member = bits >> (ct__unicode_runs[i] % 32) & 1;
        if (member && !inside) first = begin;
        if (!member && inside) put_range(out, first, begin);
        inside = member;
    }
    if (inside) put_range(out, first, 0x110000);
}

static void put_spaces(ct_str *out, bool members)
{
    uint32_t next = 0;
    for (size_t i = 0; i < ct__unicode_num_spaces; i++) {
        uint32_t point = ct__unicode_spaces[i];
        if (members)
            put_range(out, point, point + 1);
        else
            put_range(out, next, point);
        next = point + 1;
    }
    if (!members) put_range(out, next, 0x110000);
}

static void open_class(const rewriter *r)
{
    if (!r->in_class) ct_str_append_char(r->out, '[');
}

static void close_class(const rewriter *r)
{
    if (!r->in_class) ct_str_append_char(r->out, ']');
}

static ct_status *rewrite_property(rewriter *r, bool negated)
{
    const char *name = r->regex + r->at + 2, *end = name + 1;
    if (*name == '{') {
        name++;
        if (*name == '^') {
            negated = !negated;
            name++;
        }
        end = strchr(name, '}');
    }
    if (!*name || !end) return unsupported(r, "\\p without a name");
    uint32_t bits = categories_of(name, (size_t)(end - name));
    if (!bits) {
        char what[64];
        snprintf(what, sizeof(what), "\\p{%.*s}", (int)CT_MIN(end - name, 40), name);
        return unsupported(r, what);
    }
    open_class(r);
    put_categories(r->out, negated ? ~bits : bits);
    close_class(r);
    r->at = (size_t)(end - r->regex) + (*end == '}');
    return NULL;
}

static ct_status *rewrite_escape(rewriter *r)
{
    char c = r->regex[r->at + 1];
    if (c == 'p' || c == 'P') return rewrite_property(r, c == 'P');
    if (c == 's' || c == 'S' || c == 'd' || c == 'D') {
        open_class(r);
        if (c == 's' || c == 'S')
            put_spaces(r->out, c == 's');
        else
            put_categories(r->out, c == 'd' ? 1u << CT__ND : ~(1u << CT__ND));
        close_class(r);
        r->at += 2;
        return NULL;
    }
    if (c == 'u') {
        const char *hex = r->regex + r->at + 2;
        if (strspn(hex, "0123456789abcdefABCDEF") < 4) return unsupported(r, "\\u without four hexadecimal digits");
        ct_str_printf(r->out, "\\x{%.4s}", hex);
        r->at += 6;
        return NULL;
    }
    /* Letters and digits are commands; those that mean the same everywhere pass. */
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!c || (letter && !strchr(r->in_class ? "nrtfvx" : "nrtfvxAz", c))) {
        char what[] = {'\\', c ? c : ' ', 0};
        return unsupported(r, what);
    }
    ct_str_append_n(r->out, r->regex + r->at, 2);
    r->at += 2;
    return NULL;
}

static ct_status *rewrite_group(rewriter *r)
{
    const char *rest = r->regex + r->at;
    static const char *const known[] = {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?i:", "(?>", "(?i)"};
    if (rest[1] != '?') {
        ct_str_append_char(r->out, '(');
        r->at++;
        return NULL;
    }
    for (size_t i = 0; i < CT_COUNT(known); i++) {
        size_t size = strlen(known[i]);
        if (strncmp(rest, known[i], size) != 0) continue;
        ct_str_append_n(r->out, rest, size);
        r->at += size;
        return NULL;
    }
    return unsupported(r, "a group of an unknown kind");
}

ct_status *ct__pattern_rewrite(const char *regex, ct_str *out)
{
    rewriter r = {.regex = regex, .out = out};
    size_t class_begin = 0;
    while (regex[r.at]) {
        char c = regex[r.at];
        if (c == '\\') {
            CT_TRY(rewrite_escape(&r));
            continue;
        }
        if (!r.in_class && c == '(') {
            CT_TRY(rewrite_group(&r));
            continue;
        }
        if (!r.in_class && c == '[') {
            r.in_class = true;
            class_begin = r.at + 1 + (regex[r.at + 1] == '^');
        } else if (r.in_class && c == '[') {
            return unsupported(&r, "a class inside a class");
        } else if (r.in_class && c == '&' && regex[r.at + 1] == '&') {
            return unsupported(&r, "an intersection of classes");
        } else if (r.in_class && c == ']' && r.at > class_begin) {
            r.in_class = false;
        }
        ct_str_append_char(out, c);
        r.at++;
    }
    return NULL;
}
