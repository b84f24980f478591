/* The lexer: text outside of tags, and the tokens inside of them. White space around tags is cut here:
 *
 *   {%- x -%}  all of it on that side        {%+ x +%}  none
 *   {% x %}    up to the line's begin before, and one newline behind (trim_blocks, lstrip_blocks); {{ x }} none
 */
#include <string.h>

#include "base/alloc.h"
#include "tokenizer/jinja.h"
#include "tokenizer/unicode.h"

typedef struct lexer {
    ct_arena *arena;
    const char *source, *name;
    size_t length, at;
    int line;
    bool line_starting; /* what was read last ended a line */
    ct__jtokens *tokens;
} lexer;

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_name(char c, bool first)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (!first && c >= '0' && c <= '9');
}

static void add(lexer *l, ct__jtoken_kind kind, const char *text, size_t length)
{
    ct__jtokens *tokens = l->tokens;
    if (tokens->count == tokens->capacity) {
        size_t capacity = CT_MAX(tokens->capacity * 2, (size_t)256);
        ct__jtoken *items = CT_ARENA_ARRAY(l->arena, ct__jtoken, capacity);
        if (tokens->count) memcpy(items, tokens->items, tokens->count * sizeof(*items));
        tokens->items = items;
        tokens->capacity = capacity;
    }
    tokens->items[tokens->count++] = (ct__jtoken){kind, l->line, text, length};
}

static void advance(lexer *l, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (l->source[l->at + i] == '\n') l->line++;
    l->at += count;
    if (count) l->line_starting = l->source[l->at - 1] == '\n';
}

static bool looking_at(const lexer *l, size_t at, const char *text)
{
    size_t size = strlen(text);
    return l->length - at >= size && !memcmp(l->source + at, text, size);
}

static ct_status *lex_error(const lexer *l, const char *what)
{
    return ct__jinja_error(l->name, l->line, CT_CODE_INVALID_ARGUMENT, __FILE__, __LINE__, "%s", what);
}

/* The text before a tag at `tag`, cut on its right. */
static void add_text(lexer *l, size_t tag, bool is_output)
{
    size_t begin = l->at, end = tag;
    char sign = tag + 2 < l->length ? l->source[tag + 2] : 0;
    if (tag < l->length && sign == '-') {
        while (end > begin && is_space(l->source[end - 1])) end--;
    } else if (tag < l->length && sign != '+' && !is_output) {
        size_t line_begin = end;
        while (line_begin > begin && l->source[line_begin - 1] != '\n') line_begin--;
        size_t first = line_begin;
        while (first < end && is_space(l->source[first])) first++;
        if (first == end && (line_begin > begin || l->line_starting)) end = line_begin;
    }
    if (end > begin) add(l, CT__JT_TEXT, l->source + begin, end - begin);
    advance(l, tag - begin);
}

/* Behind the end of a tag: "-" took all white space, otherwise one newline goes after blocks and comments. */
static void trim_behind(lexer *l, bool all, bool newline)
{
    size_t count = 0;
    if (all)
        while (l->at + count < l->length && is_space(l->source[l->at + count])) count++;
    else if (newline && l->at < l->length && l->source[l->at] == '\n')
        count = 1;
    advance(l, count);
}

static ct_status *lex_comment(lexer *l)
{
    size_t end = l->at + 2;
    while (end < l->length && !looking_at(l, end, "#}")) end++;
    if (end == l->length) return lex_error(l, "a comment that is not closed by #}");
    char sign = end > l->at + 2 ? l->source[end - 1] : 0;
    advance(l, end + 2 - l->at);
    trim_behind(l, sign == '-', sign != '+');
    return NULL;
}

/* Hexadecimal digits of a character that is no surrogate. */
static bool read_hex(const char *digits, size_t count, uint32_t *out_point)
{
    *out_point = 0;
    for (size_t i = 0; i < count; i++) {
        char c = digits[i];
        int value = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (value < 0) return false;
        *out_point = *out_point << 4 | (uint32_t)value;
    }
    return *out_point < 0x110000 && (*out_point < 0xd800 || *out_point >= 0xe000);
}

static ct_status *lex_string(lexer *l)
{
    char quote = l->source[l->at];
    size_t end = l->at + 1;
    while (end < l->length && l->source[end] != quote) end += l->source[end] == '\\' ? 2 : 1;
    if (end >= l->length) return lex_error(l, "a string that is not closed");
    char *text = ct_arena_alloc(l->arena, end - l->at);
    size_t length = 0;
    for (size_t i = l->at + 1; i < end; i++) {
        char c = l->source[i];
        if (c != '\\') {
            text[length++] = c;
            continue;
        }
        c = l->source[++i];
        static const char letters[] = "nrtabfv0\\'\"", meanings[] = "\n\r\t\a\b\f\v\0\\'\"";
        const char *known = c ? memchr(letters, c, sizeof(letters) - 1) : NULL;
        size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
        if (digits) {
            uint32_t point;
            if (!read_hex(l->source + i + 1, CT_MIN(digits, end - i - 1), &point) || end - i - 1 < digits)
                return lex_error(l, "an escape in a string that is no character");
            length += ct__utf8_encode(point, text + length); /* never longer than the escape */
            i += digits;
            continue;
        }
        if (c == 'N' || (c >= '1' && c <= '7') || (c == '0' && l->source[i + 1] >= '0' && l->source[i + 1] <= '7'))
            return ct__jinja_error(l->name, l->line, CT_CODE_UNIMPLEMENTED, __FILE__, __LINE__,
                                   "the escape \\%c in a string is not supported", c);
        if (c == '\n') continue; /* a line that goes on */
        if (!known) text[length++] = '\\';
        text[length++] = known ? meanings[known - letters] : c;
    }
    add(l, CT__JT_STRING, text, length);
    advance(l, end + 1 - l->at);
    return NULL;
}

static void lex_number(lexer *l)
{
    size_t end = l->at;
    ct__jtoken_kind kind = CT__JT_INT;
    const char *digits = "0123456789_";
    while (end < l->length && strchr(digits, l->source[end]) && l->source[end]) end++;
    if (end + 1 < l->length && l->source[end] == '.' && l->source[end + 1] >= '0' && l->source[end + 1] <= '9') {
        kind = CT__JT_FLOAT;
        end++;
        while (end < l->length && l->source[end] >= '0' && l->source[end] <= '9') end++;
    }
    size_t exponent = end;
    if (exponent < l->length && (l->source[exponent] == 'e' || l->source[exponent] == 'E')) {
        exponent++;
        if (exponent < l->length && (l->source[exponent] == '+' || l->source[exponent] == '-')) exponent++;
        if (exponent < l->length && l->source[exponent] >= '0' && l->source[exponent] <= '9') {
            kind = CT__JT_FLOAT;
            end = exponent;
            while (end < l->length && l->source[end] >= '0' && l->source[end] <= '9') end++;
        }
    }
    add(l, kind, l->source + l->at, end - l->at);
    advance(l, end - l->at);
}

static ct_status *lex_token(lexer *l)
{
    char c = l->source[l->at];
    if (is_space(c)) {
        advance(l, 1);
        return NULL;
    }
    if (is_name(c, true)) {
        size_t end = l->at;
        while (end < l->length && is_name(l->source[end], false)) end++;
        add(l, CT__JT_NAME, l->source + l->at, end - l->at);
        advance(l, end - l->at);
        return NULL;
    }
    if (c == '"' || c == '\'') return lex_string(l);
    if (c >= '0' && c <= '9') {
        lex_number(l);
        return NULL;
    }
    static const char *const operators[] = {"**", "//", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "~", "<",
                                            ">",  "=",  "(",  ")",  "[",  "]",  "{", "}", ",", ":", ".", "|"};
    for (size_t i = 0; i < CT_COUNT(operators); i++) {
        if (!looking_at(l, l->at, operators[i])) continue;
        add(l, CT__JT_OPERATOR, operators[i], strlen(operators[i]));
        advance(l, strlen(operators[i]));
        return NULL;
    }
    return ct__jinja_error(l->name, l->line, CT_CODE_INVALID_ARGUMENT, __FILE__, __LINE__,
                           "the character '%c' has no meaning in an expression", c >= ' ' ? c : '?');
}

/* Inside of {{ }} or {% %}, up to its end. Brackets are counted, for "}}" may also close two dicts. */
static ct_status *lex_tag(lexer *l, bool is_output)
{
    const char *close = is_output ? "}}" : "%}";
    int brackets = 0;
    int begin_line = l->line;
    add(l, is_output ? CT__JT_OUTPUT_BEGIN : CT__JT_BLOCK_BEGIN, l->source + l->at, 2);
    advance(l, 2);
    if (l->at < l->length && (l->source[l->at] == '-' || l->source[l->at] == '+')) advance(l, 1);
    while (l->at < l->length) {
        char c = l->source[l->at];
        bool sign = (c == '-' || (c == '+' && !is_output)) && looking_at(l, l->at + 1, close);
        if (!brackets && (sign || looking_at(l, l->at, close))) {
            add(l, is_output ? CT__JT_OUTPUT_END : CT__JT_BLOCK_END, close, 2);
            advance(l, sign ? 3 : 2);
            trim_behind(l, sign && c == '-', !is_output && !sign);
            return NULL;
        }
        if (strchr("([{", c) && c) brackets++;
        if (strchr(")]}", c) && c) brackets -= brackets > 0;
        CT_TRY(lex_token(l));
    }
    l->line = begin_line;
    return lex_error(l, is_output ? "{{ is not closed by }}" : "{% is not closed by %}");
}

/* {% raw %} at the tag: its text up to {% endraw %}. */
static ct_status *lex_raw(lexer *l, bool *out_was_raw)
{
    const ct__jtokens *t = l->tokens;
    *out_was_raw = t->count >= 3 && t->items[t->count - 3].kind == CT__JT_BLOCK_BEGIN &&
                   t->items[t->count - 2].kind == CT__JT_NAME && t->items[t->count - 2].length == 3 &&
                   !memcmp(t->items[t->count - 2].text, "raw", 3);
    if (!*out_was_raw) return NULL;
    l->tokens->count -= 3;
    for (size_t tag = l->at; tag < l->length; tag++) {
        if (!looking_at(l, tag, "{%")) continue;
        size_t at = tag + 2;
        if (at < l->length && (l->source[at] == '-' || l->source[at] == '+')) at++;
        while (at < l->length && is_space(l->source[at])) at++;
        if (!looking_at(l, at, "endraw")) continue;
        add_text(l, tag, false);
        size_t first = l->tokens->count;
        CT_TRY(lex_tag(l, false));
        l->tokens->count = first;
        return NULL;
    }
    return lex_error(l, "{% raw %} is not closed by {% endraw %}");
}

ct_status *ct__jinja_lex(ct_arena *arena, const char *source, size_t length, const char *name, ct__jtokens *out_tokens)
{
    *out_tokens = (ct__jtokens){0};
    /* Lines end in \n, and the last newline of a file is not part of it. */
    char *copy = ct_arena_alloc(arena, length + 1);
    size_t size = 0;
    for (size_t i = 0; i < length; i++) {
        if (source[i] == '\r' && i + 1 < length && source[i + 1] == '\n') continue;
        copy[size++] = source[i] == '\r' ? '\n' : source[i];
    }
    if (size && copy[size - 1] == '\n') size--;
    lexer l = {arena, copy, name, size, 0, 1, true, out_tokens};
    while (l.at < l.length) {
        size_t tag = l.at;
        while (tag < l.length && !looking_at(&l, tag, "{{") && !looking_at(&l, tag, "{%") && !looking_at(&l, tag, "{#"))
            tag++;
        bool is_output = tag < l.length && copy[tag + 1] == '{';
        add_text(&l, tag, is_output);
        if (l.at == l.length) break;
        if (copy[l.at + 1] == '#') {
            CT_TRY(lex_comment(&l));
            continue;
        }
        bool was_raw = false;
        CT_TRY(lex_tag(&l, is_output));
        if (!is_output) CT_TRY(lex_raw(&l, &was_raw));
    }
    add(&l, CT__JT_END, "", 0);
    return NULL;
}
