/* Cutting. A stage walks over its matches and over what lies between them, in order, and hands on pieces as its
 * behavior says; the rest of the stages run inside, so that nothing is stored but edited text.
 */
#include "tokenizer/pretokenizer.h"

#include <string.h>

#include "tokenizer/unicode.h"

typedef struct walk {
    const ct__pretokenizer *pretokenizer;
    ct__stage_scratch *scratch;
    ct__matcher *matcher;
    bool track;
    ct__piece_sink sink;
} walk;

/* A stage's pieces on their way out: [held_begin, held_end) waits for what its successor is. */
typedef struct cutter {
    const walk *walk;
    size_t stage;
    const ct__text *text;
    ct__behavior behavior;
    size_t held_begin, held_end;
    bool held_is_match;
} cutter;

void ct__stage_scratch_init(ct__stage_scratch *scratch)
{
    for (size_t i = 0; i < CT__MAX_STAGES; i++) ct__edit_init(&scratch->edits[i]);
}

void ct__stage_scratch_deinit(ct__stage_scratch *scratch)
{
    for (size_t i = 0; i < CT__MAX_STAGES; i++) ct__edit_deinit(&scratch->edits[i]);
}

static ct_status *run_stage(const walk *w, size_t stage, const ct__text *text);

static ct_status *hand_on(const cutter *c, size_t begin, size_t end)
{
    if (begin == end) return NULL;
    ct__text piece = ct__text_slice(c->text, begin, end);
    if (c->stage + 1 == c->walk->pretokenizer->num_stages) return c->walk->sink.take(c->walk->sink.context, &piece);
    return run_stage(c->walk, c->stage + 1, &piece);
}

static ct_status *hand_on_held(cutter *c)
{
    size_t begin = c->held_begin, end = c->held_end;
    c->held_begin = c->held_end;
    return hand_on(c, begin, end);
}

/* Takes the next stretch of the stage's text, a match or what lies between two. */
static ct_status *cut(cutter *c, size_t begin, size_t end, bool is_match)
{
    if (begin == end) return NULL;
    bool joins = false;
    switch (c->behavior) {
    case CT__BEHAVIOR_REMOVED: return is_match ? NULL : hand_on(c, begin, end);
    case CT__BEHAVIOR_ISOLATED: return hand_on(c, begin, end);
    case CT__BEHAVIOR_CONTIGUOUS: joins = is_match == c->held_is_match; break;
    case CT__BEHAVIOR_MERGED_WITH_PREVIOUS: joins = is_match && !c->held_is_match; break;
    case CT__BEHAVIOR_MERGED_WITH_NEXT: joins = !is_match && c->held_is_match; break;
    }
    if (!joins || c->held_begin == c->held_end) {
        CT_TRY(hand_on_held(c));
        c->held_begin = begin;
    }
    c->held_end = end;
    c->held_is_match = is_match;
    return NULL;
}

static ct_status *cut_by_scan(cutter *c, ct__scan_function *scan)
{
    const unsigned char *data = (const unsigned char *)c->text->data;
    for (size_t begin = 0, end; begin < c->text->length; begin = end) {
        end = scan(data, begin, c->text->length);
        CT_TRY(hand_on(c, begin, end));
    }
    return NULL;
}

static ct_status *cut_by_pattern(cutter *c, const ct__stage *stage)
{
    ct__scan_function *scan = ct__pattern_scan(stage->pattern);
    if (scan && c->behavior == CT__BEHAVIOR_ISOLATED) return cut_by_scan(c, scan);
    size_t done = 0, begin, end;
    for (;;) {
        bool found;
        CT_TRY(ct__pattern_match(stage->pattern, c->walk->matcher, c->text->data, c->text->length, done, &found, &begin,
                                 &end));
        if (!found) break;
        CT_TRY(cut(c, done, begin, stage->invert));
        CT_TRY(cut(c, begin, end, !stage->invert));
        done = end;
    }
    return cut(c, done, c->text->length, stage->invert);
}

static ct_status *cut_by_needle(cutter *c, const char *needle, bool invert)
{
    size_t done = 0, size = strlen(needle);
    const char *found;
    while ((found = memmem(c->text->data + done, c->text->length - done, needle, size))) {
        size_t begin = (size_t)(found - c->text->data);
        CT_TRY(cut(c, done, begin, invert));
        CT_TRY(cut(c, begin, begin + size, !invert));
        done = begin + size;
    }
    return cut(c, done, c->text->length, invert);
}

static bool is_ascii_punctuation(uint32_t point)
{
    return point < 0x80 && ((point >= 33 && point <= 47) || (point >= 58 && point <= 64) ||
                            (point >= 91 && point <= 96) || (point >= 123 && point <= 126));
}

static bool is_more_digits(uint32_t point)
{
    for (size_t i = 0; i < ct__unicode_num_more_digits; i++)
        if (ct__unicode_more_digits[i] == point) return true;
    return false;
}

/* Characters of a class, each a match. */
static ct_status *cut_by_class(cutter *c, uint8_t bits)
{
    const ct__unicode *unicode = ct__unicode_get();
    const unsigned char *data = (const unsigned char *)c->text->data;
    size_t done = 0, size;
    for (size_t at = 0; at < c->text->length; at += size) {
        uint32_t point = ct__utf8_decode(data + at, &size);
        bool is_member = ct__unicode_class(unicode, point) & bits;
        if (bits == CT__PUNCT) is_member = is_member || is_ascii_punctuation(point);
        if (bits == CT__NUMBER) is_member = is_member || (point >= 0x80 && is_more_digits(point));
        if (!is_member) continue;
        CT_TRY(cut(c, done, at, false));
        CT_TRY(cut(c, at, at + size, true));
        done = at + size;
    }
    return cut(c, done, c->text->length, false);
}

static bool begins_with(const ct__text *text, const char *prefix, size_t length)
{
    return text->length >= length && !memcmp(text->data, prefix, length);
}

static void add_prefix(const ct__text *text, const char *prefix, size_t length, ct__edit *edit)
{
    ct__edit_put(edit, prefix, length, ct__text_range(text, 0, ct__utf8_size((unsigned char)text->data[0])));
}

/* The text of METASPACE and PREFIX, in the stage's buffer. */
static ct__text edit_text(const walk *w, size_t index, const ct__text *text)
{
    const ct__stage *stage = &w->pretokenizer->stages[index];
    ct__edit *edit = &w->scratch->edits[index];
    if (stage->kind == CT__STAGE_PREFIX) {
        if (begins_with(text, " ", 1)) return *text;
        ct__edit_reset(edit, w->track);
        add_prefix(text, " ", 1, edit);
        ct__edit_keep(edit, text, 0, text->length);
        return ct__edit_text(edit);
    }
    size_t size = strlen(stage->needle);
    bool first = ct__text_range(text, 0, 1).begin == 0;
    bool wants_prefix = stage->prepend == CT__PREPEND_ALWAYS || (stage->prepend == CT__PREPEND_FIRST && first);
    ct__edit_reset(edit, w->track);
    if (wants_prefix && !begins_with(text, " ", 1) && !begins_with(text, stage->needle, size))
        add_prefix(text, stage->needle, size, edit);
    for (size_t done = 0; done < text->length;) {
        const char *space = memchr(text->data + done, ' ', text->length - done);
        size_t at = space ? (size_t)(space - text->data) : text->length;
        ct__edit_keep(edit, text, done, at);
        if (space) ct__edit_put(edit, stage->needle, size, ct__text_range(text, at, at + 1));
        done = at + (space != NULL);
    }
    return ct__edit_text(edit);
}

static ct_status *run_stage(const walk *w, size_t index, const ct__text *text)
{
    const ct__stage *stage = &w->pretokenizer->stages[index];
    cutter c = {.walk = w, .stage = index, .text = text, .behavior = stage->behavior};
    ct__text edited;
    switch (stage->kind) {
    case CT__STAGE_SPLIT:
        if (stage->pattern)
            CT_TRY(cut_by_pattern(&c, stage));
        else
            CT_TRY(cut_by_needle(&c, stage->needle, stage->invert));
        break;
    case CT__STAGE_DIGITS: CT_TRY(cut_by_class(&c, CT__NUMBER)); break;
    case CT__STAGE_PUNCTUATION: CT_TRY(cut_by_class(&c, CT__PUNCT)); break;
    case CT__STAGE_WHITESPACE: CT_TRY(cut_by_class(&c, CT__SPACE)); break;
    case CT__STAGE_METASPACE:
        edited = edit_text(w, index, text);
        c.text = &edited;
        c.behavior = CT__BEHAVIOR_MERGED_WITH_NEXT;
        if (!stage->split) return hand_on(&c, 0, edited.length);
        CT_TRY(cut_by_needle(&c, stage->needle, false));
        break;
    case CT__STAGE_PREFIX:
        edited = edit_text(w, index, text);
        c.text = &edited;
        return hand_on(&c, 0, edited.length);
    }
    return hand_on_held(&c);
}

ct_status *ct__pretokenize(const ct__pretokenizer *pretokenizer, ct__stage_scratch *scratch, ct__matcher *matcher,
                           const ct__text *text, bool track, ct__piece_sink sink)
{
    if (!text->length) return NULL;
    if (!pretokenizer->num_stages) return sink.take(sink.context, text);
    walk w = {pretokenizer, scratch, matcher, track, sink};
    return run_stage(&w, 0, text);
}
