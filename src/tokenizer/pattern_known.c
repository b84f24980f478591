/* The published patterns, by hand. All three are alternatives tried in order at the end of the match before, and every
 * character is taken by one of them; the numbers below are those of the alternatives.
 *
 * A class test is one table look-up for ASCII; other characters are decoded and looked up in two stages.
 */
#include "tokenizer/pattern.h"
#include "tokenizer/unicode.h"

const char ct__pattern_gpt2[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
const char ct__pattern_llama3[] = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|"
                                  " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
const char ct__pattern_qwen2[] = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|"
                                 " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

/* The class of the character at text[at], at < length; out_next is where it ends. */
static inline uint8_t class_at(const ct__unicode *unicode, const unsigned char *text, size_t at, size_t *out_next)
{
    uint8_t bits = unicode->bytes[text[at]];
    if (!(bits & CT__BEYOND)) {
        *out_next = at + 1;
        return bits;
    }
    size_t size;
    uint32_t point = ct__utf8_decode(text + at, &size);
    *out_next = at + size;
    return ct__unicode_class(unicode, point);
}

/* The end of the run from `at` of characters that have one of the bits `with` (or with 0: any) and none of `without`.
 */
static inline size_t run_of(const ct__unicode *unicode, const unsigned char *text, size_t at, size_t length,
                            uint8_t with, uint8_t without)
{
    while (at < length) {
        size_t next;
        uint8_t bits = class_at(unicode, text, at, &next);
        if ((with && !(bits & with)) || (bits & without)) break;
        at = next;
    }
    return at;
}

/* Bytes of a contraction at "'", 0 when there is none. */
static size_t contraction(const unsigned char *text, size_t begin, size_t length, bool any_case)
{
    if (length - begin < 2) return 0;
    unsigned char first = text[begin + 1], second = length - begin > 2 ? text[begin + 2] : 0;
    if (any_case) {
        if (first == 0xc5 && second == 0xbf) return 3; /* U+017F, the long s, is an s in another case */
        first |= 0x20;
        second |= 0x20;
    }
    switch (first) {
    case 's':
    case 't':
    case 'm':
    case 'd': return 2;
    case 'r':
    case 'v': return second == 'e' ? 3 : 0;
    case 'l': return second == 'l' ? 3 : 0;
    default: return 0;
    }
}

/* \s+(?!\S)|\s+: all but the last space of a run, unless the run ends the text or has only one. */
static inline size_t spaces(const unsigned char *text, size_t begin, size_t end, size_t length)
{
    if (end == length) return end;
    size_t last = (size_t)(ct__utf8_back(text + end) - text);
    return last > begin ? last : end;
}

size_t ct__scan_gpt2(const unsigned char *text, size_t begin, size_t length)
{
    const ct__unicode *unicode = ct__unicode_get();
    if (text[begin] == '\'') {
        size_t size = contraction(text, begin, length, false);
        if (size) return begin + size;
    }
    size_t next, at = begin;
    uint8_t bits = class_at(unicode, text, at, &next);
    if (text[at] == ' ' && next < length) {
        size_t beyond;
        uint8_t after = class_at(unicode, text, next, &beyond);
        if (!(after & CT__SPACE)) { /* " ?" takes it */
            bits = after;
            next = beyond;
        }
    }
    if (bits & CT__LETTER) return run_of(unicode, text, next, length, CT__LETTER, 0);
    if (bits & CT__NUMBER) return run_of(unicode, text, next, length, CT__NUMBER, 0);
    if (!(bits & CT__SPACE)) return run_of(unicode, text, next, length, 0, CT__SPACE | CT__LETTER | CT__NUMBER);
    return spaces(text, begin, run_of(unicode, text, next, length, CT__SPACE, 0), length);
}

static inline size_t scan_llama3(const unsigned char *text, size_t begin, size_t length, int max_digits)
{
    const ct__unicode *unicode = ct__unicode_get();
    if (text[begin] == '\'') {
        size_t size = contraction(text, begin, length, true);
        if (size) return begin + size;
    }
    size_t next, beyond = 0;
    uint8_t bits = class_at(unicode, text, begin, &next);
    if (bits & CT__LETTER) return run_of(unicode, text, next, length, CT__LETTER, 0); /* 2, without its first class */
    if (bits & CT__NUMBER) {
        for (int digits = 1; digits < max_digits && next < length; digits++) {
            if (!(class_at(unicode, text, next, &beyond) & CT__NUMBER)) break;
            next = beyond;
        }
        return next;
    }
    uint8_t after = next < length ? class_at(unicode, text, next, &beyond) : CT__SPACE;
    if ((after & CT__LETTER) && !(bits & CT__NEWLINE)) return run_of(unicode, text, beyond, length, CT__LETTER, 0);
    bool lead = text[begin] == ' ' && !(after & (CT__SPACE | CT__NUMBER));
    if (lead || !(bits & CT__SPACE)) { /* 4 */
        size_t end = run_of(unicode, text, lead ? beyond : next, length, 0, CT__SPACE | CT__LETTER | CT__NUMBER);
        while (end < length && (text[end] == '\n' || text[end] == '\r')) end++;
        return end;
    }
    size_t end = run_of(unicode, text, next, length, CT__SPACE, 0), newline = end;
    while (newline > begin && text[newline - 1] != '\n' && text[newline - 1] != '\r') newline--;
    return newline > begin ? newline : spaces(text, begin, end, length);
}

size_t ct__scan_llama3(const unsigned char *text, size_t begin, size_t length)
{
    return scan_llama3(text, begin, length, 3);
}

size_t ct__scan_qwen2(const unsigned char *text, size_t begin, size_t length)
{
    return scan_llama3(text, begin, length, 1);
}
